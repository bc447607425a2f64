"""The SQL tables, one module each; `db` is the connection, `migrate` the schema."""

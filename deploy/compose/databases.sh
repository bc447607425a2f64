#!/bin/sh
# Run once by the MySQL image, on an empty data folder: a database and a user for the ledger, and
# another pair for Dagster. Neither sees the other's.
set -eu
for name in patra dagster; do
    MYSQL_PWD=$(cat /run/secrets/mysql_root) mysql --user=root <<SQL
CREATE DATABASE $name CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
CREATE USER '$name'@'%' IDENTIFIED BY '$(cat "/run/secrets/mysql_$name")';
GRANT ALL ON $name.* TO '$name'@'%';
SQL
done

"""A leased task becomes records, batch by batch, and its slice a completeness certificate."""

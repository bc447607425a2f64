"""Read-only questions to the ledger; nothing here writes or decides."""

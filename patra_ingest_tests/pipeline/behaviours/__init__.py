"""One pipeline test per behaviour of real sources: the ledger against the sandbox's truth."""

"""Examples of the pure modules, one file per module."""

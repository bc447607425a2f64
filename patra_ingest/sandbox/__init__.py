"""A real local HTTP server that behaves as real sources do and tells the truth about itself."""

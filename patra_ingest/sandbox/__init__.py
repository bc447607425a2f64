"""A real local HTTP server that behaves like Crossref and tells the truth about itself."""

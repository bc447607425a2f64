"""Packs of pretend sources: one per behaviour that real ones have."""

"""How fast we may ask: one budget per rate key, shared by all workers of all processes."""

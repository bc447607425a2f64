"""How a request reaches the upstream, and what of it may be written down."""

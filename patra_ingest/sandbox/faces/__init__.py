"""The other shapes of the sandbox's one world: each face answers as one real source does."""

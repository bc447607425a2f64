"""Invented answers for the packs in docs/examples, as those for built-in packs in ../handmade."""

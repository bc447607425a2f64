"""Dagster's UI, driven in a real browser on what `make dev` starts."""

"""A trigger becomes a plan, its slices and their tasks; no request is ever made here."""

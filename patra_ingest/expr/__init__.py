"""Paths into responses and `${…}` templates for requests. Pure, and closed to the outside."""

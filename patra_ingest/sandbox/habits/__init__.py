"""What real sources do to their callers, each habit to be switched on by name. Pure."""

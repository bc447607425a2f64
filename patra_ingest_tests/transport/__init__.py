"""The transport against a real HTTP server on the loopback."""

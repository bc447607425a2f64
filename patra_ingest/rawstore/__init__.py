"""What the upstream really answered: response bodies, kept by content."""

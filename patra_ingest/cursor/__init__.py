"""How far a namespace has come: event first, then the cursor, forward only, no gap skipped."""

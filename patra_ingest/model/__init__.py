"""The values everything speaks of. Pure: no SQL, no HTTP, no clock, no settings."""

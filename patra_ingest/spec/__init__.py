"""A declaration becomes a checked, frozen spec snapshot; a snapshot becomes a localized spec."""

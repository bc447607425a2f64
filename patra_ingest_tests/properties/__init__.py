"""Promises that hold for every input, checked by Hypothesis."""

from hypothesis import settings

# A busy machine is slow, not wrong: no example has to finish in time.
settings.register_profile("patient", deadline=None)
settings.load_profile("patient")

"""Measurements: ratios within one run, medians of repeats. Nothing here fails for slowness."""

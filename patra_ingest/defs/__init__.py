"""Dagster's side: resources, jobs, sensors, schedules, assets; each thin over the package."""

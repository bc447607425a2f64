"""Planner, executor and a real upstream together: one file per promise."""

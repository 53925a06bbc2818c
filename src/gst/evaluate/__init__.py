"""Measures: scores, costs and times."""

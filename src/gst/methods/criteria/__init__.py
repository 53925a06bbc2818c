"""Criteria for edges: pure functions that turn tensors into one score per edge."""

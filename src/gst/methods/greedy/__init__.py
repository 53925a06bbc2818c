"""Greedy search for the edges that a trained network needs."""

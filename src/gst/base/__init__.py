"""Shared foundations: errors, names, text, memory, random numbers, processes."""

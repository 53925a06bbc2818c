"""A trained model on a sparse graph: compiled, timed and counted."""

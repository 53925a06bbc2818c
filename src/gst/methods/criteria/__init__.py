"""What an edge is worth: pure functions, tensors in, one score per edge out."""

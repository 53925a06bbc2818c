"""Sparse matrices and the compiled kernels that multiply and sample them."""

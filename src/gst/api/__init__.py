"""One call does the job: sparsify, and the result it returns."""

"""The edges of a graph: numbering, budgets, sampling, triangles, clusters, Laplacians."""

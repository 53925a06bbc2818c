"""After a run: the largest safe sparsity, new nodes, drift, spectra, structure."""

"""The paper's experiments: grids as data, a runner that resumes, a store, and the committed record."""

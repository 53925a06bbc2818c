"""Everything on disk: files, caches, checkpoints, run folders, exports."""

"""What goes to disk and how: files, caches, checkpoints, run folders, exports."""

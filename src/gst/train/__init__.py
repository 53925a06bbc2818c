"""What is trained on what: tasks, settings, batches, the training loop, the anchor."""

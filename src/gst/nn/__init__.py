"""Kernels, gated layers, backbones, the masker, and the path for a user's own model."""

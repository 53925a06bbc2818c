"""Gated layers, backbones, the masker, and gated edges for a user's own model."""

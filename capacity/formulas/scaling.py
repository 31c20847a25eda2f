"""Scaling laws: loss against parameters, tokens, compute and batch."""

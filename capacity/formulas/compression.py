"""Compressed gradients: bytes, variance, contraction, error feedback, and the ratio at which they pay."""
from __future__ import annotations

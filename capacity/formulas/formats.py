"""Formats of few bits: ranges, rounding, accumulation, scales, and the bytes they save."""
from __future__ import annotations

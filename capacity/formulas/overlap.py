"""Communication under computation: buckets, contention, prefetch, and what stays exposed."""
from __future__ import annotations

"""Generating tokens: keys and values kept, batches, pages, drafts, and how many servers feed another."""
from __future__ import annotations

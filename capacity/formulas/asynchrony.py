"""Ranks that do not wait: barriers, staleness, stability under delay, local steps and rare synchronisation."""
from __future__ import annotations

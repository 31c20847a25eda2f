"""What attention and schedules of another shape save: keys and values, windows, latents, bubbles."""
from __future__ import annotations

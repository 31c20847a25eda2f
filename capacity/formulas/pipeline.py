"""Idle time, activations and messages of pipeline schedules."""

"""Failures and checkpoints."""
from __future__ import annotations

from ..algebra import exp, sqrt
from ..grammar import formula
from ..units import PerSecond, Seconds


@formula(chapter="05-economics-of-compute", source="daly2006")
def expected_segment_time(failure_rate: PerSecond, interval: Seconds, checkpoint: Seconds, restart: Seconds) -> Seconds:
    """Expected time to do `interval` of work and save it, failures Poisson, each followed by a restart.

    No failure strikes during a restart; after one the whole segment is done again.
    """
    return (1/failure_rate + restart)*(exp(failure_rate*(interval + checkpoint)) - 1)


@formula(chapter="05-economics-of-compute", source="young1974")
def young_interval(checkpoint: Seconds, mtbf: Seconds) -> Seconds:
    """Work between checkpoints that minimizes lost time when failures are rare."""
    return sqrt(2*checkpoint*mtbf)


@formula(chapter="05-economics-of-compute", source="daly2006")
def daly_interval(checkpoint: Seconds, mtbf: Seconds) -> Seconds:
    """Work between checkpoints that minimizes the time per useful second, two orders beyond Young's.

    For a checkpoint shorter than twice the time between failures; Daly's sum of four terms, factored.
    """
    return sqrt(2*checkpoint*mtbf)*(1 - sqrt(checkpoint/(2*mtbf))/3)**2

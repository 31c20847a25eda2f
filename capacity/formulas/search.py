"""Searching for a layout: what a measurement tells, and what it is worth."""
from __future__ import annotations

from ..grammar import formula
from ..units import Count, Ratio, Seconds

CHAPTER = "27-configuration-search"


@formula(chapter=CHAPTER, source="derived")
def regret(chosen: Seconds, best: Seconds) -> Ratio:
    """Share by which the chosen layout is slower than the best one."""
    return chosen/best - 1


@formula(chapter=CHAPTER, source="derived")
def trials_needed(difference: Ratio, run_noise: Ratio, deviations: Ratio) -> Ratio:
    """Runs of each of two layouts after which a relative difference of their means is this many deviations.

    `run_noise` is the standard deviation of one run's time, as a share of it; runs are independent.
    """
    return 2*(deviations*run_noise/difference)**2


@formula(chapter=CHAPTER, source="derived")
def value_of_trials(remaining: Seconds, spread: Ratio, expected_maximum: Ratio, trials: Count, trial: Seconds) -> Seconds:
    """Time that trying several layouts of equal prediction saves, less the time of the trials.

    `spread` is the standard deviation of their true times around the prediction, as a share; `expected_maximum` the mean of
    the largest of so many standard normal numbers.
    """
    return remaining*spread*expected_maximum - trials*trial

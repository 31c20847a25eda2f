"""What it takes to find a fault, and when it is cheaper not to look."""
from __future__ import annotations

from ..algebra import ceil, exp, log, log2, minimum
from ..grammar import formula
from ..units import Count, Share, Group, Ratio, Seconds

CHAPTER = "33-investigation-protocol"


@formula(chapter=CHAPTER, source="derived")
def two_checks_time(first_chance: Share, first_time: Seconds, second_chance: Share, second_time: Seconds) -> Seconds:
    """Mean time of two checks in their better order, if one of two causes is there and its check ends the search.

    A sum over the pairs of many causes, less what is counted twice, is the mean time of the best order of all.
    """
    return first_chance*first_time + second_chance*second_time + minimum(first_chance*second_time, second_chance*first_time)


@formula(chapter=CHAPTER, source="derived")
def restart_chance(restart: Seconds, diagnosis: Seconds) -> Ratio:
    """Least probability that a restart cures from which a restart comes before a diagnosis of the rest."""
    return restart/(restart + diagnosis)


@formula(chapter=CHAPTER, source="derived")
def posterior_chance(prior: Share, sensitivity: Share, false_alarm: Share) -> Ratio:
    """Probability of a cause after a look that says yes."""
    return prior*sensitivity/(prior*sensitivity + (1 - prior)*false_alarm)


@formula(chapter=CHAPTER, source="derived")
def bisection_tests(suspects: Count) -> Ratio:
    """Fewest tests with two outcomes that name one of so many suspects in every case; halving attains it."""
    return ceil(log2(suspects))


@formula(chapter=CHAPTER, source="derived")
def repeats_needed(showing: Share, miss: Share, halvings: Count) -> Ratio:
    """Runs of each half, rounded up, so that a fault that shows in a share of the runs is missed this rarely in all halvings."""
    return log(miss/halvings)/log(1 - showing)


@formula(chapter=CHAPTER, source="kirkman1847")
def pair_rounds(nodes: Group) -> Ratio:
    """Rounds in which every pair of nodes meets once, each node in one pair at a time."""
    return 2*ceil(nodes/2) - 1


@formula(chapter=CHAPTER, source="siegmund1985")
def detection_delay(drift: Ratio, barrier: Ratio) -> Ratio:
    """Samples until a CUSUM alarms, on average, after a change: the shift less the allowance, in standard deviations.

    The barrier is the threshold and 1.166, for what a step goes beyond it.
    """
    return (exp(-2*drift*barrier) + 2*drift*barrier - 1)/(2*drift**2)


@formula(chapter=CHAPTER, source="siegmund1985")
def false_alarm_gap(drift: Ratio, barrier: Ratio) -> Ratio:
    """Samples until a CUSUM alarms, on average, where nothing changed; the drift is the allowance, downwards."""
    return (exp(2*drift*barrier) - 2*drift*barrier - 1)/(2*drift**2)


@formula(chapter=CHAPTER, source="derived")
def incident_cost(P: Count, degradation: Share, slow_time: Seconds, down_time: Seconds) -> Seconds:
    """Device-seconds that an incident costs: a share of them while the job is slow, all while it is down."""
    return P*(degradation*slow_time + down_time)

"""Ranks that do not wait: barriers, staleness, stability under delay, local steps and rare synchronisation."""
from __future__ import annotations

from typing import Annotated, Any

from ..algebra import geometric, sinpi, sqrt
from ..grammar import formula
from ..units import Bytes, Count, Share, Group, Index, Ratio, Seconds, Unit

CHAPTER = "29-asynchrony-local-sgd"
Momentum = Annotated[Any, Unit(least=0.0, most=1 - 2**-53)]          # below 1


@formula(chapter=CHAPTER, source="derived")
def barrier_time(local_time: Seconds, jitter: Ratio, expected_maximum: Ratio) -> Seconds:
    """Mean time of a step that waits for the slowest worker, their times normal and independent.

    `expected_maximum` is the mean of the largest of as many standard normal numbers as there are workers.
    """
    return local_time*(1 + jitter*expected_maximum)


@formula(chapter=CHAPTER, source="derived")
def mean_staleness(P: Count) -> Ratio:
    """Updates by others between reading and writing, the mean over all updates of P workers, whatever their speeds."""
    return P - 1


@formula(chapter=CHAPTER, source="derived")
def delay_limit(bend: Ratio, delay: Index) -> Ratio:
    """Learning rate below which gradient descent converges in a direction of this curvature, each gradient late by `delay`."""
    return 2*sinpi(1/(2*(2*delay + 1)))/bend


@formula(chapter=CHAPTER, source="derived")
def local_drift(learning_rate: Ratio, gradient_noise: Ratio, bend: Ratio, local_steps: Count, P: Group) -> Ratio:
    """Mean squared distance of a worker from the mean of all P, in one direction, after steps that each did alone.

    One quadratic loss for all, and noise that is independent from step to step and from worker to worker.
    """
    return learning_rate**2*gradient_noise**2*(1 - 1/P)*geometric((1 - learning_rate*bend)**2, local_steps)


@formula(chapter=CHAPTER, source="derived")
def local_pull(learning_rate: Ratio, bend: Ratio, local_steps: Count) -> Ratio:
    """Share of the way to its own optimum that gradient descent goes between two synchronisations, in one direction."""
    return 1 - (1 - learning_rate*bend)**local_steps


@formula(chapter=CHAPTER, source="derived")
def outer_limit(pull: Share, momentum: Momentum) -> Ratio:
    """Rate of an outer optimizer with Nesterov's momentum below which it converges in a direction of this pull."""
    return 2*(1 + momentum)/((1 + 2*momentum)*pull)


@formula(chapter=CHAPTER, source="derived")
def outer_gain(outer_rate: Ratio, momentum: Momentum) -> Ratio:
    """Factor by which an outer optimizer speeds up a direction in which the workers hardly move between two syncs."""
    return outer_rate/(1 - momentum)


@formula(chapter=CHAPTER, source="derived")
def local_utilization(local_time: Seconds, sync_time: Seconds, local_steps: Count) -> Ratio:
    """Share of the time that workers compute if they stop for each synchronisation."""
    return 1/(1 + sync_time/(local_steps*local_time))


@formula(chapter=CHAPTER, source="derived")
def local_step_time(local_time: Seconds, sync_time: Seconds, local_steps: Count, step_penalty: Share) -> Seconds:
    """Time for as much progress as one step with synchronisation brings, if rare synchronisation costs further steps."""
    return (local_time + sync_time/local_steps)*(1 + step_penalty*(local_steps - 1))


@formula(chapter=CHAPTER, source="derived")
def best_local_steps(local_time: Seconds, sync_time: Seconds, step_penalty: Share) -> Ratio:
    """Steps between two synchronisations that minimize `local_step_time`; below 1, take 1."""
    return sqrt(sync_time*(1 - step_penalty)/(local_time*step_penalty))


@formula(chapter=CHAPTER, source="derived")
def local_saving(local_steps: Count, grad: Bytes, delta_bytes: Bytes) -> Ratio:
    """How many times fewer bytes than with a gradient in each step, averaged over time."""
    return local_steps*grad/delta_bytes

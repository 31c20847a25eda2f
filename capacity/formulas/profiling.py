"""Where the time of a step went, and how surely one knows."""
from __future__ import annotations

from ..algebra import sqrt
from ..grammar import formula
from ..units import Count, Flops, FlopsPerSecond, Share, Group, Ratio, Seconds

CHAPTER = "32-profiling-distributed-training"


@formula(chapter=CHAPTER, source="derived")
def kernel_utilization(flops: Flops, recompute: Ratio, P: Count, peak: FlopsPerSecond, arithmetic: Seconds) -> Ratio:
    """Share of peak at which devices compute while they compute; recompute: part of the layers done twice forward.

    flops: the model's, of a step, without what is done twice; arithmetic: seconds of a step in which a device computes.
    """
    return flops*(3 + recompute)/(3*P*peak*arithmetic)


@formula(chapter=CHAPTER, source="derived")
def ladder_mfu(kernel_rate: Share, recompute: Ratio, arithmetic_share: Share, goodput: Share) -> Ratio:
    """Model FLOP utilization as a product: speed of the kernels, useful FLOP, share of the step, share of the wall clock."""
    return kernel_rate*3/(3 + recompute)*arithmetic_share*goodput


@formula(chapter=CHAPTER, source="derived")
def time_inside(collective: Seconds, arrival: Seconds, last_arrival: Seconds) -> Seconds:
    """Time that a rank spends inside a collective that ends `collective` after the last rank has come."""
    return collective + last_arrival - arrival


@formula(chapter=CHAPTER, source="derived")
def largest_deviation(P: Group) -> Ratio:
    """Most standard deviations that one of P numbers can lie from their mean; the deviation is that of a sample."""
    return (P - 1)/sqrt(P)

"""Formats of few bits: ranges, rounding, accumulation, scales, and the bytes they save."""
from __future__ import annotations

from ..algebra import floor, log, log2, sqrt
from ..grammar import formula
from ..units import Bytes, BytesPerSecond, Count, Flops, FlopsPerSecond, Share, Index, Ratio

HERE = "30-reduced-precision"


@formula(chapter=HERE, source="derived")
def largest_mark(epsilon: Ratio, top_power: Ratio, codes_lost: Index) -> Ratio:
    """Largest number of a format: its highest power of two, and the codes of it that are no numbers."""
    return (2 - (1 + codes_lost)*epsilon)*top_power


@formula(chapter=HERE, source="derived")
def half_step(place: Ratio, epsilon: Ratio) -> Ratio:
    """Half the distance from a weight to the next larger one: what rounding to the nearest needs to move it upwards."""
    return epsilon*2**floor(log2(place))/2


@formula(chapter=HERE, source="derived")
def stochastic_spread(grid_step: Ratio, updates: Count, step_share: Share) -> Ratio:
    """Standard deviation of a weight after equal updates of a share of one step each, rounded at random."""
    return grid_step*sqrt(updates*step_share*(1 - step_share))


@formula(chapter=HERE, source="derived")
def rounding_rms(epsilon: Ratio) -> Ratio:
    """Root-mean-square relative error of rounding to the nearest, for sizes spread evenly over their logarithm."""
    return epsilon/sqrt(32*log(2))


@formula(chapter=HERE, source="higham2002")
def promoted_sum_error(sum_terms: Count, promotion: Count, roundoff: Ratio, wide_roundoff: Ratio) -> Ratio:
    """Bound on the error of a sum of terms that goes to a wider sum after each interval, over the sum of sizes."""
    return (promotion - 1)*roundoff + (sum_terms/promotion - 1)*wide_roundoff


@formula(chapter=HERE, source="derived")
def best_promotion(sum_terms: Count, roundoff: Ratio, wide_roundoff: Ratio) -> Ratio:
    """Terms between two promotions that make the bound of a promoted sum least."""
    return sqrt(sum_terms*wide_roundoff/roundoff)


@formula(chapter=HERE, source="derived")
def cut_sum_loss(sum_terms: Count, epsilon: Ratio) -> Ratio:
    """Share that a sum of many positive terms loses, about and at least, if additions cut after so many bits."""
    return sum_terms*epsilon/6


@formula(chapter=HERE, source="derived")
def block_bits(element_bits: Count, scale_bits: Index, block: Count) -> Ratio:
    """Bits per number of a block that shares one scale."""
    return element_bits + scale_bits/block


@formula(chapter=HERE, source="derived")
def cast_width(cast_bytes: Bytes, slow_rate: FlopsPerSecond, fast_rate: FlopsPerSecond, bandwidth: BytesPerSecond,
               *, multiply_add: Flops = 2) -> Ratio:
    """Outputs that a number must enter so that a faster product saves the time of casting it."""
    return cast_bytes/(multiply_add*bandwidth*(1/slow_rate - 1/fast_rate))

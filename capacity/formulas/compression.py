"""Compressed gradients: bytes, variance, contraction, error feedback, and the ratio at which they pay."""
from __future__ import annotations

from ..algebra import maximum, minimum, sqrt
from ..grammar import formula
from ..units import Bytes, BytesPerSecond, Count, Share, Group, Index, Ratio, Seconds


@formula(chapter="28-gradient-compression", source="derived")
def gathered_time(n: Bytes, P: Count, ratio: Ratio, alpha: Seconds, beta: BytesPerSecond, encode: Seconds) -> Seconds:
    """Time to sum gradients of n bytes that are compressed and gathered: everybody's message goes to everybody."""
    return encode + (P - 1)*(alpha + ratio*n/beta)


@formula(chapter="28-gradient-compression", source="derived")
def summed_time(n: Bytes, P: Count, ratio: Ratio, calls: Count, alpha: Seconds, beta: BytesPerSecond,
                encode: Seconds) -> Seconds:
    """Time to sum gradients of n bytes whose messages may be added on the way, by ring all-reduces one after another.

    With calls = 1 also the time of a reduce-scatter by all-to-all and an all-gather in which owners compress again.
    """
    return encode + 2*(P - 1)*(calls*alpha + ratio*n/(P*beta))


@formula(chapter="28-gradient-compression", source="derived")
def gather_break_even(n: Bytes, P: Group, alpha: Seconds, beta: BytesPerSecond, encode: Seconds) -> Ratio:
    """Ratio below which gathered messages are faster than a ring all-reduce of the whole gradient."""
    return 2/P + alpha*beta/n - encode*beta/(n*(P - 1))


@formula(chapter="28-gradient-compression", source="derived")
def topk_ratio(kept: Share, number: Bytes, grad: Bytes, *, index: Bytes = 4) -> Ratio:
    """Bytes of the numbers that are sent, each with its index, over bytes of the gradient."""
    return kept*(number + index)/grad


@formula(chapter="28-gradient-compression", source="derived")
def support_union(kept: Share, P: Index) -> Ratio:
    """Share of the places that at least one of P ranks sends, on average, if each chooses its share at random."""
    return 1 - (1 - kept)**P


@formula(chapter="28-gradient-compression", source="derived")
def sparse_ring_bytes(n: Bytes, P: Group, kept: Share, ratio: Ratio) -> Bytes:
    """Bytes that a rank sends in a ring all-reduce of sparse messages that are added on the way, on average.

    Ranks choose their places at random; ratio: bytes of a rank's own message over those of its gradient.
    """
    return ratio*n/(kept*P)*((P - 1)*(2 - (1 - kept)**P) - (1 - kept)*(1 - (1 - kept)**(P - 1))/kept)


@formula(chapter="28-gradient-compression", source="alistarh2017")
def level_variance(position: Ratio, levels: Count) -> Ratio:
    """Variance of a number rounded at random to one of its two levels, in squares of the scale; its mean is right.

    position: how far the number is from the lower level, in steps of 1/levels.
    """
    return position*(1 - position)/levels**2


@formula(chapter="28-gradient-compression", source="alistarh2017")
def rounding_variance_bound(entries: Count, levels: Count) -> Ratio:
    """Most that random rounding to levels of the norm adds, over the squared norm of the gradient."""
    return minimum(entries/(4*levels**2), sqrt(entries)/levels)


@formula(chapter="28-gradient-compression", source="vogels2019")
def powersgd_ratio(gradient_rows: Count, gradient_cols: Count, low_rank: Count) -> Ratio:
    """Numbers in two factors of low rank over numbers in the matrix."""
    return low_rank*(gradient_rows + gradient_cols)/(gradient_rows*gradient_cols)


@formula(chapter="28-gradient-compression", source="karimireddy2019")
def feedback_error_bound(learning_rate: Ratio, gradient_bound: Ratio, contraction: Share) -> Ratio:
    """Largest norm of what error feedback holds back, if no gradient is longer than the bound."""
    return learning_rate*gradient_bound*sqrt(1 - contraction)/(1 - sqrt(1 - contraction))


@formula(chapter="28-gradient-compression", source="karimireddy2019")
def feedback_bound(gap: Ratio, learning_rate: Ratio, descents: Count, smoothness: Ratio, gradient_bound: Ratio,
                   contraction: Share) -> Ratio:
    """Mean squared norm of the gradient along steps with error feedback is at most this."""
    return (2*gap/(learning_rate*descents) + learning_rate*smoothness*gradient_bound**2
            + 4*(learning_rate*smoothness*gradient_bound)**2*(1 - contraction)/contraction**2)


@formula(chapter="28-gradient-compression", source="tang2021")
def warmed_up_ratio(warmup: Ratio, ratio: Ratio) -> Ratio:
    """Bytes, or time, of a run over that without compression, if a first share of its steps is not compressed."""
    return warmup + (1 - warmup)*ratio


@formula(chapter="28-gradient-compression", source="derived")
def exposed_gain(comm: Seconds, compressed: Seconds, cover: Seconds, encode: Seconds) -> Seconds:
    """What a step gains by compression, if communication hides behind `cover` seconds of work and encoding does not."""
    return maximum(comm - cover, 0) - maximum(compressed - cover, 0) - encode

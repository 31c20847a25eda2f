"""Communication under computation: pieces on two streams, contention, waves, and what stays exposed.

`cover` and `comm` are the times of the two alone: the computation that does not wait for the communication, and the
communication.  `share` is the part of its speed that the computation loses while communication runs.
"""
from __future__ import annotations

from ..algebra import ceil, maximum, minimum, sqrt
from ..grammar import formula
from ..units import Count, Share, Ratio, Seconds


@formula(chapter="31-overlapping-communication", source="derived")
def overlap_efficiency(cover: Seconds, comm: Seconds, duration: Seconds) -> Ratio:
    """Time saved by overlap over the most that two streams could save; 1 if the shorter one is hidden whole."""
    return (cover + comm - duration)/minimum(cover, comm)


@formula(chapter="31-overlapping-communication", source="derived")
def contended_time(cover: Seconds, comm: Seconds, share: Ratio, drag: Ratio) -> Seconds:
    """Time of computation and communication that start together, do not wait for each other and slow each other down.

    drag: the part of its speed that the communication loses while computation runs.  Below 1 for both.
    """
    return cover + comm - (1 - share - drag)*minimum(cover/(1 - share), comm/(1 - drag))


@formula(chapter="31-overlapping-communication", source="derived")
def partitioned_time(cover: Seconds, comm: Seconds, share: Share) -> Seconds:
    """The same if the share is set apart for communication all the time, and communication is not slowed down."""
    return maximum(comm, cover/(1 - share))


@formula(chapter="31-overlapping-communication", source="derived")
def pieces_time(cover: Seconds, comm: Seconds, call: Seconds, share: Ratio, pieces: Count) -> Seconds:
    """Time of equal pieces that pass a computation and a communication, one after the other, in either order.

    A piece's communication costs `call` and its part of `comm`.  The same law holds for buckets of a gradient, layers
    gathered ahead and two chains in turn; share at most 1.
    """
    return (cover/pieces + call + comm/pieces
            + (pieces - 1)*maximum(call + comm/pieces, cover/pieces + share*(call + comm/pieces)))


@formula(chapter="31-overlapping-communication", source="derived")
def best_pieces(cover: Seconds, comm: Seconds, call: Seconds, share: Share) -> Ratio:
    """Number of pieces for which `pieces_time` is least, as a real number; below 1, take one.  A share below 1.

    Without contention it is `optimal_buckets`.
    """
    return minimum(sqrt((1 - share)*comm/(share*call)),
                   maximum(sqrt(cover/call), (cover/(1 - share) - comm)/call))


@formula(chapter="31-overlapping-communication", source="derived")
def wave_slowdown(blocks: Count, processors: Count, free: Count) -> Ratio:
    """How many times longer a kernel of equal blocks takes, one on a processor at a time, on those that are free."""
    return ceil(blocks/free)/ceil(blocks/processors)

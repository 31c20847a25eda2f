"""Storage and input: from stored bytes to tokens per second."""
from __future__ import annotations

from ..algebra import geometric, maximum, minimum
from ..grammar import formula
from ..units import (Bytes, BytesPerSecond, Count, Flops, FlopsPerByte, FlopsPerSecond, Share, PerSecond, Ratio,
                     Seconds)


@formula(chapter="03a-data-pipeline-io", source="derived")
def tokens_per_second(P: Count, peak: FlopsPerSecond, mfu: Share, params: Count,
                      *, per_weight: Flops = 6) -> PerSecond:
    """Tokens that P devices consume per second in training, attention scores left out."""
    return P*peak*mfu/(per_weight*params)


@formula(chapter="03a-data-pipeline-io", source="derived")
def read_bandwidth(token_rate: PerSecond, bytes_per_token: Bytes, amplification: Ratio) -> BytesPerSecond:
    """Storage bandwidth that a token rate needs."""
    return token_rate*bytes_per_token*amplification


@formula(chapter="03a-data-pipeline-io", source="derived")
def io_intensity(params: Count, bytes_per_token: Bytes, amplification: Ratio,
                 *, per_weight: Flops = 6) -> FlopsPerByte:
    """FLOP of training per byte read from storage."""
    return per_weight*params/(bytes_per_token*amplification)


@formula(chapter="03a-data-pipeline-io", source="derived")
def random_read_amplification(sample_bytes: Bytes, block_bytes: Bytes, *, byte: Bytes = 1) -> Ratio:
    """Bytes read over bytes used when samples start at a uniformly random byte and whole blocks are read."""
    return (sample_bytes + block_bytes - byte)/sample_bytes


@formula(chapter="03a-data-pipeline-io", source="baccelli1992")
def prefetch_batch_time(load: Seconds, step: Seconds, slots: Count) -> Seconds:
    """Time per batch of a loader and a trainer joined by K slots, when their times do not vary.

    A slot is taken when its batch begins to load and free when its training ends: one slot is no overlap.
    """
    return maximum(maximum(load, step), (load + step)/slots)


@formula(chapter="03a-data-pipeline-io", source="kleinrock1975")
def prefetch_utilization(rho: Ratio, slots: Count) -> Ratio:
    """Share of the time that the trainer works, fed through K slots, when both times are exponential.

    The loss is the share of the time that no batch is loaded: one over a geometric sum.
    """
    return 1 - 1/geometric(rho, slots + 1)


@formula(chapter="03a-data-pipeline-io", source="derived")
def decoded_bandwidth(compression: Ratio, storage_bandwidth: BytesPerSecond,
                      decode_rate: BytesPerSecond) -> BytesPerSecond:
    """Raw bytes per second from compressed storage: storage or decompression, whichever is slower."""
    return minimum(compression*storage_bandwidth, decode_rate)

"""What attention and schedules of another shape save: keys and values, windows, latents, bubbles.

Counts are those of one layer; what is cached is counted per token.  A latent, read absorbed, is one key-value head.
"""
from __future__ import annotations

from ..algebra import maximum, minimum
from ..grammar import formula
from ..units import Bytes, Count, Flops, Share, Ratio, Seconds
from .network import Even


# keys and values
@formula(chapter="31a-architectural-efficiency", source="derived")
def cached_numbers(kv_heads: Count, head_cache: Ratio, tp: Count) -> Ratio:
    """Numbers that each rank caches per token and layer when attention is cut by heads.

    Beyond as many ranks as key-value heads, heads are kept more than once.  Assumes that one of the two divides the other.
    """
    return head_cache*maximum(1, kv_heads/tp)


@formula(chapter="31a-architectural-efficiency", source="derived")
def reversal_ranks(kv_heads: Count, head_cache: Ratio, latent_cache: Ratio) -> Ratio:
    """Ranks beyond which grouped heads, cut, cache less on each than a latent, which a cut by heads leaves whole.

    A real number, at least 1 where the latent is the smaller of the two uncut, and at most the key-value heads.
    """
    return kv_heads*head_cache/latent_cache


# a latent, expanded or absorbed
@formula(chapter="31a-architectural-efficiency", source="derived")
def expanded_latent_flops(queries: Count, keys: Count, heads: Count, kv_rank: Count, head_dim: Count, rotated: Count,
                          visible: Share, *, multiply_add: Flops = 2) -> Flops:
    """FLOP of latent attention that first expands the latents of all keys into keys and values of every head.

    Projections of the input and of the output are left out; `visible` is the share of the pairs that is computed.
    """
    return multiply_add*heads*(2*keys*kv_rank*head_dim + visible*queries*keys*(2*head_dim + rotated))


@formula(chapter="31a-architectural-efficiency", source="deepseek2024v2")
def absorbed_latent_flops(queries: Count, keys: Count, heads: Count, kv_rank: Count, head_dim: Count, rotated: Count,
                          visible: Share, *, multiply_add: Flops = 2) -> Flops:
    """FLOP of latent attention that takes the queries to the latents, and brings only the output back.

    Counts as `expanded_latent_flops`.
    """
    return multiply_add*heads*(2*queries*kv_rank*head_dim + visible*queries*keys*(2*kv_rank + rotated))


@formula(chapter="31a-architectural-efficiency", source="derived")
def absorption_break_even(keys: Count, kv_rank: Count, head_dim: Count, visible: Share) -> Ratio:
    """Queries at a time below which absorbed latent attention takes fewer FLOP than expanded, as a real number.

    Assumes a latent at least as wide as a head.
    """
    return keys*kv_rank*head_dim/(visible*keys*(kv_rank - head_dim) + kv_rank*head_dim)


# a window
@formula(chapter="31a-architectural-efficiency", source="derived")
def window_pairs(seq_len: Count, visible_keys: Count) -> Ratio:
    """Pairs of query and key that a causal window leaves, a query's own key included; exact."""
    return (minimum(visible_keys, seq_len)*seq_len
            - minimum(visible_keys, seq_len)*(minimum(visible_keys, seq_len) - 1)/2)


@formula(chapter="31a-architectural-efficiency", source="derived")
def window_reach(layers: Count, visible_keys: Count) -> Count:
    """Tokens that the last layer's output at one place can depend on, its own included, if all layers have a window."""
    return layers*(visible_keys - 1) + 1


@formula(chapter="31a-architectural-efficiency", source="derived")
def halo_bytes(visible_keys: Count, kv_width: Count, element_bytes: Bytes) -> Bytes:
    """Bytes of keys and values that an inner rank sends in one layer's forward pass when a windowed sequence is cut.

    Contiguous chunks; the last ranks send less where a window is longer than a chunk.
    """
    return 2*element_bytes*kv_width*(visible_keys - 1)


# two ends of a pipeline
@formula(chapter="31a-architectural-efficiency", source="deepseek2024")
def dualpipe_idle(pp: Even, pair_time: Seconds, backward: Seconds, weight_grad: Seconds) -> Seconds:
    """Idle time of the device that idles most in a step of DualPipe, at least 2 p micro-batches.

    Assumes equal times of forward and input gradient, no less than `weight_grad`; a pair takes as long as a backward at
    least, and at most as long as forward and backward.
    """
    return (pp/2 - 1)*(pair_time + backward - 3*weight_grad)

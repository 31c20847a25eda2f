"""Activation recomputation: what is kept, and what running layers again costs.

`recompute_bytes` and `optimal_recompute_interval`, equal segments with one more forward pass, stand in memory.py.
"""
from __future__ import annotations

from ..algebra import ceil, sqrt
from ..grammar import formula
from ..units import Bytes, Count, Ratio


@formula(chapter="21-activation-recomputation", source="derived")
def longer_interval_layers(interval_layers: Ratio, checkpoint_bytes: Bytes, layer_bytes: Bytes) -> Ratio:
    """Layers above which segments of k + 1 layers need less memory than segments of k, as `recompute_bytes` counts."""
    return interval_layers*(interval_layers + 1)*layer_bytes/checkpoint_bytes


@formula(chapter="21-activation-recomputation", source="derived")
def unequal_recompute_bytes(layers: Count, checkpoint_bytes: Bytes, layer_bytes: Bytes) -> Bytes:
    """Peak activation bytes when every layer runs twice and segments shrink so that all need the same memory.

    Segments of whole layers need more: some have room that no layer fills.
    """
    return sqrt(2*layers*checkpoint_bytes*layer_bytes)


@formula(chapter="21-activation-recomputation", source="griewank2000")
def states_for_two_runs(layers: Count) -> Ratio:
    """Least kept states from which a chain whose tapes weigh nothing is taken back if no layer may run more than twice.

    The input is one of the states. The least s with (s + 1)(s + 2)/2 layers or more.
    """
    return ceil((sqrt(8*layers + 1) - 3)/2)


@formula(chapter="21-activation-recomputation", source="derived")
def recompute_overhead(recompute: Ratio, attention_share: Ratio) -> Ratio:
    """FLOP done twice, over all FLOP of a step that does nothing twice; the attention kernel keeps no scores.

    A product costs twice as much backward as forward. Attention costs 5/2 as much: five products of scores for two.
    """
    return recompute/(3 + attention_share/2)


@formula(chapter="21-activation-recomputation", source="korthikanti2022")
def selective_overhead(seq_len: Count, hidden: Count) -> Ratio:
    """FLOP of doing the scores' two products of a 12 H^2 layer twice, over those of its step; all pairs of tokens.

    The source prints three times as much for small S/H: S/(6H).
    """
    return seq_len/(18*hidden + 3*seq_len)


@formula(chapter="21-activation-recomputation", source="derived")
def norm_again_bytes(microbatch_tokens: Ratio, normed_width: Ratio, cheap_recompute: Ratio, seq_ranks: Count = 1,
                     *, element: Bytes = 4) -> Bytes:
    """Bytes that pass through the memory when a layer's norms are done again: an element of 16 bits is read and written.

    `normed_width` is the width of all norms of the layer together. What the non-linearity moves when it is done again is
    one more pass of `nonlinear_bytes`.
    """
    return element*cheap_recompute*microbatch_tokens*normed_width/seq_ranks


@formula(chapter="21-activation-recomputation", source="korthikanti2022")
def score_bytes_per_flop(head_dim: Count, *, per_score: Bytes = 5) -> Bytes:
    """Bytes of stored scores that are freed for each FLOP of making them again: 4 d_h FLOP a score."""
    return per_score/(4*head_dim)

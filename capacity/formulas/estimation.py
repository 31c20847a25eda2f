"""Parameter counts and pieces of a step that chapter 6 puts together."""
from __future__ import annotations

from ..algebra import exp, sqrt
from ..grammar import formula
from ..units import Bytes, Count, Ratio


@formula(chapter="06-estimation-discipline", source="kaplan2020")
def rough_params(layers: Count, hidden: Count, vocab: Count) -> Count:
    """Parameters of a decoder with a feed-forward of four widths and untied embeddings; biases, norms left out."""
    return 12*layers*hidden**2 + 2*vocab*hidden


@formula(chapter="06-estimation-discipline", source="grattafiori2024")
def gated_params(layers: Count, hidden: Count, attention_width: Count, kv_width: Count, ffn: Count,
                 vocab: Count) -> Count:
    """Parameters of a Llama-like decoder: grouped-query attention, gated feed-forward, untied embeddings, RMS norms."""
    return (layers*(2*hidden*attention_width + 2*hidden*kv_width + 3*hidden*ffn + 2*hidden)
            + 2*vocab*hidden + hidden)


@formula(chapter="06-estimation-discipline", source="narayanan2021")
def pipeline_bubble(pp: Count, microbatches: Count) -> Ratio:
    """Idle share of a pipeline step: p - 1 slots of every m + p - 1."""
    return (pp - 1)/(microbatches + pp - 1)


@formula(chapter="06-estimation-discipline", source="rajbhandari2020")
def fsdp_egress(n: Bytes, P: Count) -> Bytes:
    """Bytes each of P ranks sends per step when weights are gathered twice and gradients scattered once."""
    return 3*n*(P - 1)/P


@formula(chapter="06-estimation-discipline", source="derived")
def combined_spread(spread: Ratio, other_spread: Ratio) -> Ratio:
    """Spread of the product of two independent factors; it is associative, and 0 leaves it alone.

    A spread is the standard deviation of a logarithm. A factor that enters with exponent e, or that governs a
    share e of a sum, brings |e| times its own spread.
    """
    return sqrt(spread**2 + other_spread**2)


@formula(chapter="06-estimation-discipline", source="derived")
def interval_factor(spread: Ratio, deviations: Ratio) -> Ratio:
    """Factor by which to divide and to multiply a log-normal estimate for an interval of z deviations."""
    return exp(deviations*spread)

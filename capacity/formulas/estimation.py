"""Estimates before anything ran: parameters from a shape, and how far an error bar reaches."""
from __future__ import annotations

from ..algebra import exp, sqrt
from ..grammar import formula
from ..units import Count, Ratio


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

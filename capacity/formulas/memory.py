"""Memory: model state and activations."""
from __future__ import annotations

from ..algebra import sqrt
from ..grammar import formula
from ..units import Bytes, Count, Ratio


@formula(chapter="01-scale-imperative", source="rajbhandari2020")
def model_state_bytes(params: Count, weight: Bytes, grad: Bytes, optimizer: Bytes, weight_ranks: Count = 1,
                      grad_ranks: Count = 1, optimizer_ranks: Count = 1) -> Bytes:
    """Bytes of model state per device when each kind of state is shared by its own number of ranks.

    Mixed-precision Adam keeps weight=2, grad=2, optimizer=12 (fp32 master and two fp32 moments).
    """
    return params*(weight/weight_ranks + grad/grad_ranks + optimizer/optimizer_ranks)


@formula(chapter="06-estimation-discipline", source="korthikanti2022")
def activation_bytes_per_layer(microbatch_tokens: Ratio, hidden: Count, tp: Count = 1, seq_ranks: Count = 1,
                               *, replicated: Bytes = 10, sharded: Bytes = 24) -> Bytes:
    """Bytes that one GeLU layer stores for the backward pass, in 16 bits with dropout, scores not stored.

    Tensor parallelism divides 24 of the 34 bytes per element; with sequence parallelism (seq_ranks = tp)
    the other 10 are divided too.
    """
    return microbatch_tokens*hidden*(replicated/seq_ranks + sharded/tp)


@formula(chapter="06-estimation-discipline", source="korthikanti2022")
def score_bytes_per_layer(microbatch_tokens: Ratio, seq_len: Count, heads: Count, tp: Count = 1,
                          *, per_score: Bytes = 5) -> Bytes:
    """Bytes of attention scores that one layer stores when the attention kernel keeps them."""
    return per_score*microbatch_tokens*seq_len*heads/tp


@formula(chapter="06-estimation-discipline", source="chen2016")
def recompute_bytes(layers: Count, interval_layers: Ratio, checkpoint_bytes: Bytes, layer_bytes: Bytes) -> Bytes:
    """Peak activation bytes when every k-th layer input is stored and k layers are recomputed at a time."""
    return layers*checkpoint_bytes/interval_layers + interval_layers*layer_bytes


@formula(chapter="06-estimation-discipline", source="chen2016")
def optimal_recompute_interval(layers: Count, checkpoint_bytes: Bytes, layer_bytes: Bytes) -> Ratio:
    """Layers between stored inputs that minimize `recompute_bytes`; sqrt(layers) only if both sizes are equal."""
    return sqrt(layers*checkpoint_bytes/layer_bytes)


@formula(chapter="06-estimation-discipline", source="derived")
def activation_traffic(layer_bytes: Bytes, recompute: Ratio, *, passes: Ratio = 5, again: Ratio = 2) -> Bytes:
    """Bytes that the operations between the matmuls of one layer move through memory in one step.

    Every stored byte is written and read in the forward pass, read in the backward pass, and its gradient
    written and read; a recomputed one is written and read once more.
    """
    return (passes + again*recompute)*layer_bytes

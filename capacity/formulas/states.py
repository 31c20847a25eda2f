"""Memory: model state and activations."""
from __future__ import annotations

from ..algebra import ceil, maximum, minimum, sqrt
from ..grammar import formula
from ..units import Bytes, Count, Index, Ratio


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


# what one token of one layer keeps, when every operation saves exactly what its derivative reads
@formula(chapter="19-memory-equation", source="derived")
def attention_saved_bytes(hidden: Count, attention_width: Count, kv_width: Count, heads: Count, tp: Count = 1,
                          seq_ranks: Count = 1, *, half: Bytes = 2, single: Bytes = 4) -> Bytes:
    """Bytes per token that norm, projections and a fused attention kernel save, in 16 bits.

    Input and output of the norm, queries, keys, values, the output of the heads; in 32 bits one number of the norm
    and one a head, the logarithm of its sum.
    """
    return ((2*half*hidden + single)/seq_ranks
            + (2*half*attention_width + 2*half*kv_width + single*heads)/tp)


@formula(chapter="19-memory-equation", source="derived")
def gated_saved_bytes(hidden: Count, ffn: Count, tp: Count = 1, seq_ranks: Count = 1,
                      *, half: Bytes = 2, single: Bytes = 4) -> Bytes:
    """Bytes per token that norm and a gated feed-forward block save: gate, up and their product in 16 bits."""
    return (2*half*hidden + single)/seq_ranks + 3*half*ffn/tp


@formula(chapter="19-memory-equation", source="derived")
def latent_saved_bytes(hidden: Count, q_rank: Count, kv_rank: Count, query_width: Count, value_width: Count,
                       heads: Count, tp: Count = 1, seq_ranks: Count = 1, *, half: Bytes = 2, single: Bytes = 4) -> Bytes:
    """Bytes per token that norm and multi-head latent attention save, heads expanded for a fused kernel.

    Input and output of three norms; queries and keys with their rotated parts, values, the output of the heads.
    """
    return ((2*half*(hidden + q_rank + kv_rank) + 3*single)/seq_ranks
            + (2*half*query_width + 2*half*value_width + single*heads)/tp)


@formula(chapter="19-memory-equation", source="derived")
def routed_saved_bytes(hidden: Count, ffn: Count, copies: Ratio, experts: Count, shared_ffn: Ratio = 0, tp: Count = 1,
                       seq_ranks: Count = 1, *, half: Bytes = 2, single: Bytes = 4) -> Bytes:
    """Bytes per token that norm, router, routed and shared experts save.

    Of the router its probabilities, in 32 bits. `copies` of the token are sent to experts of width `ffn`; each keeps
    itself, gate, up and product, and is weighted before the last matrix, so that no expert's output is saved.
    """
    return ((2*half*hidden + single + single*experts + copies*half*(hidden + 3*ffn))/seq_ranks
            + 3*half*shared_ffn/tp)


@formula(chapter="19-memory-equation", source="megatron-lm-2020")
def padded_copies(microbatch_tokens: Ratio, active: Count, experts: Count, *, factor: Ratio = 1) -> Ratio:
    """Copies of a token, on average, where each expert takes a whole number of copies, padded to its capacity."""
    return ceil(microbatch_tokens*active*factor/experts)*experts/microbatch_tokens


# what the backward pass, or the last layer's forward pass, holds besides
@formula(chapter="19-memory-equation", source="derived")
def gated_working_bytes(microbatch_tokens: Ratio, hidden: Count, ffn: Count, tp: Count = 1, seq_ranks: Count = 1,
                        *, half: Bytes = 2) -> Bytes:
    """Bytes above what was saved while a gated block runs backward: gradients of the layer's output, gate and up.

    At this instant the gradient of the product has taken the place of the product.
    """
    return microbatch_tokens*half*(hidden/seq_ranks + 2*ffn/tp)


@formula(chapter="19-memory-equation", source="megatron-lm-2020")
def routed_working_bytes(microbatch_tokens: Ratio, hidden: Count, copies: Ratio, seq_ranks: Count = 1,
                         *, half: Bytes = 2, buffers: Ratio = 4, outputs: Ratio = 2) -> Bytes:
    """Bytes above what was saved while the experts' outputs come home in the forward pass.

    All copies four times: sorted by expert, received, sorted back, sent home; and the outputs of routed and of shared
    experts.
    """
    return microbatch_tokens*half*hidden*(buffers*copies + outputs)/seq_ranks


# the head
@formula(chapter="19-memory-equation", source="derived")
def logit_bytes(microbatch_tokens: Ratio, vocab: Count, tp: Count = 1, *, per_logit: Bytes = 10) -> Bytes:
    """Bytes of the logits at their worst instant: a copy in 32 bits, its gradient in 32, and that rounded to 16."""
    return per_logit*microbatch_tokens*vocab/tp


# a pipeline
@formula(chapter="19-memory-equation", source="narayanan2021")
def in_flight_chunks(microbatches: Count, pp: Count, chunks: Count, stage: Index) -> Ratio:
    """Pairs of micro-batch and model chunk that a device holds when its first backward pass begins, interleaved or not.

    With one chunk this is `one_f_one_b_activations`; from two on the schedule warms up with twice as many for each later stage.
    """
    return minimum(microbatches*chunks, (pp - stage - 1)*(1 + minimum(chunks - 1, 1)) + (chunks - 1)*pp + 1)


# gathered weights
@formula(chapter="19-memory-equation", source="derived")
def gathered_bytes(layer_params: Count, end_params: Ratio, weight: Bytes, grad: Bytes, *, units: Ratio = 2) -> Bytes:
    """Bytes of whole weights on a device that shards them: layers that compute or are on their way, the matrix of one
    end of the model, and the gradient of the larger of the two before it is scattered.

    For a model of equal layers one of whose ends stays gathered beside them. `fsdp_peak_bytes` is the shards and this,
    told the largest unit for both, with `units` gathered ahead.
    """
    return weight*(units*layer_params + end_params) + grad*maximum(layer_params, end_params)


# copies of what travels
@formula(chapter="19-memory-equation", source="derived")
def traffic_buffer_bytes(params: Count, unit_params: Count, bucket: Bytes, gather_copy: Bytes, scatter_copy: Bytes) -> Bytes:
    """Bytes of buffers in which weights and gradients travel: buckets for the gradients of all parameters, and copies of
    one whole unit, of its weights before they are in place and of its gradient before it is sent.
    """
    return bucket*params + unit_params*(gather_copy + scatter_copy)

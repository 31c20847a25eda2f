"""Terms of a predicted step: products, attention, bytes between them, messages, stages and experts.

A micro-batch of y tokens on one device, forward and backward. `recompute` and `attention_recompute` are the shares of the
products with weights, and of attention's own two products, that the backward pass does again.
"""
from __future__ import annotations

from ..algebra import ceil, floor, maximum, minimum
from ..grammar import formula
from ..units import Bytes, BytesPerSecond, Count, Flops, Ratio, Seconds


# arithmetic
@formula(chapter="27-configuration-search", source="korthikanti2022")
def trained_product_flops(microbatch_tokens: Ratio, layer_params: Count, recompute: Ratio,
                          *, multiply_add: Flops = 2) -> Flops:
    """FLOP of a product with weights: forward, the two gradients, and what is done again."""
    return multiply_add*microbatch_tokens*layer_params*(3 + recompute)


@formula(chapter="27-configuration-search", source="derived")
def trained_product_bytes(product_rows: Ratio, inner: Count, cols: Count, grouped: Ratio, element_bytes: Bytes,
                          *, result_bytes: Bytes = 2) -> Bytes:
    """Least bytes of a product with weights and of its two gradients: each matrix is twice a factor and once the result.

    In each of the three passes, forward, for the input and for the weights, the three matrices move once. `grouped`
    matrices of weights share the rows; factors have `element_bytes`, results 16 bits.
    """
    return (2*element_bytes + result_bytes)*(product_rows*(inner + cols) + grouped*inner*cols)


@formula(chapter="27-configuration-search", source="korthikanti2022")
def trained_attention_flops(microbatch_tokens: Ratio, context: Ratio, attention_width: Count, attention_recompute: Ratio,
                            *, multiply_add: Flops = 2) -> Flops:
    """FLOP of attention's two products, with their gradients and what is done again; masked pairs are not counted."""
    return 2*multiply_add*microbatch_tokens*context*attention_width*(3 + attention_recompute)


@formula(chapter="27-configuration-search", source="nvidia-matmul")
def uneven_factor(cols: Count, *, tile_cols: Count = 16) -> Ratio:
    """Factor by which a product is slower if its columns are no multiple of the tile's side; 7/5 is an assumption."""
    return 1 + 2*(ceil(cols/tile_cols) - floor(cols/tile_cols))/5


@formula(chapter="27-configuration-search", source="derived")
def sliding_context(seq_len: Count, visible_keys: Count) -> Ratio:
    """Keys that a query attends to, on average, if it sees itself and what lies before it, at most so many keys.

    Counted as an area: half a key per query is left out.
    """
    return minimum(visible_keys, seq_len)*(1 - minimum(visible_keys, seq_len)/(2*seq_len))


# bytes through the memory
@formula(chapter="27-configuration-search", source="derived")
def cast_bytes(microbatch_tokens: Ratio, inner: Count, cols: Count, recompute: Ratio, *, per_cast: Bytes = 4) -> Bytes:
    """Bytes that products in 8 or 4 bits move besides: each operand and gradient is read in 16 bits, written twice in 8.

    `inner` and `cols` are the widths that go in and come out, summed over the products; weights are left out.
    """
    return per_cast*microbatch_tokens*(inner*(1 + recompute) + cols)


@formula(chapter="27-configuration-search", source="dao2022")
def stored_score_traffic(microbatch_tokens: Ratio, seq_len: Count, heads: Count, tp: Count, attention_recompute: Ratio,
                         *, per_score: Bytes = 12) -> Bytes:
    """Bytes that scores of 16 bits move through the memory of an unfused attention: six passes each way."""
    return per_score*(2 + attention_recompute)*microbatch_tokens*seq_len*heads/tp


@formula(chapter="27-configuration-search", source="derived")
def streamed_bytes(microbatch_tokens: Ratio, hidden: Count, attention_width: Count, kv_width: Count, recompute: Ratio,
                   tp: Count, seq_ranks: Count, *, residual: Bytes = 20, head_element: Bytes = 4) -> Bytes:
    """Bytes that pass through the memory between the products of a layer, its feed-forward block left out.

    Twenty for each element of the residual stream: two norms, two sums, and copies of 16 bits.
    """
    return (3 + recompute)*microbatch_tokens*(residual*hidden/seq_ranks + head_element*(attention_width + kv_width)/tp)


@formula(chapter="27-configuration-search", source="derived")
def nonlinear_bytes(routed_tokens: Ratio, ffn: Count, matrices: Count, recompute: Ratio, *, element: Bytes = 2) -> Bytes:
    """Bytes of a feed-forward block's non-linearity: each of its wide arrays once, `routed_tokens` passing the block."""
    return element*(3 + recompute)*routed_tokens*ffn*matrices


@formula(chapter="27-configuration-search", source="derived")
def logit_traffic(microbatch_tokens: Ratio, vocab: Count, tp: Count, *, per_logit: Bytes = 20) -> Bytes:
    """Bytes that logits move: 16 bits, then single precision for the softmax and its gradient."""
    return per_logit*microbatch_tokens*vocab/tp


# messages
@formula(chapter="27-configuration-search", source="cho2019")
def two_level_gather_time(n: Bytes, node_size: Count, nodes: Count, lanes: Ratio, alpha1: Seconds, beta1: BytesPerSecond,
                          alpha2: Seconds, beta2: BytesPerSecond) -> Seconds:
    """Time to gather, or to scatter, n bytes over nodes: a ring in the node, one across the nodes on 1/lanes of them.

    A node that shares its adapters has as many lanes as members of the group; one that does not has one.
    """
    return (alpha1*(node_size - 1) + n*(node_size - 1)/(node_size*beta1)
            + alpha2*(nodes - 1) + n*(nodes - 1)/(lanes*nodes*beta2))


@formula(chapter="27-configuration-search", source="derived")
def stage_message_time(n: Bytes, P: Count, node_size: Count, alpha1: Seconds, beta1: BytesPerSecond, alpha2: Seconds,
                       beta2: BytesPerSecond) -> Seconds:
    """Time of a message to the next stage, P ranks on: the mean over a node's members, some of which stay inside."""
    return (minimum(1, P/node_size)*(alpha2 + n/beta2)
            + (1 - minimum(1, P/node_size))*(alpha1 + n/beta1))


# stages
@formula(chapter="27-configuration-search", source="derived")
def stage_bound(layers: Count, pp: Count, chunks: Count, layer_time: Seconds, micro_head: Seconds,
                balanced: Ratio) -> Seconds:
    """Time of a micro-batch on the slowest stage of a pipeline that ends in a head.

    Where pieces of equally many layers fill the stages, and `balanced` is 0, the last stage carries the head besides;
    else it has fewer whole layers, as many as is best, if that helps.
    """
    return (chunks*ceil(layers/(pp*chunks))*layer_time + micro_head
            - maximum(balanced, ceil(layers/(pp*chunks)) - floor(layers/(pp*chunks)))
            * maximum(0, chunks*ceil(layers/(pp*chunks))*layer_time + micro_head
                      - maximum(micro_head, minimum(
                          ceil((layers + micro_head/layer_time)/pp)*layer_time,
                          (layers - (pp - 1)*floor((layers + micro_head/layer_time)/pp))*layer_time + micro_head))))


@formula(chapter="27-configuration-search", source="narayanan2021")
def bounded_pipeline_time(pp: Count, microbatches: Count, chunks: Count, slowest: Seconds, stage_time: Seconds,
                          idle: Ratio) -> Seconds:
    """Time of a step: the slowest stage works off its micro-batches, and the others are waited for once.

    `idle` is the share of that wait which the schedule leaves: 1 for 1F1B, 1/3 for ZB-H1, 0 for ZB-H2 if passes
    forward, for input and for weight gradients take equally long.
    """
    return microbatches*slowest + idle*(pp - 1)/chunks*stage_time


# experts
@formula(chapter="27-configuration-search", source="derived")
def exchange_time(routed_tokens: Ratio, active: Count, hidden: Count, element_bytes: Bytes, node_size: Count, nodes: Count,
                  alpha: Seconds, beta1: BytesPerSecond, beta2: BytesPerSecond) -> Seconds:
    """Time of one dispatch or combine: a copy per expert inside a node, one per node across, both at once.

    Experts lie evenly on nodes*node_size ranks; tokens choose them evenly. Nodes that a token's experts lie on are
    those of `distinct_nodes`.
    """
    return alpha + element_bytes*routed_tokens*hidden*maximum(
        active*(node_size - 1)/(node_size*beta1),
        (1 - (1 - 1/nodes)**active)*(nodes - 1)/beta2)

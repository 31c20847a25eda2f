"""A step that data, tensor and pipeline parallelism share: its time, its memory, and where each degree is best.

Tokens of a step are dealt to P/(t p) replicas of p stages of t ranks.  Times per token are those of one device that had
the whole model for itself; what t ranks and p stages add to them is counted in the same way, so that it is divided too.
"""
from __future__ import annotations

from ..algebra import sqrt
from ..grammar import formula
from ..units import (Bytes, BytesPerSecond, Count, Flops, FlopsPerSecond, Share, Group, Ratio, Seconds)


@formula(chapter="24-3d-parallelism", source="derived")
def three_axis_time(P: Count, tp: Count, pp: Count, chunks: Count, batch_tokens: Count, microbatch_tokens: Ratio,
                    token_time: Seconds, head_time: Seconds) -> Seconds:
    """Time of a step without the traffic of gradients: work, waiting for the head, bubble.

    The last stage has the head besides its layers, so a pipeline pays it p times; the bubble is a micro-batch's way
    through the layers on t ranks, and depends on neither P nor the batch.
    """
    return (batch_tokens/P*(token_time + pp*head_time)
            + (1 - 1/pp)*microbatch_tokens*token_time/(tp*chunks))


@formula(chapter="24-3d-parallelism", source="derived")
def tensor_token_time(tp: Count, layers: Count, hidden: Count, element_bytes: Bytes, all_reduces: Count,
                      beta: BytesPerSecond) -> Seconds:
    """What tensor parallelism adds to the time of a token, by ring: as much for every further rank."""
    return 2*all_reduces*layers*hidden*element_bytes*(tp - 1)/beta


@formula(chapter="24-3d-parallelism", source="derived")
def pipeline_token_time(pp: Count, chunks: Count, hidden: Count, element_bytes: Bytes,
                        beta: BytesPerSecond) -> Seconds:
    """What messages between stages add to the time of a token if tensor ranks send a part each and nothing hides them."""
    return 2*pp*chunks*hidden*element_bytes/beta


@formula(chapter="24-3d-parallelism", source="derived")
def best_tensor_ranks(P: Count, pp: Count, chunks: Count, batch_tokens: Count, microbatch_tokens: Ratio,
                      base_time: Seconds, rank_time: Seconds) -> Ratio:
    """Ranks that share a layer where `three_axis_time` is least at fixed stages, as a real number.

    The time of a token on t ranks is base_time + t rank_time, on one device's clock.
    """
    return sqrt((1 - 1/pp)*P*microbatch_tokens*base_time/(chunks*batch_tokens*rank_time))


@formula(chapter="24-3d-parallelism", source="derived")
def best_microbatch(P: Count, tp: Count, pp: Group, chunks: Count, batch_tokens: Count, fixed_time: Seconds,
                    token_time: Seconds) -> Ratio:
    """Tokens of a micro-batch where a step is least that pays a fixed time for each on a device, as a real number."""
    return tp*pp*sqrt(chunks*batch_tokens*fixed_time/((pp - 1)*P*token_time))


@formula(chapter="24-3d-parallelism", source="derived")
def three_axis_bytes(params: Count, layers: Count, tp: Count, pp: Count, dp: Count, weight: Bytes, grad: Bytes,
                     optimizer: Bytes, layer_bytes: Bytes, in_flight: Ratio) -> Bytes:
    """Bytes of a device whose optimizer is shared by the data-parallel ranks: state, and activations in flight.

    `layer_bytes` are those of one layer and micro-batch on one device; ends of the model are spread evenly.
    """
    return (params*(weight + grad + optimizer/dp)/(tp*pp)
            + in_flight*layers*layer_bytes/pp)


@formula(chapter="24-3d-parallelism", source="korthikanti2022")
def mfu_from_hfu(hfu: Share, recompute: Share) -> Share:
    """Model FLOP utilization of a run whose utilization counts what is done twice; the head counted like layers."""
    return 3*hfu/(3 + recompute)


@formula(chapter="24-3d-parallelism", source="austin2025")
def best_fsdp_ranks(batch_tokens: Count, P: Count, hidden: Count, layer_params: Count, element_bytes: Bytes,
                    weight: Bytes, all_reduces: Count, weight_beta: BytesPerSecond,
                    activation_beta: BytesPerSecond) -> Ratio:
    """Ranks that cut the weights, the others cutting layers, where both send for as long, as a real number.

    Counts all_reduces of a layer's forward pass and one gather of its weights, on many ranks each.
    """
    return sqrt(2*all_reduces*hidden*element_bytes*batch_tokens*P*weight_beta/(layer_params*weight*activation_beta))


@formula(chapter="24-3d-parallelism", source="austin2025")
def tokens_to_hide_mix(peak: FlopsPerSecond, hidden: Count, layer_params: Count, element_bytes: Bytes, weight: Bytes,
                       all_reduces: Count, weight_beta: BytesPerSecond, activation_beta: BytesPerSecond,
                       turns: Count, *, multiply_add: Flops = 2) -> Ratio:
    """Tokens of a device above which `best_fsdp_ranks` hides everything behind a layer's forward products.

    turns: 1 if gathers and all-reduces travel at the same time, 2 if one after the other.
    """
    return (2*turns**2*all_reduces*hidden*element_bytes*weight*peak**2
            / (multiply_add**2*layer_params*weight_beta*activation_beta))

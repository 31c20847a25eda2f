"""What data, tensor and context parallelism send and when it hides behind the arithmetic."""
from __future__ import annotations

from ..algebra import maximum
from ..grammar import formula
from ..units import (Bytes, BytesPerSecond, Count, Flops, FlopsPerByte, FlopsPerSecond, Share, Group, Ratio,
                     Seconds)


# data parallelism
@formula(chapter="02-extended-roofline", source="derived")
def dp_intensity(tokens_per_device: Ratio, P: Group, grad: Bytes, *, per_weight: Flops = 6) -> FlopsPerByte:
    """FLOP of a step per byte that the gradient all-reduce sends out of each device."""
    return per_weight*tokens_per_device*P/(2*grad*(P - 1))


@formula(chapter="02-extended-roofline", source="derived")
def tokens_to_hide_all_reduce(P: Group, peak: FlopsPerSecond, beta: BytesPerSecond, grad: Bytes,
                              window: Flops) -> Ratio:
    """Tokens above which a gradient all-reduce hides behind arithmetic at peak.

    `window` is the FLOP per parameter and token during which it may run: 6 for the whole step, 4 for the
    backward pass only.  The tokens are those of one copy of the gradient: of a device that holds all of it, or
    of a group of devices, each with a NIC of bandwidth `beta`, that share it.
    """
    return 2*grad*(P - 1)*peak/(P*beta*window)


@formula(chapter="02-extended-roofline", source="derived")
def overlapped_step_time(forward: Seconds, backward: Seconds, comm: Seconds, buckets: Count) -> Seconds:
    """Step time when the gradient leaves in equal buckets, each as soon as its backward is done."""
    return forward + maximum(backward + comm/buckets, backward/buckets + comm)


@formula(chapter="06-estimation-discipline", source="rajbhandari2020")
def fsdp_egress(n: Bytes, P: Count) -> Bytes:
    """Bytes each of P ranks sends per step when weights are gathered twice and gradients scattered once."""
    return 3*n*(P - 1)/P


@formula(chapter="14-data-parallelism-associativity", source="derived")
def tokens_to_hide_two_level_all_reduce(node_size: Count, nodes: Count, peak: FlopsPerSecond, beta1: BytesPerSecond,
                                        beta2: BytesPerSecond, grad: Bytes, window: Flops) -> Ratio:
    """Tokens per device above which a two-level all-reduce of the gradient hides behind arithmetic at peak.

    Every device holds a copy of the model and a NIC; sums in the node and across nodes follow one another.
    `window`: see `tokens_to_hide_all_reduce`.
    """
    return 2*grad*peak*((node_size - 1)/(node_size*beta1) + (nodes - 1)/(node_size*nodes*beta2))/window


@formula(chapter="14-data-parallelism-associativity", source="derived")
def data_parallel_limit(batch_tokens: Count, peak: FlopsPerSecond, beta: BytesPerSecond, grad: Bytes,
                        window: Flops) -> Ratio:
    """Copies of the gradient up to which its all-reduce hides behind arithmetic at peak, as a real number.

    A copy is that of a device, or of a group that shares it, each with a NIC of bandwidth `beta`; the batch is
    dealt out evenly over the copies, and they compute and send it all at once: no micro-batches.
    """
    return 1 + batch_tokens*window*beta/(2*grad*peak)


@formula(chapter="14-data-parallelism-associativity", source="derived")
def accumulated_step_time(forward: Seconds, backward: Seconds, comm: Seconds, buckets: Count,
                          microbatches: Count) -> Seconds:
    """Step time of some micro-batches, whose sum leaves in equal buckets during the last backward pass.

    `forward` and `backward` are times of one micro-batch, `comm` is the time of one all-reduce of the gradient.
    """
    return ((microbatches - 1)*(forward + backward)
            + forward + maximum(backward + comm/buckets, backward/buckets + comm))


@formula(chapter="14-data-parallelism-associativity", source="derived")
def sparse_all_gather_gain(P: Group, kept: Share, grad: Bytes, *, index: Bytes = 4) -> Ratio:
    """Bytes of a dense all-reduce over those of an all-gather of the kept numbers, each with its index."""
    return 2*grad/(P*kept*(grad + index))


# tensor parallelism
@formula(chapter="02-extended-roofline", source="derived")
def tp_intensity(hidden: Count, tp: Group, element_bytes: Bytes, *, per_weight: Flops = 6) -> FlopsPerByte:
    """FLOP of a layer per byte that tensor parallelism sends out of each device: no batch in it.

    Assumes 12 hidden^2 parameters a layer and four all-reduces of the residual stream per layer and step.
    """
    return 3*per_weight*hidden/(2*element_bytes*(tp - 1))


@formula(chapter="15-tensor-parallelism-linearity", source="shoeybi2019")
def tensor_parallel_bytes(microbatch_tokens: Ratio, hidden: Count, tp: Count, element_bytes: Bytes,
                          all_reduces: Count) -> Bytes:
    """Bytes that each tensor-parallel rank sends for one layer.

    Two all-reduces forward and two backward; two more if the forward pass is done again.
    """
    return 2*all_reduces*microbatch_tokens*hidden*element_bytes*(tp - 1)/tp


@formula(chapter="15-tensor-parallelism-linearity", source="derived")
def tensor_parallel_ratio(layer_params: Count, hidden: Count, tp: Group, element_bytes: Bytes, peak: FlopsPerSecond,
                          beta: BytesPerSecond, *, multiply_add: Flops = 2) -> Ratio:
    """Arithmetic over communication in a layer's forward pass, in time: no batch and no sequence in it.

    Counts the weights, not the scores of attention; latency is left out.  Backward the ratio is twice this.
    """
    return multiply_add*layer_params*beta/(4*element_bytes*hidden*(tp - 1)*peak)


@formula(chapter="15-tensor-parallelism-linearity", source="austin2025")
def max_tensor_parallel(layer_params: Count, hidden: Count, element_bytes: Bytes, peak: FlopsPerSecond,
                        beta: BytesPerSecond, work_ratio: Ratio, *, multiply_add: Flops = 2) -> Ratio:
    """Ranks that may share a layer while `tensor_parallel_ratio` is at least `work_ratio`, as a real number."""
    return 1 + multiply_add*layer_params*beta/(4*element_bytes*hidden*peak*work_ratio)


@formula(chapter="15-tensor-parallelism-linearity", source="derived")
def columns_to_hide_gather(element_bytes: Bytes, peak: FlopsPerSecond, beta: BytesPerSecond,
                           *, multiply_add: Flops = 2) -> Ratio:
    """Columns of the weight on a rank above which a ring all-gather of the input hides behind the product."""
    return element_bytes*peak/(multiply_add*beta)


# context parallelism
@formula(chapter="17-sequence-parallelism-decomposability", source="liu2023")
def ring_attention_bytes(seq_len: Count, kv_width: Count, P: Count, element_bytes: Bytes) -> Bytes:
    """Bytes of keys and values that each rank sends in one layer's forward pass; an all-gather of them sends as many."""
    return 2*element_bytes*seq_len*kv_width*(P - 1)/P


@formula(chapter="17-sequence-parallelism-decomposability", source="jacobs2023")
def ulysses_bytes(seq_len: Count, attention_width: Count, kv_width: Count, P: Count, element_bytes: Bytes) -> Bytes:
    """Bytes that each rank sends in one layer's forward pass when all-to-alls trade tokens for heads and back."""
    return 2*element_bytes*seq_len*(attention_width + kv_width)*(P - 1)/P**2


@formula(chapter="17-sequence-parallelism-decomposability", source="derived")
def ring_attention_time(P: Count, block_time: Seconds, hop_time: Seconds) -> Seconds:
    """Time of ring attention when the next keys and values travel while each block of them is worked on."""
    return block_time + (P - 1)*maximum(block_time, hop_time)


@formula(chapter="17-sequence-parallelism-decomposability", source="liu2023")
def tokens_to_hide_ring(attention_width: Count, kv_width: Count, visible: Share, element_bytes: Bytes,
                        peak: FlopsPerSecond, beta: BytesPerSecond, *, multiply_add: Flops = 2) -> Ratio:
    """Tokens per rank above which the ring's messages hide behind the forward arithmetic of attention."""
    return element_bytes*kv_width*peak/(multiply_add*visible*attention_width*beta)


@formula(chapter="17-sequence-parallelism-decomposability", source="derived")
def causal_ring_efficiency(P: Count) -> Ratio:
    """Mean over largest work of the ranks when each keeps one long contiguous chunk of a causal sequence."""
    return P/(2*P - 1)


@formula(chapter="17-sequence-parallelism-decomposability", source="dao2022")
def plain_attention_bytes(seq_len: Count, head_dim: Count, element_bytes: Bytes) -> Bytes:
    """Bytes of memory traffic of one head's attention, not causal, when scores and their softmax are stored."""
    return 4*element_bytes*seq_len*(seq_len + head_dim)


@formula(chapter="17-sequence-parallelism-decomposability", source="dao2022")
def tiled_attention_bytes(seq_len: Count, head_dim: Count, tile_rows: Count, element_bytes: Bytes) -> Bytes:
    """Bytes of memory traffic of one head's attention, not causal, when each tile of queries reads all keys once."""
    return 2*element_bytes*seq_len*head_dim*(seq_len/tile_rows + 1)

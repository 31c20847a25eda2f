"""Idle time, activations and messages of pipeline schedules.

Times are those of one micro-batch on one device, the same on every device; devices do the same amount of work.
"""
from __future__ import annotations

from ..algebra import maximum, minimum
from ..grammar import formula
from ..units import Bytes, Count, Flops, FlopsPerByte, Group, Index, Ratio, Seconds


@formula(chapter="06-estimation-discipline", source="narayanan2021")
def pipeline_bubble(pp: Count, microbatches: Count) -> Ratio:
    """Idle share of a pipeline step: p - 1 slots of every m + p - 1."""
    return (pp - 1)/(microbatches + pp - 1)


@formula(chapter="02-extended-roofline", source="derived")
def pp_intensity(hidden: Count, layers: Count, pp: Group, element_bytes: Bytes,
                 *, per_weight: Flops = 6) -> FlopsPerByte:
    """FLOP of a stage per byte it sends: one activation forward and one gradient backward per token.

    Assumes 12 hidden^2 parameters a layer; an inner stage.
    """
    return 6*per_weight*hidden*layers/(pp*element_bytes)


@formula(chapter="16-pipeline-parallelism-separability", source="narayanan2021")
def pipeline_time(pp: Count, microbatches: Count, chunks: Count, forward: Seconds, backward: Seconds) -> Seconds:
    """Time of a step if the backward pass is not split: GPipe and 1F1B with one stage a device, or interleaved 1F1B.

    No order is faster on devices s, s + p, s + 2p, ... in a loop.  Interleaved: p divides m.
    """
    return (microbatches + (pp - 1)/chunks)*(forward + backward)


@formula(chapter="16-pipeline-parallelism-separability", source="narayanan2021")
def pipeline_idle_of_ideal(pp: Count, microbatches: Count, chunks: Count) -> Ratio:
    """Idle time over working time in `pipeline_time`; over all of the time it is `pipeline_bubble(p, v m)`."""
    return (pp - 1)/(chunks*microbatches)


@formula(chapter="16-pipeline-parallelism-separability", source="narayanan2021")
def one_f_one_b_activations(pp: Count, microbatches: Count, stage: Index) -> Ratio:
    """Micro-batches whose activations stage s of a 1F1B pipeline holds at most; stages are 0 to p - 1."""
    return minimum(microbatches, pp - stage)


@formula(chapter="16-pipeline-parallelism-separability", source="narayanan2021")
def interleaved_activations(pp: Count, microbatches: Count, chunks: Count, stage: Index) -> Ratio:
    """Activations that device s of interleaved 1F1B holds at most, in those of one micro-batch on all of a device.

    Devices are 0 to p - 1.
    """
    return minimum(microbatches, pp + (pp - 1 - 2*stage)/chunks)


@formula(chapter="16-pipeline-parallelism-separability", source="qi2024")
def split_backward_span(pp: Count, microbatches: Count, forward: Seconds, input_grad: Seconds, weight_grad: Seconds,
                        lag: Ratio) -> Seconds:
    """Time from the first stage's first operation to its last, when stage s puts weight gradients off by lag s.

    ZB-H1 has lag 1, ZB-H2 lag 2; at least lag (p - 1) + 1 micro-batches.  No other stage takes longer.  Assumes
    weight_grad <= forward and lag weight_grad <= forward + input_grad: beyond that it would be less than the work.
    """
    return microbatches*(forward + input_grad + weight_grad) + (pp - 1)*(forward + input_grad - lag*weight_grad)


@formula(chapter="16-pipeline-parallelism-separability", source="derived")
def split_backward_time(pp: Count, microbatches: Count, forward: Seconds, input_grad: Seconds, weight_grad: Seconds,
                        lag: Ratio) -> Seconds:
    """Time of a step of ZB-H1 (lag 1) or ZB-H2 (lag 2), from the first operation anywhere to the last.

    At least lag (p - 1) + 1 micro-batches.  Assumes that weight or input gradients take no longer than forwards.
    """
    return (microbatches*(forward + input_grad + weight_grad)
            + (pp - 1)*(forward + maximum(0, input_grad - lag*weight_grad)))


@formula(chapter="16-pipeline-parallelism-separability", source="qi2024v")
def folded_backward_time(pp: Count, microbatches: Count, forward: Seconds, input_grad: Seconds, weight_grad: Seconds) -> Seconds:
    """Time of a step of ZB-V, whose device d has stages d and 2 p - 1 - d, from the first operation anywhere to the last.

    At least 2 p - 1 micro-batches.  Assumes that neither forwards nor weight gradients take longer than input gradients.
    """
    return (microbatches*(forward + input_grad + weight_grad)
            + (pp - 1)*maximum(input_grad - weight_grad, input_grad/2))


@formula(chapter="16-pipeline-parallelism-separability", source="qi2024")
def split_backward_activations(pp: Count, microbatches: Count, lag: Ratio) -> Ratio:
    """Micro-batches whose activations each stage holds at most, when stage s puts weight gradients off by lag s.

    ZB-H1 has lag 1, ZB-H2 lag 2.  ZB-V holds as many as lag 1.
    """
    return minimum(microbatches, lag*(pp - 1) + 1)


@formula(chapter="16-pipeline-parallelism-separability", source="narayanan2021")
def pipeline_egress(microbatches: Count, chunks: Count, microbatch_tokens: Ratio, hidden: Count,
                    element_bytes: Bytes) -> Bytes:
    """Bytes an inner device sends per step: an activation forwards and a gradient backwards per micro-batch and stage."""
    return 2*microbatches*chunks*microbatch_tokens*hidden*element_bytes


@formula(chapter="16-pipeline-parallelism-separability", source="derived")
def one_f_one_b_period(pp: Count, forward: Seconds, backward: Seconds, send_time: Seconds) -> Seconds:
    """Time per micro-batch of a long 1F1B step whose messages nothing hides."""
    return forward + backward + 2*send_time*(pp - 1)/pp


@formula(chapter="16-pipeline-parallelism-separability", source="derived")
def bubble_at_fixed_batch(P: Count, tp: Count, pp: Count, microbatch_tokens: Ratio, batch_tokens: Count) -> Ratio:
    """Idle over working time of 1F1B when P devices share one batch, and data parallelism takes what tp and pp leave."""
    return (1 - 1/pp)*P*microbatch_tokens/(tp*batch_tokens)

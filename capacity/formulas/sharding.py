"""Sharded model state: what it sends, where it peaks, and when it hides behind the arithmetic."""
from __future__ import annotations

from ..algebra import maximum
from ..grammar import formula
from ..units import Bytes, BytesPerSecond, Count, FlopsPerSecond, Flops, Ratio, Seconds
from .states import gathered_bytes


@formula(chapter="20-zero-sharding", source="rajbhandari2020")
def sharded_egress(params: Count, P: Count, gathers: Ratio, scatters: Ratio, weight: Bytes, grad: Bytes) -> Bytes:
    """Bytes each of P ranks sends per step when all weights are gathered, and all gradients scattered, so often.

    With m micro-batches: ZeRO-1 gathers once and scatters once, ZeRO-2 once and m times, ZeRO-3 2m and m times.
    """
    return params*(gathers*weight + scatters*grad)*(P - 1)/P


@formula(chapter="20-zero-sharding", source="derived")
def fsdp_peak_bytes(params: Count, P: Count, unit_params: Count, prefetch: Ratio, weight: Bytes, grad: Bytes,
                    optimizer: Bytes) -> Bytes:
    """Most bytes of model state that a rank of ZeRO-3 holds at once, in the backward pass of the largest unit.

    Its share of everything, the unit and those gathered ahead of it whole, and the unit's whole gradient; the
    gradient's share is there from the second micro-batch. What is whole is `gathered_bytes` of units as large as the
    largest: a bound where those ahead are smaller.
    """
    return params*(weight + grad + optimizer)/P + gathered_bytes(unit_params, unit_params, weight, grad, units=prefetch)


@formula(chapter="20-zero-sharding", source="derived")
def tokens_to_hide_shards(P: Count, peak: FlopsPerSecond, beta: BytesPerSecond, weight: Bytes, window: Flops) -> Ratio:
    """Tokens of a micro-batch on a device above which a gather of `weight` bytes a parameter hides behind arithmetic.

    `window` is the FLOP per parameter and token beside which it travels: 2 forward, 4 backward, where the gradient
    is scattered too and its bytes are added to the weight's; 6 where the forward pass is repeated.
    """
    return weight*peak*(P - 1)/(P*beta*window)


@formula(chapter="20-zero-sharding", source="derived")
def max_gather_ranks(unit_params: Count, microbatch_tokens: Ratio, weight: Bytes, peak: FlopsPerSecond,
                     alpha: Seconds, beta: BytesPerSecond, *, multiply_add: Flops = 2) -> Ratio:
    """Ranks up to which a ring gather of one unit, latency and bytes, hides behind the unit's forward pass.

    As a real number, and the bytes counted as for many ranks; below 1 where the bytes alone do not hide.
    """
    return 1 + unit_params*(multiply_add*microbatch_tokens/peak - weight/beta)/alpha


@formula(chapter="20-zero-sharding", source="derived")
def hybrid_sharding_time(params: Count, shards: Count, replicas: Count, units: Count, gathers: Ratio, scatters: Ratio,
                         weight: Bytes, grad: Bytes, alpha1: Seconds, beta1: BytesPerSecond, alpha2: Seconds,
                         beta2: BytesPerSecond) -> Seconds:
    """Time of a step's communication when groups of ranks share a copy and the copies all-reduce their gradients.

    Rings, unit by unit: gathers and scatters inside a group, one all-reduce of each share across the groups.
    """
    return ((gathers + scatters)*units*alpha1*(shards - 1)
            + params*(gathers*weight + scatters*grad)*(shards - 1)/(shards*beta1)
            + 2*units*alpha2*(replicas - 1) + 2*grad*params*(replicas - 1)/(shards*replicas*beta2))


@formula(chapter="20-zero-sharding", source="derived")
def sharded_step_time(forward: Seconds, backward: Seconds, gather: Seconds, scatter: Seconds) -> Seconds:
    """Time of a ZeRO-3 micro-batch: each pass lasts as long as its arithmetic or its collectives, whichever is longer.

    Forward the weights are gathered once; backward they are gathered again and gradients scattered.  What repeats
    the forward pass belongs to the backward pass.
    """
    return maximum(forward, gather) + maximum(backward, gather + scatter)

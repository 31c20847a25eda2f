"""Generating what a policy is trained on, and training on it: four schedules, versions, weights that move, samples that age.

Engines decode, so a step reads all weights once and the cache of each rollout.  Left out: prompts, rewards, the arithmetic
of decoding, and latency.  A version is one batch that was trained on.
"""
from __future__ import annotations

from ..algebra import exp, maximum
from ..grammar import formula
from ..units import Bytes, BytesPerSecond, Count, FlopsPerSecond, Flops, Share, Index, Ratio, Seconds

CHAPTER = "36a-rl-post-training"


# what writing takes
@formula(chapter=CHAPTER, source="derived")
def static_rollout_time(longest: Ratio, weight_read: Seconds, cache_reads: Ratio, kv_token: Bytes,
                        bandwidth: BytesPerSecond) -> Seconds:
    """Time of an engine that writes its rollouts together until the longest is done."""
    return longest*weight_read + cache_reads*kv_token/bandwidth


@formula(chapter=CHAPTER, source="derived")
def rollout_cost(answer: Ratio, weight_read: Seconds, decoded: Count, cache_reads: Ratio, kv_token: Bytes,
                 bandwidth: BytesPerSecond) -> Seconds:
    """Device-seconds of a rollout, on average, in an engine whose slots are refilled at once: nobody waits."""
    return answer*weight_read/decoded + cache_reads*kv_token/bandwidth


# schedules
@formula(chapter=CHAPTER, source="derived")
def synchronous_step_time(generation: Seconds, training_work: Seconds, trainers: Count) -> Seconds:
    """Time of a step in which training waits for the last rollout, and writing for the new weights."""
    return generation + training_work/trainers


@formula(chapter=CHAPTER, source="derived")
def one_step_off_time(generation: Seconds, training_work: Seconds, trainers: Count) -> Seconds:
    """Time of a step in which trainers learn from the batch before while the others write the next; both wait."""
    return maximum(generation, training_work/trainers)


@formula(chapter=CHAPTER, source="derived")
def pools_step_time(generation_work: Seconds, generators: Count, training_work: Seconds, trainers: Count) -> Seconds:
    """Time of a step of two pools without a barrier, one that writes and one that trains: the slower sets the pace."""
    return maximum(generation_work/generators, training_work/trainers)


@formula(chapter=CHAPTER, source="derived")
def generator_share(generation_work: Seconds, training_work: Seconds) -> Share:
    """Share of the devices that should write, so that neither pool waits for the other."""
    return generation_work/(generation_work + training_work)


@formula(chapter=CHAPTER, source="derived")
def async_step_time(generation_work: Seconds, training_work: Seconds, P: Count) -> Seconds:
    """Time of a step at the best split of P devices, which is also that of P devices that take turns without a barrier."""
    return (generation_work + training_work)/P


# versions
@formula(chapter=CHAPTER, source="derived")
def admitted_staleness(lead: Index, batches: Count) -> Ratio:
    """Mean versions between start and use, over all rollouts of a run of at least `lead` batches, if admission always binds."""
    return lead - lead*(lead + 1)/(2*batches)


@formula(chapter=CHAPTER, source="derived")
def rollout_versions(answer: Ratio, decode_step: Seconds, version_time: Seconds) -> Ratio:
    """Versions that are published while one rollout is written."""
    return answer*decode_step/version_time


@formula(chapter=CHAPTER, source="derived")
def kv_recompute_time(params: Count, resident: Ratio, mfu: Share, peak: FlopsPerSecond, *,
                      multiply_add: Flops = 2) -> Seconds:
    """Time to compute the kept keys and values anew after a change of weights; attention scores left out."""
    return multiply_add*params*resident/(mfu*peak)


# weights that move
@formula(chapter=CHAPTER, source="derived")
def weight_slice_time(params: Count, weight: Bytes, tp: Count, beta: BytesPerSecond) -> Seconds:
    """Time in which a generator rank can receive its slice of the weights; with tp = 1, the whole model."""
    return params*weight/(tp*beta)


@formula(chapter=CHAPTER, source="derived")
def weight_fanout_time(params: Count, weight: Bytes, replicas: Count, trainers: Count, beta: BytesPerSecond) -> Seconds:
    """Time in which trainers can send every copy of the model out themselves, each an equal share."""
    return params*weight*replicas/(trainers*beta)


@formula(chapter=CHAPTER, source="derived")
def nested_reshard_bytes(params: Count, weight: Bytes, tp: Count, shards: Count) -> Bytes:
    """Bytes that a device fetches that holds one of `shards` parts and wants the one of tp larger parts around it."""
    return params*weight*(1/tp - 1/shards)


@formula(chapter=CHAPTER, source="derived")
def scattered_reshard_bytes(params: Count, weight: Bytes, tp: Count, shards: Count) -> Bytes:
    """The same on average if the part that it holds lies anywhere, without regard to the part that it wants."""
    return params*weight*(1 - 1/shards)/tp


# samples that age
@formula(chapter=CHAPTER, source="derived")
def sequence_ess(log_ratio_sd: Ratio, answer: Ratio) -> Share:
    """Share of the samples that weights of whole rollouts leave, if a token's log-ratios are normal and independent."""
    return exp(-log_ratio_sd**2*answer)


@formula(chapter=CHAPTER, source="derived")
def no_signal_probability(pass_rate: Share, rollouts: Count) -> Ratio:
    """Probability that all rollouts of a prompt are right or all wrong, so that their rewards say nothing."""
    return pass_rate**rollouts + (1 - pass_rate)**rollouts


@formula(chapter=CHAPTER, source="derived")
def no_signal_uniform(rollouts: Count) -> Ratio:
    """The same, over prompts whose pass rates are spread evenly between 0 and 1."""
    return 2/(rollouts + 1)

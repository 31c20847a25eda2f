"""Generating tokens: keys and values kept, batches, pages, drafts, and how many servers feed another.

Times of a decode step add what is read for the weights, or their arithmetic if that is longer, and what is read of the
cache; latency, activations and the arithmetic of attention are left out.
"""
from __future__ import annotations

from ..algebra import geometric, maximum, sqrt
from ..grammar import formula
from ..units import Bytes, BytesPerSecond, Count, Flops, FlopsPerSecond, Share, PerSecond, Ratio, Seconds


# what is kept
@formula(chapter="31b-inference-inner-loop", source="derived")
def kv_token_bytes(layers: Count, kv_width: Count, element_bytes: Bytes) -> Bytes:
    """Bytes of keys and values that one token leaves in the cache, all layers together."""
    return 2*layers*kv_width*element_bytes


# one step
@formula(chapter="31b-inference-inner-loop", source="pope2023")
def decode_step_time(params: Count, weight: Bytes, decoded: Count, cached: Ratio, kv_token: Bytes, tp: Count,
                     bandwidth: BytesPerSecond, peak: FlopsPerSecond, *, multiply_add: Flops = 2) -> Seconds:
    """Least time of a step that adds one token to each of so many sequences, `cached` tokens long, on tp devices."""
    return (maximum(params*weight/(tp*bandwidth), multiply_add*params*decoded/(tp*peak))
            + decoded*cached*kv_token/(tp*bandwidth))


@formula(chapter="31b-inference-inner-loop", source="derived")
def decode_ceiling(bandwidth: BytesPerSecond, cached: Ratio, kv_token: Bytes) -> PerSecond:
    """Tokens per second and device that reading the cache allows, however many sequences there are."""
    return bandwidth/(cached*kv_token)


@formula(chapter="31b-inference-inner-loop", source="derived")
def half_ceiling_batch(params: Count, weight: Bytes, cached: Ratio, kv_token: Bytes) -> Ratio:
    """Sequences at which the cache is read as long as the weights: half of `decode_ceiling`, twice the least time."""
    return params*weight/(cached*kv_token)


@formula(chapter="31b-inference-inner-loop", source="derived")
def decode_context_limit(params: Count, bandwidth: BytesPerSecond, peak: FlopsPerSecond, kv_token: Bytes, *,
                         multiply_add: Flops = 2) -> Ratio:
    """Cached tokens beyond which a sequence's cache takes longer to read than its token takes to compute."""
    return multiply_add*params*bandwidth/(peak*kv_token)


@formula(chapter="31b-inference-inner-loop", source="derived")
def memory_clock(memory: Bytes, bandwidth: BytesPerSecond) -> Seconds:
    """Time to read a whole memory once."""
    return memory/bandwidth


@formula(chapter="31b-inference-inner-loop", source="derived")
def decode_tp_optimum(params: Count, weight: Bytes, layers: Count, alpha: Seconds, bandwidth: BytesPerSecond) -> Ratio:
    """Tensor-parallel ranks that make a step of few sequences shortest; two ring all-reduces a layer, latency alone."""
    return sqrt(params*weight/(4*layers*alpha*bandwidth))


# room and slots
@formula(chapter="31b-inference-inner-loop", source="kwon2023")
def page_waste(page: Count, cached: Ratio) -> Ratio:
    """Share of the pages in use that is empty, where the last page of a sequence is as likely to hold 1 token as `page`."""
    return (page - 1)/(2*cached + page - 1)


@formula(chapter="31b-inference-inner-loop", source="graham1966")
def refilled_steps(answers_total: Ratio, longest: Ratio, decoded: Count) -> Ratio:
    """Steps that `decoded` slots need at most, if a slot that is done takes the next answer at once."""
    return answers_total/decoded + (1 - 1/decoded)*longest


@formula(chapter="31b-inference-inner-loop", source="derived")
def prefill_servers(prefill: Seconds, decoded: Count, answer: Ratio, decode_step: Seconds) -> Ratio:
    """Servers that read prompts for each server that writes, so that neither waits for the other."""
    return prefill*decoded/(answer*decode_step)


# drafts
@formula(chapter="31b-inference-inner-loop", source="leviathan2023")
def speculative_tokens(acceptance: Share, draft: Count) -> Ratio:
    """Tokens that a round of so many drafted tokens yields on average, each accepted with the same probability."""
    return geometric(acceptance, draft + 1)


@formula(chapter="31b-inference-inner-loop", source="leviathan2023")
def speculative_speedup(acceptance: Share, draft: Count, draft_cost: Ratio, verify_cost: Ratio) -> Ratio:
    """Tokens per time against plain decoding; a draft costs draft_cost, a verification verify_cost plain steps."""
    return geometric(acceptance, draft + 1)/(draft*draft_cost + verify_cost)


# experts
@formula(chapter="31b-inference-inner-loop", source="derived")
def experts_touched(experts: Count, visit: Share, decoded: Count) -> Ratio:
    """Different experts that so many tokens visit on average, if each visits each with the same probability."""
    return experts*(1 - (1 - visit)**decoded)


# more devices
@formula(chapter="31b-inference-inner-loop", source="pope2023")
def stationary_bytes(decoded: Count, hidden: Count, ffn: Count, matrices: Count, tp: Count, width_ranks: Count,
                     element_bytes: Bytes) -> Bytes:
    """Bytes that each rank sends in a feed-forward layer whose weights stay on a grid of ranks, in rings.

    One of width_ranks is the cut of tensor parallelism with the sequence divided between its layers.  `decoded` rows are
    multiplied at a time.
    """
    return decoded*element_bytes*(2*hidden*(tp/width_ranks - 1) + matrices*ffn*(width_ranks - 1))/tp


@formula(chapter="31b-inference-inner-loop", source="derived")
def stationary_width_ranks(hidden: Count, ffn: Count, matrices: Count, tp: Count) -> Ratio:
    """Ranks along the width for which `stationary_bytes` is least, as a real number; up to its square two sides beat one."""
    return sqrt(2*tp*hidden/(matrices*ffn))


@formula(chapter="31b-inference-inner-loop", source="derived")
def owner_tokens(attention_params: Count, weight: Bytes, latent_cache: Ratio, element_bytes: Bytes) -> Ratio:
    """Tokens in all caches of a group beyond which ranks with sequences of their own keep and read fewer bytes.

    Each then has all weights of the attention; else heads share these out, and each rank has every latent.
    """
    return attention_params*weight/(latent_cache*element_bytes)


@formula(chapter="31b-inference-inner-loop", source="derived")
def owner_ranks(active: Count, there: Bytes, back: Bytes, element_bytes: Bytes) -> Ratio:
    """Ranks beyond which sending rows to their experts and back takes fewer bytes than two ring all-reduces of all rows."""
    return active*(there + back)/(4*element_bytes)

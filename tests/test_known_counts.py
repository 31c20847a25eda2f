"""Numbers of chapters 19 to 22 that were worked out by hand, or printed by others, before any page was written: all come out of the package."""
from dataclasses import replace
from math import erf, log2, sqrt

import pytest

from capacity import (GB, GiB, Layout, accelerator, activation_bytes_per_layer, activation_offload_bandwidth, activation_table, cluster,
                      drive_life_steps, host_update_time, in_flight_chunks, logit_bytes,
                      longer_interval_layers, max_gather_ranks, memory, model, model_state_bytes, offload_layer_time, policies,
                      prefetch_depth, recompute_bytes, recompute_overhead, ring_all_gather_time, score_bytes_per_flop, score_bytes_per_layer,
                      selective_overhead, sharded_egress, states_for_two_runs, tokens_to_hide, tokens_to_hide_shards)
from capacity.witness import recompute

M8, M70, M405, V3, GPT3 = (model(n) for n in ("llama3-8b", "llama3-70b", "llama3-405b", "deepseek-v3", "gpt3-175b"))
H100, GPUS_64 = accelerator("h100-sxm"), cluster("dgx-h100", 64)
BLOOM = replace(GPT3, name="BLOOM", layers=70, hidden=14336, heads=112, kv_heads=112, ffn=4*14336, vocab=250880, positions=0)

COUNTS = {"GPT-3": (GPT3.params, 174_604_259_328), "Llama 2 7B": (model("llama2-7b").params, 6_738_415_616),
    "Llama 2 13B": (model("llama2-13b").params, 13_015_864_320), "Llama 2 70B": (model("llama2-70b").params, 68_976_648_192),
    "Llama 3 8B": (M8.params, 8_030_261_248), "Llama 3 70B": (M70.params, 70_553_706_496),
    "Llama 3 405B": (M405.params, 405_853_388_800), "DeepSeek-V3": (V3.params, 671_026_419_200),
    "DeepSeek-V3, active": (V3.active_params, 37_552_297_472),
    "DeepSeek-V3, active, without the embedding": (V3.active_params - V3.vocab*V3.hidden, 36_625_618_432),
    "DeepSeek-V3, one end": (V3.vocab*V3.hidden, 926_679_040),
    "DeepSeek-V3, an expert": (V3.expert_matmul, 44_040_192), "DeepSeek-V3, attention": (V3.attention_matmul + 1536 + 512, 187_107_328),
    "Mixtral 8x7B": (model("mixtral-8x7b").params, 46_702_792_704),
    "Mixtral 8x7B, active": (model("mixtral-8x7b").active_params, 12_879_925_248),
    "Mixtral 8x22B, 32,768 words": (replace(model("mixtral-8x22b"), vocab=32768).params, 140_630_071_296),
    "Mixtral 8x22B, active": (replace(model("mixtral-8x22b"), vocab=32768).active_params, 39_161_468_928),
    "BLOOM, its embedding normed": (BLOOM.params + 2*BLOOM.hidden, 176_247_271_424)}


@pytest.mark.parametrize("name", COUNTS)
def test_parameters(name):
    got, want = COUNTS[name]
    assert got == want


@pytest.mark.parametrize("shape, gigabytes", [(M8, (128.5, 144.5, 160.6)), (M70, (1129, 1270, 1411)), (M405, (6494, 7305, 8117)),
                                              (V3, (10736, 12078, 13421))], ids=lambda x: getattr(x, "name", ""))
def test_sixteen_eighteen_and_twenty_bytes(shape, gigabytes):
    for name, each, want in zip(("mixed", "megatron", "separate"), (16, 18, 20), gigabytes):
        p = policies()[name]
        assert p.total == each
        assert model_state_bytes(shape.params, p.weight, p.grad, p.optimizer)/GB == pytest.approx(want, abs=.5 if want > 1000 else .05)


def fsdp_70b():
    f = memory(M70, GPUS_64, Layout(batch=64, dp=64, zero=3), 8192, policy="fsdp")
    return f.weights + f.grads + f.optimizer, 4*(M70.attention_matmul + M70.ffn_matmul), 2*M70.vocab*M70.hidden


layer_8b = M8.attention_matmul + M8.ffn_matmul + M8.layer_small
tokens = 8192
per_layer = tokens*sum(row.bytes for row in activation_table(M8))
F, FEW = H100.peak("bf16"), 400e12/H100.peak("bf16")

OLD = 32/GB                                                    # layers of a model of seven billion, in GB
# one more layer of experts, three norms, and a product that joins two inputs
SECOND_TOKEN = (V3.attention_matmul + V3.layer_small + 257*V3.expert_matmul + 256*(V3.hidden + 1) + 2*V3.hidden**2 + 3*V3.hidden)

# name: (got, want, largest difference that rounding explains)
DERIVED = {
    # 19
    "a layer of 8B": (per_layer/GB, 1.142, .0005), "its 32 layers": (32*per_layer/GB, 36.5, .05),
    "logits in 32 bits": (logit_bytes(tokens, M8.vocab, per_logit=4)/GB, 4.203, .0005),
    "logits in 16 bits": (logit_bytes(tokens, M8.vocab, per_logit=2)/GB, 2.10, .005),
    "scores of a layer": (score_bytes_per_layer(tokens, tokens, M8.heads)/GB, 10.7, .05),
    "SwiGLU in two operations": (sum(r.bytes for r in activation_table(M8, kernels="eager"))/M8.hidden, 41.0, .05),
    "layers in flight, 8 stages of 3 chunks": (96/8*in_flight_chunks(10**6, 8, 3, 0)/3, 124, 0),
    "GPT-3 on 64, GiB": (model_state_bytes(12*96*12288**2, 2, 4, 12)/64/GiB, 45.5625, 0),
    "22B, all kept, GiB": (48*(activation_bytes_per_layer(4*2048, 6144, 8) + score_bytes_per_layer(4*2048, 2048, 64, 8))/GiB, 59.25, 0),
    "22B, both methods, GiB": (48*activation_bytes_per_layer(4*2048, 6144, 8, 8)/GiB, 9.5625, 0),
    "gradients of one layer": (2*layer_8b/GB, .436, .0005),
    "weights of GPT-3's layers, 1e9": (96*(GPT3.attention_matmul + GPT3.ffn_matmul)/1e9, 173.95, .005),
    "DeepSeek-V3's second prediction, 1e9": (SECOND_TOKEN/1e9, 11.61, .005),
    "width 4,096, 32 heads and layers, scores kept": (OLD*(activation_bytes_per_layer(2048, 4096) + score_bytes_per_layer(
        2048, 2048, 32)), 30.6, .05),
    "the same by outputs alone": (OLD*2*(11*2048*4096 + 32*2048**2), 14.5, .05),
    "Llama 2 7B, fused, 2,048 tokens": (OLD*2048*sum(row.bytes for row in activation_table(model("llama2-7b"))), 8.6, .05),
    # 20
    **{f"7e9 parameters, ZeRO-{k + 1} on 8": (model_state_bytes(7, 2, 2, 12, *ranks), want, 0) for k, (ranks, want) in enumerate(
        zip([(1, 1, 8), (1, 8, 8), (8, 8, 8)], (38.5, 26.25, 14)))},
    "ZeRO-2 on 8, times less": (16/model_state_bytes(1, 2, 2, 12, 1, 8, 8), 4.267, .0005),
    **{f"{name}, 8 micro-batches": (sharded_egress(1, 10**9, kw, kg, 2, 2), want, 1e-6) for name, kw, kg, want in (
        ("plain", 0, 2, 4), ("ZeRO-1", 1, 1, 4), ("ZeRO-2", 1, 8, 18), ("ZeRO-3", 16, 8, 48))},
    **{f"{name}, sums in 32 bits": (sharded_egress(1, 10**9, kw, kg, b, 4), want, 1e-6) for name, kw, kg, b, want in (
        ("plain", 0, 2, 2, 8), ("ZeRO-1", 1, 1, 2, 6), ("ZeRO-3", 2, 1, 2, 8), ("ZeRO-3 with weights in 8", 2, 1, 1, 6))},
    **{f"tokens on {beta:.0f} GB/s": (tokens_to_hide_shards(10**9, F, beta*GB, 2, 2), want, .6) for beta, want in (
        (450, 2199), (50, 19788), (400, 2474))},
    "70B on 64, shards": (fsdp_70b()[0]/GB, 17.6, .05), "70B, two units": (fsdp_70b()[1]/GB, 3.4, .05),
    "70B, one end": (fsdp_70b()[2]/GB, 2.1, .05),
    **{f"latency of {P}": (1e3*ring_all_gather_time(0, P, 5e-6, 1), want, .05) for P, want in ((64, .3), (512, 2.6), (4096, 20.5))},
    "a layer travels, ms": (2*layer_8b/400e9*1e3, 1.09, .005), "a layer computes, ms": (2*layer_8b*tokens/(F/2)*1e3, 7.2, .05),
    "a layer hides up to": (max_gather_ranks(layer_8b, tokens, 2, F, 5e-6, 400e9), 505, 1),
    # 21
    **{f"{L} layers by {k}": (recompute_bytes(L, k, 2, a), want, .5) for L, k, a, want in (
        (32, 1, 34, 98), (80, 2, 34, 148), (80, 1, 34, 194), (96, 1, 114, 306),
        (126, 3, 31.78, 179), (126, 1, 31.78, 284))},
    **{f"{L} layers by {k}, in whole segments": (recompute_bytes(-(-L//k)*k, k, 2, a), want, 0) for L, k, a, want in (
        (32, 6, 34, 216), (80, 9, 34, 324), (96, 10, 114, 1160))},
    "all kept of 32": (32*34, 1088, 0), "forward passes of 80 with one state": (recompute.advances(80, 1)/80, 39.5, 0),
    **{f"all again over scores again, {name}": ((1 + 1/3)/(1 + selective_overhead(2048, h)), want, .0005) for name, h, want in (
        ("22B", 6144, 1.310), ("175B", 12288, 1.321), ("530B", 20480, 1.326), ("1T", 25600, 1.328))},
    "8B without norms' outputs and SwiGLU's product": (per_layer/tokens/M8.hidden - 4 - 2*M8.ffn/M8.hidden, 23.0, .05),
    **{f"{k} layers in a segment": (longer_interval_layers(k, 2, 34), want, 0) for k, want in ((1, 34), (2, 102), (3, 204))},
    "states for two runs of 126": (states_for_two_runs(126), 15, 0),
    **{f"runs of 80 with {s}": (recompute.advances(80, s), want, 0) for s, want in ((12, 146), (6, 204), (5, 236), (1, 3160))},
    "scores again, GPT-3, %": (100*selective_overhead(2048, 12288), .90, .005),
    "scores again, 22B, %": (100*selective_overhead(2048, 6144), 1.75, .05),
    "a second pass with attention at 0.4": (recompute_overhead(1, .4), .3125, 1e-12),
    "bytes of a score for a FLOP": (score_bytes_per_flop(128), .00977, .00001),
    # 22
    **{f"50, 80 with {k} ahead": (offload_layer_time(50, 80, 0, k), want, 0) for k, want in enumerate((130, 80, 80, 80))},
    **{f"10, 10, late 25 with {k}": (offload_layer_time(10, 10, 25, k), want, 0) for k, want in enumerate((45, 22.5, 15, 11.25, 10))},
    "depth of 10, 10, late 25": (prefetch_depth(10, 10, 25), 4, 0),
    "Adam of 8B on a CPU, s": (host_update_time(M8.params, 300*GB), .75, .005),
    "Adam of Llama 2 70B, s": (host_update_time(model("llama2-70b").params, 300*GB), 6.4, .05),
    **{f"streaming at {W} GB/s": (tokens_to_hide(2, 2, F, 494e12/F, W*GB), want, 15) for W, want in (
        (50, 9890), (400, 1236), (450, 1099))},
    "streaming, one link of 55": (tokens_to_hide(2, 2, F, FEW, 55*GB), 7273, 1), "eight": (tokens_to_hide(2, 2, F, FEW, 440*GB), 909, 1),
    **{f"{what} of width {h}": (activation_offload_bandwidth(h, 8192, F, FEW, a)/GB, want, tol)
       for what, a, tol, row in (("tensors", 34, .5, (104, 59, 32)), ("inputs", 2, .05, (6.1, 3.5, 1.9)))
       for h, want in zip((4096, 8192, 16384), row)},
    "Adam's state of GPT-3, TB": (12*GPT3.params/1e12, 2.095, .0005), "moved, s": (24*GPT3.params/28e9, 150, .5),
    "steps of four drives": (drive_life_steps(GPT3.params, 12, 4*7.68e12*5*365), 26757, 1)}


@pytest.mark.parametrize("name", DERIVED)
def test_derived(name):
    got, want, most = DERIVED[name]
    assert abs(got - want) <= most


@pytest.mark.parametrize("scale", [1, .5, .8, 1.2, .02])
def test_what_a_codec_could_save(scale):
    """Of normal numbers only exponents repeat. 1.50, 1.19 and 1.20 were said before; the entropy, whatever the scale, gives these."""
    below = [erf(2.0**k/scale/sqrt(2)) for k in range(-60, 9)]
    shares = [high - low for low, high in zip(below, below[1:]) if high > low]
    exponent = -sum(p*log2(p) for p in shares)
    got = [size/(exponent + other) for size, other in ((16, 8), (16, 11), (32, 24))]
    assert [round(x, 2) for x in got] == [1.52, 1.18, 1.21]

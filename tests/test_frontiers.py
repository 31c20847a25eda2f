"""Numbers around chapters 28 to 31b that no page prints: each comes out of a formula or a witness."""
import math

import numpy as np
import pytest

from capacity import (GB, MB, accelerator, barrier_time, best_pieces, decode_step_time, decode_tp_optimum, delay_limit,
                      experts_touched, feedback_error_bound, half_ceiling_batch, kv_token_bytes, largest_mark, level_variance,
                      local_drift, local_pull, memory_clock, model, ms, pieces_time, powersgd_ratio, prefill_servers, rounding_rms,
                      rounding_variance_bound, speculative_speedup, speculative_tokens, stochastic_spread, topk_ratio, us)
from capacity.witness import asynchrony, formats, serving
from capacity.witness.formats import FORMATS, kept, nearest, scaled


def about(x, digits):
    return pytest.approx(x, rel=.5*10**-(digits - 1))


# ---- 28
def test_what_is_gathered_and_how_small():
    ratio = topk_ratio(.01, 2, 2)
    assert 1/ratio == about(33.3, 3) and 1/topk_ratio(.01, 4, 4) == about(50, 3)
    assert 64*ratio/2 == about(.96, 2)                        # (P - 1) messages against 2 (P - 1)/P buffers
    assert 1/powersgd_ratio(4096, 4096, 21) == about(97.5, 3)
    assert 29*(4096 + 11008)/(4096*11008) <= .01 < powersgd_ratio(4096, 11008, 30)


def test_a_spectrum_that_falls_slowly_is_not_of_low_rank():
    i = np.arange(1, 4097.0)
    for power, left in ((.5, .77), (.7, .47), (1, .17)):
        squares = i**(-2*power)
        assert math.sqrt(squares[20:].sum()/squares.sum()) == about(left, 2)


def test_levels_of_a_normal_gradient():
    g = np.abs(np.random.default_rng(0).normal(size=10_000))
    for levels, want, bound in ((4, 18.9, 25), (16, 3.98, 6.25), (256, .0255, None)):
        place = levels*g/np.linalg.norm(g) % 1
        assert level_variance(place, levels).sum() == pytest.approx(want, rel=.03)
        assert bound is None or rounding_variance_bound(10_000, levels) >= bound*.99 > level_variance(place, levels).sum()
    assert 10_000/(4*4**2) == about(156, 3) and 10_000/(4*16**2) == about(9.8, 2)
    assert np.abs(g).sum()**2/(10_000*(g**2).sum()) == pytest.approx(2/math.pi, rel=.01)


def test_error_of_one_entry_at_a_time():
    held = np.zeros(100)
    for _ in range(2000):
        held += 1
        held[held.argmax()] = 0
    assert (held**2).sum() == sum(i*i for i in range(100)) == 328_350
    assert feedback_error_bound(1, 10, 1/100)**2 == pytest.approx(3.94e6, rel=.01)


# ---- 29
def test_the_largest_of_many():
    x = np.linspace(-9, 9, 2002)
    below = np.array([(1 + math.erf(v/math.sqrt(2)))/2 for v in x])
    for P, want in ((8, 1.42), (64, 2.34), (1000, 3.24), (16_384, 3.97)):
        mean = ((1 - below**P)[x > 0].sum() - (below**P)[x < 0].sum())*(x[1] - x[0])
        assert mean == pytest.approx(want, abs=.02), (P, mean)
    assert barrier_time(1, .02, 3.97) == pytest.approx(1.079, abs=5e-4)


def test_staleness_of_workers_that_differ():
    workers = [asynchrony.steady(1.0)]*15 + [asynchrony.steady(10.0)]
    log = asynchrony.server(workers, 30_000)
    assert np.mean([u.staleness for u in log]) == pytest.approx(15, abs=.02)
    each = [np.mean([u.staleness for u in log if u.worker == i]) for i in range(16)]
    assert np.mean(each) > 20 and each[-1] > 100                    # the mean of workers is another number


def test_delay_drift_and_pull():
    assert [round(float(delay_limit(1, d)), 3) for d in (0, 1, 3, 7, 15)] == [2.0, 1.0, .445, .209, .101]
    assert round(2/float(delay_limit(1, 15)), 1) == 19.7
    assert local_drift(.1, 1, 1e-9, 20, 8)*50 == about(8.75, 3)
    pulls = {H: [local_pull(.1, a, H) for a in (1, 5)] for H in (1, 5, 10, 500)}
    stands = {H: p[1]/sum(p) for H, p in pulls.items()}             # optima at 0 and 1
    assert [round(v, 3) for v in stands.values()] == [.833, .703, .605, .500]
    sent = 2*7/8*10e9                                               # int8, 8 workers, a ring
    assert sent == 17.5*GB and 2000/.95 - 2000 == about(105.3, 4) and 8*sent/105.3/1e9 == about(1.33, 3)


# ---- 30
def test_ends_of_wide_formats():
    for mantissa, power, lost, largest in ((23, 127, 0, 3.403e38), (10, 127, 0, 3.401e38), (7, 127, 0, 3.390e38)):
        assert largest_mark(2.0**-mantissa, 2.0**power, lost) == about(largest, 4)
    bits = {"fp32": (23, -126, 1.19e-7, 1.4e-45), "tf32": (10, -126, 9.77e-4, 1.15e-41), "bf16": (7, -126, 7.81e-3, 9.2e-41),
            "fp16": (10, -14, 9.77e-4, 5.96e-8), "e4m3": (3, -6, .125, 1.95e-3), "e5m2": (2, -14, .25, 1.53e-5)}
    for name, (mantissa, least, epsilon, subnormal) in bits.items():
        assert 2.0**-mantissa == about(epsilon, 3) and 2.0**(least - mantissa) == about(subnormal, 2)
        if name in FORMATS:
            marks = formats.marks(FORMATS[name])
            assert marks[1] == 2.0**(least - mantissa) and 2.0**least in marks
            assert np.diff(marks)[np.searchsorted(marks, 1.0)] == 2.0**-mantissa


def test_small_numbers_in_fp16():
    fp16 = FORMATS["fp16"]
    assert nearest(1e-6, fp16) == 17*2.0**-24 == about(1.0133e-6, 5)
    assert nearest(2.0**-25, fp16) == 0 < nearest(2.0**-25*1.0001, fp16)
    assert nearest(math.exp(11.0900), fp16) < np.inf == nearest(math.exp(11.0902), fp16)
    for g, normal, alive in ((1e-6, 64, 1), (1e-7, 1024, 1), (1e-8, 8192, 4)):
        scales = [2**k for k in range(20)]
        assert next(s for s in scales if g*s >= 2.0**-14) == normal
        assert next(s for s in scales if nearest(g*s, fp16) > 0) == alive


def test_what_fp16_loses_of_sixteen_decades():
    decades = math.log(1e16)
    lost = (math.log(2.0**-25/1e-8) + math.log(1e8/65520))/decades
    assert lost == about(.229, 3) and math.log(2.0**-14/2.0**-25)/decades == about(.207, 3)
    assert (1e8 - 65520)/1e8 == about(.9993, 4)


def test_errors_of_normal_numbers():
    x = .02*np.random.default_rng(1).normal(size=2**18)
    rms = lambda y: math.sqrt(((y - x)**2).sum()/(x**2).sum())
    e4m3, e5m2, e2m1 = (FORMATS[n] for n in ("e4m3", "e5m2", "e2m1"))
    assert rms(scaled(x, e4m3)) == pytest.approx(.0265, rel=.03) and rms(scaled(x, e4m3, 128)) == pytest.approx(.0257, rel=.03)
    assert rms(scaled(x, e4m3, 32)) == pytest.approx(.0240, rel=.03) and rms(scaled(x, e5m2, 128)) == pytest.approx(.051, rel=.03)
    assert rms(scaled(x, e2m1, 32)) == pytest.approx(.101, rel=.03) and rms(scaled(x, e2m1, 16, "nvfp4")) == pytest.approx(.094, rel=.04)
    assert rounding_rms(1) == about(.2123, 4) and stochastic_spread(2**-7, 10_000, 1e-4*2**7) == about(.0878, 3)


def test_sums_of_ranks_in_bf16():
    x = np.random.default_rng(2).normal(size=(1024, 2000)) + 0
    x = kept(x, 8)
    seen = {}
    for P in (8, 64, 1024):
        exact = x[:P].sum(0)
        off = lambda y, e=exact: math.sqrt(((y - e)**2).mean()/(e**2).mean())
        seen[P] = off(formats.chain_sum(x[:P], 8)), off(formats.tree_sum(x[:P], 8)), off(kept(exact, 8))
    assert seen[8][0] == pytest.approx(.0036, rel=.05) and seen[1024][0] > 3*seen[64][0] > 6*seen[8][0]
    assert all(tree < .006 and wide == pytest.approx(.00166, rel=.04) for _, tree, wide in seen.values())


# ---- 31
def test_buckets_of_a_gigabyte_and_of_llama():
    call = 100*us
    assert round(float(best_pieces(50*ms, 80*ms, call, 1e-12))) == 22 and round(GB/22/MB) == 45
    assert pieces_time(50*ms, 80*ms, call, 0, 22) == about(84.5*ms, 3)
    assert round(float(best_pieces(100*ms, 80*ms, call, 1e-12))) == 200
    llama = model("llama3-8b")
    ring, floor = 126*10*us, 2*63/64*2*llama.params/50e9
    assert floor == about(.632, 3) and round(float(best_pieces(.6, floor, ring, 1e-12))) == 22
    assert pieces_time(.6, floor, ring, 0, 22) == about(.687, 3) and 2*llama.params/22/MB == pytest.approx(730, rel=.02)
    layer = llama.layers_matmul/llama.layers
    assert layer == about(.218e9, 3) and 2*layer*8192/500e12 == about(7.15*ms, 3)
    assert 2*70e9/80 == 1.75*GB


# ---- 31a
def test_caches_of_long_conversations():
    heads = 2*128*128*2                                             # keys and values of 128 heads of 128, 2 bytes
    assert (heads, heads*80*128_000, heads*80*131_072) == (65_536, 671_088_640_000, 687_194_767_360)
    deep = model("deepseek-v3")
    assert round(deep.attention_matmul/1e6, 1) == 187.1 and 2*(512 + 64) == 1152 and heads/1152 == about(56.9, 3)
    big = model("llama3-405b")
    assert 2*big.hidden**2*(1 - big.kv_heads/big.heads) == about(.503e9, 3)


# ---- 31b
def test_a_step_of_llama_70b():
    llm, h100 = model("llama3-70b"), accelerator("h100-sxm")
    F, W = h100.peak("bf16"), h100.bandwidth
    q = kv_token_bytes(llm.layers, llm.kv_width, 2)
    step = lambda B, t=8, S=8192, **k: decode_step_time(llm.params, 2, B, S, q, t, W, F)
    assert [round(1e3*step(B), 2 if B < 64 else 1) for B in (1, 32, 64, 128, 162)] == [5.37, 8.47, 11.7, 18.1, 21.5]
    assert [round(B/step(B)/8) for B in (32, 64, 128, 162)] == [472, 685, 885, 942]
    room = .9*8*h100.memory - 2*llm.params
    assert [math.floor(room/(S*q)) for S in (1000, 32_768, 131_072)] == [1327, 40, 10]
    assert round(2*llm.params/q) == pytest.approx(430_603, rel=1e-3) and round(float(half_ceiling_batch(llm.params, 2, 32_768, q)), 1) == 13.1
    assert round(1e3*memory_clock(accelerator("b200").memory, accelerator("b200").bandwidth), 1) == 22.5
    assert llm.params/(llm.layers*llm.attention_width) == about(107_651, 4)
    assert round(float(decode_tp_optimum(llm.params, 2, 80, 1*us, W)), 1) == 11.5
    for t, alpha, beta, want in ((4, 2*us, 450e9, 19.1), (8, 2*us, 450e9, 13.3), (16, 2*us, 450e9, 14.2), (32, 2*us, 450e9, 22.3),
                                 (8, 5*us, 50e9, 22.6), (16, 5*us, 50e9, 31.4)):
        sums = 2*80*(2*(t - 1)*alpha + 2*(t - 1)/t*32*llm.hidden*2/beta)
        assert 1e3*(step(32, t) + sums) == pytest.approx(want, abs=.1), t


def test_experts_readers_and_drafts():
    assert round(float(experts_touched(256, 1/32, 64))) == 222 and 88*320*8/256 == 880
    llm, h100 = model("llama3-70b"), accelerator("h100-sxm")
    read = (2*llm.params*8192 + 2*80*llm.attention_width*8192**2)/(8*.5*h100.peak("bf16"))
    step = decode_step_time(llm.params, 2, 32, 8192, 327_680, 8, h100.bandwidth, h100.peak("bf16"))
    assert prefill_servers(read, 32, 512, step) == pytest.approx(2.29, abs=.04)
    assert speculative_tokens(.8, 4) == about(3.362, 4) and speculative_tokens(.896, 4) == pytest.approx(4.066, abs=.01)
    best = max(range(1, 20), key=lambda K: speculative_speedup(.8, K, .05, 1))
    assert best == 8 and speculative_speedup(.8, 8, .05, 1) == about(3.09, 3)


def test_static_slots_and_refilled():
    rng = np.random.default_rng(0)
    sizes = np.maximum(rng.lognormal(math.log(302) - .5, 1, 12_800), 1).astype(int).tolist()
    for slots, static in ((8, 3.1), (32, 5.5), (128, 9.1)):
        ideal = sum(sizes)/slots
        assert serving.steps(serving.occupy(sizes, slots, False))/ideal == pytest.approx(static, rel=.12)
        assert serving.steps(serving.occupy(sizes, slots, True))/ideal < 1.25

"""Layouts, the estimate of a step, and the published runs that judge it."""
import math
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import sympy as sp

from capacity import (Layout, Step, accelerator, cluster, estimate, model, model_state_bytes, published_rows,
                      published_runs, ring_all_reduce_time, train_flops_per_token)
from capacity.estimate import CAUSES, KINDS

ROOT = Path(__file__).resolve().parents[1]
LLAMA, MACHINE = model("llama3-70b"), cluster("dgx-h100", 512)
LAYOUT = Layout(batch=512, dp=16, tp=8, pp=4, zero=1, sequence_parallel=True)


# --- layouts

def test_a_good_layout_has_no_complaint():
    assert LAYOUT.check(LLAMA, MACHINE) == ()
    assert LAYOUT.devices == 512 and LAYOUT.microbatches == 32


@pytest.mark.parametrize("change, words", [
    (dict(dp=8), "dp*cp*tp*pp = 8*1*8*4 is 256, and the cluster has 512 devices"),
    (dict(batch=500), "A batch of 500 sequences does not divide into 16 ranks"),
    (dict(microbatch=3), "micro-batches of 3"),
    (dict(tp=3), "64 attention heads do not divide over tp = 3"),
    (dict(tp=3), "8 key-value heads and tp = 3"),
    (dict(tp=3), "28672 does not divide over tp = 3"),
    (dict(pp=81), "80 layers are too few for pp*chunks = 81"),
    (dict(pp=1, chunks=2), "chunks = 2 needs a pipeline"),
    (dict(ep=3), "ep = 3 does not divide dp*cp*tp = 128"),
    (dict(ep=8), "ep = 8 does not divide the experts of Llama 3 70B")])
def test_a_bad_layout_is_told_why(change, words):
    reasons = replace(LAYOUT, **change).check(LLAMA, MACHINE)
    assert any(words in reason for reason in reasons), reasons
    assert all(reason[0].isupper() or reason[0].isdigit() or "=" in reason for reason in reasons)
    assert all(reason.endswith(".") for reason in reasons)


def test_experts_may_be_divided():
    mixtral = model("mixtral-8x7b")
    assert Layout(batch=64, dp=8, ep=8).check(mixtral, cluster("dgx-h100", 8)) == ()
    assert Layout(batch=64, dp=8, ep=2).check(mixtral, cluster("dgx-h100", 8)) == ()


@pytest.mark.parametrize("zero, ranks", [(0, (1, 1, 1)), (1, (1, 1, 32)), (2, (1, 32, 32)), (3, (32, 32, 32))])
def test_a_stage_says_who_shares_what(zero, ranks):
    lay = Layout(batch=32, dp=16, cp=2, tp=4, zero=zero)
    assert (lay.weight_ranks, lay.grad_ranks, lay.optimizer_ranks) == ranks


def test_bad_fields_are_named():
    with pytest.raises(ValueError, match="tp = 0"):
        Layout(batch=1, tp=0)
    with pytest.raises(ValueError, match="zero = 4"):
        Layout(batch=1, zero=4)
    with pytest.raises(ValueError, match="recompute"):
        Layout(batch=1, recompute=-1)
    with pytest.raises(TypeError, match="one layout"):
        Layout(batch=8, dp=np.array([1, 2])).check(LLAMA, MACHINE)


# --- one step: numbers, arrays, symbols

def degrees():
    """Every (dp, tp, pp, microbatch) of 512 devices that the model allows."""
    for tp in (1, 2, 4, 8):
        for pp in (1, 2, 4, 8, 16):
            for y in (1, 2):
                dp = 512//(tp*pp)
                if 512 % (dp*y) == 0:
                    yield dp, tp, pp, y


@pytest.mark.parametrize("choice", [dict(zero=z, sequence_parallel=sp_) for z in range(4) for sp_ in (False, True)])
def test_array_equals_loop(choice):
    points = list(degrees())
    dp, tp, pp, y = np.array(points, dtype=float).T
    rest = dict(batch=512, recompute=0.5, **choice)
    every = estimate(LLAMA, MACHINE, Layout(dp=dp, tp=tp, pp=pp, microbatch=y, **rest), 8192)
    for i, (d, t, p, m) in enumerate(points):
        one = estimate(LLAMA, MACHINE, Layout(dp=d, tp=t, pp=p, microbatch=m, **rest), 8192)
        for name in CAUSES + KINDS + ("time", "memory", "mfu", "spread"):
            got = np.broadcast_to(getattr(every, name), dp.shape)[i]
            assert got == pytest.approx(getattr(one, name), rel=1e-12, abs=1e-12), name


@pytest.mark.parametrize("zero", range(4))
def test_symbol_equals_number(zero):
    d, t, p, y, S = symbols = sp.symbols("d t p y S", positive=True)
    lay = dict(batch=512, zero=zero, recompute=1, chunks=2)
    algebra = estimate(LLAMA, MACHINE, Layout(dp=d, tp=t, pp=p, microbatch=y, **lay), S)
    for point in [(16, 8, 4, 1), (64, 2, 4, 2), (8, 16, 4, 4)]:
        number = estimate(LLAMA, MACHINE, Layout(dp=point[0], tp=point[1], pp=point[2], microbatch=point[3], **lay), 8192)
        where = dict(zip(symbols, (*point, 8192)))
        for name in ("time", "memory", "mfu", "spread", "data", "bubble"):
            value = sp.sympify(getattr(algebra, name)).subs(where)
            assert float(value) == pytest.approx(getattr(number, name), rel=1e-11), name


def test_a_step_adds_up():
    s = estimate(LLAMA, MACHINE, LAYOUT, 8192)
    assert isinstance(s, Step) and set(s.seconds) == set(CAUSES) and set(s.bytes) == set(KINDS)
    assert s.time == pytest.approx(sum(s.seconds.values())) and s.memory == pytest.approx(sum(s.bytes.values()))
    assert s.mfu == pytest.approx(s.flops/(s.peak*s.time)) and s.token_rate == pytest.approx(512*8192/s.time)
    low, high = s.interval()
    assert low < s.time < high and low*high == pytest.approx(s.time**2)
    assert s.interval(2)[1]/s.time == pytest.approx((high/s.time)**2)


# --- laws

def step(layout=LAYOUT, seq_len=8192, machine=MACHINE, shape=LLAMA, **kw):
    return estimate(shape, machine, layout, seq_len, **kw)


def test_twice_the_tokens_twice_the_arithmetic():
    one, two = step(), step(replace(LAYOUT, batch=1024))
    for cause in ("matmul", "attention", "pointwise", "tensor", "pipeline"):
        assert getattr(two, cause) == pytest.approx(2*getattr(one, cause)), cause
    assert two.update == one.update
    assert two.bubble/two.time < one.bubble/one.time, "more micro-batches, smaller share of bubble"


def test_only_the_model_counts_for_mfu():
    plain, again = step(), step(replace(LAYOUT, recompute=1))
    assert again.flops == plain.flops
    assert again.matmul == pytest.approx(plain.matmul*4/3)
    assert again.activations < plain.activations and again.mfu < plain.mfu


def test_attention_alone_grows_with_the_square_of_the_length():
    short, long = step(), step(replace(LAYOUT, batch=256), 16384)
    assert long.matmul == pytest.approx(short.matmul)
    assert long.attention == pytest.approx(2*short.attention)


def test_one_device_says_nothing():
    s = step(Layout(batch=4, zero=0), machine=cluster("dgx-h100", 8).sized(1), shape=model("llama3-8b"))
    assert s.tensor == s.context == s.pipeline == s.bubble == s.data == 0
    m = model("llama3-8b")
    assert s.flops == pytest.approx(4*8192*train_flops_per_token(m.matmul_params, m.layers, m.attention_width, 4096))
    assert sum(s.bytes[k] for k in ("weights", "grads", "optimizer")) == pytest.approx(model_state_bytes(m.params, 2, 2, 12))


def test_tensor_parallelism_is_four_ring_all_reduces_a_layer():
    one = ring_all_reduce_time(2*8192*8192, 8, MACHINE.inner.alpha, MACHINE.inner.beta)
    assert step(network=1).tensor == pytest.approx(32*20*4*one)
    assert step(replace(LAYOUT, recompute=1), network=1).tensor == pytest.approx(32*20*6*one)


def test_bubble_of_a_balanced_pipeline():
    s = step()
    busy = s.matmul + s.attention + s.pointwise + s.tensor + s.pipeline
    assert s.bubble/(busy + s.bubble) == pytest.approx(3/(32 + 3))
    half = step(replace(LAYOUT, chunks=2))
    busy = half.matmul + half.attention + half.pointwise + half.tensor + half.pipeline
    assert half.bubble/busy == pytest.approx(3/(2*32))


def test_an_uneven_stage_is_waited_for():
    shape = replace(LLAMA, layers=81)
    s = step(shape=shape)
    busy = s.matmul + s.attention + s.pointwise + s.tensor + s.pipeline
    assert (s.bubble + busy)/busy == pytest.approx((21*4/81)*(32 + 3)/32)


def test_sharding_moves_bytes_and_only_the_third_stage_adds_traffic():
    steps = [step(replace(LAYOUT, zero=z)) for z in range(4)]
    for a, b, kind in zip(steps, steps[1:], ("optimizer", "grads", "weights")):
        assert getattr(b, kind) == pytest.approx(getattr(a, kind)/16), kind
    assert steps[0].data == steps[1].data == steps[2].data
    slow = dict(network=0.001)
    assert step(replace(LAYOUT, zero=3), **slow).data > step(replace(LAYOUT, zero=2), **slow).data


def test_traffic_that_fits_behind_the_arithmetic_is_free_but_for_its_last_piece():
    fast, slow = step(network=1), step(network=0.02)
    assert fast.data < 0.01*fast.time < slow.data


def test_errors_name_what_is_wrong():
    with pytest.raises(ValueError, match="Mixtral"):
        step(shape=model("mixtral-8x7b"))
    with pytest.raises(ValueError, match="measured ceiling"):
        step(machine=replace(MACHINE, device=accelerator("v100")))


def test_the_spread_is_a_weighted_sum_of_squares():
    s = step()
    talk = (s.tensor + s.context + s.pipeline + s.data)/s.time
    assert s.spread == pytest.approx(math.sqrt(((1 - talk)*0.16)**2 + (talk*0.40)**2 + 0.15**2))
    assert step(compute_spread=0, network_spread=0, library_spread=0).spread == 0


# --- the world

def test_every_run_is_sourced_and_legal():
    runs = published_runs()
    keys = set(re.findall(r"^@\w+\{([^,]+),", (ROOT/"references.bib").read_text(), re.M))
    assert len(runs) > 200 and len(published_rows()) > 500
    assert {r.source for r in runs} <= keys
    assert all(r.layout.check(r.model, r.cluster) == () for r in runs), "what ran cannot be illegal"
    assert all(r.row["confidence"] in ("file", "paper-sure") for r in runs)


def test_shapes_of_the_table_are_the_models_of_the_book():
    runs = {r.model.name: r.model for r in published_runs()}
    for name in ("llama3-8b", "llama3-70b", "llama2-7b", "llama2-13b", "llama2-70b"):
        assert runs[name].params == model(name).params


def test_published_runs_lie_within_the_stated_band():
    runs = [r for r in published_runs() if r.source != "llm-foundry"]
    steps = [estimate(r.model, r.cluster, r.layout, r.seq_len) for r in runs]
    error = np.array([math.log(s.time/r.seconds) for s, r in zip(steps, runs)])
    bars = np.array([s.spread for s in steps])
    assert len(runs) >= 100
    assert np.median(abs(error)) < math.log(1.5)
    assert np.mean(abs(error) < math.log(2)) > 0.95
    assert 0.55 < np.mean(abs(error) < bars) < 0.80, "one deviation either way, two runs in three"
    assert np.mean(abs(error) < 2*bars) > 0.85


def test_what_ran_fitted():
    """Rows that recompute parts of a layer are left out: the table does not say which parts."""
    runs = [r for r in published_runs() if r.row["recompute"] != "selective"]
    assert all(estimate(r.model, r.cluster, r.layout, r.seq_len).memory < 1.06*r.cluster.device.memory for r in runs)

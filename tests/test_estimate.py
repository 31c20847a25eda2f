"""Layouts, the estimate of a step, and the published runs that judge it."""
import csv
import itertools
import json
import math
import re
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import sympy as sp

from capacity import (Bench, Cluster, Layout, Stack, Step, accelerator, cluster, estimate, interleaved, link, mixtral_runs, model,
                      model_state_bytes, published_rows, published_runs, refused_rows, ring_all_reduce_time, specs, stage_bound,
                      train_flops_per_token, unseen_runs)
from capacity.footprint import PARTS
from capacity.hardware import Level
from capacity.protocol import Score
from capacity.stack import ceiling, constants as fitted, rates
from capacity.step import CAUSES, kind_of, work
from capacity.witness.schedule import simulate, zb_h1, zb_h2, zb_v

ROOT = Path(__file__).resolve().parents[1]
LLAMA, MACHINE = model("llama3-70b"), cluster("dgx-h100", 512)
BLACK = cluster("dgx-b200", 512)
LAYOUT = Layout(batch=512, dp=16, tp=8, pp=4, zero=1, sequence_parallel=True)


# --- layouts

def test_a_good_layout_has_no_complaint():
    assert LAYOUT.check(LLAMA, MACHINE) == LAYOUT.check(LLAMA, MACHINE, 8192) == ()
    assert LAYOUT.check(LLAMA, MACHINE, 8190) == ("8190 tokens do not divide over cp*tp = 8 ranks that share them.",)
    assert LAYOUT.devices == 512 and LAYOUT.microbatches == 32


@pytest.mark.parametrize("change, words", [
    (dict(dp=8), "dp*cp*tp*pp = 8*1*8*4 is 256, and the cluster has 512 devices"),
    (dict(batch=500), "A batch of 500 sequences does not divide into 16 ranks"),
    (dict(microbatch=3), "micro-batches of 3"),
    (dict(tp=3), "64 attention heads do not divide over tp = 3"),
    (dict(tp=3), "8 key-value heads and tp = 3"),
    (dict(tp=3), "28672 does not divide over tp = 3"),
    (dict(pp=83), "80 layers are too few for pp*chunks = 83"),
    (dict(pp=1, chunks=2), "chunks = 2 needs a pipeline"),
    (dict(batch=16*30, chunks=2), "interleaves groups of pp = 4 micro-batches, and 30 are no multiple of 4"),
    (dict(tp=5), "A vocabulary of 128256 does not divide over tp = 5; padded to 128260 it does."),
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
    assert Layout(batch=64, cp=8, ep=8).check(mixtral, cluster("dgx-h100", 8)) == ()
    reasons = Layout(batch=64, dp=16, ep=16).check(mixtral, cluster("dgx-h100", 16))
    assert reasons == ("ep = 16 does not divide the experts of Mixtral 8x7B.",)


def test_check_and_the_schedule_agree_on_interleaving():
    for m in range(1, 17):
        try:
            interleaved(4, m, 2)
            runs = True
        except ValueError:
            runs = False
        assert (replace(LAYOUT, batch=16*m, chunks=2).check(LLAMA, MACHINE) == ()) == runs, m


def test_what_is_allowed_at_the_edge():
    two = Layout(batch=64, dp=8, tp=4, pp=2, chunks=2)
    assert two.check(LLAMA, cluster("dgx-h100", 64)) == (), "two devices are a pipeline that can interleave"
    edge = replace(LLAMA, layers=6)
    assert replace(LAYOUT, chunks=2).check(edge, MACHINE) == (), "eight pieces: embedding and head may be one each"
    assert replace(LAYOUT, chunks=2).check(replace(LLAMA, layers=5), MACHINE) == ("5 layers are too few for pp*chunks = 8 pieces.",)
    assert LAYOUT.check(replace(LLAMA, layers=1), MACHINE) == ("1 layers are too few for pp*chunks = 4 pieces.",)
    assert Layout(batch=8, pp=80).check(LLAMA, replace(MACHINE, levels=[(80, MACHINE.inner)])) == (), "a layer a stage"
    assert Layout(batch=8, pp=4, tp=16).check(LLAMA, cluster("dgx-h100", 64)) == (), "a key-value head for two ranks"


@pytest.mark.parametrize("zero, ranks", [(0, (1, 1, 1)), (1, (1, 1, 32)), (2, (1, 32, 32)), (3, (32, 32, 32))])
def test_a_stage_says_who_shares_what(zero, ranks):
    lay = Layout(batch=32, dp=16, cp=2, tp=4, zero=zero)
    assert (lay.weight_ranks, lay.grad_ranks, lay.optimizer_ranks) == ranks
    some = replace(lay, shards=8)
    assert (some.weight_ranks, some.grad_ranks, some.optimizer_ranks) == tuple(min(r, 8) for r in ranks)


def test_of_a_stage_all_ranks_but_those_of_other_experts_hold_the_same_ones():
    lay = Layout(batch=64, dp=4, cp=2, tp=2, ep=4)
    assert (lay.replicas, lay.expert_replicas) == (8, 4), "sixteen ranks, four sets of experts"


def test_what_is_not_said_is_one_rank_that_keeps_everything():
    lay = Layout(batch=8)
    assert (lay.devices, lay.microbatch, lay.ep, lay.chunks, lay.microbatches, lay.seq_ranks) == (1, 1, 1, 1, 8, 1)
    assert (lay.zero, lay.recompute, lay.scores, lay.sequence_parallel) == (1, 0, 0, False)


def test_bad_fields_are_named():
    with pytest.raises(ValueError, match="tp = 0"):
        Layout(batch=1, tp=0)
    for zero in 4, -1, True, "1", None, np.array([1, 2]):
        with pytest.raises(ValueError, match="zero = "):
            Layout(batch=1, zero=zero)
    with pytest.raises(ValueError, match="sequence_parallel = 'no'"):
        Layout(batch=1, sequence_parallel="no")
    with pytest.raises(ValueError, match="recompute"):
        Layout(batch=1, recompute=-1)
    for bad in ("8192", 0):
        with pytest.raises(ValueError, match="seq_len = "):
            estimate(LLAMA, MACHINE, LAYOUT, bad)
    with pytest.raises(ValueError, match="recompute = 1.5"):
        Layout(batch=1, recompute=1.5)
    with pytest.raises(ValueError, match="attention_recompute = 2"):
        Layout(batch=1, attention_recompute=2)
    with pytest.raises(ValueError, match="cheap_recompute = 2"):
        Layout(batch=1, cheap_recompute=2)
    with pytest.raises(ValueError, match="shards = 0"):
        Layout(batch=1, shards=0)
    with pytest.raises(TypeError, match="one layout"):
        Layout(batch=8, dp=np.array([1, 2])).check(LLAMA, MACHINE)


# --- one step: numbers, arrays, symbols

def everything(s):
    """All that a step says, by name."""
    return s.seconds | dict(s.footprint.parts) | {name: getattr(s, name) for name in ("time", "memory", "mfu", "spread")}


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
    every = everything(estimate(LLAMA, MACHINE, Layout(dp=dp, tp=tp, pp=pp, microbatch=y, **rest), 8192))
    loop = [everything(estimate(LLAMA, MACHINE, Layout(dp=d, tp=t, pp=p, microbatch=m, **rest), 8192)) for d, t, p, m in points]
    for name, got in every.items():
        assert np.broadcast_to(got, dp.shape) == pytest.approx([one[name] for one in loop], rel=1e-12, abs=1e-12), name


@pytest.mark.parametrize("choice", [dict(zero=z, sequence_parallel=sp_) for z in range(4) for sp_ in (False, True)])
def test_symbol_equals_number(choice):
    names = "batch", "microbatch", "dp", "tp", "pp", "cp", "chunks", "recompute", "scores", "cheap_recompute"
    *symbols, S = sp.symbols((*names, "S"), positive=True)
    algebra = estimate(LLAMA, MACHINE, Layout(**dict(zip(names, symbols)), **choice), S)
    outputs = everything(algebra)
    f = sp.lambdify((*symbols, S), list(outputs.values()), "math", cse=True)
    for *point, length in [(512, 1, 16, 8, 4, 1, 2, 1, 0.5, 1, 8192), (512, 2, 64, 2, 4, 1, 1, 0.25, 1, 0.5, 4096),
                           (256, 1, 4, 16, 4, 2, 5, 0, 0, 1, 32768), (64, 1, 1, 4, 16, 8, 1, 1, 0, 0, 8192)]:
        number = everything(estimate(LLAMA, MACHINE, Layout(**dict(zip(names, point)), **choice), length))
        for name, value in zip(outputs, f(*point, length)):
            assert value == pytest.approx(number[name], rel=1e-11, abs=1e-12), name


def test_arrays_of_every_field_equal_a_loop():
    points = [(512, 1, 16, 8, 4, 1, 2, 1, 0.5, 1), (512, 2, 64, 2, 4, 1, 1, 0.25, 1, 0.5), (256, 1, 4, 16, 4, 2, 5, 0, 0, 1)]
    names = "batch", "microbatch", "dp", "tp", "pp", "cp", "chunks", "recompute", "scores", "cheap_recompute"
    for zero in range(4):
        every = everything(step(Layout(**dict(zip(names, np.array(points, dtype=float).T)), zero=zero)))
        for i, point in enumerate(points):
            one = step(Layout(**dict(zip(names, point)), zero=zero))
            for name, value in everything(one).items():
                got = np.broadcast_to(every[name], 3)[i]
                assert got == pytest.approx(value, rel=1e-12, abs=1e-12), name


MIXTURES = {"deepseek-v3": Layout(batch=2048, dp=64, pp=8, ep=32), "mixtral-8x7b": Layout(batch=512, dp=32, tp=2, cp=2, pp=4, ep=8)}


@pytest.mark.parametrize("name", MIXTURES)
@pytest.mark.parametrize("format", ["bf16", "fp8"])
def test_mixtures_of_numbers_arrays_and_symbols(name, format):
    shape, lay = model(name), MIXTURES[name]
    names = "batch", "microbatch", "dp", "tp", "pp", "cp", "ep"
    values = [getattr(lay, name) for name in names]
    one = step(lay, 4096, shape=shape, format=format)
    many = step(replace(lay, **{n: np.array([v, v], float) for n, v in zip(names, values)}), 4096, shape=shape, format=format)
    symbols = sp.symbols(names, positive=True)
    algebra = step(replace(lay, **dict(zip(names, symbols))), 4096, shape=shape, format=format)
    traced = sp.lambdify(symbols, list(algebra.seconds.values()), "math", cse=True)(*values)
    for cause, value in zip(CAUSES, traced):
        assert value == pytest.approx(one.seconds[cause], rel=1e-11, abs=1e-12), cause
        assert np.broadcast_to(many.seconds[cause], 2) == pytest.approx([one.seconds[cause]]*2, rel=1e-12), cause
    assert one.experts > 0 < one.all_to_all and one.routing >= 0


def test_a_step_adds_up():
    s = estimate(LLAMA, MACHINE, LAYOUT, 8192)
    assert isinstance(s, Step) and set(s.seconds) == set(CAUSES) and set(s.footprint.parts) == set(PARTS)
    assert set(s.bytes) == {"weights", "grads", "optimizer", "activations"}, "what is there"
    assert replace(s, remember=lambda: SimpleNamespace(parts={"weights": 0.0, "grads": 0, "head": 2})).bytes == {"weights": 0.0, "head": 2}
    assert s.time == pytest.approx(sum(s.seconds.values())) and s.memory == pytest.approx(sum(s.bytes.values()))
    assert s.mfu == pytest.approx(s.flops/(s.peak*s.time)) and s.token_rate == pytest.approx(512*8192/s.time)
    assert s.peak == MACHINE.device.peak("bf16") > MACHINE.device.ceiling("bf16")
    low, high = s.interval()
    assert low < s.time < high and low*high == pytest.approx(s.time**2)
    assert high/s.time == pytest.approx(math.exp(s.spread)) and s.interval(2)[1]/s.time == pytest.approx(math.exp(s.tail))
    assert s.interval(0.5)[1]/s.time == pytest.approx(math.exp(s.spread/2)) and s.tail > s.spread
    assert s.interval(3)[0]/s.time == pytest.approx(math.exp(s.spread - 2*s.tail))


def test_a_sequence_may_be_one_token():
    short = replace(LAYOUT, sequence_parallel=False)
    assert 0 < step(short, 1).time < step(short, 2).time
    with pytest.raises(ValueError, match="seq_len = 0"):
        step(short, 0)


def test_a_step_shows_itself_and_exports():
    """One table of seconds and one of bytes, whose parts add up; arrays and symbols are shown as text."""
    s = estimate(LLAMA, MACHINE, LAYOUT, 8192)
    data = json.loads(json.dumps(s.to_dict()))
    assert data["time"] == pytest.approx(sum(data["seconds"].values())) and data["memory"] == pytest.approx(sum(data["parts"].values()))
    assert data["low"] < data["time"] < data["high"] and data["mfu"] == s.mfu and "experts" not in data["seconds"]
    assert data["memory"] == max(data["stages"].values()) and data["instant"] == s.footprint.worst.name
    for text, head, values in (s.to_csv(), ["cause", "seconds"], data["seconds"]), (s.footprint.to_csv(), ["part", "bytes"], data["parts"]):
        first, *rows = csv.reader(text.splitlines())
        assert first == head and {name: float(value) for name, value in rows} == values
    page = s._repr_html_()
    assert page.count("<table>") == 2 and s.footprint._repr_html_() in page and f"{s.mfu:.1%} of peak" in page
    assert page.index("matmul") < page.index("update") and "all_to_all" not in page, "greatest first, nothing that is not there"
    shares = [float(x) for x in re.findall(r">([\d.]+) %</td>", page)]
    assert shares.count(100) == 2 and sum(shares) == pytest.approx(400, abs=1)
    plain = estimate(LLAMA, MACHINE, replace(LAYOUT, recompute=np.float64(0.5)), 8192).to_dict()
    assert all(type(plain[name]) is float for name in ("time", "low", "high", "mfu", "tokens_per_second", "memory"))
    many = estimate(LLAMA, MACHINE, replace(LAYOUT, recompute=np.array([0, 1])), 8192)
    assert many._repr_html_() is None and many.footprint._repr_html_() is None
    assert step(replace(LAYOUT, recompute=sp.Symbol("r", positive=True)))._repr_html_() is None


# --- laws

PLAIN = Stack(graphs="none", tensor=1, exchange=1, sends=1)            # nothing overlaps
ONE = dict.fromkeys(fitted(), 1) | {"step": 0}                         # every share is 1


def step(layout=LAYOUT, seq_len=8192, machine=MACHINE, shape=LLAMA, **kw):
    return estimate(shape, machine, layout, seq_len, **kw)


def bare(layout=LAYOUT, seq_len=8192, **kw):
    """A step at full rates, whose messages all wait: nothing but formulas and data sheets."""
    kw["constants"] = ONE | kw.get("constants", {})
    return step(layout, seq_len, **{"stack": PLAIN} | kw)


def busy(s):
    """Seconds in which a stage works, its share of the head included."""
    return s.matmul + s.experts + s.attention + s.pointwise + s.head + s.tensor + s.context + s.all_to_all + s.routing


def test_twice_the_tokens_twice_the_arithmetic():
    one, two = step(), step(replace(LAYOUT, batch=1024))
    for cause in ("matmul", "attention", "pointwise", "head", "tensor", "pipeline"):
        assert getattr(two, cause) == pytest.approx(2*getattr(one, cause)), cause
    assert two.update == one.update and two.fixed == one.fixed == fitted()["step"]
    assert two.bubble/two.time < one.bubble/one.time, "more micro-batches, smaller share of bubble"


def test_products_by_hand():
    """Each weight of a layer once forward and twice backward, and once more where all is recomputed; the head in 16 bits."""
    rate, tokens = MACHINE.device.ceiling(), 512*8192/512
    layers, head = LLAMA.layers_matmul, 128256*8192
    for again in 0, 0.5, 1:
        s = bare(replace(LAYOUT, recompute=again))
        assert s.matmul == pytest.approx(tokens*(6 + 2*again)*layers/rate)
        logits = tokens*8*20*128256/8/4/MACHINE.device.bandwidth*4
        assert s.head == pytest.approx(tokens*6*head/rate + logits)
    narrow = bare(format="fp8")
    assert narrow.matmul == pytest.approx(tokens*6*layers/MACHINE.device.ceiling("fp8")) and narrow.head == bare().head
    assert bare(constants={"matmul-hopper": 0.5}).matmul == pytest.approx(2*bare().matmul)
    assert step(matmul=0.5).matmul == pytest.approx(tokens*12*layers/rate), "an override"
    other = bare(matmul=0.5)
    assert other.head == pytest.approx(tokens*12*head/rate + logits), "of the head's too"


def test_thin_products_by_hand():
    """Llama 3 70B on 64 tensor ranks: what leads into attention moves 3 matrices a pass, the feed-forward's still multiply."""
    lay = Layout(batch=512, dp=8, tp=64, microbatch=1, sequence_parallel=True)
    rate, W, y, cols = MACHINE.device.ceiling(), MACHINE.device.bandwidth, 8192, 128 + 2*128     # one head of keys, whole
    for again, slow in (0, 1), (1, 1), (0, 0.05):
        def product(inner, cols):
            return max(2*y*inner*cols/rate, 2*(y*inner + inner*cols + y*cols)/(slow*W))
        s = bare(replace(lay, recompute=again), constants={"memory": slow})
        each = product(8192, cols) + product(128, 8192) + product(8192, 2*448) + product(448, 8192)
        assert s.matmul == pytest.approx(64*(3 + again)*80*each)
        assert s.head == pytest.approx(64*(3*product(8192, 2004) + 20*y*2004/(slow*W)))
    assert product(128, 8192) > 2*2*y*128*8192/rate, "it waits for the memory"


def test_thin_products_in_narrow_formats():
    """A byte for each factor, two for the result: of the three passes, four bytes for each number of the three matrices."""
    lay = Layout(batch=512, dp=8, tp=64, microbatch=1, sequence_parallel=True)
    y, W, numbers = 8192, MACHINE.device.bandwidth, 0
    for inner, cols in (8192, 384), (128, 8192), (8192, 896), (448, 8192):
        numbers += y*inner + inner*cols + y*cols
    for format, nbytes in ("fp8", 4), ("bf16", 6):
        assert bare(lay, format=format, constants={"memory": 1e-3}).matmul == pytest.approx(64*80*nbytes*numbers/(1e-3*W)), format
    eight = replace(MACHINE, device=replace(MACHINE.device, measured=MACHINE.device.measured | {"int8": MACHINE.device.measured["fp8"]}))
    assert step(lay, format="int8", machine=eight).matmul == step(lay, format="fp8").matmul
    narrow = step(lay, format="fp4", machine=BLACK, constants=ONE | {"memory": 1e-3}, stack=PLAIN)
    assert narrow.matmul == pytest.approx(64*80*3*numbers/(1e-3*BLACK.device.bandwidth))


def test_thinner_is_never_cheaper():
    """The same arithmetic on more tensor or context ranks takes as long, until products wait for the memory; then longer."""
    for cut in "tp", "cp":
        times = [step(Layout(batch=512, microbatch=1, dp=512//n, **{cut: n})).matmul for n in (1, 2, 4, 8, 16, 32, 64)]
        assert times[0] == pytest.approx(times[1]) and times[-1] > times[0]*1.2
        assert all(less <= more*(1 + 1e-12) for less, more in zip(times, times[1:]))


def test_few_tokens_read_all_experts_by_hand():
    """DeepSeek-V3 in sequences of 64 tokens: a device reads each of its 8 experts for the 64 tokens that this one has."""
    def experts(ep):
        return bare(Layout(batch=2048, dp=64, pp=8, ep=ep), 64, shape=model("deepseek-v3")).experts
    H, width, rows, W = 7168, 2048, 64*8, MACHINE.device.bandwidth
    numbers = rows*(H + 2*width) + 8*H*2*width + rows*(width + H) + 8*width*H
    assert experts(32) == pytest.approx(32*58/8*6*numbers/W)
    assert experts(64) == pytest.approx(32*58/8*6*(numbers - 4*3*H*width)/W), "half of the experts, as many rows"


def test_thin_latent_attention_by_hand():
    """DeepSeek-V3 on 64 tensor ranks: bottlenecks are whole on each, what leads out of them is a 64th."""
    s = mixture(Layout(batch=2048, dp=8, tp=64, ep=8), constants={"memory": 1e-3})
    y, W, H = 4096, 1e-3*MACHINE.device.bandwidth, 7168
    shapes = [(61, H, 1536 + 512 + 64), (61, 1536, 2*192), (61, 512, 2*256), (61, 2*128, H), (3, H, 2*288), (3, 288, H),
              (58, H, 2*32), (58, 32, H)]
    assert s.matmul == pytest.approx(256*sum(6*n*(y*(q + c) + q*c) for n, q, c in shapes)/W)


def test_attention_by_hand():
    """Two products over half of all pairs, in 16 bits; recomputed with the layer unless the layout says otherwise."""
    tokens, rate = 512*8192/512, MACHINE.device.ceiling()
    for again, core, factor in (0, None, 3), (1, None, 4), (1, 0, 3), (0, 1, 4), (0, 0.5, 3.5):
        s = bare(replace(LAYOUT, recompute=again, attention_recompute=core))
        assert s.attention == pytest.approx(4*tokens*4096*8192*80*factor/rate), (again, core)
    assert bare(format="fp8").attention == bare().attention
    assert bare(format="fp4", machine=BLACK).attention == pytest.approx(bare().attention*rate/BLACK.device.ceiling())
    assert step(attention=0.25).attention == pytest.approx(4*bare().attention)


def test_a_window_is_what_a_query_sees():
    half = replace(LLAMA, window=1024, windowed=40)
    seen = (4096 + 1024 - 1024**2/(2*8192))/2
    some = (60*4096 + 20*(1024 - 1024**2/(2*8192)))/80
    assert bare(shape=replace(half, windowed=20)).attention == pytest.approx(bare().attention*some/4096)
    assert bare(shape=half).attention == pytest.approx(bare().attention*seen/4096)
    assert bare(shape=replace(half, window=10**6)).attention == pytest.approx(bare().attention), "wider than the sequence"
    assert bare(shape=half).flops < bare().flops and bare(shape=half).matmul == bare().matmul


def test_bytes_between_products_by_hand():
    """Llama 3 70B: 20 a channel, four each for queries, outputs' and keys' channels, six for each of the wide ones."""
    tokens = 512*8192/512*8                                  # of a tensor group, times its share of the layers
    each = 20*8192/8 + (4*(8192 + 1024) + 6*28672)/8
    s = bare(replace(LAYOUT, recompute=1))
    assert s.pointwise == pytest.approx(4*tokens*each*80/MACHINE.device.bandwidth)
    whole = bare(replace(LAYOUT, recompute=1, sequence_parallel=False)).pointwise
    assert whole - s.pointwise == pytest.approx(4*tokens*20*8192*7/8*80/MACHINE.device.bandwidth)


def test_casts_by_hand():
    """Eight bits: what goes in and comes out of four products, four bytes each; none in 16."""
    tokens = 512*8192/512*8
    ins, outs = 2*8192 + (8192 + 28672)/8, 2*8192 + (8192 + 2*1024 + 2*28672)/8
    added = bare(format="fp8").pointwise - bare().pointwise
    assert added == pytest.approx(4*tokens*(ins + outs)*80/MACHINE.device.bandwidth)
    again = [bare(replace(LAYOUT, recompute=1), format=f).pointwise for f in ("fp8", "bf16")]
    assert again[0] - again[1] == pytest.approx(4*tokens*(2*ins + outs)*80/MACHINE.device.bandwidth)


@pytest.mark.parametrize("share", [0, 0.5, 1])
def test_cheap_tensors_made_again_by_hand(share):
    """Llama 3 70B: both norms read and write 16 bits, SwiGLU reads two wide arrays and writes one; nothing else takes longer."""
    tokens, lay = 512*8192/512*8, replace(LAYOUT, recompute=share)
    for format in "bf16", "fp8":
        plain, half, whole = (bare(replace(lay, cheap_recompute=c), format=format) for c in (0, 0.5, 1))
        again = 2*4*8192/8 + 6*28672/8 + (format == "fp8")*2*(2*8192 + 28672/8)      # three products read it again in 16 bits
        assert whole.pointwise - plain.pointwise == pytest.approx((1 - share)*tokens*again*80/MACHINE.device.bandwidth)
        assert half.pointwise - plain.pointwise == pytest.approx((whole.pointwise - plain.pointwise)/2)
        for cause in set(CAUSES) - {"pointwise", "bubble", "data"}:
            assert getattr(whole, cause) == getattr(plain, cause), cause
        assert whole.data <= plain.data, "a longer step hides more"
        assert whole.bubble == pytest.approx(busy(whole)*3/32 + 3*whole.head)
    apart = replace(lay, sequence_parallel=False)
    more = [bare(replace(x, cheap_recompute=1)).pointwise - bare(x).pointwise for x in (lay, apart)]
    assert more[1] - more[0] == pytest.approx((1 - share)*tokens*8*8192*7/8*80/MACHINE.device.bandwidth), "whole norms on each rank"


def test_cheap_tensors_of_a_mixture_by_hand():
    """DeepSeek-V3 on pairs: four norms, 3 dense layers, and what a rank's copies and its half of the shared expert pass."""
    H, f, wide, m, y = 7168, 2048, 18432, 64, 4096
    lay = Layout(batch=2048, dp=32, tp=2, pp=8, ep=32)
    passed = y/2*8 + y/2
    norms, products = 61*4*y*(2*H + 1536 + 512), 2*3*(3*y*wide/2 + 58*passed*f)
    casts = 2*(61*y*(H + (1536 + 512)/2) + 3*y*(H + wide/2) + 58*(passed*f + y/2*H))
    for format, narrow in ("bf16", 0), ("fp8", 1):
        more = mixture(replace(lay, cheap_recompute=1), format=format).pointwise - mixture(lay, format=format).pointwise
        assert more == pytest.approx(m/8*(norms + products + narrow*casts)/MACHINE.device.bandwidth)


def test_a_policy_buys_bytes_with_seconds():
    """Cheap tensors again, all layers again: less memory at each step, more time; the cheap third of the bytes is nearly free."""
    for shape, lay in (LLAMA, LAYOUT), (model("deepseek-v3"), Layout(batch=2048, dp=64, pp=8, ep=32)):
        steps = [step(replace(lay, **how), 4096, shape=shape) for how in (
            dict(), dict(cheap_recompute=0.5), dict(cheap_recompute=1), dict(recompute=1))]
        times, kept = [s.time for s in steps], [s.footprint.activations for s in steps]
        assert times == sorted(times) and kept == sorted(kept, reverse=True) and len({*times}) == len({*kept}) == 4
        assert times[2]/times[0] < 1.03 < 1.1 < times[3]/times[0] and 0.6 < kept[2]/kept[0] < 0.8


def test_columns_that_fill_no_tile_cost_two_fifths_more():
    narrow = replace(LLAMA, ffn=28672 + 8)                   # 3585 columns a rank
    ffn = LLAMA.layers*(narrow.ffn_matmul)
    whole = bare(shape=narrow).matmul
    assert whole == pytest.approx(512*8192/512*6*(LLAMA.layers_matmul - LLAMA.layers*LLAMA.ffn_matmul + 1.4*ffn)/MACHINE.device.ceiling())


def test_context_by_hand():
    """Two ranks in different nodes gather keys and values: forward, and twice as much again backward."""
    nbytes = 2*2*8192*8*128/8                                # keys and values, 16 bits, a tensor rank's share
    gather = MACHINE.outer.alpha + nbytes/2/MACHINE.outer.beta
    lay = Layout(batch=512, dp=8, cp=2, tp=8, pp=4, sequence_parallel=True)
    assert bare(lay).context == pytest.approx(64*20*3*gather)
    assert bare(replace(lay, recompute=1)).context == pytest.approx(64*20*4*gather)
    assert bare(lay, adapters=0.5).context == pytest.approx(64*20*3*(MACHINE.outer.alpha + nbytes/MACHINE.outer.beta))


def test_stages_by_hand():
    """Three of four stages send on, and all but the first send gradients back; each tensor rank its share."""
    send = MACHINE.outer.alpha + 2*8192*8192/8/MACHINE.outer.beta
    assert bare().pipeline == pytest.approx(2*32*3/4*send)
    assert bare(replace(LAYOUT, chunks=2)).pipeline == pytest.approx(2*32*(2 - 1/4)*send)
    assert bare(stack=replace(PLAIN, sends=0.25)).pipeline == pytest.approx(bare().pipeline/4)
    near = Layout(batch=512, dp=1, tp=2, pp=4)               # two of four stages are on the other half of the node
    send = (MACHINE.outer.alpha + 8192*8192/MACHINE.outer.beta)/4 + 3/4*(MACHINE.inner.alpha + 8192*8192/MACHINE.inner.beta)
    assert bare(near, machine=cluster("dgx-h100", 8)).pipeline == pytest.approx(2*512*3/4*(
        MACHINE.inner.alpha + 8192*8192/MACHINE.inner.beta)), "one node: there is no other link"
    two = replace(MACHINE, levels=[(8, MACHINE.inner), (8, MACHINE.outer)])
    assert bare(near, machine=two).pipeline == pytest.approx(2*512*3/4*send)


def test_what_each_stage_sends_by_hand():
    """Over a network so slow that nothing hides it: bytes per parameter and step, gradients of 4 bytes, weights of 2."""
    def data(zero, **stack):
        return bare(Layout(batch=2048, dp=512, zero=zero), network=1e-6, adapters=1e-6, weight=2, grad=4,
                    stack=replace(PLAIN, **stack)).data
    sent = [2*4, 4 + 2, 4*4 + 2, 4*(4 + 2*2)]                # four micro-batches
    assert [data(zero)/data(0) for zero in range(4)] == pytest.approx([b/sent[0] for b in sent], rel=1e-3)
    assert data(1, all_reduce=True)/data(1) == pytest.approx((2*4 + 2)/6, rel=1e-3), "gradients summed everywhere"
    assert bare(Layout(batch=32, cp=512), network=1e-6, adapters=1e-6).data > 0, "context ranks share the gradients too"


@pytest.mark.parametrize("zero, windows, share", [(0, 1, (4, 6)), (1, 1, (4, 6)), (2, 4, (4, 6)), (3, 4, (6, 6))])
def test_what_hides_behind_what_by_hand(zero, windows, share):
    """Traffic too long to hide: recomputation, two more parts of the arithmetic, hides exactly its own time more."""
    over, whole = share
    hidden = []
    for r in 0, 1:
        s = bare(Layout(batch=2048, dp=512, zero=zero, recompute=r), network=1e-3, adapters=1e-3)
        hidden.append((windows*(over + 2*r)/(whole + 2*r)*busy(s)/4, s.data))
    (less, exposed), (more, still) = hidden
    assert exposed - still == pytest.approx(more - less, rel=1e-6) and still > 0


@pytest.mark.parametrize("zero, gathers, scatters", [(1, 1, 1), (2, 1, 4), (3, 8, 4)])
def test_copies_in_groups_meet_after_each_scatter(zero, gathers, scatters):
    """Hybrid, four micro-batches: gathered and scattered in the node of eight; of each scattered gradient an eighth summed across."""
    s = bare(Layout(batch=2048, dp=512, zero=zero, shards=8), network=1e-6, adapters=1e-6)
    n, inner, outer = 2*LLAMA.params, 1e-6*MACHINE.inner.beta, 1e-6*MACHINE.outer.beta
    assert s.data == pytest.approx((gathers + scatters)*n*7/8/inner + scatters*2*n/8*63/64/outer, rel=1e-3)


@pytest.mark.parametrize("zero, micro, passes", [(1, 1, 2), (2, 4, 5), (3, 4, 12)])
def test_copies_meet_behind_backward_passes(zero, micro, passes):
    """Forward passes hide gathers and no sums: of ZeRO-3 the greater of two remainders waits."""
    n, outer, waits = 2*LLAMA.params, MACHINE.outer.beta, []
    for slow, near in itertools.product((1, 0.2, 0.1, 0.03, 0.01), (1, 0.01)):
        s = bare(Layout(batch=2048, dp=512, zero=zero, shards=8), adapters=slow, network=near)
        sums = micro*2*(n/8*63/64/(slow*outer) + 63*MACHINE.outer.alpha)
        inside = passes*n*7/8/(near*MACHINE.inner.beta) + 7*MACHINE.inner.alpha
        backward = micro*2/3*busy(s)/4
        alone, both = sums - backward, inside + sums - (busy(s) if zero == 3 else backward)
        assert s.data == pytest.approx(max(0, alone, both)), (slow, near)
        waits.append((s.data > 0, alone > both))
    assert {True, False} == {some for some, _ in waits} and (True, False) in waits and ((True, True) in waits) == (zero == 3)


def test_one_copy_is_shared_by_all():
    s = bare(Layout(batch=2048, dp=512, zero=3, shards=8))
    assert s.update == pytest.approx(2*16*LLAMA.params/8/MACHINE.device.bandwidth)
    whole = [bare(Layout(batch=2048, dp=512, zero=3, shards=n), network=1e-3, adapters=1e-3).data for n in (None, 512)]
    assert whole[0] == pytest.approx(whole[1])


def test_unshared_adapters_carry_everything():
    lay = Layout(batch=2048, dp=512, zero=3)
    own = bare(lay, adapters=1e-6, stack=replace(PLAIN, shared_adapters=False)).data
    assert own == pytest.approx(8*bare(lay, adapters=1e-6).data, rel=1e-3)


# --- experts

def mixture(lay=None, **kw):
    return bare(lay or Layout(batch=2048, dp=64, pp=8, ep=32), 4096, shape=model("deepseek-v3"), **kw)


def test_experts_by_hand():
    """58 sparse layers of DeepSeek-V3 on 64 of 512 devices: 8 of 256 experts and one that all visit."""
    e, H = model("deepseek-v3").experts, 7168
    tokens, rate = 2048*4096/64/8, MACHINE.device.ceiling()
    s = mixture()
    assert s.experts == pytest.approx(6*58*tokens*8*3*H*e.ffn/rate)
    attention = H*1536 + 1536*128*192 + H*(512 + 64) + 512*128*256 + 128*128*H
    assert s.matmul == pytest.approx(6*tokens*(61*attention + 3*3*H*18432 + 58*3*H*2048)/rate)
    assert s.attention == pytest.approx(12*61*tokens*2048*128*160/rate), "192 numbers of queries, 128 of values"
    half = replace(PLAIN, exchange=0.5)
    assert mixture(stack=half).all_to_all == pytest.approx(s.all_to_all/2)


def test_dispatch_and_combine_by_hand():
    """32 ranks on four nodes: a copy per node crosses, a copy per expert inside; twice forward, twice backward."""
    y, k, H = 4096, 8, 7168
    across = 2*y*H*4*(1 - (3/4)**k)*3/4/MACHINE.outer.beta
    inside = 2*y*H*k*7/8/MACHINE.inner.beta
    one = 20e-6 + max(across, inside)
    assert across > inside and mixture().all_to_all == pytest.approx(32*58/8*4*one)
    assert mixture(Layout(batch=2048, dp=64, pp=8, ep=32, recompute=1)).all_to_all == pytest.approx(32*58/8*6*one)
    node = Layout(batch=2048, dp=64, pp=8, ep=8)
    assert mixture(node).all_to_all == pytest.approx(32*58/8*4*(20e-6 + inside))
    assert mixture(Layout(batch=2048, dp=64, pp=8)).all_to_all == 0, "each device has all experts"


def test_the_host_routes():
    """What the products of experts do not cover of it, in each sparse layer and micro-batch."""
    products = mixture().experts/(58*32/8)
    for graphs, share in ("none", 1), ("modules", 1/2), ("iteration", 1/10):
        for host in 2*products/share, 5*products/share:
            s = mixture(constants={"routing": host, "graph": 0.1}, stack=replace(PLAIN, graphs=graphs))
            assert s.routing == pytest.approx((share*host - products)*58*32/8), graphs
            assert s.experts + s.routing == pytest.approx(share*host*58*32/8), "the longer of the two"
    assert bare(constants={"routing": 1}).routing == 0, "a dense model"


def test_products_of_experts_hide_the_host():
    """Nothing is left where they are longer, never less than nothing, all of it where they take no time; messages hide none."""
    products = mixture().experts/(58*32/8)
    waits = [mixture(constants={"routing": share*products}).routing for share in (0, 0.5, 1, 1.5)]
    assert waits[:2] == [0, 0] and waits[2] == pytest.approx(0, abs=1e-9) and waits[3] == pytest.approx(products/2*58*32/8)
    assert mixture(constants={"routing": 1e-3, "memory": 1e6}, matmul=1e6).routing == pytest.approx(1e-3*58*32/8, rel=1e-4)
    slow = mixture(network=1e-3, adapters=1e-3)
    assert slow.all_to_all > 100*mixture().all_to_all and slow.routing == mixture().routing > 0
    lay = Layout(batch=2048, dp=64, pp=8, ep=32)
    more = [mixture(replace(lay, microbatch=y), constants={"routing": 1.5*products}) for y in (1, 2)]
    assert more[0].routing > 0 == more[1].routing and more[0].experts == pytest.approx(more[1].experts), "twice the tokens at a time"
    again = mixture(replace(lay, recompute=1), constants={"routing": 1.5*products})
    assert again.routing == pytest.approx(1/6*products*58*32/8), "products done again hide it, too"
    pairs = Layout(batch=2048, dp=32, tp=2, pp=8, ep=32)
    products = mixture(pairs).experts/(58*64/8)
    assert mixture(pairs, constants={"routing": 1.5*products}).routing == pytest.approx(products/2*58*64/8), "a rank's own products"


def test_the_host_is_the_same_for_numbers_arrays_and_symbols():
    lay, R = Layout(batch=2048, dp=64, pp=8, ep=32), sp.Symbol("R", positive=True)
    hosts = [1e-4, 5e-3, 2e-2, 0.5]
    one = [mixture(lay, constants={"routing": h}).routing for h in hosts]
    assert one[0] == 0 < one[2] < one[3]
    traced = sp.lambdify(R, mixture(lay, constants={"routing": R}).routing, "math")
    assert [traced(h) for h in hosts] == pytest.approx(one)
    sizes = [1, 2, 4]
    many = mixture(replace(lay, microbatch=np.array(sizes, float)), constants={"routing": 2e-2}).routing
    assert many == pytest.approx([mixture(replace(lay, microbatch=y), constants={"routing": 2e-2}).routing for y in sizes])


def test_experts_are_shared_and_summed_apart():
    """ZeRO-1, 64 replicas of the dense part and two of each expert, on a slow network."""
    shape = model("deepseek-v3")
    routed = 58*256*3*7168*2048
    dense, theirs = 2*(shape.params - routed)/8, 2*routed/32/8
    s = mixture(network=1e-6, adapters=1e-6, stack=replace(PLAIN, exchange=0))
    inner, outer = 1e-6*MACHINE.inner.beta, 1e-6*MACHINE.outer.beta
    assert s.data == pytest.approx(2*(dense*7/8/inner + dense*7/8/8/outer) + 2*theirs/2/outer, rel=1e-2)
    state = 2*(dense + theirs) + 6*(dense/64 + theirs/2)
    assert s.update == pytest.approx(2*state/MACHINE.device.bandwidth)


def test_a_mixture_on_tensor_ranks_by_hand():
    """DeepSeek-V3 on pairs: attention, dense and shared blocks are cut; each rank sends its half of the tokens to experts."""
    H, f, wide, m, y = 7168, 2048, 18432, 64, 4096
    lay = Layout(batch=2048, dp=32, tp=2, pp=8, ep=32)
    W = MACHINE.device.bandwidth
    whole = H*(1536 + 512 + 64)
    cut = 1536*128*192 + 512*128*256 + 128*128*H
    rows, keys = y/2*8, 128*192
    stream = 61*3*y*(20*H + 4*(128*128 + keys)/2) + 2*3*3*(3*y*wide/2 + 58*(rows + y/2)*f)
    ins = 61*(H + (128*128 + 1536 + 512)/2) + 3*(H + wide/2)
    outs = 61*(H + (keys + 2*keys)/2) + 3*(H + 2*wide/2)
    casts = 4*y*(ins + outs) + 4*58*(rows + y/2)*(H + f + H + 2*f)
    for format, narrow in ("bf16", 0), ("fp8", 1):
        s, fast = mixture(lay, format=format), MACHINE.device.ceiling(format)
        assert s.matmul == pytest.approx(m/8*6*y*(61*(whole + cut/2) + 3*3*H*wide/2 + 58*3*H*f/2)/fast)
        assert s.experts == pytest.approx(m/8*6*58*rows*3*H*f/fast)
        assert s.pointwise == pytest.approx(m/8*(stream + narrow*casts)/W)
    across = 2*y/2*H*4*(1 - (3/4)**8)*3/4/MACHINE.outer.beta
    assert s.all_to_all == pytest.approx(m/8*58*4*(20e-6 + across))
    assert mixture(replace(lay, sequence_parallel=True)).tensor == pytest.approx(10/8*mixture(lay).tensor)


def test_attention_columns_that_fill_no_tile():
    odd = replace(LLAMA, head_dim=129)                       # 64*129/8 columns, 1032, and 16 does not divide them
    attention, ffn = LLAMA.layers*odd.attention_matmul, LLAMA.layers*LLAMA.ffn_matmul
    assert bare(shape=odd).matmul == pytest.approx(512*8192/512*6*(1.4*attention + ffn)/MACHINE.device.ceiling())


def test_hybrid_copies_of_experts():
    """Groups of 32 of 64 replicas, on pairs: 16 replicas of each expert, eight in a group, two groups."""
    shape, slow = model("deepseek-v3"), dict(network=1e-6, adapters=1e-6, stack=replace(PLAIN, exchange=0, tensor=0))
    routed = 58*256*3*7168*2048
    dense, theirs = 2*(shape.params - routed)/2/4, 2*routed/8/4
    inner, outer = 1e-6*MACHINE.inner.beta, 1e-6*MACHINE.outer.beta
    s = mixture(Layout(batch=2048, dp=64, tp=2, pp=4, ep=8, shards=32), **slow)
    once = dense*3/4/inner + dense/4*7/8/outer               # four of a group in a node
    apart = theirs*7/8/outer                                 # eight ranks apart: one of a group in a node
    between = dense/32*1/2/outer + theirs/8*1/2/outer
    assert s.data == pytest.approx(2*once + 2*apart + 2*between, rel=1e-2)
    for zero, kept in (1, 4 + 12/32), (2, 2 + 14/32), (3, 16/32):
        theirs_kept = {1: 4 + 12/8, 2: 2 + 14/8, 3: 16/8}[zero]
        s = mixture(Layout(batch=2048, dp=64, tp=2, pp=4, ep=8, shards=32, zero=zero))
        assert s.update == pytest.approx(2*(dense/2*kept + theirs/2*theirs_kept)/MACHINE.device.bandwidth), zero
    few = mixture(Layout(batch=2048, dp=64, tp=2, pp=4, ep=64, shards=16, zero=3))
    assert few.update == pytest.approx(2*(dense/2 + routed/64/4*16)/MACHINE.device.bandwidth), "groups smaller than those of experts"
    assert mixture(Layout(batch=2048, dp=64, tp=2, pp=4, ep=8, zero=0, shards=32), **slow).data == pytest.approx(
        mixture(Layout(batch=2048, dp=64, tp=2, pp=4, ep=8, zero=0), **slow).data), "nothing is sharded"


@pytest.mark.parametrize("zero, sums", [(1, 1), (2, 32), (3, 32)])
def test_copies_of_experts_meet_as_often_as_the_rest(zero, sums):
    """Groups of 16 of 64 replicas: two of a group hold an expert, four groups; the network is slow, a copy's own ranks are fast."""
    shape = model("deepseek-v3")
    routed = 58*256*3*7168*2048
    dense, theirs = 2*(shape.params - routed)/8, 2*routed/8/8
    lay = Layout(batch=2048, dp=64, pp=8, ep=8, shards=16, zero=zero)
    slow, one = (mixture(replace(lay, shards=n), adapters=1e-6, stack=replace(PLAIN, exchange=0, sends=0)).data for n in (16, 64))
    outer = 1e-6*MACHINE.outer.beta
    passes = sums + {1: 1, 2: 1, 3: 64}[zero]
    inside = passes*(dense/2/8 + theirs/2)/outer             # two nodes; the two that hold an expert are in both
    assert slow == pytest.approx(inside + sums*2*(dense/16 + theirs/2)*3/4/outer, rel=1e-2)
    assert one == pytest.approx(passes*(dense*7/8/8 + theirs*7/8)/outer, rel=1e-2)


def test_seconds_and_bytes_count_the_same_shares():
    """The update reads and writes the state of the footprint: one stage, one tensor rank, any copies, stages and experts."""
    for shape, ep in (model("mixtral-8x7b"), (1, 2, 8)), (model("deepseek-v3"), (8, 64)), (LLAMA, (1,)):
        for ranks, shards, zero in itertools.product(ep, (None, 8, 64, 128, 512), range(4)):
            s = bare(Layout(batch=512, dp=512, ep=ranks, shards=shards, zero=zero), 4096, shape=shape)
            state = s.footprint.weights + s.footprint.grads + s.footprint.optimizer
            assert s.update == pytest.approx(2*state/MACHINE.device.bandwidth), (shape.name, ranks, shards, zero)


def test_hybrid_copies_on_tensor_ranks_and_stages():
    s = bare(Layout(batch=512, dp=32, tp=4, pp=4, zero=3, shards=8), network=1e-6, adapters=1e-6, stack=replace(PLAIN, tensor=0, sends=0))
    n, inner, outer = 2*LLAMA.params/16, 1e-6*MACHINE.inner.beta, 1e-6*MACHINE.outer.beta
    assert s.data == pytest.approx(48*(n/2/inner + n/2*3/4/outer) + 16*2*n/8*3/4/outer, rel=1e-3)


def test_layers_that_predict_further_tokens():
    """Each is a layer more, and the head once more, both on the last stage."""
    shape = model("deepseek-v3")
    plain, more = (bare(Layout(batch=512, dp=64, ep=8), 4096, shape=replace(shape, further=n), machine=cluster("dgx-h100", 64))
                   for n in (0, 1))
    layers = busy(plain) - plain.head
    assert more.head == pytest.approx(2*plain.head + layers/61)
    assert (more.matmul, more.experts, more.flops) == (plain.matmul, plain.experts, plain.flops)


# --- machines

def test_an_axis_of_a_torus_has_two_links():
    """A tensor group lies along one axis of three, shards along all: a third of the bandwidth."""
    chip, wire = accelerator("tpu-v5p"), link("ici-v5p")
    machine = Cluster(device=chip, levels=[Level(512, wire, axes=3)])
    assert 6*wire.beta == chip.scale_up
    lay = Layout(batch=512, dp=64, tp=8, sequence_parallel=False)
    n = 2*8192*8192
    assert bare(lay, machine=machine, seq_len=8192).tensor == pytest.approx(8*80*8*(7*wire.alpha + n*7/8/(2*wire.beta)))
    slow = Cluster(device=chip, levels=[Level(512, replace(wire, beta=wire.beta*1e-6), axes=3)])
    once = 2*LLAMA.params*511/512/(6e-6*wire.beta)
    assert bare(Layout(batch=512, dp=512, zero=3), machine=slow).data == pytest.approx(3*once, rel=1e-3)


def test_a_rack_is_one_fast_domain():
    rack = cluster("nvl72", 72)
    s = bare(Layout(batch=576, dp=9, tp=8), machine=rack)
    assert s.tensor == pytest.approx(64*80*8*(7*rack.inner.alpha + 2*8192*8192*7/8/rack.inner.beta))
    assert cluster("nvl72", 64).node == 64 and cluster("nvl72", 8).node == 8, "racks need not be filled"


def test_ceilings_are_measured_or_carried_over():
    h100, b200, gb300 = (accelerator(x) for x in ("h100-sxm", "b200", "gb300"))
    assert ceiling(h100) == h100.measured["bf16"] == ceiling(h100, "fp16") and ceiling(h100, "fp8") == h100.measured["fp8"]
    assert ceiling(b200, "fp4") == b200.measured["fp8"]*2
    assert ceiling(gb300, "fp8") == accelerator("gb200").measured["fp8"] and ceiling(gb300, "fp4") == 3*ceiling(gb300, "fp8")
    assert ceiling(accelerator("tpu-v6e"), "int8") == accelerator("tpu-v6e").peak("int8")
    assert ceiling(accelerator("v100"), "fp16") == pytest.approx(125e12*271.2/312)
    assert ceiling(accelerator("h800"), "fp8") == h100.measured["fp8"]
    near = replace(h100, measured={}, like="a100-80gb", dense={**h100.dense, "fp9": 1})
    assert ceiling(near, "fp9") == pytest.approx(271.2/312), "a format that the other lacks: its 16 bits"
    assert rates(accelerator("v100"), "fp16", Stack())["wide"][0] == ceiling(accelerator("v100"), "fp16")
    with pytest.raises(ValueError, match="no measured ceiling for format = 'fp8'"):
        ceiling(accelerator("a100-80gb"), "fp8")


def test_kernels_of_a_generation():
    role = lambda device, **stack: rates(accelerator(device), "bf16", Stack(**stack))["attention"][1]
    assert role("h100-sxm") == ("attention-flash3",) and role("h100-sxm", attention="flash2") == ("attention-flash2-hopper",)
    assert role("b200", attention="flash2") == ("attention-flash3",), "no kernels of that generation were slow on it"
    assert role("a100-80gb") == role("tpu-v4") == role("mi300x") == ("attention-flash2",)
    assert role("a100-80gb", attention="scores") == ("matmul-ampere",)
    assert rates(accelerator("mi300x"), "bf16", Stack())["product"][1] == ("matmul-other",)
    assert rates(accelerator("b200"), "fp4", Stack())["product"][1] == ("matmul-blackwell", "four-bits")
    assert rates(accelerator("tpu-v6e"), "int8", Stack())["expert"][1] == ("matmul-tpu-new", "experts-tpu")
    assert rates(accelerator("tpu-v6e"), "int8", Stack())["routing"] == (0, ())


@pytest.mark.parametrize("bad, words", [
    (dict(attention="flash9"), "attention = 'flash9'; allowed: scores, flash2, flash3"), (dict(graphs="all"), "graphs = 'all'"),
    (dict(tensor=-1), "tensor = -1"), (dict(sends=1.5), "1 - sends = -0.5"), (dict(idle="no"), "idle = 'no'")])
def test_a_stack_says_what_is_allowed(bad, words):
    with pytest.raises((ValueError, TypeError), match=words):
        Stack(**bad)


def test_an_unfused_attention_moves_its_scores():
    fused, stored = bare(), bare(stack=replace(PLAIN, attention="scores"))
    tokens = 512*8192/512*8
    moved = 80*12*2*tokens*8192*64/8
    assert stored.pointwise - fused.pointwise == pytest.approx(moved/MACHINE.device.bandwidth)
    assert stored.attention == pytest.approx(2*fused.attention), "masked pairs too"
    odd = replace(LLAMA, head_dim=100)
    old = replace(PLAIN, attention="scores")
    assert bare(shape=odd, stack=old).attention == pytest.approx(4*100/128*stored.attention), "no multiple of 8: a quarter of the rate"
    assert bare(shape=odd).attention == pytest.approx(100/128*fused.attention)


def test_few_micro_batches_keep_few_activations():
    many, few = step(replace(LAYOUT, batch=16*8)), step(replace(LAYOUT, batch=16*2))
    assert few.footprint.activations < many.footprint.activations, "two in flight, not a stage's four"


def test_only_the_model_counts_for_mfu():
    plain, again = step(), step(replace(LAYOUT, recompute=1))
    assert again.flops == plain.flops
    assert again.matmul/plain.matmul == pytest.approx(8/6) and again.head == plain.head, "no output head again"
    assert again.footprint.activations < plain.footprint.activations and again.mfu < plain.mfu


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


def test_a_device_has_its_share_of_the_flops():
    for lay in LAYOUT, replace(LAYOUT, dp=8, cp=2), Layout(batch=512, dp=512):
        s, each = step(lay), train_flops_per_token(LLAMA.matmul_params, LLAMA.layers, LLAMA.attention_width, 4096)
        assert 512*s.flops == pytest.approx(512*8192*each)
        assert s.mfu == pytest.approx(s.tokens*each/(512*MACHINE.device.peak()*s.time)) and s.tokens == 512*8192


def test_stored_scores_by_hand():
    """One byte of mask and two arrays of 16 bits for each pair and head, on 20 layers, four micro-batches in flight."""
    fused, stored = bare(), bare(replace(LAYOUT, scores=1))
    scores = 5*8192*8192*64/8
    assert stored.footprint.activations - fused.footprint.activations == pytest.approx(4*20*scores)
    assert stored.pointwise - fused.pointwise == pytest.approx(32*20*24*scores/5/MACHINE.device.bandwidth)
    half = bare(replace(LAYOUT, scores=0.5))
    assert half.footprint.activations - fused.footprint.activations == pytest.approx(4*20*scores/2)


def test_tensor_ranks_send_eight_messages_a_layer_and_two_where_they_share_the_sequence():
    """Half a ring's all-reduce each. Each half of a layer gathers and scatters forward, and backward, and where its forward pass is
    repeated; with the sequence shared, a rank kept its tokens of X alone, and gathers X again for the gradients of its weights."""
    one, moe = ring_all_reduce_time(2*8192*8192, 8, MACHINE.inner.alpha, MACHINE.inner.beta)/2, model("mixtral-8x7b")
    for again, shared, messages in (0, False, 8), (0, True, 10), (1, False, 12), (1, True, 14), (0.5, False, 10), (0.5, True, 12):
        lay = replace(LAYOUT, recompute=again, sequence_parallel=shared)
        assert bare(lay).tensor == pytest.approx(32*20*messages*one), lay
        for dense in 0, 16, 31:                             # tokens go to experts as they are: no gather around them
            shape, lay = replace(moe, experts=replace(moe.experts, dense=dense)), replace(lay, dp=64, pp=1, ep=8)
            smaller = ring_all_reduce_time(2*4096*4096, 8, MACHINE.inner.alpha, MACHINE.inner.beta)/2
            assert bare(lay, 4096, shape=shape).tensor == pytest.approx(8*(dense + (32 - dense)/2)*messages*smaller), (lay, dense)
    assert bare(stack=replace(PLAIN, tensor=0.5)).tensor == pytest.approx(bare().tensor/2)
    assert bare(network=0.5).tensor > 1.9*bare().tensor, "an override"


def test_bubble_of_a_pipeline_with_a_head():
    """The last stage has the head besides: three slots of the mean are waited for, and m times what it has more."""
    for chunks in 1, 2:
        s = bare(replace(LAYOUT, chunks=chunks))
        more = s.head*(1 - 1/4)                              # on the last stage, over the mean
        assert s.bubble == pytest.approx(busy(s)*3/(32*chunks) + 4*more), chunks
    h1, h2 = (bare(stack=replace(PLAIN, idle=x)).bubble for x in (1/3, 0))
    s = bare()
    assert (s.bubble - h1, s.bubble - h2) == pytest.approx((busy(s)*2/32, busy(s)*3/32))
    assert bare(Layout(batch=512, dp=64, tp=8)).bubble == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize("schedule, make, chunks", [(1, zb_h1, 1), (2, zb_h2, 1), (3, zb_v, 2)])
def test_a_schedule_waits_as_long_as_on_the_clock(schedule, make, chunks):
    """The simulator's step of a third forward, and weight gradients of the layers alone that wait; dense and sparse, recomputed or not."""
    for lay, shape in ((LAYOUT, LLAMA), (replace(LAYOUT, recompute=1), LLAMA), (replace(LAYOUT, recompute=0.5, dp=8, cp=2, microbatch=2), LLAMA),
                       (replace(LAYOUT, ep=8), model("mixtral-8x7b"))):
        plain, s = (bare(replace(lay, chunks=chunks, schedule=k), shape=shape) for k in (0, schedule))
        m, again = lay.microbatches, lay.recompute
        each, products = busy(s)/m, (s.matmul + s.experts)/m
        forward, late = each/(3 + again), products/(3 + again)
        took = simulate(make(4, int(m)), forward, each - forward - late, late).makespan
        uneven = plain.bubble - 3*each/chunks                # the head's stage, of whole backward passes
        assert s.bubble == pytest.approx(took - m*each + uneven, rel=1e-9)
        assert s.pipeline/plain.pipeline == pytest.approx((2 - 2/4)/(2 - 1/4) if schedule == 3 else 1), "at the fold a message stays"
        same = {k: x for k, x in s.seconds.items() if k not in ("bubble", "pipeline")}
        assert same == {k: plain.seconds[k] for k in same} and (s.bubble < plain.bubble or chunks > 1)


def test_schedules_of_arrays_and_symbols_are_those_of_numbers():
    kinds = np.arange(4)
    many = step(replace(LAYOUT, schedule=kinds, chunks=np.array([1, 1, 1, 2])))
    k = sp.Symbol("k", integer=True, nonnegative=True)
    some = step(replace(LAYOUT, schedule=k, chunks=1 + sp.floor(k/3)))
    for schedule in kinds.tolist():
        one = step(replace(LAYOUT, schedule=schedule, chunks=1 + schedule//3))
        assert (many.time[schedule], many.memory[schedule]) == pytest.approx((one.time, one.memory), rel=1e-12)
        assert (float(some.time.subs(k, schedule)), float(some.memory.subs(k, schedule))) == pytest.approx((one.time, one.memory), rel=1e-12)
    for bad in 4, -1, 1.5, np.array([0, 7]):
        with pytest.raises(ValueError, match="schedule = .*; allowed: 0 .1F1B., 1 .ZB-H1., 2 .ZB-H2., 3 .ZB-V."):
            Layout(batch=1, schedule=bad)


@pytest.mark.parametrize("change, words", [
    (dict(pp=1, schedule=1, dp=64), "have one chunk and ZB-V .3. two, in a pipeline; schedule = 1 has 1 on pp = 1."),
    (dict(schedule=3), "schedule = 3 has 1 on pp = 4."), (dict(schedule=2, chunks=2), "schedule = 2 has 2 on pp = 4."),
    (dict(schedule=1, batch=48), "puts weight gradients off by up to 1.*and there are 3 with pp = 4."),
    (dict(schedule=2, batch=96), "by up to 2.*and there are 6 with pp = 4."), (dict(schedule=3, chunks=2, batch=96), "by up to 2.*there are 6 ")])
def test_a_schedule_that_cannot_be_is_refused(change, words):
    said, = replace(LAYOUT, **change).check(LLAMA, MACHINE, 8192)
    assert re.search(words, said), said
    enough = {48: 64, 96: 112}.get(change.get("batch"))
    assert not enough or replace(LAYOUT, **change | {"batch": enough}).check(LLAMA, MACHINE, 8192) == (), "one micro-batch more"


def test_a_bubble_repeats_every_kind_of_work():
    """Slots of a stage hold arithmetic and messages alike; context messages too, slow ones here."""
    lay = Layout(batch=512, dp=8, cp=2, tp=8, pp=4)
    s = bare(lay, network=0.01, adapters=0.01)
    assert s.context > 0.03*busy(s) < s.tensor and s.bubble == pytest.approx(busy(s)*3/64 + 3*s.head)


def test_the_bound_of_a_stage_is_the_best_of_all_deals():
    """Whole layers, those that the last stage does not have spread over the others: the best deal, tried one by one."""
    for layers, pp, chunks, tau, head in [(126, 8, 4, 0.5, 0.6), (126, 16, 8, 1, 1.2), (61, 4, 4, 1, 4.6), (94, 8, 3, 0.1, 0.24),
                                          (81, 4, 1, 2, 1), (70, 12, 1, 1, 1.4), (7, 3, 2, 3, 20), (80, 1, 1, 2, 1)]:
        even = chunks*-(-layers//(pp*chunks))*tau + head
        deals = [max(-(-(layers - k)//(pp - 1))*tau, k*tau + head) for k in range(layers + 1)] if pp > 1 else []
        args = (layers, pp, chunks, tau, head)
        assert stage_bound(*args, 1) == pytest.approx(min([even, *deals])), args
        assert stage_bound(*args, 0) == pytest.approx(even if layers % (pp*chunks) == 0 else min([even, *deals])), args
        assert stage_bound(*args, 0.5) == pytest.approx((stage_bound(*args, 0) + stage_bound(*args, 1))/2) or layers % (pp*chunks)


def test_uneven_stages_give_the_head_fewer_layers():
    """126 + 1.2 layers on eight stages: sixteen each, and fourteen with the head; 81 on four: 21, and 19 with the head."""
    for layers, most in (126, 16), (81, 21):
        shape, pp = replace(LLAMA, layers=layers), 8 if layers == 126 else 4
        lay = Layout(batch=512, dp=64//pp, tp=8, pp=pp)
        s = bare(lay, shape=shape)
        m, head = 8*pp, s.head*pp/(8*pp)
        tau = (busy(s) - s.head)*pp/(m*layers)
        assert 0 < head/tau < 2 and (pp - 1)*most + (layers - (pp - 1)*most) == layers
        bound = max(most*tau, (layers - (pp - 1)*most)*tau + head)
        assert s.bubble == pytest.approx(m*bound + (pp - 1)*busy(s)/m - busy(s)), layers
    heavy = replace(LLAMA, vocab=4*LLAMA.vocab)
    even, dealt = (bare(shape=heavy, stack=replace(PLAIN, balanced=x)) for x in (0, 1))
    tau = (busy(even) - even.head)*4/32/80
    assert even.bubble - dealt.bubble == pytest.approx(32*min(3*tau, even.head*4/32 - tau)), "21, 21, 21, 17 and the head"


def test_sharding_moves_bytes():
    steps = [step(replace(LAYOUT, zero=z)) for z in range(4)]
    for a, b, kind in zip(steps, steps[1:], ("optimizer", "grads", "weights")):
        assert getattr(b.footprint, kind) == pytest.approx(getattr(a.footprint, kind)/16), kind
    assert steps[0].data == steps[1].data


def test_what_sharding_sends_when_nothing_hides():
    """In gathers or scatters of all weights: two at stages 0 and 1; at stage 2 one for every
    micro-batch and one more; at stage 3 three for every micro-batch."""
    n, inner, outer = 2*LLAMA.params, 1e-6*MACHINE.inner.beta, 1e-6*MACHINE.outer.beta
    once = n*7/8/inner + n*63/64/8/outer
    for zero, passes in enumerate((2, 2, 4 + 1, 4*3)):
        data = bare(Layout(batch=2048, dp=512, zero=zero), network=1e-6, adapters=1e-6).data
        assert data == pytest.approx(passes*once, rel=1e-3), zero


def test_traffic_that_fits_behind_the_arithmetic_is_free():
    lay = Layout(batch=2048, dp=512, zero=3)
    assert step(lay).data == 0 < step(lay, adapters=0.02).data


def test_another_format_of_16_bits_is_its_own():
    measured = MACHINE.device.measured
    other = replace(MACHINE.device, measured={**measured, "fp16": measured["bf16"]/2})
    wide, half = step(), step(machine=replace(MACHINE, device=other), format="fp16")
    assert (half.attention, half.matmul) == pytest.approx((2*wide.attention, 2*wide.matmul))
    assert step(format="fp8").peak == MACHINE.device.peak("fp8")


def test_a_key_value_head_is_whole_on_every_rank():
    """Eight heads on 16 tensor ranks: two ranks hold the same one, and each gathers all of it."""
    eight, sixteen = (bare(Layout(batch=512, dp=64//tp, tp=tp, cp=2, pp=4)) for tp in (8, 16))
    nbytes = 2*2*8192*128
    assert eight.context == pytest.approx(64*20*3*(MACHINE.outer.alpha + nbytes/2/MACHINE.outer.beta))
    assert sixteen.context == pytest.approx(2*eight.context), "the same message, twice the micro-batches"


@pytest.mark.parametrize("change, words", [
    (dict(dp=8), "is 256, and the cluster has 512 devices."), (dict(batch=8), "does not divide into 16 ranks"),
    (dict(batch=24), "does not divide into 16 ranks"), (dict(dp=1, pp=64, chunks=2), "too few for pp\\*chunks = 128"),
    (dict(batch=16*30, chunks=2), "no multiple of 4"), (dict(ep=3), "ep = 3 does not divide")])
def test_an_illegal_layout_is_not_estimated(change, words):
    with pytest.raises(ValueError, match=words):
        step(replace(LAYOUT, **change))


def test_arrays_are_checked_for_devices_and_whole_micro_batches_and_symbols_pass():
    with pytest.raises(ValueError, match=r"dp\*cp\*tp\*pp = array\(\[512, 256\]\), and the cluster has 512 devices"):
        step(replace(LAYOUT, dp=np.array([16, 8])))
    with pytest.raises(ValueError, match=r"batch/\(dp\*microbatch\) = array\(\[32. *,  1.5\]\); allowed: whole"):
        step(replace(LAYOUT, batch=np.array([512, 24])))
    assert step(replace(LAYOUT, tp=np.array([8, 16]), dp=np.array([16, 8]))).time.shape == (2,)
    P = sp.Symbol("P", positive=True)
    assert step(machine=replace(MACHINE, levels=[(8, MACHINE.inner), (P, MACHINE.outer)])).time > 0
    assert step(replace(LAYOUT, batch=P)).time.free_symbols == {P}


def test_names_are_not_the_things():
    for arguments, word in ((("llama3-70b", MACHINE, LAYOUT, 8192), r'model = .*Transformer, such as model\("llama3-70b"\)'),
                            ((LLAMA, "dgx-h100", LAYOUT, 8192), "cluster = 'dgx-h100'; allowed: a Cluster"),
                            ((LLAMA, MACHINE, 512, 8192), "layout = 512; allowed: a Layout")):
        with pytest.raises(TypeError, match=word):
            estimate(*arguments)


def test_errors_name_what_is_wrong():
    with pytest.raises(ValueError, match="measured ceiling"):
        step(machine=replace(MACHINE, device=accelerator("h100-pcie")))
    with pytest.raises(TypeError, match=r"stack = 'new'; allowed: a Stack, such as Stack\(\)"):
        step(stack="new")


def test_the_error_is_that_of_the_class():
    of = lambda s: (s.spread, s.tail)
    entry = specs.read("calibration")
    known = {kind: (entry[f"error-{kind}"]["spread"], entry[f"error-{kind}"]["tail"]) for kind in ("dense-16", "dense-8", "experts", "tpu")}
    assert of(step()) == known["dense-16"] and of(step(format="fp8")) == known["dense-8"]
    assert of(mixture(format="fp8")) == known["experts"]
    chip = Cluster(device=accelerator("tpu-v5p"), levels=[Level(512, link("ici-v5p"), axes=3)])
    assert of(step(machine=chip)) == known["tpu"] and of(step(spread=(0.1, 0.3))) == (0.1, 0.3)
    kinds = [kind_of(x, MACHINE.device, format) for x in (LLAMA, model("mixtral-8x7b")) for format in ("bf16", "fp8")]
    assert kinds == ["dense-16", "dense-8", "experts", "experts"]


def test_every_parameter_has_its_gradient():
    """Of a dense model all of them, exactly; of one with experts those that ranks of an expert share beside the others."""
    for name in ("llama3-8b", "mixtral-8x7b"):
        m = model(name)
        q = work(m, MACHINE, Layout(batch=512, dp=512), 8192)
        assert q.gradient + q.expert_gradient == 2*m.params


def test_a_slower_clock_stretches_every_second():
    """Rates divided and latencies multiplied by three: all times threefold, no byte moved."""
    slow = {kind: {k: v/3 for k, v in getattr(MACHINE.device, kind).items()} for kind in ("dense", "measured")}
    device = replace(MACHINE.device, bandwidth=MACHINE.device.bandwidth/3, **slow)
    levels = tuple(replace(x, link=replace(x.link, alpha=3*x.link.alpha, beta=x.link.beta/3)) for x in MACHINE.levels)
    lay = Layout(batch=512, dp=4, tp=16, pp=4, cp=2, chunks=2, zero=3, recompute=0.5)
    few = dict(adapters=0.05)                                # or all of the traffic hides
    one, three = step(lay, **few), step(lay, machine=replace(MACHINE, device=device, levels=levels),
                                        constants={"step": 3*fitted()["step"]}, **few)
    for cause in set(CAUSES) - {"experts", "all_to_all", "routing"}:
        assert getattr(one, cause) > 0 and getattr(three, cause) == pytest.approx(3*getattr(one, cause)), cause
    assert three.memory == one.memory and three.mfu == pytest.approx(one.mfu) and three.spread == pytest.approx(one.spread)


def test_the_fullest_stage_remembers_most():
    even, odd = step(replace(LAYOUT, recompute=1)), step(replace(LAYOUT, recompute=1), shape=replace(LLAMA, layers=81))
    input_ = 2*8192*8192/8
    assert odd.footprint.activations - even.footprint.activations == pytest.approx(4*input_), "one layer more, four micro-batches in flight"


def test_tensor_ranks_in_two_nodes_meet_over_the_adapters():
    n, inner, outer = 2*8192*8192, MACHINE.inner, MACHINE.outer
    one = (7*inner.alpha + 7/8*n/inner.beta) + (outer.alpha + 1/2*n/8/outer.beta)
    assert bare(replace(LAYOUT, dp=8, tp=16)).tensor == pytest.approx(64*20*10*one)


def test_more_bandwidth_is_never_slower():
    """Twice any rate or link: no cause takes longer, except what less arithmetic hides."""
    lay, base = Layout(batch=2048, dp=32, tp=4, pp=4, ep=32), fitted()
    for shape in model("deepseek-v3"), LLAMA:
        lay = replace(lay, ep=32 if shape.experts else 1)
        one = step(lay, 4096, shape=shape).time
        for name in base:
            faster = base[name]*(2 if name not in ("step", "routing", "graph") else 1/2)
            assert step(lay, 4096, shape=shape, constants={name: faster}).time <= one*(1 + 1e-12), name


# --- the world

def old(runs):
    """Runs of whole models: without the B200 steps."""
    return [r for r in runs if r.source != "simumax2026"]


def test_every_run_is_sourced_and_legal():
    runs = published_runs()
    keys = set(re.findall(r"^@\w+\{([^,]+),", (ROOT/"references.bib").read_text(), re.M))
    assert len(runs) == 449 and len(old(runs)) == 406 and len(published_rows()) > 500
    assert {r.source for r in runs} <= keys
    assert all(r.layout.check(r.model, r.cluster) == () for r in runs), "what ran cannot be illegal"
    assert all(r.row["confidence"] in ("file", "paper-sure") for r in old(runs))
    assert len(refused_rows()) + 406 == len(published_rows()) + len(mixtral_runs()) and all(why.endswith(".") for _, why in refused_rows())


@pytest.mark.parametrize("key, words", [("r0289", "Weights or optimizer state live on the host (activations/params of 20 layers"),
                                        ("r0736", "live on the host (CPU AdamW offload)"), ("r0573", "It is lora"),
                                        ("m-t3-1", "leaves out a predictor"), ("m-zoo-1", "leaves out a predictor"),
                                        ("m-tpu-3", "leaves out a predictor"), ("m-nemo-1", "It is r0550 a second time.")])
def test_a_refused_row_says_why(key, words):
    why = {row["row_id"]: reason for row, reason in refused_rows()}
    assert any(words in reason for k, reason in why.items() if k == key or not key.startswith("r02") and words in reason)
    assert {r.key for r in published_runs()}.isdisjoint(why)


def test_unseen_runs_are_of_one_further_source_and_consistent():
    """Their published utilization, tokens a second and seconds agree; the first report counts the embedding as a product."""
    runs = unseen_runs()
    keys = set(re.findall(r"^@\w+\{([^,]+),", (ROOT/"references.bib").read_text(), re.M))
    assert len(runs) == 26 and {r.source for r in runs} <= keys - {r.source for r in published_runs()}
    assert {round(r.model.params/1e9, 2) for r in runs} == {8.03, 14.84, 70.55, 174.99}
    for r in runs:
        assert r.layout.check(r.model, r.cluster) == () and r.layout.devices == int(r.row["num_accelerators"])
        assert r.seconds == pytest.approx(float(r.row["p_step_s"]), rel=.005)
        products = r.model.params if "mfu_scaling" in r.row["source_doc"] else r.model.matmul_params
        flops = 6*products + 12*r.model.layers*r.model.hidden*r.seq_len
        assert 100*flops*float(r.row["p_tokens_s"])/(r.layout.devices*989e12) == pytest.approx(float(r.row["p_mfu_pct"]), abs=.06)
        assert (r.stack.attention, r.stack.tensor, r.layout.recompute, r.layout.attention_recompute) == ("flash2", 1, 1, 1)
        assert r.layout.zero == (3 if r.layout.dp > 1 else 0) and r.layout.sequence_parallel == (r.layout.tp > 1)


def test_mixtral_runs_are_of_known_sources_and_consistent():
    """Seconds follow from what is printed, with causal attention at half where utilization is; layouts are legal."""
    runs = mixtral_runs()
    keys = set(re.findall(r"^@\w+\{([^,]+),", (ROOT/"references.bib").read_text(), re.M))
    assert len(runs) == 43 and len({r.key for r in runs}) == 43 and {r.source for r in runs} <= keys
    assert {r.key for r in runs} & {r.key for r in published_runs()} == {
        "m-gpu-1", "m-tpu-1", "m-tpu-2", "m-nemo-2", "m-nemo-3", "m-nemo-4"}
    assert all((r.row["complete"] == "y") != ("not stated" in r.row["flags"] or r.key == "m-tpu-3") for r in runs)
    for r in runs:
        assert r.layout.check(r.model, r.cluster, r.seq_len) == () and r.layout.devices == int(r.row["num_accelerators"])
        assert r.model.params == model(r.model.name).params and r.layout.chunks in (1, 7, 14)
        each = 6*r.model.matmul_params + 6*r.model.layers*r.model.hidden*r.seq_len
        rate = each*r.layout.batch*r.seq_len/(r.seconds*r.layout.devices)
        if r.row["p_mfu_pct"]:
            assert 100*rate/989.5e12 == pytest.approx(float(r.row["p_mfu_pct"]), rel=1e-4)
        if r.row["p_tflops_per_acc"]:
            assert rate == pytest.approx(1e12*float(r.row["p_tflops_per_acc"]), rel=1e-4)
        if r.row["p_tokens_s_acc"]:
            assert r.layout.batch*r.seq_len/r.seconds/r.layout.devices == pytest.approx(float(r.row["p_tokens_s_acc"]), rel=1e-4)
        assert ("FSDP" in r.row["source_table"] or r.kind == "tpu") == (r.layout.zero == 3)
    known = next(r for r in published_runs() if r.key == "r0550")
    again = next(r for r in runs if r.key == "m-nemo-1")
    assert again.seconds == pytest.approx(known.seconds, rel=1e-4) and again.layout == known.layout


def run(key):
    r = next(r for r in published_runs() if r.key == key)
    return r, estimate(**r.arguments)


@pytest.mark.parametrize("key, field, value", [
    ("r0880", "format", "bf16"), ("r0250", "format", "fp4"), ("r0252", "format", "fp8"), ("r0686", "format", "int8"),
    ("r0835", "format", "fp16"), ("r0593", "kind", "dense-8"), ("r0216", "kind", "experts"), ("r0713", "kind", "tpu"),
    ("r0576", "layout.ep", 64), ("r0576", "layout.microbatch", 1), ("r0575", "layout.ep", 8), ("r0728", "layout.microbatch", 2),
    ("r0571", "layout.shards", None), ("r0734", "layout.shards", 128), ("r0628", "layout.shards", 64), ("r0687", "layout.shards", 256),
    ("r1001", "layout.shards", None), ("r1009", "layout.shards", 8), ("r0841", "layout.recompute", 0), ("r0841", "layout.attention_recompute", 1),
    ("r0617", "layout.recompute", 0.5), ("r0617", "layout.attention_recompute", 0), ("r0616", "layout.attention_recompute", 0.5),
    ("r0475", "layout.recompute", 5/32), ("r0351", "layout.recompute", 0.1), ("r0726", "layout.recompute", 1), ("r0701", "layout.attention_recompute", 0),
    ("r0216", "stack.graphs", "iteration"), ("r0394", "stack.graphs", "modules"), ("r0351", "stack.graphs", "none"),
    ("r0216", "stack.exchange", 0.5), ("r0394", "stack.exchange", 1), ("r0610", "stack.tensor", 1), ("r0611", "stack.tensor", 0.5),
    ("r0880", "stack.all_reduce", True), ("r0803", "stack.shared_adapters", False), ("r0760", "stack.balanced", 1),
    ("r0002", "stack.attention", "flash2"), ("r0835", "stack.attention", "scores"), ("r0747", "stack.attention", "flash3"),
    ("r0216", "model.further", 1), ("r0351", "model.further", 1), ("r0708", "model.experts.dense", 24), ("r0687", "model.window", 1024),
    ("r0687", "model.windowed", 40), ("r0216", "cluster.node", 64), ("r0222", "cluster.node", 8), ("r0628", "cluster.node", 64),
    ("r0880", "cluster.outer.beta", 6.25e9), ("r0216", "cluster.outer.beta", 100e9), ("r0352", "cluster.outer.beta", 50e9),
    ("r0780", "cluster.inner.beta", 150e9), ("r0628", "cluster.outer.beta", 6.25e9)])
def test_columns_are_read_as_they_are_meant(key, field, value):
    found = run(key)[0]
    for name in field.split("."):
        found = getattr(found, name)
    assert found == (pytest.approx(value) if type(value) is float else value)


def test_shapes_of_the_table_are_the_models_of_the_book():
    runs = {r.model.name: r.model for r in published_runs()}
    for name in ("llama3-8b", "llama3-70b", "llama2-7b", "llama2-13b", "llama2-70b"):
        assert runs[name].params == model(name).params
    assert runs["deepseek-v3"].layers_matmul == model("deepseek-v3").layers_matmul
    assert runs["deepseek-v3"].latent == model("deepseek-v3").latent
    for name, billions in ("kimi-k2", 1026), ("qwen3-235b-a22b", 235), ("qwen3-30b-a3b", 30.5), ("gpt-oss-120b", 117), ("llama4-maverick", 400):
        assert runs[name].params == pytest.approx(billions*1e9, rel=0.01), name


def test_what_ran_fitted():
    """Rows that recompute or park parts of a layer are left out: the table says it too coarsely for bytes."""
    runs = [r for r in old(published_runs()) if r.kind == "dense-16" and r.row["recompute"] != "selective"]
    assert len(runs) > 200
    assert all(estimate(**r.arguments).memory < (1.15 if r.source == "maxtext" else 1.06)*r.cluster.device.memory for r in runs)


# --- the protocol

@pytest.fixture(scope="module")
def bench():
    return Bench(published_runs())


def test_all_runs_at_once_are_the_runs_one_by_one(bench):
    best = np.log([fitted()[name] for name in bench.names])
    causes = bench.causes(best)
    loop = [estimate(**r.arguments).seconds for r in bench.runs]
    for cause in CAUSES:
        assert np.broadcast_to(causes[cause], len(loop)) == pytest.approx([seconds[cause] for seconds in loop], rel=1e-9, abs=1e-12), cause


def test_the_constants_of_the_file_are_what_the_rows_say(bench):
    for name, value in bench.fit().items():
        assert fitted()[name] == pytest.approx(value, rel=6e-3), name
    entries = specs.read("calibration")
    for name in bench.names:
        low, high = entries[name]["interval"]
        assert low*0.97 <= entries[name]["value"] <= high*1.03, name
        assert entries[name]["runs"] > 0 < len(entries[name]["sources"])


def test_errors_stay_within_the_stated_bands(bench):
    """Mean and median error, and the null model's mean, in the folds and with a source left out."""
    table = {row[0]: row[1:] for row in bench.table()}
    runs, fit, folds, out, null, null_out, hindsight = table["all"]
    assert runs == 449 and fit.mean < 0.085 and folds.mean < 0.095 and out.mean < 0.11 and out.median < 0.09
    assert null.mean > 2*folds.mean and null_out.mean > 2.5*out.mean and hindsight.mean > 2*out.mean
    for text, most in (("dense, 16 bits", 0.11), ("dense, 8 and 4 bits", 0.10), ("experts", 0.13), ("TPUs", 0.13)):
        assert table[text][3].mean < most, text
    narrow, wide = bench.coverage()
    assert 0.6 < narrow < 0.76 and 0.88 < wide < 0.98
    for kind in ("dense-16", "dense-8", "experts", "tpu"):
        entry, every = specs.read("calibration")[f"error-{kind}"], np.ones(449, bool)
        widths = np.maximum(bench.widths(every, kind), bench.widths(every, "dense-16"))
        assert widths == pytest.approx((entry["spread"], entry["tail"]), rel=0.1), kind


def test_the_readme_prints_the_protocol(bench):
    narrow, wide = bench.coverage()
    assert f"hold {100*narrow:.0f} and {100*wide:.0f} % of these steps instead of 68 and 95" in (ROOT/"README.md").read_text(encoding="utf-8")
    printed = [[c.strip() for c in line.split("|")[1:-1]] for line in (ROOT/"README.md").read_text(encoding="utf-8").splitlines()
               if re.fullmatch(r"\| .*\(\d+\.\d\) \|", line)]
    assert printed == [[text, str(n), str(out), str(null), str(best)] for text, n, _, _, out, _, null, best in bench.table()]


def test_no_utilization_of_a_class_beats_hindsight(bench):
    log, best = np.log(bench.ideal/bench.seconds), bench.hindsight()
    for kind in np.unique(bench.kinds):
        mine = bench.kinds == kind
        for utilization in np.linspace(0.05, 0.9, 200):
            assert Score.of(log[mine] - np.log(utilization)).mean >= Score.of(best[mine]).mean*(1 - 1e-12), (kind, utilization)


# Two rows worked out on paper: nothing below but numbers of the row, the data sheet and the constants.

def test_a_sharded_row_by_hand():
    """mpt-70b: 80 layers of 8192, 128 H100s, ZeRO-3, one micro-batch of 8 x 2048, all recomputed."""
    r, s = run("r0002")
    assert (r.model.layers, r.model.hidden, r.layout.dp, r.layout.microbatch, r.seq_len) == (80, 8192, 128, 8, 2048)
    c = fitted()
    y, rate, W = 8*2048, 794.5e12, c["memory"]*r.cluster.device.bandwidth
    layers, head = 80*12*8192**2, 8192*r.model.vocab
    assert s.matmul == pytest.approx(8*y*layers/(c["matmul-hopper"]*rate), rel=1e-6)
    assert s.head == pytest.approx(6*y*head/(c["matmul-hopper"]*rate) + 20*y*r.model.vocab/W, rel=1e-6)
    assert s.attention == pytest.approx(y*16*80*8192*1024/(c["attention-flash2-hopper"]*rate), rel=1e-6)
    assert s.pointwise == pytest.approx(80*4*y*8192*(20 + 4*2 + 2*2*4)/W, rel=1e-6)
    assert s.tensor == s.context == s.pipeline == s.data == s.experts == s.routing == 0 and abs(s.bubble) < 1e-9
    state = r.model.params*16/128
    assert s.footprint.weights + s.footprint.grads + s.footprint.optimizer == pytest.approx(state)
    assert s.update == pytest.approx(2*state/W) and s.fixed == c["step"]
    assert 6*r.model.vocab > 34*8192, "the logits need more than the one layer that has been recomputed, once they are gone"
    assert s.footprint.activations == pytest.approx(80*2*y*8192) and s.footprint.head == pytest.approx(6*y*r.model.vocab)
    assert s.footprint.gathered == pytest.approx(2*(2*layers/80 + head) + 2*layers/80, rel=1e-3), "two layers, one end, one gradient"
    assert s.time == pytest.approx(r.seconds, rel=0.25)


def test_a_pipelined_row_by_hand():
    """GPT-3 175B: 8 tensor ranks, 8 stages in 3 chunks, batch 64, all recomputed, scores stored, 64 A100s."""
    r, s = run("r0835")
    lay, c = r.layout, fitted()
    assert (lay.tp, lay.pp, lay.chunks, lay.dp, lay.batch, lay.recompute, r.model.hidden) == (8, 8, 3, 1, 64, 1, 12288)
    y, rate, stream, W = 2048, c["matmul-ampere"]*271.2e12, 2*2048*12288, c["memory"]*2039e9
    layers, head = 96*12*12288**2, 12288*51200
    assert s.matmul == pytest.approx(64*y*8*layers/(64*rate), rel=1e-6)
    assert s.attention == pytest.approx(64*y*16*96*12288*2048/(64*rate), rel=1e-6)
    assert s.head == pytest.approx(64*(6*y*head/8/rate + 20*y*51200/8/W)/8, rel=1e-6)
    layer = 4*y*(20*12288 + (4*2*12288 + 2*2*4*12288)/8) + 12*3*y*2048*96/8
    assert s.pointwise == pytest.approx(64*12*layer/W, rel=1e-6)
    ring = 14*r.cluster.inner.alpha + 2*7/8*stream/(0.82*300e9)
    assert s.tensor == pytest.approx(64*12*6*ring)
    send = r.cluster.outer.alpha + stream/8/(c["adapters"]*r.cluster.outer.beta)
    assert s.pipeline == pytest.approx(2*64*(3 - 1/8)*send)
    assert s.bubble == pytest.approx(busy(s)*7/(64*3) + 7*s.head) and s.data == 0
    assert s.footprint.activations == pytest.approx((8*3 + 8 - 1)*4*stream + y*12288*(10 + 24/8)), "31 chunks of four layers"
    assert 17 < s.time < 22 and r.seconds == pytest.approx(18.13)

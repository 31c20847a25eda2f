"""Tensor parallelism: the unsplit loss and every gradient, the bytes of the formulas, and what must fail."""
import numpy as np
import pytest

from capacity.witness import tiny
from capacity.witness.splits.tensor import (
    AXIS,
    all_gather,
    all_reduce,
    cross_entropy,
    hooks,
    loss,
    merge,
    reduce_scatter,
    sequence_parallel,
    shard,
    sum_norms,
    tensor_parallel,
    unshard,
)
from capacity.witness.spmd import run

BETWEEN = [tensor_parallel, sequence_parallel]
TOKENS, TARGETS = tiny.data()
TARGETS = np.where(np.arange(8) < 6, TARGETS, -1)          # some are not counted
SAMPLES = TOKENS, TARGETS


def model(**sizes):
    return tiny.weights(**{"heads": 8, "kv_heads": 4, "hidden": 8, "ffn": 12, **sizes})


def split(w, t, *how, **changed):
    return run(lambda comm, part: loss(comm, part, SAMPLES, *how, **changed), [shard(w, r, t) for r in range(t)])


def wrong(out, w):
    """The names of the weights whose gradient is not the unsplit one."""
    want = tiny.loss(w, TOKENS, TARGETS)[1]()
    got = unshard([grads for _, grads in out.results])
    assert list(got) == list(want)
    return {name for name in want if not np.allclose(got[name], want[name], rtol=0, atol=1e-10)}


@pytest.mark.parametrize("between", BETWEEN)
@pytest.mark.parametrize("t", [1, 2, 4])
@pytest.mark.parametrize("sizes", [{}, {"layers": 1, "ffn": 20, "vocab": 32, "head_dim": 3}, {"layers": 3, "hidden": 6}],
                         ids=str)
def test_loss_and_every_gradient(between, t, sizes):
    w = model(**{"vocab": 16, **sizes})
    out = split(w, t, between)
    total, _ = tiny.loss(w, TOKENS, TARGETS)
    assert all(abs(got - total) < 1e-10 for got, _ in out.results)
    assert wrong(out, w) == set()
    for name in w:                                         # what every rank has is the same on every rank
        if AXIS.get(name.split(".")[-1]) is None:
            assert all(np.array_equal(grads[name], out.results[0][1][name]) for _, grads in out.results)


def test_a_gradient_scales():
    w = model()
    twice = run(lambda comm, part: tiny_twice(comm, part), [shard(w, r, 2) for r in range(2)])
    want = tiny.loss(w, TOKENS, TARGETS)[1](2.0)
    for name, value in unshard(twice.results).items():
        np.testing.assert_allclose(value, want[name], atol=1e-10)


def tiny_twice(comm, part):
    return tiny.loss(part, TOKENS, TARGETS, **hooks(comm))[1](2.0)


@pytest.mark.parametrize("t", [2, 4])
def test_bytes(t):
    """4 all-reduces a layer, one for each vocabulary layer, 3 numbers a token; under sequence parallelism the norms."""
    w = model()
    L, h, y = len(tiny.blocks(w)), 8, TOKENS.size
    once = 2*(t - 1)*8//t                                  # of an all-reduce, for each number
    words = (4*L + 2)*y*h*once + 3*y*once
    assert set(split(w, t).sent()) == {words}
    assert set(split(w, t, sequence_parallel).sent()) == {words + (2*L + 1)*h*once}


def test_without_f_every_gradient_below_the_head_is_wrong():
    w = model()
    out = split(w, 2, enter=tiny.identity)
    assert abs(out.results[0][0] - tiny.loss(w, TOKENS, TARGETS)[0]) < 1e-10      # the loss shows nothing
    assert wrong(out, w) == set(w) - {"head"}


def test_without_g_the_loss_is_wrong():
    w = model()
    out = split(w, 2, leave=tiny.identity)
    assert abs(out.results[0][0] - tiny.loss(w, TOKENS, TARGETS)[0]) > 1e-3


def test_a_g_that_reduces_on_the_way_back_counts_copies_as_terms():
    w = model(layers=1)
    out = run(lambda comm, part: loss(comm, part, SAMPLES, leave=lambda x: (
        all_reduce(comm, x), lambda dy: all_reduce(comm, dy))), [shard(w, r, 2) for r in range(2)])
    got, want = unshard([g for _, g in out.results]), tiny.loss(w, TOKENS, TARGETS)[1]()
    np.testing.assert_allclose(got["0.down"], 2*want["0.down"], atol=1e-10)
    assert wrong(out, w) == set(w) - {"head", "norm"}


def test_without_the_norms_all_reduce_only_norms_are_wrong_and_are_terms():
    w = model()
    out = split(w, 4, sequence_parallel, lambda comm, grads: grads)
    norms = {name for name in w if name.endswith("norm")}
    assert wrong(out, w) == norms
    want = tiny.loss(w, TOKENS, TARGETS)[1]()
    for name in norms:
        np.testing.assert_allclose(sum(grads[name] for _, grads in out.results), want[name], atol=1e-10)
    out = split(w, 4, sequence_parallel, lambda comm, grads: {k: v/4 for k, v in sum_norms(comm, grads).items()})
    assert norms <= wrong(out, w)                          # the mean is wrong, too


def test_under_tensor_parallelism_summing_the_norms_is_wrong():
    w = model()
    out = run(lambda comm, part: sum_norms(comm, loss(comm, part, SAMPLES)[1]), [shard(w, r, 2) for r in (0, 1)])
    want = tiny.loss(w, TOKENS, TARGETS)[1]()
    np.testing.assert_allclose(out.results[0]["norm"], 2*want["norm"], atol=1e-10)


def test_parts():
    w = model()
    for t in (1, 2, 4):
        parts = [shard(w, r, t) for r in range(t)]
        assert all(np.array_equal(a, b) for a, b in zip(unshard(parts).values(), w.values()))
    assert unshard([{"norm": 0, "head": np.zeros((2, 3))}, {"norm": 1, "head": np.ones((2, 3))}])["norm"] == 0
    with pytest.raises(ValueError, match="size = 8; allowed: a divisor of 4, the length of '0.k'"):
        shard(w, 0, 8)


def test_collectives():
    xs = [np.arange(24.).reshape(2, 4, 3)*10**r for r in range(2)]
    assert all(np.array_equal(v, sum(xs)) for v in run(all_reduce, xs).results)
    assert np.array_equal(np.concatenate(run(reduce_scatter, xs).results, 1), sum(xs))
    assert all(np.array_equal(v, np.concatenate(xs, 1)) for v in run(all_gather, xs).results)


def test_merged_logits_do_not_overflow():
    rng = np.random.default_rng(3)
    z = rng.normal(size=(5, 12))*500
    states = [np.stack([p.max(1), np.exp(p - p.max(1, keepdims=True)).sum(1), 0*p[:, 0]]) for p in np.split(z, 3, 1)]
    for a, b, c in ((0, 1, 2), (2, 0, 1)):
        m, s, _ = merge(merge(states[a], states[b]), states[c])
        np.testing.assert_allclose(m + np.log(s), np.logaddexp.reduce(z, 1), rtol=1e-14)


def test_the_loss_of_large_logits_does_not_overflow():
    z = np.random.default_rng(4).normal(size=(*TOKENS.shape, 16))*2000
    total, back = tiny.cross_entropy(z, TARGETS)
    parts = np.split(z, 4, 2)

    def program(comm, part):
        got, back = cross_entropy(comm)(part, TARGETS)
        return got, back(0.5)

    for (got, d), want in zip(run(program, parts).results, np.split(back(0.5), 4, 2)):
        assert np.isfinite(got) and got == pytest.approx(total, rel=1e-14)
        np.testing.assert_allclose(d, want, atol=1e-10)

"""Context parallelism: the loss and every gradient of the unsplit model, and the bytes of the formulas."""
import warnings
from functools import reduce

import numpy as np
import pytest

from capacity import ring_attention_bytes, ulysses_bytes
from capacity.pictures.drawings import context as drawn
from capacity.witness import tiny
from capacity.witness.splits import context
from capacity.witness.splits.context import (
    State,
    contiguous,
    gathered_attention,
    hybrid,
    merge,
    ring_attention,
    running,
    see,
    shard,
    striped,
    tiled,
    ulysses,
    zigzag,
)
from capacity.witness.spmd import Each, ProgramError, run

LAYOUTS = [contiguous, zigzag, striped]


def same(got, want):
    assert got[0] == pytest.approx(want[0], rel=1e-12)
    assert got[1].keys() == want[1].keys()
    for name in want[1]:
        np.testing.assert_allclose(got[1][name], want[1][name], rtol=0, atol=1e-10, err_msg=name)


def model(heads=4, kv_heads=4, length=16):
    w = tiny.weights(heads=heads, kv_heads=kv_heads, seed=heads + kv_heads)
    tokens, targets = tiny.data(length=length)
    targets = np.where(np.arange(length) == 3, -1, targets)
    total, back = tiny.loss(w, tokens, targets)
    return w, tokens, targets, (total, back())


def trained(w, tokens, targets, places, method):
    P = len(places)
    return run(context.loss, [w]*P, Each([shard((tokens, targets), r, places) for r in range(P)]), places, method)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("P", [1, 2, 4])
@pytest.mark.parametrize("method", [ring_attention, gathered_attention, ulysses])
@pytest.mark.parametrize("heads, kv_heads", [(4, 4), (8, 4)])
def test_loss_and_every_gradient(layout, P, method, heads, kv_heads):
    w, tokens, targets, want = model(heads, kv_heads)
    for got in trained(w, tokens, targets, layout(16, P), method).results:
        same(got, want)


@pytest.mark.parametrize("P", [3, 5, 8])
@pytest.mark.parametrize("method", [ring_attention, gathered_attention])
def test_a_ring_of_any_size_with_one_key_head(P, method):
    w, tokens, targets, want = model(4, 1, 2*P)
    for layout in LAYOUTS:
        same(trained(w, tokens, targets, layout(2*P, P), method).results[0], want)


@pytest.mark.parametrize("inner, P", [(1, 4), (2, 4), (4, 4), (2, 8), (4, 8)])
def test_hybrid(inner, P):
    w, tokens, targets, want = model(8, 4, 16)
    for layout in LAYOUTS:
        same(trained(w, tokens, targets, layout(16, P), hybrid(inner)).results[P - 1], want)


def test_tiles_are_attention():
    w, tokens, targets, want = model(4, 2)
    for size in (1, 3, 16, 99):
        total, back = tiny.loss(w, tokens, targets, attend=tiled(size))
        same((total, back()), want)


def block(rng, b=2, c=6, a=8, g=4, d=3):
    return rng.normal(size=(b, c, a, d)), rng.normal(size=(b, c, g, d)), rng.normal(size=(b, c, g, d))


def attend(comm, qkv, method, places, backward):
    q, k, v = qkv
    at = places[comm.rank]
    out, back = method(comm, places)(q, k, v, at, at)
    return back(out) if backward else out


@pytest.mark.parametrize("P", [2, 4])
def test_bytes(P):
    rng = np.random.default_rng(P)
    b, c, a, g, d = 2, 6, 8, 4, 3
    qkv = [block(rng) for _ in range(P)]
    for method, forward in [(ring_attention, ring_attention_bytes(b*c*P, g*d, P, 8)),
                            (gathered_attention, ring_attention_bytes(b*c*P, g*d, P, 8)),
                            (ulysses, ulysses_bytes(b*c*P, a*d, g*d, P, 8))]:
        one, both = (run(attend, qkv, method, zigzag(c*P, P), backward).sent() for backward in (False, True))
        assert set(one) == {forward}
        again = {ring_attention: 2*forward, gathered_attention: forward, ulysses: forward}[method]
        assert set(both) == {forward + again}


@pytest.mark.parametrize("inner, groups", [(2, 2), (2, 3), (4, 2)])
def test_hybrid_bytes(inner, groups):
    P, rng = inner*groups, np.random.default_rng(0)
    b, c, a, g, d = 2, 6, 8, 4, 3
    sent = run(attend, [block(rng) for _ in range(P)], hybrid(inner), contiguous(c*P, P), False).sent()
    assert set(sent) == {ulysses_bytes(b*c*inner, a*d, g*d, inner, 8)
                         + ring_attention_bytes(b*c*P, g*d/inner, groups, 8)}


def test_rounds():
    qkv = [block(np.random.default_rng(r)) for r in range(4)]
    rounds = {m: run(attend, qkv, m, zigzag(24, 4), True).rounds for m in (ring_attention, gathered_attention, ulysses)}
    assert rounds == {ring_attention: 3 + 6, gathered_attention: 3 + 3, ulysses: 4*3 + 4*3}


@pytest.mark.parametrize("S, P", [(16, 4), (24, 3), (8, 1)])
def test_layouts_deal_out_every_token_once(S, P):
    for layout in LAYOUTS:
        places = layout(S, P)
        assert len(places) == P and {len(p) for p in places} == {S//P}
        assert sorted(np.concatenate(places)) == list(range(S))


def test_zigzag_and_stripes():
    assert [list(p) for p in zigzag(8, 2)] == [[0, 1, 6, 7], [2, 3, 4, 5]]
    assert [list(p) for p in striped(6, 2)] == [[0, 2, 4], [1, 3, 5]]
    with pytest.raises(ValueError):
        zigzag(6, 2)


def test_states_are_a_monoid():
    rng = np.random.default_rng(3)
    q = rng.normal(size=(1, 5, 4, 3))
    keys = [rng.normal(size=(2, 1, 4, 2, 3)) for _ in range(3)]
    at = np.array([0, 3, 5, 8, 11])
    x, y, z = (see(q, *kv, at, np.arange(4*i, 4*i + 4)) for i, kv in enumerate(keys))
    nothing = State(np.full_like(x.m, -np.inf), 0*x.s, 0*x.o)
    assert (z.m == -np.inf).any() and np.isfinite(z.s).all()
    for got, want in [(merge(merge(x, y), z), merge(x, merge(y, z))), (merge(x, z), merge(z, x)),
                      (merge(nothing, z), z), (merge(z, nothing), z), (merge(nothing, nothing), nothing)]:
        for a, b in zip(got, want):
            np.testing.assert_allclose(a, b, rtol=1e-13, atol=1e-15)
    whole = see(q, *np.concatenate(keys, 2), at, np.arange(12))
    for a, b in zip(reduce(merge, (z, x, y)), whole):
        np.testing.assert_allclose(a, b, rtol=1e-13, atol=1e-14)


def test_must_fail_without_the_guard(monkeypatch):
    w, tokens, targets, want = model()
    monkeypatch.setattr(context, "finite", lambda m: m)
    with warnings.catch_warnings():                       # ranks do not inherit np.errstate
        warnings.simplefilter("ignore")
        total, gradients = trained(w, tokens, targets, contiguous(16, 4), ring_attention).results[0]
    assert np.isnan(total) and np.isnan(gradients["0.q"]).any()


def test_must_fail_with_positions_counted_from_zero_on_every_rank():
    w, tokens, targets, want = model()

    def wrong(comm, places):
        def attend(q, k, v, q_at, k_at):
            return ring_attention(comm, [np.arange(len(p)) for p in places])(q, k, v, np.arange(len(q_at)), k_at)
        return attend
    got = trained(w, tokens, targets, contiguous(16, 4), wrong).results[0]
    with pytest.raises(AssertionError):
        same(got, want)


def test_must_fail_without_adding_the_gradients(monkeypatch):
    w, tokens, targets, want = model()
    monkeypatch.setattr(context, "window_all_reduce", lambda comm, x: x)
    got = trained(w, tokens, targets, zigzag(16, 4), ring_attention).results
    with pytest.raises(AssertionError):
        same(got[0], want)
    same((sum(g[0] for g in got), {name: sum(g[1][name] for g in got) for name in w}), want)


def test_ulysses_needs_heads():
    w, tokens, targets, _ = model(4, 2)
    with pytest.raises(ProgramError, match="4 ranks share 2 key-value heads"):
        trained(w, tokens, targets, zigzag(16, 4), ulysses)


@pytest.mark.parametrize("P", [1, 2, 3, 5, 8])
def test_running(P):
    did = run(running, list("abcdefgh")[:P], lambda x, y: x + y)
    assert did.results == ["abcdefgh"[:r + 1] for r in range(P)]
    assert did.rounds <= (P - 1).bit_length()


@pytest.mark.parametrize("deal", [contiguous, zigzag, striped])
@pytest.mark.parametrize("lengths", [None, (5, 4, 7), (1,)*16])
def test_the_drawn_mask_has_the_pairs_of_its_documents(deal, lengths):
    places = deal(16, 4)
    rounds = [drawn.pairs(places, k, lengths) for k in range(4)]
    assert np.array_equal(np.sum(rounds, 0), drawn.pairs(places, None, lengths))
    assert np.sum(rounds) == sum(n*(n + 1)//2 for n in lengths or (16,))
    own = drawn.owners(places)
    one = np.tril(np.ones((16, 16), bool))
    for cut in np.cumsum(lengths or (16,))[:-1]:
        one[cut:, :cut] = False
    for r in range(4):
        mine = [i for i in range(16) if own[i] == r]
        assert drawn.pairs(places, None, lengths)[r] == one[mine].sum()
    for W in (680, 644, 336, 300):
        assert not drawn.mask(W, places, 1, lengths).faults()

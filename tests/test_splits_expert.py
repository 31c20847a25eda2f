"""Experts over ranks: the same loss and gradients as one after the other, and the bytes that were promised."""
from collections import Counter
from fractions import Fraction
from functools import partial
from itertools import combinations
from math import comb

import numpy as np
import pytest

from capacity.pictures.drawings import experts as drawn
from capacity.pictures.shapes import Rect
from capacity.witness import tiny
from capacity.witness.collectives import window_all_reduce
from capacity.witness.splits.expert import ByNode, Direct, apply, is_expert, loss, mixture, route, shard, spread, with_experts
from capacity.witness.spmd import Each, Link, Mismatch, ProgramError, run, two_level

W = with_experts(tiny.weights(), 8)
TOKENS, TARGETS = tiny.data(sequences=8, length=6)


def parts(P):
    return list(zip(np.split(TOKENS, P), np.split(TARGETS, P)))


def whole(**how):
    total, back = tiny.loss(W, TOKENS, TARGETS, feed=mixture(**how))
    return total, back()


def check(did, ep, total, want):
    for r, (value, gradients) in enumerate(did.results):
        assert value == pytest.approx(total, abs=1e-10) and set(gradients) == set(W)
        for name, g in shard(want, r % ep, ep).items():
            np.testing.assert_allclose(gradients[name], g, atol=1e-10, rtol=0)


def by_tag(did, link=None):
    out = Counter()
    for m in did.messages:
        if link in (None, m.link):
            out[m.tag] += m.nbytes
    return out


@pytest.mark.parametrize("how", [dict(k=2), dict(k=3, renormalize=False), dict(k=1, renormalize=False),
                                 dict(k=2, capacity=9), dict(k=8)])
@pytest.mark.parametrize("name", [n for n in W if n[0] in "0e"])
def test_gradient_is_the_slope(name, how):
    along, h = np.random.default_rng(7).normal(size=W[name].shape), 1e-6
    along *= 1/np.abs(along).max()
    up, down = (tiny.loss(W | {name: W[name] + d*along}, TOKENS, TARGETS, feed=mixture(**how))[0] for d in (h, -h))
    slope = (whole(**how)[1][name]*along).sum()
    assert (up - down)/(2*h) == pytest.approx(slope, rel=2e-5, abs=1e-6)


@pytest.mark.parametrize("P, ep", [(1, 1), (2, 2), (4, 4), (8, 8), (4, 2), (8, 2), (8, 4), (2, 1)])
@pytest.mark.parametrize("k, renormalize", [(1, False), (2, True), (2, False), (5, True)])
def test_equals_the_serial_mixture(P, ep, k, renormalize):
    how = dict(renormalize=renormalize)
    check(trained(P, k, ep, **how), ep, *whole(k=k, **how))


def trained(P, k, ep, w=W, program=loss, **how):
    return run(partial(program, **how), [shard(w, r % ep, ep) for r in range(P)], Each(parts(P)), k, ep)


@pytest.mark.parametrize("capacity", [0, 3, 9, 48])
def test_drops_the_same_tokens(capacity):
    how = dict(capacity=capacity)
    check(trained(4, 2, 4, **how), 4, *whole(k=2, **how))


@pytest.mark.parametrize("node_size", [1, 2, 4, 8])
def test_once_per_node_changes_nothing_but_the_bytes(node_size):
    did = trained(8, 3, 8, node_size=node_size)
    check(did, 8, *whole(k=3))


def test_bias_chooses_and_does_not_weigh():
    x = np.random.default_rng(0).normal(size=(20, 8))
    bias = np.zeros(8)
    bias[3] = 9.0
    plain, gates, _ = route(x, W["0.router"], 8, renormalize=False)
    chosen, biased, _ = route(x, W["0.router"], 8, renormalize=False, bias=bias)
    assert (chosen[:, 0] == 3).all()
    np.testing.assert_array_equal(biased[:, 0], np.take_along_axis(gates, np.argsort(plain), -1)[:, 3])


@pytest.mark.parametrize("node_size", [None, 2])
def test_ranks_and_one_process_choose_with_the_same_bias(node_size):
    bias = np.array([0, 0, 0, 0.5, 0, 0, 0, -0.5])
    total, want = whole(k=2, bias=bias)
    assert abs(total - whole(k=2)[0]) > 1e-2
    check(trained(4, 2, 4, bias=bias, node_size=node_size), 4, total, want)


def test_dropped_is_zero_and_kept_is_exact():
    """Tokens of which no copy is dropped come out the same; one that lost all copies comes out 0."""
    rng = np.random.default_rng(3)
    x, w = rng.normal(size=(1, 40, 8)), tiny.block_weights(W, 0)
    full, cut = (mixture(2, capacity=c)(x, w)[0][0] for c in (None, 6))
    chosen, _, _ = route(x[0], w["router"], 2)
    rank = np.array([[(chosen[:t] == e).sum() for e in row] for t, row in enumerate(chosen)])
    kept = rank < 6
    np.testing.assert_array_equal(cut[kept.all(1)], full[kept.all(1)])
    assert not cut[~kept.any(1)].any() and (~kept.any(1)).any()
    lost = kept.sum(1) == 1
    assert lost.any() and (np.abs(cut - full)[lost].max(1) > 1e-3).all()


def every_subset(E, k):
    """Tokens whose router chooses each k-subset of E experts exactly once: logits are the tokens themselves."""
    return np.array([[float(e in s) for e in range(E)] for s in combinations(range(E), k)])


def layer(comm, x, w, k, node_size=None):
    y, back = spread(comm, k, node_size)(x, shard(w, comm.rank, comm.size))
    back(np.ones_like(y))
    return y


@pytest.mark.parametrize("E, k, P", [(6, 2, 3), (6, 3, 2), (8, 2, 4), (8, 3, 8), (4, 1, 4)])
def test_bytes_of_uniform_routing(E, k, P):
    rng = np.random.default_rng(0)
    w = {"router": np.eye(E), "gate": rng.normal(size=(E, E, 3)), "up": rng.normal(size=(E, E, 3)),
         "down": rng.normal(size=(E, 3, E))}
    x = every_subset(E, k)
    tags = by_tag(run(layer, [x]*P, w, k))
    copies = Fraction(P*len(x)*k*(P - 1), P)
    for tag in ("dispatch", "combine", "combine back", "dispatch back"):
        assert tags[tag] == copies*E*8
    assert tags["numbers"] == tags["gates"] == tags["gates back"] == copies*8 and len(tags) == 7


@pytest.mark.parametrize("E, k, N, G", [(6, 2, 3, 1), (6, 3, 3, 2), (8, 2, 4, 2), (8, 3, 2, 4), (8, 5, 2, 2)])
def test_bytes_of_a_token_sent_once_per_node(E, k, N, G):
    rng = np.random.default_rng(0)
    w = {"router": np.eye(E), "gate": rng.normal(size=(E, E, 3)), "up": rng.normal(size=(E, E, 3)),
         "down": rng.normal(size=(E, 3, E))}
    x = every_subset(E, k)
    links = two_level(G, Link(name="inside"), Link(name="across"))
    did = run(layer, [x]*(N*G), w, k, G, link=links)
    nodes = N*(1 - Fraction(comb(E - E//N, k), comb(E, k)))                  # different nodes of a token's experts
    across = N*G*len(x)*nodes*(N - 1)/N*E*8
    tags = by_tag(did, "across")
    for tag in ("dispatch", "combine", "combine back", "dispatch back"):
        assert tags[tag] == across
    if G > 1:
        assert by_tag(did, "inside")["dispatch"] == Fraction(N*G*len(x)*k*(G - 1), G)*E*8
    once = run(layer, [x]*(N*G), w, k, link=links)
    assert by_tag(once, "across")["dispatch"] == N*G*len(x)*k*Fraction(N - 1, N)*E*8 >= across


def test_summing_all_gradients_over_all_ranks_is_wrong():
    """Neighbors hold different experts: their gradients have one shape and no common sum."""
    def careless(comm, part, samples, k, ep):
        total, back = tiny.loss(part, *samples, feed=spread(comm, k))
        return window_all_reduce(comm, total), {n: window_all_reduce(comm, g) for n, g in back().items()}
    did, want = trained(4, 2, 4, program=careless), whole(k=2)[1]
    for name, g in did.results[1][1].items():
        right = np.allclose(g, shard(want, 1, 4)[name], atol=1e-10, rtol=0)
        assert right == (not is_expert(name))
        if is_expert(name):
            np.testing.assert_allclose(g, sum(np.split(want[name], 4)), atol=1e-10)


def test_expert_gradients_need_no_sum_in_their_group():
    """One group: an expert has seen the tokens of all ranks, so its gradient is complete before any all-reduce."""
    def before(comm, part, samples, k, ep):
        return tiny.loss(part, *samples, feed=spread(comm, k))[1]()
    did, (_, want) = trained(4, 2, 4, program=before), whole(k=2)
    for r, gradients in enumerate(did.results):
        for name, g in shard(want, r, 4).items():
            assert np.allclose(gradients[name], g, atol=1e-10, rtol=0) == is_expert(name)


def test_a_renormalized_single_gate_teaches_the_router_nothing():
    _, want = whole(k=1)
    assert not want["0.router"].any() and not want["1.router"].any()
    assert np.abs(whole(k=1, renormalize=False)[1]["0.router"]).max() > 1e-2


def test_a_buffer_of_the_average_size_does_not_fit():
    """Who receives without asking for the sizes first, gets a Mismatch."""
    def guessed(comm, x):
        chosen, _, _ = route(x, W["0.router"], 2)
        to = [x.repeat(2, 0)[chosen.ravel()//4 == r] for r in (0, 1)]
        return comm.sendrecv(to[1 - comm.rank], 1 - comm.rank, 1 - comm.rank, like=np.zeros((20, 8)))
    with pytest.raises(Mismatch, match=r"array of shape \(20, 8\)"):
        run(guessed, list(np.random.default_rng(0).normal(size=(2, 20, 8))))


def test_trips_are_transposes():
    def inner(comm, x, chosen):
        rng = np.random.default_rng(comm.rank)
        for way in (Direct(comm, chosen, 2), ByNode(comm, chosen, 2, 2)):
            sent = way.send(x, "x")
            y = rng.normal(size=sent.shape)
            yield (sent*y).sum(), (way.sum(y, "y")*x).sum()
    rng = np.random.default_rng(5)
    chosen = np.array([[rng.permutation(8)[:3] for _ in range(10)] for _ in range(4)])

    def both(comm, x):
        return list(inner(comm, x, chosen[comm.rank]))
    products = np.array(run(both, list(rng.normal(size=(4, 10, 5)))).results).sum(0)
    np.testing.assert_allclose(products[:, 0], products[:, 1])


def test_apply_with_no_rows():
    w = shard(tiny.block_weights(W, 0), 0, 4)
    y, back = apply(np.zeros((0, 8)), np.zeros(0, int), w)
    dx, dw = back(y)
    assert y.shape == dx.shape == (0, 8) and not any(g.any() for g in dw().values())


def test_experts_that_do_not_divide():
    with pytest.raises(ValueError, match="equal division"):
        shard(with_experts(tiny.weights(), 6), 0, 4)
    with pytest.raises(ProgramError, match=r"sizes = \(2, 3\); allowed: 1, 2, ... with the product 8"):
        run(loss, [W]*8, Each(parts(8)), 2, 3)


@pytest.mark.parametrize("sheet", [680, 644, 336, 300])
def test_the_drawn_matrix_has_a_mark_for_each_term(sheet):
    chosen = [[0, 5], [0, 1], [15, 0], [3, 12]]
    assert drawn.loads(chosen, 16, 4) == [5, 1, 0, 2]
    s = drawn.matrix(sheet, chosen, 16)
    marks = [r.fill for r in s.shapes if isinstance(r, Rect) and r.opacity == .9]
    assert Counter(marks) == {"rank0": 5, "rank1": 1, "rank3": 2} and not s.faults()

"""Compressed gradients: what compressors keep, what roads send and sum, and what is held back for later."""
import numpy as np
import pytest

from capacity import (
    feedback_bound,
    feedback_error_bound,
    gather_break_even,
    level_variance,
    powersgd_ratio,
    rounding_variance_bound,
    sparse_ring_bytes,
    support_union,
    topk_ratio,
)
from capacity.witness import compression as comp
from capacity.witness.spmd import Link, run, two_level

DRAW = np.random.default_rng(28)
COMPRESSORS = {"top": comp.TopK(5), "seed": comp.RandomK(5), "sign": comp.Sign(), "levels": comp.Levels(7)}


def vectors(P, d=60):
    return [DRAW.normal(size=d) for _ in range(P)]


# ---- compressors
def test_top_k_takes_the_largest_and_of_equals_the_first():
    c = comp.TopK(2)
    at, values = c.encode(np.array([1., -3, 3, 3]))
    assert at.tolist() == [1, 2] and values.tolist() == [-3, 3]
    assert c.decode([at, values], 4).tolist() == [0, -3, 3, 0]


def test_bytes_of_the_messages():
    x = np.zeros(64)
    sizes = {name: sum(a.nbytes for a in c.encode(x)) for name, c in COMPRESSORS.items()}
    assert sizes == {"top": 5*12, "seed": 5*8, "sign": 64//8 + 8, "levels": 64 + 8}
    assert sum(a.nbytes for a in comp.TopK(6, np.float16).encode(x.astype(np.float16))) == topk_ratio(6/64, 2, 2)*128


def test_who_keeps_what():
    for x in vectors(20):
        kept = {name: 1 - ((c.decode(c.encode(x, 1), 60) - x)**2).sum()/(x @ x) for name, c in COMPRESSORS.items()}
        assert kept["top"] >= 5/60 and 0 < kept["seed"] < 1
        assert kept["sign"] == pytest.approx(np.abs(x).sum()**2/60/(x @ x))


def test_random_rounding_has_the_right_mean_and_the_variance_of_the_formula():
    x, s, trials = DRAW.normal(size=30), 3, 4000
    c = comp.Levels(s)
    seen = np.array([c.decode(c.encode(x, t), 30) for t in range(trials)])
    exact = level_variance(s*np.abs(x)/np.linalg.norm(x) % 1, s).sum()
    assert np.abs(seen.mean(0) - x).max() < 4*np.linalg.norm(x)/s/2/trials**.5
    assert ((seen - x)**2).sum(1).mean()/(x @ x) == pytest.approx(exact, rel=.03)
    assert exact < rounding_variance_bound(30, s)
    assert np.array_equal(c.decode(c.encode(0*x), 30), 0*x)


# ---- roads
@pytest.mark.parametrize("name", COMPRESSORS)
@pytest.mark.parametrize("P", [1, 2, 5])
def test_gathering_adds_what_is_decoded(name, P):
    xs, c = vectors(P), COMPRESSORS[name]
    got = run(comp.gathered, xs, c, 3)
    want = sum(c.decode(c.encode(x, 3), 60) for x in xs)
    assert all(np.allclose(r, want) for r in got.results)
    assert got.sent().sum() == P*(P - 1)*sum(a.nbytes for a in c.encode(xs[0]))


@pytest.mark.parametrize("P", [2, 3, 4])
def test_only_places_of_one_seed_commute_with_the_sum(P):
    xs, c = vectors(P), comp.RandomK(12)
    assert np.allclose(run(comp.summed, xs, c, 7).results[0], c.decode(c.encode(sum(xs), 7), 60))
    assert run(comp.summed, xs, c, 7).sent().sum() == 2*(P - 1)*12*8
    for other in (comp.TopK(12), comp.Sign()):
        assert not np.allclose(run(comp.gathered, xs, other).results[0], other.decode(other.encode(sum(xs)), 60))


@pytest.mark.parametrize("P", [2, 3, 7])
def test_a_sparse_ring_gives_the_gathers_sum_and_grows(P):
    xs, c = vectors(P), comp.TopK(10)
    ring, gather = run(comp.sparse_ring, xs, c), run(comp.gathered, xs, c)
    assert np.allclose(ring.results[0], gather.results[0]) and np.allclose(ring.results[-1], ring.results[0])
    # if all choose the same places, nothing grows: a P-th of the message a round, up to how the places fall on the blocks
    same = [x*(np.arange(60) % 6 == 0) + 0. for x in xs]
    assert run(comp.sparse_ring, same, c).sent().sum() <= ring.sent().sum()
    assert run(comp.sparse_ring, same, c).sent().sum() == 2*(P - 1)*10*12


def test_the_formula_of_the_sparse_ring_on_all_choices_of_two_ranks():
    """Two ranks, d = 4, two places each: mean bytes over all 36 choices."""
    import itertools
    choices, seen = list(itertools.combinations(range(4), 2)), []
    for a, b in itertools.product(choices, repeat=2):
        xs = [np.isin(np.arange(4), at).astype(float) for at in (a, b)]
        seen.append(run(comp.sparse_ring, xs, comp.TopK(2)).sent().mean())
    assert np.mean(seen) == pytest.approx(sparse_ring_bytes(32, 2, .5, 24/32)) and support_union(.5, 2) == .75


@pytest.mark.parametrize("name", COMPRESSORS)
@pytest.mark.parametrize("P", [1, 2, 4])
def test_owners_lose_nothing_that_is_not_held(name, P):
    xs, c = vectors(P), COMPRESSORS[name]
    got = run(comp.two_sided, xs, c, 3).results
    told, held = got[0][0], np.concatenate([g[2] for g in got])
    assert np.allclose(told + sum(g[1] for g in got) + held, sum(xs))
    assert all(np.array_equal(g[0], told) for g in got)


def test_nodes_sum_first():
    xs = vectors(8)
    got = run(comp.node_first, xs, comp.TopK(30), 4)
    assert np.allclose(got.results[0], sum(xs)) and np.allclose(run(comp.dense_nodes, xs, 4).results[5], sum(xs))
    links = two_level(4, Link(0, 9e6, "inside"), Link(0, 1e6, "across"))
    small = run(comp.node_first, xs, comp.TopK(2), 4, link=links)
    assert small.sent("across").max() == 2*12 and small.sent("inside").max() > small.sent("across").max()


@pytest.mark.parametrize("P", [2, 4, 8])
def test_the_gather_crosses_the_ring_where_the_formula_says(P):
    d, wire = 2400, Link(2e-6, 1e6)
    xs = [np.zeros(d, np.float16)]*P
    ring = run(comp.added, xs, link=wire).time
    even = gather_break_even(2*d, P, 2e-6, 1e6, 0)*d/3
    times = [run(comp.gathered, xs, comp.TopK(int(even) + k, np.float16), link=wire).time for k in (0, 1)]
    assert times[0] <= ring*(1 + 1e-9) and ring < times[1]


# ---- PowerSGD
def test_power_iteration_on_ranks_is_that_of_one_worker():
    A, Q = [DRAW.normal(size=(7, 5)) for _ in range(3)], DRAW.normal(size=(5, 2))
    many, one = run(comp.low_rank, A, Q).results, run(comp.low_rank, [sum(A)/3], Q).results[0]
    assert all(np.allclose(m, o, atol=1e-13) for got in many for m, o in zip(got, one))
    whole = sum(A)/3
    tail = np.linalg.svd(whole, compute_uv=False)[2:]
    assert np.linalg.norm(whole - one[0]) >= np.linalg.norm(tail) - 1e-12


# ---- training
WAYS = {"dense": comp.Dense, "top": lambda: comp.Gathered(comp.TopK(1)), "seed": lambda: comp.Summed(comp.RandomK(1)),
        "sign": lambda: comp.Gathered(comp.Sign()), "owners": lambda: comp.TwoSided(comp.TopK(1)),
        "power": lambda: comp.LowRank((3, 1), 1)}


@pytest.mark.parametrize("name", WAYS)
def test_the_shadow_is_plain_sgd(name):
    bowls = comp.three((-3, 2, 2))
    paths = run(comp.train, bowls, np.ones(3), WAYS[name], .01, 30).results
    shadow = [p[0][0] - sum(q[1] for q in p)/3 - sum(q[2] for q in p) for p in zip(*paths)]
    for t in range(30):
        step = .01*sum(f(paths[0][t][0]) for f in bowls)/3
        assert np.abs(shadow[t + 1] - shadow[t] + step).max() < 1e-14


def test_without_feedback_top_1_climbs_and_with_it_it_does_not():
    bowls = comp.three((-3, 2, 2))
    ends = {f: run(comp.train, bowls, np.ones(3), WAYS["top"], .01, 60, f).results[0][-1][0] for f in (False, True)}
    assert np.allclose(ends[False], (1 + .11/6)**60) and np.linalg.norm(ends[True]) < 1


def test_the_search_finds_one_example():
    assert [v for v in comp.climbing(3) if v[0] < v[1] == v[2]] == [(-3, 2, 2)] and len(comp.climbing(3)) == 6


def test_what_is_held_back_stays_below_its_bound():
    c, e, worst = comp.TopK(3), np.zeros(12), 0
    for _ in range(400):
        g = DRAW.normal(size=12)
        y = .1*g/np.linalg.norm(g) + e
        e = y - c.decode(c.encode(y), 12)
        worst = max(worst, np.linalg.norm(e))
    assert worst <= feedback_error_bound(.1, 1, 3/12)
    assert feedback_bound(1, .1, 100, 2, 3, 1) == 2/10 + .1*2*9


def test_levels_need_to_shrink_before_feedback():
    """Four ranks, 60 numbers, one level: w is 3 or more.  Raw levels hold back more and more, levels over 1 + w do not."""
    d, P = 60, 4
    goals = np.random.default_rng(1).normal(size=(P, d))
    w = 60**.5 - 1                                     # of a vector of equal numbers, the most that one level adds

    bowls = [lambda x, goal=goal: x - goal for goal in goals]
    raw, shrunk = (run(comp.train, bowls, np.zeros(d), lambda: comp.Gathered(comp.Levels(1, shrink)), .05, 400).results
                   for shrink in (1.0, 1/(1 + w)))
    held = [[np.linalg.norm(step[1]) for step in path] for path in (raw[0], shrunk[0])]
    assert held[0][60] > 1e6*held[0][1] and max(held[1]) < 20*np.linalg.norm(.05*goals, axis=1).max()
    far = [np.linalg.norm(path[0][-1][0] - goals.mean(0)) for path in (raw, shrunk)]
    assert far[1] < np.linalg.norm(goals.mean(0)) and not far[0] < 1e6
    for t in range(400):                               # the shadow of chapter 28, whatever the compressor loses
        shadow = [shrunk[0][u][0] - sum(path[u][1] for path in shrunk)/P for u in (t, t + 1)]
        step = .05*(shrunk[0][t][0] - goals.mean(0))
        assert np.abs(shadow[1] - shadow[0] + step).max() < 1e-12


@pytest.mark.parametrize("P", [64, 256])
def test_the_union_of_many_messages(P):
    """Messages of P ranks at random places, merged as a ring merges them: 12 bytes for each place of the union."""
    rng, d, k = np.random.default_rng(P), 2000, 20
    total = [rng.permutation(d)[:0].astype(np.int32), np.zeros(0)]
    for _ in range(P):
        total = comp.merged(total, [np.sort(rng.permutation(d)[:k]).astype(np.int32), np.ones(k)])
    assert total[1].sum() == k*P and sum(a.nbytes for a in total) == 12*len(total[0])
    assert len(total[0])/d == pytest.approx(support_union(k/d, P), rel=.04) and len(total[0]) < .8*k*P


# ---- numbers worth knowing
def test_what_the_largest_keep_of_normal_numbers():
    rng, kept = np.random.default_rng(28), {}
    for k in (10, 100, 1000):
        c = comp.TopK(k)
        kept[k] = np.mean([1 - ((c.decode(c.encode(x), 10**4) - x)**2).sum()/(x @ x) for x in rng.normal(size=(40, 10**4))])
    assert [round(v, d) for v, d in zip(kept.values(), (4, 3, 2))] == [.0125, .084, .44]
    assert all(v > k/10**4 for k, v in kept.items())


def test_three_levels_of_the_largest_number_add_two_and_a_fifth_of_the_square():
    """TernGrad: 0 or plus or minus the largest, with the right mean, so the mean square is the largest times the sum."""
    rng = np.random.default_rng(28)
    exact = np.mean([np.abs(x).max()*np.abs(x).sum()/(x @ x) - 1 for x in rng.normal(size=(200, 10**4))])
    x = rng.normal(size=10**4)
    top = np.abs(x).max()
    seen = np.mean([(((rng.random(10**4)*top < np.abs(x))*top*np.sign(x) - x)**2).sum()/(x @ x) for _ in range(100)])
    assert round(exact, 1) == 2.2 and seen == pytest.approx(top*np.abs(x).sum()/(x @ x) - 1, rel=.01)


def test_a_millionfold_million_at_step_1520():
    """Top-1 of three ranks without feedback is a factor of 1 + 11 eta/6 a step (chapter 28): eta is 0.01."""
    grown = (1 + 11*.01/6)**np.arange(1530)
    assert int(np.argmax(grown > .98e12)) == 1520


def test_ranks_that_divide_the_bytes_by_a_hundred():
    def most(rows, cols):
        return max(r for r in range(1, 100) if 1/powersgd_ratio(rows, cols, r) >= 100)
    assert (most(4096, 4096), most(4096, 11008)) == (20, 29)
    assert 1/powersgd_ratio(4096, 4096, 20) == pytest.approx(102.4)


def test_one_bit_after_a_fifth_of_warm_up_is_a_quarter():
    assert 1/(.2 + .8/16) == pytest.approx(4) and round(1/(.15 + .85/16), 1) == 4.9

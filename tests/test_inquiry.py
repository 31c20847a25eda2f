"""Rules that look for a cause: the best is the best of all, clusters fall ill as they should."""
import itertools
from fractions import Fraction

import numpy as np
import pytest

from capacity.witness import sick_clusters as cl
from capacity.witness import inquiry as iq

F = Fraction


def small(seed, causes=3, looks=2):
    """A search whose numbers are fractions."""
    rng = np.random.default_rng(seed)
    p = rng.integers(1, 7, causes).tolist()
    tables = [[F(int(y), 4) for y in rng.integers(0, 5, causes)] for _ in range(looks)]
    return iq.Inquiry(list("ABCD")[:causes], [F(x, sum(p)) for x in p], rng.integers(5, 60, causes).tolist(),
                      [iq.Look(f"look {k}", int(rng.integers(1, 9)), ["no", "yes"], [[1 - y for y in yes], yes])
                       for k, yes in enumerate(tables)])


@pytest.mark.parametrize("seed", range(8))
def test_nothing_beats_the_exact_rule(seed):
    q = small(seed)
    every = [sum(p*m for p, m in zip(q.chances, v)) for v in iq.all_rules(q)]
    best = iq.Exact(q)
    assert len(every) > 100 and best.minutes == pytest.approx(float(min(every)), abs=1e-9)
    assert iq.mean_minutes(q, best) == min(every)                     # as fractions: the rule itself, not its books
    for rule in (iq.by_ratio, iq.by_chance, iq.bits, iq.saved, iq.Curious(.8)):
        assert iq.mean_minutes(q, rule) in every and iq.mean_minutes(q, rule) >= min(every)


@pytest.mark.parametrize("seed", range(4))
def test_looks_that_hang_together(seed):
    """A joint table of independent looks changes nothing; of two looks that always agree the second is worth nothing."""
    q = small(seed)
    apart = np.array([[[float(a[i]*b[i]) for b in q.looks[1].table] for a in q.looks[0].table] for i in range(3)])
    assert iq.Exact(q, apart).minutes == pytest.approx(iq.Exact(q).minutes)
    first = np.array(q.looks[0].table, float)
    same = np.array([np.diag(first[:, i]) for i in range(3)])
    twice = q._replace(looks=[q.looks[0], q.looks[0]])
    assert iq.Exact(twice, same).minutes == pytest.approx(iq.Exact(q._replace(looks=q.looks[:1])).minutes)


def test_outcomes_counted_together(sick):
    joint = cl.together(sick, 0)
    assert joint.shape == (7, 2, 3, 2, 2, 3, 2, 2, 2) and np.allclose(joint.sum((1, 2, 3, 4, 5, 6, 7, 8)), 1)
    shares = joint.sum((1, 2, 3, 4, 6, 7, 8))                         # of what pairs say, under each cause
    assert np.allclose(shares, np.array(cl.rates(sick, 0)[1][cl.PAIRS]).T, atol=.03)


@pytest.mark.parametrize("seed", range(5))
def test_without_looks_the_ratio_is_best(seed):
    q = small(seed, causes=4, looks=0)
    orders = [iq.order_minutes(q.chances, q.minutes, o) for o in itertools.permutations(range(4))]
    assert iq.mean_minutes(q, iq.by_ratio) == min(orders) == iq.order_minutes(q.chances, q.minutes, iq.ratio_order(q.chances, q.minutes))
    assert iq.Exact(q).minutes == pytest.approx(float(min(orders)))


def test_playing_is_the_mean():
    q = small(3)
    for rule in (iq.Exact(q), iq.bits, iq.saved):
        total = 0
        for i, p in enumerate(q.chances):
            for outcomes in itertools.product(range(2), repeat=2):
                weight = p
                for k, o in enumerate(outcomes):
                    weight = weight*q.looks[k].table[o][i]
                total += weight*iq.play(q, rule, i, outcomes)[0] if weight else 0
        assert total == iq.mean_minutes(q, rule)


def test_checklist_and_chance():
    q = small(1)
    list_ = iq.Checklist([1, 0], {(1, 1): 2, (0, 1): 0}, [2, 1, 0])
    assert iq.play(q, list_, 2, [1, 1])[1] == [("look", 1), ("mend", 2)]
    assert iq.play(q, list_, 1, [0, 0])[1] == [("look", 1), ("look", 0), ("mend", 2), ("mend", 1)]
    rule = iq.Shuffled(q, np.random.default_rng(0))
    assert iq.play(q, rule, 1, [0, 0])[1][-1] == ("mend", 1)


@pytest.mark.parametrize("nodes", [2, 3, 4, 7, 8, 16, 31, 32])
def test_rounds_meet_each_pair_once(nodes):
    made = cl.rounds(nodes)
    assert sorted(p for r in made for p in r) == list(itertools.combinations(range(nodes), 2))
    assert all(len({x for p in r for x in p}) == 2*len(r) for r in made) and len(made) == nodes - 1 + nodes % 2


@pytest.fixture(scope="module")
def sick():
    return cl.incidents(20_000, np.random.default_rng(5))


def test_what_the_looks_find(sick):
    table = {a: cl.rates(sick, a)[1] for a in (0, 1)}
    assert table[0][cl.PAIRS][1][cl.NIC] > .99 and table[0][cl.TIMELINE][1][cl.GPU] > .8
    assert table[0][cl.COUNTERS][1][cl.LINK] > .8 > .6 > table[0][cl.COUNTERS][1][cl.NIC]
    assert .3 < table[1][cl.HASHES][1][cl.SILENT] < .5                # a wrong sum is the same on all replicas
    assert all(np.allclose(t.sum(0), 1) for tables in table.values() for t in tables)
    assert set(np.unique(sick.cause)) == set(range(7)) and (sick.slowdown[sick.alarm == 0] > 1.15).all()


def test_shapes_of_pairs():
    pairs = [p for r in cl.rounds(32) for p in r]
    rng = np.random.default_rng(0)
    speeds = cl.pair_speeds([cl.NIC, cl.LINK, cl.GPU], [5, 9, 3], [.5]*3, [1., .6, 1.], rng, pairs)
    assert cl.shape_of(speeds, pairs).tolist() == [1, 2, 0]
    slow = [p for p, s in zip(pairs, speeds[0]) if s < .8]
    assert len(slow) == 31 and all(5 in p for p in slow)


def test_cases_are_the_first_of_their_seed():
    assert cl.cases(20, 33)[:5] == cl.cases(20, 33)[:5] and len(cl.cases(7, 1)) == 7
    assert {c[2] for c in cl.cases(20, 33)} == set(range(7))

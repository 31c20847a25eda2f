"""The planner: legal, feasible, nothing better in exhaustive search; reasons that help; the same from all doors."""
import functools
import itertools
import json
import math
import random
import re
import time
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from capacity import GB, Layout, accelerators, cluster, day, estimate, hour, memory, model, planner, show
from capacity.launch import DIALECTS, refusals
from capacity.legality import AXES, CHOICES, DEGREES, RULES, SYNONYMS, UNPRICED, UNTRIED, Rule, broken, divisors, layouts, letters
from capacity.planner import CONSTANTS, LLAMA3_MTBF, Failures, least_time, plan, sequences
from capacity.tape import Namespace, Tape, inputs

SMALL, LARGE = model("llama3-8b"), model("llama3-70b")


# --- rules

def test_a_rule_is_one_expression_on_numbers_arrays_and_symbols():
    """As numbers one by one, as masks, and as a program of nodes: 500 random layouts of two models."""
    rng = np.random.default_rng(3)
    n = 500
    q = {k: rng.choice([1, 2, 3, 4, 6, 8, 16, 64], n) for k in DEGREES}
    q |= dict(schedule=rng.integers(0, 4, n), recompute=rng.choice([0, 0.5, 1], n), cheap_recompute=rng.choice([0, 1], n), devices=rng.choice([16, 64, 128], n), batch=rng.choice([12, 64, 512], n), seq_len=rng.choice([100, 4096], n),
              zero=rng.integers(0, 4, n), sequence_parallel=rng.integers(0, 2, n), copies=rng.choice([1, 2, 4], n), shards=rng.choice([2, 6, 9], n))
    for shape in LARGE, model("mixtral-8x7b"):
        at = vars(letters(shape))
        for rule in RULES + SYNONYMS + UNTRIED + UNPRICED:
            assert rule.letters <= {*at, *q} and inputs(rule.holds(Namespace())) == rule.letters
            mask = np.broadcast_to(rule.holds(letters(shape, **q)), n)
            one = [bool(rule.holds(letters(shape, **{k: x[i].item() for k, x in q.items()}))) for i in range(n)]
            tape = Tape([rule.holds(Namespace())])
            traced = np.broadcast_to(tape.run(**{k: (at | q)[k] for k in tape.inputs})[0], n)
            assert mask.tolist() == one == traced.tolist(), rule.name


def test_every_rule_refuses_something_and_says_what():
    names = [rule.name for rule in RULES + SYNONYMS + UNTRIED + UNPRICED]
    assert len(set(names)) == len(names)
    q = letters(LARGE, devices=64, batch=7, seq_len=100, dp=2, tp=5, pp=81, cp=3, ep=7, chunks=2, schedule=2, microbatch=2, zero=1,
                sequence_parallel=1, copies=2, shards=4)
    said = broken(q)
    assert {rule.name for rule in RULES if not rule.holds(q)} == {*names} - {"chunks", *(rule.name for rule in SYNONYMS + UNTRIED + UNPRICED)}
    assert len(said) == len(RULES) - 1 and all(s.endswith(".") for s in said)
    bare = letters(model("mixtral-8x7b"), schedule=3, recompute=0.5, cheap_recompute=1, batch=64, dp=4, cp=1, tp=1, ep=8, microbatch=1, zero=2, sequence_parallel=1, copies=4)
    assert {rule.name for rule in SYNONYMS + UNTRIED + UNPRICED if not rule.holds(bare)} == {"unshared", "unsplit", "repeated", "mixed", "split_experts"}
    assert [rule.name for rule in SYNONYMS if not rule.holds(SimpleNamespace(**vars(bare) | dict(zero=0, tp=2)))] == ["uncopied"]


def test_copies_are_of_whole_replicas():
    machine = cluster("dgx-h100", 64)
    assert Layout(batch=64, dp=64, shards=8).copies == 8 and Layout(batch=64, dp=64).copies == 1 == Layout(batch=64, dp=32, cp=2).copies
    assert Layout(batch=64, dp=64, shards=3).check(SMALL, machine) == ("shards = 3 does not divide dp*cp = 64 replicas.",)
    assert Layout(batch=64, dp=32, cp=2, shards=64).check(SMALL, machine) == ()


def test_a_length_is_asked_where_it_is_known():
    lay, machine = Layout(batch=64, dp=4, cp=16, zero=1), cluster("dgx-h100", 64)
    assert lay.check(SMALL, machine) == () == lay.check(SMALL, machine, 8192)
    assert lay.check(SMALL, machine, 1000) == ("1000 tokens do not cut into 2*cp = 32 equal parts, two for each context rank.",)
    split = Layout(batch=64, dp=8, tp=8, sequence_parallel=True)
    assert "1001 tokens do not divide over cp*tp = 8 ranks" in split.check(SMALL, machine, 1001)[0]


def test_the_axes_bind_every_letter_of_a_layout():
    assert {*DEGREES, *CHOICES, "batch", "scores"} - {"copies"} <= {*Layout.__dataclass_fields__} and Layout(batch=1).copies == 1
    assert [name for name, *_ in AXES] == list(DEGREES)
    assert divisors(12) == [1, 2, 3, 4, 6, 12] and divisors(1) == [1] == divisors(0) and divisors(49) == [1, 7, 49]


RANKS = dict(dp=2, cp=3, tp=4)


@pytest.mark.parametrize("name, q, holds", [
    ("expert_ranks", dict(RANKS, ep=8), True), ("expert_ranks", dict(RANKS, ep=5), False),
    ("experts", dict(experts=8, ep=8), True), ("experts", dict(experts=8, ep=7), False), ("experts", dict(experts=0, ep=2), False),
    ("experts", dict(experts=0, ep=1), True), ("interleave", dict(chunks=2, schedule=0, batch=48, dp=4, microbatch=2, pp=3), True),
    ("interleave", dict(chunks=2, schedule=0, batch=12, dp=4, microbatch=2, pp=3), False),
    ("interleave", dict(chunks=2, schedule=3, batch=12, dp=4, microbatch=2, pp=3), True),
    ("lag", dict(schedule=1, batch=16, dp=4, microbatch=2, pp=3), False), ("lag", dict(schedule=1, batch=24, dp=4, microbatch=2, pp=3), True),
    ("lag", dict(schedule=3, batch=32, dp=4, microbatch=2, pp=3), False), ("lag", dict(schedule=3, batch=40, dp=4, microbatch=2, pp=3), True),
    ("split", dict(schedule=1, pp=2, chunks=1), True), ("split", dict(schedule=3, pp=2, chunks=2), True),
    ("split", dict(schedule=3, pp=2, chunks=1), False), ("split", dict(schedule=1, pp=1, chunks=1), False),
    ("unshared", dict(RANKS, zero=1, copies=3, experts=0, ep=1), True), ("unshared", dict(RANKS, zero=1, copies=6, experts=0, ep=1), False),
    ("unshared", dict(RANKS, zero=0, copies=6, experts=0, ep=1), True), ("unshared", dict(RANKS, zero=1, copies=6, experts=8, ep=24), False),
    ("unshared", dict(RANKS, zero=1, copies=6, experts=8, ep=12), True), ("unshared", dict(RANKS, zero=1, copies=6, experts=1, ep=1), True),
    ("uncopied", dict(copies=1, zero=0), True), ("uncopied", dict(copies=2, zero=0), False), ("uncopied", dict(copies=2, zero=1), True),
    ("unsplit", dict(sequence_parallel=1, tp=1), False), ("unsplit", dict(sequence_parallel=1, tp=2), True),
    ("unsplit", dict(sequence_parallel=0, tp=1), True), ("repeated", dict(schedule=1, recompute=0), True),
    ("repeated", dict(schedule=1, recompute=1), False), ("repeated", dict(schedule=0, recompute=1), True),
    ("mixed", dict(cheap_recompute=0, recompute=1), True), ("mixed", dict(cheap_recompute=1, recompute=0), True),
    ("mixed", dict(cheap_recompute=1, recompute=1), False), ("split_experts", dict(RANKS, copies=1, ep=5), True),
    ("split_experts", dict(RANKS, copies=2, ep=12), True), ("split_experts", dict(RANKS, copies=2, ep=8), False)])
def test_a_rule_by_hand(name, q, holds):
    rule, = (r for r in (*RULES, *SYNONYMS, *UNTRIED, *UNPRICED) if r.name == name)
    assert bool(rule.holds(SimpleNamespace(**q))) is holds and rule.letters == {*q}


def test_a_rule_is_asked_as_soon_as_its_letters_are_there():
    assert broken(SimpleNamespace(copies=2, zero=0), SYNONYMS) == ("copies = 2 of what zero = 0 does not shard are no choice.",)
    assert broken(SimpleNamespace(copies=2), SYNONYMS) == ()


def test_an_option_that_is_none_is_told():
    q = letters(SMALL, devices=64, batch=64, seq_len=4096)
    for limits, words in (({"tp": [7]}, "tp = 7 does not divide devices = 64."), ({"tp": [3, 5]}, "tp = 3 or 5 does not divide devices = 64."),
                          ({"chunks": [90]}, f"chunks = 90 is above layers = {SMALL.layers}."), ({"ep": [8]}, "ep = 8, and there are no experts.")):
        tally, (name,) = {}, limits
        assert all(len(x) == 0 for x in layouts(q, limits, tally).values()) and tally[name][1] == words and tally[name][0] >= 1
        assert all(len(x) == 0 for x in layouts(q, limits).values())
    tally = {}
    layouts(q, {"tp": [8], "pp": [2], "chunks": [2], "schedule": [1]}, tally)
    count, words = tally["split"]
    assert count == 1 and words.endswith("schedule = 1 has 2 on pp = 2.")


def product(rows, **ranges):
    """Arrays of each of these rows with each choice of these."""
    at, *chosen = np.meshgrid(np.arange(len(rows["dp"])), *ranges.values(), indexing="ij")
    return {name: x[at.ravel()] for name, x in rows.items()} | {name: x.ravel() for name, x in zip(ranges, chosen)}


def only(rows, keep):
    return {name: x[keep] for name, x in rows.items()}


def splits(devices):
    """tp, pp, cp and dp, each from 1 to all devices, that use all of them, as arrays."""
    tp, pp, cp = (np.ravel(x) for x in np.meshgrid(*3*[np.arange(1, devices + 1)]))
    return only(dict(tp=tp, pp=pp, cp=cp, dp=devices//(tp*pp*cp)), devices % (tp*pp*cp) == 0)


def legal(shape, machine, seq_len, batch, rows):
    """Which of these layouts `Layout.check` passes: the same rules of all at once.

    `check` itself gives as many sentences as rules are broken: of some that break none, one and each alone, or several.
    """
    q = letters(shape, devices=machine.devices, seq_len=seq_len, batch=batch, zero=1, sequence_parallel=0, shards=rows["dp"]*rows["cp"], **rows)
    broken_ = np.array([~np.broadcast_to(rule.holds(q), len(rows["dp"])) for rule in RULES])
    wrong = broken_.sum(0)
    for some in (wrong == 0, wrong > 1, *(broken_ & (wrong == 1))):
        some = np.flatnonzero(some)
        for k in some[::len(some)//5 + 1]:
            lay = Layout(batch=batch, **{name: int(x[k]) for name, x in rows.items()})
            assert len(lay.check(shape, machine, seq_len)) == wrong[k], lay
    return wrong == 0


def test_the_enumeration_is_check():
    """Every layout that `check` passes, and no other, once; `check` itself is asked about all of the smallest problem."""
    for shape, devices, batch, seq_len in ((replace(SMALL, layers=8), 16, 24, 4096), (replace(SMALL, layers=6, heads=12, kv_heads=4), 24, 18, 768),
                                           (replace(SMALL, layers=2), 8, 24, 4096),
                                           (replace(model("mixtral-8x7b"), layers=4), 8, 16, 2048)):
        machine = cluster("dgx-h100", devices)
        found = layouts(letters(shape, devices=devices, batch=batch, seq_len=seq_len))
        found = np.stack([found[k] for k in DEGREES], 1).tolist()
        rows = product(splits(devices), ep=range(1, 9) if shape.experts else [1], microbatch=range(1, batch + 1), chunks=range(1, shape.layers + 3),
                       schedule=range(4))
        passed = legal(shape, machine, seq_len, batch, rows)
        if shape.layers == 2:
            lays = [Layout(batch=batch, **{name: int(x[k]) for name, x in rows.items()}) for k in range(len(passed))]
            assert [lay.check(shape, machine, seq_len) == () for lay in lays] == passed.tolist()
        assert sorted(found) == sorted(np.stack([rows[k] for k in DEGREES], 1)[passed].tolist()) and len(set(map(tuple, found))) == len(found) > 50


def test_a_page_goes_through_the_same_layouts():
    """The loops that JavaScript gets, printed from the same table: all degrees, in the same order."""
    from capacity.legality import javascript
    from javascript import run
    mixtral = replace(model("mixtral-8x7b"), layers=6)
    for shape, devices, batch, seq_len, limits in ((SMALL, 16, 24, 4096, {}), (mixtral, 16, 32, 2048, {}), (LARGE, 256, 512, 8192, {}),
                                                   (SMALL, 64, 96, 3000, dict(tp=[2, 4], chunks=[1], dp=[8]))):
        q = letters(shape, devices=devices, batch=batch, seq_len=seq_len)
        rows = layouts(q, limits)
        found = run(f"{javascript()} const found = []; layouts(data.q, data.limits, q => found.push({json.dumps(DEGREES)}.map(k => q[k]))); return found;",
                    dict(q=vars(q), limits=limits))
        assert found == np.stack([rows[k] for k in DEGREES], 1).tolist() and len(found) > 5
    bad = dict(vars(q), dp=3, tp=3, pp=2, cp=1, ep=1, chunks=1, schedule=3, microbatch=1, zero=0, sequence_parallel=0, shards=2)
    said = run(f"{javascript()} return Object.values(RULES).slice(0, " + str(len(RULES)) + ").filter(r => !r.holds(data)).map(r => r.sentence(data));", bad)
    assert tuple(said) == broken(letters(shape, **{k: v for k, v in bad.items() if k not in vars(letters(shape))}))


# --- the search against everything there is

def problem(seed):
    """A random shape, machine and batch, small enough to go through one by one; (arguments, limits)."""
    rng = random.Random(seed)
    heads = rng.choice([4, 6, 8, 12])
    shape = replace(SMALL, layers=rng.choice([2, 3, 4, 6, 8]), hidden=128*heads*rng.choice([1, 2]), heads=heads,
                    kv_heads=rng.choice([k for k in (1, 2, 4, heads) if heads % k == 0]), ffn=rng.choice([1536, 4608, 14336]),
                    vocab=rng.choice([32000, 50257, 128256]))
    machine = cluster(rng.choice(["dgx-h100", "dgx-a100"]), rng.choice([8, 16, 24, 32]))
    device = replace(machine.device, memory=rng.choice([1.5, 3, 8, 20, 80])*GB,
                     bandwidth=machine.device.bandwidth*rng.choice([0.3, 1]))
    levels = [replace(x, link=replace(x.link, beta=x.link.beta*rng.choice([0.03, 0.3, 1]))) for x in machine.levels]
    limits = {}
    if rng.random() < 0.3:
        limits["zero"] = rng.choice([(0,), (0, 1), (1, 2, 3), (3,)])
    if rng.random() < 0.3:
        limits["recompute"] = rng.choice([(0,), (1,), (0, 0.3, 1)])
    if rng.random() < 0.2:
        limits["sequence_parallel"] = rng.choice([(True,), (False,)])
    if rng.random() < 0.2:
        limits["tp"] = (1, 2, 4)
    if rng.random() < 0.3:
        limits["copies"] = rng.choice([(1,), (1, 2), (2, 4), (3,)])
    if rng.random() < 0.3:
        limits["schedule"] = rng.choice([(0,), (1, 2, 3), (0, 3)])
    if rng.random() < 0.3:
        limits["cheap_recompute"] = rng.choice([(0,), (1,), (0, 0.4, 1)])
    return (shape, replace(machine, device=device, levels=tuple(levels)), rng.choice([8, 16, 24, 32, 48]), rng.choice([1024, 3072])), limits


def everything(shape, machine, batch, seq_len, limits):
    """Time, memory, blast of every legal layout, by the rules of `Layout.check` and `estimate` alone: three arrays."""
    allowed = {"zero": range(4), "sequence_parallel": (False, True), "recompute": (0, 0.25, 0.5, 0.75, 1), "cheap_recompute": (0, 1),
               "copies": divisors(machine.devices)} | limits
    found = []

    rows = splits(machine.devices)
    rows = only(rows, np.isin(rows["tp"], limits.get("tp", rows["tp"])))
    rows = product(rows, microbatch=range(1, batch + 1), chunks=range(1, shape.layers + 3), schedule=limits.get("schedule", range(4)), ep=[1])
    rows = only(rows, legal(shape, machine, seq_len, batch, rows))
    rows = product(rows, recompute=allowed["recompute"], cheap_recompute=allowed["cheap_recompute"], copies=allowed["copies"])
    replicas, copies, again = rows["dp"]*rows["cp"], rows["copies"], rows["recompute"] > 0
    rows = only(rows, (replicas % copies == 0) & ~(again & (rows["cheap_recompute"] > 0)) & ~(again & (rows["schedule"] > 0)))    # weight gradients do not wait
    for zero, shared in itertools.product(allowed["zero"], allowed["sequence_parallel"]):
        tp, cp, copies, replicas = rows["tp"], rows["cp"], rows["copies"], rows["dp"]*rows["cp"]
        keep = copies == 1 if zero == 0 else (replicas > copies) | (0 not in allowed["zero"])
        if shared:
            keep = keep & ((tp > 1) | (False not in allowed["sequence_parallel"])) & (seq_len % (tp*cp) == 0)
        for one in True, False:                                                                 # copy, or several
            some = only(rows, keep & ((copies == 1) == one))
            if not len(some["copies"]):
                continue
            shards = some["dp"]*some["cp"]//some.pop("copies")
            step = estimate(shape, machine, Layout(batch=batch, zero=zero, shards=None if one else shards, sequence_parallel=shared, **some), seq_len)
            blast = some["tp"]*some["pp"]*(some["cp"] if zero == 0 else np.lcm(some["cp"], shards))
            assert not one or zero == 0 or (blast == machine.devices).all()
            found.append(np.stack([step.time, step.memory, blast]))
    return np.concatenate(found, 1) if found else np.empty((3, 0))


def reached(some, points):
    """Of each of these points whether something of `some` is no larger in time, memory and blast: arrays [3, n]."""
    out = np.zeros(points.shape[1], bool)
    for blast in np.unique(points[2]):
        at, mine = points[2] == blast, some[:2, some[2] <= blast]
        times, nbytes = mine[:, np.argsort(mine[0])]
        least = np.minimum.accumulate(np.append(np.inf, nbytes))
        out[at] = least[np.searchsorted(times, points[0, at], "right")] <= points[1, at]
    return out


@pytest.mark.parametrize("decade", range(20))
def test_nothing_is_better_in_exhaustive_search(decade, monkeypatch):
    """200 random problems: legal, feasible, as good as the best of everything, and the front is the front.

    Pruned in handfuls of rows, or what is known of the first would never leave out any of the rest: the problems are small.
    What two searches record alike, nodes that are one object, is made a program once.
    """
    programs = functools.cache(lambda *outputs: Tape(outputs))
    monkeypatch.setattr("capacity.planner.Tape", lambda outputs: programs(*outputs))
    share, single = [], []                                          # priced, of all layouts and of those in one copy
    for seed in range(10*decade, 10*decade + 10):
        (shape, machine, batch, seq_len), limits = problem(seed)
        keep = (1, 10, 300)[seed % 3]
        every = plan(shape, machine, batch, seq_len, keep=keep, prune=False, **limits)
        with monkeypatch.context() as few:
            few.setattr("capacity.planner.ROWS", 16)
            few.setattr("capacity.planner._why", lambda *job: ())       # reasons are asked of the first
            pruned = plan(shape, machine, batch, seq_len, keep=keep, prune=True, **limits)
            one = plan(shape, machine, batch, seq_len, keep=keep, prune=True, **limits | {"copies": 1})
        assert every.candidates == pruned.candidates and every.front == pruned.front and every.legal == pruned.legal
        assert pruned.priced <= every.priced == every.legal
        share.append(pruned.priced/every.legal if every.legal else 1)
        single.append(one.priced/one.legal if one.legal else 1)
        shape = every.model
        found = everything(shape, machine, batch, seq_len, limits)
        assert found.shape[1] == every.legal and not np.isnan(found).any(), seed
        fitting = found[:, found[1] <= 0.9*machine.device.memory]
        assert fitting.shape[1] == every.fits
        if not every.fits:
            assert not every and not every.front and every.why
            continue
        for c in every.candidates + every.front:
            assert c.layout.check(shape, machine, seq_len) == ()
            assert c.memory <= 0.9*machine.device.memory
        times = np.sort(fitting[0])[:keep]
        assert np.allclose([c.time for c in every.candidates], times, rtol=1e-12, atol=0)
        front = np.array([(c.time, c.memory, c.blast) for c in every.front])
        low = front*(1 - 1e-12)                                     # two layouts may take equal time but for rounding
        assert not reached(fitting, (front*[1 - 1e-12, 1, 1]).T).any(), "nothing beats a layout of the front"
        assert (np.all(front[:, None] <= front, 2) == np.eye(len(front), dtype=bool)).all(), "nor another of it"
        assert reached(low.T, fitting).all(), "and something of the front is as good as each layout"
    assert np.mean(single) < 0.65 and np.mean(share) < 0.75, "most need no price, with copies a quarter"


def test_the_few_that_are_kept_are_the_first_of_many():
    job = LARGE, cluster("dgx-h100", 256), 512, 8192
    many = plan(*job, keep=1000).candidates
    assert len(many) == 1000 and [c.time for c in many] == sorted(c.time for c in many)
    for keep in 1, 2, 7, 50, 300:
        assert plan(*job, keep=keep).candidates == many[:keep]


@pytest.mark.parametrize("shape, devices", [(LARGE, 64), (model("mixtral-8x7b"), 32)])
def test_of_each_split_the_best(shape, devices):
    """As all candidates, the first of each tp, pp, cp and ep; pruned or not."""
    job, few, seen, want = (shape, cluster("dgx-h100", devices), 64, 4096), dict(recompute=(0, 1), share=1), set(), []
    for c in plan(*job, keep=2000, prune=False, **few).candidates:
        key = c.layout.tp, c.layout.pp, c.layout.cp, c.layout.ep
        want += [] if key in seen else [c.layout]
        seen.add(key)
    for prune in False, True:
        assert [c.layout for c in plan(*job, keep=12, splits=True, prune=prune, **few).candidates] == want[:12] and len(want) >= 12


def test_a_candidate_is_priced_as_by_hand():
    """The tape's numbers are `estimate`'s and `memory`'s, of numbers, to 1e-12."""
    for shape, machine, batch in ((LARGE, cluster("dgx-h100", 256), 512), (model("gpt3-175b"), cluster("dgx-a100", 1120), 1120)):
        found = plan(shape, machine, batch, 2048)
        for c in found.candidates + found.front[::10]:
            step = estimate(found.model, machine, c.layout, 2048)
            assert c.time == pytest.approx(step.time, rel=1e-12) and c.memory == pytest.approx(step.memory, rel=1e-12)
            bytes_ = memory(found.model, machine, c.layout, 2048, kernels="34 bytes").total
            assert c.memory == pytest.approx(bytes_, rel=1e-12)
            assert c.step.time == step.time and c.devices == machine.devices


def test_a_least_time_is_below_all_that_it_stands_for():
    """What the page takes from a Step: with nothing done again and one copy, it is at most the time of any shares and copies."""
    shares = [(0, 0), (0, 0.3), (0, 1), (0.25, 0), (0.5, 0.5), (1, 0)]
    for shape, base in ((LARGE, dict(ep=1)), (model("deepseek-v3"), dict(ep=8)), (model("mixtral-8x7b"), dict(ep=4))):
        for format, zero, (tp, pp, cp), chunks, b in itertools.product(("bf16", "fp8"), range(4), ((1, 1, 1), (8, 2, 1), (2, 4, 2)), (1, 3), (1, 4)):
            lay = Layout(batch=1024, tp=tp, pp=pp, cp=cp, dp=64//(tp*pp*cp), chunks=chunks if pp > 1 else 1, microbatch=b, zero=zero, **base)
            many = [replace(lay, recompute=r, cheap_recompute=c, shards=lay.replicas//n if zero else None)
                    for (r, c), n in itertools.product(shares, (1, 2)) if lay.replicas % n == 0]
            steps = [estimate(shape, cluster("dgx-h100", 64), x, 4096, format=format) for x in many]
            least = least_time(steps[0])
            assert 0.5*steps[0].time < least + steps[0].bubble + steps[0].data and all(least <= least_time(s)*(1 + 1e-12) <= s.time*(1 + 1e-12) for s in steps)


def test_causes_are_no_less_than_nothing():
    """What the proof of the pruning takes from a Step."""
    (shape, machine, batch, seq_len), _ = problem(5)
    for c in plan(shape, replace(machine, device=replace(machine.device, memory=80*GB)), batch, seq_len, keep=200).candidates:
        assert all(s >= -1e-12*c.time for s in c.step.seconds.values())


# --- arguments

def test_published_layouts_lie_in_the_space():
    """Two of Llama 3 405B, and one of GPT-3's: found with their degrees as limits; a misprinted one is not."""
    for shape, machine, batch, seq_len, degrees in (
            (model("llama3-405b"), cluster("dgx-h100", 16384), 2048, 8192, dict(tp=8, cp=1, pp=16, dp=128)),
            (model("llama3-405b"), cluster("dgx-h100", 16384), 128, 131072, dict(tp=8, cp=16, pp=16, dp=8)),
            (model("gpt3-175b"), cluster("dgx-a100", 1536), 2304, 2048, dict(tp=8, pp=16, dp=12))):
        found = plan(shape, machine, batch, seq_len, share=1, **degrees)
        assert found and all(getattr(c.layout, k) == n for c in found.candidates for k, n in degrees.items())
    assert not plan(model("llama3-405b"), cluster("dgx-h100", 16384), 128, 131072, share=1, tp=8, cp=16, pp=16, dp=4)


def test_a_vocabulary_is_padded_and_said():
    found = plan(model("gpt3-175b"), cluster("dgx-a100", 64), 64, 2048, devices=64, share=1, recompute=1)
    assert found.model.vocab == 50272 and "padded from 50,257 to 50,272" in found.why[0]
    assert plan(LARGE, cluster("dgx-h100", 64), 64, 4096).model is LARGE
    odd = replace(SMALL, vocab=50257, heads=24, kv_heads=24, hidden=3072, ffn=9216)
    both = plan(odd, cluster("dgx-h100", 24), 96, 4096, devices=(16, 24))
    assert both.model.vocab % 24 == 0 and len({c.devices for c in both.front}) == 2
    assert all(c.layout.check(both.model, c.cluster, 4096) == () for c in both.candidates + both.front)
    assert all(c.time == pytest.approx(estimate(both.model, c.cluster, c.layout, 4096).time, rel=1e-12) for c in both.front[:20] + both.front[-20:])
    assert plan(model("gpt3-175b"), cluster("dgx-a100", 8), 64, 2048).why[-1] == "Vocabulary padded from 50,257 to 50,264, so that every tensor degree divides it."
    assert plan(SMALL, cluster("dgx-h100", 64), 64, 8192, tokens=1e12).tokens == 1e12


@pytest.mark.parametrize("batch, seq_len, n", [(512, 8192, 512), ("512", 8192, 512), ("4M", 8192, 512), ("4M tokens", 8192, 512),
                                               ("4M", 1000, 4000), ("128M", 8192, 16384), ("128M", 8000, 16000), ("3M", 48, 62_500), ("3M", 64, 49_152),
                                               ("131.072M", 8192, 16000), ("16k sequences", 8192, 16000), ("1.5k sequences", 1, 1500),
                                               ("4,194,304 tokens", 8192, 512), ("4_194_304 tokens", 4096, 1024), ("0.5M", 4096, 128),
                                               ("1e3", 8192, 1000), ("4e6 tokens", 1000, 4000), ("2B", 8192, 2**18), ("2G", 8192, 2**18), ("1T tokens", 2**20, 2**20),
                                               ("3k tokens", 3000, 1), ("1e9", 8192, 10**9), (1e9, 1, 10**9)])
def test_a_batch_has_units(batch, seq_len, n):
    assert sequences(batch, seq_len) == n


@pytest.mark.parametrize("batch, words", [
    ("4.1M", "'4.1M' is no whole number of sequences of 8,192 tokens; allowed: such as 500 sequences, 4,096,000 tokens, or 501 sequences, 4,104,192 tokens"),
    ("1000 tokens", "'1000 tokens' is no whole number of sequences of 8,192 tokens; allowed: such as 1 sequence, 8,192 tokens"),
    ("1e12", "'1e12' means sequences; allowed: at most 1,000,000,000, or tokens, such as '4M tokens'"),
    (1e12, "1000000000000.0 means sequences; allowed: at most 1,000,000,000, or tokens, such as '4M tokens'"),
    ("1e99 tokens", "'1e99 tokens'; allowed: at most 1,000,000,000 sequences, here of 8,192 tokens"),
    ("1e400", "'1e400' means sequences; allowed: at most 1,000,000,000, or tokens, such as '4M tokens'"), (10**9 + 1, "1000000001 means sequences; allowed: at most 1,000,000,000, or tokens, such as '4M tokens'"),
    ("0.0625k sequences", "'0.0625k sequences'; allowed: a whole number of sequences, at least 1, or tokens, such as '4M tokens'"),
    *((x, f"{x!r}; allowed: a whole number of sequences, at least 1, or tokens, such as '4M tokens'") for x in (0, 2.5)),
    *((x, f"{x!r}; allowed: a number of sequences, or a text such as '4M tokens', '512 sequences'") for x in ("many", -3, "3 apples", True))])
def test_a_bad_batch_is_refused(batch, words):
    with pytest.raises(ValueError) as refused:
        sequences(batch, 8192)
    assert str(refused.value) == f"batch = {words}"


@pytest.mark.parametrize("change, words", [
    (dict(tpp=8), "unknown limit 'tpp'; close matches: tp"), (dict(objective="speed"), "unknown objective 'speed'"),
    (dict(share=0), "share = 0; allowed: above 0"), (dict(tp=()), r"tp = \(\); allowed"), (dict(tp="8"), "tp = .*allowed: a number"),
    (dict(objective="goodput"), "failures = None; allowed for goodput"), (dict(options=dict(formt="fp8")), "close matches: format"),
    (dict(deadline=1e6), "deadline = 1000000.0 without tokens"), (dict(recompute=2), "recompute = .2,.; allowed: shares from 0 to 1"),
    (dict(zero=(1, 4)), "zero = .1, 4.; allowed: whole numbers from 0 to 3"), (dict(schedule=4), "schedule = .4,.; allowed: whole numbers from 0 to 3"),
    (dict(tokens=0), "tokens = 0; allowed: at least 1"), (dict(tokens=1e9, deadline=0), "deadline = 0; allowed: at least 1"),
    (dict(sequence_parallel=2), "sequence_parallel = .2,.; allowed: whole numbers from 0 to 1"), (dict(tp=0), "tp = .0,.; allowed: whole numbers from 1"), (dict(pp=1.5), "pp = .1.5,."), (dict(share=1.5), "share = 1.5; allowed: above 0 and at most 1"), (dict(devices=(8, 0)), r"devices\[0\] = 0; allowed: at least 1"), (dict(keep=0), "keep = 0"), (dict(devices=12), "devices = 12; allowed: whole nodes of 8, such as 8 or 16$")])
def test_a_bad_argument_is_named(change, words):
    with pytest.raises(ValueError, match=words):
        plan(SMALL, cluster("dgx-h100", 16), 64, 4096, **change)


def test_names_are_not_the_things():
    with pytest.raises(TypeError, match="model = 'llama3-8b'; allowed: a Transformer"):
        plan("llama3-8b", cluster("dgx-h100", 16), 64, 4096)
    with pytest.raises(ValueError, match="seq_len = 0"):
        plan(SMALL, cluster("dgx-h100", 16), 64, 0)
    with pytest.raises(ValueError, match="seq_len = '8k'; allowed: a whole number of tokens"):
        plan(SMALL, cluster("dgx-h100", 16), 64, "8k")


def test_a_length_is_any_whole_number_from_one_on():
    assert plan(SMALL, cluster("dgx-h100", 8), 64, 1).legal and plan(SMALL, cluster("dgx-h100", 8), 64, 1001).legal


def test_a_length_may_be_a_float_and_is_said_as_a_whole_number():
    machine, words = cluster("dgx-h100", 64), "1000 tokens do not cut into 2*cp = 32 equal parts"
    one, other = (plan(SMALL, machine, 64, length, cp=(1, 2)) for length in (8192, 8192.0))
    assert one.sentence() == other.sentence() and one.to_dict()["candidates"] == other.to_dict()["candidates"]
    assert all(words in said(plan(SMALL, machine, 64, length, cp=16)) for length in (1000, 1000.0))


def test_limits_hold_at_both_ends_of_their_range():
    for name, ends in dict(zero=(0, 3), recompute=(0, 1), sequence_parallel=(False, True), tp=(1,)).items():
        for end in ends:
            found = plan(SMALL, cluster("dgx-h100", 64), 128, 4096, **{name: end})
            assert {getattr(c.layout, name) for c in found.candidates + found.front} == {end}, name


def test_limits_and_options_hold():
    found = plan(SMALL, cluster("dgx-h100", 64), 128, 8192, tp=(2, 4), zero=1, recompute=(0, 1), sequence_parallel=True, cp=1)
    assert {c.layout.tp for c in found.front} <= {2, 4} and {c.layout.zero for c in found.front} == {1}
    assert all(c.layout.sequence_parallel and c.layout.cp == 1 and c.layout.recompute in (0, 1) for c in found.front)
    for tp in [2, 4], np.array([2, 4]), {2, 4}, range(2, 5, 2):
        assert plan(SMALL, cluster("dgx-h100", 64), 128, 8192, tp=tp, zero=1, recompute=(0, 1), sequence_parallel=True, cp=1).front == found.front
    wide, narrow = (plan(SMALL, cluster("dgx-h100", 64), 128, 8192, options=dict(format=f)).best.time for f in ("bf16", "fp8"))
    assert narrow < wide


def test_further_rules_are_masks():
    """For each framework: as many layouts as it refuses none of, one by one; the best of them; the same pruned and not."""
    job = SMALL, cluster("dgx-h100", 16), 16, 8192
    limits = dict(tp=(1, 2, 4), recompute=(0, 0.3, 1), copies=(1, 2))
    every = plan(*job, keep=10**6, prune=False, share=1, **limits)
    assert every.fits == len(every.candidates)
    for framework, dialect in DIALECTS.items():
        can = [c for c in every.candidates if not refusals(framework, every.model, c.cluster, c.layout, 8192)]
        found = plan(*job, keep=10**6, prune=False, share=1, rules=dialect.refuses, **limits)
        assert [c.layout for c in found.candidates] == [c.layout for c in can] and 0 < len(can) == found.fits < every.fits
        pruned = plan(*job, prune=True, share=1, rules=dialect.refuses, **limits)
        assert pruned.candidates == found.candidates[:10] and pruned.front == found.front and pruned.legal == found.legal


def test_a_further_rule_that_leaves_nothing_is_named():
    """What is alone to blame is, else all that one layout breaks; a limit helps that frees one that is allowed."""
    never, odd = (Rule(name, lambda q, k=k: q.dp % 2 == k, lambda q, k=k: f"dp = {q.dp} is {'even' if k else 'odd'}.") for k, name in ((0, "even"), (1, "odd")))
    job = SMALL, cluster("dgx-h100", 16), 16, 8192
    assert plan(*job, rules=iter((odd,)), devices=(8, 16)).front == plan(*job, rules=(odd,), devices=(8, 16)).front
    assert plan(*job, rules=(odd,), dp=(2, 4)).why == (
        "No layout of 16 devices and 16 sequences keeps all rules.", "For one: dp = 4 is even.", "It works if you leave dp free.")
    assert "For one: dp = 1 is odd." in plan(*job, rules=(never,), dp=1).why and plan(*job, rules=(never,))
    both = plan(*job, rules=(never, odd))
    assert not both.legal and [why for why in both.why if "dp" in why and "leave" in why] == []
    assert plan(*job, zero=0, copies=2).why == ("No layout of 16 devices and 16 sequences is legal.", "For one: copies = 2 of what zero = 0 does not shard are no choice.",
                                               "It works if you leave zero free.", "It works if you leave copies free.")
    assert plan(*job, zero=0, copies=2, recompute=.5, cheap_recompute=1).why[1:] == (
        "For one: copies = 2 of what zero = 0 does not shard are no choice.",
        "For one: Cheap outputs are made again where no layer is run again; recompute = 0.5.",
        "It works if you leave zero, copies, recompute, cheap_recompute free.")
    none = [Rule(name, lambda q, name=name: getattr(q, name) < 0, lambda q, name=name: f"{name} = {getattr(q, name)} is above 0.")
            for name in ("dp", "tp")]
    assert plan(*job, rules=none, zero=0).why[1:] == ("For one: dp = 16 is above 0.", "For one: tp = 1 is above 0.")
    shared = plan(model("mixtral-8x7b"), cluster("dgx-h100", 64), 64, 4096, copies=16, ep=8, zero=1)
    assert "For one: ep = 8 does not divide the 4 ranks of a copy" in shared.why[1], shared.why


def test_copies_in_nodes_are_the_answer_to_a_slow_network():
    """ZeRO-3 without other degrees: weights come from the node, more memory is needed, and less ends with a device."""
    machine = cluster("dgx-h100", 64)
    near, far = machine.levels
    slow = replace(machine, levels=(near, replace(far, link=replace(far.link, beta=far.link.beta/20))))
    kw = dict(tp=1, pp=1, cp=1, zero=3, recompute=1)
    some, alone = plan(SMALL, slow, 64, 8192, copies=8, **kw).best, plan(SMALL, slow, 64, 8192, copies=1, **kw).best
    assert some.layout.shards == 8 and some.blast == 8 < alone.blast == 64
    assert some.time < 0.95*alone.time and some.memory > alone.memory
    assert plan(SMALL, slow, 64, 8192, **kw).best == some


# --- objectives

def test_several_numbers_of_devices_share_one_front():
    found = plan(SMALL, cluster("dgx-h100", 64), 64, 8192, devices=(8, 16, 32, 64), objective="cost")
    assert {c.devices for c in found.front} == {8, 16, 32, 64}, "fewer devices are one way to be better"
    alone = {n: plan(SMALL, cluster("dgx-h100", n), 64, 8192) for n in (8, 16, 32, 64)}
    assert found.best.score == pytest.approx(min(n*p.best.time for n, p in alone.items()))
    assert found.legal == sum(p.legal for p in alone.values())
    points = [(c.time, c.memory, c.devices, c.blast) for c in found.front]
    assert not any(a != b and all(x <= y for x, y in zip(a, b)) for a in points for b in points)
    every = [(c.time, c.memory, c.devices, c.blast) for p in alone.values() for c in p.front]
    assert all(any(all(x <= y for x, y in zip(a, b)) for a in points) for b in every)


def test_more_devices_that_bring_nothing_leave_the_front():
    """Eight sequences of 1,024: what is beaten by fewer devices goes, that which is as good in all but one of four too; the rest stays."""
    sizes = 8, 16, 32, 64
    point = lambda c: (c.time, c.memory, c.devices, c.blast)
    every = [point(c) for n in sizes for c in plan(SMALL, cluster("dgx-h100", n), 8, 1024).front]
    beaten = [b for b in every if any(a != b and all(x <= y for x, y in zip(a, b)) for a in every)]
    front = [point(c) for c in plan(SMALL, cluster("dgx-h100", 64), 8, 1024, devices=sizes).front]
    assert len(beaten) > 20 and front == sorted(set(every) - set(beaten), key=lambda p: p[:2])


def test_numbers_of_devices_have_no_order():
    """Nor are they counted twice. Reasons are about the largest: it would fit 16 if all of their memory were filled, and 8 not even so."""
    one, other = (plan(LARGE, cluster("dgx-h100", 16), 64, 8192, devices=sizes) for sizes in ((8, 16), (16, 8)))
    assert one.why == other.why and "fill all of the memory" in " ".join(one.why) and one.legal == other.legal
    twice = plan(SMALL, cluster("dgx-h100", 16), 64, 8192, devices=(16, 16))
    assert twice.legal == plan(SMALL, cluster("dgx-h100", 16), 64, 8192).legal and len(set(map(id, twice.candidates))) == 10


def test_goodput_counts_failures():
    rare, often = Failures(mtbf=50_000*hour, checkpoint=30), Failures(mtbf=5*hour, checkpoint=30)
    assert 54*day/(LLAMA3_MTBF/16_384) == pytest.approx(419), "unexpected interruptions of Llama 3's cluster in 54 days"
    assert Failures(mtbf=0.5, checkpoint=0.1, restart=0) and rare.restart == 300
    with pytest.raises(ValueError, match="restart = -1"):
        Failures(mtbf=1, checkpoint=1, restart=-1)
    assert 1 < rare.slowdown(64) < 1.02 and often.slowdown(64) > 1.2
    machine = cluster("dgx-h100", 64)
    time, good, bad = (plan(SMALL, machine, 64, 8192, devices=(8, 64), **kw) for kw in (
        {}, dict(objective="goodput", failures=rare), dict(objective="goodput", failures=Failures(mtbf=2*hour, checkpoint=120))))
    assert time.best.devices == good.best.devices == 64 and bad.best.devices == 8, "more devices, more failures"
    assert good.best.score == pytest.approx(good.best.time*rare.slowdown(64))


def test_where_no_work_lasts_it_says_so():
    """Just inside and just outside of Daly's interval; with sizes that last, these are searched, the others named."""
    edge = Failures(mtbf=3600, checkpoint=120)
    assert edge.hopeless(59) == () and 19 < edge.slowdown(59) < math.inf and edge.slowdown(60) == math.inf == edge.slowdown(10**6)
    assert edge.hopeless(60) == ("With 60 devices a failure comes every 60 s, and a checkpoint takes 120 s: no work would last.",)
    assert edge.slowdown(8) > edge.slowdown(4) > 1
    machine = cluster("dgx-h100", 64)
    none = plan(SMALL, machine, 64, 8192, objective="goodput", failures=edge)
    assert not none and none.why == edge.hopeless(64) and none.legal == 0
    some = plan(SMALL, machine, 64, 8192, devices=(8, 64), objective="goodput", failures=edge)
    assert some.best.devices == 8 and edge.hopeless(64)[0] in some.why
    assert plan(SMALL, machine, 64, 8192, failures=edge), "time counts no failures"


def test_a_deadline_leaves_out_the_late():
    machine = cluster("dgx-h100", 64)
    free = plan(SMALL, machine, 512, 8192)
    steps = 1e12/(512*8192)
    tight = 1.05*free.best.time*steps
    found = plan(SMALL, machine, 512, 8192, tokens=1e12, deadline=tight, keep=1000)
    assert found.best == free.best and all(c.time*steps <= tight for c in found.candidates + found.front)
    late = plan(SMALL, machine, 512, 8192, tokens=1e12, deadline=0.5*free.best.time*steps)
    assert not late and "No layout is fast enough: a step may take" in late.why[0] and late.why[1].startswith("It works if you use 256 devices: ")
    assert plan(SMALL, machine, 512, 8192, tokens=1e12, deadline=0.5*free.best.time*steps, devices=256)
    assert plan(SMALL, machine, 512, 8192, tokens=1, deadline=1).best == free.best, "a part of a step"


def test_a_deadline_counts_failures_where_goodput_does():
    """Between the time of the best and its time with failures: late for one objective, in time for the other two."""
    machine, steps = cluster("dgx-h100", 64), 1e12/(512*8192)
    kw = dict(tokens=1e12, failures=Failures(mtbf=50*hour, checkpoint=60))
    best = plan(SMALL, machine, 512, 8192, objective="goodput", **kw).best
    assert best.score > 1.3*best.time
    late = plan(SMALL, machine, 512, 8192, objective="goodput", deadline=0.99*best.score*steps, **kw)
    assert late.why[0] == (f"No layout is fast enough: a step may take {show(0.99*best.score, 's')}, and the fastest that fits takes "
                           f"{show(best.score, 's')}, failures counted.")
    assert plan(SMALL, machine, 512, 8192, objective="goodput", deadline=1.01*best.score*steps, **kw).best == best
    for objective in "time", "cost":
        assert plan(SMALL, machine, 512, 8192, objective=objective, deadline=1.01*best.time*steps, **kw).best.layout == best.layout
        late = plan(SMALL, machine, 512, 8192, objective=objective, deadline=0.99*best.time*steps, **kw)
        assert f"and the fastest that fits takes {show(best.time, 's')}." in late.why[0]


def test_elasticities_say_what_to_measure_first():
    found = plan(LARGE, cluster("dgx-h100", 1024), "4M", 8192, zero=1).elasticities()
    assert next(iter(found)) == "matrix products" and found["matrix products"] < -0.7
    rates = sum(v for k, v in found.items() if "latency" not in k)
    waits = sum(v for k, v in found.items() if "latency" in k)
    assert rates - waits == pytest.approx(-1, abs=0.05), "all rates twice, all latencies half: half the time"
    best = plan(LARGE, cluster("dgx-h100", 1024), "4M", 8192, zero=1).best
    device, levels = best.cluster.device, best.cluster.levels

    def seconds(n):
        """With each constant n times as large, in the order of CONSTANTS."""
        faster = replace(device, dense={k: n*v for k, v in device.dense.items()}, measured={k: n*v for k, v in device.measured.items()})
        machines = [replace(best.cluster, device=d) for d in (faster, replace(device, bandwidth=n*device.bandwidth))]
        for name in "beta", "alpha":
            more = [replace(x, link=replace(x.link, **{name: n*getattr(x.link, name)})) for x in levels]
            machines += [replace(best.cluster, levels=(more[0], *levels[1:])), replace(best.cluster, levels=(levels[0], *more[1:]))]
        return np.array([estimate(LARGE, machine, best.layout, 8192).time for machine in machines])
    slopes = (seconds(1.001) - seconds(1/1.001))/(2*math.log(1.001)*best.time)
    assert [found[name] for name in CONSTANTS] == pytest.approx(slopes, rel=1e-3, abs=1e-6)
    assert list(found.values()) == pytest.approx(sorted(slopes, key=abs, reverse=True), rel=1e-3, abs=1e-6), "the greatest first"
    slow = cluster("dgx-h100", 1024)
    slow = replace(slow, levels=tuple(replace(x, link=replace(x.link, beta=x.link.beta/50)) for x in slow.levels))
    assert "bandwidth" in next(iter(plan(LARGE, slow, "4M", 8192, dp=1).elasticities()))


# --- reasons

def said(found):
    assert not found and not found.candidates and not found.front
    with pytest.raises(ValueError, match="No layout"):
        found.best  # noqa: B018
    return " ".join(found.why)


def works(*job, **how):
    """Whether there is a plan, whose reasons, searches all, nobody asks for."""
    with pytest.MonkeyPatch.context() as quiet:
        quiet.setattr("capacity.planner._why", lambda *job: ())
        return bool(plan(*job, **how))


def test_what_does_not_fit_is_told_how_it_would():
    machine = cluster("dgx-h100", 8)
    words = said(plan(LARGE, machine, 64, 8192))
    assert "No layout fits: the smallest of" in words and "GB per device, and 90% of 80 GB may be filled" in words
    assert "use 32 devices" in words and plan(LARGE, machine, 64, 8192, devices=32) and not works(LARGE, machine, 64, 8192, devices=16)
    assert "fill all of the memory" not in words and "fill all of the memory (share = 1)" in said(plan(LARGE, cluster("dgx-h100", 16), 64, 8192))
    need = float(words.split("needs ")[1].split(" GB")[0])*GB
    bigger = replace(machine, device=replace(machine.device, memory=1.02*need/0.9))
    smaller = replace(machine, device=replace(machine.device, memory=0.98*need/0.9))
    assert plan(LARGE, bigger, 64, 8192) and not works(LARGE, smaller, 64, 8192), "the smallest is the smallest"


def test_a_limit_that_hurts_is_named():
    machine = cluster("dgx-h100", 8)
    words = said(plan(SMALL, machine, 8, 16384, recompute=0, cp=1, tp=1, pp=1))
    assert "recompute fully (recompute = 1)" in words and plan(SMALL, machine, 8, 16384, recompute=(0, 1), cp=1, tp=1, pp=1)
    words = said(plan(SMALL, machine, 8, 8192, zero=0, tp=1, pp=1))
    assert "shard everything (zero = 3)" in words and "leave tp free" in words


def followed(change, shape, machine, batch, seq_len, limits):
    """The plan after the change that a sentence asks for."""
    kw = {}
    if found := re.fullmatch("leave (.*) free", change):
        limits = {k: v for k, v in limits.items() if k not in found[1].split(", ")}
    elif found := re.fullmatch(r"use ([\d,]+) devices", change):
        kw["devices"] = int(found[1].replace(",", ""))
        assert not works(shape, machine, batch, seq_len, devices=kw["devices"]//2, **limits), "half of them are too few"
    elif found := re.fullmatch("take (.*), with .*", change):
        device, = (a for a in accelerators().values() if a.name == found[1])
        for other in accelerators().values():
            if machine.device.memory < other.memory < device.memory and other.measured:
                assert not works(shape, replace(machine, device=other), batch, seq_len, **limits), "a smaller one is too small"
        machine = replace(machine, device=device)
    elif change.endswith("(share = 1)"):
        kw["share"] = 1
    else:
        name, value = re.fullmatch(r".*\((\w+) = (\d)\)", change).groups()
        limits = limits | {name: (limits[name], int(value))}
    return plan(shape, machine, batch, seq_len, **limits, **kw)


def test_every_change_that_is_said_to_help_helps():
    """Followed to the letter, it gives the layout and the time of its sentence; of limits that hurt only together, all are named."""
    kinds = set()
    for shape, devices, batch, seq_len, limits, least in (
            (LARGE, 64, 64, 8192, dict(tp=1, zero=0, pp=1), 4), (SMALL, 8, 8, 65536, dict(cp=1, tp=1), 6),
            (SMALL, 8, 8, 131072, dict(cp=1, tp=1, recompute=0), 1), (SMALL, 8, 8, 16384, dict(recompute=0, cp=1, tp=1, pp=1), 2)):
        job = shape, cluster("dgx-h100", devices), batch, seq_len
        none = plan(*job, **limits)
        assert none.why[0].startswith("No layout fits") and len(none.why) > least
        for sentence in none.why[1:]:
            change, said_ = re.fullmatch("It works if you (.*?): (.*)", sentence).groups()
            best = followed(change, *job, limits).best
            assert said_ == f"{best}, {show(best.time, 's')} a step.", sentence
            kinds.add(change.split(" ")[0] + " all"*(change == f"leave {', '.join(limits)} free"))
    assert kinds == {"recompute", "shard", "leave", "leave all", "fill", "use", "take"}


def test_up_to_sixty_four_times_as_many_devices_are_tried():
    tried = []
    assert not planner._more_devices(SimpleNamespace(search=lambda n: tried.append(n) or SimpleNamespace(best=[])), 8) and tried == [16, 32, 64, 128, 256, 512]


def test_a_batch_that_does_not_divide_is_told_which_does():
    words = said(plan(LARGE, cluster("dgx-h100", 64), 7, 1000, tp=8, pp=1))
    assert "A batch of 7 sequences does not divide into 8 ranks" in words and "a batch of 8 sequences" in words
    assert plan(LARGE, cluster("dgx-h100", 64), 8, 1000, tp=8, pp=1).legal
    near = {n: said(plan(LARGE, cluster("dgx-h100", 64), n, 8192, tp=8, pp=1, cp=1)) for n in (9, 11, 13, 15)}
    assert [int(re.search(r"take a batch of (\d+) sequences", words)[1]) for words in near.values()] == [8, 8, 16, 16], "the nearest"
    few = said(plan(LARGE, cluster("dgx-h100", 64), 1, 8192, tp=8, pp=1, cp=1))
    assert "and 1 sequence is legal." in few and "take a batch of 8 sequences" in few and "batch of 0" not in few, "not none at all"
    assert "the only legal one needs 813 GB per device" in said(plan(SMALL, cluster("dgx-h100", 16), 16, 131072, zero=0, recompute=0, cheap_recompute=0, tp=1, cp=1, pp=1))


def test_where_no_limit_is_to_blame_fewer_devices_are_named():
    """One layer of 1,024 tokens on seven nodes: six are cut into three by eight, and so much as eight would do, which are not there."""
    one = replace(SMALL, layers=1)
    found = plan(one, cluster("dgx-h100", 56), 8, 1024)
    assert found.why[-2:] == ("It works if you take a batch of 7 sequences.", "It works if you use 48 devices.")
    assert sum("It works" in why for why in found.why) == 2 and "For one: dp*cp*tp*pp = 3*8*2*1 is 48, and the cluster has 56 devices." in found.why
    assert plan(one, cluster("dgx-h100", 48), 8, 1024).legal and plan(one, cluster("dgx-h100", 64), 8, 1024).legal
    eleven = plan(one, cluster("dgx-h100", 88), 8, 1024)
    assert eleven.why[-1] == "It works if you use 64 devices." and not any(plan(one, cluster("dgx-h100", n), 8, 1024).legal for n in (72, 80))
    freed = plan(SMALL, cluster("dgx-h100", 72), 8, 8192, tp=8, pp=1, cp=1)
    assert freed.why[-2:] == ("It works if you leave pp free.", "It works if you take a batch of 9 sequences.")


def test_a_degree_that_is_none_is_named():
    words = said(plan(LARGE, cluster("dgx-h100", 64), 64, 8192, tp=7))
    assert "tp = 7 does not divide devices = 64." in words and "leave tp free" in words
    words = said(plan(LARGE, cluster("dgx-h100", 64), 64, 8192, ep=8))
    assert "For one: ep = 8, and there are no experts." in words and "leave ep free" in words
    words = said(plan(LARGE, cluster("dgx-h100", 16), 64, 8192, tp=8, pp=4))
    assert "is 32, and the cluster has 16 devices" in words


def test_where_no_rule_alone_is_to_blame_the_last_to_refuse_is_named():
    """Three ranks divide neither heads nor key-value heads; that chunks need a pipeline is true of some layouts, and no reason."""
    found = plan(SMALL, cluster("dgx-h100", 24), 24, 4096, tp=3)
    assert found.why == ("No layout of 24 devices and 24 sequences is legal.", "For one: 32 attention heads do not divide over tp = 3.",
                         "It works if you leave tp free.")
    assert plan(SMALL, cluster("dgx-h100", 24), 24, 4096)


# --- what a Plan shows

def test_a_layout_says_its_degrees_and_its_schedule():
    job = SMALL, cluster("dgx-h100", 16), 64, 8192
    assert str(plan(*job, tp=2, pp=2, schedule="ZB-H1").best) == "tp 2 sp, pp 2, cp 2, dp 2, ZB-H1"
    assert str(plan(*job, devices=8, tp=1, pp=1, cp=1, dp=8).best) == "dp 8"


def test_a_plan_displays_and_exports():
    found = plan(SMALL, cluster("dgx-h100", 16), 64, 8192)
    text = repr(found)
    assert text.startswith("<plan: Llama 3 8B on 16 x NVIDIA H100") and "layouts in" in text
    html = found._repr_html_()
    assert html.count("<tr") == 1 + len(found.candidates) and "MFU" in html
    data = json.loads(json.dumps(found.to_dict()))
    assert data["legal"] == found.legal and data["candidates"][0]["time"] == found.best.time
    rows = found.to_csv().splitlines()
    assert len(rows) == 1 + len(found.candidates) and rows[0].startswith("tp,pp,cp,dp,ep,chunks")
    assert len(found.to_csv("front").splitlines()) == 1 + len(found.front)
    named = [str(c) for c in found.candidates + found.front]
    assert not any(re.search(r" 1\b", x) for x in named), "a degree of one is not said"
    assert str(plan(SMALL, cluster("dgx-h100", 8), 8, 8192, keep=1, dp=8, zero=3).best) == "dp 8"
    assert plan(SMALL, cluster("dgx-h100", 16), 64, 8192, keep=1).to_csv().splitlines() == rows[:2]
    with pytest.raises(ValueError, match="of = 'all'"):
        found.to_csv("all")
    none = plan(LARGE, cluster("dgx-h100", 8), 64, 8192)
    assert "No layout fits" in repr(none) and "No layout fits" in none._repr_html_() and json.dumps(none.to_dict())
    assert none.to_csv() == "tp\n" and none.sentence() == " ".join(none.why)
    degrees = [c.layout.recompute for c in found.candidates + found.front]
    assert 0 in degrees and all(type(x) is int or 0 < x < 1 for x in degrees)
    assert len(found.candidates) == 10 and "<table" not in none._repr_html_()
    assert none.to_dict()["elasticities"] == {} and type(none.to_dict()["why"]) is list and found.to_dict()["elasticities"] == found.elasticities()
    assert {type(x) for x in found.best.to_dict().values()} == {int, float, bool, type(None)}


@pytest.mark.parametrize("limits, words", [(dict(copies=8, zero=3, tp=1, pp=1, cp=1), ["dp 64", "1 of 1", "3 x 8", "0%"]),
                                           (dict(zero=1, copies=1, recompute=0, cheap_recompute=1), ["dp 64", "1 of 1", "1", "cheap"]),
                                           (dict(zero=1, copies=1, recompute=.5), ["dp 64", "1 of 1", "1", "50%"])])
def test_a_row_says_the_choices(limits, words):
    found = plan(SMALL, cluster("dgx-h100", 64), 64, 8192, **limits)
    head, (row, *_) = found.rows(most=1)
    assert row[:4] == words and dict(zip(head, row))["step"] == show(found.best.time, "s") and row[-1] == 64


def test_the_time_of_a_run_is_said_with_its_failures():
    job, steps = (SMALL, cluster("dgx-h100", 64), 512, 8192), 1e12/(512*8192)
    plain = plan(*job, tokens=1e12)
    assert plain.sentence().endswith(f"All 10¹² tokens take {show(steps*plain.best.time, 's')}.")
    failing = plan(*job, tokens=1e12, objective="goodput", failures=Failures(mtbf=50*hour, checkpoint=60))
    slow = failing.best.score/failing.best.time
    assert slow > 1.3 and failing.sentence().endswith(
        f"All 10¹² tokens take {show(steps*failing.best.score, 's')}. Failures and checkpoints take {1 - 1/slow:.1%} of the run.")
    cheap = plan(*job, tokens=1e12, objective="cost")
    assert cheap.sentence().endswith(f"All 10¹² tokens take {show(steps*cheap.best.time, 's')}.")
    assert LLAMA3_MTBF*419 == pytest.approx(16_384*54*86_400, rel=1e-12)
    with pytest.raises(ValueError, match="mtbf = 0; allowed: at least"):
        Failures(mtbf=0, checkpoint=1)


def test_progress_is_told():
    seen, start = [], time.process_time()
    found = plan(LARGE, cluster("dgx-h100", 256), 512, 8192, progress=lambda done, of: seen.append((done, of)))
    assert seen == sorted(seen) and seen[-1][0] == seen[-1][1]
    assert 0 < found.seconds <= time.process_time() - start, "its own, not of all that the process did before"


def test_speed():
    """At least two million layouts a second of one core, rules included; GPT-3 on 4,096 devices in a second."""
    shape, machine = model("gpt3-175b"), cluster("dgx-a100", 4096)
    found = min((plan(shape, machine, 1536, 2048, prune=False) for _ in range(3)), key=lambda p: p.seconds)
    assert found.legal > 4_000_000 and found.priced == found.legal
    assert found.seconds < 1 and found.legal/found.seconds > 2e6, (found.legal, found.seconds)

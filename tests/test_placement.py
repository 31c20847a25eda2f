"""Placements against their definition: every rank's array written out, every move run as a program of messages."""
import contextlib
import functools
import itertools
import math
import random
from fractions import Fraction

import numpy as np
import pytest

from capacity import Placement
from capacity.placement import conversion, matmul, search
from capacity.placement import TRANSPOSE, _coordinates, moves
from capacity.witness.resharding import coordinates, gathered, groups, perform, place, step
from capacity.witness.spmd import run

MESH = {"x": 2, "y": 3}
SHAPE = {"A": 12, "B": 36}


def placements(mesh, axes):
    """Every placement of these tensor axes on this mesh."""
    everywhere = [*axes, "partial", "replicated"]
    for choice in itertools.product(everywhere, repeat=len(mesh)):
        at = dict(zip(mesh, choice))
        orders = [itertools.permutations([x for x in mesh if at[x] == a]) for a in axes]
        for cuts in itertools.product(*orders):
            yield Placement.of(dict(zip(axes, cuts)), [x for x in mesh if at[x] == "partial"])


ALL = list(placements(MESH, SHAPE))


def linear_map(program, sources, size):
    """The integer matrix of a program on ranks: column i is what becomes of the i-th unit vector."""
    columns = []
    for i in range(size):
        unit = np.zeros(size, int)
        unit[i] = 1
        held = [part.reshape(like.shape) for part, like in
                zip(np.split(unit, np.cumsum([s.size for s in sources])[:-1]), sources)]
        columns.append(np.concatenate([np.ravel(v) for v in run(program, held).results]))
    return np.array(columns).T


def test_a_rank_has_the_coordinates_of_counting():
    for mesh in (MESH, {"x": 3, "y": 1, "z": 4}):
        for r in range(math.prod(mesh.values())):
            assert coordinates(mesh, r) == _coordinates(mesh, r)
    assert groups(MESH, "y") == [[0, 1, 2], [3, 4, 5]] and groups(MESH, "x") == [[0, 3], [1, 4], [2, 5]]
    assert groups(MESH, "") == [[r] for r in range(6)] and groups(MESH, "xy") == [[*range(6)]]


# ---- the notation ----------------------------------------------------------------------------
def test_text_goes_round():
    for p in ALL:
        assert Placement(str(p)) == p == eval(repr(p)) and hash(Placement(str(p))) == hash(p)
    assert str(Placement("  B/x   D {y  z } ")) == "B/x D {y z}"
    assert Placement("B {y x}") == Placement("B {x y}") and str(Placement("{x}")) == "{x}" and str(Placement("")) == ""
    assert Placement("B/x/y") != Placement("B/y/x") and Placement("B") != "B"


@pytest.mark.parametrize("text, position, allowed", [
    ("B//x", 2, "a mesh axis"), ("/x", 0, "a tensor axis"), ("B/x D/x", 6, "not used yet"), ("B B", 2, "not used yet"),
    ("B/x {x}", 5, "not used yet"), ("B {x x}", 5, "not used yet"), ("B {x", 4, "closing brace"), ("B {}", 3, "name"),
    ("B {x} D", 6, "nothing after"), ("B,D", 1, "a space"), ("B/x,y", 3, "a space"), ("B{x}", 1, "a space"),
    ("1", 0, "tensor axis"), ("partial", 0, "not used yet"), ("B/x}", 3, "a space")])
def test_bad_text_is_named(text, position, allowed):
    with pytest.raises(ValueError) as error:
        Placement(text)
    for word in (repr(text), f"position {position}:", allowed):
        assert word in str(error.value)


def test_bad_values_are_named():
    for bad, word in [(lambda: Placement(3), "3"),
                      (lambda: Placement("B/z").dual(MESH), "z"),
                      (lambda: Placement("A/x B").local_shape({"A": 12}, MESH), "A"),
                      (lambda: Placement("A/x B/y").local_shape({"A": 11, "B": 6}, MESH), "A = 11"),
                      (lambda: conversion("A/x", "A/y", {"A": 4}, MESH), "A = 4"),
                      (lambda: conversion("A/x B", "B A/x", SHAPE, MESH), "same tensor axes"),
                      (lambda: conversion("A B/z", "A B", SHAPE, MESH), "z"),
                      (lambda: conversion("A B", "A B", SHAPE, {"x": 0}), "x = 0"),
                      (lambda: conversion("A B", "A B", SHAPE, MESH, beta={"x": 1}), "y"),
                      (lambda: conversion("B/x", "B", {"B": -1024}, {"x": 8}), "shape: B = -1024; allowed: a count"),
                      (lambda: conversion("B/x", "B", {"B": 8.0}, {"x": 8}), "shape: B = 8.0; allowed: a count"),
                      (lambda: conversion("B/x", "B", {"B": 8}, {"x": True}), "mesh: x = True; allowed: a count"),
                      (lambda: conversion("B/x", "B", {"B": 8}, {"x": 8}, itemsize=-2), "itemsize = -2; allowed: bytes"),
                      (lambda: Placement("B/x").nbytes({"B": 8}, {"x": 8}, itemsize=0), "itemsize = 0; allowed: bytes"),
                      (lambda: conversion("B/x", "B", {"B": 8}, {"x": 8}, beta={"x": 0}), "beta: x = 0; allowed: bytes per"),
                      (lambda: conversion("B/x", "B", {"B": 8}, {"x": 8}, also=("t",)), "also has 't'; allowed: x")]:
        with pytest.raises(ValueError, match=word):
            bad()


def test_what_is_no_dict_is_named():
    for bad, word in [(lambda: conversion("B/x D", "B D", (1024, 4096), {"x": 8}), r"shape = \(1024, 4096\); allowed: a dict"),
                      (lambda: conversion("B/x D", "B D", {"B": 8, "D": 8}, 8), "mesh = 8; allowed: a dict"),
                      (lambda: Placement("B").dual(8), "mesh = 8; allowed: a dict"),
                      (lambda: conversion("B/x", "B", {"B": 8}, {"x": 8}, beta=450e9), "beta = 450.*; allowed: a dict"),
                      (lambda: conversion("B/t", "B", {"B": 8}, {"t": 2}, also="tp"), r"also = 'tp'; allowed: a tuple.*\('tp',\)")]:
        with pytest.raises(TypeError, match=word):
            bad()


def test_sizes_of_numpy_are_sizes():
    plain = conversion("B/x D", "B D/x", {"B": 1024, "D": 4096}, {"x": 8})
    assert conversion("B/x D", "B D/x", {"B": np.int64(1024), "D": np.int32(4096)}, {"x": np.int64(8)}) == plain
    assert type(plain[0].nbytes) is int and plain[0].nbytes == 7*1024*4096*2//64
    four_bits, = conversion("B/x", "B", {"B": 8}, {"x": 8}, itemsize=Fraction(1, 2))
    assert four_bits.nbytes == Fraction(7, 2)


@pytest.mark.parametrize("p", ALL, ids=str)
def test_slices_are_the_notation(p):
    tensor = np.random.default_rng(1).integers(-9, 9, tuple(SHAPE.values()))
    held = place(tensor, p, MESH)
    assert np.array_equal(gathered(held, p, MESH, SHAPE), tensor)
    assert {h.shape for h in held} == {tuple(p.local_shape(SHAPE, MESH).values())}
    assert {h.nbytes for h in held} == {p.nbytes(SHAPE, MESH, itemsize=8)}


def test_outer_cut_first():
    p, mesh = Placement("A/x/y"), {"y": 3, "x": 2}        # rank = 2 y + x
    assert [p.slices({"A": 6}, mesh, r)[0].start for r in range(6)] == [0, 3, 1, 4, 2, 5]


# ---- duality ---------------------------------------------------------------------------------
def test_dual_is_an_involution():
    assert Placement("B/x D {y}").dual({"x": 8, "y": 4, "z": 2}) == Placement("B/x D {z}")
    for p in ALL:
        assert p.dual(MESH).dual(MESH) == p
        for m in moves(p, SHAPE, MESH):
            back = m.transpose(MESH)
            assert back.transpose(MESH) == m and back in list(moves(p := m.target.dual(MESH), SHAPE, MESH)), str(m)
    assert all(TRANSPOSE[t] == c for c, t in TRANSPOSE.items())


@pytest.mark.parametrize("p", ALL, ids=str)
def test_a_move_backwards_is_the_transpose_of_its_matrix(p):
    """<A x, y> = <x, A' y> for every x and y, in integers: the two programs have transposed matrices."""
    shape = {"A": 6, "B": 6}
    for move in moves(p, shape, MESH):
        back = move.transpose(MESH)
        here, there = (place(np.zeros((6, 6), int), q, MESH) for q in (move.source, move.target))
        rng = np.random.default_rng(7)
        for _ in range(3):
            x, y = ([rng.integers(-9, 9, h.shape) for h in held] for held in (here, there))
            forth = run(lambda comm, v: step(comm, v, move, MESH, shape), x).results
            again = run(lambda comm, v: step(comm, v, back, MESH, shape), y).results
            assert sum((a*b).sum() for a, b in zip(forth, y)) == sum((a*b).sum() for a, b in zip(x, again)), str(move)


def test_a_small_move_as_explicit_matrices():
    mesh, shape = {"x": 3}, {"A": 3}
    for text in ("A", "A/x", "A {x}"):
        for move in moves(text, shape, mesh):
            back = move.transpose(mesh)
            one, two = ([np.zeros(q.local_shape(shape, mesh)["A"])]*3 for q in (move.source, move.target))
            M = linear_map(lambda c, v: step(c, v, move, mesh, shape), one, sum(v.size for v in one))
            N = linear_map(lambda c, v: step(c, v, back, mesh, shape), two, sum(v.size for v in two))
            assert np.array_equal(M.T, N), str(move)


# ---- moves and routes ------------------------------------------------------------------------
@pytest.mark.parametrize("p", ALL, ids=str)
def test_moves_keep_the_tensor_and_send_their_bytes(p):
    tensor = np.random.default_rng(2).integers(-9, 9, tuple(SHAPE.values()))
    held = place(tensor, p, MESH)
    for move in moves(p, SHAPE, MESH, itemsize=8):
        out = run(lambda comm, v: step(comm, v, move, MESH, SHAPE), held)
        assert np.array_equal(gathered(out.results, move.target, MESH, SHAPE), tensor), str(move)
        assert out.sent().max() == move.nbytes, str(move)
        if move.collective != "permute":
            assert set(out.sent()) == {move.nbytes}, str(move)


def test_three_cuts_of_one_axis():
    mesh, shape = {"x": 2, "y": 2, "z": 2}, {"A": 8}
    tensor = np.random.default_rng(6).integers(-9, 9, 8)
    deep = [p for p in placements(mesh, shape) if len(p.cuts["A"]) > 1]
    assert len(deep) == 18
    for p in deep:
        for move in moves(p, shape, mesh, itemsize=8):
            out = run(lambda comm, v: step(comm, v, move, mesh, shape), place(tensor, p, mesh))
            assert np.array_equal(gathered(out.results, move.target, mesh, shape), tensor), str(move)
            assert out.sent().max() == move.nbytes and move.transpose(mesh).transpose(mesh) == move
        route = conversion("A/x/y/z", p, shape, mesh)
        assert not route or route[-1].target == p
    turns = [m for m in moves("A/x/y/z", shape, mesh) if m.collective == "permute"]
    assert [(m.axis, str(m.target)) for m in turns] == [("x y", "A/y/x/z"), ("y z", "A/x/z/y")]
    alone, = [m for m in moves("A/x/y", shape, {"x": 1, "y": 4}) if m.collective == "permute"]
    assert alone.nbytes == 0                               # with one rank on an axis the order of cuts is only a name


def test_a_move_cuts_only_what_divides():
    assert {str(m.target) for m in moves("A/x B", {"A": 2, "B": 5}, {"x": 2, "y": 5})} \
        == {"A B", "A B {x}", "A/x B/y", "A/x B {y}"}


def test_names_may_contain_one_another():
    called, mesh = {"x": "t", "y": "tp"}, {"t": 2, "tp": 3}

    def rename(p):
        return Placement.of({a: [called[x] for x in by] for a, by in p.cuts.items()}, [called[x] for x in p.partial])

    for p in ALL:
        assert [(m.collective, rename(m.target), m.nbytes) for m in moves(p, SHAPE, MESH)] \
            == [(m.collective, m.target, m.nbytes) for m in moves(rename(p), SHAPE, mesh)], str(rename(p))
    assert [str(m.target) for m in conversion("A/t/tp", "A/t", {"A": 12}, mesh)] == ["A/t"]


def test_every_conversion_arrives():
    tensor = np.random.default_rng(3).integers(-9, 9, tuple(SHAPE.values()))
    for source, target in random.Random(0).sample(list(itertools.product(ALL, ALL)), 60):
        route = conversion(source, target, SHAPE, MESH, itemsize=8)
        held = place(tensor, source, MESH)
        out = run(perform, held, route, MESH, SHAPE)
        assert np.array_equal(gathered(out.results, target, MESH, SHAPE), tensor)
        assert out.sent().max() <= sum(m.nbytes for m in route)


def simple_paths(p, target, seen, free):
    if p == target:
        yield 0, 0
        return
    for m in moves(p, SHAPE, MESH):
        if m.target not in seen and free.issuperset(m.axis.split()):
            for spent, steps in simple_paths(m.target, target, seen | {m.target}, free):
                yield spent + m.nbytes, steps + 1


def test_the_route_is_the_cheapest_of_all_paths():
    """All paths of one mesh axis exhaustively; for two, against relaxing every move until nothing changes."""
    everything = {p: list(moves(p, SHAPE, MESH)) for p in ALL}
    for source in ALL:
        for free in ({"x"}, {"y"}, {"x", "y"}):
            best = {source: (0, 0)}
            for _ in ALL:
                new = dict(best)
                for p, (spent, steps) in best.items():
                    for m in everything[p]:
                        if free.issuperset(m.axis.split()):
                            new[m.target] = min((spent + m.nbytes, steps + 1), new.get(m.target, (math.inf, 0)))
                if new == best:
                    break
                best = new
            for target, cost in best.items():
                route = conversion(source, target, SHAPE, MESH, also=free)
                moved = {x for x in MESH if x in free or source._depth(x) != target._depth(x)}
                assert moved == free and (sum(m.nbytes for m in route), len(route)) == cost


def test_the_route_against_every_simple_path():
    for source, target in [("A B {x}", "A/x B"), ("A/x B", "A B/x"), ("A/x B", "A B {x}"), ("A B {x}", "A B")]:
        route = conversion(source, target, SHAPE, MESH)
        every = list(simple_paths(Placement(source), Placement(target), {Placement(source)}, {"x"}))
        assert min(every) == (sum(m.nbytes for m in route), len(route)) and len(every) > 2


def test_going_back_costs_what_going_forth_costs():
    for source, target in itertools.product(ALL, ALL):
        forth = conversion(source, target, SHAPE, MESH)
        back = conversion(target.dual(MESH), source.dual(MESH), SHAPE, MESH)
        assert sum(m.nbytes for m in forth) == sum(m.nbytes for m in back) and len(forth) == len(back)
        turned = [m.transpose(MESH) for m in reversed(forth)]
        if forth:
            assert (turned[0].source, turned[-1].target) == (target.dual(MESH), source.dual(MESH))
        assert all(a.target == b.source for a, b in itertools.pairwise(turned))


def named(source, target, mesh, shape=None, **more):
    return [m.collective for m in conversion(source, target, shape or {"B": 1024, "D": 4096}, mesh, **more)]


def test_the_table_of_the_field():
    x = {"x": 8}
    assert named("B/x D", "B D", x) == ["all_gather"] and named("B D {x}", "B D", x) == ["all_reduce"]
    assert named("B D {x}", "B/x D", x) == ["reduce_scatter"] and named("B/x D", "B D/x", x) == ["all_to_all"]
    assert named("B D", "B/x D", x) == ["slice"] and named("B/x D", "B D {x}", x) == ["zero_pad"]
    assert named("B D", "B D {x}", x) == ["mask"] and named("B D", "B D", x) == []


def test_several_axes():
    both = {"x": 8, "y": 4}
    assert named("B D {x y}", "B D", both) == ["reduce_scatter", "all_reduce", "all_gather"]
    total = sum(m.nbytes for m in conversion("B D {x y}", "B D", {"B": 1024, "D": 4096}, both))
    assert total == 2*Fraction(31, 32)*1024*4096*2                 # two levels send what one ring of 32 sends
    assert named("B/x D", "B/y D", both) == ["slice", "permute", "all_gather"]
    fast_y = conversion("B D {x y}", "B D", {"B": 1024, "D": 4096}, both, beta={"x": 50e9, "y": 450e9})
    assert [m.axis for m in fast_y] == ["y", "x", "y"]             # the slow axis carries the small part
    assert "permute" not in named("B/x D", "B/y D", both, beta={"x": 450e9, "y": 1e9})     # it would cross the slow axis
    alone, shared = (conversion("B D {x}", "B/x D", {"B": 1024, "D": 4096}, both, also=also) for also in ((), ("y",)))
    assert len(alone) == 1 and sum(m.nbytes for m in shared) < alone[0].nbytes
    assert conversion("{x}", "", {}, {"x": 4}, itemsize=4)[0].nbytes == 6
    assert str(conversion("B {x}", "B", {"B": 3}, {"x": 4})[0]) == "all_reduce x: B {x} -> B, 9 bytes"
    assert conversion("{x}", "", {}, {"x": 3})[0].nbytes == Fraction(8, 3)


# ---- products --------------------------------------------------------------------------------
def test_the_four_cases():
    assert matmul("B/x D", "D F/y") == Placement("B/x F/y")
    assert matmul("B D/x", "D/x F") == Placement("B F {x}")
    assert matmul("B D {x}", "D F") == Placement("B F {x}")
    assert matmul("E/x B D", "E/x D F", keep="E") == Placement("E/x B F")
    for a, b, word in [("B D/x", "D F", "all_gather that one"), ("B/x D", "D F/x", "cuts B of one and F"),
                       ("B D {x}", "D/x F", "partial in one"), ("B D {x}", "D F {x}", "partial in one"),
                       ("B D/x/y", "D/y/x F", "another order"), ("B D/x/y", "D/x F", "axis y cuts D in one only")]:
        with pytest.raises(ValueError, match=word):
            matmul(a, b)
    with pytest.raises(ValueError, match="keep has 'Q'"):
        matmul("B D", "D F", keep="Q")


def test_products_by_running_them():
    """What `matmul` allows is the product, and what it refuses stands for the product in no placement."""
    mesh, left, right, out = {"x": 2, "y": 3}, {"B": 6, "D": 6}, {"D": 6, "F": 6}, {"B": 6, "F": 6}
    rng = np.random.default_rng(5)
    X, W = rng.integers(-9, 9, (6, 6)), rng.integers(-9, 9, (6, 6))

    def is_product(local, p):
        try:
            return np.array_equal(gathered(local, p, mesh, out), X @ W)
        except (AssertionError, ValueError):                 # replicas differ, or shapes do
            return False

    legal = 0
    for a, b in itertools.product(placements(mesh, left), placements(mesh, right)):
        try:
            local = [x @ w for x, w in zip(place(X, a, mesh, 1), place(W, b, mesh, 2))]
        except ValueError:
            local = None
        try:
            p = matmul(a, b)
        except ValueError:
            assert local is None or not any(is_product(local, p) for p in placements(mesh, out)), (a, b)
        else:
            assert is_product(local, p), (a, b)
            legal += 1
    assert legal == 39


# ---- a search over layouts -------------------------------------------------------------------
WIDE = {"B": 16, "D": 8, "F": 32, "E": 8}
UNIT = Fraction(16*8*2*3, 4)                                   # an all-gather of B D over four ranks
MLP = [["D F/t", "D/t F"], ["B F/t", "B F"], ["F/t E", "F E/t"]]


def turned(steps):
    """The chain of the cotangents: last weight first, each with its axes exchanged."""
    return [[" ".join(reversed(str(p).split())) if i % 2 == 0 else str(p) for p in options]
            for i, options in reversed(list(enumerate(steps)))]


def test_megatron_is_the_one_cheapest_layout():
    found = search("B D", MLP, "B E", WIDE, {"t": 4})
    assert [f.cost/UNIT for f in found] == [2, 5, 5, 6, 6, 9, 9, 10]
    assert [str(p) for p in found[0].choice] == ["D F/t", "B F/t", "F/t E"]
    assert [m.collective for m in found[0].moves] == ["all_reduce"]
    shared = search("B/t D", MLP, "B/t E", WIDE, {"t": 4})
    assert shared[0].choice == found[0].choice and shared[0].cost == found[0].cost < shared[1].cost
    assert [m.collective for m in shared[0].moves] == ["all_gather", "reduce_scatter"]


@pytest.mark.parametrize("wide", [4, 8, 16, 64])
def test_megatron_is_alone_only_in_a_layer_wider_than_the_stream(wide):
    found = search("B D", MLP, "B E", {**WIDE, "F": wide}, {"t": 4})
    cost = {tuple(map(str, f.choice)): f.cost/UNIT for f in found}
    assert cost["D F/t", "B F/t", "F/t E"] == 2 and cost["D F/t", "B F/t", "F E/t"] == 1 + Fraction(wide, 8)
    assert (found[0].cost < found[1].cost) == (wide > 8) and found[0].cost == min(2, 1 + Fraction(wide, 8))*UNIT


def test_backward_costs():
    """With one loss copies come and go; with a loss on every rank terms do, and every move is transposed."""
    mesh, forth = {"t": 4}, search("B D", MLP, "B E", WIDE, {"t": 4})
    free = {"B F/t": ["B F/t"], "B F": ["B F", "B F/t", "B F {t}"]}    # s'(H) is there on copies: any placement
    back = [search("B E", turned([[a], free[str(s)], [b]]), "B D", WIDE, mesh, linear=True)[0].cost/UNIT
            for a, s, b in (f.choice for f in forth)]
    assert back == [2, 6, 6, 2, 5, 9, 9, 5]
    for f in forth:
        a, s, b = f.choice
        g, = search("B E {t}", turned([[a], [s.dual(mesh)], [b]]), "B D {t}", WIDE, mesh, linear=True)
        assert g.cost == f.cost and g.moves == tuple(m.transpose(mesh) for m in reversed(f.moves))


def test_a_search_against_relaxing_every_move_and_product():
    """The same costs from a graph of (step, placement) in which every move and product is an edge."""
    mesh = {"t": 4}
    chain = [["D F/t", "D/t F", "D F"], ["B F/t", "B F", "B/t F"], ["F/t E", "F E/t", "F E"]]

    @functools.cache
    def moved(p):
        return [(m.target, m.nbytes) for m in moves(p, {a: WIDE[a] for a in p.cuts}, mesh)]

    @functools.cache
    def product(p, q):
        with contextlib.suppress(ValueError):
            return [matmul(p, q)]
        return []

    for source, target in itertools.product(["B D", "B/t D", "B D {t}"], ["B E", "B/t E", "B E {t}"]):
        found = {f.choice: f for f in search(source, chain, target, WIDE, mesh)}
        assert len(found) == 27
        for choice, f in found.items():
            best = {(0, Placement(source)): (0, 0)}
            for _ in range(20):
                before = dict(best)
                for (i, p), (spent, steps) in before.items():
                    edges = [((i, there), nbytes, 1) for there, nbytes in moved(p)]
                    if i < 3 and set(choice[i].cuts) == set(p.cuts):
                        edges += [((i + 1, p), 0, 0)]*(p == choice[i])
                    elif i < 3:
                        edges += [((i + 1, q), 0, 0) for q in product(p, choice[i])]
                    for node, nbytes, one in edges:
                        best[node] = min(best.get(node, (math.inf, 0)), (spent + nbytes, steps + one))
                if best == before:
                    break
            assert (f.cost, len(f.moves)) == best[3, Placement(target)] and f.cost == sum(m.nbytes for m in f.moves)


def test_every_layout_of_a_search_computes_the_layer():
    mesh, rng = {"t": 4}, np.random.default_rng(9)
    X, A, B = (rng.integers(-3, 4, [WIDE[a] for a in axes]) for axes in ("BD", "DF", "FE"))
    want = np.maximum(X @ A, 0) @ B
    for f in search("B D", [MLP[0], MLP[1] + ["B/t F"], MLP[2]], "B E", WIDE, mesh, itemsize=8):
        a, s, b = f.choice
        weights = [{axis: WIDE[axis] for axis in p.cuts} for p in (a, b)]

        def program(comm, x):
            def go(x, at, want):
                """The moves of the search from here until this is true."""
                while not want(at):
                    move = route.pop(0)
                    x, at = step(comm, x, move, mesh, {axis: WIDE[axis] for axis in move.source.cuts}), move.target
                return x, at

            route, at = list(f.moves), Placement("B D")
            x, at = go(x, at, lambda p: fits(p, a))
            x, at = go(x @ A[a.slices(weights[0], mesh, comm.rank)], matmul(at, a), lambda p: p == s)
            x, at = go(np.maximum(x, 0), at, lambda p: fits(p, b))
            x, at = go(x @ B[b.slices(weights[1], mesh, comm.rank)], matmul(at, b), lambda p: p == Placement("B E"))
            assert not route
            return x

        out = run(program, [X]*4)
        assert all(np.array_equal(y, want) for y in out.results) and set(out.sent()) == {f.cost}, f.choice


def fits(p, weight):
    try:
        return bool(matmul(p, weight))
    except ValueError:
        return False


def test_a_search_on_two_axes_and_in_seconds():
    mesh, shape = {"x": 2, "t": 4}, {**WIDE, "B": 32}          # 16 sequences on each of x
    steps = [MLP[0], ["B/x F/t", "B/x F"], MLP[2]]
    found = search("B/x D", steps, "B/x E", shape, mesh)
    assert [f.cost/UNIT for f in found] == [2, 5, 5, 6, 6, 9, 9, 10]
    assert all(m.axis == "t" for m in found[0].moves)
    timed = search("B/x D", steps, "B/x E", shape, mesh, beta={"x": 1, "t": 4})
    assert timed[0].choice == found[0].choice and timed[0].cost == found[0].cost/4


def test_a_search_finds_cuts_in_every_order():
    shape = {"B": 8, "D": 8, "F": 8}
    for cut in ("x/y", "y/x"):
        found, = search(f"B D/{cut}", [[f"D/{cut} F"]], "B F {x y}", shape, {"x": 2, "y": 4})
        assert found.cost == 0 and found.moves == ()


def test_a_function_of_a_partial_sum_is_refused():
    with pytest.raises(ValueError, match="a function of 'B F {t}'; allowed: a placement without partial"):
        search("B D", [["D/t F"], ["B F {t}"], ["F E"]], "B E", WIDE, {"t": 4})

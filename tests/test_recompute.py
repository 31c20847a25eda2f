"""Schedules of recomputation: gradients on real layers, bytes, runs, and searches that agree; wrong ones fail."""
from math import comb, inf, isqrt

import numpy as np
import pytest

from capacity import recompute_bytes, states_for_two_runs, unequal_recompute_bytes
from capacity.witness import recompute, tiny
from capacity.witness.recompute import Missing, count, execute

LAYERS, X, DY, KNOWN = recompute.chain(8)
WHOLE = execute(recompute.keep_all(8), LAYERS, X, DY, known=KNOWN)
STATE, TAPE = X.nbytes, recompute.held(LAYERS[0](X)[1], known=KNOWN)
SCHEDULES = {"every": recompute.segments([1]*8), "equal": recompute.segments([2]*4), "unequal": recompute.segments([3, 2, 2, 1]),
             "last kept": recompute.segments([3, 3, 2], keep_last=True), "binomial": recompute.binomial(8, 3),
             "one state": recompute.binomial(8, 1), "tight": recompute.least_time([1]*8, [1]*8, [17]*8, 40)[1]}


def equal(a, b):
    return np.array_equal(a.dx, b.dx) and all(np.array_equal(p[k], q[k]) for p, q in zip(a.dw, b.dw) for k in p)


def closed(layers, states):
    """Griewank and Walther: r L - C(s + r, s + 1) with the least r such that C(s + r, s) reaches L."""
    r = next(r for r in range(layers + 1) if comb(states + r, states) >= layers)
    return r*layers - comb(states + r, states + 1)


@pytest.mark.parametrize("name", SCHEDULES)
def test_gradients_are_the_same_bits(name):
    assert equal(execute(SCHEDULES[name], LAYERS, X, DY, known=KNOWN), WHOLE)


def test_the_layers_are_those_of_tiny():
    w, (tokens, targets) = tiny.weights(8, seed=0), tiny.data(2, 6)
    x, back_embed = tiny.embed(tokens, w)
    y = x
    for layer in LAYERS:
        y, _ = layer(y)
    total, back_head = tiny.head(y, w, targets)
    assert total == tiny.loss(w, tokens, targets)[0]
    dy = back_head(1.)[0]
    done = execute(SCHEDULES["unequal"], LAYERS, x, dy, known=KNOWN)
    want = tiny.loss(w, tokens, targets)[1]()
    assert all(np.array_equal(done.dw[i][k], want[f"{i}.{k}"]) for i in range(8) for k in done.dw[i])


@pytest.mark.parametrize("name", SCHEDULES)
def test_bytes_that_are_alive(name):
    """After every action; a kept input is part of its layer's tape, and real arrays count it once."""
    for action, i, alive, states, tapes in execute(SCHEDULES[name], LAYERS, X, DY, known=KNOWN).rows:
        assert alive == TAPE*len(tapes) + STATE*len(set(states) - set(tapes)), (action, i)


def test_bytes_of_a_block():
    b, s, h, a, g, d, f = 2, 6, 8, 4, 2, 2, 12
    scores, rows = b*a*s*s, b*s
    numbers = rows*(4*h + 2 + 2*a*d + 2*g*d + 4*f) + scores           # two norms and their inputs; q, out, k, v; gate, up, ...
    assert STATE == 8*rows*h and TAPE == 8*numbers
    at, w = np.arange(s), tiny.block_weights(tiny.weights(1), 0)
    known = [*w.values(), at]
    y, back = tiny.block(X, w, at)
    (dx, dw), bytes_ = back(DY), {}
    for drop in ((), ("norms",), ("product",), ("attention",), ("norms", "product", "attention")):
        y2, back2 = recompute.block(X, w, at, drop)
        bytes_[drop] = recompute.held(back2, known=known)
        dx2, dw2 = back2(DY)
        assert np.array_equal(y, y2) and np.allclose(dx, dx2, atol=1e-12)
        assert all(np.allclose(v, dw2()[k], atol=1e-12) for k, v in dw().items())
    freed = {k: bytes_[()] - v for k, v in bytes_.items()}
    assert freed["norms",] == 2*8*rows*h and freed["product",] == 8*rows*f
    assert freed["attention",] >= 8*scores
    assert freed["norms", "product", "attention"] == sum(freed[k,] for k in ("norms", "product", "attention"))


def test_random_masks_must_be_the_same_ones():
    rng = np.random.default_rng(3)
    noisy, start = [recompute.dropout(f, rng) for f in LAYERS], rng.bit_generator.state

    def run(schedule, replay):
        rng.bit_generator.state = start
        return execute(schedule, noisy, X, DY, known=KNOWN, rng=rng, replay=replay)
    whole = run(recompute.keep_all(8), True)
    for name in SCHEDULES:
        assert equal(run(SCHEDULES[name], True), whole)
    wrong = run(SCHEDULES["equal"], False)
    assert np.isfinite(wrong.dx).all() and not np.allclose(wrong.dx, whole.dx)


def without(schedule, action):
    return [a for a in schedule if a != action]


def before(schedule, action, other):
    at = schedule.index(action)
    return [*schedule[:at], other, *schedule[at:]]


PLAIN = recompute.segments([2, 2])


@pytest.mark.parametrize("schedule, says", [
    (before(PLAIN, ("load", 0), ("free", 0)), "load 0: x_0 is not kept"),
    (without(PLAIN, ("save", 2)), "load 2: x_2 is not kept"),
    ([a if a != ("tape", 3) else ("run", 3) for a in PLAIN], "back 3: no tape of layer 3"),
    (without(PLAIN, ("load", 0)), "tape 0: the current state is none"),
    (without(PLAIN, ("back", 3)), "back 2: the gradient stands behind layer 3"),
    (PLAIN[:-3], "the gradient stops behind layer 1"),
    ([("free", 1), *PLAIN], "free 1: x_1 is not kept")])
def test_schedules_that_ask_for_what_is_not_there(schedule, says):
    with pytest.raises(Missing, match=says):
        execute(schedule, LAYERS[:4], X, DY)


def test_words_that_the_machine_does_not_know():
    with pytest.raises(ValueError, match="allowed: run, tape"):
        execute([("jump", 0)], LAYERS, X, DY)
    with pytest.raises(ValueError, match="do not fit"):
        recompute.lengths(8, 10, 2, 34)
    with pytest.raises(ValueError, match="free less"):
        recompute.take(["a"], {"a": (1, 1)}, 2)


# ---- how few runs
def test_the_recursion_is_the_closed_form():
    assert all(recompute.advances(L, s) == closed(L, s) for L in range(1, 60) for s in range(1, 9))


def test_the_binomial_schedule_runs_as_often_as_the_recursion_says():
    for L in (1, 2, 5, 16, 33):
        for s in (1, 2, 3, 6):
            done = count(recompute.binomial(L, s), L, 2, 34)
            assert (done.tapes, done.runs - done.tapes) == (L, recompute.advances(L, s))
            assert done.peak <= 2*s + 34


@pytest.mark.parametrize("layers", range(1, 7))
def test_no_schedule_of_a_chain_without_tapes_runs_less(layers):
    for s in range(1, 5):
        assert recompute.try_everything(layers, s, unit=True, anywhere=True) == recompute.advances(layers, s)


@pytest.mark.parametrize("layers", range(1, 5))
def test_no_nested_schedule_with_tapes_runs_less(layers):
    for m in range(3, 2*layers + 8):
        least = recompute.try_everything(layers, m, 1, 1, 3)
        seconds, schedule = recompute.least_time([1]*layers, [1]*layers, [3]*layers, m)
        assert seconds == least and (least == inf or recompute.front(layers, 1, 3, [m]) == [least])
        if schedule:
            done = count(schedule, layers, 1, 3)
            assert done.runs == least and done.peak <= m


@pytest.mark.parametrize("layers", range(1, 5))
def test_a_kept_input_that_its_tape_holds_may_count_once(layers):
    memories = range(3, 2*layers + 8)
    for m, least in zip(memories, recompute.front(layers, 1, 3, memories, once=True)):
        assert recompute.try_everything(layers, m, 1, 1, 3, once=True) == (least if least < 10**9 else inf)


def test_who_frees_a_kept_input_and_makes_it_again_may_run_less():
    """Five layers in 6: 9 runs against 10 of the best nested schedule; layers that differ: 12 seconds against 13."""
    assert recompute.try_everything(5, 6, 1, 1, 3, anywhere=True) == 9
    assert recompute.least_time([1]*5, [1]*5, [3]*5, 6)[0] == recompute.try_everything(5, 6, 1, 1, 3) == 10
    s, c, a = [1, 3, 2, 3], [3, 1, 3, 3], [8, 8, 10, 4]
    assert recompute.try_everything(4, 22, s, c, a, anywhere=True) == 12 < recompute.least_time(s, c, a, 22)[0] == 13
    moves = [("save", 0), ("run", 0), ("run", 1), ("save", 2), ("run", 2), ("save", 3), ("run", 3), ("tape", 4), ("back", 4),
             ("load", 3), ("free", 3), ("tape", 3), ("back", 3), ("load", 2), ("free", 2), ("tape", 2), ("back", 2),
             ("load", 0), ("free", 0), ("tape", 0), ("tape", 1), ("back", 1), ("back", 0)]
    done = count(moves, 5, 1, 3)
    assert (done.runs, done.peak) == (9, 6)
    assert equal(execute(moves, LAYERS[:5], X, DY), execute(recompute.keep_all(5), LAYERS[:5], X, DY))


def test_no_nested_schedule_of_layers_that_differ_is_faster():
    rng = np.random.default_rng(0)
    for _ in range(12):
        L = int(rng.integers(2, 5))
        state, times = rng.integers(1, 4, L), rng.integers(1, 6, L)
        tape = state + rng.integers(1, 8, L)
        for m in range(tape.max(), tape.sum() + 1, 3):
            assert recompute.try_everything(L, m, times, state, tape) == recompute.least_time([*times], [*state], [*tape], m)[0]


def test_twelve_layers_that_differ():
    rng = np.random.default_rng(1)
    state, times = [int(v) for v in rng.integers(1, 4, 12)], [int(v) for v in rng.integers(1, 6, 12)]
    tape = [c + int(v) for c, v in zip(state, rng.integers(4, 12, 12))]
    last = inf
    for m in (max(tape) + 4, max(tape) + 8, 40, 60, sum(tape)):
        seconds, schedule = recompute.least_time(times, state, tape, m)
        done = count(schedule, 12, state, tape)
        assert done.peak <= m and seconds <= last
        assert sum(times[i] for a, i in schedule if a in ("run", "tape")) == seconds
        last = seconds
    assert last == sum(times)


# ---- segments
# ---- graphs
def chain_reads(n):
    return [(i,) for i in range(n)]


@pytest.mark.parametrize("layers", [2, 3, 4])
def test_a_graph_that_is_a_chain(layers):
    sizes = [1]*layers, [1]*layers, [3]*layers
    for memory in range(3, 14):
        assert recompute.graph_least(*sizes, chain_reads(layers), memory)[0] == recompute.least_time(*sizes, memory)[0]
        assert (recompute.graph_least(*sizes, chain_reads(layers), memory, anywhere=True)[0]
                == recompute.try_everything(layers, memory, 1, 1, 3, anywhere=True))


def test_chains_of_layers_that_differ_as_graphs():
    rng = np.random.default_rng(4)
    for _ in range(8):
        states, times = rng.integers(1, 4, 4).tolist(), rng.integers(1, 6, 4).tolist()
        tapes = [s + int(n) for s, n in zip(states, rng.integers(1, 8, 4))]
        for memory in range(max(tapes), sum(tapes) + 1, 3):
            want = recompute.least_time(times, states, tapes, memory)[0]
            got, schedule = recompute.graph_least(times, states, tapes, chain_reads(4), memory)
            assert got == want and (schedule is None) == (want == inf)
            if schedule:
                assert sum(times[i] for move, i in schedule if move in ("run", "tape")) == got
                net = [lambda x: (x, lambda dy: ((dy,), None))]*4
                assert execute(schedule, net, None, None, reads=chain_reads(4), known=None).tapes == 4


def test_twelve_layers_and_not_thirteen():
    assert recompute.graph_least([1]*12, [1]*12, [3]*12, chain_reads(12), 4)[0] == recompute.least_time([1]*12, [1]*12, [3]*12, 4)[0]
    with pytest.raises(ValueError, match="13 layers; allowed: 1 to 12"):
        recompute.graph_least([1]*13, [1]*13, [3]*13, chain_reads(13), 4)
    with pytest.raises(ValueError, match=r"reads\[1\] = \(2,\); allowed: some of the states 0 to 1"):
        recompute.graph_least([1]*2, [1]*2, [3]*2, [(0,), (2,)], 4)


def test_a_skip_must_be_kept_or_made_again():
    layers, x, dy, known = recompute.chain(5)
    reads = [*chain_reads(4), (4, 1)]

    def one(layer):
        def run(x):
            y, back = layer(x)
            return y, lambda dy: ((lambda dx, dw: ((dx,), dw))(*back(dy)))
        return run

    def both(x, skip):
        y, back = layers[4](x + skip)
        return y, lambda dy: ((lambda dx, dw: ((dx, dx), dw))(*back(dy)))

    net = [*map(one, layers[:4]), both]
    state, tape = x.nbytes, recompute.held(layers[0](x)[1], known=known)
    whole = execute([("save", 0), ("tape", 0), ("save", 1), *(("tape", i) for i in range(1, 5)),
                     *(("back", i) for i in range(4, -1, -1))], net, x, dy, reads=reads, known=known)
    nudged = 1e-6*np.ones_like(x)
    along = lambda x: (lambda a: layers[4](layers[3](layers[2](layers[1](a)[0])[0])[0] + a)[0])(layers[0](x)[0])
    slope = (dy*(along(x + nudged) - along(x - nudged))).sum()/2
    assert np.isclose((whole.dx*nudged).sum(), slope, rtol=1e-6)       # the gradient of x_1 is a sum of two
    tight = recompute.graph_least([1]*5, [state]*5, [tape]*5, reads, tape + 2*state)
    plain = recompute.graph_least([1]*5, [state]*5, [tape]*5, chain_reads(5), tape + 2*state)
    assert tight[0] > plain[0]
    done = execute(tight[1], net, x, dy, reads=reads, known=known)
    assert equal(done, whole) and done.runs == tight[0] and done.peak <= tape + 2*state
    at = next(k for k, move in enumerate(tight[1]) if move == ("save", 1))
    with pytest.raises(Missing, match="x_1 is neither current nor kept"):
        execute(tight[1][:at] + tight[1][at + 1:], net, x, dy, reads=reads, known=known)


def test_segments_of_equal_length():
    for L, k in ((80, 1), (80, 2), (80, 8), (12, 3)):
        done = count(recompute.segments([k]*(L//k)), L, 2, 34)
        assert done.peak == recompute_bytes(L, k, 2, 34) and done.runs == 2*L and done.tapes == L


def test_who_keeps_the_last_tapes_may_hold_less():
    """No layer runs more than twice, and one of them once."""
    for (L, c, a), least in {(8, 2, 5): (16, 15), (8, 2, 34): (50, 48), (6, 1, 3): (8, 7)}.items():
        held = [min(count(recompute.segments(cut, last), L, c, a).peak for cut in cuts(L)) for last in (False, True)]
        assert (*held,) == least


def cuts(n):
    """Every way to cut n layers into segments."""
    return [[]] if n == 0 else [[k, *rest] for k in range(1, n + 1) for rest in cuts(n - k)]


def test_segments_that_shrink_are_the_least_where_every_layer_runs_twice():
    """Against every way to cut a few layers into segments."""
    for L, c, a in ((6, 1, 3), (8, 2, 5), (9, 1, 1)):
        least = min(count(recompute.segments(cut), L, c, a).peak for cut in cuts(L))
        assert sum(recompute.lengths(L, least, c, a)) == L
        with pytest.raises(ValueError):
            for m in range(least - 1, 0, -1):
                recompute.lengths(L, m, c, a)
                pytest.fail(f"{L} layers in {m}")
        assert least >= unequal_recompute_bytes(L, c, a)


def test_two_runs_of_each_layer():
    for L in range(1, 300):
        s = states_for_two_runs(L)
        assert comb(s + 2, 2) >= L and (s == 0 or comb(s + 1, 2) < L)
        assert s <= 2*isqrt(L) + 1


# ---- which tensors
def test_the_order_by_ratio_is_best_where_it_stops():
    rng = np.random.default_rng(2)
    for _ in range(20):
        tensors = {str(i): (int(b), float(c)) for i, (b, c) in enumerate(zip(rng.integers(1, 30, 9), rng.uniform(1, 9, 9)))}
        order = recompute.by_ratio(tensors)
        for n in range(10):
            need = sum(tensors[k][0] for k in order[:n])
            cost = sum(tensors[k][1] for k in recompute.take(order, tensors, need))
            assert np.isclose(cost, recompute.cheapest(tensors, need))
        middle = need//2
        cost = sum(tensors[k][1] for k in recompute.take(order, tensors, middle))
        assert cost >= recompute.cheapest(tensors, middle) - 1e-12


def test_the_largest_tensor_first_is_not_the_order():
    tensors = {"large": (10, 10.0), "small": (4, 1.0), "other": (6, 2.0)}
    assert recompute.by_ratio(tensors) == ["small", "other", "large"]
    assert recompute.cheapest(tensors, 10) == 3

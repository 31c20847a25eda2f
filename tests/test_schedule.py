"""The clock of schedules: against the longest path, against closed forms, and on orders that cannot be run."""
from fractions import Fraction as Q
from itertools import chain, permutations
import random

import pytest
import sympy as sp

from capacity.witness.schedule import (Infeasible, Op, Schedule, dualpipe, flow_shop, gpipe, interleaved, one_f_one_b,
                               simulate, zb_h1, zb_h2, zb_v)

PLAIN = [gpipe, one_f_one_b, zb_h1, zb_h2, zb_v]


def some(rng, low=0):
    return Q(rng.randint(low, 12), rng.randint(1, 5))


def cases(n, seed):
    """n random (Random, p, m)."""
    for i in range(n):
        rng = random.Random(f"{seed} {i}")
        yield rng, rng.randint(1, 6), rng.randint(1, 14)


def any_schedule(rng, p, m):
    return rng.choice([*(lambda f=f: f(p, m) for f in PLAIN),
                       lambda: interleaved(p, p*rng.randint(1, 3), rng.randint(1, 4)),
                       lambda: dualpipe(2*rng.randint(1, 3), 2*rng.randint(6, 9))])()


def slots(order):
    return [(slot,) if isinstance(slot, Op) else slot for slot in order]


def needs(ops, op):
    """The rules once more, as a search: what of all these ops has to come before op."""
    last = max(o.stage for o in ops)
    rule = {"F": [("F", -1)], "W": [("I", 0)],
            "B": [("F", 0)] if op.stage == last else [("F", 0), ("B", 1), ("I", 1)]}
    wanted = [(kind, op.stage + step, op.microbatch) for kind, step in rule["B" if op.kind == "I" else op.kind]]
    return [o for o in wanted if o in ops]


def longest_path(schedule, duration, pair, send):
    """Ends of all ops, by relaxation until nothing moves: no queue, no order of visits."""
    device = {op: d for d, order in enumerate(schedule.orders) for slot in slots(order) for op in slot}
    before = {op: needs(device, op) for op in device}
    end = dict.fromkeys(device, Q(0))
    while True:
        old = dict(end)
        for d, order in enumerate(schedule.orders):
            free = Q(0)
            for slot in slots(order):
                begin = max([free] + [end[x] + (send if device[x] != d else 0) for op in slot for x in before[op]])
                both = len(slot) > 1 and pair is not None
                free = begin + (pair if both else sum(duration(op) for op in slot))
                end.update(dict.fromkeys(slot, free))
        if end == old:
            return end


@pytest.mark.parametrize("seed", range(12))
def test_the_clock_is_the_longest_path(seed):
    for rng, p, m in cases(6, seed):
        s = any_schedule(rng, p, m)
        stages = len(s.orders)*s.chunks
        lists = {kind: [some(rng) for _ in range(stages)] for kind in "FIWB"}
        one = {kind: some(rng) for kind in "FIWB"}
        by_stage, whole = rng.random() < 0.5, rng.random() < 0.5
        pair, send = rng.choice([None, some(rng)]), rng.choice([Q(0), some(rng)])
        given = lists if by_stage else one
        given = {kind: time for kind, time in given.items() if whole or kind != "B"}

        def duration(op):
            def of(kind):
                return lists[kind][op.stage] if by_stage else one[kind]/s.chunks
            return of("I") + of("W") if op.kind == "B" and not whole else of(op.kind)
        t = simulate(s, **given, pair=pair, send=send)
        part = None if pair is None else pair/s.chunks
        assert t.end == longest_path(s, duration, part, send), (s.name, p, m)
        assert t.makespan == max(t.end.values())
        for d, order in enumerate(s.orders):
            row = slots(order)
            took = [part if len(slot) > 1 and pair is not None else sum(map(duration, slot)) for slot in row]
            assert t.busy[d] == sum(took)
            assert t.spans[d] == t.end[row[-1][0]] - t.start[row[0][0]]
            assert [t.end[slot[0]] - t.start[slot[0]] for slot in row] == took
            for slot, after in zip(row, row[1:]):
                assert max(t.end[op] for op in slot) <= min(t.start[op] for op in after), "two things at once"


@pytest.mark.parametrize("seed", range(6))
def test_every_op_is_there_once_and_after_what_it_needs(seed):
    for rng, p, m in cases(8, f"order {seed}"):
        s = any_schedule(rng, p, m)
        ops = [op for order in s.orders for slot in slots(order) for op in slot]
        m = 1 + max(op.microbatch for op in ops)
        assert len(ops) == len(set(ops))
        for stage in range(len(s.orders)*s.chunks):
            for j in range(m):
                kinds = "".join(sorted(op.kind for op in ops if op[1:] == (stage, j)))
                assert kinds in ("BF", "FIW")
        t = simulate(s, some(rng), some(rng), some(rng), send=some(rng))
        assert set(t.start) == set(t.end) == set(ops)
        for op in ops:
            assert all(t.end[x] <= t.start[op] for x in needs(set(ops), op))


ROWS = {
    zb_h1: (3, 4, ["F0.0 F0.1 F0.2 I0.0 W0.0 F0.3 I0.1 W0.1 I0.2 W0.2 I0.3 W0.3",
                   "F1.0 F1.1 I1.0 F1.2 I1.1 W1.0 F1.3 I1.2 W1.1 I1.3 W1.2 W1.3",
                   "F2.0 I2.0 F2.1 I2.1 F2.2 I2.2 W2.0 F2.3 I2.3 W2.1 W2.2 W2.3"]),
    zb_v: (2, 3, ["F0.0 F0.1 F0.2 F3.0 I3.0 W3.0 F3.1 I3.1 W3.1 I0.0 W0.0 F3.2 I3.2 W3.2 I0.1 W0.1 I0.2 W0.2",
                  "F1.0 F2.0 F1.1 F2.1 I2.0 W2.0 F1.2 I1.0 W1.0 F2.2 I2.1 W2.1 I1.1 I2.2 I1.2 W1.1 W2.2 W1.2"]),
    dualpipe: (4, 8, [
        "F0.0 F0.1 F0.2 F3.4 I3.4 W3.4 F3.5 F0.3&B3.5 F3.6&B0.0 B3.6 F3.7&B0.1 B3.7 I0.2 W0.2 I0.3 W0.3",
        "F1.0 F2.4 F1.1 F2.5 F1.2 B2.4 F2.6&B1.0 F1.3&B2.5 F2.7&B1.1 B2.6 B1.2 I2.7 I1.3 W2.7 W1.3",
        "F1.4 F2.0 F1.5 F2.1 F1.6 B2.0 F2.2&B1.4 F1.7&B2.1 F2.3&B1.5 B2.2 B1.6 I2.3 I1.7 W2.3 W1.7",
        "F0.4 F0.5 F0.6 F3.0 I3.0 W3.0 F3.1 F0.7&B3.1 F3.2&B0.4 B3.2 F3.3&B0.5 B3.3 I0.6 W0.6 I0.7 W0.7"]),
    lambda p, m: interleaved(p, m, 2): (2, 4, [
        "F0.0 F0.1 F2.0 F2.1 F0.2 B2.0 F0.3 B2.1 F2.2 B0.0 F2.3 B0.1 B2.2 B2.3 B0.2 B0.3",
        "F1.0 F1.1 F3.0 B3.0 F3.1 B3.1 F1.2 B1.0 F1.3 B1.1 F3.2 B3.2 F3.3 B3.3 B1.2 B1.3"])}


@pytest.mark.parametrize("f, p, m, rows", [(f, *row) for f, row in ROWS.items()])
def test_rows(f, p, m, rows):
    """Kind, stage and micro-batch of every op; those of two chunks are torch's, DualPipe's its authors'."""
    def text(slot):
        return "&".join(f"{op.kind}{op.stage}.{op.microbatch}" for op in slot)
    assert [" ".join(map(text, slots(order))) for order in f(p, m).orders] == rows


def idle_in_span(t):
    return [span - busy for span, busy in zip(t.spans, t.busy)]


def short(t):
    """The most that a device is idle up to the makespan."""
    return max(t.makespan - busy for busy in t.busy)


def test_unsplit_backward():
    for rng, p, m in cases(60, "unsplit"):
        F, B = some(rng), some(rng)
        for f in (gpipe, one_f_one_b):
            t = simulate(f(p, m), F=F, B=B)
            assert t.makespan == (m + p - 1)*(F + B)
            assert t.busy == [m*(F + B)]*p
            if F + B:
                assert t.idle() == t.idle("total") == Q(p-1, m+p-1)
                assert t.idle("ideal") == Q(p-1, m)


def test_naive_is_one_micro_batch():
    assert simulate(gpipe(4, 1)).idle() == pytest.approx(3/4)


def test_interleaved():
    for rng, p, m in cases(60, "interleaved"):
        m, v, F, B = p*rng.randint(1, 4), rng.randint(1, 5), some(rng, 1), some(rng, 1)
        t = simulate(interleaved(p, m, v), F=F, B=B)
        assert t.makespan == (m + Q(p-1, v))*(F + B)
        assert t.idle() == Q(p-1, v*m + p-1)
        assert t.peak_activations == [min(m, Q(2*(p-s-1) + (v-1)*p + 1, v)) for s in range(p)]
        assert t.peak_activations[0] == min(m, p + Q(p-1, v))


@pytest.mark.parametrize("p, m, v, percent", [(4, 8, 2, 15.8), (8, 48, 2, 6.8), (8, 48, 1, 12.7), (8, 32, 2, 9.9)])
def test_interleaved_in_numbers(p, m, v, percent):
    assert 100*simulate(interleaved(p, m, v)).idle() == pytest.approx(percent, abs=0.05)


def test_zero_bubble_h1():
    """Exact for spans if W <= F and m >= p; for the makespan W <= I is needed too."""
    for rng, p, m in cases(80, "h1"):
        m, F, I = m + p, some(rng), some(rng)
        W = F*Q(rng.randint(0, 6), 6)
        t = simulate(zb_h1(p, m), F, I, W)
        assert max(idle_in_span(t)) == (p-1)*(F + I - W)
        if W <= I:
            assert short(t) == (p-1)*(F + I - W)
    t = simulate(zb_h1(3, 6), 1, 1, 3)
    assert max(idle_in_span(t)) > 2*(1 + 1 - 3)


def test_zero_bubble_h2():
    """Exact for spans if W <= F, 2W <= F + I and m >= 2p-1; a barrier at the end costs at least (p-1)F."""
    for rng, p, m in cases(80, "h2"):
        m, F, I = m + 2*p - 2, some(rng), some(rng)
        W = min(F, (F + I)/2)*Q(rng.randint(0, 6), 6)
        t = simulate(zb_h2(p, m), F, I, W)
        assert max(idle_in_span(t)) == (p-1)*(F + I - 2*W)
        assert short(t) == (p-1)*max(F, F + I - 2*W)


def test_zero_bubble_v():
    """If F = I >= W and m >= 2p-1."""
    for rng, p, m in cases(60, "v"):
        m, F = m + 2*p - 2, some(rng)
        W = F*Q(rng.randint(0, 6), 6)
        t = simulate(zb_v(p, m), F, F, W)
        assert max(idle_in_span(t)) == (p-1)*(F - W)
        assert simulate(zb_v(p, m), F, F, F).makespan == 3*m*F + (p-1)*F/2
        assert t.peak_activations == [p]*p


def test_dualpipe():
    """DeepSeek's bubble, on the worst device, if F = I >= W; else it is off either way."""
    for rng, p, m in cases(40, "dualpipe"):
        p, F = 2*rng.randint(1, 5), some(rng)
        m = 2*p + 2*m
        W = F*Q(rng.randint(0, 6), 6)
        B = F + W
        pair = rng.choice([None, max(F, B) + min(F, B)*Q(rng.randint(0, 6), 6)])
        t = simulate(dualpipe(p, m), F, F, W, pair=pair)
        assert short(t) == (p//2 - 1)*((F + B if pair is None else pair) + B - 3*W)
        assert t.peak_activations == [p+1]*p
    for F, I, sign in ((1, 2, -1), (2, 1, 1)):
        error = short(simulate(dualpipe(8, 20), F, I, 1)) - 3*(F + 2*(I + 1) - 3)
        assert error*sign > 0


def test_dualpipe_goes_both_ways():
    t = simulate(dualpipe(4, 8))
    for order in t.schedule.orders[:2]:
        assert {op.stage for slot in slots(order) for op in slot if op.microbatch < 4}.isdisjoint(
            op.stage for slot in slots(order) for op in slot if op.microbatch >= 4)
    first = [slots(order)[0][0] for order in t.schedule.orders]
    assert first == [("F", 0, 0), ("F", 1, 0), ("F", 1, 4), ("F", 0, 4)]


@pytest.mark.parametrize("f, bubble, time, peak", [
    (one_f_one_b, 161, 897, 8), (zb_h1, 119, 855, 8), (zb_h2, 98, 834, 15), (dualpipe, 81, 817, 9)])
def test_the_question(f, bubble, time, peak):
    """p = 8, m = 32, F = 1, I = 1, W = 0.3, in tenths."""
    t = simulate(f(8, 32), F=10, I=10, W=3, pair=23)
    assert (max(idle_in_span(t)), max(t.spans), max(t.peak_activations)) == (bubble, time, peak)
    assert t.makespan == time


@pytest.mark.parametrize("f, pair, bubble", [
    (one_f_one_b, None, 21), (zb_h1, None, 7), (zb_h2, None, 0), (zb_v, None, 0), (dualpipe, 3, 6)])
def test_unit_times(f, pair, bubble):
    assert max(idle_in_span(simulate(f(8, 32), pair=pair))) == bubble


def test_overlapped_chunks():
    """A slot of two chunks takes half of the pair of one micro-batch on one device."""
    orders = [[(Op("F", 0, 0), Op("F", 0, 1)), (Op("F", 1, 0), Op("F", 1, 1)),
               *(Op("B", s, j) for s in (1, 0) for j in (0, 1))]]
    t = simulate(Schedule("mine", orders, chunks=2), F=2, B=4, pair=3)
    assert t.end["F", 0, 1] == t.start["F", 1, 0] == Q(3, 2)
    assert t.makespan == 2*Q(3, 2) + 4*2 and t.peak_activations == [2]


def test_dualpipe_overlapped():
    assert short(simulate(dualpipe(8, 32), pair=2.5)) == 4.5


def test_activations():
    for _, p, m in cases(60, "activations"):
        def peak(f):
            return simulate(f(p, m)).peak_activations
        assert peak(gpipe) == [m]*p
        assert peak(one_f_one_b) == [min(m, p-s) for s in range(p)]
        assert peak(zb_h1) == [min(m, p)]*p
        assert peak(zb_h2) == [min(m, 2*p-1)]*p
        assert max(peak(zb_v)) <= min(m, p)


def test_activations_do_not_depend_on_times():
    for rng, p, m in cases(20, "no times"):
        s = any_schedule(rng, p, m)
        assert simulate(s, some(rng), some(rng), some(rng)).peak_activations == simulate(s).peak_activations


def test_late_weight_gradients_cost_memory():
    """All of them at the end hold every micro-batch."""
    orders = [[op._replace(kind="I") if op.kind == "B" else op for op in order]
              + [Op("W", s, j) for j in range(9)] for s, order in enumerate(one_f_one_b(3, 9).orders)]
    assert simulate(Schedule("late", orders)).peak_activations == [9]*3


@pytest.mark.parametrize("f", [gpipe, one_f_one_b])
@pytest.mark.parametrize("p, m", [(1, 1), (2, 1), (2, 3), (3, 4)])
def test_symbols(f, p, m):
    F, B = sp.symbols("F B", positive=True)
    t = simulate(f(p, m), F=F, B=B, maximum=sp.Max)
    assert sp.expand(t.makespan - (m + p - 1)*(F + B)) == 0
    assert sp.simplify(t.idle() - sp.Rational(p-1, m+p-1)) == 0


def test_symbols_in_chunks_and_with_sends():
    F, B, c = sp.symbols("F B c", positive=True)
    assert sp.expand(simulate(interleaved(2, 2, 2), F=F, B=B, maximum=sp.Max).makespan - (F + B)*sp.Rational(5, 2)) == 0
    assert sp.expand(simulate(gpipe(3, 1), F=F, B=B, send=c, maximum=sp.Max).makespan - 3*(F + B) - 4*c) == 0


def test_sends_only_between_devices():
    """Two chunks of a V meet on the last device."""
    assert simulate(zb_v(2, 1), W=0, send=10).makespan == 4*(1 + 1)/2 + 4*10
    assert simulate(one_f_one_b(1, 5), send=10).makespan == 15


def test_sends_in_the_fill_and_the_drain():
    """Hidden in between if nothing waits: one micro-batch pays 2(p-1) of them, GPipe's many no more."""
    for rng, p, m in cases(30, "send"):
        F, B = some(rng), some(rng)
        send = some(rng)
        assert simulate(gpipe(p, m), F=F, B=B, send=send).makespan == (m + p - 1)*(F + B) + 2*(p-1)*send


def test_one_f_one_b_has_no_slack_for_sends():
    """Beyond the fill and the drain, p micro-batches pay 2(p-1) sends: a stage waits for what it has just sent for."""
    for rng, p, m in cases(60, "stall"):
        F, B = some(rng, 1), some(rng, 1)
        send = min(F, B)*Q(rng.randint(0, 6), 6)
        t = simulate(one_f_one_b(p, m), F=F, B=B, send=send)
        assert t.makespan == (m + p - 1)*(F + B) + 2*send*(p - 1 + (m-1)*(p-1)//p)


def test_slowest_stage_sets_the_pace():
    t = simulate(gpipe(3, 50), F=[1, 2, 1], B=[2, 4, 2])
    assert t.makespan == 50*6 + (1 + 1) + (2 + 2)
    assert t.busy == [150, 300, 150]


# Orders that cannot be run.

def pipeline(p, m, warmup):
    """1F1B with another number of forwards first."""
    def order(s):
        w = min(warmup(s), m)
        ops = [Op("F", s, j) for j in range(w)]
        for j in range(m):
            ops += [Op("F", s, j+w)]*(j+w < m) + [Op("B", s, j)]
        return ops
    return Schedule("mine", [order(s) for s in range(p)])


def test_typed_in_by_hand():
    for p, m in ((1, 1), (2, 2), (3, 7), (4, 2)):
        assert pipeline(p, m, lambda s: p-s-1).orders == one_f_one_b(p, m).orders


@pytest.mark.parametrize("p, m", [(2, 2), (4, 8), (8, 32)])
def test_inverted_warm_up_waits_for_itself(p, m):
    """min(s+1, m) forwards and then backward and forward in turn: the first device has too few."""
    orders = []
    for s in range(p):
        w = min(s+1, m)
        ops = [Op("F", s, j) for j in range(w)]
        for j in range(m):
            ops += [Op("B", s, j)] + [Op("F", s, j+w)]*(j+w < m)
        orders.append(ops)
    with pytest.raises(Infeasible, match="which waits at") as error:
        simulate(Schedule("inverted", orders))
    if p == 2:
        assert str(error.value) == (
            "device 0 waits at B(stage 0, micro-batch 0) for B(stage 1, micro-batch 0) on device 1, "
            "which waits at F(stage 1, micro-batch 1) for F(stage 0, micro-batch 1) on device 0")


def swap(schedule, device, i, j):
    orders = [list(order) for order in schedule.orders]
    orders[device][i], orders[device][j] = orders[device][j], orders[device][i]
    return Schedule("swapped", orders)


def test_backward_before_its_forward():
    with pytest.raises(Infeasible) as error:
        simulate(swap(one_f_one_b(2, 2), 1, 0, 1))
    assert str(error.value) == ("device 1 waits at B(stage 1, micro-batch 0) for F(stage 1, micro-batch 0) "
                                "on device 1")


def test_forward_and_its_own_backward_cannot_overlap():
    with pytest.raises(Infeasible, match="^device 0 waits at B.* for F.* on device 0$"):
        simulate(Schedule("mine", [[(Op("F", 0, 0), Op("B", 0, 0))]]))


def test_the_cycle_leaves_out_who_only_waits():
    """Devices 1 and 2 block each other; 0 waits for them and is no part of it."""
    orders = [list(order) for order in gpipe(3, 2).orders]
    orders[1] = [Op("F", 1, 0), Op("B", 1, 0), Op("F", 1, 1), Op("B", 1, 1)]
    with pytest.raises(Infeasible) as error:
        simulate(Schedule("mine", orders))
    assert "stage 0" not in str(error.value) and "device 0" not in str(error.value)
    assert str(error.value).count("which") == 1


def test_orders_are_feasible_or_there_is_a_cycle():
    """All 24 x 24 orders of two devices and two micro-batches."""
    good = 0
    for a in permutations([Op("F", 0, 0), Op("B", 0, 0), Op("F", 0, 1), Op("B", 0, 1)]):
        for b in permutations([Op("F", 1, 0), Op("B", 1, 0), Op("F", 1, 1), Op("B", 1, 1)]):
            edges = {pair for order in (a, b) for pair in zip(order, order[1:])}
            edges |= {(x, op) for op in (*a, *b) for x in needs((*a, *b), op)}
            left = {*a, *b}
            while free := {x for x in left if not any(y in left for y, z in edges if z == x)}:
                left -= free
            try:
                simulate(Schedule("mine", [a, b]))
                assert not left
                good += 1
            except Infeasible as error:
                assert left
                named = [op for op in (*a, *b) if str(op) in str(error)]
                assert named and set(named) <= left
    assert 0 < good < 24*24


F0, B0, I0, W0 = (Op(kind, 0, 0) for kind in "FBIW")


@pytest.mark.parametrize("orders, message", [
    ([[F0, F0, B0]], r"F\(stage 0, micro-batch 0\) is there twice: on device 0 and on device 0"),
    ([[F0], [F0._replace(stage=1), B0, F0]], "twice: on device 0 and on device 1"),
    ([[F0]], "stage 0, micro-batch 0 has F; allowed: F and B, or F and I and W"),
    ([[B0]], "has B;"),
    ([[F0, I0]], "has F and I;"),
    ([[F0, W0]], "has F and W;"),
    ([[F0, B0, W0]], "has F and B and W;"),
    ([[F0, B0, I0, W0]], "has F and B and I and W;"),
    ([[]], "stage 0, micro-batch 0 has nothing"),
    ([[F0, B0], []], "stage 1, micro-batch 0 has nothing"),
    ([[F0, B0, Op("F", 0, 2), Op("B", 0, 2)]], "stage 0, micro-batch 1 has nothing"),
    ([[F0], [Op("F", 1, 0), Op("B", 1, 0), B0]],
     r"B\(stage 0, micro-batch 0\) is on device 1; its stage is on device 0"),
    ([[F0, B0, Op("F", 1, 1), Op("B", 1, 1)], [Op("F", 1, 0), Op("B", 1, 0), Op("F", 0, 1)]], "has F;"),
])
def test_infeasible(orders, message):
    with pytest.raises(Infeasible, match=message):
        simulate(Schedule("mine", orders))


def test_one_micro_batch_cannot_move():
    """One of four on the other device is no second direction, nor are three."""
    def both(j, flip):
        return [[Op(kind, s, j) for kind in "FB"] for s in ((1, 0) if flip else (0, 1))]
    for flips in ((0, 0, 0, 1), (0, 1, 1, 1), (0, 1, 0, 0)):
        parts = [both(j, flip) for j, flip in enumerate(flips)]
        with pytest.raises(Infeasible, match="its stage is on device"):
            simulate(Schedule("mine", [[op for part in parts for op in part[d]] for d in (0, 1)]))


def test_what_is_misplaced_is_named():
    orders = [list(order) for order in gpipe(2, 4).orders]
    orders[1].append(orders[0].pop(3))
    with pytest.raises(Infeasible, match=r"^F\(stage 0, micro-batch 3\) is on device 1; its stage is on device 0$"):
        simulate(Schedule("mine", orders))


def test_weight_gradient_before_its_input_gradient():
    with pytest.raises(Infeasible, match="device 0 waits at W.* for I.* on device 0$"):
        simulate(Schedule("mine", [[F0, W0, I0]]))


def test_stages_lie_where_the_order_says():
    backwards = Schedule("mine", one_f_one_b(3, 5).orders[::-1])
    assert simulate(backwards).makespan == simulate(one_f_one_b(3, 5)).makespan
    assert simulate(backwards).peak_activations == [1, 2, 3]


@pytest.mark.parametrize("call, message", [
    (lambda: simulate(Schedule("mine", [[Op("X", 0, 0)]])), "kind = 'X' on device 0; allowed: 'F', 'B', 'I', 'W'"),
    (lambda: simulate(Schedule("mine", [[Op("FB", 0, 0)]])), "kind = 'FB'"),
    (lambda: simulate(Schedule("mine", [[Op("F", 1, 0)]])), "stage = 1 on device 0; allowed: 0 to 0"),
    (lambda: simulate(Schedule("mine", [[Op("F", 0, -1)]])), "microbatch = -1 on device 0; allowed: 0, 1, ..."),
    (lambda: simulate(Schedule("mine", [[Op("F", 0, 0.5)]])), "microbatch = 0.5"),
    (lambda: simulate(Schedule("mine", [[("F", 0, 0)]])), r"slot \('F', 0, 0\) on device 0; allowed: an Op"),
    (lambda: simulate(Schedule("mine", [[()]])), r"slot \(\) on device 0"),
    (lambda: simulate(Schedule("mine", [[F0, B0]], chunks=0)), "chunks = 0; allowed: 1, 2, ..."),
    (lambda: simulate(Schedule("mine", [])), "devices = 0; allowed: 1, 2, ..."),
    (lambda: simulate(gpipe(2, 2), F=-1), "F = -1; allowed: a time, at least 0"),
    (lambda: simulate(gpipe(2, 2), W=float("nan")), "W = nan"),
    (lambda: simulate(gpipe(2, 2), I=float("inf")), "I = inf"),
    (lambda: simulate(gpipe(2, 2), B=sp.Symbol("B", negative=True)), "B = B"),
    (lambda: simulate(gpipe(2, 2), B=[1, -2]), "B = -2"),
    (lambda: simulate(gpipe(2, 2), F=[1]), "F has 1 times; allowed: one for each of 2 stages"),
    (lambda: simulate(gpipe(2, 2), send=-1), "send = -1"),
    (lambda: simulate(gpipe(2, 2), pair=-1), "pair = -1"),
    (lambda: simulate(gpipe(2, 2), send=None), "send = None"),
    (lambda: simulate(gpipe(2, 2)).idle("span"), "of = 'span'; allowed: 'total', 'ideal'"),
    (lambda: gpipe(0, 2), "p = 0; allowed: 1, 2, ..."),
    (lambda: one_f_one_b(2, 1.5), "m = 1.5; allowed: 1, 2, ..."),
    (lambda: zb_h1(2, 0), "m = 0"), (lambda: zb_h2(2, 0), "m = 0"), (lambda: zb_v(-1, 2), "p = -1"),
    (lambda: interleaved(4, 8, 0), "v = 0"),
    (lambda: interleaved(4, 10, 2), "m = 10; allowed: a multiple of p = 4"),
    (lambda: dualpipe(3, 8), "p = 3; allowed: 2, 4, ..."),
    (lambda: dualpipe(4, 9), "m = 9; allowed: an even number, at least 2p = 8"),
    (lambda: dualpipe(4, 6), "m = 6; allowed: an even number, at least 2p = 8"),
    (lambda: flow_shop([1, 2], [1]), "second has 1 times; allowed: 2, as first"),
    (lambda: flow_shop([1, -2], [1, 1]), "first = -2"),
    (lambda: flow_shop([1, 2], [1, -1]), "second = -1"),
])
def test_bad_input(call, message):
    with pytest.raises(ValueError, match=message):
        call()


# Two machines.

def test_flow_shop():
    """End of job k on the second machine, by the recursion and as the longest path over the change of machine."""
    for rng, _, n in cases(100, "flow"):
        a, c = ([some(rng) for _ in range(n)] for _ in range(2))
        ends = flow_shop(a, c)
        first, second = 0, 0
        for x, y, end in zip(a, c, ends, strict=True):
            first += x
            second = max(first, second) + y
            assert end == second
        assert ends[-1] == max(sum(a[:k+1]) + sum(c[k:]) for k in range(n))


def test_flow_shop_of_symbols_and_of_nothing():
    a, b, c, d = sp.symbols("a b c d", positive=True)
    assert flow_shop([a, b], [c, d], maximum=sp.Max)[1] == sp.Max(a + b, a + c) + d
    assert flow_shop([], []) == []


def test_names_and_repr():
    assert str(Op("F", 2, 5)) == "F(stage 2, micro-batch 5)"
    assert f"{Op('W', 0, 1)}" == "W(stage 0, micro-batch 1)"
    assert repr(simulate(one_f_one_b(4, 8))) == "<1F1B on 4 devices: time 33>"
    names = [f(4, 8).name for f in (*PLAIN, dualpipe, lambda p, m: interleaved(p, m, 2))]
    assert names == ["GPipe", "1F1B", "ZB-H1", "ZB-H2", "ZB-V", "DualPipe", "Interleaved 1F1B"]


def test_schedules_are_data():
    assert one_f_one_b(2, 3) == one_f_one_b(2, 3) and len({gpipe(2, 3), gpipe(2, 3), dualpipe(2, 4)}) == 2
    assert Schedule("mine", [list(order) for order in gpipe(2, 3).orders]).orders == gpipe(2, 3).orders


def test_ints_stay_exact():
    t = simulate(interleaved(3, 6, 3), F=1, I=2, W=5)
    assert all(isinstance(time, (int, Q)) for time in chain(t.end.values(), t.busy, t.spans, t.peak_activations))


def test_a_schedule_is_short_to_read_and_knows_its_slots():
    made = dualpipe(4, 8)
    assert repr(made) == "<DualPipe on 4 devices; simulate(it) gives the times>"
    assert made.microbatches == 8 and Schedule("none", []).microbatches == 0
    assert [[slot if len(slot) > 1 else slot[0] for slot in row] for row in made.slots] == [list(order) for order in made.orders]

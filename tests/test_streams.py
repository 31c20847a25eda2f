"""Streams: simulated time against clocks by hand, the law of pieces, intervals against moments counted one by one."""
from fractions import Fraction

import numpy as np
import pytest

from capacity import (accelerator, best_pieces, contended_time, model, overlap_efficiency, partitioned_time, pieces_time,
                      tokens_to_hide_all_reduce, wave_slowdown)
from capacity.witness import streams
from capacity.witness.streams import Task, simulate

HALF = {("compute", "network"): Fraction(1, 2)}


# ---- the simulator, against what can be said by hand
def test_a_stream_is_in_order_and_waits_for_others():
    trace = simulate([Task("a", "x", 2), Task("b", "x", 3), Task("c", "y", 1, ("b",)), Task("d", "y", 4)])
    assert [trace[n][1:] for n in "abcd"] == [(0, 2), (2, 5), (5, 6), (6, 10)]


def test_contention_slows_only_while_the_other_works():
    trace = simulate([Task("work", "compute", 10), Task("sum", "network", 4)], HALF)
    assert trace["work"][1:] == (0, 12) and trace["sum"][1:] == (0, 4)
    both = simulate([Task("work", "compute", 10), Task("sum", "network", 4)], HALF | {("network", "compute"): Fraction(1, 2)})
    assert both["sum"].stop == 8 and both["work"].stop == 14          # as long as one after the other: s + r = 1


def test_three_streams_add_up_what_they_take():
    loses = {("a", "b"): Fraction(1, 4), ("a", "c"): Fraction(1, 4)}
    trace = simulate([Task("x", "a", 10), Task("y", "b", 8), Task("z", "c", 4)], loses)
    assert trace["x"].stop == Fraction(13)                               # 4 at a half, 4 at three quarters, 5 alone


def test_tasks_of_no_length():
    assert streams.end(simulate([Task("a", "x", 0), Task("b", "y", 0, ("a",)), Task("c", "x", 2, ("b",))])) == 2


@pytest.mark.parametrize("tasks, says", [([Task("a", "x", 1, ("b",)), Task("b", "y", 1, ("a",))], "a, b wait"),
                                         ([Task("a", "x", 1), Task("a", "y", 1)], "a name is there twice")])
def test_what_cannot_run_is_named(tasks, says):
    with pytest.raises(ValueError, match=says):
        simulate(tasks)


def test_a_stream_may_not_stand_still():
    with pytest.raises(ValueError, match="leave a working stream some speed"):
        simulate([Task("a", "x", 1), Task("b", "y", 1)], {("x", "y"): 1})


# ---- the laws
def test_the_law_of_two():
    rng = np.random.default_rng(0)
    for _ in range(300):
        a, b = (Fraction(int(v)) for v in rng.integers(1, 60, 2))
        s, r = (Fraction(int(v), 10) for v in rng.integers(0, 10, 2))
        took = streams.end(simulate([Task("work", "compute", a), Task("sum", "network", b)],
                                    {("compute", "network"): s, ("network", "compute"): r}))
        assert took == contended_time(a, b, s, r)
        if not r and s:
            assert took <= partitioned_time(a, b, s) and took == max(b, a + s*b)


@pytest.mark.parametrize("shape", ["buckets", "layers", "chains"])
def test_the_law_of_pieces(shape):
    rng = np.random.default_rng(1)
    for _ in range(150):
        c, m = (Fraction(int(v)) for v in rng.integers(1, 60, 2))
        s, k = Fraction(int(rng.integers(0, 10)), 10), int(rng.integers(1, 9))
        tasks, n = {"buckets": (streams.buckets([c]*k, [m]*k), k), "chains": (streams.in_turn(2, k, c, m), 2*k),
                    "layers": (streams.gathered(k, c, m, int(rng.integers(1, 6))), k)}[shape]
        assert streams.end(simulate(tasks, {("compute", "network"): s})) == pieces_time(n*c, n*m, 0, s, n)


def test_one_chain_is_the_sum():
    assert streams.end(simulate(streams.in_turn(1, 5, 3, 4))) == 35
    assert streams.end(simulate(streams.chain(Task("a", "x", 3), Task("b", "y", 4), Task("c", "x", 5)))) == 12


def test_without_a_buffer_ahead_layers_take_turns():
    assert streams.end(simulate(streams.gathered(24, 8, 2, 0))) == 240
    assert {streams.end(simulate(streams.gathered(24, 8, 2, k))) for k in range(1, 9)} == {194}


def test_the_best_number_of_pieces():
    rng, k = np.random.default_rng(2), np.arange(1, 4001)
    seen = set()
    for _ in range(200):
        cover, comm = rng.uniform(5, 100, 2)
        call, share = 10**rng.uniform(-2, 2), rng.uniform(.01, .9)
        best = best_pieces(cover, comm, call, share)
        branches = np.sqrt(cover/call), np.sqrt((1 - share)*comm/share/call), (cover/(1 - share) - comm)/call
        seen.add(int(np.argmin(np.abs(np.array(branches) - best))) if best >= 1 else "one")
        assert abs(int(k[np.argmin(pieces_time(cover, comm, call, share, k))]) - max(1, best)) < 1
    assert seen == {0, 1, 2, "one"}


def test_efficiency_is_one_for_the_maximum_and_zero_for_the_sum():
    assert overlap_efficiency(5, 3, 5) == 1 and overlap_efficiency(3, 5, 8) == 0 and overlap_efficiency(80, 120, 140) == .75


def test_waves_are_whole():
    assert [wave_slowdown(b, 132, 112) for b in (1, 112, 113, 132, 133, 264)] == [1, 1, 2, 2, 1, 1.5]


# ---- intervals
def test_an_account_agrees_with_counted_moments():
    rng = np.random.default_rng(3)
    for _ in range(100):
        lists = [[tuple(sorted(map(int, rng.integers(0, 50, 2)))) for _ in range(int(rng.integers(1, 8)))] for _ in "MC"]
        M, C = ({t for a, b in pairs for t in range(a, b)} for pairs in lists)
        if not M | C:
            continue
        got = streams.account(*lists)
        assert (got["network"], got["compute"], got["hidden"], got["exposed"]) == (len(M), len(C), len(M & C), len(M - C))
        assert got["idle"] + got["compute"] + got["exposed"] == got["span"]


def test_what_is_left_without_the_others():
    rng = np.random.default_rng(4)
    for _ in range(200):
        lists = [[tuple(sorted(map(int, rng.integers(0, 50, 2)))) for _ in range(int(rng.integers(0, 8)))] for _ in "AB"]
        A, B = ({t for a, b in pairs for t in range(a, b)} for pairs in lists)
        got = streams.without(*lists)
        assert {t for a, b in got for t in range(a, b)} == A - B and streams.union(got) == got


def test_union_joins_what_touches_and_what_is_near():
    assert streams.union([(3, 4), (0, 1), (1, 2)]) == [(0, 2), (3, 4)]
    assert streams.union([(0, 1), (2, 3)], gap=1) == [(0, 3)]


# ---- numbers worth knowing
def least(cover, comm, call):
    k = np.arange(1, 3000)
    times = pieces_time(cover, comm, call, 0, k)
    return int(k[times.argmin()]), float(times.min())


@pytest.mark.parametrize("cover, pieces, ms", [(50, 22, 84.5), (100, 200, 100.5)])
def test_a_gigabyte_over_a_slow_card(cover, pieces, ms):
    """1 GB at 12.5 GB/s takes 80 ms, a call 0.1 ms; the simulated streams agree."""
    k, took = least(cover, 80, .1)
    assert (k, round(took, 1)) == (pieces, ms)
    assert streams.end(simulate(streams.buckets([cover/k]*k, [.1 + 80/k]*k))) == pytest.approx(took)


def test_llama_3_8b_in_one_flat_ring_of_64():
    size = 2*model("llama3-8b").params
    comm, call = 2*63/64*size/50e9, 126*10e-6
    assert (round(comm, 3), round(call*1e3, 2)) == (.632, 1.26)
    assert least(.6, comm, call)[0] == 22 and round(least(.6, comm, call)[1], 3) == .687 and round(size/22/1e6) == 730
    k, took = least(.8, comm, call)
    assert (k, round(size/k/1e6), round(1e3*(took - .8))) == (133, 121, 6)
    assert round(float(pieces_time(.6, comm, call, 0, size/25/2**20)), 2) == 1.41      # PyTorch's 25 MiB


def test_tokens_that_hide_a_gradient_and_gathers_of_a_layer():
    H100, llama = accelerator("h100-sxm"), model("llama3-8b")
    need = [tokens_to_hide_all_reduce(10**9, share*H100.peak("bf16"), beta, 2, 4) for share, beta in (
        (1, 50e9), (.5, 50e9), (1, 400e9))]
    assert [round(n/1e3, 1) for n in need] == [19.8, 9.9, 2.5]
    layer = (llama.params - 2*llama.vocab*llama.hidden)/llama.layers
    assert [round(2*layer/beta*1e3, 1) for beta in (50e9, 400e9)] == [8.7, 1.1]
    assert round(63/64*2*layer/50e9*1e3, 1) == 8.6                                     # what 64 ranks gather of it
    half = 100e-6*12.5e9                                # latency and bytes equal; nine tenths of the bandwidth at nine times that
    assert 9*half == 11.25e6 and 9*half/12.5e9/(100e-6 + 9*half/12.5e9) == pytest.approx(.9)

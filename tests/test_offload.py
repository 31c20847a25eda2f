"""Offloading: simulated time against timetables by hand, wear, tiers by brute force, and a model whose weights lie elsewhere."""
import numpy as np
import pytest

from capacity import (
    drive_life_steps,
    intensity_efficiency,
    offload_layer_time,
    own_stream,
    prefetch_depth,
    shared_stream,
    tokens_to_hide,
)
from capacity.witness import offload, tiny
from capacity.witness.offload import Task, simulate

W = tiny.weights(layers=6)
TOKENS, TARGETS = tiny.data()
LOSS, BACK = tiny.loss(W, TOKENS, TARGETS)
GRADS = BACK()


# ---- the simulator, against what can be said by hand
def test_a_queue_is_in_order_and_delay_holds_nobody_but_the_next():
    trace = simulate([Task("a", "copy", {"link": 2}, delay=5), Task("b", "copy", {"link": 3}), Task("c", "gpu", {"gpu": 1}, ("a",))],
                     {"link": 1, "gpu": 1})
    assert trace["a"][1:] == (0, 2, 7) and trace["b"][1:] == (2, 5, 5) and trace["c"][1:] == (7, 8, 8)


def test_resources_are_shared_fairly_and_given_back():
    """Two copies share 2 B/s; the short one ends at 2, the other then has all of it."""
    trace = simulate([Task("short", "x", {"host": 2}), Task("long", "y", {"host": 4})], {"host": 2})
    assert trace["short"].stop == 2 and trace["long"].stop == 3


def test_a_slow_link_leaves_host_memory_to_the_fast_one():
    trace = simulate([Task("slow", "x", {"a": 2, "host": 2}), Task("fast", "y", {"b": 8, "host": 8})], {"a": 1, "b": 9, "host": 5})
    assert np.isclose(trace["slow"].stop, 2) and np.isclose(trace["fast"].stop, 2)


def test_work_is_conserved():
    rng = np.random.default_rng(0)
    tasks = [Task(str(i), f"q{i % 3}", {"r": float(rng.exponential())}, (str(i - 4),) if i >= 4 else ()) for i in range(40)]
    trace = simulate(tasks, {"r": 1})
    assert np.isclose(max(s.stop for s in trace.values()), sum(t.draws["r"] for t in tasks))


def test_what_waits_for_itself_is_named():
    with pytest.raises(ValueError, match="never start: a, b"):
        simulate([Task("a", "x", {}, ("b",)), Task("b", "y", {}, ("a",))], {})


def test_an_empty_task_takes_no_time():
    assert simulate([Task("a", "x", {}), Task("b", "x", {"r": 1.0}, ("a",))], {"r": 2})["b"].stop == .5


# ---- the law
@pytest.mark.parametrize("times, want", [((50, 80, 0), [130, 80, 80, 80]), ((10, 10, 25), [45, 22.5, 15, 11.25, 10, 10])])
def test_the_period_of_a_chain(times, want):
    got = [offload.layer_period(*times, k + 1, layers=60) for k in range(len(want))]
    assert np.allclose(got, want, rtol=1e-12)
    assert np.allclose([offload_layer_time(*times, k) for k in range(len(want))], want)


def test_the_law_is_the_simulator_and_the_cycle_mean():
    rng = np.random.default_rng(1)
    for _ in range(60):
        c, t, latency = rng.exponential(1, 3)
        k = int(rng.integers(0, 6))
        law = offload_layer_time(c, t, latency, k)
        assert np.isclose(offload.layer_period(c, t, latency, k + 1, layers=120), law, rtol=1e-3)
        arcs = [("f", "f", t, 1), ("c", "c", c, 1), ("f", "c", latency + c, 0), ("c", "f", t, k + 1)]
        assert np.isclose(offload.cycle_mean(arcs), law, rtol=1e-12)
        assert not np.isclose(law, max(c, t/(k + 1))) or t <= c          # k buffers are not k links
        best = prefetch_depth(c, t, latency)
        assert offload_layer_time(c, t, latency, int(best)) == max(c, t)
        assert best == 0 or offload_layer_time(c, t, latency, int(best) - 1) > max(c, t)


def test_cycle_mean_tries_longer_cycles():
    assert offload.cycle_mean([("a", "b", 1, 1), ("b", "c", 2, 1), ("c", "a", 9, 1), ("b", "a", 3, 1)]) == 4
    assert offload.cycle_mean([("a", "b", 1, 1)]) == -np.inf


def test_jitter_has_the_mean_and_the_spread_that_were_asked():
    x = offload.jittered(50, .5, 200_000, np.random.default_rng(0))
    assert np.isclose(x.mean(), 50, rtol=.01) and np.isclose(x.std(), 25, rtol=.01)
    assert (offload.jittered(3, 0, 4, None) == 3).all()


@pytest.mark.parametrize("shared, want", [(True, shared_stream), (False, own_stream)])
@pytest.mark.parametrize("links, host", [(50., 300.), (20., 300.), (50., 900.)])
def test_streams_of_weights(shared, want, links, host):
    """Layers that take no time to compute arrive at the rate of the formula."""
    trace = simulate(*offload.streaming(8, 30, 100., 1e-9, links, host, shared))
    assert np.isclose(30*100/offload.span(trace)[1], want(8, links, host), rtol=1e-3)


@pytest.mark.parametrize("waits", ["all", "own", "none"])
@pytest.mark.parametrize("drives", [5., 28., 90.])
@pytest.mark.parametrize("rounds", [1, 3])
def test_a_step_with_state_on_drives(waits, drives, rounds):
    """Work and drives add, overlap in the last backward pass, or overlap; host memory and links are fast here."""
    layers, params, forward = 40, 400., .05
    trace = simulate(*offload.node_step(4, layers, params, forward, 1e5, 1e6, drives, rounds=rounds, waits=waits))
    last, moved = 2*layers*forward, 24*params/drives
    work = 1.5*last*rounds
    want = {"all": work + moved, "own": work - last + max(last, moved), "none": max(work, moved)}[waits]
    assert np.isclose(offload.span(trace)[1], want, rtol=.08 if waits == "own" else .01)
    share = intensity_efficiency(6*work*drives/(24*params), 1., 6.)      # work/(work + moved), said by the formula
    assert np.isclose(share, work/(work + moved))


def test_gradients_of_all_rounds_pass_the_links_and_the_host():
    """Nothing else takes time: 3 rounds of 2 bytes over 2 links of 5 B/s, or of 8 bytes through a host of 20 B/s."""
    for links, host, want in ((5., 1e9, 3*2*100/(2*5)), (1e9, 20., 3*8*100/20)):
        trace = simulate(*offload.node_step(2, 4, 100., 0, links, host, 1e9, rounds=3, touched=0, weights=0, state=0))
        assert np.isclose(offload.span(trace)[1], want)


def test_a_layer_computed_again_makes_backward_longer():
    trace = simulate(*offload.node_step(1, 2, 4., 1., 1e9, 1e9, 1e9, backward=3))
    assert np.isclose(trace["backward 0 0 0"].stop, 8)


def test_a_step_names_what_it_does_not_know():
    with pytest.raises(ValueError, match="waits = 'half'; allowed"):
        offload.node_step(1, 1, 1, 1, 1, 1, 1, waits="half")


def test_the_threshold_is_where_work_and_drives_are_equal():
    for params in (7e9, 175e9):
        tokens = tokens_to_hide(24, 6, 8*989.4e12, .4, 28e9)
        assert np.isclose(6*params*tokens/(8*989.4e12*.4), 24*params/28e9)


# ---- space and wear
def test_greedy_places_are_the_best():
    rng = np.random.default_rng(2)
    for _ in range(12):
        sizes = rng.integers(1, 4, 6)
        items = {f"t{i}": (float(n), float(n*rng.exponential())) for i, n in enumerate(sizes)}
        total = int(sizes.sum())
        tiers = [("hbm", total//3, 100.), ("host", total//3, 10.), ("drives", total, 1.)]
        placed = offload.place(items, tiers)
        assert all(np.isclose(sum(parts.values()), items[name][0]) for name, parts in placed.items())
        pieces = {name: int(size) for name, (size, _) in items.items()}
        if sum(pieces.values()) <= 11:                                  # 3^11 ways
            best = offload.best_place(items, tiers, pieces)
            assert np.isclose(offload.access_time(placed, items, tiers), best)


def test_what_finds_no_room_is_named():
    with pytest.raises(ValueError, match="x: 1 bytes find no room"):
        offload.place({"x": (3., 1.)}, [("a", 2, 1)])


def test_drives_wear():
    assert offload.steps_until_worn(8, 4, 100) == 50 == drive_life_steps(2, 4, 400)


# ---- values
@pytest.mark.parametrize("inputs", [False, True])
@pytest.mark.parametrize("buffers", [1, 2, 3, 6])
def test_offloaded_is_resident_bit_for_bit(buffers, inputs):
    loss, grads, host, kept = offload.step(W, TOKENS, TARGETS, buffers, offload_inputs=inputs)
    assert loss == LOSS and grads.keys() == GRADS.keys()
    assert all(np.array_equal(grads[k], GRADS[k]) for k in GRADS)
    blocks = sum(v.nbytes for k, v in W.items() if "." in k)
    assert (host.down, host.up) == (2*blocks, blocks)                   # fetched forward and backward, gradients sent once
    x = TOKENS.size*W["embed"].shape[1]*8*6
    assert (kept.up, kept.down) == ((x, x) if inputs else (0, 0))


@pytest.mark.parametrize("buffers", [1, 2, 3])
def test_a_buffer_overwritten_too_early_is_seen_in_the_gradients(buffers):
    loss, grads, *_ = offload.step(W, TOKENS, TARGETS, buffers, ahead_back=buffers)
    assert loss == LOSS                                                 # forward was right: only the gradients tell
    wrong = {k for k in GRADS if not np.allclose(grads[k], GRADS[k])}
    assert {"0.q", "embed"} <= wrong and not {"norm", "head"} & wrong
    assert offload.step(W, TOKENS, TARGETS, buffers, ahead=buffers)[0] != LOSS


@pytest.mark.parametrize("tile", [1, 7, 64, 1000])
def test_adam_by_tiles_is_adam(tile):
    rng = np.random.default_rng(3)
    w, m, g = (rng.normal(size=200) for _ in range(3))
    v = m*m
    drive = offload.Store({"w": w, "m": m, "v": v})
    for t in (1, 2, 3):
        w, m, v = offload.adam(w, m, v, g, t)
        offload.adam_by_tiles(drive, g, t, tile)
    assert all(np.array_equal(drive.arrays[k], x) for k, x in zip("wmv", (w, m, v)))
    assert drive.down == drive.up == 3*3*200*8

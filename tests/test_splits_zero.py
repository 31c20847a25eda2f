"""Sharding: the parameters of serial Adam, bytes by link, bytes held after every event, and programs that are wrong."""
from fractions import Fraction

import numpy as np
import pytest

from capacity import fsdp_peak_bytes, model_state_bytes, sharded_egress
from capacity.witness import tiny
from capacity.witness.splits import data, tensor, zero
from capacity.witness.spmd import Each, Link, run, two_level

W = tiny.weights()
UNITS = zero.units(W)
SIZES = {unit: zero.length(shapes) for unit, shapes in UNITS.items()}
PSI = sum(SIZES.values())
BATCH = tiny.data(sequences=24, length=4)
STEPS, FEW = 10, 3


def serial(steps=STEPS, clip=None, w=W, batch=BATCH, rate=0.01, a=0.9, b=0.99, eps=1e-8):
    """Adam, array by array, on one rank."""
    w, mean, square = dict(w), dict.fromkeys(w, 0), dict.fromkeys(w, 0)
    for t in range(1, steps + 1):
        grads = tiny.loss(w, *batch)[1](1/batch[1].size)
        norm = np.sqrt(sum((g*g).sum() for g in grads.values()))
        for name, g in grads.items():
            g = g*(1 if clip is None else min(1, clip/norm))
            mean[name] = a*mean[name] + (1 - a)*g
            square[name] = b*square[name] + (1 - b)*g*g
            w[name] = w[name] - rate*mean[name]/(1 - a**t)/(np.sqrt(square[name]/(1 - b**t)) + eps)
    return w


def trained(P, plan, *, replicas=1, link=None, batch=BATCH, steps=FEW, **how):
    S = P//replicas if callable(plan) or any(e.what == "scatter" for e in plan) else 1
    parts = [zero.shard(W, r % S, S) for r in range(P)]
    samples = [data.shard(batch, r, P) for r in range(P)]
    program = lambda comm, part, mine: zero.train(comm, part, UNITS, mine, plan, steps, replicas=replicas, **how)
    return run(program, parts, Each(samples), link=link or Link()), S


def weights(did, S, first=0):
    return zero.unshard([did.results[first + r]["master"] for r in range(S)], UNITS)


def off(got, want):
    return max(abs(got[name] - want[name]).max() for name in want)


REFERENCE, AFTER_FEW = serial(), serial(FEW)
PLANS = {"0": dict(stage=0), "1": dict(stage=1), "2": dict(stage=2), "3": dict(stage=3),
         "3, ahead": dict(stage=3, prefetch=1), "3, head kept": dict(stage=3, keep=["head"]),
         "3, kept": dict(stage=3, keep=list(UNITS)), "3, held": dict(stage=3, hold=True)}
COUNTS = {"0": lambda m: (0, 2), "1": lambda m: (1, 1), "2": lambda m: (1, m), "3": lambda m: (2*m, m),
          "3, ahead": lambda m: (2*m, m), "3, kept": lambda m: (m, m), "3, held": lambda m: (1, 1),
          "3, head kept": lambda m: (m*(2 - Fraction(SIZES["head"], PSI)), m)}


@pytest.mark.parametrize("name", PLANS)
@pytest.mark.parametrize("m", [1, 3])
def test_ten_steps_are_the_serial_ones_and_send_the_bytes_of_the_formula(name, m, P=4):
    did, S = trained(P, zero.step(units=UNITS, microbatches=m, **PLANS[name]), steps=STEPS)
    for r in range(0, P, S):
        assert off(weights(did, S, r), REFERENCE) < 1e-10
    gathers, scatters = COUNTS[name](m)
    assert (did.sent() == STEPS*sharded_egress(PSI, P, gathers, scatters, 8, 8)).all()


@pytest.mark.parametrize("name", PLANS)
def test_weights_and_gradients_of_other_widths(name):
    """Weights in half, gradients in single precision: other bytes, and nearly the same numbers."""
    did, S = trained(4, zero.step(units=UNITS, microbatches=3, **PLANS[name]), weight=np.float16, grad=np.float32)
    assert (did.sent() == FEW*sharded_egress(PSI, 4, *COUNTS[name](3), 2, 4)).all()
    assert 1e-8 < off(weights(did, S), AFTER_FEW) < 0.1


@pytest.mark.parametrize("replicas", [1, 2, 4])
@pytest.mark.parametrize("m", [1, 3])
def test_copies_of_shards(replicas, m):
    """Eight ranks in nodes of eight/replicas: gathers and scatters inside, one all-reduce of the part across."""
    P, S = 8, 8//replicas
    inside, across = Link(name="inside"), Link(name="across")
    did, S = trained(P, zero.step(3, UNITS, m), replicas=replicas, link=two_level(S, inside, across))
    for r in range(replicas):
        assert off(weights(did, S, r*S), AFTER_FEW) < 1e-10
    assert (did.sent(inside) == FEW*sharded_egress(PSI, S, 2*m, m, 8, 8)).all()
    if replicas > 1:
        assert did.sent(across).sum() == FEW*P*sharded_egress(Fraction(PSI, S), replicas, 0, 2, 8, 8)


def test_a_unit_that_does_not_divide_is_filled_with_zeros():
    did, S = trained(3, zero.step(3, UNITS, 1))
    assert off(weights(did, S), AFTER_FEW) < 1e-10
    padded = sum(zero.length(shapes, 3) for shapes in UNITS.values())
    assert padded > PSI and (did.sent() == FEW*sharded_egress(padded, 3, 2, 1, 8, 8)).all()


@pytest.mark.parametrize("stage", [0, 1, 2, 3])
def test_between_steps_a_rank_holds_the_lattice(stage):
    """After an update: weights, optimizer state; gradients are gone.  Before it: all gradients that the stage keeps."""
    P = 4
    did, S = trained(P, zero.step(stage, UNITS, 3), steps=2, weight=np.float16, grad=np.float32)
    trace = did.results[1]["trace"]
    cut = [P if stage >= k else 1 for k in (3, 2, 1)]
    after = [held for t, event, held in trace if event.what == "update"][-1]
    assert sum(after.values()) == model_state_bytes(PSI, 2, 0, 24, *cut)
    before = trace[[event.what for _, event, _ in trace].index("update") - 1][2]
    assert before["gradients"] == model_state_bytes(PSI, 0, 4, 0, grad_ranks=P if stage else 1)
    most = max(sum(held.values()) for *_, held in trace)
    if stage < 2:                                            # whole gradients are the peak
        assert most == model_state_bytes(PSI, 2, 4, 24, 1, 1, cut[2])


@pytest.mark.parametrize("prefetch", [0, 1])
@pytest.mark.parametrize("layers", [2, 3])
def test_the_peak_of_zero3(prefetch, layers):
    """With two micro-batches or more the gradient's part is there; with one, the units before the peak are missing."""
    w = tiny.weights(layers=layers)
    units = zero.units(w)
    psi, big = (f(zero.length(s) for s in units.values()) for f in (sum, max))
    peaks = {}
    for m in (1, 2, 3):
        parts, plan = [zero.shard(w, r, 4) for r in range(4)], zero.step(3, units, m, prefetch=prefetch)
        samples = Each([data.shard(BATCH, r, 4) for r in range(4)])
        did = run(zero.train, parts, units, samples, plan, 1)
        trace = did.results[0]["trace"]
        peaks[m] = max(sum(held.values()) for *_, held in trace)
        t, event, _ = next(x for x in trace if sum(x[2].values()) == peaks[m])
        assert event.what == "backward" and zero.length(units[event.unit]) == big
    assert peaks[2] == peaks[3] == fsdp_peak_bytes(psi, 4, big, prefetch, 8, 8, 24)
    assert peaks[1] < peaks[2]


def test_the_head_unit_of_a_small_model_is_the_peak():
    w = tiny.weights(layers=1, vocab=96)
    units = zero.units(w)
    assert zero.length(units["head"]) > zero.length(units["0"])
    parts, samples = [zero.shard(w, r, 4) for r in range(4)], Each([data.shard(tiny.data(8, vocab=96), r, 4) for r in range(4)])
    trace = run(zero.train, parts, units, samples, zero.step(3, units, 2), 1).results[0]["trace"]
    peak = max(sum(held.values()) for *_, held in trace)
    assert peak == fsdp_peak_bytes(sum(map(zero.length, units.values())), 4, zero.length(units["head"]), 0, 8, 8, 24)
    trace = run(zero.train, parts, units, samples, zero.step(3, units, 2, prefetch=1), 1).results[0]["trace"]
    ahead = max(sum(held.values()) for *_, held in trace)     # a block ahead of the head: the formula is a bound
    assert ahead == peak + 8*zero.length(units["0"])
    assert ahead < fsdp_peak_bytes(sum(map(zero.length, units.values())), 4, zero.length(units["head"]), 1, 8, 8, 24)


def test_gradients_of_a_step():
    part = [zero.shard(W, r, 4) for r in range(4)]
    samples = Each([data.shard(BATCH, r, 4) for r in range(4)])
    did = run(zero.loss, part, UNITS, samples, zero.step(3, UNITS, 2))
    want = tiny.loss(W, *BATCH)[1](1/BATCH[1].size)
    assert off(zero.unshard(did.results, UNITS), want) < 1e-12


@pytest.mark.parametrize("stage", [0, 1, 2, 3])
def test_clipping_takes_the_norm_of_all_parts(stage):
    did, S = trained(4, zero.step(stage, UNITS, 3), clip=0.2)
    assert off(weights(did, S), serial(FEW, clip=0.2)) < 1e-10
    assert off(serial(FEW, clip=0.2), AFTER_FEW) > 1e-5


def test_with_tensor_parallelism():
    """Two ranks share the columns, two of them the state of each part: a grid."""
    halves = [tensor.shard(W, t, 2) for t in range(2)]
    shapes = zero.units(halves[0])

    def both(comm, samples, plan):
        dp, tp = comm.grid(2, 2)
        part = zero.shard(halves[tp.rank], dp.rank, 2)
        return zero.train(dp, part, shapes, samples, plan, FEW, **tensor.hooks(tp))
    samples = [data.shard(BATCH, r//2, 2) for r in range(4)]
    for stage in (2, 3):
        did = run(both, samples, zero.step(stage, shapes, 2))
        parts = [zero.unshard([did.results[2*d + t]["master"] for d in range(2)], shapes) for t in range(2)]
        assert off(tensor.unshard(parts), AFTER_FEW) < 1e-10


# --- what is wrong

def without(plan, *events):
    return [e for e in plan if e not in events]


def test_a_unit_used_before_its_gather():
    plan = zero.step(3, UNITS)
    late, used = zero.Event("gather", "1"), zero.Event("forward", "1")
    moved = without(plan, late)
    moved.insert(moved.index(used) + 1, late)
    with np.errstate(invalid="ignore"):
        did, S = trained(4, moved, steps=1)
    assert all(np.isnan(value).all() for value in did.results[0]["master"].values())


def test_a_unit_released_before_its_backward():
    plan = zero.step(3, UNITS)
    again = [e for e in plan if e == zero.Event("gather", "0")][1]
    at = max(k for k, e in enumerate(plan) if e == again)
    with np.errstate(invalid="ignore"):
        did, S = trained(4, plan[:at] + plan[at + 1:], steps=1)
    bad = {unit for unit, value in did.results[0]["master"].items() if np.isnan(value).any()}
    assert bad == {"0", "embed"}                              # what backward meets there, and after it


def test_a_gather_before_the_update_is_one_step_old():
    """The first unit of the next step fetched too early: nothing is missing, and the numbers are wrong."""
    plan, first = zero.step(3, UNITS), zero.Event("gather", "embed")
    ahead = plan[:-1] + [first] + plan[-1:]                   # before the update
    plans = lambda t: (ahead if t == 0 else ahead[1:]) if t < FEW - 1 else plan[1:]
    did, S = trained(4, plans)
    assert 1e-4 < off(weights(did, S), AFTER_FEW) < 0.1


def test_a_gather_after_the_update_is_right():
    plan, first = zero.step(3, UNITS), zero.Event("gather", "embed")
    did, S = trained(4, lambda t: (plan if t == 0 else plan[1:]) + [first]*(t < FEW - 1))
    assert off(weights(did, S), AFTER_FEW) < 1e-10


def test_adam_hides_a_forgotten_scale_until_something_looks_at_the_size():
    """Sums where means belong: Adam divides any factor out, but for eps; a bound on the norm does not."""
    plan, wrong = zero.step(3, UNITS), dict(count=BATCH[1].size//4)
    assert off(weights(*trained(4, plan, **wrong)), AFTER_FEW) < 1e-4
    loose = 2.0
    assert off(weights(*trained(4, plan, clip=loose)), serial(FEW, clip=loose)) < 1e-10
    norms = [np.sqrt(sum((g*g).sum() for g in tiny.loss(serial(t), *BATCH)[1](1/BATCH[1].size).values())) for t in (0, FEW - 1)]
    assert norms[1] < norms[0] < loose                        # right gradients keep the bound, four times them do not
    assert 4*norms[0] > loose
    assert off(weights(*trained(4, plan, clip=loose, **wrong)), AFTER_FEW) > 1e-4


def test_the_norm_of_a_part_is_no_norm():
    local = lambda comm, grads: zero.norm(None, grads)
    did, S = trained(4, zero.step(3, UNITS), clip=0.2, norm=local)
    assert off(weights(did, S), serial(FEW, clip=0.2)) > 1e-5


def test_buckets_that_are_not_the_owners():
    """Gradients scattered over the whole vector, weights owned unit by unit: same sizes, other coordinates."""
    whole = {"all": {name: shape for shapes in UNITS.values() for name, shape in shapes.items()}}
    grads = tiny.loss(W, *BATCH)[1](1/BATCH[1].size)
    bucket = np.split(zero.flat(grads, whole["all"], 4), 4)
    owned = [np.concatenate(list(zero.shard(grads, r, 4).values())) for r in range(4)]
    assert all(len(a) == len(b) for a, b in zip(bucket, owned))
    assert not any(np.allclose(a, b) for a, b in zip(bucket, owned))
    assert np.allclose(np.sort(np.concatenate(bucket)), np.sort(np.concatenate(owned)))

    class Bucketed(zero.Rank):
        def reduced(self, clip, norm):
            mine = np.split(zero.flat(zero.unshard([
                dict(zip(self.sums, x)) for x in zip(*(zero.ring_all_gather(self.inside, g) for g in self.sums.values()))],
                UNITS), whole["all"], 4), 4)[self.inside.rank]
            cuts = np.cumsum([len(v) for v in self.master.values()])[:-1]
            return dict(zip(self.master, np.split(mine, cuts)))

    original, zero.Rank = zero.Rank, Bucketed
    try:
        did, S = trained(4, zero.step(3, UNITS))
    finally:
        zero.Rank = original
    assert off(weights(did, S), AFTER_FEW) > 1e-3


@pytest.mark.parametrize("function", [zero.orthogonal, zero.shampoo])
def test_an_optimizer_of_matrices_needs_whole_ones(function):
    def at(P, stage, **how):
        return weights(*trained(P, zero.step(stage, UNITS), optimizer=zero.ByMatrix(function, **how)))
    alone = at(1, 0)
    assert off(at(4, 3), alone) < 1e-10                       # momentum gathered
    assert off(at(4, 3, alone=True), alone) > 1e-2            # and not
    gathered = trained(4, zero.step(3, UNITS), optimizer=zero.ByMatrix(function))[0].sent()
    assert (gathered == FEW*sharded_egress(PSI, 4, 3, 1, 8, 8)).all()   # one gather more, of 8 bytes a number


def test_newton_schulz_is_the_nearest_orthogonal_matrix():
    g = np.random.default_rng(0).normal(size=(6, 9))
    u, _, v = np.linalg.svd(g, full_matrices=False)
    np.testing.assert_allclose(zero.orthogonal(g), u @ v, atol=1e-9)
    np.testing.assert_allclose(zero.shampoo(g), u @ v, atol=1e-4)        # (s²)^(-1/4) s (s²)^(-1/4) = 1


def test_steps_name_what_is_allowed():
    with pytest.raises(ValueError, match="stage = 4; allowed: 0, 1, 2 or 3"):
        zero.step(4, UNITS)

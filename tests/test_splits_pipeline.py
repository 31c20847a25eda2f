"""Pipeline parallelism: loss and every gradient of the unsplit model under every schedule, bytes, activations."""
import numpy as np
import pytest

from capacity.witness import tiny
from capacity.witness.schedule import Infeasible, Op, Schedule, dualpipe, gpipe, interleaved, one_f_one_b, simulate, zb_h1, zb_h2, zb_v
from capacity.witness.splits.pipeline import loss, ops, peaks, shard, stages, total
from capacity.witness.spmd import Deadlock, run

W = tiny.weights(layers=8)
TOKENS, TARGETS = tiny.data(sequences=16)
TARGETS = np.where(np.arange(8) < np.arange(16)[:, None] % 9, TARGETS, -1)     # of unequal counts
SCHEDULES = [gpipe(1, 4), gpipe(3, 4), gpipe(8, 16), one_f_one_b(1, 2), one_f_one_b(2, 1), one_f_one_b(4, 8),
             one_f_one_b(8, 4), interleaved(2, 8, 2), interleaved(2, 4, 4), interleaved(4, 8, 2), zb_h1(4, 8),
             zb_h1(8, 16), zb_h2(3, 5), zb_h2(4, 8), zb_v(1, 2), zb_v(2, 3), zb_v(4, 8), zb_v(4, 2), dualpipe(2, 4),
             dualpipe(4, 8), dualpipe(8, 16)]


def name(schedule):
    m = 1 + max(op.microbatch for op in ops(schedule.orders[0]))
    return f"{schedule.name} {len(schedule.orders)} {m} {schedule.chunks}"


def serial(w=W):
    loss, back = tiny.loss(w, TOKENS, TARGETS)
    return loss, back()


def trained(schedule, w=W, program=loss):
    return run(program, [shard(w, r, schedule) for r in range(len(schedule.orders))], (TOKENS, TARGETS), schedule)


def same(got, want):
    assert abs(got[0] - want[0]) < 1e-10
    assert got[1].keys() == want[1].keys()
    for key in want[1]:
        np.testing.assert_allclose(got[1][key], want[1][key], rtol=0, atol=1e-10, err_msg=key)


def test_stages_are_the_weights():
    for n in range(1, 9):
        parts = stages(W, n)
        assert sorted(key for part in parts for key in part) == sorted(W)
        sizes = [len(tiny.blocks(part)) for part in parts]
        assert sum(sizes) == 8 and max(sizes) - min(sizes) <= 1


@pytest.mark.parametrize("n", [0, 9])
def test_no_stage_without_a_block(n):
    with pytest.raises(ValueError, match="n = .; allowed: 1 to 8 stages"):
        stages(W, n)


def test_nothing_flows_back_to_the_tokens():
    x, back = tiny.stage(stages(W, 2)[0], TOKENS)
    assert back(np.ones_like(x))[0] is None


def test_composed_stages_are_the_model():
    for n in (1, 2, 3, 8):
        x, backs = TOKENS, []
        for s, part in enumerate(stages(W, n)):
            x, back = tiny.stage(part, x, TARGETS if s == n - 1 else None)
            backs.append(back)
        dy, grads = 1.0, {}
        for back in reversed(backs):
            dy, dw = back(dy)
            grads = tiny.add(grads, dw())
        same((x, grads), serial())


@pytest.mark.parametrize("schedule", SCHEDULES, ids=name)
def test_loss_and_every_gradient(schedule):
    same(total(trained(schedule)), serial())


@pytest.mark.parametrize("schedule", SCHEDULES, ids=name)
def test_activations_held(schedule):
    did = trained(schedule)
    assert [peak/schedule.chunks for peak in peaks(did)] == simulate(schedule).peak_activations


@pytest.mark.parametrize("schedule", [s for s in SCHEDULES if s.name not in ("DualPipe", "ZB-V")], ids=name)
def test_bytes_sent(schedule):
    p, v = len(schedule.orders), schedule.chunks
    batch = 8*TOKENS.size*8                                # activations of all micro-batches: 8 numbers a token
    want = [batch*(2*v - (d == 0) - (d == p - 1)) if p > 1 else 0 for d in range(p)]
    assert trained(schedule).sent().tolist() == want


def test_bytes_of_a_fold_and_of_two_directions():
    p, batch = 4, 8*TOKENS.size*8
    assert trained(zb_v(4, 8)).sent().tolist() == [batch*k for k in (2, 4, 4, 2)]    # the turn stays on a device
    copies = [8*sum(v.size for stage in shard(W, r, dualpipe(4, 8)).stages.values() for v in stage.values())
              for r in range(4)]
    assert trained(dualpipe(4, 8)).sent().tolist() == [
        batch*(2 - (d in (0, p - 1))) + copies[d] for d in range(p)]


def lonely(comm, part, *rest):
    return loss(comm, part._replace(shared=[]), *rest)


def test_two_directions_need_the_sum_of_the_copies():
    schedule = dualpipe(4, 8)
    losses, grads = total(trained(schedule, program=lonely))
    want = serial()
    assert abs(losses - want[0]) < 1e-10
    assert all(np.abs(grads[key] - want[1][key]).max() > 1e-3 for key in want[1])


@pytest.mark.parametrize("schedule", [one_f_one_b(4, 8), interleaved(2, 8, 2), zb_v(4, 8), dualpipe(4, 8)], ids=name)
def test_tied_embeddings(schedule):
    tied = {key: value for key, value in W.items() if key != "head"}
    losses, grads = serial(tied | {"head": tied["embed"].T})
    grads["embed"] = grads["embed"] + grads.pop("head").T
    same(serial(tied), (losses, grads))
    did = trained(schedule, tied)
    same(total(did), (losses, grads))
    if schedule.name == "1F1B":
        extra = did.sent() - trained(schedule).sent()
        assert extra.tolist() == [tied["embed"].nbytes, 0, 0, tied["embed"].nbytes]

        first, last = (trained(schedule, tied, lonely).results[d][1]["embed"] for d in (0, 3))
        assert np.abs(first - grads["embed"]).max() > 1e-2 and np.abs(last - grads["embed"]).max() > 1e-2
        np.testing.assert_allclose(first + last, grads["embed"], atol=1e-10)


def inverted(p, m):
    """The warm-up counted from the wrong end: s + 1 forwards."""
    orders = []
    for s in range(p):
        k = min(s + 1, m)
        rest = [(Op("F", s, j), Op("B", s, j - k)) for j in range(k, m)]
        orders.append([Op("F", s, j) for j in range(k)] + [op for pair in rest for op in pair]
                      + [Op("B", s, j) for j in range(m - k, m)])
    return Schedule("inverted", orders)


@pytest.mark.parametrize("p, m", [(2, 4), (4, 8), (8, 16)])
def test_an_inverted_warm_up_deadlocks(p, m):
    with pytest.raises(Infeasible, match="device 0 waits at B"):
        simulate(inverted(p, m))
    with pytest.raises(Deadlock, match=r"rank 0 waits to receive a message \(tag 'B"):
        trained(inverted(p, m))


PROFILED = """8 24 18.522 18.086 9.337 0.601 .2431 .1585 .1083
8 32 18.513 18.086 9.331 0.626 .1985 .1242 .0837
8 64 18.546 18.097 9.321 0.762 .1240 .0674 .0444
8 24 29.718 29.444 19.927 0.527 .2347 .1323 .0698
8 32 29.802 29.428 19.530 0.577 .1898 .1045 .0559
8 64 29.935 29.621 19.388 0.535 .1091 .0554 .0294
16 48 11.347 11.248 8.132 0.377 .2552 .1397 .0672
16 64 11.307 11.254 8.101 0.379 .2082 .1088 .0516
16 128 11.325 11.308 8.109 0.378 .1251 .0576 .0266
32 96 10.419 10.207 7.715 0.408 .2646 .1421 .0641
32 128 10.408 10.204 7.703 0.408 .2168 .1106 .0490
32 256 10.402 10.248 7.698 0.460 .1352 .0594 .0257"""            # arXiv:2401.10241, tables 9 and 5


@pytest.mark.parametrize("row", PROFILED.split("\n"))
def test_published_idle_shares_to_the_last_digit(row):
    p, m, *rest = row.split()
    p, m, (f, i, w, send, *rates) = int(p), int(m), map(float, rest)
    for make, rate in zip((one_f_one_b, zb_h1, zb_h2), rates):
        assert abs(1 - m*(f + i + w)/max(simulate(make(p, m), f, i, w, send=send).spans) - rate) < 0.6e-4

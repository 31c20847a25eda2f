"""The simulated job keeps its books, the disk its promise, the training its state."""
import math

import numpy as np
import pytest

from capacity.witness import failures


def script(*times):
    """Strikes at given moments; (time, level) or a time."""
    rest = [t if isinstance(t, tuple) else (t, 0) for t in times]
    return lambda now: next((t for t in rest if t[0] > now), (math.inf, 0))


def test_a_day_by_hand():
    done = failures.job(100, script(25, 47), [(10, 2, 5)])
    rows = [(s.start, s.stop, s.kind) for s in done.spans]
    assert rows[:8] == [(0, 10, "train"), (10, 12, "save"), (12, 22, "train"), (22, 24, "save"), (24, 25, "lost"),
                        (25, 30, "restart"), (30, 40, "train"), (40, 42, "save")]
    assert rows[8:10] == [(42, 47, "lost"), (47, 52, "restart")] and done.failures == 2
    assert done.goodput == pytest.approx(1 - (1 + 5 + 5 + 5 + done.seconds("save"))/done.spans[-1].stop)


def test_a_failure_in_a_save_takes_the_interval():
    done = failures.job(60, script(11), [(10, 2, 5)])
    assert [(s.stop, s.kind) for s in done.spans[:3]] == [(10, "lost"), (11, "save"), (16, "restart")]


def test_a_copy_is_safe_when_it_is_written():
    for strike, lost in ((15, 15 - 2), (17, 17 - 2 - 10)):              # saved at 10 to 12, safe at 16
        done = failures.job(60, script(strike), [(10, 2, 5)], drain=4)
        assert done.seconds("lost") == pytest.approx(lost)
    slow = failures.job(60, script(15), [(10, 2, 5)], drain=4, slowdown=.5)
    assert slow.seconds("lost") == pytest.approx(13)                     # the clock, not the work


def test_a_far_failure_goes_back_to_the_far_copy():
    levels = [(10, 1, 2), (30, 3, 4)]
    near, far = (failures.job(200, script((95, level)), levels) for level in (0, 1))
    assert near.seconds("restart") == 2 and far.seconds("restart") == 4
    assert near.seconds("lost") <= 10 < far.seconds("lost") < 30
    assert all(s.after - s.before == pytest.approx(s.stop - s.start) for s in far.spans if s.kind in ("train", "lost"))


def test_without_a_spare_the_job_waits():
    strikes = script(20, 40, 60)
    some, none = (failures.job(300, strikes, [(10, 1, 2)], spares=n, repair=100) for n in (3, 1))
    assert some.seconds("wait") == 0 < none.seconds("wait") == pytest.approx(120 - 40)


@pytest.mark.parametrize("done", [failures.job(5000, failures.poisson(90, np.random.default_rng(s)), [(20, 2, 7), (65, 3, 9)], drain=d)
                                  for s in range(4) for d in (0, 15)])
def test_time_is_gapless_and_work_is_what_stays(done):
    assert all(a.stop == b.start for a, b in zip(done.spans, done.spans[1:]))
    assert done.goodput*done.spans[-1].stop == pytest.approx(done.seconds("train"))


def test_many_jobs_at_once_are_single_jobs():
    gaps = np.random.default_rng(3).exponential(60, (5, 40))
    for row, goodput in zip(gaps, failures.jobs(gaps, 20, 2, 7)):
        rest = iter([*row, math.inf])
        job = failures.job(row.sum() + 39.5*7, lambda now: (now + next(rest), 0), [(20, 2, 7)])
        assert job.failures == 40 and job.goodput == pytest.approx(goodput)


def test_devices_are_replaced():
    strike, at, n = failures.devices(50, 100.0, np.random.default_rng(1)), 0.0, 0
    while at < 2000:
        at, n = strike(at)[0], n + 1
    assert abs(n - 1000) < 4*1000**.5


def test_a_flipped_bit_is_refused():
    disk = failures.Disk()
    failures.commit(disk, 1, [b"aaaa"])
    failures.commit(disk, 2, [b"bbbb"])
    disk.files["2/shard 0"] = b"bbbc"
    assert failures.load(disk) == (1, [b"aaaa"])
    disk.files["1/shard 0"] = b""
    with pytest.raises(ValueError, match="no whole checkpoint"):
        failures.load(disk)


def test_training_leaves_the_state_alone():
    state = failures.start()
    first, _ = failures.train(state, 9)
    assert state["step"] == 0 and first["step"] == 9 and failures.train(state, 9)[1] == failures.train(state, 9)[1]

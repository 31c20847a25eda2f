"""Workers that do not wait keep their books: staleness, late gradients, local steps, the small network."""
import numpy as np
import pytest

from capacity import delay_limit
from capacity.witness import asynchrony as late
from capacity.witness.students import expected_losses, spectrum, train


def test_two_workers_by_hand():
    log = late.server([late.steady(1.0), late.steady(2.5)], 7)
    assert [(u.worker, u.start, u.stop, u.staleness) for u in log] == [
        (0, 0, 1, 0), (0, 1, 2, 0), (1, 0, 2.5, 2), (0, 2, 3, 1), (0, 3, 4, 0), (0, 4, 5, 0), (1, 2.5, 5, 3)]


def test_the_bars_of_a_worker_leave_no_gap():
    rng = np.random.default_rng(0)
    log = late.server([late.random(m, rng) for m in (1., 2., .3)], 200)
    assert [u.stop for u in log] == sorted(u.stop for u in log)
    for i in range(3):
        own = [u for u in log if u.worker == i]
        assert own[0].start == 0 and all(a.stop == b.start for a, b in zip(own, own[1:]))
    for n, u in enumerate(log):
        assert u.staleness == sum(u.start < v.stop for v in log[:n] if v.worker != u.worker)


def test_a_gradient_is_taken_where_its_worker_read():
    seen = []
    log = late.server([late.steady(1.0), late.steady(1.5)], 4)               # writes: 0, 1, 0, ...
    late.asynchronous(lambda w, i: seen.append((i, float(w))) or 1.0, 10.0, 1.0, log)
    assert seen == [(0, 10), (1, 10), (0, 9), (0, 7)]


def test_equal_workers_are_a_fixed_delay():
    w = late.asynchronous(lambda w, i: w, 1.0, .3, late.server([late.steady(1.0)]*3, 60))
    want = [1.0]*3
    for _ in range(60):
        want.append(want[-1] - .3*want[-3])
    np.testing.assert_allclose(w, want[3:], rtol=1e-12)


@pytest.mark.parametrize("delay", [0, 2, 5])
def test_the_limit_is_that_of_the_roots(delay):
    def largest(x):
        return abs(np.roots([1, -1, *[0]*(delay - 1), x] if delay else [1, x - 1])).max()
    x = late.limit(delay)
    assert largest(.995*x) < 1 < largest(1.005*x)


def test_an_average_each_step_is_one_large_batch():
    rng = np.random.default_rng(1)
    noise = rng.normal(size=(12, 4))
    left = iter(noise)
    got = late.local(lambda own: own**3 - next(left), .5, .1, 4, 1, 12)
    w = .5
    for row, g in zip(noise, got):
        w -= .1*(w**3 - row.mean())
        assert g == pytest.approx(w, rel=1e-12)


def test_the_outer_step_is_nesterovs():
    w, u = 2.0, 0.0
    got = late.local(lambda own: own, 2.0, .2, 3, 5, 6, outer=(.7, .9))
    for g in got:
        delta = w*(1 - .8**5)
        u = .9*u + delta
        w -= .7*(delta + .9*u)
        assert g == pytest.approx(w, rel=1e-12)


def test_a_student_alone_is_a_student():
    v = spectrum(.5, 50)
    for H in (1, 4):
        np.testing.assert_allclose(late.expected_local(8, 20, H, 1, 4, .2, v, .5), expected_losses(8, 20, 4, .2, v, .5)[::H])
    np.testing.assert_allclose(late.expected_local(8, 20, 1, 5, 4, .2, v), expected_losses(8, 20, 20, .2, v))
    mean = np.mean([train(8, 12, 3, .2, v, seed=s)[-1] for s in range(400)])
    alone = np.mean([late.train_local(8, 12, 1, 1, 3, .2, v, seed=s)[-1] for s in range(400)])
    assert alone == pytest.approx(mean, rel=.03)


def test_the_network_has_its_gradient():
    task = late.Blobs(seed=3)
    task.draw = lambda workers: np.tile(np.arange(16), (len(workers), 1))
    w = np.stack([task.start, 2*task.start])
    got = task.gradient(w)

    def loss(w):
        return -task._forward(w, task.x[:16])[2][np.arange(16), task.y[:16]].mean()
    for m in range(2):
        for k in (0, 40, 95, 96, 130, 159):
            e = np.zeros(w.shape[1])
            e[k] = 1e-6
            assert (loss(w[m] + e) - loss(w[m] - e))/2e-6 == pytest.approx(got[m, k], abs=1e-8)


def test_sorted_workers_see_their_own_kind():
    task = late.Blobs(skew=.9, seed=0)
    pick = np.concatenate([task.draw(range(4)) for _ in range(200)], 1)
    share = (task.y[pick] == np.arange(4)[:, None]).mean(1)
    assert (share > .9).all() and (share < 1).all()
    alike = late.Blobs(seed=0)
    counts = np.bincount(alike.y[alike.draw(range(4))].ravel(), minlength=4)
    assert (counts > 0).all()


# ---- numbers worth knowing
@pytest.mark.parametrize("P, mean", [(8, 1.424), (64, 2.344), (1000, 3.241), (16384, 3.971)])
def test_the_latest_of_normal_workers(P, mean):
    """The integral of x over the density of the largest, and a simulation of it."""
    from math import erf
    x = np.linspace(-9, 9, 40_001)
    below = np.array([.5*(1 + erf(v/2**.5)) for v in x])**P
    integral = x[-1] - np.trapezoid(below, x)
    rng = np.random.default_rng(29)
    seen = np.array([rng.normal(size=P).max() for _ in range(1000)])
    assert round(integral, 3) == mean and abs(seen.mean() - mean) < 4*seen.std()/1000**.5


def test_the_latest_of_a_thousand_exponential_workers():
    assert round(sum(1/i for i in range(1, 1001)), 2) == 7.49


def test_fifteen_updates_late_is_a_rate_twenty_times_smaller():
    assert round(delay_limit(1, 0)/delay_limit(1, 15), 1) == 19.7


@pytest.mark.parametrize("H", [1, 10])
def test_rare_averages_of_one_quadratic_end_in_the_same_spread(H):
    """8 workers, rate 0.1, curvature 1, noise 1: eta/(P(2 - eta)) after an average, whatever H."""
    rng, w, seen = np.random.default_rng(0), np.zeros((8, 400)), []
    for t in range(1, 1501):
        w -= .1*(w + rng.normal(size=w.shape))
        if t % H == 0:
            w[:] = w.mean(0)
            seen += [(w[0]**2).mean()] if t > 200 else []
    assert round(.1/(8*1.9), 5) == .00658
    assert np.mean(seen) == pytest.approx(.00658, rel=.03)


def test_the_gradients_of_students_are_those_that_train_local_steps_along():
    v, seeds = spectrum(.5, 50), [3, 8]
    ends = late.local(late.students(8, 3, 4, v, seeds), np.ones((2, 2, 8)), np.array([[.2], [.1]]), 3, 5, 4)
    for i, seed in enumerate(seeds):
        for j, rate in enumerate((.2, .1)):
            want = late.train_local(8, 20, 5, 3, 4, rate, v, seed=seed)[1:]
            np.testing.assert_allclose(ends[:, i, j]**2 @ v[:8] + v[8:].sum(), want, rtol=1e-12)


def test_momentum_inside_is_nesterovs_and_goes_on_over_averages():
    w, u = 2.0, 0.0
    got = late.local(lambda own: own, 2.0, .2, 3, 5, 4, inner=.9)
    for g in got:
        for _ in range(5):
            u = .9*u + w
            w -= .2*(w + .9*u)
        assert g == pytest.approx(w, rel=1e-12)


def test_momentum_inside_with_an_average_each_step_is_an_outer_step_of_rate_one():
    v = spectrum(.5, 50)
    ends = [late.local(late.students(8, 3, 4, v, [1]), np.ones((1, 1, 8)), .1, 3, 1, 30, **how)
            for how in ({"inner": .9}, {"outer": (1, .9)})]
    np.testing.assert_allclose(*ends, rtol=1e-9)

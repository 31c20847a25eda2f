"""The fits find what was put in, and say what they are given."""
import numpy as np
import pytest

from capacity.fits import Surface, bootstrap, fit_loss_surface, isoflop_vertex, project

TRUTH = Surface(1.82, 482, 2085, 0.348, 0.366)
N, D = (x.ravel() for x in np.meshgrid(np.geomspace(5e7, 1.6e10, 10), np.geomspace(1e9, 5e11, 10)))


def loss(c, N=N, D=D):
    return c.irreducible + c.size_coefficient/N**c.size_exponent + c.data_coefficient/D**c.data_exponent


@pytest.mark.parametrize("truth", [TRUTH, Surface(1.69, 406.4, 410.7, 0.339, 0.285), Surface(0.5, 20, 4e4, 0.2, 0.5)])
def test_truth_is_found(truth):
    np.testing.assert_allclose(fit_loss_surface(N, D, loss(truth)), truth, rtol=1e-3)


def test_projection_is_exact_at_the_true_exponents():
    coefficients, residual = project(N, D, loss(TRUTH), TRUTH.size_exponent, TRUTH.data_exponent)
    np.testing.assert_allclose(coefficients, TRUTH[:3], rtol=1e-6)
    assert residual < 1e-12 < project(N, D, loss(TRUTH), 0.3, 0.4)[1]


def test_projection_tells_the_sum_of_squares():
    coefficients, residual = project(N, D, loss(TRUTH), 0.3, 0.4)
    off = loss(Surface(*coefficients, 0.3, 0.4))/loss(TRUTH) - 1
    assert residual == pytest.approx(off @ off) and residual > 1e-6


def test_five_runs_are_enough():
    five = [0, 7, 34, 61, 99]
    fit = fit_loss_surface(N[five], D[five], loss(TRUTH)[five])
    np.testing.assert_allclose(loss(fit)[five], loss(TRUTH)[five], rtol=1e-4)


def test_outliers_weigh_little():
    noisy = loss(TRUTH)*np.exp(0.001*np.random.default_rng(0).normal(size=N.size))
    noisy[:5] *= 1.5
    near = fit_loss_surface(N, D, noisy)
    far = fit_loss_surface(N, D, noisy, delta=10)
    assert abs(near.data_exponent - TRUTH.data_exponent) < 0.03 < abs(far.data_exponent - TRUTH.data_exponent)


def test_bootstrap_covers_the_truth_and_repeats_itself():
    noisy = loss(TRUTH)*np.exp(0.003*np.random.default_rng(1).normal(size=N.size))
    fit = fit_loss_surface(N, D, noisy)
    rows = bootstrap(fit_loss_surface, N, D, noisy, count=40, start=fit)
    assert rows.shape == (40, 5)
    assert (abs(np.mean(rows, 0)[3:] - TRUTH[3:]) < 4*rows.std(0)[3:]).all()
    assert 0.001 < rows.std(0)[3] < 0.05
    np.testing.assert_array_equal(rows, bootstrap(fit_loss_surface, N, D, noisy, count=40, start=fit))


def test_bootstrap_draws_as_many_whole_runs():
    rows = bootstrap(lambda x, y: (len(x), len(set(x)), abs(x - y).max()), np.arange(50), np.arange(50.), count=9)
    assert (rows[:, 0] == 50).all() and (rows[:, 1] < 45).all() and (rows[:, 2] == 0).all()


@pytest.mark.parametrize("bad, says", [
    (dict(loss=[1, 2]), "losses"), (dict(params=-N), "params ="), (dict(params=0*N), "params ="), (dict(delta=0), "delta"),
    (dict(tokens=[[1.0]]), "tokens =")])
def test_bad_input(bad, says):
    with pytest.raises(ValueError, match=says):
        fit_loss_surface(**{**dict(params=N, tokens=D, loss=loss(TRUTH)), **bad})


def test_a_parabola_is_found():
    sizes = 3e9*np.exp([-1.0, -0.2, 0.5, 1.7])
    size, least = isoflop_vertex(sizes, 2 + 0.1*np.log(sizes/4e9)**2)
    assert size == pytest.approx(4e9) and least == pytest.approx(2)


@pytest.mark.parametrize("params, loss, says", [
    ([1, 2, 3], [1, 2], "losses"), ([1, 2], [1, 2], "at least 3"), ([1, 2, -3], [1, 2, 3], "params"), ([1, 2, 4], [1, 2, 1], "bends")])
def test_no_parabola(params, loss, says):
    with pytest.raises(ValueError, match=says):
        isoflop_vertex(params, loss)

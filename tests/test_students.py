"""The family of students: what is computed without sampling is the mean of what is sampled."""
import numpy as np
import pytest

from capacity.witness.students import expected_losses, spectrum, train

V = spectrum(1.0, 1000)


@pytest.mark.parametrize("size, batch, rate, noise", [(1, 4, 0.2, 0.2), (6, 1, 0.2, 0.3), (6, 8, 0.7, 0.1)])
def test_expected_is_the_mean(size, batch, rate, noise):
    runs = np.array([train(size, 40, batch, rate, V, noise, seed=s) for s in range(1500)])
    mean, error = runs.mean(0), runs.std(0)/np.sqrt(len(runs))
    assert (abs(mean - expected_losses(size, 40, batch, rate, V, noise)) <= 4.5*error + 1e-12).all()
    assert error[-1] < 0.1*mean[-1]


def test_a_large_batch_is_gradient_descent():
    errors = (1 - 0.5*V[:6])**np.arange(31)[:, None]
    np.testing.assert_allclose(expected_losses(6, 30, 10**12, 0.5, V), V[:6] @ errors.T**2 + V[6:].sum(), rtol=1e-9)


def test_too_large_a_rate_diverges_and_the_best_loss_is_what_is_hidden():
    assert expected_losses(6, 400, 4, 1.9, V)[-1] > 1e3
    assert expected_losses(6, 4000, 4, 0.2, V, noise=0.1)[-1] > V[6:].sum() + 0.01
    assert expected_losses(6, 20000, 10**9, 0.9, V)[-1] == pytest.approx(V[6:].sum(), rel=1e-3)


def test_repeated_data_are_remembered():
    many, few = (np.mean([train(6, 2000, 64, 0.2, V, 0.5, samples=n, seed=s)[-1] for s in range(5)])
                 for n in (None, 24))
    floor = V[6:].sum() + 0.5**2
    assert few - floor > 5*(many - floor) > 0


def test_many_known_samples_are_like_new_ones():
    mean = np.mean([train(6, 300, 8, 0.2, V, 0.3, samples=20_000, seed=s)[-1] for s in range(40)])
    assert mean == pytest.approx(expected_losses(6, 300, 8, 0.2, V, 0.3)[-1], rel=0.05)


def test_variances_fall_as_their_power():
    np.testing.assert_allclose(spectrum(0.5, 9)[[0, 3, 8]], [1, 1/8, 1/27])


def test_a_sample_keeps_its_noise():
    losses = train(6, 3000, 4, 0.2, V, 0.5, samples=2, seed=1)      # six weights pass through two samples
    assert losses[2000] != losses[0] and np.ptp(losses[-500:]) < 1e-6*losses[-1]

"""A family of models small enough to train by the thousand, and simple enough that theory can be asked.

The task: y = x_1 + x_2 + ... + noise, where x_j is normal with variance j^-(1+a), all independent.  The student of size
N sees the first N features and learns their weights by stochastic gradient descent, one pass, from zero.  What it
cannot see is noise to it.  Losses are mean squared errors over fresh samples, exact: sums over the features.

A witness: it knows sampling and gradient steps, and no formula.
"""
import numpy as np


def spectrum(exponent, modes=100_000):
    """Variances of the features, j^-(1 + exponent) for j = 1 .. modes, as an array."""
    return np.arange(1, modes + 1.0)**-(1 + exponent)


def train(size, steps, batch, rate, variances, noise=0.0, samples=None, seed=0):
    """Losses before each step and after the last, an array of steps + 1, of one student trained on random samples.

    size: features that it sees; batch: samples of a step; rate: of a step w -= rate*gradient of half the squared
    error; noise: standard deviation added to y; samples: size of the data set, drawn from again and again
    (every sample is new unless told).  Too large a rate diverges without an error.
    """
    rng = np.random.default_rng(seed)
    seen = variances[:size]
    hidden = variances[size:].sum() + noise**2

    def draw(count):
        return rng.normal(size=(count, size))*np.sqrt(seen), rng.normal(size=count)*np.sqrt(hidden)

    known = draw(samples) if samples else None
    error, losses = np.ones(size), []
    for _ in range(steps):
        losses.append(seen @ error**2 + hidden)
        if known is None:
            x, unseen = draw(batch)
        else:                                              # a sample keeps its noise when it is drawn again
            pick = rng.integers(samples, size=batch)
            x, unseen = known[0][pick], known[1][pick]
        error = error - rate*x.T @ (x @ error + unseen)/batch
    return np.array(losses + [seen @ error**2 + hidden])


def expected_losses(size, steps, batch, rate, variances, noise=0.0):
    """The mean of `train` over all seeds, every sample new, without sampling: an array of steps + 1, of rates in a row a column each.

    For normal features the mean squared errors of the weights follow a linear recursion, exactly.
    """
    seen = variances[:size]
    hidden = variances[size:].sum() + noise**2
    rate = np.asarray(rate)[..., None]
    kept, added = 1 - 2*rate*seen + (1 + 1/batch)*(rate*seen)**2, rate**2/batch*seen
    squares, losses = np.ones(rate.shape[:-1] + (size,)), []
    for _ in range(steps):
        losses.append(squares @ seen + hidden)
        squares = squares*kept + added*losses[-1][..., None]
    return np.array(losses + [squares @ seen + hidden])

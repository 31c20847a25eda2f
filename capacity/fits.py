"""Fits of scaling laws to measured losses, with the intervals that belong to them; of a link to measured messages.

    fit = fit_loss_surface(params, tokens, loss)           # L_inf + A_Psi/params**a_Psi + A_D/tokens**a_D
    bootstrap(fit_loss_surface, params, tokens, loss)      # the same for resampled runs: one row a resample

The law's formula is `capacity.loss_surface`; here it is only fitted.
"""
import itertools
import re
from typing import NamedTuple

import numpy as np

from .formulas import message_time, ring_all_gather_time, ring_all_reduce_time


class Surface(NamedTuple):
    """The five coefficients of a loss surface, with the argument names of `capacity.loss_surface`.

    They are a package: change the rounding of one and the others no longer fit it.
    """
    irreducible: float
    size_coefficient: float
    data_coefficient: float
    size_exponent: float
    data_exponent: float


def project(params, tokens, loss, size_exponent, data_exponent):
    """The three linear coefficients for two given exponents, and the sum of squared relative residuals.

    Least squares of prediction/loss - 1, coefficients at least 0: -> (array of irreducible, size_coefficient,
    data_coefficient; float).
    """
    from scipy.optimize import nnls
    columns = np.stack([np.ones_like(loss), params**-size_exponent, tokens**-data_exponent], 1)/loss[:, None]
    scale = columns.max(0)                                 # the columns differ by powers of ten
    coefficients, residual = nnls(columns/scale, np.ones_like(loss))
    return coefficients/scale, residual**2


def fit_loss_surface(params, tokens, loss, delta=1e-3, start=None):
    """The `Surface` with the least Huber loss of log(prediction/loss), summed over the runs.

    params, tokens, loss (nats per token): arrays of one entry per run.  delta: relative errors above it count
    linearly, not squared (Hoffmann et al. 2022 use 1e-3).  start: a Surface to begin at; unless told, the best of a
    grid of exponents, each with its three linear coefficients projected out.

    ValueError for arrays of different lengths, fewer than five runs, a value that is not above 0, or delta.
    """
    from scipy.optimize import least_squares
    params, tokens, loss = (_positive(name, x) for name, x in dict(params=params, tokens=tokens, loss=loss).items())
    if not len(params) == len(tokens) == len(loss) >= 5:
        raise ValueError(f"{len(params)} params, {len(tokens)} tokens, {len(loss)} losses; allowed: as many, at least 5")
    if not delta > 0:
        raise ValueError(f"delta = {delta!r}; allowed: above 0")
    if start is None:
        grid = itertools.product(np.linspace(0.1, 1.2, 12), repeat=2)
        a, b = min(grid, key=lambda ab: project(params, tokens, loss, *ab)[1])
        start = Surface(*np.maximum(project(params, tokens, loss, a, b)[0], 1e-6), a, b)
    logs = np.log(params), np.log(tokens), np.log(loss)

    def terms(x):
        with np.errstate(over="ignore"):                   # a trial step may be absurd; it is not taken
            return np.exp(np.stack([x[0] + 0*logs[0], x[1] - x[3]*logs[0], x[2] - x[4]*logs[1]]))

    def residuals(x):
        return np.log(terms(x).sum(0)) - logs[2]

    def slopes(x):
        share = terms(x)/terms(x).sum(0)
        return np.stack([*share, -share[1]*logs[0], -share[2]*logs[1]], 1)

    x = least_squares(residuals, [*np.log(start[:3]), *start[3:]], slopes, loss="huber", f_scale=delta, x_scale="jac",
                      xtol=1e-12, ftol=1e-12, gtol=1e-12, max_nfev=2000).x
    return Surface(*map(float, (*np.exp(x[:3]), *x[3:])))


def bootstrap(fit, *columns, count=100, seed=0, **options):
    """`fit` of `count` resamples of the runs, drawn with replacement: an array (count, coefficients).

    columns: the arrays that `fit` takes; options go to it.
    """
    rng, n = np.random.default_rng(seed), len(columns[0])
    picks = (rng.integers(n, size=n) for _ in range(count))
    return np.array([fit(*(np.asarray(c)[pick] for c in columns), **options) for pick in picks])


def isoflop_vertex(params, loss):
    """Size with the least loss on a parabola in log(params) through runs of equal compute, and that loss.

    params, loss: arrays of one entry per run.  -> (float, float).
    ValueError for arrays of different lengths, fewer than three runs, a value that is not above 0, or a parabola
    that has no least value.
    """
    params, loss = _positive("params", params), _positive("loss", loss)
    if not len(params) == len(loss) >= 3:
        raise ValueError(f"{len(params)} params, {len(loss)} losses; allowed: as many, at least 3")
    u = np.log(params)
    middle = u.mean()
    bend, slope, level = np.polyfit(u - middle, loss, 2)
    if not bend > 0:
        raise ValueError(f"loss = {loss!r} bends by {bend:.3g}; allowed: above 0, so that a parabola has a least value")
    return float(np.exp(middle - slope/(2*bend))), float(level - slope**2/(4*bend))


def _positive(name, values):
    values = np.asarray(values, float)
    if values.ndim != 1 or not (values > 0).all():
        raise ValueError(f"{name} = {values!r}; allowed: an array of numbers above 0, one for each run")
    return values


# ---- a link from the output of nccl-tests -----------------------------------------------------
COLLECTIVES = {"all_reduce": ring_all_reduce_time, "all_gather": ring_all_gather_time, "reduce_scatter": ring_all_gather_time,
               "alltoall": ring_all_gather_time, "sendrecv": message_time}       # n/P to each other rank in turn: as long
UNITS = dict(us=1e-6, ms=1e-3, s=1.0)


class FittedLink(NamedTuple):
    """What a fit of alpha and beta to measured collectives found.

    alpha, beta   seconds, bytes per second, in the formula of `collective` on `ranks` ranks
    bytes, seconds, fitted   arrays: the rows that were fitted, their times, the times that the fit gives
    spread        root of the mean square of log(fitted/seconds)
    """
    collective: str
    ranks: int
    alpha: float
    beta: float
    bytes: np.ndarray
    seconds: np.ndarray
    fitted: np.ndarray
    spread: float


def read_nccl_tests(text):
    """(collective or None, ranks or None, bytes, seconds) of the output of one run of nccl-tests, out of place.

    ValueError where no row of results stands in it.
    """
    named = re.search(r"\b(all_reduce|all_gather|reduce_scatter|alltoall|sendrecv)_perf\b", text)
    ranks = set(re.findall(r"^#\s+Rank\s+(\d+)\b", text, re.M))
    unit = re.search(r"^#\s+\(B\)\s.*?\((us|ms|s)\)", text, re.M)
    head = re.search(r"^#\s+(size\s+count\b.*)$", text, re.M)
    at = (head[1].split() if head else "size count type redop root time".split()).index("time")
    rows = [row.split() for row in text.splitlines() if re.match(r"\s*\d+\s+\d+\s+[a-z]\w+\s", row)]
    rows = [(float(row[0]), float(row[at])*UNITS[unit[1] if unit else "us"]) for row in rows
            if int(row[0]) and len(row) > at and re.fullmatch(r"\d+(\.\d+)?", row[at])]
    sizes, times = map(list, zip(*rows)) if rows else ([], [])
    if not sizes:
        raise ValueError("no row of results; allowed: the output of nccl-tests, rows such as "
                         "'1048576  262144  float  sum  -1  61.2  17.1  30.0  0'")
    return named and named[1], len(ranks) or None, np.array(sizes), np.array(times)


def fit_link(text, collective=None, ranks=None):
    """The FittedLink of the output of nccl-tests: alpha and beta with the least relative squared error.

    collective, ranks   where the output does not say them: one of COLLECTIVES, at least 2
    The time of a formula is linear in alpha and in 1/beta, so this is one least-squares problem with both at least 0.
    ValueError for an unknown collective, too few ranks, fewer than three sizes, or times that no such link has.
    """
    from scipy.optimize import nnls
    from .specs import pick
    said, counted, sizes, seconds = read_nccl_tests(text)
    collective, ranks = collective or said, ranks or counted
    if collective is None:
        raise ValueError(f"collective = None, and the output does not say; allowed: {', '.join(COLLECTIVES)}")
    formula = pick(COLLECTIVES, collective, "collective")
    if ranks is None or ranks < 2:
        raise ValueError(f"ranks = {ranks!r}{'' if counted else ', and the output does not say'}; allowed: at least 2")
    if (n := len(set(sizes))) < 3:
        raise ValueError(f"{n} sizes of message; allowed: at least 3")
    given = {"P": ranks} if "P" in formula.units else {}
    per_alpha = formula(n=sizes, alpha=1.0, beta=1e300, **given)*np.ones(len(sizes))
    per_byte = formula(n=sizes, alpha=0.0, beta=1.0, **given)
    scale = np.array([per_alpha.mean(), per_byte.mean()])/seconds.mean()
    (alpha, inverse), _ = nnls(np.stack([per_alpha/scale[0], per_byte/scale[1]], 1)/seconds[:, None], np.ones(len(sizes)))
    alpha, inverse = alpha/scale[0], inverse/scale[1]
    if not inverse > 0:
        raise ValueError("the times do not grow with the bytes: no bandwidth fits them; allowed: larger messages too")
    fitted = formula(n=sizes, alpha=alpha, beta=1/inverse, **given)
    return FittedLink(collective, ranks, float(alpha), float(1/inverse), sizes, seconds, fitted,
                      float(np.sqrt(np.mean(np.log(fitted/seconds)**2))))

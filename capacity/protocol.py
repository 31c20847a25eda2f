"""How `estimate` is fitted and judged: calibration, folds, a null model, coverage. The rows are `published_runs`.

    bench = Bench(published_runs())
    bench.fit()                                    # {name: value} of the constants
    print(bench.report())                          # errors by class: in sample, in folds, a source left out, null model

All rows are priced at once: a fit takes a tenth of a second, the report a few seconds.
"""
import functools
from types import SimpleNamespace
from typing import NamedTuple

import numpy as np

from .formulas import train_flops_per_token
from .stack import calibration, constants, rates
from .step import price, work
from .tape import Namespace, Tape

KINDS = {"dense-16": "dense, 16 bits", "dense-8": "dense, 8 and 4 bits", "experts": "experts", "tpu": "TPUs"}
SCALE = 0.1                                               # errors of a logarithm above it count linearly, not squared
FOLDS = 25
COVERED = 0.68, 0.95


class Score(NamedTuple):
    """Errors |predicted/measured - 1| of some runs."""
    mean: float
    median: float

    @classmethod
    def of(cls, errors):
        off = abs(np.expm1(errors))
        return cls(float(off.mean()), float(np.median(off)))

    def __str__(self):
        return f"{100*self.mean:.1f} ({100*self.median:.1f})"


class Bench:
    """Published runs as arrays, with everything that no constant enters worked out.

    runs     PublishedRuns;  seconds  what they took
    sources, kinds   of each run;  groups   numbers that runs of one (source, model, device) share
    configurations   numbers that repetitions of one configuration share
    names    the constants that are fitted, those of specs/calibration.toml that have a prior
    """

    def __init__(self, runs):
        self.runs = runs = tuple(runs)
        self.seconds = np.array([r.seconds for r in runs])
        self.sources, self.kinds = (np.array([getattr(r, name) for r in runs]) for name in ("source", "kind"))
        self.groups = _numbers((r.source, r.model.name.split(",")[0], r.cluster.device.key) for r in runs)
        self.configurations = _numbers((r.source, r.row.get("dup_group") or r.row.get("memory_of") or r.key) for r in runs)
        self.cells = [((r.cluster.device.key, r.format in ("bf16", "fp16"), bool(r.model.experts)), (r.cluster.device.key,),
                       (r.format in ("bf16", "fp16"), bool(r.model.experts)), ()) for r in runs]
        jobs = [vars(work(**r.arguments)) for r in runs]
        self.job = SimpleNamespace(**{name: np.array([float(job[name]) for job in jobs]) for name in jobs[0]}
                                      | {"experts": True, "hybrid": True})
        flops = [r.layout.batch*r.seq_len*train_flops_per_token(r.model.matmul_params, r.model.layers, r.model.attention_width,
                                                                job["context"]) for r, job in zip(runs, jobs)]
        peaks = [r.layout.devices*r.cluster.device.peak(r.format) for r in runs]
        self.ideal = np.array(flops)/peaks
        self._roles([rates(r.cluster.device, r.format, r.stack) for r in runs])

    def _roles(self, every):
        """Rates as products: a fixed factor of each run, and which constants enter."""
        entries, known = calibration(), constants()
        self.names = [name for name, entry in entries.items() if "prior" in entry]
        self.prior = np.log([entries[name]["prior"] for name in self.names])
        self.width = np.array([entries[name]["width"] for name in self.names])
        columns = {name: k for k, name in enumerate(self.names)}
        self.fixed = {role: np.empty(len(every)) for role in every[0]}
        self.powers = {role: np.zeros((len(every), len(columns))) for role in every[0]}
        for row, roles in enumerate(every):
            for role, (value, names) in roles.items():
                self.fixed[role][row] = value*np.prod([known[name] for name in names if name not in columns])
                for name in names:
                    if name in columns:
                        self.powers[role][row, columns[name]] += 1

    def rates(self, x):
        """The rates of each run if the constants have logarithms x, as `price` takes them; of several x, a row each."""
        return SimpleNamespace(**{role: self.fixed[role]*np.exp(x @ self.powers[role].T) for role in self.fixed})

    def causes(self, x):
        """{cause: seconds of each run} if the constants have logarithms x."""
        return self.priced(self.rates(x))

    def priced(self, rates):
        """{cause: seconds of each run} at these rates, as `price` gives them."""
        causes, tape = _recorded()
        return dict(zip(causes, tape.run(**vars(self.job), **{f"rate_{k}": v for k, v in vars(rates).items()})))

    def errors(self, x):
        """Logarithm of predicted over measured time of each run."""
        return np.log(sum(self.causes(x).values())/self.seconds)

    # ---- calibration -------------------------------------------------------------------------
    def solve(self, rows=None, start=None):
        """Logarithms of the constants that fit these rows best: soft-L1 of the errors, weak log-normal priors."""
        from scipy.optimize import least_squares
        rows = np.arange(len(self.runs)) if rows is None else rows

        def residuals(x):
            return np.concatenate([self.errors(x)[..., rows]/SCALE, (x - self.prior)/self.width], axis=-1)

        once = functools.lru_cache(1)(lambda x: residuals(np.frombuffer(x)))         # the slope at a point asks for them again

        def jacobian(x):
            """Of all constants at once: as many prices one after another would take ten times as long."""
            step = np.sqrt(np.finfo(float).eps)*np.maximum(1, abs(x))
            return ((residuals(x + np.diag(step)) - once(x.tobytes()))/step[:, None]).T
        start = self.prior if start is None else start
        return least_squares(lambda x: once(x.tobytes()).copy(), start, jacobian, loss="soft_l1", xtol=1e-6, ftol=1e-7).x

    def fit(self, rows=None):
        """The fitted constants, {name: value}."""
        return dict(zip(self.names, map(float, np.exp(self.solve(rows)))))

    def intervals(self, count=200, seed=0):
        """{name: (16th, 84th percentile)} over fits to sources drawn with replacement, and configurations of each."""
        rng, best = np.random.default_rng(seed), self.solve()
        names = np.unique(self.sources)

        def draw():
            for source in rng.choice(names, len(names)):
                mine = np.flatnonzero(self.sources == source)
                known = np.unique(self.configurations[mine])
                for one in rng.choice(known, len(known)):
                    yield mine[self.configurations[mine] == one]
        fits = [self.solve(np.concatenate(list(draw())), best) for _ in range(count)]
        return dict(zip(self.names, np.exp(np.quantile(fits, (0.16, 0.84), axis=0)).T.tolist()))

    # ---- judgement ---------------------------------------------------------------------------
    @functools.cached_property
    def in_sample(self):
        """Errors of the fit to all rows."""
        return self.errors(self.solve())

    @functools.cached_property
    def in_folds(self):
        """Errors of each run, fitted without its fold; a (source, model, device) is never split."""
        return self._without(self.groups % FOLDS)

    @functools.cached_property
    def left_out(self):
        """Errors of each run, fitted without its source."""
        return self._without(self.sources)

    def _without(self, labels):
        best, errors = self.solve(), np.empty(len(self.runs))
        for label in np.unique(labels):
            out = labels == label
            errors[out] = self.errors(self.solve(np.flatnonzero(~out), best))[out]
        return errors

    def null(self, labels):
        """Errors of a constant utilization by device, bits and experts, each run predicted without the runs of its label.

        The median of what is left; where nothing is left, of the device, then of bits and experts, then of all.
        """
        log = np.log(self.ideal/self.seconds)
        errors = np.empty(len(self.runs))
        for row, cells in enumerate(self.cells):
            other = labels != labels[row]
            for level, cell in enumerate(cells):
                same = [k for k in np.flatnonzero(other) if self.cells[k][level] == cell]
                if same:
                    break
            errors[row] = log[row] - np.median(log[same])
        return errors

    def hindsight(self):
        """Errors of one utilization for each class, the best for these very rows: a null model that has seen the answers."""
        log = np.log(self.ideal/self.seconds)
        errors = np.empty(len(self.runs))
        for kind in np.unique(self.kinds):
            mine = log[self.kinds == kind]
            errors[self.kinds == kind] = mine - min(mine, key=lambda u: Score.of(mine - u).mean)     # least at one of the runs
        return errors

    def widths(self, rows, kind):
        """(68 %, 95 %) quantiles of |error| of these rows' runs of one kind, each run's source left out of the fit."""
        return np.quantile(abs(self.left_out[rows & (self.kinds == kind)]), COVERED)

    def coverage(self):
        """Shares of the runs inside their class's (68 %, 95 %) widths, both taken from the other sources."""
        inside = []
        for source, kind in {*zip(self.sources, self.kinds)}:
            mine = (self.sources == source) & (self.kinds == kind)
            others = (self.sources != source) & (self.kinds == kind)
            widths = np.quantile(abs(self.left_out[others if others.any() else self.sources != source]), COVERED)
            inside.append(abs(self.left_out[mine])[:, None] <= widths)
        return np.concatenate(inside).mean(0)

    def table(self):
        """(class, runs, Score in sample, in folds, source left out, null in folds, null source left out, hindsight), all and by class."""
        columns = (self.in_sample, self.in_folds, self.left_out, self.null(self.groups % FOLDS), self.null(self.sources), self.hindsight())
        rows = {"all": np.ones(len(self.runs), bool)} | {text: self.kinds == kind for kind, text in KINDS.items()}
        return [(text, int(some.sum()), *(Score.of(errors[some]) for errors in columns)) for text, some in rows.items() if some.any()]

    def report(self):
        """The table as text: mean (median) error in percent, and the coverage of the intervals."""
        heads = "class", "runs", "in sample", "folds", "source out", "null, folds", "null, source out", "null, hindsight"
        lines = [heads, *([str(x) for x in row] for row in self.table())]
        text = "\n".join(f"{row[0]:20s}{row[1]:>5s}" + "".join(f"{x:>18s}" for x in row[2:]) for row in lines)
        return text + "\ncoverage of 68 and 95 %: " + " and ".join(f"{100*x:.0f} %" for x in self.coverage())


@functools.cache
def _recorded():
    """`price` of runs of every kind, recorded: the names of the causes, and the Tape of their seconds."""
    job = Namespace()
    job.experts = job.hybrid = True
    causes = price(job, Namespace("rate_"))
    return list(causes), Tape(causes.values())


def _numbers(labels):
    """A number for each different label, in the order in which they appear."""
    labels = list(labels)
    known = {label: k for k, label in enumerate(dict.fromkeys(labels))}
    return np.array([known[label] for label in labels])

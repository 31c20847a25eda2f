"""The search for a layout: every legal one priced, none sampled away.

    found = plan(model("llama3-70b"), cluster("dgx-h100", 1024), "4M tokens", 8192)
    found.best.layout, found.best.time, found.front

`estimate` is recorded once per choice (`capacity.tape`) and run on arrays of layouts, those that `capacity.legality`
yields.  Nothing here knows what a step costs; the coupling is one call of `estimate`.
"""
import csv
import functools
import inspect
import io
import itertools
import math
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from numbers import Real
from types import SimpleNamespace

import numpy as np

from . import specs
from .algebra import larger
from .formulas import daly_interval, expected_segment_time
from .hardware import Cluster, accelerators
from .layout import Layout
from .legality import CHOICES, DEGREES, RULES, SCHEDULES, SYNONYMS, UNPRICED, UNTRIED, Rule, broken, divisors, layouts, letters
from .step import estimate
from .tape import Tape, symbol
from .transformer import Transformer
from .units import show

RECOMPUTE = 0, 0.25, 0.5, 0.75, 1                 # shares of recomputation that a search tries unless told
CHEAP = 0, 1                                      # and shares of layers that make cheap outputs again
SHARES = "recompute", "cheap_recompute"
OBJECTIVES = "time", "goodput", "cost"
ROWS = 2048                                       # rows after which a search looks which others it may leave out
HANDFUL = 4096                                    # layouts of a pair and a share at a time: their arrays stay in a core's cache
MANY = 5_000_000                                  # layouts from which on pruning pays
MOST = 10**9                                      # sequences in a batch
BATCH = re.compile(r"\s*([0-9][0-9,_]*(?:\.[0-9]+)?(?:e\+?[0-9]+)?)\s*([kKMGBT]?)\s*(tokens?|sequences?|)\s*")
POWERS = {"": 0, "K": 1, "M": 2, "G": 3, "B": 3, "T": 4}
EDGES = 1024                                      # steps of memory in the table that throws out what is dominated
CONSTANTS = ("matrix products", "device memory", "bandwidth in a node", "bandwidth between nodes", "latency in a node",
             "latency between nodes")


# Seconds between failures of one device: 419 unexpected interruptions in 54 days of Llama 3 405B on 16,384 GPUs
# (grattafiori2024, table 5; read 2026-11-21).
LLAMA3_MTBF = 16_384*54*86_400/419

# Of the letters of Failures and devices; Daly's interval is one below it.
LASTS = Rule("lasts", lambda q: q.checkpoint*q.devices < 2*q.mtbf,
             lambda q: f"With {q.devices} devices a failure comes every {q.mtbf/q.devices:g} s, and a checkpoint takes {q.checkpoint:g} s: "
                       "no work would last.")


def save_interval(q):
    """Seconds of work between checkpoints, of the letters of Failures and devices."""
    return daly_interval(q.checkpoint, q.mtbf/q.devices)


def slowdown(q):
    """Seconds that a second of work takes, of the same letters."""
    interval = save_interval(q)
    return expected_segment_time(q.devices/q.mtbf, interval, q.checkpoint, q.restart)/interval


@dataclass(frozen=True, kw_only=True)
class Failures:
    """What goodput needs: seconds between failures of one device, to save a checkpoint, to restart."""
    mtbf: float
    checkpoint: float
    restart: float = 300.0

    def __post_init__(self):
        specs.at_least(1e-9, mtbf=self.mtbf, checkpoint=self.checkpoint)
        specs.at_least(0, restart=self.restart)

    def slowdown(self, devices):
        """Seconds that a second of work takes on this many devices, checkpoints at Daly's interval; inf where no work lasts."""
        return math.inf if self.hopeless(devices) else slowdown(self.letters(devices))

    def hopeless(self, devices):
        """Why no work lasts on this many devices, as a tuple of sentences."""
        return broken(self.letters(devices), (LASTS,))

    def letters(self, devices):
        """q: what `save_interval` and `slowdown` read."""
        return SimpleNamespace(devices=devices, **vars(self))


@dataclass(frozen=True)
class Candidate:
    """One layout with its price.

    time, memory   of `estimate`: seconds of a step, bytes on the device that needs most
    blast          devices whose work ends when one fails: those that share a copy of the state (of a replica with zero 0)
    score          what the search made small: seconds of a step, with failures where these were given, or device-seconds
    """
    layout: Layout
    cluster: Cluster = field(repr=False)
    time: float
    memory: float
    blast: int
    score: float
    price: object = field(repr=False, compare=False)

    def __str__(self):
        return _degrees(self.layout)

    @property
    def devices(self):
        """Devices of the cluster."""
        return self.cluster.devices

    @functools.cached_property
    def step(self):
        """The Step of this layout, as `estimate` gives it."""
        return self.price(self.cluster, self.layout)

    def to_dict(self):
        """Its numbers, {name: number}, those of the layout first."""
        degrees = {name: getattr(self.layout, name) for name in ("tp", "pp", "cp", "dp", "ep", "chunks", "schedule", "microbatch",
                                                                 "zero", "sequence_parallel", "recompute", "cheap_recompute", "shards")}
        return degrees | dict(microbatches=int(self.layout.microbatches), devices=self.devices, time=self.time,
                              memory=self.memory, mfu=float(self.step.mfu), tokens_per_second=float(self.step.token_rate),
                              blast=self.blast)


@dataclass(frozen=True, kw_only=True)
class Plan:
    """The answer of `plan`.

    model        the shape that was searched: its vocabulary padded where tensor ranks would not divide it
    candidates   the best, in the order of the objective; () where none is allowed
    front        those that no other beats in time, memory, devices and blast together
    legal, priced, fits   layouts: legal ones, those whose price was worked out, those of the priced that fit
    why          sentences: where there are no candidates, why, and what has been tried and helps; notes otherwise
    seconds      of this processor
    """
    model: Transformer
    batch: int
    seq_len: int
    objective: str
    candidates: tuple
    front: tuple
    legal: int
    priced: int
    fits: int
    why: tuple
    seconds: float
    tokens: float | None = None

    def __bool__(self):
        return bool(self.candidates)

    @property
    def best(self):
        """The first candidate; ValueError with the reasons where there is none."""
        if not self.candidates:
            raise ValueError(" ".join(self.why))
        return self.candidates[0]

    def elasticities(self):
        """By how many per cent the best layout's time changes when a constant grows by one per cent, {constant: number}.

        The greatest says which constant to measure first.
        """
        best, h = self.best, 1e-4

        def seconds(name, factor):
            return best.price(_scaled(best.cluster, name, factor), best.layout).time
        found = {name: math.log(seconds(name, 1 + h)/seconds(name, 1/(1 + h)))/(2*math.log(1 + h)) for name in CONSTANTS}
        return dict(sorted(found.items(), key=lambda item: -abs(item[1])))

    def to_dict(self):
        """Everything as plain numbers, texts, lists and dicts."""
        return dict(model=self.model.name, batch=self.batch, seq_len=self.seq_len, objective=self.objective, legal=self.legal,
                    priced=self.priced, fits=self.fits, seconds=self.seconds, why=list(self.why),
                    elasticities=self.elasticities() if self else {},
                    candidates=[c.to_dict() for c in self.candidates], front=[c.to_dict() for c in self.front])

    def to_csv(self, of="candidates"):
        """The candidates, or of="front", as the text of a CSV file."""
        if of not in ("candidates", "front"):
            raise ValueError(f"of = {of!r}; allowed: 'candidates', 'front'")
        rows = [c.to_dict() for c in getattr(self, of)]
        text = io.StringIO()
        writer = csv.DictWriter(text, list(rows[0]) if rows else ["tp"], lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
        return text.getvalue()

    def sentence(self):
        """The answer in one sentence."""
        if not self:
            return " ".join(self.why)
        best = self.best
        low, high = best.step.interval()
        run, slow = "", best.score/best.time if self.objective == "goodput" else 1
        if self.tokens:
            run = f" All {show(self.tokens)} tokens take {show(self.tokens/(self.batch*self.seq_len)*slow*best.time, 's')}."
        if self.objective == "goodput":
            run += f" Failures and checkpoints take {1 - 1/slow:.1%} of the run."
        return (f"{self.model.name or 'The model'} on {best.devices:,} x {best.cluster.device.name}: {_degrees(best.layout)}; a step of "
                f"{said(self.batch, self.seq_len)}, takes {show(best.time, 's')} ({show(low, 's')} to {show(high, 's')}), "
                f"{best.step.mfu:.1%} of peak, {show(best.memory, 'B')} per device.{run}")

    def rows(self, of="candidates", most=None):
        """Head and rows of the table that is shown, of the first `most`."""
        head = ["layout", "micro-batch", "ZeRO", "recompute", "step", "MFU", "memory", "devices"]
        return head, [[_degrees(c.layout), f"{c.layout.microbatch} of {c.layout.microbatches:,.0f}",
                       f"{c.layout.zero}" + (f" x {c.layout.copies:.0f}" if c.layout.shards else ""),
                       "cheap" if c.layout.cheap_recompute else f"{c.layout.recompute:.0%}",
                       show(c.time, "s"), f"{c.step.mfu:.1%}", show(c.memory, "B"),
                       c.devices] for c in getattr(self, of)[:most]]

    def __repr__(self):
        return f"<plan: {self.sentence()} {self.legal:,} layouts in {self.seconds:.2g} s>"

    def _repr_html_(self):
        from .pictures.tables import prose, table
        head, rows = self.rows()
        shown = table(head, rows, title=self.sentence())._repr_html_() if rows else ""
        return shown + "".join(f"<p>{prose(line)}</p>" for line in self.why)


def plan(model, cluster, batch, seq_len, *, objective="time", devices=None, share=0.9, keep=10, prune=None, failures=None,
         tokens=None, deadline=None, progress=None, options=None, rules=(), splits=False, **limits):
    """The Plan for training a model on a cluster: all legal layouts, the best `keep` of them, and the Pareto front.

    batch      sequences in a step; or a text, "4M tokens", "512 sequences" (see `sequences`)
    seq_len    tokens in a sequence, a whole number: no "8k", which is 8,000 to some and 8,192 to others
    objective  "time" of a step; "goodput", the same with failures; "cost", device-seconds of a step
    devices    numbers of devices to try, the cluster's own by default
    share      of a device's memory that may be filled
    prune      False to price every legal layout, True to leave out what cannot be of interest, which begins to pay at millions
               and is the default there; the answer is the same
    failures   Failures, for goodput
    tokens, deadline   of the whole run, tokens and seconds: layouts that would be late are left out
    progress   called with (layouts looked at, of how many), now and then
    options    arguments for `estimate`
    rules      further Rules that a layout must keep, of its letters: what a framework refuses, capacity.launch.DIALECTS
    splits     True to keep of each choice of tp, pp, cp and ep only the best
    limits     values that a field of Layout may have, or `copies`: tp=8, zero=(0, 1), recompute=0, cp=1, copies=1, ...;
               of `schedule` also names, such as "1F1B"

    Where nothing fits, or nothing is legal, the Plan says why, and which changes help: each has been searched as a whole.
    Raises TypeError for a model or cluster that is none, ValueError, naming it, for any other argument.
    """
    start = time.process_time()
    job = _Job.of(model, cluster, batch, seq_len, objective, share, keep, prune, failures, tokens, deadline, progress, options, rules,
                  splits, limits)
    sizes = [cluster.devices] if devices is None else sorted({devices} if isinstance(devices, Real) else set(devices))
    specs.at_least(1, **{f"devices[{k}]": n for k, n in enumerate(sizes)})
    for n in sizes:
        cluster.sized(n)
    padded = job.padded(*sizes)
    notes = () if padded is model else (
        f"Vocabulary padded from {model.vocab:,} to {padded.vocab:,}, so that every tensor degree divides it.",)
    job = replace(job, model=padded)
    hopeless = {n: failures.hopeless(n) for n in sizes} if objective == "goodput" else {}
    notes += tuple(itertools.chain(*hopeless.values()))
    sizes = [n for n in sizes if not hopeless.get(n)]
    found = [job.search(n) for n in sizes]
    candidates = sorted(itertools.chain(*(f.best for f in found)), key=lambda c: (c.score, c.memory))[:keep]
    front = _front(list(itertools.chain(*(f.front for f in found))))
    why = notes if candidates or not sizes else _why(job, sizes, found) + notes
    return Plan(model=padded, batch=job.batch, seq_len=job.seq_len, objective=objective, candidates=tuple(candidates),
                front=tuple(front), legal=sum(f.legal for f in found), priced=sum(f.priced for f in found),
                fits=sum(f.fits for f in found), why=why, seconds=time.process_time() - start, tokens=tokens)


# ---- the job ---------------------------------------------------------------------------------
@dataclass(frozen=True, kw_only=True)
class _Found:
    """The answer for one number of devices. least: the smallest memory of any legal layout, None if it was not looked for."""
    best: list
    front: list
    legal: int
    priced: int
    fits: int
    least: float | None


@dataclass(frozen=True, kw_only=True)
class _Job:
    """The arguments of `plan`, checked; see there."""
    model: Transformer
    cluster: Cluster
    batch: int
    seq_len: int
    objective: str
    share: float
    keep: int
    prune: bool | None
    failures: Failures | None
    most: float                                    # seconds of a step, at most
    progress: object
    options: Mapping
    rules: tuple
    splits: bool
    limits: Mapping

    @classmethod
    def of(cls, model, cluster, batch, seq_len, objective, share, keep, prune, failures, tokens, deadline, progress, options,
           rules, splits, limits):
        for name, value, kind, example in (("model", model, Transformer, 'model("llama3-70b")'),
                                           ("cluster", cluster, Cluster, 'cluster("dgx-h100", 512)')):
            if not isinstance(value, kind):
                raise TypeError(f"{name} = {value!r}; allowed: a {kind.__name__}, such as {example}")
        if not isinstance(seq_len, Real) or seq_len < 1 or seq_len % 1:
            raise ValueError(f"seq_len = {seq_len!r}; allowed: a whole number of tokens, at least 1")
        specs.pick(dict.fromkeys(OBJECTIVES), objective, "objective")
        if objective == "goodput" and not isinstance(failures, Failures):
            raise ValueError(f"failures = {failures!r}; allowed for goodput: Failures(mtbf=..., checkpoint=...)")
        if not 0 < share <= 1:
            raise ValueError(f"share = {share!r}; allowed: above 0 and at most 1")
        specs.at_least(1, keep=keep)
        batch = sequences(batch, seq_len)
        if deadline is not None and tokens is None:
            raise ValueError(f"deadline = {deadline!r} without tokens; allowed: both, or tokens alone")
        specs.at_least(1, tokens=tokens, deadline=deadline)
        known = dict.fromkeys((*DEGREES, *CHOICES))
        for name in limits:
            specs.pick(known, name, "limit")
        limits = {name: tuple(x) if isinstance(x, (tuple, list, range, set, np.ndarray)) else (x,) for name, x in limits.items()}
        if "schedule" in limits:
            known = {name: k for k, name in enumerate(SCHEDULES)}
            limits["schedule"] = tuple(specs.pick(known, k, "schedule") if isinstance(k, str) else k for k in limits["schedule"])
        for name, x in limits.items():
            if not x or not all(isinstance(k, Real) for k in x):
                raise ValueError(f"{name} = {x!r}; allowed: a number, or numbers")
            least, most = {"zero": (0, 3), "sequence_parallel": (0, 1), "schedule": (0, len(SCHEDULES) - 1)}.get(
                name, (0, 1) if name in SHARES else (1, math.inf))
            if not all(least <= k <= most and (name in SHARES or k == int(k)) for k in x):
                raise ValueError(f"{name} = {x!r}; allowed: {'shares' if name in SHARES else 'whole numbers'} from {least}"
                                 + (f" to {most}" if most < math.inf else ""))
        for name in options or {}:
            specs.pick(dict.fromkeys(list(inspect.signature(estimate).parameters)[4:]), name, "option")
        return cls(model=model, cluster=cluster, batch=batch, seq_len=int(seq_len), objective=objective, share=share, keep=keep,
                   prune=prune, failures=failures, most=deadline*batch*seq_len/tokens if deadline else math.inf,
                   progress=progress, options=options or {}, rules=tuple(rules), splits=splits, limits=limits)

    def letters(self, devices, model):
        machine = self.sized(devices)
        return letters(model, devices=devices, batch=self.batch, seq_len=self.seq_len, node=machine.node,
                       axes=machine.levels[0].axes)

    def sized(self, devices):
        return self.cluster if devices == self.cluster.devices else self.cluster.sized(devices)

    def padded(self, *sizes):
        """The model, with a vocabulary that every tensor degree of the search divides."""
        rules = [rule for rule in RULES if rule.name in ("heads", "kv_heads", "ffn")]
        degrees = [tp for n in sizes for tp in divisors(n) if tp in self.limits.get("tp", (tp,))
                   and all(rule.holds(letters(self.model, tp=tp)) for rule in rules)]
        multiple = math.lcm(*degrees)
        vocab = -(-self.model.vocab//multiple)*multiple
        return self.model if vocab == self.model.vocab else replace(self.model, vocab=vocab)

    def search(self, devices, *, least=False):
        """The _Found of one number of devices; `least` to look for the least memory too."""
        return self.space(devices, least).run()

    def space(self, devices, least=False):
        """The _Search of one number of devices, before it begins."""
        model = self.padded(devices)
        return _Search(self, model, self.sized(devices), layouts(self.letters(devices, model), self.limits), least)

    def price(self, model, cluster, layout):
        return estimate(model, cluster, layout, self.seq_len, **self.options)

    def score(self, devices):
        """What one second of a step on this many devices counts for."""
        return {"time": 1, "cost": devices}.get(self.objective, self.failures and self.failures.slowdown(devices))


def sequences(batch, seq_len):
    """Sequences in a batch that is given in sequences, or as a text in tokens: "4M", "4M tokens", "512 sequences".

    Of tokens in sequences whose length is a power of two, M is 2**20, else a million, and the other where only that leaves
    no part of a sequence; k, G (or B) and T likewise. Of sequences k is a thousand. Raises ValueError for a part of a
    sequence, with the nearest whole ones, and for more than MOST.
    """
    found = BATCH.fullmatch(str(batch))
    if not found:
        raise ValueError(f"batch = {batch!r}; allowed: a number of sequences, or a text such as '4M tokens', '512 sequences'")
    number, prefix, unit = float(re.sub("[,_]", "", found[1])), found[2].upper(), found[3]
    power = POWERS[prefix]
    in_tokens = unit.startswith("token") or prefix and not unit.startswith("seq")
    each, sizes = (seq_len, (1000**power, 1024**power)) if in_tokens else (1, (1000**power,))
    for size in reversed(sizes) if math.log2(each) % 1 == 0 else sizes:
        n = number*size/each
        if 1 <= n <= MOST and n % 1 == 0:
            return int(n)
    n = number*sizes[0]/each
    if n > MOST:
        raise ValueError(f"batch = {batch!r}; allowed: at most {MOST:,} sequences, here of {seq_len:,} tokens" if in_tokens else
                         f"batch = {batch!r} means sequences; allowed: at most {MOST:,}, or tokens, such as '4M tokens'")
    if not in_tokens:
        raise ValueError(f"batch = {batch!r}; allowed: a whole number of sequences, at least 1, or tokens, such as '4M tokens'")
    near = ", or ".join(said(k, seq_len) for k in (int(n), int(n) + 1) if k)
    raise ValueError(f"batch = {batch!r} is no whole number of sequences of {seq_len:,} tokens; allowed: such as {near}")


def said(batch, seq_len):
    """A batch in words: "512 sequences, 4,194,304 tokens"."""
    return f"{batch:,} sequence{'s' if batch > 1 else ''}, {batch*seq_len:,} tokens"


def least_time(step):
    """Seconds that a Step takes with any number of copies: without what these change, and without the bubble.

    What is done again adds to each cause that is left, or to experts what it takes from `routing`, so the least of all shares
    is that of none.
    """
    return sum(x for cause, x in step.seconds.items() if cause not in ("update", "data", "bubble"))


def totals(step):
    """(time, memory) of a Step: what numbers of copies change is added last, so that few sums are as large as all layouts."""
    moved = "update", "data"
    seconds = sum(x for cause, x in step.seconds.items() if cause not in moved) + (step.update + step.data)
    state, moments = ("weights", "grads", "optimizer"), {}
    for parts in (instant.parts for instant in step.footprint.instants):
        moments.setdefault(sum(parts[k] for k in state), []).append(sum(x for k, x in parts.items() if k not in state))
    return seconds, functools.reduce(larger, [own + functools.reduce(larger, others) for own, others in moments.items()])


# ---- the search ------------------------------------------------------------------------------
class _Search:
    """All layouts on one number of devices.

    A row is a choice of DEGREES; to each belong all SHARES of recomputation, all numbers of copies that divide its replicas
    and all pairs of `zero` and `sequence_parallel`: prices are arrays [share, copies, row] of each pair, long in the direction
    in which memory is. Rows that differ in `chunks` alone are a block.

    Pruning is exact. For a block, a pair and every cause of a Step, `Tape.bounds` gives a number l <= the cause, for all
    its chunks, shares and copies; causes are seconds, so max(l, 0) <= the cause too, and the sum L of these is <= the time of each
    layout of the block. Likewise K <= its memory. The block is left out if, for each of its pairs,
    either K > what a device may hold: no layout of it fits;
    or L is above the time of `keep` layouts that fit (where splits are asked for, the best of `keep` splits), so that none of
    it is among the best, and there is a layout p that fits with time(p) <= L, memory(p) <= K and a blast no larger than the
    block's smallest, so that p is at least as good as each layout of the block in everything, and a front that holds p, or
    what is at least as good as p, lacks nothing. Devices are the same throughout.
    """

    def __init__(self, job, model, cluster, rows, least):
        self.job, self.model, self.cluster, self.rows, self.look = job, model, cluster, rows, least
        self.size = len(rows["pp"])
        self.limit = job.share*cluster.device.memory
        shares = itertools.product(*(sorted(job.limits.get(name, some)) for name, some in zip(SHARES, (RECOMPUTE, CHEAP))))
        mixed = next(rule for rule in UNTRIED if rule.name == "mixed")
        shares = [*shares]
        tried = [pair for pair in shares if mixed.holds(SimpleNamespace(**dict(zip(SHARES, pair))))]
        self.shares = np.array(tried or shares, float).T                # rows: those of SHARES
        self.pairs = [(zero, sp) for zero in sorted(job.limits.get("zero", range(4)))
                      for sp in sorted(map(bool, job.limits.get("sequence_parallel", (False, True))))]
        self.replicas = rows["dp"]*rows["cp"]
        q = job.letters(cluster.devices, model)
        early = [rule for rule in UNPRICED if "copies" not in job.limits]                       # what no row can have
        self.copies = np.array([c for c in divisors(cluster.devices) if c in job.limits.get("copies", (c,))
                                and not broken(SimpleNamespace(**vars(q), copies=c), early)], np.int64)
        # [share, copies, row], of one share where all are alike: a number, whose bit k says whether it is legal with pair k
        self.allowed = functools.reduce(np.bitwise_or, (mask*np.uint8(1 << k) for k, mask in enumerate(self.masks())))
        self.each = np.bitwise_count(self.allowed).sum((0, 1), int)*(self.shares.shape[1]//len(self.allowed))
        self.legal = int(self.each.sum())
        self.levels = np.array(divisors(cluster.devices))
        # [copies, kind] where nothing is sharded, and where something is; replicas and cp say the kind of a row
        first, self.kind = np.unique(self.replicas*(cluster.devices + 1) + rows["cp"], return_index=True, return_inverse=True)[1:]
        self.level = [np.searchsorted(self.levels, self.blast(zero, first)) for zero in (0, 1)]
        self.split = functools.reduce(lambda key, name: key*(cluster.devices + 1) + rows[name], ("tp", "pp", "cp", "ep"), 0)
        self.top, self.front = np.empty((0, 7)), np.empty((0, 7))       # score, memory, blast, row, pair, share, copies
        self.table = np.full((len(self.levels), EDGES + 1), np.inf)
        self.priced = self.fits = 0
        self.least = np.inf

    @property
    def recomputed(self):
        """The shares as arrays [share, 1, 1], by name."""
        return {name: x[:, None, None] for name, x in zip(SHARES, self.shares)}

    def rules(self):
        """The Rules of what is chosen for a row: the laws, what has another name that is a choice too, and the job's own."""
        def named(rule):
            return all(value in self.job.limits.get(name, (value,)) for name, value in (
                ("zero", 0), ("sequence_parallel", 0)) if rule.name == {"zero": "unshared"}.get(name, "unsplit"))
        laws = [rule for rule in RULES if rule.letters & {*CHOICES}]
        return (*laws, *filter(named, SYNONYMS), *UNTRIED, *UNPRICED, *self.job.rules)

    def letters(self, zero, sp):
        """The letters of all layouts of a pair, as arrays."""
        return SimpleNamespace(**vars(self.job.letters(self.cluster.devices, self.model)) | self.rows, zero=int(zero),
                               copies=self.copies[:, None], sequence_parallel=int(sp), **self.recomputed)

    def masks(self, without=(), known=None):
        """Which layouts of each pair are legal: arrays [share, copies, row], of one share where all are alike.

        without, known   Rules that are not asked; a dict in which the masks of Rules are kept, for the next call
        """
        known, found = {} if known is None else known, []
        whole = self.replicas % self.copies[None, :, None] == 0
        for zero, sp in self.pairs:
            q, keep, again = self.letters(zero, sp), whole, True        # of copies and of shares, apart while they are small
            for rule in self.rules():
                if rule not in without:
                    key = rule.name, *(value for name, value in (("zero", zero), ("sequence_parallel", sp)) if name in rule.letters)
                    if key not in known:
                        known[key] = rule.holds(q)
                    if rule.letters & {*SHARES}:
                        again = again & known[key]
                    else:
                        keep = keep & known[key]
            found.append(keep & again)
        return found

    def first(self, masks):
        """The letters of the first layout that these masks leave, as whole numbers and a share; None where they leave none."""
        for (zero, sp), mask in zip(self.pairs, masks):
            if mask.any():
                row, share, copy = (int(k[0]) for k in np.nonzero(np.moveaxis(mask, 2, 0)))
                q = vars(self.job.letters(self.cluster.devices, self.model)) | {k: int(x[row]) for k, x in self.rows.items()}
                return SimpleNamespace(**q, zero=int(zero), sequence_parallel=int(sp), copies=int(self.copies[copy]),
                                       **dict(zip(SHARES, self.shares[:, share].tolist())))
        return None

    def blast(self, zero, at):
        """Devices that share a copy of the state, copies by rows `at`; all where copies do not divide the replicas."""
        replicas, copies = self.replicas[at], self.copies[:, None]
        shards = np.where(replicas % copies, replicas, replicas//copies) if zero else 0*copies + 1
        return self.cluster.devices//replicas*np.lcm(self.rows["cp"][at], shards)

    def run(self):
        job = self.job
        if self.legal:
            steps = self.steps()
            self.tape = Tape([x for s in steps for x in totals(s)])
            done = 0
            for at in self.order(steps):
                self.price(at)
                done += len(at)
                if job.progress:
                    job.progress(done, self.size)
        found = [[self.candidate(row) for row in rows] for rows in (self.top, self.front)]
        return _Found(best=found[0], front=found[1], legal=self.legal, priced=self.priced, fits=self.fits,
                      least=float(self.least) if self.look and self.legal else None)

    def steps(self):
        """`estimate`, recorded for each pair; degrees that are the same in all rows are numbers."""
        self.free = [name for name in DEGREES if len(np.unique(self.rows[name])) > 1 or name == "chunks"]
        degrees = {name: symbol(name) if name in self.free else int(self.rows[name][0]) for name in DEGREES}
        return [self.job.price(self.model, self.cluster, Layout(
            batch=self.job.batch, zero=int(zero), sequence_parallel=sp, **degrees,
            **{name: symbol(name) if x.any() else 0 for name, x in self.recomputed.items()},
            shards=symbol(f"shards_{zero}") if zero and self.copies.tolist() != [1] else None))
            for zero, sp in self.pairs]

    def inputs(self, at, columns):
        """The inputs of the tape for rows `at`, and for these columns of copies, {zero: columns}."""
        known = {name: x[at].astype(float) for name, x in self.rows.items()} | self.recomputed
        known |= {f"shards_{zero}": self.replicas[at]/self.copies[some, None] for zero, some in columns.items()}
        return {name: known[name] for name in self.tape.inputs}

    # ---- order and pruning -------------------------------------------------------------------
    def order(self, steps):
        """Arrays of rows to price, one after another: all of them, or first those that promise most."""
        prune = self.legal >= MANY if self.job.prune is None else self.job.prune
        if not prune or self.look:
            yield from self.handfuls(np.arange(self.size))
            return
        key = np.zeros(self.size, np.int64)
        for name in DEGREES:
            if name != "chunks":
                values, place = np.unique(self.rows[name], return_inverse=True)
                key = key*len(values) + place
        order = np.argsort(key, kind="stable")
        starts = np.flatnonzero(np.diff(key[order], prepend=-1))
        first, self.counts = order[starts], np.diff(starts, append=self.size)
        low, high = (f.reduceat(self.rows["chunks"][order], starts).astype(float) for f in (np.minimum, np.maximum))
        some = np.bitwise_or.reduceat(np.bitwise_or.reduce(self.allowed)[:, order], starts, 1)
        columns = [some & 1 << k > 0 for k in range(len(self.pairs))]                               # of each pair, [copies, block]
        seconds, nbytes = self.block_bounds(steps, first, low, high, columns)
        allowed = np.array([some.any(0) for some in columns])
        hopeful = allowed & (nbytes <= self.limit)
        promise = np.where(hopeful, seconds, np.inf).min(0)
        waiting = np.argsort(promise, kind="stable")
        waiting = waiting[np.isfinite(promise[waiting])]
        while len(waiting):
            upto = max(1, int(np.searchsorted(np.cumsum(self.counts[waiting]), ROWS, "right")))
            take, waiting = waiting[:upto], waiting[upto:]
            rows = np.concatenate([order[starts[b]:starts[b] + self.counts[b]] for b in take])
            yield from self.handfuls(rows)
            if len(waiting):
                waiting = waiting[self.needed(seconds[:, waiting], nbytes[:, waiting], first[waiting], hopeful[:, waiting])]

    def handfuls(self, rows):
        """These rows in pieces of about HANDFUL layouts of a pair and a share, those together that have the same copies."""
        rows = rows[np.lexsort((self.each[rows], self.replicas[rows]))]
        return np.split(rows, np.flatnonzero(np.diff(np.cumsum(self.each[rows])//(HANDFUL*self.shares.shape[1]*len(self.pairs)))) + 1)

    def block_bounds(self, steps, first, low, high, columns):
        """Bounds from below of the time and the memory of each block and pair: two arrays [pair, block]."""
        tape = Tape([x for s in steps for x in (*s.seconds.values(), s.memory)])
        values = {name: self.rows[name][first].astype(float) for name in tape.inputs if name in DEGREES}
        values |= {"chunks": (low, high)} | {name: (x.min(), x.max()) for name, x in self.recomputed.items()}
        whole = np.where(self.rows["schedule"][first] > 0, 0, values["recompute"][1])               # where gradients wait, none is tried
        values["recompute"] = np.minimum(values["recompute"][0], whole), whole
        for zero in {zero for zero, _ in self.pairs}:
            some = functools.reduce(np.logical_or, (may for pair, may in zip(self.pairs, columns) if pair[0] == zero))
            shards = self.replicas[first]/self.copies[:, None]
            most = np.max(shards, 0, where=some, initial=1)
            values[f"shards_{zero}"] = np.minimum(np.min(shards, 0, where=some, initial=np.inf), most), most
        lows = iter(tape.bounds(**{name: values[name] for name in tape.inputs}))
        seconds, nbytes = [], []
        for step in steps:
            causes = [np.maximum(next(lows)[0], 0) for _ in step.seconds]
            seconds.append(np.broadcast_to(sum(causes), len(first)))
            nbytes.append(np.broadcast_to(next(lows)[0], len(first)))
        return np.array(seconds), np.array(nbytes)

    def needed(self, seconds, nbytes, first, hopeful):
        """Which of these blocks the proof above does not leave out."""
        worst = self.top[-1, 0] if len(self.top) == self.job.keep else np.inf
        out = np.zeros(seconds.shape[1], bool)
        for k, (zero, _) in enumerate(self.pairs):
            better = self.table[self.level[zero > 0].min(0)[self.kind[first]], self.edge(nbytes[k])]
            out |= hopeful[k] & ((seconds[k] <= worst) | (seconds[k] <= better))
        return out

    def edge(self, nbytes):
        """The step of the table, at each level the least time of a known layout with no more memory and no larger a blast."""
        return np.minimum(np.fmax(nbytes*(EDGES/self.limit), 0), EDGES).astype(np.int64)

    # ---- prices ------------------------------------------------------------------------------
    def price(self, at):
        """Price these rows, and keep what belongs to the best or to the front."""
        allowed = self.allowed[:, :, at]
        some, bits = np.bitwise_or.reduce(allowed, (0, 2)), {}
        for k, (zero, _) in enumerate(self.pairs):
            bits[zero] = bits.get(zero, 0) | 1 << k
        columns = {zero: np.flatnonzero(some & mine) for zero, mine in bits.items()}
        results = self.tape.run(**self.inputs(at, columns))
        fresh, firsts = [], []
        for k, (zero, _) in enumerate(self.pairs):
            may = allowed[:, columns[zero]] & 1 << k > 0
            if not (legal := np.count_nonzero(may)):
                continue
            shape = self.shares.shape[1], may.shape[1], len(at)
            seconds, nbytes = (np.broadcast_to(x, shape) for x in results[2*k:2*k + 2])
            self.priced += int(legal)*(shape[0]//len(may))
            if self.look:
                self.least = min(self.least, np.min(nbytes, where=may, initial=np.inf))
            fits = may & (nbytes <= self.limit)
            self.fits += int(np.count_nonzero(fits))
            if self.job.most < math.inf:
                fits = fits & (seconds*self.late <= self.job.most)
            worst = self.top[-1, 0] if len(self.top) == self.job.keep else np.inf
            level = self.level[zero > 0][columns[zero][:, None], self.kind[at]]
            better = self.table[level, self.edge(nbytes.min(0))]                # of no share is the memory smaller
            fits = np.flatnonzero(fits & (seconds <= np.maximum(better, worst)))
            share, copy, row = np.unravel_index(fits, shape)
            seconds, nbytes, level = seconds[share, copy, row], nbytes[share, copy, row], level[copy, row]
            chosen = np.flatnonzero(seconds <= worst)
            if len(chosen) > self.job.keep and not self.job.splits:
                chosen = chosen[seconds[chosen] <= np.partition(seconds[chosen], self.job.keep - 1)[self.job.keep - 1]]
            for kept, which in ((firsts, chosen), (fresh, np.flatnonzero(seconds <= self.table[level, self.edge(nbytes)]))):
                if len(which):
                    kept.append(np.stack([seconds[which], nbytes[which], self.levels[level[which]], at[row[which]],
                                          np.full(len(which), k), share[which], columns[zero][copy[which]]], 1))
        if firsts:
            everyone = np.concatenate([self.top, *firsts])
            everyone = everyone[np.lexsort(everyone.T[::-1])]
            if self.job.splits:
                split = self.split[everyone[:, 3].astype(int)]
                everyone = everyone[np.sort(np.unique(split, return_index=True)[1])]
            self.top = everyone[:self.job.keep]
        if fresh:
            self.front = _unbeaten(np.concatenate([self.front, *fresh]), self.levels)
            for i, level in enumerate(self.levels):
                mine = self.front[self.front[:, 2] <= level]
                mine = mine[np.argsort(mine[:, 1], kind="stable")]
                best = np.minimum.accumulate(np.concatenate([[np.inf], mine[:, 0]]))
                self.table[i] = best[np.searchsorted(mine[:, 1], np.arange(EDGES + 1)*(self.limit/EDGES), "right")]

    @property
    def late(self):
        failures = self.job.failures
        return failures.slowdown(self.cluster.devices) if failures and self.job.objective == "goodput" else 1

    def candidate(self, found):
        seconds, nbytes, blast, row, pair, share, copies = found
        zero, sp = self.pairs[int(pair)]
        copies = int(self.copies[int(copies)])
        shares = {name: int(x) if x == int(x) else float(x) for name, x in zip(SHARES, self.shares[:, int(share)])}
        layout = Layout(batch=self.job.batch, zero=int(zero), sequence_parallel=sp, **shares,
                        shards=int(self.replicas[int(row)])//copies if copies > 1 else None,
                        **{name: int(self.rows[name][int(row)]) for name in DEGREES})
        return Candidate(layout, self.cluster, float(seconds), float(nbytes), int(blast),
                         float(seconds*self.job.score(self.cluster.devices)), functools.partial(self.job.price, self.model))


def _unbeaten(found, levels):
    """The rows (time, memory, blast, ...) that no other beats, the first of equal ones."""
    found = found[np.lexsort(found.T[::-1])]
    kept = []
    for level in levels:
        mine = found[found[:, 2] <= level]
        before = np.minimum.accumulate(np.concatenate([[np.inf], mine[:-1, 1]]))
        mine = mine[mine[:, 1] < before]
        kept.append(mine[mine[:, 2] == level])
    kept = np.concatenate(kept)
    return kept[np.lexsort(kept.T[::-1])]


def _front(candidates):
    """The candidates that no other beats in time, memory, devices and blast, fastest first."""
    def beats(a, b):                                # of one number of devices none beats another: it has been asked there
        return a.devices < b.devices and all(s <= t for s, t in zip(*((c.time, c.memory, c.blast) for c in (a, b))))
    if len({c.devices for c in candidates}) > 1:
        candidates = [b for b in candidates if not any(beats(a, b) for a in candidates)]
    return sorted(candidates, key=lambda c: (c.time, c.memory))


def _degrees(lay):
    """The degrees of a layout that are more than one, as a text: "tp 8 sp, pp 4, dp 16, ZB-H1"; sp where sequences are shared."""
    degrees = [(k, getattr(lay, k)) for k in ("tp", "pp", "cp", "dp", "ep", "chunks")]
    said = [f"{k} {n}{' sp' if k == 'tp' and lay.sequence_parallel else ''}" for k, n in degrees if n > 1]
    said += [SCHEDULES[lay.schedule]] if lay.schedule else []
    return ", ".join(said) or "dp 1"


def _scaled(cluster, name, factor):
    """The cluster with one of CONSTANTS this many times as large."""
    device = cluster.device
    if name == "matrix products":
        rates = {what: {k: v*factor for k, v in getattr(device, what).items()} for what in ("dense", "measured")}
        return replace(cluster, device=replace(device, **rates))
    if name == "device memory":
        return replace(cluster, device=replace(device, bandwidth=device.bandwidth*factor))
    what = "beta" if name.startswith("bandwidth") else "alpha"
    inside = name.endswith("in a node")
    return replace(cluster, levels=tuple(
        replace(level, link=replace(level.link, **{what: getattr(level.link, what)*factor})) if (k == 0) is inside else level
        for k, level in enumerate(cluster.levels)))


# ---- reasons ---------------------------------------------------------------------------------
def _why(job, sizes, found):
    """Sentences: why there is no candidate, and the changes that give one, each tried by a whole search."""
    if not any(f.legal for f in found):
        return _illegal(job, sizes[-1])
    if any(f.fits for f in found):
        failing = job.objective == "goodput"
        free = replace(job, most=math.inf, objective="goodput" if failing else "time")
        said = (f"No layout is fast enough: a step may take {show(job.most, 's')}, and the fastest that fits takes "
                f"{show(min(c.score for n in sizes for c in free.search(n).best), 's')}{', failures counted' if failing else ''}.")
        return (said, *_helps(_more_devices(job, sizes[-1])))
    least = min((replace(job, keep=1).search(n, least=True) for n, f in zip(sizes, found) if f.legal), key=lambda f: f.least)
    legal = sum(f.legal for f in found)
    said = (f"No layout fits: the {f'smallest of {legal:,} legal ones' if legal > 1 else 'only legal one'} needs "
            f"{show(least.least, 'B')} per device, and {job.share:.0%} of {show(job.cluster.device.memory, 'B')} may be filled.")
    return (said, *_helps(itertools.chain(_freed(job, sizes[-1]), _more_devices(job, sizes[-1]), _larger_device(job, sizes[-1]))))


def _helps(changes):
    """Sentences about the changes that give a layout; of those of one kind the first."""
    for said, job, devices in changes:
        best = job.search(devices).best
        yield f"It works if you {said}: {_degrees(best[0].layout)}, {show(best[0].time, 's')} a step."


def _first(changes):
    """The first change that gives a layout, as a list."""
    for said, job, devices in changes:
        try:
            if job.search(devices).best:
                return [(said, job, devices)]
        except ValueError:                                          # no whole nodes
            continue
    return []


def _freed(job, devices):
    """What the limits forbid: a value at the end of its range, or any."""
    for name, most in (("recompute", 1), ("zero", 3)):
        if name in job.limits and most not in job.limits[name]:
            words = {"recompute": "recompute fully (recompute = 1)", "zero": "shard everything (zero = 3)"}[name]
            yield from _first([(words, replace(job, limits={**job.limits, name: (*job.limits[name], most)}), devices)])
    for name in job.limits:
        if name not in ("recompute", "zero"):
            rest = {k: v for k, v in job.limits.items() if k != name}
            yield from _first([(f"leave {name} free", replace(job, limits=rest), devices)])
    if len(job.limits) > 1:
        yield from _first([(f"leave {', '.join(job.limits)} free", replace(job, limits={}), devices)])
    if job.share < 1:
        yield from _first([("fill all of the memory (share = 1)", replace(job, share=1), devices)])


def _more_devices(job, devices):
    """Twice as many, four times, up to 64 times."""
    return _first((f"use {n:,} devices", job, n) for n in (devices << k for k in range(1, 7)))


def _larger_device(job, devices):
    """The device with the smallest memory that is larger, and on which a layout fits."""
    larger = sorted((a for a in accelerators().values() if a.measured and a.memory > job.cluster.device.memory),
                    key=lambda a: a.memory)
    return _first((f"take {a.name}, with {show(a.memory, 'B')}", replace(job, cluster=replace(job.cluster, device=a)), devices)
                  for a in larger)


def _illegal(job, devices):
    """Why no layout is legal, and the nearest job for which one is."""
    def count(rules=RULES, limits=job.limits, batch=job.batch, devices=devices):
        q = letters(job.padded(devices), devices=devices, batch=batch, seq_len=job.seq_len)
        return len(layouts(q, limits, rules=rules)["pp"])
    space, said = job.space(devices), f"No layout of {devices:,} devices and {job.batch:,} sequence{'s' if job.batch > 1 else ''}"
    if space.size:
        return (f"{said} {'keeps all rules' if job.rules else 'is legal'}.", *_forbidden(job, devices, space))
    tally = {}
    layouts(job.letters(devices, job.padded(devices)), job.limits, tally)
    alone = [name for name in tally if count(rules=[rule for rule in RULES if rule.name != name])]
    said = [f"{said} is legal."]
    off = [name for name in ("tp", "pp", "cp", "dp") if name in job.limits and all(devices % k for k in job.limits[name])]
    said += ([f"For one: {name} = {' or '.join(map(str, job.limits[name]))} does not divide devices = {devices}." for name in off]
             or [f"For one: {tally[name][1]}" for name in alone or list(tally)[-1:]])
    free = [name for name in job.limits if count(limits={k: v for k, v in job.limits.items() if k != name})]
    said += [f"It works if you leave {name} free." for name in free]
    near = (n for k in range(1, 513) for n in (job.batch + k, job.batch - k) if n > 0)
    if "batch" in alone or "interleave" in alone:
        said += [f"It works if you take a batch of {n:,} sequences." for n in itertools.islice((n for n in near if count(batch=n)), 1)]
    fewer = range(devices - job.cluster.node, 0, -job.cluster.node)
    if not free:
        said += [f"It works if you use {n:,} devices." for n in itertools.islice((n for n in fewer[:512] if count(devices=n)), 1)]
    return tuple(said)


def _forbidden(job, devices, space):
    """Why none of the degrees there are may have any of the choices: the rules that alone forbid it, and limits that help."""
    known = {}
    alone = [(rule, space.first(space.masks((rule,), known))) for rule in space.rules()]
    said = [rule.sentence(q) for rule, q in alone if q]
    if not said:
        q = space.first(space.masks(job.rules or space.rules(), known))
        said = [rule.sentence(q) for rule in space.rules() if not rule.holds(q)] if q else []
    free = [name for name in job.limits if replace(job, limits={k: v for k, v in job.limits.items() if k != name}).space(devices).legal]
    if not free and len(job.limits) > 1 and replace(job, limits={}).space(devices).legal:
        free = [", ".join(job.limits)]
    return *(f"For one: {sentence}" for sentence in said), *(f"It works if you leave {name} free." for name in free)

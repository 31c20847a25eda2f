"""The command `capacity`: plans, estimates, data and formulas in a shell.

    capacity plan llama3-70b --cluster dgx-h100:1024 --batch 4M --seq 8192
    capacity estimate llama3-70b --cluster dgx-h100:512 --batch 512 --seq 8192 --tp 8 --pp 4
    capacity fits llama3-70b --cluster dgx-h100:64 --batch 64 --seq 8192 --tp 8
    capacity show h100-sxm
    capacity compute ring_all_reduce_time n=1GB P=64 link=ndr
    capacity fit-link all_reduce.log
    capacity fit-matmul 9.8s llama3-70b --cluster dgx-h100:512 --batch 512 --seq 8192 --tp 8 --pp 4
    capacity trace rank0.json rank1.json.gz

A model is a name, or the path of a config.json; a cluster a name, or the path of a TOML file in the form of
specs/clusters.toml.  Exit status: 0, 1 where nothing fits, 2 for what cannot be understood.
"""
import argparse
import dataclasses
import difflib
import json
import math
import os
import re
import shutil
import sys
import time
from collections.abc import Mapping
from pathlib import Path

from . import specs
from .fits import COLLECTIVES, fit_link
from .footprint import PARTS, policies
from .grammar import REGISTRY
from .hardware import Cluster, PublishedLink, accelerators, clusters, clusters_from_toml, links
from .huggingface import model_from_config
from .launch import DIALECTS, launch_options, refusals
from .layout import Layout
from .legality import SCHEDULES
from .planner import OBJECTIVES, Failures, plan, said, sequences
from .step import estimate, matmul_share
from .transformer import Transformer, models
from .units import Unit, byte, dollar, flop, second, show
from .witness import trace

DEGREES = "tp", "pp", "cp", "dp", "ep", "chunks", "microbatch"
OTHERS = "zero", "recompute", "cheap_recompute", "copies", "schedule"
TIMES = dict(min=60.0, h=3600.0, hour=3600.0, hours=3600.0, d=86400.0, day=86400.0, days=86400.0, week=7*86400.0,
             weeks=7*86400.0, y=365.25*86400.0, year=365.25*86400.0, years=365.25*86400.0)
PREFIXES = {"": 1, "k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15, "E": 1e18, "m": 1e-3, "u": 1e-6, "µ": 1e-6,
            "n": 1e-9, "Ki": 2.0**10, "Mi": 2.0**20, "Gi": 2.0**30, "Ti": 2.0**40}
SYMBOLS = {"B": (byte, 1), "b": (byte, 1/8), "s": (second, 1), "FLOP": (flop, 1), "OP": (flop, 1), "$": (dollar, 1)}
WHOLE, AMBIGUOUS = re.compile("[0-9][0-9,_]*"), "; k may mean 1,000 or 1,024"
NUMBER = re.compile(r"([-+]?(?:[0-9][0-9,_]*(?:\.[0-9]+)?|\.[0-9]+)(?:[eE][-+]?[0-9]+)?)\s*(.*)")


# ---- quantities ------------------------------------------------------------------------------
def quantity(text, unit, name="value"):
    """The number that a text means where a `Unit` is expected: "1GB", "100 Gb/s", "2us", "30 days", "70B" parameters, "45%".

    Without a unit it is a number of the base units. Raises ValueError, naming it, for any other text.
    """
    found = NUMBER.fullmatch(text.strip())
    if found and math.isfinite(float(re.sub("[,_]", "", found[1]))):
        number, rest = float(re.sub("[,_]", "", found[1])), found[2].strip()
        if not rest:
            return _whole(number)
        if rest == "%" and not any(unit.power):
            return number/100
        if not any(unit.power) and rest in ("k", "K", "M", "G", "B", "T"):
            return _whole(number*{"B": 1e9, "K": 1e3}.get(rest, PREFIXES.get(rest)))
        made, factor = Unit(), 1.0
        try:
            for at, part in enumerate(re.sub(r"FLOPS$", "FLOP/s", rest).split("/")):
                one, size = _unit(part.strip())
                made, factor = (made*one, factor*size) if at == 0 else (made/one, factor/size)
        except KeyError:
            pass
        else:
            if made.power == unit.power:
                return number*factor
    words = {byte.power: "GB, MiB", second.power: "us, ms, s, h, days", (byte/second).power: "GB/s, Gb/s",
             (flop/second).power: "TFLOP/s", flop.power: "FLOP", (Unit()/second).power: "1/s", dollar.power: "$"}
    allowed = words.get(unit.power, f"{unit}" if any(unit.power) else "%" if unit.most == 1 else "k, M, B, T")
    raise ValueError(f"{name} = {text!r}; allowed: a number, or one with a unit such as {allowed}")


def _unit(text):
    if text in TIMES:
        return second, TIMES[text]
    if text == "1":
        return Unit(), 1.0
    for symbol, (unit, factor) in SYMBOLS.items():
        if text.endswith(symbol) and text[:-len(symbol)] in PREFIXES:
            return unit, factor*PREFIXES[text[:-len(symbol)]]
    raise KeyError(text)


def _whole(number):
    return int(number) if number == int(number) and abs(number) < 2**53 else number


# ---- what names mean -------------------------------------------------------------------------
def _model(name):
    """The Transformer of a name, or of a config.json."""
    return model_from_config(name) if os.path.exists(name) or name.endswith(".json") else specs.pick(models(), name, "model")


def _cluster(text):
    """The Cluster of "dgx-h100" or "dgx-h100:1024", "mine.toml", "mine.toml:64" or, of a file with several, "mine.toml:big:64"."""
    name, *rest = text.split(":")
    known = clusters()
    if name.endswith(".toml"):
        known = clusters_from_toml(name)
        name = rest.pop(0) if rest and (len(known) > 1 or rest[0] in known) else next(iter(known), "")
    found = specs.pick(known, name, "cluster")
    devices = ":".join(rest)
    return found.sized(_count(devices, "devices")) if devices else found


def _count(text, name):
    """The whole number that digits mean; a prefix is refused, since of lengths and devices k is 1,000 to some and 1,024 to others."""
    number = int(re.sub("[,_]", "", text)) if WHOLE.fullmatch(text) else 0
    if not number:
        raise ValueError(f"{name} = {text!r}; allowed: a whole number in digits, at least 1" + AMBIGUOUS*text.endswith(("k", "K")))
    return number


def _share(args):
    """The share of a device's memory that may be filled: "0.9" or "90%"."""
    return _part(args.share, "share")


def _part(text, name):
    part = quantity(text, Unit(most=1), name)
    if not 0 < part <= 1:
        raise ValueError(f"{name} = {text}; allowed: above 0 and at most 1")
    return part


def _numbers(text, name):
    """Numbers of "8", "1,2,4", "0.5"."""
    return tuple(quantity(part, Unit(), name) for part in text.split(","))


def _truth(text):
    """True or False of "yes", "no" or "both"."""
    known = {"yes": (True,), "no": (False,), "both": (False, True)}
    return specs.pick(known, text, "answer")


def _schedule(text):
    """The number of a schedule: "ZB-V", "zb-v" or "3"."""
    return specs.pick({word.lower(): k for k, name in enumerate(SCHEDULES) for word in (name, str(k))}, text.lower(), "schedule")


# ---- text for a terminal ---------------------------------------------------------------------
def columns(head, rows, width=None, least=2):
    """A table as text that is at most `width` characters wide: its last columns go first, `least` of them stay."""
    width = width or shutil.get_terminal_size((100, 24)).columns
    rows = [[str(x) for x in row] for row in [head, *rows]]
    sizes = [max(map(len, column)) for column in zip(*rows)]
    n = len(head)
    while n > least and sum(sizes[:n]) + 2*(n - 1) > width:
        n -= 1
    right = [k > 0 and all(re.match(r"[-−0-9.∞$<]", row[k]) for row in rows[1:]) for k in range(n)]
    lines = ["  ".join(x.rjust(size) if side else x.ljust(size) for x, size, side in zip(row[:n], sizes, right)).rstrip()
             for row in rows]
    return "\n".join(line if len(line) <= width else line[:width - 1] + "…" for line in lines)


def wrapped(text, indent=0):
    """A paragraph, broken at the width of the terminal, of which the first `indent` columns are taken."""
    import textwrap
    return "\n".join(textwrap.wrap(text, max(shutil.get_terminal_size((100, 24)).columns - indent, 20), break_long_words=False))


class _Progress:
    """One line on a terminal that says how far a search is; none where it is quick, or nobody looks."""

    def __init__(self):
        self.start = self.last = time.monotonic()
        self.shown = False

    def __call__(self, done, of):
        now = time.monotonic()
        if sys.stderr.isatty() and now - self.start > 0.5 and now - self.last > 0.1:
            self.last, self.shown = now, True
            print(f"\r{done/of:4.0%} of {of:,} choices of degrees", end="", file=sys.stderr, flush=True)

    def clear(self):
        if self.shown:
            print("\r" + " "*60 + "\r", end="", file=sys.stderr, flush=True)


# ---- commands --------------------------------------------------------------------------------
def _plan(args):
    model, cluster = _model(args.model), _cluster(args.cluster)
    limits = {name: _numbers(text, name) for name in (*DEGREES, *OTHERS) if name != "schedule" and (text := getattr(args, name))}
    if args.schedule:
        limits["schedule"] = tuple(map(_schedule, args.schedule.split(",")))
    if args.sequence_parallel:
        limits["sequence_parallel"] = _truth(args.sequence_parallel)
    failures, objective = None, args.objective or ("goodput" if args.mtbf else "time")
    if args.mtbf:
        if objective != "goodput":
            raise ValueError(f"--objective {objective} counts no failures; allowed with --mtbf: goodput")
        failures = Failures(mtbf=quantity(args.mtbf, second, "mtbf"), checkpoint=quantity(args.checkpoint, second, "checkpoint"),
                            restart=quantity(args.restart, second, "restart"))
    elif objective == "goodput":
        raise ValueError("--objective goodput needs --mtbf, the time between failures of one device, such as 5years")
    forms = [f"--{name}" for name in ("json", "csv", "emit") if getattr(args, name)]
    if len(forms) > 1:
        raise ValueError(f"{' and '.join(forms)}; allowed: one of them")
    if args.top < 1:
        raise ValueError(f"top = {args.top}; allowed: at least 1")
    seq, devices = _count(args.seq, "seq"), args.devices and [_count(n, "devices") for n in args.devices.split(",")]
    kw = limits | dict(objective=objective, share=_share(args), devices=devices, failures=failures, options=_options(args),
                       tokens=args.tokens and quantity(args.tokens, Unit(), "tokens"),
                       deadline=args.deadline and quantity(args.deadline, second, "deadline"))

    def search(keep, rules=(), splits=False):
        progress = _Progress()
        try:
            return plan(model, cluster, args.batch, seq, keep=keep, rules=rules, splits=splits, progress=progress, **kw)
        finally:
            progress.clear()
    found = search(args.top, splits=not forms)
    if args.emit and found:
        return _emit(found, search, args.emit, args.format)
    if args.json:
        print(json.dumps(found.to_dict(), indent=2))
    elif args.csv:
        print(found.to_csv("front" if args.front else "candidates"), end="")
    else:
        print(wrapped(found.sentence()) if found else "\n".join(map(wrapped, found.why)))
        if found:
            print("\n" + columns(*found.rows("front" if args.front else "candidates", args.top)) + "\n")
            print(*map(wrapped, [_shown_of(found, args), _looked(found), *_sensitive(found), *found.why]), sep="\n")
    return 0 if found else 1


def _emit(found, search, framework, format):
    """Print the launch options of the best layout that the framework can run; on stderr whether another is the best, and why."""
    dialect, best = DIALECTS[framework], found.best
    reasons = " ".join(refusals(framework, found.model, best.cluster, best.layout, found.seq_len))
    run = search(1, dialect.refuses) if reasons else found
    if not run:
        none = f"{dialect.name} can run none of the {found.legal:,} legal layouts. {' '.join(run.why[1:])}"
        fits = f"{dialect.name} can run {run.legal:,} layouts. {' '.join(run.why)} The best of all, {best}, it cannot: {reasons}"
        print(wrapped("capacity: " + (fits if run.legal else none)), file=sys.stderr)
        return 1
    chosen = run.best
    said = [f"{dialect.name} {dialect.commit} of {dialect.date}, {chosen}: {show(chosen.time, 's')} a step, "
            f"{show(chosen.memory, 'B')} per device."]
    if format not in (None, "bf16"):
        said.append(f"These options are for products in 16 bits; what turns on {format} is not among them.")
    if reasons:
        said.append(f"Not the best: that is {best}, {chosen.time/best.time - 1:.1%} faster. {dialect.name} cannot run that one. {reasons}")
    print(*map(wrapped, said), sep="\n", file=sys.stderr)
    print(launch_options(framework, run.model, chosen.cluster, chosen.layout, run.seq_len))
    return 0


def _shown_of(found, args):
    if not args.front:
        return "Each is the best of its tp, pp, cp and ep; --csv prints the best of all."
    n = len(found.front)
    more = "; --top prints more, --csv --front all of them." if n > args.top else "."
    return f"The {min(args.top, n):,} fastest of {n:,} layouts of the front{more}"


def _looked(found):
    fits = f", of which {found.fits:,} fit" if found.priced == found.legal else ""
    return (f"{found.legal:,} legal layouts{fits}, in {show(found.seconds, 's')}; {len(found.front):,} of them are the best that "
            "one can do for some balance of time, memory, devices and blast radius (--front).")


def _sensitive(found):
    first, *rest = found.elasticities().items()
    yield (f"Measure first: {first[0]}; around it a per cent is {first[1]:+.2f} % of time, both sides averaged. Then "
           + ", ".join(f"{name} {value:+.2f}" for name, value in rest if abs(value) >= 0.005) + ".")


def _options(args):
    chosen = {name: value for name in ("format", "kernels", "policy") if (value := getattr(args, name, None))}
    return chosen | ({"matmul": _part(args.matmul, "matmul")} if getattr(args, "matmul", None) else {})


def _layout(args):
    """Model, Cluster, Layout and length of a command that names one layout."""
    model, cluster, seq = _model(args.model), _cluster(args.cluster), _count(args.seq, "seq")
    degrees = {name: _count(text, name) for name in DEGREES if (text := getattr(args, name))}
    others = math.prod(degrees.get(k, 1) for k in ("tp", "pp", "cp"))
    if "dp" not in degrees and cluster.devices % others == 0:
        degrees["dp"] = cluster.devices//others
    others = {k: _whole(quantity(getattr(args, k) or d, Unit(), k)) for k, d in zip(OTHERS, "100")}
    layout = Layout(batch=sequences(args.batch, seq), **others, schedule=_schedule(args.schedule or "0"),
                    sequence_parallel=args.sequence_parallel == "yes", **degrees)
    if args.copies and (copies := _count(args.copies, "copies")) > 1:
        if layout.replicas % copies:
            raise ValueError(f"copies = {copies} does not divide dp*cp = {layout.replicas} replicas.")
        layout = dataclasses.replace(layout, shards=layout.replicas//copies)
    if wrong := layout.check(model, cluster, seq):
        raise ValueError(" ".join(wrong))
    return model, cluster, layout, seq


def _estimate(args):
    model, cluster, layout, seq = _layout(args)
    step = estimate(model, cluster, layout, seq, **_options(args))
    if args.json:
        print(json.dumps(dict(batch=layout.batch, seq_len=seq) | step.to_dict(), indent=2))
        return 0
    low, high = step.interval()
    print(wrapped(f"A step of {said(layout.batch, seq)}, takes {show(step.time, 's')} ({show(low, 's')} to {show(high, 's')}): "
                  f"{step.mfu:.1%} of peak, {show(step.token_rate)} tokens per second.") + "\n")
    print(columns(["cause", "time", "share"], [[k, show(s, "s"), f"{s/step.time:.1%}"] for k, s in step.seconds.items() if s]))
    print("\n" + _memory(step.footprint, cluster))
    if step.memory > cluster.device.memory:
        print("\n" + wrapped(f"It does not fit: {show(step.memory, 'B')} per device, which has {show(cluster.device.memory, 'B')}."))
    return 0


def _memory(footprint, cluster):
    room = cluster.device.memory
    rows = [[part, show(footprint.parts[part], "B"), f"{footprint.parts[part]/room:.1%}"] for part in PARTS if footprint.parts[part]]
    return columns(["memory", "size", "of device"], [*rows, ["altogether", show(footprint.total, "B"), f"{footprint.total/room:.1%}"]])


def _fits(args):
    if not any(getattr(args, name) for name in (*DEGREES, *OTHERS, "sequence_parallel")):
        return _any_fits(args)
    model, cluster, layout, seq = _layout(args)
    footprint = estimate(model, cluster, layout, seq, **_options(args)).footprint
    share = _share(args)
    fits = bool(footprint.fits(cluster.device, share))
    if args.json:
        print(json.dumps(dict(fits=fits, memory=footprint.total, allowed=share*cluster.device.memory,
                              parts={k: v for k, v in footprint.parts.items() if v}), indent=2))
    else:
        print(wrapped(f"{'Fits' if fits else 'Does not fit'}: {show(footprint.total, 'B')} per device, and {share:.0%} of "
                      f"{show(cluster.device.memory, 'B')} may be filled. A step is {said(layout.batch, seq)}.")
              + "\n\n" + _memory(footprint, cluster))
    return 0 if fits else 1


def _any_fits(args):
    """Whether any layout fits, and of those that do the fastest."""
    found = plan(_model(args.model), _cluster(args.cluster), args.batch, _count(args.seq, "seq"), keep=1, share=_share(args),
                 options=_options(args))
    if args.json:
        print(json.dumps(dict(fits=bool(found), why=list(found.why), **(found.best.to_dict() if found else {})), indent=2))
    elif found:
        print(wrapped(f"Fits: {found.fits:,} of {found.legal:,} legal layouts. The fastest: {found.sentence()}") + "\n\n"
              + _memory(found.best.step.footprint, found.best.cluster))
    else:
        print("\n".join(map(wrapped, found.why)))
    return 0 if found else 1


def _show(args):
    tables = dict(accelerator=accelerators(), link=links(), cluster=clusters(), model=models())
    known = {key: entry for table in tables.values() for key, entry in table.items()} | dict(REGISTRY)
    if not args.name:
        for kind, table in (tables | {"formula": REGISTRY}).items():
            print(wrapped(f"{kind}s: {', '.join(table)}") + "\n")
        return 0
    entry = specs.pick(known, args.name, "name")
    if args.name in REGISTRY and not args.json:
        print(f"{args.name}({', '.join(entry.units)})\n\n{entry.__doc__}")
        return 0
    if args.name in REGISTRY:
        facts = dict(key=args.name, summary=entry.summary, arguments={k: str(u) or "ratio" for k, u in entry.units.items()},
                     unit=str(entry.unit), source=entry.source, chapter=entry.chapter)
    else:
        facts = {f.name: getattr(entry, f.name) for f in dataclasses.fields(entry)}
    if isinstance(entry, Transformer):
        facts |= dict(params=entry.params, active_params=entry.active_params)
    if isinstance(entry, Cluster):
        facts |= dict(device=entry.device.key, devices=entry.devices,
                      levels="; ".join(f"{x.devices} by {x.link.key or x.link.name}" for x in entry.levels))
    facts = {k: v for k, v in facts.items() if v not in (None, "") and v != {}}
    if args.json:
        print(json.dumps(facts, indent=2, default=lambda x: dataclasses.asdict(x) if dataclasses.is_dataclass(x) else str(x)))
    else:
        width = max(map(len, facts)) + 2
        units = UNITS | ({"measured": "B/s"} if isinstance(entry, PublishedLink) else {})
        for k, v in facts.items():
            lines = wrapped(_shown(v, units.get(k)), width).splitlines()
            print(k.ljust(width) + lines[0], *(" "*width + line for line in lines[1:]), sep="\n")
    return 0


UNITS = dict(memory="B", bandwidth="B/s", scale_up="B/s", nic="B/s", beta="B/s", alpha="s", clock="Hz", dense="FLOP/s",
             sparse="FLOP/s", measured="FLOP/s")


def _shown(value, unit):
    if isinstance(value, Mapping):
        return ", ".join(f"{k} {_shown(v, unit)}" for k, v in value.items())
    if dataclasses.is_dataclass(value):
        return ", ".join(f"{f.name} {getattr(value, f.name)}" for f in dataclasses.fields(value))
    if isinstance(value, float) and unit:
        return show(value, unit, 4)
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)


def _compute(args):
    formula = specs.pick(REGISTRY, args.formula, "formula")
    units, values, given = formula.units | formula.constant_units, {}, {}
    for word in args.arguments:
        name, equals, text = word.partition("=")
        if not equals:
            raise ValueError(f"{word!r}; allowed: arguments such as {next(iter(units))}=1")
        if name in given:
            raise ValueError(f"{name} = {text!r}, and before it {given[name]!r}; allowed: one value")
        given[name] = text
        if name == "link":
            values |= {k: x for k, x in dict(specs.pick(links(), text, "link")).items() if k in units}
        elif name not in units:
            links_too = ["link"] if {"alpha", "beta"} <= units.keys() else []
            specs.pick(dict.fromkeys([*units, *links_too]), name, f"argument of {args.formula}")
        else:
            values[name] = quantity(text, units[name], name)
    if missing := [k for k in formula.units if k not in values]:
        raise ValueError(f"{args.formula} needs {', '.join(f'{k} ({formula.units[k].domain})' for k in missing)} too")
    result = formula(**values)
    unit = str(formula.unit).replace("count", "")
    print(json.dumps(dict(formula=args.formula, value=float(result), unit=unit)) if args.json else show(result, unit))
    return 0


def _fit_matmul(args):
    model, cluster, layout, seq = _layout(args)
    seconds = quantity(args.seconds, second, "seconds")
    share = matmul_share(model, cluster, layout, seq, seconds, **_options(args))
    usual = estimate(model, cluster, layout, seq, **_options(args))
    if args.json:
        print(json.dumps(dict(matmul=share, seconds=seconds, estimate=usual.time)))
        return 0
    low, high = usual.interval()
    print(wrapped(f"Products at {share:.1%} of the matmul ceiling make this step {show(seconds, 's')} long: --matmul {share:.4f}. "
                  f"With those of the published runs it takes {show(usual.time, 's')} ({show(low, 's')} to {show(high, 's')})."))
    return 0


def _fit_link(args):
    try:
        text = sys.stdin.read() if args.file == "-" else Path(args.file).read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise ValueError(f"{args.file}: {error.strerror}") from None
    fit = fit_link(text, args.collective, args.ranks and _count(args.ranks, "ranks"))
    if args.json:
        print(json.dumps(dict(collective=fit.collective, ranks=fit.ranks, alpha=fit.alpha, beta=fit.beta, spread=fit.spread,
                              bytes=fit.bytes.tolist(), seconds=fit.seconds.tolist(), fitted=fit.fitted.tolist()), indent=2))
        return 0
    print(wrapped(f"alpha {show(fit.alpha, 's')}, beta {show(fit.beta, 'B/s')}: fitted to {len(fit.bytes)} sizes of {fit.collective} "
                  f"on {fit.ranks} ranks, as {COLLECTIVES[fit.collective].__name__}; the times lie {fit.spread:.0%} off (root mean "
                  "square).") + "\n")
    print(columns(["bytes", "measured", "fitted", "off by"],
                  [[f"{n:,.0f}", show(t, "s"), show(f, "s"), f"{f/t - 1:+.0%}"] for n, t, f in zip(fit.bytes, fit.seconds, fit.fitted)]))
    if fit.spread > 0.1:
        print("\n" + wrapped("One alpha and one beta do not describe all sizes: libraries change protocol and algorithm on the way. "
                             "Fit the sizes that your training sends."))
    return 0


def _trace(args):
    try:
        re.compile(args.network)
    except re.error as error:
        raise ValueError(f"network = {args.network!r}: {error}; allowed: a regular expression") from None
    seen = [trace.read(file, args.network) for file in args.files]
    names = [str(t.rank) if t.rank is not None else Path(file).name for t, file in zip(seen, args.files)]
    if len(set(names)) < len(names):
        raise ValueError(f"{len(args.files)} files of ranks {', '.join(names)}; allowed: each rank once")
    if len({t.steps for t in seen}) > 1:
        raise ValueError(f"steps of the files: {', '.join(str(t.steps) for t in seen)}; allowed: as many in each")
    accounts = [{cause: ns/1e9/t.steps for cause, ns in trace.account(t).items()} for t in seen]
    waits = [trace.waited(t)/1e9 for t in seen]
    late = trace.slow(waits) if len(seen) > 1 else None
    if args.json:
        rows = [dict(file=str(file), rank=t.rank, steps=t.steps, marked=t.marked, step=(t.stop - t.start)/1e9/t.steps, seconds=a, waits=w)
                for file, t, a, w in zip(args.files, seen, accounts, waits)]
        print(json.dumps(dict(traces=rows, straggler=None if late is None else names[late]), indent=2))
        return 0
    steps = seen[0].steps
    if len(seen) == 1:
        total = sum(accounts[0].values())
        what = f"The mean of {steps} steps" if steps > 1 else "A step" if seen[0].marked else "No step is marked; the whole trace"
        print(wrapped(f"{what} of rank {names[0]}: {show(total, 's')}, all of it:") + "\n")
        print(columns(["cause", "time", "share"], [[k, show(v, "s"), f"{v/total:.1%}"] for k, v in accounts[0].items()]))
    else:
        print(columns(["rank", *trace.CAUSES, "step", "waits"],
                      [[n, *(f"{v/sum(a.values()):.1%}" for v in a.values()), show(sum(a.values()), "s"), show(w, "s")]
                       for n, a, w in zip(names, accounts, waits)]) + "\n")
        print(wrapped(_blame(names, waits, late)))
        if not all(t.marked for t in seen):
            print("\n" + wrapped("No step is marked: where a file marks none, its row is the whole trace."))
    if not any(a["exposed"] or a["bubble"] for a in accounts):
        print("\n" + wrapped("No communication was found: name its kernels with --network PATTERN."))
    return 0


def _blame(names, waits, late):
    """Which rank is slow, in words."""
    if len(waits) < 3:
        return "Of two ranks none is named: the rule needs three or more."
    if late is None:
        return "No rank stands out: none waits less than the median by 3.5 robust deviations."
    others = sorted(w for at, w in enumerate(waits) if at != late)
    return (f"In these steps rank {names[late]} is the slow one: it waits least, {show(waits[late], 's')} a step, where the others "
            f"wait {show(others[0], 's')} to {show(others[-1], 's')}.")


# ---- the words of the command ----------------------------------------------------------------
class _Parser(argparse.ArgumentParser):
    """Errors in one line, with the close matches."""

    def parse_known_args(self, args=None, namespace=None):
        self.words = [word.split("=")[0] for word in (sys.argv[1:] if args is None else args)]
        return super().parse_known_args(args, namespace)

    def error(self, message):
        commands = {w: sub for action in self._actions if isinstance(action, argparse._SubParsersAction)
                    for w, sub in action.choices.items()}
        named = next((commands[w] for w in self.words if w in commands), None)
        if named:
            return named.error(message)
        options = [w for action in self._actions for w in action.option_strings]
        unknown = [w for w in self.words if w.startswith("--") and w not in options] if not commands else []
        if unknown:
            message = f"there is no option {unknown[0]}"
        asked = unknown[:1] or re.findall(r"invalid choice: '(.*?)'", message)
        close = [c for word in asked for c in difflib.get_close_matches(word, [*options, *commands], 3, 0.5)]
        hint = f"; close matches: {', '.join(close)}" if close else f"; see {self.prog} --help"
        message = re.sub(r"argument COMMAND: invalid choice: ('.*?') .*", r"there is no command \1", message)
        print(f"{self.prog}: {message}{hint}", file=sys.stderr)
        raise SystemExit(2)


def parser():
    """The argparse parser of the command."""
    top = _Parser(prog="capacity", description="Plans and estimates of distributed training.", allow_abbrev=False)
    commands = top.add_subparsers(metavar="COMMAND", required=True, parser_class=_Parser)

    def command(name, does, words):
        sub = commands.add_parser(name, help=words, description=words, allow_abbrev=False)
        sub.set_defaults(does=does, sub=sub)
        sub.add_argument("--json", action="store_true", help="print JSON")
        return sub

    def job(sub, many):
        sub.add_argument("model", help="a name, see `capacity show`, or the path of a config.json")
        sub.add_argument("--cluster", required=True, metavar="NAME[:DEVICES]", help="dgx-h100:1024, or mine.toml:64")
        sub.add_argument("--batch", required=True, help="of one step: 512 sequences, or 4M tokens (4 x 2^20 where --seq is a power of two)")
        sub.add_argument("--seq", required=True, metavar="TOKENS", help="tokens in a sequence, in digits: 8192")
        for name in (*DEGREES, *OTHERS):
            sub.add_argument("--" + name.replace("_", "-"), metavar="N,N" if many else "N",
                             help="values allowed" if many else "of the layout")
        sub.add_argument("--sequence-parallel", choices=("yes", "no", "both") if many else ("yes", "no"))
        sub.add_argument("--share", default="0.9", help="of a device's memory that may be filled (0.9)")
        sub.add_argument("--format", help="of the products: bf16, fp8")
        sub.add_argument("--kernels", help="what a layer keeps, see capacity.kernels()")

    sub = command("plan", _plan, "Search every legal layout.")
    job(sub, many=True)
    sub.add_argument("--objective", choices=OBJECTIVES, help="what to make small (time; goodput with --mtbf)")
    sub.add_argument("--devices", metavar="N,N", help="numbers of devices to compare")
    sub.add_argument("--top", type=int, default=10, metavar="N", help="layouts to print (10)")
    sub.add_argument("--front", action="store_true", help="print the Pareto front")
    sub.add_argument("--csv", action="store_true", help="print CSV")
    sub.add_argument("--emit", choices=tuple(DIALECTS), help="print launch options of a framework")
    sub.add_argument("--tokens", help="of the whole run: 15T")
    sub.add_argument("--deadline", help="for the whole run: 30days")
    sub.add_argument("--mtbf", help="time between failures of one device, to count these: 5years")
    sub.add_argument("--checkpoint", default="30s", help="time to save a checkpoint (30s)")
    sub.add_argument("--restart", default="300s", help="time to restart (300s)")
    job(command("estimate", _estimate, "Price one layout; dp is what the other degrees leave."), many=False)
    job(command("fits", _fits, "Say whether a layout fits, or without one whether any does; exit status 1 if not."), many=False)
    for name in ("estimate", "fits"):
        commands.choices[name].add_argument("--policy", choices=tuple(policies()), help="bytes of state a parameter; by default mixed")
    for sub in commands.choices.values():
        sub.add_argument("--matmul", metavar="SHARE", help="of the device's matmul ceiling, as `capacity fit-matmul` finds it")
    command("show", _show, "Show a device, link, cluster, model or formula.").add_argument("name", nargs="?")
    sub = command("compute", _compute, "Evaluate a formula, with units.")
    sub.add_argument("formula")
    sub.add_argument("arguments", nargs="*", metavar="NAME=VALUE", help="n=1GB P=64 link=ndr")
    sub = command("fit-matmul", _fit_matmul, "Find the share of the matmul ceiling that a measured step of a layout reaches.")
    sub.add_argument("seconds", help="of the measured step: 9.8s")
    job(sub, many=False)
    sub = command("fit-link", _fit_link, "Fit alpha and beta to the output of nccl-tests.")
    sub.add_argument("file", help="what all_reduce_perf printed; - for the standard input")
    sub.add_argument("--collective", help=f"where the file does not say: {', '.join(COLLECTIVES)}")
    sub.add_argument("--ranks", help="where the file does not say")
    sub = command("trace", _trace, "Account for a step that PyTorch's profiler recorded; of several ranks, name the slow one.")
    sub.add_argument("files", nargs="+", metavar="FILE", help="what export_chrome_trace wrote, one file a rank")
    sub.add_argument("--network", default=trace.NETWORK, metavar="PATTERN", help="what the names of communication match")
    return top


def main(argv=None):
    """Run the command; returns its exit status."""
    try:
        args = parser().parse_args(argv)
        return args.does(args)
    except (ValueError, TypeError) as error:
        print(f"capacity: {error}", file=sys.stderr)
        return 2
    except BrokenPipeError:                             # `capacity ... | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt:
        print(file=sys.stderr)
        return 130

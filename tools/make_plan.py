"""The page "Plan a run": the package's estimate, rules and enumeration as JavaScript, and the data they need.

`tools/page.py` puts `html()` where plan.md says so.  Nothing here knows what a step costs, or which layouts are legal:
`assembled`, `memory` and the rules are recorded, and printed.
"""
import functools
import json
import re
from pathlib import Path
from types import SimpleNamespace

from capacity import huggingface, launch, specs
from capacity.cli import AMBIGUOUS, TIMES, WHOLE
from capacity.footprint import PARTS
from capacity.formulas import interval_factor, model_flops_utilization
from capacity.hardware import Accelerator, Cluster, PublishedLink, clusters
from capacity.layout import Layout
from capacity.legality import DEGREES, RULES, SCHEDULES, SYNONYMS, UNPRICED, UNTRIED, javascript, letters
from capacity.planner import (BATCH, CHEAP, LASTS, LLAMA3_MTBF, MANY, MOST, POWERS, RECOMPUTE, SHARES, least_time, save_interval,
                              slowdown, totals)
from capacity.stack import NARROW, ceiling, constants, rates
from capacity.step import CAUSES, CURRENT, OPERAND, _values, assembled, error, kind_of, work
from capacity.tape import Namespace, Tape, symbol
from capacity.transformer import Experts, Latent, Transformer, models

HERE = Path(__file__).parent/"plan"
SHAPE = ("layers hidden heads kv_heads head_dim ffn vocab gated tied norm norms head_norm bias qkv_bias positions window windowed "
         "further").split()
EXPERTS, LATENT = "count active ffn shared dense bias".split(), "q_rank kv_rank rope".split()
LINKS = "node alpha1 beta1 ring alpha2 beta2".split()
OWN_FORMATS = "bf16", "fp8"
ROLES = "product expert wide attention memory adapters links step routing".split()
PAIRS = [(zero, shared) for zero in range(4) for shared in (False, True)]
KINDS = PARTS[:6]                                                        # the others are of kernels that count them
PRICES = ["time", "memory", *CAUSES, *(f"{part}_bytes" for part in KINDS)]
OUTPUTS = [*PRICES, "mfu", "low", "high"]

# What a part of a bar is called, the formula that gives it (None for a fitted constant), and its colour: a resource, and
# how much of its ink.
WORDS = dict(
    matmul=("products with weights", "trained_product_flops", "compute", 100),
    experts=("experts' products", "trained_product_flops", "compute", 78),
    attention=("attention", "trained_attention_flops", "compute", 56),
    head=("output head", "logit_traffic", "compute", 36),
    pointwise=("between the products", "streamed_bytes", "memory", 100),
    update=("optimizer's update", "model_state_bytes", "memory", 60),
    tensor=("tensor ranks", "two_level_gather_time", "network", 100),
    context=("context ranks", "two_level_gather_time", "network", 80),
    all_to_all=("tokens to experts", "exchange_time", "network", 62),
    pipeline=("between stages", "stage_message_time", "network", 46),
    data=("exposed gradients", "exposed_time", "network", 32),
    bubble=("pipeline bubble", "bounded_pipeline_time", "idle", 100),
    routing=("host, for routing", None, "idle", 70),
    fixed=("host, each step", None, "idle", 45),
    weights_bytes=("weights", "model_state_bytes", "compute", 100),
    grads_bytes=("gradients", "model_state_bytes", "compute", 62),
    optimizer_bytes=("optimizer state", "model_state_bytes", "memory", 100),
    gathered_bytes=("gathered weights", "gathered_bytes", "network", 62),
    activations_bytes=("activations", "activation_bytes_per_layer", "network", 100),
    head_bytes=("logits", "logit_bytes", "idle", 100))


def kind(model):
    """The name of the structure of a model, which decides what is recorded."""
    return ("experts" if model.experts else "dense") + ("_latent" if model.latent else "")


def traced(kind):
    """A Transformer of letters alone."""
    s = symbol
    return Transformer(**{k: s(k) for k in SHAPE},
                       experts=Experts(**{k: s(f"experts_{k}") for k in EXPERTS}) if "experts" in kind else None,
                       latent=Latent(**{k: s(k) for k in LATENT}) if "latent" in kind else None)


@functools.cache
def step(kind, zero, shared):
    """`estimate` on letters alone, for one kind of model and one choice."""
    s, model = symbol, traced(kind)
    device = Accelerator(name="device", source="traced", dense={"bf16": 1}, measured={"bf16": 1}, memory=1, bandwidth=1)
    link = PublishedLink(alpha=0, beta=1, source="traced")
    machine = Cluster(name="cluster", source="traced", device=device, levels=((s("node"), link), (s("devices"), link)))
    layout = Layout(batch=s("batch"), zero=zero, sequence_parallel=shared, recompute=s("recompute"), cheap_recompute=s("cheap_recompute"),
                    shards=s("dp")*s("cp")/s("copies") if zero else None,
                    **{k: s(k) for k in DEGREES if k != "ep" or model.experts})
    job = work(model, machine, layout, s("seq_len"))
    vars(job).update({k: s(k) for k in (*LINKS, "casts", "operand")})
    return assembled(model, machine, layout, s("seq_len"), job, SimpleNamespace(**{k: s(f"{k}_rate") for k in ROLES}), s("peak"),
                     (s("spread"), s("tail")))


def values(of):
    seconds, nbytes = totals(of)
    known = of.seconds | {f"{part}_bytes": getattr(of.footprint, part) for part in KINDS} | dict(time=seconds, memory=nbytes)
    return [known[name] for name in PRICES]


def finish(kind):
    """JavaScript: letters and time => what OUTPUTS has beyond PRICES."""
    of, time = step(kind, 0, False), symbol("time")
    factor = interval_factor(of.spread, 1)
    tape = Tape([model_flops_utilization(of.flops, 1, of.peak, time), time/factor, time*factor])
    names = ",".join(tape.inputs)
    return f"({{{names}}})=>({tape.javascript()})({names})"


def kernel(kind):
    """JavaScript: (job) => (degrees but the last) => (micro-batch) => (shares) => (copies) => numbers.

    Time and memory of one pair after another, `least_time` without sequence parallelism and with it, and a function of nothing
    that gives the other outputs of one pair after another.
    """
    steps = [values(step(kind, *pair)) for pair in PAIRS]
    least = [least_time(step(kind, 0, shared)) for shared in (False, True)]
    tape = Tape([x for one in steps for x in one[:2]] + least + [x for one in steps for x in one[2:]])
    *outer, last = DEGREES
    job = [k for k in tape.inputs if k not in (*DEGREES, *SHARES, "copies")]
    return tape.javascript(job, outer, [last], SHARES, ["copies"], first=2*len(steps) + 2), job


def planner():
    """JavaScript: KERNELS, RULES, DIALECTS, LASTS, the enumeration and the search."""
    kernels = ",\n".join(f"{name}:{{job:{compact(job)},run:{js},finish:{finish(name)}}}" for name in kinds() for js, job in [kernel(name)])
    asked = {c: [r.name for r in RULES + SYNONYMS if c in r.letters and "copies" not in r.letters] for c in ("zero", "sequence_parallel")}
    asked["recompute"] = [r.name for r in UNTRIED]
    copied = [r for r in SYNONYMS + UNPRICED if "copies" in r.letters]
    asked["copies"] = [r.name for r in copied]
    pairs = compact([[zero, int(shared)] for zero, shared in PAIRS])
    return (f"const DEGREES={compact(DEGREES)},OUTPUTS={compact(OUTPUTS)},PAIRS={pairs},ASKED={compact(asked)},MANY={MANY},"
            f"COPIED={compact([k for k in DEGREES if k in ('dp', 'cp') or any(k in r.letters for r in copied)])},KERNELS={{{kernels}}};\n"
            + javascript() + launch.javascript() + huggingface.javascript() + failures() + params() + own()
            + numbers() + part("search.js") + part("own.js"))


def part(name):
    """A file of this page without indents, empty lines and lines of comment."""
    text = re.sub(r"(?ms)^\s*(//[^\n]*|/\*.*?\*/)$", "", (HERE/name).read_text(encoding="utf-8"))
    return "\n".join(filter(None, map(str.strip, text.splitlines()))) + "\n"


def numbers():
    """JavaScript: BATCH, WHOLE, POWERS, MOST and AMBIGUOUS, of the texts that mean a batch and a count."""
    return (f"const BATCH=/^{BATCH.pattern}$/,WHOLE=/^{WHOLE.pattern}$/,POWERS={compact(POWERS)},MOST={MOST},"
            f"AMBIGUOUS={compact(AMBIGUOUS)};\n")


def failures():
    """JavaScript: LASTS, and failing(q), which gives the seconds between checkpoints and those that a second of work takes."""
    tape = Tape([save_interval(Namespace()), slowdown(Namespace())])
    names = ",".join(tape.inputs)
    return f"const LASTS={LASTS.javascript()},failing=({{{names}}})=>({tape.javascript()})({names});\n"


def params():
    """JavaScript: PARAMS, {kind: q => [parameters, those that a token uses]}."""
    def one(kind):
        model = traced(kind)
        tape = Tape([model.params, model.active_params])
        names = ",".join(tape.inputs)
        return f"{kind}:({{{names}}})=>({tape.javascript()})({names})"
    return f"const PARAMS={{{','.join(map(one, kinds()))}}};\n"


def own():
    """JavaScript: OWN, {inside, outside, bf16, fp8}: of the figures of a machine, what `links` and `speed` give."""
    q = Namespace("q.")
    ends = [PublishedLink(alpha=getattr(q, f"alpha{k}"), beta=getattr(q, f"beta{k}"), source="own") for k in (1, 2)]
    dense, measured = ({f: getattr(q, f"{what}_{f}") for f in OWN_FORMATS} for what in ("peak", "measured"))
    device = Accelerator(name="own", source="own", memory=q.memory, bandwidth=q.bandwidth, dense=dense, measured=measured)
    inside, outside = (links(Cluster(name="own", source="own", device=device, levels=levels)) for levels in (
        ((q.node, ends[0]),), ((q.node, ends[0]), (q.devices, ends[1]))))
    said = dict(inside=inside, outside=outside) | {f: speed(device, f) for f in OWN_FORMATS}
    return f"const OWN={{{','.join(f'{k}:q=>({_object(x)})' for k, x in said.items())}}};\n"


def _object(x):
    return "{" + ",".join(f"{k}:{compact(v) if isinstance(v, list) else v!s}" for k, v in x.items()) + "}"


def figures(cluster):
    """The figures of a machine as texts, as specs have them: those of a machine of one's own to begin with; None of a torus."""
    raw, device = specs.read("links"), specs.read("accelerators")[cluster.device.key]
    if any(level.axes for level in cluster.levels) or len(cluster.levels) < 2:
        return None
    given = dict(device=cluster.device.key, memory=device["memory"], bandwidth=device["bandwidth"])
    given |= {f"{ours}_{f}": device.get(theirs, {}).get(f, "") for f in OWN_FORMATS
              for ours, theirs in (("peak", "dense"), ("measured", "measured"))} | dict(node=str(cluster.node))
    for k, link in enumerate((cluster.inner, cluster.outer), 1):
        given |= {f"{name}{k}": raw[link.key][name] for name in ("alpha", "beta")}
    return given


def kinds():
    """The kinds of the models of specs."""
    return list(dict.fromkeys(map(kind, models().values())))


# ---- data ------------------------------------------------------------------------------------
def shape(model):
    """The letters of a model, those of rules and those of prices, without those that are 0."""
    known = vars(letters(model)) | {k: getattr(model, k) for k in SHAPE}
    known |= {"window": model.window or 1}                               # of no layer, where there is none
    known |= {f"experts_{k}": getattr(model.experts, k) for k in EXPERTS} if model.experts else {}
    known |= {k: getattr(model.latent, k) for k in LATENT} if model.latent else {}
    return {k: x for k, x in known.items() if x}


def links(cluster):
    """The letters of a cluster's links."""
    job = work(next(iter(models().values())), cluster, Layout(batch=1, dp=cluster.devices), 1)
    return {k: getattr(job, k) for k in LINKS} | {"axes": cluster.levels[0].axes}


def speed(device, format):
    """The letters of a device in a format, and the error of a dense model's and of a sparse model's time."""
    role = _values(rates(device, format, CURRENT), constants())
    some = {bool(m.experts): m for m in models().values()}
    return dict({f"{k}_rate": getattr(role, k) for k in ROLES}, peak=device.peak(format), casts=int(format in NARROW),
                operand=OPERAND.get(format, 2),
                error=[error(kind_of(some[sparse], device, format)) for sparse in (False, True)])


SIZES = dict(memory="memory", bandwidth="bandwidth", **{f"{k}_{f}": "rate" for f in OWN_FORMATS for k in ("peak", "measured")},
             alpha1="time", beta1="bandwidth", alpha2="time", beta2="bandwidth")
UNITS = {kind: {unit: factor for unit, (of, factor) in specs.UNITS.items() if of == kind} for kind in dict.fromkeys(SIZES.values())}


def compact(x):
    """x as JSON without spaces."""
    return json.dumps(x, ensure_ascii=False, separators=(",", ":"))


def measured(device, format):
    """Whether a ceiling of products is known, so that `estimate` takes the format."""
    try:
        return bool(ceiling(device, format))
    except ValueError:
        return False


def machine(cluster):
    """What the page needs of a cluster."""
    device = cluster.device
    return dict(name=cluster.name, device=device.name, figures=figures(cluster), devices=cluster.devices, memory=device.memory,
                node=cluster.node, flat=len(cluster.levels) == 1, groups=[level.devices for level in cluster.levels[:-1]],
                inside=links(cluster.sized(cluster.node)), outside=links(cluster.sized(2*cluster.node)),
                formats={f: speed(device, f) for f in ("bf16", "fp8", "fp4") if f in device.dense and measured(device, f)})


def data():
    """Models and machines of specs."""
    return dict(models={k: dict(name=m.name, kind=kind(m), context=m.context, q=shape(m)) for k, m in models().items()},
                machines={k: machine(c) for k, c in clusters().items()}, recompute=RECOMPUTE, cheap=CHEAP, schedules=SCHEDULES,
                causes=CAUSES, letters=[*SHAPE, "experts", *(f"experts_{k}" for k in EXPERTS)],
                kinds=[f"{part}_bytes" for part in KINDS], words=WORDS,
                defaults={k: d for k in SHAPE if (d := Transformer.__dataclass_fields__[k].default) and isinstance(d, int)},
                units=UNITS, sizes=SIZES, times=dict(s=1, ms=1e-3, **TIMES), mtbf=f"{LLAMA3_MTBF/TIMES['years']:.2g} years")


def html():
    """What stands on the page: form, styles, the planner as text for a worker, data, and the script that ties them."""
    numbers = compact(data())
    return (f"<style>{part('plan.css')}</style>\n{part('plan.html')}\n<script type=\"text/plain\" id=\"cx-planner\">{planner()}</script>\n"
            f"<script type=\"application/json\" id=\"cx-plan-data\">{numbers}</script>\n<script>{part('plan.js')}</script>\n")

"""An explorer as a page has it: its committed figure, with axes that rest, the places its sentences point at, and presets."""
import functools
import html
import json
import math
import re

import sympy as sp
from sympy.codegen import cfunctions
from sympy.functions.elementary.piecewise import ExprCondPair

from capacity.hardware import accelerator, link
from capacity.pictures.alive import live
from capacity.pictures.svg import attribute, short
from capacity.transformer import model


def nvlink(machine):
    """The speed of a device's NVLink; no number for others, whose links are a mesh: their sum is the speed of no pair."""
    return machine.scale_up if machine.name.startswith("NVIDIA") else math.nan


# What stands on a chip, and what it is in capacity/specs.
NAMED = {
    "machines": (accelerator, {"A100": "a100-80gb", "H100": "h100-sxm", "B200": "b200", "MI300X": "mi300x", "TPU v5p": "tpu-v5p"}),
    "links": (link, {"NVLink 4": "nvlink4", "NVLink 5": "nvlink5", "TPU v5p link": "ici-v5p",
                     "InfiniBand NDR": "ndr", "InfiniBand XDR": "xdr", "RoCE 400": "roce400"}),
    "models": (model, {"GPT-3 175B": "gpt3-175b", "Llama 3 8B": "llama3-8b", "Llama 3 70B": "llama3-70b", "Llama 3 405B": "llama3-405b",
                       "Mixtral 8x22B": "mixtral-8x22b", "DeepSeek-V3": "deepseek-v3"}),
}
# What a slider says -> the number of a machine, a link or a model.
FIELDS = {
    "machines": {
        **dict.fromkeys(["peak", "arithmetic", "16-bit peak", "arithmetic of a GPU", "peak of a device"], lambda m: m.peak()),
        **dict.fromkeys(["memory", "bandwidth of a GPU"], lambda m: m.bandwidth),
        **dict.fromkeys(["NVLink", "tensor link", "link"], nvlink),
        **dict.fromkeys(["card", "a card", "NIC"], lambda m: m.nic),
        **dict.fromkeys(["NVLink over NIC", "NVLink over a card"], lambda m: nvlink(m)/m.nic),
    },
    "links": {
        **dict.fromkeys(["latency", "latency across", "latency, network"], lambda m: m.alpha),
        **dict.fromkeys(["bandwidth", "a card"], lambda m: m.beta),
    },
    "models": {
        "parameters": lambda m: None if m.experts else m.params,              # all of them at work on a token
        "in the largest unit": lambda m: max(m.vocab*m.hidden, (m.params - m.embedding_params)/m.layers),
        "layers": lambda m: m.layers,
        "key-value heads": lambda m: m.kv_heads,
        "head dimension": lambda m: m.head_dim,
        "key heads per query head": lambda m: None if m.latent else m.kv_heads/m.heads,
        "experts of a token": lambda m: m.experts and m.experts.active,
        "width of an expert": lambda m: m.experts and m.experts.ffn,
        "latent": lambda m: m.latent and m.latent.kv_rank,
        "rotated key": lambda m: m.latent and m.latent.rope,
    },
}
PARTIAL = {"latency", "experts of a token", "head dimension", "in the largest unit"}      # alone they make no link and no model


def fits(slider, u):
    """Whether a slider can have the value u, though it may be no stop of it; explorer.js asks the same."""
    stops = slider["stops"]

    def two(v):
        return v > 0 and math.log2(v) % 1 == 0
    return any(abs(w - u) <= 1e-6*abs(u) for w in stops) or "names" not in slider and min(stops) <= u <= max(stops) \
        and (u % 1 == 0 or any(w % 1 for w in stops)) and (two(u) or not all(map(two, stops)))


def presets(S):
    """[[name, [[slider, value], ...]], ...]: chips of named things that move several sliders at once.

    A thing of which a slider cannot have the value is not offered; a kind of things that moves sliders of another one is not either.
    """
    rows = []
    for kind, fields in FIELDS.items():
        at = {i: s["label"] for i, s in enumerate(S["sliders"]) if s["label"] in fields}
        if at and not set(at.values()) <= PARTIAL:
            rows.append((kind, at))
    out, taken = [], set()
    for kind, at in sorted(rows, key=lambda row: -len(row[1])):
        if taken & at.keys():
            continue
        taken |= at.keys()
        find, named = NAMED[kind]
        for name, key in named.items():
            values = {i: FIELDS[kind][label](find(key)) for i, label in at.items()}
            values = {i: float(v) for i, v in values.items() if v is not None}
            if values and not {at[i] for i in values} <= PARTIAL and all(fits(S["sliders"][i], v) for i, v in values.items()) \
                    and [[i, short(v)] for i, v in values.items()] not in [chip for _, chip in out]:
                out.append([name, [[i, short(v)] for i, v in values.items()]])
    return out


# What a notebook holds has been simplified; sympy would compare all arguments of a maximum once more.
SCOPE = vars(sp) | {k: v for k, v in vars(cfunctions).items() if isinstance(v, type)} | {"ExprCondPair": ExprCondPair} | {
    "Max": functools.partial(sp.Max, evaluate=False), "Min": functools.partial(sp.Min, evaluate=False)}


def read(traces):
    """(args, exprs): the symbols and the expressions of Explorer.traces()."""
    return [tuple(eval(s, SCOPE) for s in group) for group in traces["args"]], [eval(e, SCOPE) for e in traces["exprs"]]


def lively(S, traces):
    """The specification that a page has, from that of a notebook and its expressions."""
    S = live(S, *read(traces))
    chips = presets(S)
    return S | ({"presets": chips} if len(chips) > 1 else {})


def dressed(figure, plain):
    """The HTML of an explorer for a page, from what a notebook holds of it: its HTML and its plain text."""
    traces = json.loads(plain.partition("\n")[2])
    return re.sub("data-spec='(.*?)'", lambda m: f"data-spec='{attribute(lively(json.loads(html.unescape(m[1])), traces))}'",
                  figure, count=1, flags=re.S)

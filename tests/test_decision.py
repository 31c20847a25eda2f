"""Decision cards: what the page decides is what Python decides; bad ones are refused by name."""
import json
import random

import numpy as np
import pytest
import sympy as sp

from capacity import (GB, Choice, Column, Field, Switch, Verdict, accelerator, activation_bytes_per_layer, decide, kB, model,
                      recursive_doubling_all_reduce_time, ring_all_reduce_time, tensor_parallel_ratio, us)
from javascript import number, run

H, kv, L, N, M, t, y, F, b, eff = sp.symbols("H kv L N M t y F b eff", positive=True)
s = sp.Symbol("s", nonnegative=True)
n, P, T, c = sp.symbols("n P T c", positive=True)


def tensor_ranks():
    layer = activation_bytes_per_layer(microbatch_tokens=y, hidden=H, tp=t, seq_ranks=1 + s*(t - 1))
    ratio = tensor_parallel_ratio(layer_params=N/L, hidden=H, tp=t, element_bytes=2, peak=F*eff, beta=b)
    models = {m.name: {H: m.hidden, kv: m.kv_heads, L: m.layers, N: m.params}
              for m in map(model, ("llama3-8b", "llama3-70b", "llama3-405b"))}
    gpus = {k: {M: a.memory, F: a.dense["bf16"], b: a.scale_up}
            for k in ("a100-80gb", "h100-sxm", "b200") for a in [accelerator(k)]}
    return decide("tensor-ranks", title="How many tensor-parallel ranks for your model?",
                  inputs=[Choice("model", models, "Llama 3 70B"), Choice("GPU", gpus, "h100-sxm"),
                          Field(y, 8192, "tokens in a micro-batch", "tokens", lo=256, hi=262144),
                          Field(eff, .5, "share of peak", "%", lo=.05, hi=1), Switch(s, "sequence parallelism", on=True)],
                  rows=(t, [1, 2, 4, 8, 16]),
                  columns=[Column("memory", 2*N/t + layer*L, "B", at_most=M, fails="does not fit"),
                           Column("waits", 1/(1 + ratio), "%", at_most=sp.Rational(2, 5), fails="waits too long"),
                           Column("heads", sp.Eq(sp.Mod(kv, t), 0), fails="{t} ranks cannot share the heads")],
                  verdict=Verdict({"{model} needs no tensor parallelism.": t < 2,
                                   "Take `tp={t}`: each {GPU} holds {memory}, and waits {waits} of the pass, $t^{2}$.": True}))


def ring_or_tree():
    F1, F2 = ring_all_reduce_time, recursive_doubling_all_reduce_time
    args = {k: F1.symbols[k] for k in F1.symbols}
    return decide("ring-or-tree", title="Ring or tree?",
                  inputs=[Field("n", 10*kB, "message", "kB", lo=.1*kB, hi=10*GB), Choice("ranks", {str(2**k): {"P": 2**k} for k in range(1, 9)}, "64"),
                          Field("alpha", 5*us, "latency", "µs", lo=us, hi=100*us), Field("beta", 50*GB, "bandwidth", "GB/s", lo=GB, hi=1000*GB)],
                  rows={"ring": {T: F1(**args)}, "recursive doubling": {T: F2(**{k: args[k] for k in F2.symbols})}, "nothing": {T: sp.Rational(1, 10**9)}},
                  columns=[Column("time", T, "s", at_least=1*us, fails="is no all-reduce"), Column("rate", args["n"]/T, "B/s")],
                  verdict=Verdict("{row}: {time} for {message} on {ranks} ranks.", take="least", by="time"))


def most_of_it():
    return decide("most", title="Which price?", inputs=[Field(c, 3, "hours & days", "days", lo=1, hi=20), Switch(s, "rush")],
                  rows=(P, [2, 3, 7], "$P$", "GPUs"),
                  columns=[Column("cost", c*P*s, "$", test=c < 10*P, fails="too <long>"), Column("gain", P/s, digits=2)],
                  verdict=Verdict("Take {P}: {cost}, {gain}, {hours & days}.", "None; {row}, {why}.", "most", "cost"))


GALLERY = {f.__name__: f for f in (tensor_ranks, ring_or_tree, most_of_it)}


def settings(spec, trials, seed=0):
    rng, out = random.Random(seed), []
    for _ in range(trials):
        out.append([rng.randrange(len(x["options"])) if "options" in x else rng.randrange(2) if "on" in x
                    else rng.choice([x["lo"], x["hi"], x["lo"] + (x["hi"] - x["lo"])*rng.random()**6]) for x in spec["inputs"]])
    return out


RUN = """
    const { numbers, cell, limit, sentence, settingText } = cx.decision(data.spec);
    return data.settings.map((s) => { const D = numbers(s);
        return [D, sentence(D, s), settingText(s), D.cells.map((row, r) => row.map((_, k) => cell(D, r, k, s))), D.cells[0].map((_, k) => limit(D, k))]; });"""


@pytest.mark.parametrize("name", GALLERY)
def test_the_page_decides_what_python_decides(name):
    card = GALLERY[name]()
    at = [card.start, *settings(card.spec(), 300)]
    taken = set()
    for s, (D, sentence, text, cells, limits) in zip(at, run(RUN, {"spec": card.spec(), "settings": at})):
        want = card.numbers(s)
        for key in "cells", "limits":
            flat = [x if isinstance(x, bool) or x is None else number(x) for row in D[key] for x in row]
            assert len(flat) == len(card.row_names)*len(card.columns)
            for got, x in zip(flat, (x for row in want[key] for x in row)):
                assert got is x if x is None or isinstance(x, bool) else got == pytest.approx(x, rel=1e-13, nan_ok=True)
        assert [D[k] for k in ("fails", "take", "near", "worst", "says")] == [want[k] for k in ("fails", "take", "near", "worst", "says")]
        assert sentence == card.sentence(s) and text == card.setting_text(s)
        scopes = [card._scope(want, r, s) for r in range(len(card.row_names))]
        assert cells == [[card._cell(want, r, k, scopes[r]) for k in range(len(card.columns))] for r in range(len(card.row_names))]
        assert limits == [card._limit(want, k) for k in range(len(card.columns))]
        taken.add(want["take"])
    assert len(taken) > 1, "random settings reach one verdict only: the test is blind"

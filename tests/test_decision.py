"""Decision cards: what the page decides is what Python decides; bad ones are refused by name."""
import html
import json
import random
import re

import execute
import nbformat
import pytest
import sympy as sp
from javascript import number, run
from figures import opened
from test_tables import words

from capacity import (
    GB,
    Choice,
    Column,
    Field,
    Switch,
    Verdict,
    accelerator,
    activation_bytes_per_layer,
    decide,
    kB,
    model,
    recursive_doubling_all_reduce_time,
    ring_all_reduce_time,
    tensor_parallel_ratio,
    us,
)
from capacity.pictures.tables import one

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
                  inputs=[Field("n", 10*kB, "message", "kB", lo=.1*kB, hi=10*GB),
                          Choice("ranks", {str(2**k): {"P": 2**k} for k in range(1, 9)}, "64"),
                          Field("alpha", 5*us, "latency", "µs", lo=us, hi=100*us),
                          Field("beta", 50*GB, "bandwidth", "GB/s", lo=GB, hi=1000*GB)],
                  rows={"ring": {T: F1(**args)},
                        "recursive doubling": {T: F2(**{k: args[k] for k in F2.symbols})},
                        "nothing": {T: sp.Rational(1, 10**9)}},
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
        return [D, sentence(D, s), settingText(s), D.cells.map((row, r) => row.map((_, k) => cell(D, r, k, s))),
            D.cells[0].map((_, k) => limit(D, k))]; });"""


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


def test_the_verdict_by_hand():
    """324 GB on t ranks of 80 GB: 8 is the first that fits; with 10 times the tokens nothing does, and 8 is nearest."""
    card = tensor_ranks()
    D = card.numbers()
    bytes_ = [2*70_553_706_496/k + 80*8192*8192*34/k for k in (1, 2, 4, 8, 16)]
    assert [row[0] for row in D["cells"]] == pytest.approx(bytes_, rel=1e-12)
    assert [row[0] for row in D["fails"]] == [True, True, True, False, False] and [row[2] for row in D["fails"]] == [False]*4 + [True]
    assert D["take"] == 3 and "Take <code>tp=8</code>: each h100-sxm holds 40.5 GB" in card.sentence()
    s = card.start
    s[0], s[2] = 2, 81920
    D = card.numbers(s)
    assert D["take"] == -1 and (D["near"], D["worst"]) == (3, 0)
    assert card.sentence(s).startswith("No alternative passes. The nearest miss is t = 8: memory is ")
    assert "and may be at most 80 GB" in card.sentence(s)
    s = card.start
    s[0] = 0
    assert card.sentence(s) == "Llama 3 8B needs no tensor parallelism."                  # 16.1 + 36.5 GB
    s[2] = 16384
    assert card.sentence(s).startswith("Take <code>tp=2</code>: each h100-sxm holds 44.5 GB, ")


@pytest.mark.parametrize("take, by, want", [("first", None, "2"), ("last", None, "5"), ("least", "cost", "3"), ("most", "cost", "5")])
def test_each_rule_takes_its_row(take, by, want):
    card = decide("x", title="Which?", inputs=[Field(c, 3, "c", lo=1, hi=9)], rows=(P, [1, 2, 3, 5]),
                  columns=[Column("cost", (P - 3)**2 + c, "$"), Column("rank", P, at_least=2, fails="is too small")],
                  verdict=Verdict("{P}", take=take, by=by))
    assert card.sentence() == want


def test_the_nearest_miss_is_the_smallest_worst_failure():
    def card(limit, **more):
        return decide("x", title="Which?", inputs=[Field(c, 1, "c", lo=1, hi=9)], rows=(P, [1, 2, 4]), verdict=Verdict("{P}"),
                      columns=[Column("up", c*P, at_most=limit, fails="too much"),
                               Column("down", c/P, at_least=3, fails="too little"), *more.values()])
    assert (card(.1).numbers()["near"], card(.1).numbers()["worst"]) == (0, 0)            # 10 and 3 against 20 and 6, 40 and 12
    assert card(.9).sentence() == "No alternative passes. The nearest miss is P = 1: down is 1, and may be at least 3."
    no = card(.1, odd=Column("one", sp.Ne(P, 1), fails="{row} is <odd>"))
    assert no.numbers()["near"] == 1, "what can only be passed or not is the farthest"
    assert "one" not in no.sentence()


def test_formulas_bring_their_symbols_by_name():
    card = decide("ring", title="How many?", inputs=[Field("n", 1e6, "message", "MB", lo=1e5, hi=1e9),
                          Choice("link", {"a": {"alpha": 1e-6, "beta": 1e11}})],
                  rows=("P", [2, 8]), columns=[Column("time", ring_all_reduce_time, "s")],
                  verdict=Verdict("{time}", take="least", by="time"))
    cells = [row[0] for row in card.numbers()["cells"]]
    assert cells == pytest.approx([ring_all_reduce_time(n=1e6, P=p, alpha=1e-6, beta=1e11) for p in (2, 8)])


def test_options_may_name_their_symbols_in_any_order():
    def card(second):
        return decide("x", title="Which?", inputs=[Choice("m", {"a": {c: 1, T: 2}, "b": second}, "b")], rows=(P, [1]),
                      columns=[Column("v", c - T/P)], verdict=Verdict("{v}"))
    assert card({T: 5, c: 7}).sentence() == card({c: 7, T: 5}).sentence() == "2"
    assert card({T: 5, c: 7}).spec() == card({c: 7, T: 5}).spec()


def start_of(page):
    """What a card's HTML says without a script (verdict, cells), and its specification."""
    spec = json.loads(html.unescape(re.search("data-spec='(.*?)'", page, re.S)[1]))
    cells = [re.findall("<td[^>]*>(.*?)</td>", row, re.S) for row in re.findall("<tr.*?</tr>", page, re.S)[1:]]
    return spec, re.search('<p class="cx-verdict">(.*?)</p>', page, re.S)[1], cells


def committed():
    """Every card of a committed notebook: (chapter, HTML)."""
    for path in execute.notebooks():
        for cell in nbformat.read(path, as_version=4).cells:
            for output in cell.get("outputs", []):
                if 'class="cx-decide' in output.get("data", {}).get("text/html", ""):
                    yield path.stem, output["data"]["text/html"]


def test_the_pages_cards_start_as_they_were_committed():
    pages = [*committed(), *((name, make().to_html()) for name, make in GALLERY.items())]
    for name, page in pages:
        spec, verdict, cells = start_of(page)
        start = [x["at"] if "at" in x else x["on"] if "on" in x else x["value"] for x in spec["inputs"]]
        (_, sentence, _, table, _), = run(RUN, {"spec": spec, "settings": [start]})
        assert (sentence, table) == (verdict, cells), name


GOOD = dict(title="Which?", inputs=[Field(c, 3, "cost", lo=1, hi=9)], rows=(P, [2, 4]),
            columns=[Column("total", c*P, at_most=9, fails="too much")],
            verdict=Verdict("Take {P}."))


@pytest.mark.parametrize("change, said", [
    (dict(title=" "), "bad: the title is empty"),
    (dict(inputs=[3]), r"bad: an input is 3; allowed: Choice\(...\) or Field\(...\) or Switch"),
    (dict(columns=["x"]), r"bad: a column is 'x'; allowed: Column"),
    (dict(verdict="x"), r"bad: verdict is 'x'; allowed: Verdict"),
    (dict(inputs=[]), "bad: nothing sets the symbol c of the column 'total'"),
    (dict(inputs=[*GOOD["inputs"], Field(T, 1, "T", lo=1, hi=2)]), "bad: the input 'T' is in no expression; the symbols are"),
    (dict(inputs=[*GOOD["inputs"], Field(c, 1, "again", lo=1, hi=2)]), "bad: input 'cost' and input 'again' both set the symbol c"),
    (dict(inputs=[*GOOD["inputs"], Field(P, 1, "P?", lo=1, hi=2)]), "both set the symbol P"),
    (dict(inputs=[Field(c, 3, "total", lo=1, hi=9)]), "bad: the label 'total' stands twice"),
    (dict(inputs=[Field(c, 3, "cost", lo=-1, hi=9)]), "bad: input 'cost' gives c the value -1; allowed: above 0"),
    (dict(inputs=[Field(sp.Symbol("c"), 3, "cost", lo=1, hi=9)]), "symbol c of the column 'total'|in no expression"),
    (dict(rows=(P, [])), "bad: rows is .*; allowed"),
    (dict(rows=(T, [1, 2])), "bad: the rows' symbol T is in no column"),
    (dict(rows=(P, [1, "b"])), "bad: a row's P is 'b'; allowed: finite"),
    (dict(rows={"a": {P: 1}, "b": {T: 2}}), "bad: the row 'b' sets T; allowed: P"),
    (dict(columns=[Column("total", "c*P")]), "bad: the column 'total' is 'c.P'; allowed: formulas"),
    (dict(columns=[Column("total", c*P, fails="no")]), "the column 'total' has words for failing, but no test"),
    (dict(columns=[Column("total", c*P, test=c*P, fails="no")]), "the test of 'total' is .*; allowed: a condition"),
    (dict(columns=[Column("total", c*P, at_most=1, fails="{who} fails")]),
     r"\{who\} in '\{who\} fails'; allowed: \{row\}, \{P\}, \{cost\}$"),
    (dict(verdict=Verdict("Take {Q}.")), r"\{Q\} in 'Take \{Q\}.'; allowed: \{row\}, \{P\}, \{cost\}, \{total\}"),
    (dict(verdict=Verdict("x", take="least", by="rest")), "bad: verdict by 'rest'; allowed: total"),
    (dict(verdict=Verdict({"x": P < 3})), "bad: the condition of the last sentence 'x' must be True")])
def test_a_bad_card_is_refused_by_name(change, said):
    decide("good", **GOOD)
    with pytest.raises(ValueError, match=said):
        decide("bad", **GOOD | change)


@pytest.mark.parametrize("make, said", [
    (lambda: decide("Bad!", **GOOD), "decision name 'Bad!'"),
    (lambda: Choice("m", {}), "choice 'm': options is {}; allowed"),
    (lambda: Choice("m", {"a": 3}), "choice 'm': option 'a' is 3; allowed"),
    (lambda: Choice("m", {"a": {c: 1}, "b": {P: 1}}), "choice 'm': option 'b' sets P; allowed: c"),
    (lambda: Choice("m", {"a": {c: float("nan")}}), "choice 'm': c of 'a' is nan; allowed: finite"),
    (lambda: Choice("m", {"a": {c: 1}}, "b"), "choice 'm': start is 'b'; allowed: a"),
    (lambda: Field(c, 3, "f", lo=4, hi=9), "field 'f': value is 3; allowed: between lo 4 and hi 9"),
    (lambda: Field(c, 3, "f"), "field 'f': lo is None; allowed: finite"),
    (lambda: Switch(c, "s", on=1), "switch 's': on is 1; allowed: True, False"),
    (lambda: Column("x", c, at_most=1, test=c < 1, fails="no"), "column 'x': at_most and test are given"),
    (lambda: Column("x", c, at_most=1), "column 'x': fails is empty"),
    (lambda: Verdict("x", take="best"), "verdict: take is 'best'; allowed: first, last, least, most"),
    (lambda: Verdict("x", take="least"), "verdict: by is None with take='least'"),
    (lambda: Verdict("x", by="y"), "verdict: by is 'y' with take='first'"),
    (lambda: Verdict(""), "verdict: says is ''")])
def test_bad_parts_are_refused_by_name(make, said):
    with pytest.raises(ValueError, match=said):
        make()


def test_what_javascript_cannot_state_is_refused_by_name():
    with pytest.raises(NotImplementedError, match="erf"):
        decide("bad", **GOOD | dict(columns=[Column("total", sp.erf(c*P))]))


@pytest.mark.parametrize("unit, typed, si", [("GB", 80, 80e9), ("%", 29, .29), ("µs", 3, 3e-6),
                                             ("TFLOP/s", 989.4, 989.4e12), ("days", 2, 172800), ("tokens", 7, 7), ("", 7, 7)])
def test_a_field_is_typed_in_its_unit(unit, typed, si):
    card = decide("x", **GOOD | dict(inputs=[Field(c, si, "cost", unit, lo=si/2, hi=si*2)]))
    assert card.setting_text() == f"cost: {typed} {unit}".rstrip() and card.spec()["inputs"][0]["value"] == si


def test_the_card_is_complete_without_a_script_and_the_same_every_time():
    for make in GALLERY.values():
        card = make()
        page = card.to_html()
        assert page == make().to_html() and repr(card) == repr(make())
        assert not re.search(r"\son\w+=|https?://|<script", page)
        assert words(card.sentence()) in words(page) and card.setting_text() in words(page)
        assert page.count('scope="row"') == len(card.row_names) and page.count("✗") == sum(sum(f) for f in card.numbers()["fails"]) + sum(
            "✗" in str(c["fails"]) for c in card.spec()["columns"])


def test_jupyterlab_computes_the_same():
    card = tensor_ranks()
    _, *controls, said = card.widget().children
    assert card.sentence() in said.value
    assert all(len(c.description) <= int(c.style.description_width.removesuffix("ch")) for c in controls), "no label is cut"
    controls[0].value, controls[2].value, controls[4].value = 2, 16384, False
    s = [2, 1, 16384.0, .5, 0]
    assert card.sentence(s) in said.value and card.table(s) in said.value


# ---- in Chromium
class InArticle:
    def __init__(self, card):
        self.card = card

    def to_html(self):
        return f'<div class="bd-article" style="margin: 0 8px">{self.card.to_html()}</div>'


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    with opened(tmp_path_factory.mktemp("page"), [InArticle(make()) for make in GALLERY.values()]) as tab:
        yield tab


def fresh(page, at=""):
    page.goto("about:blank")
    page.goto(page.start + at)
    page.wait_for_timeout(80)
    return page.locator("#tensor-ranks")


@pytest.fixture(autouse=True)
def _start(request):
    if "page" in request.fixturenames:
        tab = request.getfixturevalue("page")
        tab.start = getattr(tab, "start", tab.url)


def verdict(box):
    return words(box.locator(".cx-verdict").inner_html().replace("&nbsp;", " "))       # the page keeps numbers and units together


def test_the_page_starts_as_python_wrote_it(page):
    fresh(page)
    assert page.errors == []
    for make in GALLERY.values():
        card, box = make(), page.locator("#" + make().name)
        assert verdict(box) == words(card.sentence())
        assert box.locator("tbody tr.cx-mark").count() == 1 and box.locator("tbody tr.cx-mark em").inner_text() == "take"


def test_the_reader_types_and_the_verdict_follows(page):
    box, card = fresh(page), tensor_ranks()
    box.get_by_label("model").select_option("Llama 3 405B")
    tokens = box.get_by_label("tokens in a micro-batch")
    tokens.fill("4096")
    box.get_by_label("sequence parallelism").press(" ")
    s = [2, 1, 4096.0, .5, 0]
    assert verdict(box) == words(card.sentence(s))
    assert box.locator("td").first.inner_text().replace("\u00a0", " ") == card._text(card.numbers(s)["cells"][0][0], 0) + " ✗ does not fit"
    assert page.url.endswith("#tensor-ranks=2_1_4096_50_0")
    assert box.locator(".cx-verdict").get_attribute("aria-live") == "polite"
    before = box.locator("table").inner_html()
    for bad, said in [(x, "from 256 to 262,144") for x in ("-3", "1e9")] + [
            (x, "a number of tokens, such as 8192") for x in ("", "1,024", "4096 MB", "4k", "four")]:
        tokens.fill("")
        tokens.press_sequentially(bad)
        assert tokens.input_value() == bad, "nothing that is typed is dropped"
        assert tokens.get_attribute("aria-invalid") == "true" and said in box.locator(".cx-typed small").first.inner_text()
        assert box.locator("table").inner_html() == before, "what is not allowed moves nothing"
        assert box.locator(".cx-last").is_visible() and "cx-stale" in box.get_attribute("class")
    box.get_by_role("button", name="Reset").click()
    assert verdict(box) == words(card.sentence()) and "#" not in page.url
    assert tokens.input_value() == "8192" and tokens.get_attribute("aria-invalid") == "false"
    assert not box.locator(".cx-last").is_visible() and "cx-stale" not in box.get_attribute("class")


def test_a_number_may_bring_the_unit_of_its_field_and_no_other():
    card = decide("unit", title="How long?", inputs=[Field(n, 1e9, "size", "GB", lo=1e6, hi=1e12), Field(c, 2, "parts", lo=1, hi=8)],
                  rows=(P, [1, 2]), columns=[Column("cost", n*c*P, "B")], verdict=Verdict("{cost}"))
    got = run("""const D = cx.decision(data), [a, b] = data.inputs;
        const si = (x) => (t) => { const v = D.number(x, t); return Number.isNaN(v) ? "refused" : v; };
        return [["0.02", " .02 GB ", "2e-2GB", "20 MB", "0,02", "", "GB", "0.02 gb", "1 000"].map(si(a)),
                ["2", "2.", "2 GB", "2e0", "0x2"].map(si(b)), D.write(a), D.write(b)];""", card.spec())
    assert got == [[2e7]*3 + ["refused"]*6, [2, 2, "refused", 2, "refused"], "a number of GB, such as 1", "a number, such as 2"]


def test_the_setting_is_in_the_address(page):
    box, card = fresh(page, "#tensor-ranks=0_2_512_75_0"), tensor_ranks()
    assert verdict(box) == words(card.sentence([0, 2, 512.0, .75, 0]))
    assert box.get_by_label("b200").is_checked() and box.get_by_label("share of peak").input_value() == "75"
    page.evaluate("location.hash = '#tensor-ranks=9_x_-1_50_7'")
    page.wait_for_timeout(80)
    assert verdict(box) == words(card.sentence([0, 2, 512.0, .5, 0])), "what is not allowed is left alone"
    assert page.errors == []


def test_the_bounds_in_words_and_one_in_the_singular():
    card = decide("bounds", title="How many?", inputs=[Field(n, 2, "size", "tokens", lo=0, hi=1000),
                  Field(c, 1, "parts", "pieces", lo=1, hi=8, whole=True), Field(y, .5, "share", lo=1e-6, hi=1)],
                  rows=(P, [1, 2]), columns=[Column("cost", n*c*y*P, "tokens", at_most=n*c*y, fails="too much")],
                  verdict=Verdict("{P|bucket|buckets} of {parts}, {cost}; {size|thing|things}."))
    assert card.sentence() == "1 bucket of 1 piece, 1 token; 2 tokens things."
    got = run("""const D = cx.decision(data), [a, b, c] = data.inputs, s = [2, 1, .5];
        return [D.sentence(D.numbers(s), s), D.bounds(a), D.bounds(b), D.bounds(c), D.allowed(a, 0), D.allowed(a, 1e-9), D.allowed(b, 1.5),
                ["1 GPUs", "1 boxes", "1 copies", "11 pieces", "1 ms", "1 times", "1 s"].map(cx.single)];""", card.spec())
    assert got == [card.sentence(), "above 0, to 1,000", "a whole number from 1 to 8", "from 10⁻⁶ to 1", False, True, False,
                   ["1 GPU", "1 box", "1 copy", "11 pieces", "1 ms", "1 times", "1 s"]]
    assert [one(x) for x in ("1 GPUs", "1 boxes", "1 copies", "11 pieces", "1 ms", "1 times", "1 s")] == got[-1]
    with pytest.raises(ValueError, match="field 'parts': value is 1.5; allowed with whole=True: whole numbers"):
        Field(c, 1.5, "parts", lo=1, hi=8, whole=True)


def test_every_input_has_a_name(page):
    box = fresh(page)
    for role, count in (("combobox", 1), ("textbox", 2), ("checkbox", 1), ("radio", 3)):
        found = box.get_by_role(role)
        assert found.count() == count
        assert all(found.nth(i).evaluate("e => (e.labels[0] || {}).textContent") for i in range(count)), role
    assert box.locator("fieldset > legend").inner_text() == "Your numbers"
    assert box.get_by_role("radiogroup", name="GPU").count() == 1


@pytest.mark.parametrize("width", [1280, 768, 375, 320])
def test_nothing_leaves_the_card(page, width):
    page.set_viewport_size({"width": width, "height": 900})
    fresh(page, "#tensor-ranks=2_1_262144_5_0")
    assert page.evaluate("""() => [...document.querySelectorAll('.cx-decide')].flatMap((box) => { const b = box.getBoundingClientRect();
        return [...box.querySelectorAll('*')].filter((e) => { const r = e.getBoundingClientRect();
            return r.width > 1 && (r.right > b.right || r.left < b.left); })
          .concat(b.right > innerWidth ? [box] : []).map((e) => e.outerHTML.slice(0, 80)); })""") == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    if width <= 375:
        assert page.locator("#tensor-ranks tbody th").last.inner_text().replace("\\n", " ").startswith("t = 16")
    page.set_viewport_size({"width": 1280, "height": 900})

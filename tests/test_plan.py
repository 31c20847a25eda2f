"""The page "Plan a run" says what Python says: prices, rules, numbers of layouts, the best one; and it needs no server."""
import gzip
import json
import os
import random
import re
from dataclasses import replace
from pathlib import Path

import make_plan
import pytest

import browser
from capacity import Layout, cli, cluster, clusters_from_toml, daly_interval, estimate, model, model_from_config
from capacity.footprint import PARTS
from capacity.formulas import REGISTRY
from capacity.hardware import clusters
from capacity.launch import DIALECTS, launch_options
from capacity.legality import DEGREES, divisors
from capacity.planner import MANY, Failures, plan, sequences
from capacity.step import CAUSES
from capacity.transformer import models

CONFIGS = json.loads((Path(__file__).parent/"configs.json").read_text())["models"]
JOB = "(s) => document.getElementById('cx-plan').jobOf({...document.getElementById('cx-plan').START, ...s})"
PRICES = """jobs => { const page = document.getElementById('cx-plan'); return jobs.map(([s, layouts]) => {
    const job = page.jobOf({...page.START, ...s}); return job.wrong ? job : {vocab: job.q.vocab, steps: job.steps, prices: layouts.map(l => page.price(job, l))}; }); }"""
SEARCH = """s => { const page = document.getElementById('cx-plan'), job = page.jobOf({...page.START, ...s});
    const found = page.search(job), least = found.least && found.least.memory;
    return {...found, least, splits: found.splits.map(s => [[s.tp, s.pp, s.cp, s.ep], s.best && [s.best.time, s.best.memory], !!s.pruned])}; }"""
LAUNCH = """jobs => { const page = document.getElementById('cx-plan'); return jobs.map(([s, l]) => {
    const job = page.jobOf({...page.START, ...s}), q = {...job.q, ...l};
    return Object.values(page.DIALECTS).map(d => [page.cannot(d, q), page.launched(d, q)]); }); }"""
ONLY = """([s, only]) => { const page = document.getElementById('cx-plan'); return page.search({...page.jobOf({...page.START, ...s}), only}).best; }"""


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """The planner alone, in a file that a browser opens."""
    if not browser.find():
        (pytest.fail if os.environ.get("CI") else pytest.skip)(browser.MISSING)
    file = tmp_path_factory.mktemp("plan")/"plan.html"
    file.write_text(f'<!doctype html><meta charset="utf-8"><body>{make_plan.html()}</body>', encoding="utf-8")
    with browser.chromium() as chromium:
        page = chromium.new_page()
        page.log = browser.Log(page)
        page.goto(file.as_uri())
        page.wait_for_function("document.documentElement.dataset.found")
        yield page


@pytest.fixture(scope="module")
def search(page):
    """What the page finds for a job, which is searched once."""
    found = {}

    def search(s):
        if (key := tuple(s.items())) not in found:
            found[key] = page.evaluate(SEARCH, s)
        return found[key]
    return search


def setting(name, machine, batch, seq_len, format="bf16", **limits):
    """What the form's fields hold."""
    return dict(model=name, machine=machine.key, devices=str(machine.devices), batch=str(batch*seq_len), seq=str(seq_len), format=format,
                **{k: ", ".join(map(str, v)) for k, v in limits.items()})


def random_job(rng):
    """A model, a machine, a batch, a length, a format, a legal layout."""
    while True:
        name, machine = rng.choice(list(models())), clusters()[rng.choice(list(clusters()))]
        shape, node, seq_len = model(name), machine.node, 2**rng.randint(9, 15)
        devices = rng.choice([node, node//2, *(node*k for k in (2, 3, 4, 8, 16, 32))])
        machine, batch = machine.sized(devices), rng.choice([1, 3])*2**rng.randint(2, 10)
        pick = lambda n: rng.choice([k for k in divisors(n) if k <= 16])                            # noqa: E731
        tp, pp = pick(devices), pick(devices)
        cp = pick(max(devices//(tp*pp), 1))
        dp = devices//(tp*pp*cp)
        if dp*tp*pp*cp != devices or batch % dp:
            continue
        lay = Layout(batch=batch, tp=tp, pp=pp, cp=cp, dp=dp, microbatch=pick(batch//dp), chunks=rng.choice([1, 1, 2, 4]),
                     ep=pick(shape.experts.count) if shape.experts else 1, zero=rng.randint(0, 3), recompute=rng.choice([0, 0.3, 0.5, 1]),
                     sequence_parallel=rng.random() < 0.5, cheap_recompute=rng.choice([0, 0, 0.4, 1]))
        if rng.random() < 0.5 and pp > 1:
            lay = replace(lay, schedule=rng.choice([1, 2, 3, 3]))
            lay = replace(lay, chunks=1 + lay.schedule//3)
        if lay.zero:
            lay = replace(lay, shards=rng.choice([None, *divisors(dp*cp)]))
        broken = lay.check(replace(shape, vocab=2**20*9*tp), machine, seq_len)                      # any vocabulary is padded
        if not broken:
            return name, machine, batch, seq_len, rng.choice([*make_plan.machine(clusters()[machine.key])["formats"]]), lay


def test_prices_are_those_of_estimate(page):
    """500 random jobs, dense and sparse, in 16, 8 and 4 bits: the seconds, the bytes, the range, to 1e-12."""
    rng = random.Random(5)
    jobs = [random_job(rng) for _ in range(500)]
    asked = [[setting(*job[:-1]), [letters_of(job[-1])]] for job in jobs]
    kinds = set()
    for (name, machine, _, seq_len, format, lay), got in zip(jobs, page.evaluate(PRICES, asked)):
        assert "wrong" not in got, got
        shape = replace(model(name), vocab=got["vocab"])
        step = estimate(shape, machine, lay, seq_len, format=format)
        kinds.add((make_plan.kind(shape), format))
        low, high = step.interval()
        want = dict(time=step.time, memory=step.memory, mfu=step.mfu, low=low, high=high, **step.seconds,
                    **{f"{part}_bytes": getattr(step.footprint, part) for part in PARTS[:6]})
        mine = got["prices"][0]
        assert mine.keys() == want.keys() == set(make_plan.OUTPUTS)
        assert sum(float(mine[k]) for k in CAUSES) == pytest.approx(mine["time"], rel=1e-12)
        for k, x in want.items():
            assert mine[k] == pytest.approx(float(x), rel=1e-12, abs=1e-12*float(step.time) if k in CAUSES else 0), (name, k, lay)
    assert len(kinds) == 9, "three kinds of models, three formats"


@pytest.mark.parametrize("name, machine, batch, seq_len, limits", [
    ("llama3-8b", cluster("dgx-h100", 64), 512, 8192, {}), ("gpt3-175b", cluster("dgx-a100", 1120), 1680, 2048, dict(zero=(0, 1), tp=(8, 4, 1))),
    ("qwen3-30b-a3b", cluster("nvl72", 144), 288, 4096, dict(recompute=(0, 1))), ("deepseek-v3", cluster("deepseek-h800", 256), 480, 4096, {}),
    ("deepseek-v3", cluster("deepseek-h800", 256), 480, 4096, dict(copies=(1, 4), tp=(1, 2, 8))),
    ("llama3-405b", cluster("dgx-h100", 16), 64, 8192, {}), ("llama3-8b", cluster("dgx-h100", 48), 7, 8192, {})],
    ids=lambda x: x if isinstance(x, str) else "")
def test_the_search_is_that_of_python(page, search, name, machine, batch, seq_len, limits):
    """As many legal layouts, as many that fit, the same best time; the same vocabulary; a reason where there is none."""
    want = plan(model(name), machine, batch, seq_len, **limits)
    got = search(setting(name, machine, batch, seq_len, **limits))
    assert (got["legal"], got["fits"]) == (want.legal, want.fits if want.legal <= MANY else None)
    assert page.evaluate(PRICES, [[setting(name, machine, batch, seq_len, **limits), []]])[0]["vocab"] == want.model.vocab
    if want:
        assert got["best"]["time"] == pytest.approx(want.best.time, rel=1e-12)
        assert got["best"]["memory"] == pytest.approx(want.best.memory, rel=1e-12)
    elif want.legal:
        assert got["least"] > 0.9*machine.device.memory
    else:
        assert any(w["says"] in " ".join(want.why) for w in got["whys"])


def test_what_the_page_does_not_price_is_nowhere_the_best(search):
    """Of 18 million layouts: the best of each split, as Python finds it; and few enough are left that the rest of them takes no time."""
    job = "deepseek-v3", cluster("deepseek-h800", 256), 480, 4096
    found = search(setting(*job))
    want = {(c.layout.tp, c.layout.pp, c.layout.cp, c.layout.ep): (c.time, c.memory) for c in plan(model(job[0]), *job[1:], keep=10**6, splits=True).candidates}
    got = {tuple(key): best for key, best, _ in found["splits"] if best}
    assert found["fits"] is None and got.keys() == want.keys() and sum(pruned for *_, pruned in found["splits"]) > 100
    for key, (time, memory) in want.items():
        assert got[key] == pytest.approx([time, memory], rel=1e-12), key


def letters_of(layout):
    """The layout as the page has it."""
    return {k: getattr(layout, k) for k in (*DEGREES, "zero", "recompute", "cheap_recompute")} | dict(copies=int(layout.copies), sequence_parallel=int(layout.sequence_parallel))


def test_the_page_prints_the_launch_options_of_the_package(page):
    """600 random layouts, three frameworks: the same text, or the same reasons."""
    rng, said = random.Random(4), {}
    jobs = [random_job(rng) for _ in range(600)]
    found = page.evaluate(LAUNCH, [[setting(*job[:-1]), letters_of(job[-1])] for job in jobs])
    for (name, machine, _, seq_len, _, lay), got in zip(jobs, found):
        for framework, (reasons, text) in zip(DIALECTS, got, strict=True):
            shape = replace(model(name), vocab=2**20*9*lay.tp)
            try:
                want = launch_options(framework, shape, machine, lay, seq_len)
            except ValueError as error:
                assert str(error).endswith(f"cannot run this layout. {' '.join(reasons)}") and reasons
            else:
                assert (reasons, text) == ([], want)
            said.setdefault(framework, set()).add(bool(reasons))
    assert said == dict.fromkeys(DIALECTS, {False, True})


def test_the_best_that_a_framework_can_run(page):
    name, machine, batch, seq_len = "llama3-8b", cluster("dgx-h100", 8), 16, 8192
    every = plan(model(name), machine, batch, seq_len, keep=1000, prune=False, tp=(2, 4), pp=(1, 2), recompute=(0, 0.25))
    for framework in DIALECTS:
        got = page.evaluate(ONLY, [setting(name, machine, batch, seq_len, tp=(2, 4), pp=(1, 2), recompute=(0, 0.25)), framework])
        for want in every.candidates:
            try:
                launch_options(framework, every.model, machine, want.layout, seq_len)
                break
            except ValueError:
                continue
        assert got["time"] == pytest.approx(want.time, rel=1e-12)


@pytest.mark.parametrize("framework, limits", [("torchtitan", dict(pp=(2,), zero=(2, 3), recompute=(0, 1))), ("megatron", dict(zero=(0, 1), recompute=(0.25, 1))),
                                               ("deepspeed", {})])
def test_shell_and_page_launch_the_same(page, capsys, framework, limits):
    s = setting("llama3-70b", cluster("dgx-h100", 256), 512, 8192, **limits)
    said = page.evaluate("""([s, only]) => { const page = document.getElementById('cx-plan'), job = page.jobOf({...page.START, ...s}), d = page.DIALECTS[only];
        return page.launched(d, {...job.q, ...page.search({...job, only}).best}); }""", [s, framework])
    words = [word for k, v in limits.items() for word in (f"--{k}", ",".join(map(str, v)))]
    assert cli.main(["plan", "llama3-70b", "--cluster", "dgx-h100:256", "--batch", "512", "--seq", "8192", "--emit", framework, *words]) == 0
    assert capsys.readouterr().out == said + "\n"


def test_the_options_can_be_copied_or_the_reason_read(page):
    page.evaluate("location.hash = '#model=llama3-8b&machine=dgx-h100&devices=64&batch=1M&seq=8192&tp=2&sequence_parallel=1&framework=torchtitan'")
    page.wait_for_function("document.getElementById('cx-command').textContent.startsWith('parallelism=')")
    assert "tensor_parallel_degree=2" in page.inner_text("#cx-command") and page.is_hidden("#cx-cannot")
    page.select_option("#cx-framework", "deepspeed")
    page.wait_for_function("document.getElementById('cx-cannot').textContent.includes('it can run none')")
    assert "no option for sequence parallelism" in page.inner_text("#cx-cannot") and page.is_hidden("#cx-code") and "framework=deepspeed" in page.url
    page.evaluate("location.hash = '#model=llama3-8b&machine=dgx-h100&devices=64&batch=1M&seq=8192&framework=deepspeed&tp=2&zero=3'")
    page.click("#cx-cannot button")
    page.wait_for_function("document.getElementById('cx-command').textContent.includes('zero_optimization')")
    assert '"autotp_size": 2' in page.inner_text("#cx-command") and "Your layout" in page.inner_text("#cx-answer")


def test_degrees_that_do_not_divide_the_devices_are_named(page):
    """As `plan` names them; a rule that refuses others is not the reason."""
    for name, typed, values in (("tp", "3", 3), ("pp", "3", 3), ("cp", "3, 5", (3, 5)), ("dp", "3", 3)):
        page.evaluate(f"location.hash = '#model=llama3-8b&machine=dgx-h100&devices=64&batch=1M&seq=8192&{name}={typed}'")
        words = f"{name} = {typed.replace(', ', ' or ')} does not divide devices = 64."
        page.wait_for_function(f"document.getElementById('cx-answer').textContent.includes('For one: {words}') && !document.querySelector('.stale')")
        assert page.inner_text("#cx-answer").count("For one") == 1
        assert f"For one: {words}" in plan(model("llama3-8b"), cluster("dgx-h100", 64), 128, 8192, **{name: values}).why


def test_a_printed_answer_ends_its_sentences(page):
    """What can only be pressed is not printed, and leaves no colon behind."""
    page.evaluate("location.hash = '#model=llama3-8b&machine=dgx-h100&devices=64&batch=1M&seq=8192'")
    page.wait_for_function("document.getElementById('cx-answer').textContent.includes('64 ×') && !document.querySelector('.stale')")
    assert re.search(r"they add [\d.]+ %: count them\.", page.inner_text("#cx-answer"))
    page.emulate_media(media="print")
    try:
        assert re.search(r"they add [\d.]+ %\.", page.inner_text("#cx-answer"))
    finally:
        page.emulate_media(media="screen")


TYPED = """cases => { const page = document.getElementById('cx-plan'); return cases.map(([batch, seq]) => page.sequences(batch, seq)); }"""


def test_a_batch_is_read_as_python_reads_it(page):
    """Numbers, prefixes, units and lengths, each with each: the same sequences, or the same words of refusal."""
    numbers = "0 0.5 0.0625 1 1e3 1.5 3 4 4.1 7.5 128 131.072 1,000 4_194_304 4194304 1e12 1e99 -3".split()
    cases = [(f"{n}{gap}{prefix}{unit}", seq) for n in numbers for gap, prefix in (("", ""), ("", "k"), (" ", "K"), ("", "M"), (" ", "G"), ("", "B"), ("", "T"), ("", "m"))
             for unit in ("", " token", " tokens", "sequences", " bytes") for seq in (1, 1000, 4096, 8000, 8192)]
    said = set()
    for (batch, seq), got in zip(cases, page.evaluate(TYPED, cases), strict=True):
        try:
            want = dict(n=sequences(batch, seq))
        except ValueError as error:
            want = dict(error=str(error))
        assert got == want, (batch, seq)
        said.add("".join(c for c in want.get("error", "")[-40:] if c.isalpha()))
    assert len(said) > 5
    assert [page.evaluate(JOB, dict(batch=batch))["q"]["batch"] for batch in ("4 M", "128M", "4,194,304", "1 048 576", "512 sequences")] == [512, 16384, 512, 128, 512]


def test_a_count_is_written_in_digits(page):
    """k of a length is 1,000 to some and 1,024 to others: shell and page refuse it in the same words."""
    for text in ("8k", "8K", "1.5", "0", "1e4", "-8", "many", "8Ki"):
        got = page.evaluate(JOB, dict(seq=text))
        with pytest.raises(ValueError) as refused:
            cli._count(text, got["note"].split(" = ")[0])
        assert got["wrong"] == "seq" and got["note"] == f"{refused.value}." and ("1,024" in got["note"]) == (text in ("8k", "8K"))
    for text in ("8192", "8,192", "8 192", "8_192"):
        assert page.evaluate(JOB, dict(seq=text))["q"]["seq_len"] == 8192
    assert "A step is 512 sequences, 4,194,304 tokens;" in page.evaluate(JOB, {})["note"]


def test_one_token_is_one_step(page):
    assert page.evaluate(JOB, dict(tokens="1"))["note"].endswith("; 1 step.")
    assert page.evaluate(JOB, dict(tokens="1T"))["note"].endswith(" steps.")


def test_a_million_layouts_a_second(page):
    found = [page.evaluate(SEARCH, setting("llama3-70b", cluster("dgx-h100", 512), 512, 8192)) for _ in range(3)]
    assert max(f["legal"]/f["ms"]*1e3 for f in found) > 1e6


FIRST = """s => { const page = document.getElementById('cx-plan'), job = page.jobOf({...page.START, ...s}), began = performance.now(); let first = 0;
    try { page.search(job, part => { if (part.best) { first = performance.now() - began; throw first; } }); } catch (e) { if (e !== first) throw e; }
    return first || performance.now() - began; }"""


def test_the_first_answer_stands_within_half_a_second(page):
    """The first part that a search tells has a best one, of jobs of a million and of 26 million layouts; the least of three, as others work too."""
    for s in (setting("llama3-70b", cluster("dgx-h100", 1024), 512, 8192), setting("deepseek-v3", cluster("deepseek-h800", 2048), 15360, 4096)):
        took = [page.evaluate(FIRST, s) for _ in range(3)]
        assert 0 < min(took) < 500, took


def test_whatever_is_typed_is_answered(page):
    """A number of no use, in any field: the field is named, the note says what to write, and nothing is left of the last answer."""
    for field, text, words in (("tokens", "", "is no number"), ("tokens", "lots", "is no number"), ("tokens", "1e99", "more than there is"), ("devices", "0", "devices = '0'; allowed: a whole number in digits"),
                               ("devices", "7.5", "whole number"), ("devices", "1048577", "At most 1,048,576"), ("batch", "-4", "batch = '-4 tokens'; allowed"), ("batch", "1e20", "at most 1,000,000,000 sequences, here of 8,192 tokens"),
                               ("batch", "4.1M", "such as 500 sequences, 4,096,000 tokens, or 501 sequences"),
                               ("seq", "0.5", "whole number"), ("days", "soon", "no number of days"), ("price", "0", "no number of dollars"), ("share", "2", "above 0 and at most 1"),
                               ("tp", "two", "whole numbers"), ("tp", "0", "tensor ranks: whole numbers from 1, with"), ("cp", "2,", "whole numbers from 1"),
                               ("zero", "4", "whole numbers from 0 to 3"), ("sequence_parallel", "2", "from 0 to 1"), ("tokens", "1e99", "“1e99” is more than"), ("recompute", "1.5", "shares from 0 to 1"), ("restart", "-1 s", "is no time")):
        got = page.evaluate(JOB, {"mtbf": "5 years", field: text})
        assert got["wrong"] == field and words in got["note"], (field, text, got)
    page.evaluate("location.hash = '#model=llama3-8b&machine=dgx-h100&devices=64&batch=1M&seq=8192'")
    page.wait_for_function("document.getElementById('cx-answer').textContent.includes('64 ×') && !document.querySelector('.stale')")
    for field, text in (("price", "two"), ("tokens", "")):
        page.fill(f"#cx-job [name={field}]", text)
        page.wait_for_selector(f"#cx-job [name={field}][aria-invalid=true]")
        assert page.inner_text("#cx-answer") == "" and page.is_hidden("#cx-found")
        page.fill(f"#cx-job [name={field}]", "3")
        page.wait_for_function("document.getElementById('cx-answer').textContent.includes('64 ×') && !document.querySelector('[aria-invalid]')")
    page.evaluate("location.hash = '#model=gpt5&machine=moon&format=fp3&framework=nemo&devices=64&layout=a_b'")
    page.wait_for_function("document.getElementById('cx-answer').textContent.includes('64 ×') && !document.querySelector('.stale')")
    note = page.inner_text("#cx-note")
    for field, typed, taken in (("model", "gpt5", "llama3-70b"), ("machine", "moon", "dgx-h100"), ("format", "fp3", "bf16"), ("framework", "nemo", "megatron")):
        assert f"There is no {field} “{typed}” here; this is {taken}." in note
    assert page.input_value("#cx-job [name=model]") == "llama3-70b" and "model=llama3-70b" in page.url and page.is_visible("#cx-note.bad")
    page.fill("#cx-job [name=devices]", "128")
    page.wait_for_function("document.getElementById('cx-answer').textContent.includes('128 ×') && !document.querySelector('.stale')")
    assert "There is no" not in page.inner_text("#cx-note")


def test_a_keyboard_keeps_its_place(page):
    """What redraws itself under the cursor keeps it."""
    page.evaluate("location.hash = '#model=llama3-8b&machine=own&devices=64&batch=1M&seq=8192'")
    page.wait_for_function("document.getElementById('cx-answer').textContent.includes('64 ×') && !document.querySelector('.stale')")
    page.select_option("#cx-job [name=device]", "own")
    assert page.evaluate("document.activeElement.name") == "device"
    page.wait_for_function("document.getElementById('cx-answer').textContent.includes('your device') && !document.querySelector('.stale')")
    page.focus("#cx-map [data-pick][aria-pressed=false]")
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.matches('#cx-map [aria-pressed=true]')") and "layout=" in page.url
    page.click("#cx-answer [data-pick]")
    assert page.evaluate("document.activeElement.id") == "cx-answer" and "layout=" not in page.url
    page.focus("#cx-sizes tr:not(.on) [data-devices]")
    page.evaluate("const { price } = document.getElementById('cx-job').elements; price.value = '3'; price.dispatchEvent(new Event('input', { bubbles: true }))")
    assert "cost" in page.inner_text("#cx-sizes") and page.evaluate("document.activeElement.matches('#cx-sizes tr:not(.on) [data-devices]')")
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.name") == "devices"


def test_the_printed_page_has_no_controls_and_clips_nothing(page):
    page.evaluate("location.hash = '#model=llama3-8b&machine=own&devices=64&batch=1M&seq=8192&price=2'")
    page.wait_for_function("document.getElementById('cx-answer').textContent.includes('It costs') && !document.querySelector('.stale')")
    page.emulate_media(media="print")
    size = page.viewport_size
    page.set_viewport_size(dict(width=700, height=900))
    clipped = page.evaluate("""[...document.querySelectorAll('#cx-plan *')].filter(e => e.clientWidth && e.scrollWidth > e.clientWidth + 2
        && getComputedStyle(e).overflowX !== 'visible').map(e => e.outerHTML.slice(0, 80))""")
    hidden = ["details", ".yours", "#cx-copy", "[type=radio]", "[type=file]", "textarea"]
    shown = [q for q in hidden if page.is_visible(f"#cx-plan {q} >> nth=0")]
    page.emulate_media(media="screen")
    page.set_viewport_size(size)
    assert clipped == [] and shown == []


def test_no_name_is_cut_and_what_scrolls_fades(page):
    """Each device's name has room; a matrix that is wider than a phone fades on the right until it is scrolled to its end, and keeps its row names."""
    size = page.viewport_size
    page.evaluate("location.hash = '#model=llama3-8b&machine=own&devices=1024&batch=4M&seq=8192'")
    try:
        for width in (1280, 375):
            page.set_viewport_size(dict(width=width, height=900))
            page.wait_for_function("document.getElementById('cx-answer').textContent.includes('1,024 ×') && !document.querySelector('.stale')")
            assert page.evaluate("""() => { const s = document.querySelector('#cx-job [name=device]'), room = s.offsetWidth, c = s.parentElement.appendChild(s.cloneNode(true));
                c.style = 'field-sizing: content; width: auto'; let need = 0; for (const o of c.options) { c.value = o.value; need = Math.max(need, c.offsetWidth); } c.remove(); return room - need; }""") >= 0
            assert page.evaluate("""() => { const s = document.querySelector('#cx-job [name=machine]'), before = s.value, line = s.closest('p').clientWidth;
                s.style.maxWidth = 'none'; let need = 0; for (const o of s.options) { s.value = o.value; need = Math.max(need, s.offsetWidth); }
                s.value = before; s.style.maxWidth = ''; return line - need; }""") >= 0
        page.evaluate("document.querySelectorAll('#cx-map tr > :nth-child(2)').forEach(e => { e.style.minWidth = '12rem'; }); dispatchEvent(new Event('resize'))")
        cut = "getComputedStyle(document.getElementById('cx-map')).getPropertyValue('--cut')"
        assert page.evaluate(cut) == "1" and "linear-gradient" in page.evaluate("getComputedStyle(document.getElementById('cx-map')).maskImage")
        page.evaluate("document.getElementById('cx-map').scrollLeft = 9999")
        page.wait_for_function(f"{cut} === '0'")
        assert page.evaluate("(m => m.querySelector('tbody th').getBoundingClientRect().left - m.getBoundingClientRect().left)(document.getElementById('cx-map'))") >= 0
    finally:
        page.set_viewport_size(size)


def test_the_address_keeps_the_setting(page):
    page.evaluate("location.hash = '#model=mixtral-8x7b&machine=dgx-a100&devices=64&batch=1M&seq=4096&zero=1&price=2&days=900&start=2027-01-01'")
    page.wait_for_function("document.getElementById('cx-answer').textContent.includes('A100') && !document.querySelector('.stale')")
    said = page.inner_text("#cx-answer")
    assert "ZeRO-1" in said and "It costs $" in said and "It ends on" in said and "900 days" in said
    assert page.input_value("[name=model]") == "mixtral-8x7b" and page.input_value("#cx-job [name=zero]") == "1"
    page.fill("#cx-own [name=tp]", "3")
    assert "32 attention heads do not divide over tp = 3." in page.inner_text("#cx-verdict")
    page.fill("#cx-own [name=tp]", "1")
    page.fill("#cx-job [name=devices]", "12")
    page.wait_for_function("document.getElementById('cx-note').textContent.includes('whole groups')")
    assert page.input_value("#cx-job [name=devices]") == "12" and page.is_hidden("#cx-found")


def changed(config, rng):
    """A config with a field or two taken away, or given another value."""
    config = json.loads(json.dumps(config))
    fields = config.get("text_config", config)
    for _ in range(rng.choice([1, 1, 2])):
        name = rng.choice([*fields, "attention_bias", "mlp_bias", "index_n_heads", "moe_layer_freq", "head_dim"])
        if rng.random() < 0.4:
            fields.pop(name, None)
        else:
            fields[name] = rng.choice([None, 0, 1, 2, 64, 128, -1, 0.5, True, False, "x", [], [0]])
    return config


def test_a_config_is_read_as_python_reads_it(page):
    """All tested families, and 600 changed ones: the same letters and counts of parameters, or the same words of refusal."""
    rng = random.Random(12)
    configs = [entry["config"] for entry in CONFIGS.values()]
    configs += [changed(rng.choice(configs), rng) for _ in range(600)]
    found = page.evaluate("""configs => { const page = document.getElementById('cx-plan'); return configs.map(config => {
        const s = {...page.START, model: 'own', config: JSON.stringify(config)}, m = page.jobOf(s), read = page.configured(config);
        const again = read.config && page.configured(JSON.parse(read.config));
        return read.error ? read : {...read, q: m.model.q, params: page.PARAMS[read.kind](m.model.q), again: again.config === read.config}; }); }""", configs)
    refused = set()
    for config, got in zip(configs, found):
        try:
            want = model_from_config(config)
        except ValueError as error:
            said = str(error).removeprefix("config: ")
            refused.add(said.split(" ")[0] if "unknown" not in said else "unknown")
            if "close matches" in said or "close matches" in got["error"]:
                said, got["error"] = (re.sub("; (close matches|known): .*?(;|$)", r"\2", text) for text in (said, got["error"]))
            assert got["error"] == said
            continue
        assert "error" not in got, (got, config)
        assert got["params"] == [want.params, want.active_params] and got["kind"] == make_plan.kind(want) and got["note"] == want.note
        letters = make_plan.shape(want)
        assert {k: x for k, x in got["q"].items() if x and k != "model"} == {k: x for k, x in letters.items() if k != "model"}
        assert got["context"] == (want.context or 0) and got["again"], "the address keeps what was read"
    assert len(refused) > 25, "many ways to be refused"
    assert {make_plan.kind(model_from_config(entry["config"])) for entry in CONFIGS.values()} == {*make_plan.kinds()}


def test_a_machine_of_ones_own_is_that_of_the_package(page, tmp_path):
    """80 random machines: the file that the page writes, read by the package, gives the prices of the page."""
    rng, path, priced = random.Random(8), tmp_path/"mine.toml", 0
    pick = lambda least, most, unit: f"{rng.uniform(least, most):.4g} {unit}"                       # noqa: E731
    while priced < 80:
        node = rng.choice([4, 6, 8, 16])
        devices, format = rng.choice([node//2, node, 4*node, 10*node]), rng.choice(["bf16", "fp8"])
        s = dict(model=rng.choice(["llama3-8b", "mixtral-8x7b", "deepseek-v3"]), machine="own", devices=str(devices), batch=str(2**20), seq="4096",
                 format=format, node=str(node), device=rng.choice(["own", "own", "h100-sxm", "b200"]), memory=pick(10, 300, "GB"), bandwidth=pick(1, 9, "TB/s"),
                 peak_bf16=pick(800, 3000, "TFLOP/s"), measured_bf16=pick(300, 800, "TFLOP/s"), peak_fp8=pick(2, 5, "PFLOP/s"), measured_fp8=pick(800, 1900, "TFLOP/s"),
                 alpha1=pick(1, 9, "us"), beta1=pick(50, 900, "GB/s"), alpha2=pick(1, 30, "us"), beta2=rng.choice([pick(10, 800, "Gb/s"), pick(5, 100, "GB/s")]))
        lay = Layout(batch=256, dp=devices, zero=rng.randint(0, 3), recompute=rng.choice([0, 0.5])) if 256 % devices == 0 else None
        if lay is None:
            continue
        path.write_text(page.evaluate("([s, n]) => document.getElementById('cx-plan').toml(s, n)", [s, devices]))
        machine = clusters_from_toml(path)["mine"]
        got, = page.evaluate(PRICES, [[s, [letters_of(lay)]]])
        assert "wrong" not in got, got
        step = estimate(replace(model(s["model"]), vocab=got["vocab"]), machine, lay, 4096, format=format)
        low, high = step.interval()
        for k, x in dict(time=step.time, memory=step.memory, mfu=step.mfu, low=low, high=high, **step.seconds).items():
            assert got["prices"][0][k] == pytest.approx(float(x), rel=1e-12, abs=1e-12*float(step.time)), (k, s)
        priced += 1


def test_what_is_wrong_with_ones_own_is_named(page):
    """Field, value, and what is allowed."""
    for change, field, words in (
            (dict(memory="80"), "memory", "its memory = '80'; allowed: a number and one of B, kB, MB, GB"), (dict(memory="0 GB"), "memory", "a number above 0"),
            (dict(bandwidth="3.35 TB"), "bandwidth", "= '3.35 TB'; allowed: a number and one of B/s"), (dict(beta2="fast"), "beta2", "bandwidth between nodes = 'fast'"),
            (dict(alpha1="-1 us"), "alpha1", "latency in a node = '-1 us'; allowed: a number and one of s, ms, us, ns"), (dict(peak_bf16=""), "peak_bf16", "peak in bf16 = ''"),
            (dict(measured_fp8=""), "measured_fp8", "fastest product in fp8 = ''"), (dict(node="8.5"), "node", "devices in a node = '8.5'; allowed: a whole number")):
        got = page.evaluate(JOB, dict(machine="own", device="own") | change)
        assert got["wrong"] == field and words in got["note"], got
    assert "wrong" not in page.evaluate(JOB, dict(machine="own", device="own", peak_fp8="", measured_fp8="", alpha2="0 s"))
    for text, words in (("", "Paste a config.json"), ("{", "That is no JSON"), ("[1]", "allowed: the fields of a model"), ('{"model_type": "llam"}', "close matches: llama; num_hidden_layers"),
                        (json.dumps(CONFIGS["meta-llama/Meta-Llama-3.1-8B"]["config"] | dict(num_hidden_layers=10**9)), "at most 4096"),
                        (json.dumps(CONFIGS["meta-llama/Meta-Llama-3.1-8B"]["config"] | dict(num_key_value_heads=7)), "num_key_value_heads = 7; allowed: a divisor of num_attention_heads = 32")):
        got = page.evaluate(JOB, dict(model="own", config=text))
        assert got["wrong"] == "config" and words in got["note"], got


def test_a_file_is_enough_and_the_address_keeps_it(page, tmp_path):
    path = tmp_path/"config.json"
    path.write_text(json.dumps(CONFIGS["Qwen/Qwen3-1.7B"]["config"] | dict(architectures=["Qwen3ForCausalLM"], _name_or_path="me/mine")))
    page.evaluate("location.hash = '#model=llama3-8b&machine=dgx-a100&devices=16&batch=512k'")
    page.wait_for_function("document.getElementById('cx-answer').textContent.includes('A100') && !document.querySelector('.stale')")
    assert page.is_hidden("#cx-config") and page.is_hidden("#cx-machine")
    page.select_option("#cx-job [name=model]", "own")
    page.wait_for_function("document.getElementById('cx-note').textContent.includes('choose the file')")
    page.set_input_files("#cx-file", path)
    page.wait_for_function("document.getElementById('cx-note').textContent.includes('mine: 1.72 B parameters') && !document.querySelector('.stale')")
    page.select_option("#cx-job [name=machine]", "own")
    page.fill("#cx-job [name=beta2]", "100 Gb/s")
    page.wait_for_function("location.hash.includes('beta2=100') && !document.querySelector('.stale')")
    assert page.input_value("#cx-job [name=device]") == "a100-80gb" and "architectures" not in page.url
    said, url = page.inner_text("#cx-answer .first"), page.url
    page.evaluate("location.hash = '#model=llama3-8b'")
    page.wait_for_function("document.getElementById('cx-answer').textContent.includes('H100')")
    page.goto(url)
    page.reload()
    page.wait_for_function("document.documentElement.dataset.found")
    assert page.inner_text("#cx-answer .first") == said and page.input_value("#cx-job [name=beta2]") == "100 Gb/s"


def test_failures_are_those_of_python(page):
    """Random times between failures, of a checkpoint, of a restart: how much longer it takes, or that no work lasts."""
    rng, lasting = random.Random(26), 0
    cases = [dict(mtbf=10**rng.uniform(4, 9), checkpoint=10**rng.uniform(0, 3), restart=rng.choice([0, 10**rng.uniform(0, 4)]),
                  devices=2**rng.randint(0, 17)) for _ in range(300)]
    found = page.evaluate("""cases => { const page = document.getElementById('cx-plan');
        return cases.map(q => page.LASTS.holds(q) ? page.failing(q) : page.LASTS.sentence(q)); }""", cases)
    for q, got in zip(cases, found):
        failures = Failures(**{k: v for k, v in q.items() if k != "devices"})
        if reasons := failures.hopeless(q["devices"]):
            assert (got,) == reasons
            continue
        lasting += 1
        work = daly_interval(q["checkpoint"], q["mtbf"]/q["devices"])
        cancelled = 2e-16/((work + q["checkpoint"])*q["devices"]/q["mtbf"])                  # exp(x) - 1 loses what x is below 1
        assert got == pytest.approx([work, failures.slowdown(q["devices"])], rel=max(1e-12, 4*cancelled))
    assert 100 < lasting < 300


def test_date_and_cost_count_failures(page):
    """On the page: the answer, its cost, and the sizes, each longer by what Python says."""
    s = setting("llama3-8b", cluster("dgx-h100", 64), 64, 8192) | dict(tokens="1e12")
    plain, failing = (page.evaluate(JOB, s | more) for more in ({}, dict(mtbf="2,000 h", checkpoint="2 min", restart="600")))
    assert plain["slow"] == 1 and failing["slow"] == pytest.approx(Failures(mtbf=7.2e6, checkpoint=120, restart=600).slowdown(64), rel=1e-12)
    for text, field in (("2,000 horses", "mtbf"), ("0 s", "mtbf"), ("1 s", "mtbf")):
        assert page.evaluate(JOB, s | dict(mtbf=text))["wrong"] == field
    page.evaluate("location.hash = '#model=llama3-8b&machine=dgx-h100&devices=64&batch=1M&seq=8192&price=2'")
    page.wait_for_function("document.getElementById('cx-answer').textContent.includes('It costs') && !document.querySelector('.stale')")
    before = page.inner_text("#cx-answer")
    page.click("#cx-answer [data-failures]")
    page.wait_for_function("document.getElementById('cx-answer').textContent.includes('a failure every') && !document.querySelector('.stale')")
    after = page.inner_text("#cx-answer")
    cost = [float(re.search(r"It costs \$([\d.]+)", said)[1]) for said in (before, after)]
    assert cost[1] > cost[0] and "mtbf=5.8+years" in page.url and page.input_value("[name=mtbf]") == "5.8 years"
    own = Failures(mtbf=5.8*365.25*86400, checkpoint=30).slowdown(64)
    assert f"{100*(1 - 1/own):.2g} % goes to failures" in after


def test_where_nothing_fits_it_says_what_helps(page):
    page.evaluate("location.hash = '#model=llama3-405b&machine=dgx-h100&devices=16&batch=512k&seq=8192'")
    page.wait_for_function("document.getElementById('cx-more')?.textContent.startsWith('It works on')")
    assert "Nothing fits" in page.inner_text("#cx-answer") and page.is_hidden("#cx-found")
    page.click("#cx-more button")
    page.wait_for_function("!document.getElementById('cx-found').hidden && !document.querySelector('.stale')")


def test_the_page_asks_nobody_and_is_light(page):
    assert [url for url in page.log.external if not url.startswith("file:")] == [] and page.log.console == []
    assert len(gzip.compress(make_plan.html().encode())) < 45_000, "as a server sends it"


def test_every_part_has_a_formula_or_is_fitted():
    assert set(make_plan.WORDS) == {*CAUSES, *(f"{part}_bytes" for part in PARTS[:6])}
    fitted = {k for k, (_, formula, *_) in make_plan.WORDS.items() if not formula}
    assert fitted == {"routing", "fixed"}
    assert {formula for _, formula, *_ in make_plan.WORDS.values() if formula} <= set(REGISTRY)

"""Players: the picture is the run, JavaScript and Python draw the same, keys work, bad input is refused by name."""
import functools
import gzip
import html
import json
import operator
import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from fractions import Fraction
from types import SimpleNamespace

import nbformat
import numpy as np
import pytest

import execute
import javascript
from capacity import stepper
from capacity.pictures.shapes import width
from capacity.witness.collectives import (binomial_broadcast, binomial_scatter, bruck_all_gather, chain_broadcast, double_tree_all_reduce,
                                 halving_doubling_all_reduce, hierarchical_all_reduce, recursive_doubling_all_reduce, ring_all_gather, ring_all_reduce)
from capacity.witness.spmd import Link, ProgramError, run, two_level
from figures import ROOT, alike, contrast, opened, rgb


def parts(P, blocks=None):
    """For every rank the blocks of its own part."""
    return [[frozenset({r})]*(blocks or P) for r in range(P)]


def numbers(comm, x):
    """Partners add numbers; nobody numbers the blocks."""
    comm.holds([x, None])
    got = comm.sendrecv(x, comm.rank ^ 1, comm.rank ^ 1)
    comm.holds([x, x + got])


def pairs(comm, x):
    """States that are no lists."""
    comm.holds({"mine": x})
    comm.holds({"mine": comm.sendrecv(x, (comm.rank + 1) % comm.size, comm.rank - 1 if comm.rank else comm.size - 1)})


def nested(comm, x):
    """Arrows one inside the other, whose labels have no room for both."""
    comm.holds([x]*2)
    to = {0: 4, 1: 3}
    if comm.rank in to:
        comm.send(x, to[comm.rank], tag=comm.rank)
    for a, b in to.items():
        if comm.rank == b:
            comm.recv(a, tag=a)


TWO = two_level(4, Link(name="NVLink"), Link(name="network"))
RUNS = {
    "ring": lambda: (run(ring_all_reduce, parts(4), operator.or_), {}),
    "tree": lambda: (run(binomial_broadcast, ["x"] + [None]*7), {}),
    "halving": lambda: (run(halving_doubling_all_reduce, parts(8), operator.or_), {}),
    "nodes": lambda: (run(hierarchical_all_reduce, parts(8), 4, operator.or_, link=TWO), {"group": 4}),
    "sixteen": lambda: (run(ring_all_reduce, parts(16), operator.or_), {}),
    "doubling": lambda: (run(recursive_doubling_all_reduce, [frozenset({r}) for r in range(8)], operator.or_), {}),
    "chain": lambda: (run(chain_broadcast, [list("abcd")] + [[None]*4]*4), {"block": "segment"}),
    "scatter": lambda: (run(binomial_scatter, [[f"<{r}>" for r in range(6)]] + [None]*5), {"group": 4}),
    "bruck": lambda: (run(bruck_all_gather, [f"b{r}" for r in range(5)]), {}),
    "fold": lambda: (run(halving_doubling_all_reduce, parts(6, 8), operator.or_), {}),
    "numbers": lambda: (run(numbers, [1.5, Fraction(1, 3), 7, -2]), {}),
    "nested": lambda: (run(nested, list("abcdefgh")), {}),
    "pairs": lambda: (run(pairs, ["a", "b", "c"]), {"holds": lambda state: [state["mine"]]}),
}


def make(name):
    recorded, options = RUNS[name]()
    return stepper(name, recorded, title=f'The "{name}" & <its>\' steps', **options)


def whole(P):
    return [frozenset({r}) for r in range(P)]


CHOICES = {
    "ring": lambda P: run(ring_all_reduce, parts(P), operator.or_),
    "doubling": lambda P: run(recursive_doubling_all_reduce, whole(P), operator.or_),
    "two trees": lambda P: run(double_tree_all_reduce, parts(P, 4), operator.or_),
}


@functools.cache
def choice():
    return stepper("choice", CHOICES, ranks=[4, 6], title="One's own choice")


each_run = pytest.mark.parametrize("name", RUNS)


# --- the player and the run

@each_run
def test_every_message_is_drawn_in_its_round_and_nowhere_else(name):
    recorded, _ = RUNS[name]()
    E = make(name)
    S = E.spec()
    assert len(S["steps"]) == recorded.rounds + 1 == len(S["says"])
    for k, step in enumerate(S["steps"]):
        want = sorted((m.source, m.to, m.link) for m in recorded.messages if m.round == k)
        assert sorted((a, b, E.links[link]) for a, b, _, link in step["arrows"]) == sorted(set(want))
    assert sorted(E.traces()["messages"]) == sorted([m.round, m.source, m.to, m.nbytes, str(m.tag), m.link] for m in recorded.messages)
    assert len(ET.fromstring(E.svg(1)).findall(".//g[@class='cx-arrows']/path")) == 2*len(S["steps"][1]["arrows"])


def shown(S, k):
    """What the specification says that ranks hold after step k: {(rank, block): (stripes, texts)}."""
    now = {}
    for step in S["steps"][:k + 1]:
        for i in range(0, len(step["cells"]), 3):
            r, j, s = step["cells"][i:i + 3]
            now[r, j] = s
    return {(r, j): S["states"][now.get((r, j), 0)] for r in range(S["P"]) for j in range(S["B"])}


@each_run
def test_every_cell_is_what_the_rank_said_last(name):
    recorded, options = RUNS[name]()
    S = make(name).spec()
    for k in range(int(recorded.rounds) + 1):
        last = {r: state for at, r, state in recorded.holdings if at <= k}
        for (r, j), (ranks, texts) in shown(S, k).items():
            entry = options.get("holds", lambda state: state)(last[r])[j]
            if entry is None:
                assert (ranks, texts) == ([], [])
            elif isinstance(entry, frozenset):
                assert sorted(entry) == ranks
                assert texts[0] == ("all" if len(entry) == S["P"] else "+".join(map(str, sorted(entry))))
            else:
                assert ranks == [] and texts == [f"{entry:g}" if isinstance(entry, float) else str(entry)]


@pytest.mark.parametrize("name", ["ring", "halving", "nodes", "sixteen"])
def test_in_the_end_all_ranks_hold_all(name):
    recorded, _ = RUNS[name]()
    assert all(set(result) == {frozenset(range(recorded.size))} for result in recorded.results)
    S = make(name).spec()
    assert all(texts == ["all"] for _, texts in shown(S, int(recorded.rounds)).values())
    assert S["says"][-1].endswith(f"{S['P']**2} of {S['P']**2} cells are complete.")


def test_blocks_stand_on_the_arrows():
    steps = make("ring").spec()["steps"]
    assert [a[:3] for a in steps[1]["arrows"]] == [[0, 1, "3"], [1, 2, "0"], [2, 3, "1"], [3, 0, "2"]]
    assert make("halving").spec()["steps"][1]["arrows"][0][:3] == [0, 4, "4–7"]
    assert make("nodes").spec()["steps"][1]["arrows"][0][:3] == [0, 1, "3, 7"]
    assert make("fold").spec()["steps"][1]["arrows"] == [[4, 0, "all", 0], [5, 1, "all", 0]]
    assert make("numbers").spec()["steps"][1]["arrows"][0] == [0, 1, "1", 0]        # no tag: what changed there
    assert all(a[2] == "" for s in make("tree").spec()["steps"] for a in s["arrows"])


def sends(tags, size=3):
    """Rank 0 sends all of its tagged messages to rank 1 at once."""
    def program(comm, x):
        comm.holds([x]*size)
        if comm.rank == 0:
            for s in [comm.isend(x, 1, tag=t) for t in tags]:
                s.wait()
        else:
            for r in [comm.irecv(0, tag=t) for t in tags]:
                r.wait()
    return stepper("sends", run(program, ["a", "b"], ports=len(tags)), title="t", block="piece")


def test_messages_of_one_pair_are_one_arrow():
    E = sends([2, 0])
    assert E.spec()["steps"][1]["arrows"] == [[0, 1, "0, 2", 0]] and len(E.traces()["messages"]) == 2
    assert E.says(1).startswith("Step 1 of 1: rank 0 sends pieces 0, 2 to rank 1.")
    assert sends([2, (0, 1)]).spec()["steps"][1]["arrows"] == [[0, 1, "all", 0]]


@pytest.mark.parametrize("tag", ["barrier", 3, -1, True, (0, 3), 1.5])
def test_a_tag_that_is_no_block_names_none(tag):
    E = sends([tag])
    assert E.spec()["steps"][1]["arrows"] == [[0, 1, "", 0]] and E.says(1).startswith("Step 1 of 1: rank 0 sends to rank 1.")


def test_long_sums_have_shorter_names():
    texts = {t[0]: t for _, t in make("sixteen").spec()["states"][1:]}
    assert texts["0+1+2"] == ["0+1+2", "0–2", "3/16"] and texts["0+1"] == ["0+1", "2/16"] and texts["0+1+15"] == ["0+1+15", "3/16"]
    assert ">0–2</text>" in make("sixteen").svg(2) and ">0+1+2</text>" in make("ring").svg(2)


# --- sentences

@pytest.mark.parametrize("name, k, sentence", [
    ("ring", 0, "Start: 0 of 16 cells are complete."),
    ("ring", 1, "Step 1 of 6: rank 0 sends block 3 to rank 1, rank 1 sends block 0 to rank 2, rank 2 sends block 1 to rank 3, "
                "rank 3 sends block 2 to rank 0. Then 0 of 16 cells are complete."),
    ("tree", 0, "Start: 1 of 8 ranks holds x."),
    ("tree", 2, "Step 2 of 3: rank 0 sends to rank 2, rank 4 sends to rank 6. Then 4 of 8 ranks hold x."),
    ("halving", 1, "Step 1 of 6: ranks 0 and 4, 1 and 5, 2 and 6, 3 and 7 swap blocks 4–7 for 0–3. Then 0 of 64 cells are complete."),
    ("halving", 3, "Step 3 of 6: ranks 0 and 1 swap block 1 for 0, ranks 2 and 3 swap block 3 for 2, ranks 4 and 5 swap block 5 for 4, "
                   "ranks 6 and 7 swap block 7 for 6. Then 8 of 64 cells are complete."),
    ("sixteen", 1, "Step 1 of 30: every rank sends to the next rank: rank 0 block 15, rank 1 block 0, rank 2 block 1 and so on. "
                   "Then 0 of 256 cells are complete."),
    ("nodes", 1, "Step 1 of 8: over NVLink, rank 0 sends blocks 3, 7 to rank 1, rank 1 sends blocks 0, 4 to rank 2, rank 2 sends "
                 "blocks 1, 5 to rank 3 and 5 more. Then 0 of 64 cells are complete."),
    ("doubling", 3, "Step 3 of 3: ranks 0 and 4, 1 and 5, 2 and 6, 3 and 7 swap. Then 8 of 8 ranks hold the whole sum."),
    ("bruck", 1, "Step 1 of 3: every rank sends to the rank before it: rank 0 block 0, rank 1 block 1, rank 2 block 2 and so on. "
                 "Then 10 of 25 cells are filled."),
    ("bruck", 2, "Step 2 of 3: every rank sends to the rank 3 further on: rank 0 blocks 0, 1, rank 1 blocks 1, 2, rank 2 blocks 2, 3 "
                 "and so on. Then 20 of 25 cells are filled."),
    ("fold", 1, "Step 1 of 6: rank 4 sends all blocks to rank 0, rank 5 sends all blocks to rank 1. Then 0 of 48 cells are complete."),
    ("chain", 2, "Step 2 of 7: rank 0 sends segment 1 to rank 1, rank 1 sends segment 0 to rank 2. Then 7 of 20 cells are filled."),
    ("numbers", 1, "Step 1 of 1: ranks 0 and 1, 2 and 3 swap block 1. Then 8 of 8 cells are filled."),
    ("pairs", 1, "Step 1 of 1: rank 0 sends to rank 1, rank 1 sends to rank 2, rank 2 sends to rank 0. Then 3 of 3 ranks hold a value."),
])
def test_a_step_is_a_sentence(name, k, sentence):
    assert make(name).says(k) == sentence


@each_run
def test_sentences_can_be_listened_to(name):
    assert max(len(s.split()) for s in make(name).spec()["says"]) <= 50


def test_the_table_has_every_step_in_full():
    E = make("nodes")
    rows = [re.findall(r"<td>(.*?)</td>", row) for row in re.findall(r'<tr><th scope="row">.*?</tr>', E.table())]
    assert len(rows) == 9 and rows[0][0] == "" and rows[0][1].startswith("rank 0: all blocks = 0; rank 1: all blocks = 1; ")
    assert rows[1][0].count(" sends ") == 8 and rows[1][0].startswith("over NVLink: rank 0 sends blocks 3, 7 to rank 1, ")
    assert rows[4][0].startswith("over network: ranks 0 and 4 swap block 4 for 0, ")
    assert rows[1][1].startswith("rank 0: blocks 2, 6 = 0+3, blocks 3, 7 = nothing; ")
    one = re.findall(r"<td>(.*?)</td>", make("tree").table())
    assert one[1] == "rank 0: x" and one[3] == "rank 4: x"
    assert "&lt;0&gt;" in make("scatter").table()


# --- pictures

@each_run
def test_javascript_draws_what_python_draws(name):
    E = make(name)
    S, widths = E.spec(), [700, 560, 420, 335, 280]
    got = javascript.run("return data.S.steps.map((_, k) => data.widths.map((w) => cx.player(data.S, k, w)))", {"S": S, "widths": widths})
    for k, pictures in enumerate(got):
        for w, picture in zip(widths, pictures):
            assert alike(picture, E.svg(k, w)), f"step {k}, {w} px:\n{picture}\n{E.svg(k, w)}"


@each_run
@pytest.mark.parametrize("wide", [640, 335, 280])
def test_picture_is_well_formed_and_uncluttered(name, wide):
    E = make(name)
    for k in range(len(E.steps)):
        root = ET.fromstring(E.svg(k, wide))
        assert root.get("role") == "img" and root.get("aria-label") == f"{E.title}. {E.says(k)}" and float(root.get("font-size")) >= 11
        height, seen, top = float(root.get("height")), [], float(re.findall(r"[\d.]+", root.find("g").get("transform", "0"))[-1])
        within = {*root.find("g").iter("text")}
        for t in root.iter("text"):
            x, y, w = float(t.get("x")), float(t.get("y")) + top*(t in within), width(t.text)
            left = x - {"start": 0, "middle": w/2, "end": w}[t.get("text-anchor")]
            assert -1 <= left and left + w <= wide + 2 and 8 <= y <= height, (t.text, t.attrib)
            assert not any(left < q and p < left + w and abs(y - z) < 11 for p, q, z in seen), f"{t.text} covers another text"
            seen.append((left, left + w, y))
        for rect in root.iter("rect"):
            assert float(rect.get("x")) + float(rect.get("width")) <= wide + 4
        for path in root.findall(".//g[@class='cx-arrows']/path"):
            assert all(-20 <= float(v) <= height + 20 for v in re.findall(r"-?[\d.]+", path.get("d")) if float(v) > wide)


def test_a_label_without_room_is_left_out():
    assert len(re.findall(">[01]</text>", make("nested").svg(1).partition("cx-arrows")[2])) == 1


def test_what_is_new_is_marked_by_shape():
    svg = make("ring").svg(1)
    assert svg.count('stroke-width="2.2"') == 4 == svg.count("h8v8Z") == svg.count('stroke-dasharray="3 3"')
    first = make("ring").svg(0)
    assert not any(mark in first for mark in ('stroke-width="2.2"', "h8v8Z", '"3 3"'))
    assert make("ring").key().endswith("dashed frame: given away.") and "dashed" not in make("tree").key()


def test_links_differ_by_their_dashes():
    E = make("nodes")
    assert ">NVLink</text>" in E.svg(1) and ">network</text>" in E.svg(1)
    arrows = [re.findall(r'stroke-width="2"(?: stroke-dasharray="([^"]*)")?', E.svg(k).partition("cx-arrows")[2]) for k in (1, 4)]
    assert set(arrows[0]) == {""} and set(arrows[1]) == {"7 4"}
    assert ">link</text>" not in make("ring").svg(1)                # one kind needs no legend


def test_nodes_stand_apart():
    svg = make("nodes").svg(0)
    assert ">node 0</text>" in svg and ">node 1</text>" in svg
    at = [float(x) for x in re.findall(r'<text x="([\d.]+)" y="[\d.]+" text-anchor="middle" [^>]*>rank \d', svg)]
    steps = np.diff(at)
    assert steps[3] == pytest.approx(steps[0] + 14, abs=.11) and max(abs(np.delete(steps, 3) - steps[0])) < .11
    assert ">node 1</text>" in make("scatter").svg(0)               # a last node of two ranks


# --- what is refused, by name

GOOD = run(ring_all_gather, ["a", "b", "c"])


def broken(**change):
    return SimpleNamespace(size=GOOD.size, messages=GOOD.messages, holdings=GOOD.holdings, rounds=GOOD.rounds) if not change else \
        SimpleNamespace(**{"size": GOOD.size, "messages": GOOD.messages, "holdings": GOOD.holdings, "rounds": GOOD.rounds} | change)


def first(state):
    return [(0, r, state) for r in range(3)]


def test_numbers_of_numpy_are_numbers():
    ranks = [[frozenset(np.array([r]))]*4 for r in range(4)]
    tagged = lambda comm, x: (comm.holds([x, 1]), comm.sendrecv(x, 1 - comm.rank, 1 - comm.rank, sendtag=np.int64(0)))
    told = stepper("x", run(ring_all_reduce, ranks, operator.or_), title="t", group=np.int64(2))
    same = stepper("x", run(ring_all_reduce, parts(4), operator.or_), title="t", group=2)
    assert json.dumps(told.spec()) == json.dumps(same.spec())
    assert "swap block 0" in stepper("x", run(tagged, [1, 2]), title="t").says(1)


@pytest.mark.parametrize("step", [-1, 7, 1.5, True])
def test_a_step_that_is_not_there(step):
    with pytest.raises(ValueError, match=f"ring: step = {step}; allowed: 0 to 6"):
        make("ring").svg(step)


@pytest.mark.parametrize("change, said", [
    (dict(name="A b"), "stepper name 'A b'; allowed: lower-case words and hyphens"),
    (dict(name=3), "stepper name 3"),
    (dict(title=" "), "title is ' '; allowed: a sentence"),
    (dict(title=None), "title is None"),
    (dict(block=""), "block is ''"),
    (dict(run=[1]), r"run is \[1\]; allowed: a Run"),
    (dict(run=broken(size=1)), "run has 1 ranks; allowed: 2 to 16"),
    (dict(run=run(ring_all_gather, ["a"]*17)), "run has 17 ranks; allowed: 2 to 16"),
    (dict(run=broken(messages=[])), "run has no messages"),
    (dict(run=broken(holdings=[])), "run has no holdings of rank 0, 1, 2 before its first message; .*comm.holds"),
    (dict(run=broken(holdings=first(["a"])[:2])), "run has no holdings of rank 2 before"),
    (dict(run=broken(holdings=[(1, 0, ["a"]), *first(["a"])[1:]])), "run has no holdings of rank 0 before"),
    (dict(run=broken(holdings=[*first(["a"]), (1, 2, ["a", "b"])])), "state of rank 2 in round 1 has 2 entries; others have 1"),
    (dict(run=broken(holdings=first("abc"))), "state of rank 0 in round 0 is 'abc'; allowed: a list of 1 to 32 entries"),
    (dict(run=broken(holdings=first([]))), r"state of rank 0 in round 0 is \[\]"),
    (dict(run=broken(holdings=first([None]*33))), "allowed: a list of 1 to 32 entries"),
    (dict(run=broken(holdings=first([frozenset({3})]))), r"block 0 of rank 0 in round 0 is frozenset\(\{3\}\); allowed: None, a set of ranks 0 to 2"),
    (dict(run=broken(holdings=first(["a", "thirteen long"]))), "block 1 of rank 0 in round 0 is 'thirteen long'; .*1 to 12 letters"),
    (dict(run=broken(holdings=first([""]))), "block 0 of rank 0 in round 0 is ''"),
    (dict(run=broken(holdings=first([np.ones(2)]))), r"is array\(\[1., 1.\]\)"),
    (dict(run=broken(messages=[m._replace(link=f"l{i}") for i, m in enumerate(GOOD.messages)])), "run has links l0, .*; allowed: 4 names"),
    (dict(group=0), "group = 0; allowed: 1 to 3"),
    (dict(group=4), "group = 4"),
    (dict(group=True), "group = True"),
    (dict(holds="mine"), "holds is 'mine'; allowed: a function"),
], ids=lambda v: v if isinstance(v, str) else "")
def test_a_bad_player_is_refused_by_name(change, said):
    good = dict(name="good", run=broken(), title="t")
    call = lambda name, run, **options: stepper(name, run, **options)
    call(**good)
    with pytest.raises(ValueError, match=said):
        call(**good | change)


def test_sixteen_ranks_and_a_link_of_every_dash_are_welcome():
    stepper("good", run(ring_all_gather, ["a"]*16), title="t")
    stepper("good", broken(messages=[m._replace(link=f"l{i % 4}") for i, m in enumerate(GOOD.messages)]), title="t")


def test_the_function_wins_over_its_module():
    code = "import capacity.pictures.player; from capacity import stepper; print(callable(stepper), callable(capacity.stepper))"
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True).stdout == "True True\n"


# --- a choice of algorithm and ranks

def test_every_choice_is_a_run_or_the_reason_of_its_program():
    E, S = choice(), choice().spec()
    assert (S["algorithms"], S["ranks"], S["others"][0]) == (list(CHOICES), [4, 6], None)
    for (name, P), other in zip(E.runs, S["others"]):
        if (name, P) == ("doubling", 6):
            assert other == E.runs[name, P] == "Doubling does not run: P = 6 ranks; allowed: a power of two."
            continue
        alone = stepper("choice", CHOICES[name](P), title="One's own choice")
        got = {k: (other or S)[k] for k in alone.spec()}
        assert got["says"][1:] == alone.spec()["says"][1:] and got | {"says": 0} == alone.spec() | {"says": 0}
        assert other is None or other["table"] in alone.table()
        assert all(texts == ["all"] for _, texts in shown(got, alone.last).values()), (name, P)


@pytest.mark.parametrize("key, cost", [
    (("ring", 6), "Start: 0 of 36 cells are complete. 10 rounds; no rank sends more than 10/6 of its vector."),
    (("doubling", 4), "Start: 0 of 4 ranks hold the whole sum. 2 rounds; no rank sends more than 2 whole vectors."),
])
def test_the_start_of_a_choice_says_what_it_costs(key, cost):
    assert choice().priced(*key)["says"][0] == cost


def test_data_of_a_choice_are_small():
    """Six runs: at most 6 kB as a server sends them."""
    assert len(gzip.compress(choice().to_html().encode())) < 6_000


@pytest.mark.parametrize("programs, ranks, said", [
    (GOOD, [4], "run is <run of 3 ranks.*allowed, beside ranks: {algorithm"),
    ({}, [4], "run is {}"),
    ({"ring": 3}, [4], "run is {'ring': 3}"),
    (CHOICES, [], r"ranks is \[\]; allowed: a list"),
    (CHOICES, 4, "ranks is 4"),
    (CHOICES, [True], r"ranks is \[True\]"),
    ({"x": CHOICES["doubling"]}, [6, 4], "X does not run: P = 6 ranks; allowed: a power of two.  Allowed: a run of the first"),
])
def test_a_bad_choice_is_refused_by_name(programs, ranks, said):
    with pytest.raises(ValueError, match=said):
        stepper("bad", programs, ranks=ranks, title="t")


def test_a_program_that_fails_for_another_reason_is_not_hidden():
    with pytest.raises(ProgramError, match="ZeroDivisionError"):
        stepper("bad", {"x": lambda P: run(lambda comm, x: 1/0, [0]*P)}, ranks=[4], title="t")


def test_the_widget_of_a_choice_follows_it():
    box = choice().widget()
    algorithm, ranks, shown = box.children
    algorithm.value, ranks.value = "two trees", 6
    assert choice().runs["two trees", 6].svg(0) in shown.children[0].children[2].value
    algorithm.value = "doubling"
    assert shown.children[0].value == "Doubling does not run: P = 6 ranks; allowed: a power of two."


# --- files

@each_run
def test_file_holds_a_figure_a_table_and_a_picture(name):
    E = make(name)
    data = E._repr_mimebundle_()
    assert data["text/plain"].startswith(f"stepper({name!r})\n") and data["image/png"].startswith("iVBOR")
    assert json.loads(data["text/plain"].partition("\n")[2]) == E.traces()
    assert "application/vnd.jupyter.widget-view+json" in data
    figure = data["text/html"]
    assert "<svg" not in figure and "<table>" in figure and len(figure) < 75_000
    spec = json.loads(html.unescape(re.search("data-spec='(.*?)'", figure, re.S)[1]))
    assert spec == json.loads(json.dumps(E.spec()))


def test_a_notebook_sees_another_run():
    """nbval compares text and HTML: one message more or less makes both differ."""
    a, b = (stepper("s", broken(messages=m), title="t")._repr_mimebundle_() for m in (GOOD.messages, GOOD.messages[1:]))
    assert a["text/plain"] != b["text/plain"] and a["text/html"] != b["text/html"]


def test_names_are_unique_in_every_notebook():
    for path in execute.notebooks():
        figures = [name for cell in nbformat.read(path, as_version=4).cells for output in cell.get("outputs", [])
                   for name in re.findall(r'<figure class="cx-\w+" id="(.*?)"', output.get("data", {}).get("text/html", ""))]
        assert len(figures) == len(set(figures)), (path.name, figures)


def test_scripts_are_small():
    """The player with what all figures share, their address and the binding of units among it: at most 17 kB."""
    assert sum((ROOT / "capacity/pictures/static" / name).stat().st_size for name in ("cx.js", "player.js")) <= 17_000


# --- with a kernel

def test_the_widget_shows_a_step():
    E = make("halving")
    box = E.widget()
    play, slider = box.children[1].children
    shown = box.children[2]
    assert (play.min, play.max, slider.min, slider.max) == (0, 6, 0, 6)
    for k in (3, 6, 0):
        slider.value = k
        assert E.svg(k) in shown.value and f'<p aria-live="polite">{E.says(k)}</p>' in shown.value


# --- without one: a page of nothing but players, in Chromium

@pytest.fixture(scope="module")
def page(tmp_path_factory):
    with opened(tmp_path_factory.mktemp("page"), [*map(make, RUNS), choice()], prepare=lambda tab: tab.clock.install()) as tab:
        yield tab


def step_of(figure):
    """The step that a figure shows; its picture, words and slider agree on it."""
    said, slider = figure.locator("[aria-live=polite]").inner_text(), figure.get_by_label("step", exact=True)
    k = int(slider.input_value())
    assert said.startswith(f"Step {k} of " if k else "Start: ")
    assert slider.get_attribute("aria-valuetext") == figure.locator("output").inner_text() == (said[5:].partition(":")[0] if k else "start")
    assert figure.locator("svg[role=img]").get_attribute("aria-label").endswith(said)
    return k


def test_page_draws_all_players_without_an_error(page):
    assert page.errors == []
    assert page.locator("figure.cx-stepper .cx-picture svg[role=img]").count() == len(RUNS) + 1


@pytest.mark.parametrize("where", ["slider", "button"])
def test_keys(page, where):
    figure = page.locator("#ring")
    figure.evaluate("f => f.cx.go(0)")
    target = figure.get_by_label("step", exact=True) if where == "slider" else figure.get_by_role("button", name="Next")
    target.focus()
    for key, k in (("ArrowRight", 1), ("ArrowRight", 2), ("ArrowLeft", 1), ("End", 6), ("ArrowRight", 6), ("Home", 0), ("ArrowLeft", 0)):
        target.press(key)
        assert step_of(figure) == k, key
    if where == "button":
        target.press("Alt+ArrowRight")
        assert step_of(figure) == 0                       # the browser's own key
    target.press(" ")
    assert step_of(figure) == 1                           # on the slider it plays, on a button it presses
    playing = figure.get_by_role("button", name="Pause").count()
    assert playing == (where == "slider")
    if playing:
        target.press(" ")
        assert figure.get_by_role("button", name="Play").count() == 1


def test_a_click_on_the_picture_brings_the_keys_there(page):
    figure = page.locator("#tree")
    figure.locator("svg[role=img]").click()
    page.keyboard.press("End")
    assert step_of(figure) == 3 and step_of(page.locator("#ring")) != 3


def test_buttons(page):
    figure = page.locator("#halving")
    for name, k in (("Next", 1), ("Next", 2), ("Back", 1), ("Last", 6), ("Next", 6), ("First", 0), ("Back", 0)):
        figure.get_by_role("button", name=name).click()
        assert step_of(figure) == k, name


def test_play_runs_to_the_end_and_starts_again(page):
    figure, play = page.locator("#tree"), page.locator("#tree .cx-buttons button").nth(2)
    figure.evaluate("f => f.cx.go(0)")
    play.click()
    assert step_of(figure) == 1 and play.inner_text() == "Pause"
    page.clock.run_for(1500)
    assert step_of(figure) == 2
    play.click()                                          # a pause
    page.clock.run_for(5000)
    assert step_of(figure) == 2 and play.inner_text() == "Play"
    play.click()
    assert step_of(figure) == 3 and play.inner_text() == "Play"
    page.clock.run_for(5000)
    assert step_of(figure) == 3
    play.click()
    assert step_of(figure) == 0 and play.inner_text() == "Pause"
    figure.get_by_role("button", name="Next").click()     # a hand on the player stops it
    page.clock.run_for(5000)
    assert step_of(figure) == 1 and play.inner_text() == "Play"
    figure.evaluate("f => f.cx.go(0)")
    play.click()
    page.clock.run_for(20_000)
    assert step_of(figure) == 3 and play.inner_text() == "Play"


def test_the_picture_is_that_of_python(page):
    for name in ("nodes", "fold"):
        E, figure = make(name), page.locator("#" + name)
        for k in (0, 2, len(E.steps) - 1):
            figure.evaluate("(f, k) => f.cx.go(k)", k)
            got = figure.locator("svg[role=img]")
            wide = int(got.get_attribute("width"))
            want = [t.text for t in ET.fromstring(E.svg(k, wide)).iter("text")]
            assert got.locator("text").all_text_contents() == want and figure.locator("[aria-live]").inner_text() == E.says(k)


def test_the_table_is_at_hand(page):
    figure = page.locator("#chain")
    figure.locator("summary").click()
    assert figure.locator("tbody tr").count() == 8 and figure.locator("tbody tr").first.is_visible()
    figure.locator("summary").press("ArrowRight")
    assert step_of(figure) == 0                           # keys in the table are the table's
    figure.locator("summary").click()


def test_picture_sentence_and_table_follow_the_choice(page):
    figure, E = page.locator("#choice"), choice()
    pick = lambda of, what: figure.get_by_role("group", name=of).get_by_label(str(what), exact=True).check(force=True)
    for name, P in [*list(E.runs)[1:], ("ring", 4)]:
        pick("algorithm", name)
        pick("ranks", P)
        there = E.runs[name, P]
        if isinstance(there, str):
            assert figure.inner_text().splitlines()[-1] == there and not figure.locator("svg").is_visible()
            continue
        assert step_of(figure) == 0 and figure.locator("[aria-live]").inner_text() == E.priced(name, P)["says"][0]
        assert figure.locator("table").evaluate("t => t.outerHTML") == there.table()
        figure.get_by_role("button", name="Last").click()
        assert step_of(figure) == there.last and figure.locator("[aria-live]").inner_text() == there.says(there.last)
    page.keyboard.press("Home")
    assert step_of(figure) == 0


def test_arrows_move_through_the_choices_and_not_the_steps(page):
    figure = page.locator("#choice")
    figure.get_by_label("ring", exact=True).focus()
    page.keyboard.press("ArrowRight")
    assert figure.get_by_label("doubling", exact=True).is_checked() and step_of(figure) == 0
    page.keyboard.press("ArrowLeft")


def test_blocks_travel_along_their_arrows_only_forward_and_only_by_a_step(page):
    figure = page.locator("#ring")
    blocks = """f => [...f.querySelectorAll('.cx-block')].map(b => { const { duration, iterations } = b.getAnimations()[0].effect.getTiming();
        const of = (at) => { b.getAnimations()[0].currentTime = at; const { x, y, width, height } = b.getBoundingClientRect(); return [x + width/2, y + height/2]; };
        return [...of(0), ...of(duration - .01), duration, iterations]; })"""
    ends = """f => [...f.querySelectorAll('.cx-arrows > path[stroke]')].map(p => { const m = p.getScreenCTM(), n = p.getTotalLength();
        return [0, n].flatMap(s => { const { x, y } = p.getPointAtLength(s).matrixTransform(m); return [x, y]; }); })"""
    figure.evaluate("f => f.cx.go(0)")
    assert figure.evaluate(blocks) == []
    figure.get_by_role("button", name="Next").click()
    got = np.array(figure.evaluate(blocks))
    np.testing.assert_allclose(got[:, :4], figure.evaluate(ends), atol=2.5)
    assert set(got[:, 4]) == {220} and set(got[:, 5]) == {1}
    figure.get_by_role("button", name="Back").click()
    assert figure.evaluate(blocks) == []
    figure.get_by_label("step", exact=True).fill("1")        # dragged
    assert step_of(figure) == 1 and figure.evaluate(blocks) == []
    page.emulate_media(reduced_motion="reduce")
    figure.get_by_role("button", name="Next").click()
    assert step_of(figure) == 2 and figure.evaluate(blocks) == []
    page.emulate_media(reduced_motion="no-preference")


def test_nothing_moves_for_who_wants_that(page):
    def animation():
        return page.locator("#ring .cx-arrows").evaluate("g => getComputedStyle(g).animationName")
    assert animation() == "cx-appear"
    page.emulate_media(reduced_motion="reduce")
    assert animation() == "none"
    page.emulate_media(reduced_motion="no-preference")


def test_it_fits_a_phone(page):
    page.set_viewport_size({"width": 375, "height": 812})
    page.clock.run_for(300)
    page.locator("#sixteen summary").click()
    sizes = page.eval_on_selector_all(".cx-picture > svg", "es => es.map(e => e.getBoundingClientRect().width/e.viewBox.baseVal.width)")
    assert all(s > .95 for s in sizes), sizes
    assert page.evaluate("document.documentElement.scrollWidth") <= 375
    high = page.eval_on_selector_all(".cx-buttons button", "es => es.map(e => e.getBoundingClientRect().height)")
    assert min(high) >= 24
    page.locator("#sixteen summary").click()
    page.set_viewport_size({"width": 1280, "height": 900})


@pytest.mark.parametrize("theme, paper", [("light", (255, 255, 255)), ("dark", (18, 18, 18))])
def test_text_in_cells_stands_out(page, theme, paper):
    """WCAG's contrast of the text in a cell with what is painted below it."""
    page.evaluate("([t, p]) => { document.documentElement.dataset.theme = t; document.documentElement.style.color = t === 'dark' ? '#ddd' : '#111'; }",
                  [theme, 0])
    *stripes, ink = page.locator("#halving").evaluate("""f => { f.cx.go(6); const fills = [...f.querySelectorAll('path[fill-opacity]')];
        return [...new Set(fills.map(e => getComputedStyle(e).fill)), getComputedStyle(f.querySelector('svg')).color]; }""")
    assert len(stripes) == 4 and min(contrast(rgb(ink), .45*rgb(s) + .55*np.array(paper)) for s in stripes) > 4.5
    full, dark = page.locator("#tree").evaluate("""f => { f.cx.go(3); return ['path[fill*=memory]', 'text[aria-hidden]']
        .map(q => getComputedStyle(f.querySelector(q)).fill); }""")
    assert contrast(rgb(dark), rgb(full)) > 4.5
    page.evaluate("() => { document.documentElement.dataset.theme = 'light'; }")


def test_redraw_is_fast(page):
    page.clock.resume()
    median = page.evaluate("""() => { const f = document.querySelector('#halving'), t = [];
        for (let i = 0; i < 60; i++) { const a = performance.now(); f.cx.go(i % 7); t.push(performance.now() - a); }
        return t.sort((a, b) => a - b)[30]; }""")
    assert median < 6

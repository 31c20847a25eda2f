"""The form of a chapter: layers and marks, letters.

The grammar and the alphabet are tested on small notebooks; every chapter keeps their rules. What a reader meets on
the built pages is measured in test_book.py.
"""
import json
import re
from pathlib import Path

import layers
import letters
import page as pages
import pytest

import capacity

ROOT = Path(__file__).resolve().parents[1]


def load(path):
    return json.loads(path.read_text(encoding="utf-8"))["cells"]


CHAPTERS = sorted((ROOT/"chapters").glob("*.ipynb"))
each_chapter = pytest.mark.parametrize("path", CHAPTERS, ids=lambda p: p.stem)


@each_chapter
def test_has_three_acts(path):
    assert layers.in_acts(load(path)), f"its headings of the second level begin with {', '.join(layers.ACTS)}"


def notebook(*sources):
    """Cells: what begins with ``>`` is code (with an output where it says so), the rest Markdown."""
    made = []
    for s in sources:
        if s.startswith(">"):
            shown, source = "shown" in s.split("\n")[0], s.partition("\n")[2]
            made.append({"cell_type": "code", "source": source, "metadata": {},
                         "outputs": [{"output_type": "stream", "text": "7"}] if shown else []})
        else:
            made.append({"cell_type": "markdown", "source": s, "metadata": {}})
    return made


# ---- layers
@pytest.mark.parametrize("source, layer, says", [
    ("# ∎ The sum is one\nassert True", "proof", "The sum is one"),
    ("#✓ It holds at 2\n#   and 4 ranks\nassert True", "proof", "It holds at 2 and 4 ranks"),
    ("# further ∎ It holds\nassert True", "further", "It holds"),
    ("# figure\nx = 1", "workshop", "Code of the figure"),
    ("# table: three rows\nx = 1", "workshop", "Code of the table: three rows"),
    ("# figures of merit\nx = 1", "argument", ""),
    ("x = 1  # ✓ no", "argument", "")])
def test_the_first_comment_decides(source, layer, says):
    cell = layers.read(source)
    assert (cell.layer, cell.says) == (layer, says)
    assert cell.code == (source if layer == "argument" else source.partition("\n")[2].removeprefix("#   and 4 ranks\n"))


def test_marks_stand_at_sentences_only():
    text = "It is so. ∎ And more (see below ✓).\n\n| a | ✓ |\n\n`x ✓` $a ✓ b$\n\n```\ny ✓\n```\n## Title ✓\n\nThe end ✓"
    assert [layers.sentence(text, m) for m in layers.marks(text)] == ["It is so.", "And more (see below", "The end"]


def test_marks_take_the_proofs_in_order():
    cells = notebook("One. ∎ Two. ✓", ">\nx = 1", ">\n# ∎ First holds\nassert 1", "No mark here.", ">\n# ✓ Second holds\nassert 1",
                     ">\n# further ✓ More holds\nassert 1", "Three. ✓", ">\n# ✓ Third holds\nassert 1")
    assert layers.bind(cells) == ({(0, 0): 2, (0, 1): 4, (6, 0): 7}, [])


@pytest.mark.parametrize("sources, said", [
    (["One. ∎", ">\n# ✓ First holds\nassert 1"], "a ✓ for the ∎"),
    (["One. ∎", "Two. ✓", ">\n# ✓ Second holds\nassert 1"], "the ∎ at “…One.” has no proof"),
    (["One.", ">\n# ✓ First holds\nassert 1"], "no sentence before it carries a ✓"),
    (["One. ∎ Two. ∎", ">\n# ∎ First holds\nassert 1"], "the ∎ at “…Two.” has no proof")])
def test_marks_and_proofs_that_do_not_meet(sources, said):
    assert len(layers.bind(notebook(*sources))[1]) == 1 and said in layers.bind(notebook(*sources))[1][0]


@pytest.mark.parametrize("caption, mark, said", [
    ("The minimum is unique if, and only if, the layer is wider", "✓", "under ✓"),
    ("Parts allow single elements, terms only what is linear", "✓", "“only” under ✓"),
    ("A ring hides all from that many columns on, and not below", "✓", "“from that many columns on”"),
    ("Every rank sends the same", "✓", "“Every” under ✓"),
    ("No schedule is shorter", "✓", "“No” under ✓"),
    ("The trainer cannot be faster, whatever the order", "✓", "“cannot” under ✓"),
    ("R is the formula of the book", "∎", "housekeeping"),
    ("It equals max_tensor_parallel", "∎", "housekeeping"),
    ("Both block products, for all sizes", "∎", "no verb"),
    ("It is so. It is so again", "∎", "one sentence"),
    ("It is " + "very "*30 + "long", "∎", "at most 140")])
def test_captions_that_are_refused(caption, mark, said):
    assert any(said in fault for fault in layers.caption_faults(caption, mark)), list(layers.caption_faults(caption, mark))


@pytest.mark.parametrize("caption, mark", [
    ("Any matrix has both products, and only linear maps have the second", "∎"),
    ("No schedule of 2, 4 and 8 stages is shorter", "✓"),
    ("Ring, tree and chain wait for nobody", "✓"),
    ("A ring takes no more than a tree", "✓"),
    ("No schedule is shorter", "∎"),
    ("From 2 to 8 ranks on one node the prediction is within a tenth", "✓"),
    ("At widths ½, 1, 2 and 4 the minimum is attained once", "✓")])
def test_captions_that_pass(caption, mark):
    assert list(layers.caption_faults(caption, mark)) == []


def test_what_a_chapter_may_not_do():
    proof = ">\n# ✓ It holds at 2 ranks\nassert 1"
    silent, spoken = ">\nspeed = 7", ">\nwidth = 7"
    wrong = layers.faults(notebook("It holds. ✓ It holds. ✓ It holds. ✓", proof, proof, ">\n# ✓ It holds at 3 ranks\nx = 1",
                                   silent, spoken, "Here `width` is a number, and it is never zero. ✓", proof, ">shown\n1 + 1"))
    assert [w for w in wrong if "marks in one paragraph" in w] and [w for w in wrong if "without an assert" in w]
    assert [w for w in wrong if "“never” in a sentence under ✓" in w]
    assert ["speed" in w for w in wrong if "names nothing" in w] == [True]
    assert [w for w in layers.faults(notebook(*["It holds. ✓", proof]*16)) if "16 marks" in w]
    assert [w for w in layers.faults(notebook(*[">shown\n1"]*21)) if "21 visible" in w]


# ---- the page, in memory
def test_the_build_binds_marks_and_changes_no_file():
    cells = notebook("# 1 · T\n\n## Understand", "## Compute\n\nIt is one. ∎", ">\n# ∎ One is 1\nassert 1", "## Use",
                     ">\n# figure\nx = 1")
    made = pages.annotate({"cells": json.loads(json.dumps(cells))})["cells"]
    assert made[1]["source"].endswith("It is one.\u00a0{cx-mark}`2`") and made[2]["source"] == "assert 1"
    assert made[2]["metadata"]["tags"] == ["proof"] and made[4]["metadata"]["tags"] == ["workshop", "figure"]
    assert "1 statement carries ∎ (proved with symbols or for every case) or ✓" in made[0]["source"]
    old = notebook("# 1 · T\n\nIt is one. ∎", ">\n# ∎ One is 1\nassert 1")
    assert pages.annotate({"cells": json.loads(json.dumps(old))})["cells"][0]["source"] == old[0]["source"]


def test_a_picture_is_named_by_its_alternative_text():
    cell = {"metadata": {"mystnb": {"image": {"alt": "Two \"lines\""}}}}
    for data in ({"image/svg+xml": "<?xml?><svg width='1'></svg>"}, {"text/html": "<figure><svg width='1'></svg></figure>"}):
        pages.picture(cell, output := {"data": data})
        assert '<svg role="img" aria-label="Two &quot;lines&quot;" width' in output["data"]["text/html"]
        assert "image/svg+xml" not in output["data"]


# ---- letters
def spelled(latex):
    return [s.whole for s in letters.signs(latex)]


@pytest.mark.parametrize("latex, found", [
    (r"T = \alpha + \frac{n}{\beta}", ["T", r"\alpha", "n", r"\beta"]),
    (r"H_{\mathrm{f}} + H_\mathrm f + H_f", ["H_'f", "H_'f", "H_f"]),
    (r"X_1 W_{1,r}^2 \bar S \sigma(XA)", ["X_1", "W_1,r^2", r"\bar S".replace(" ", ""), r"\sigma", "X", "A"]),
    (r"\underbrace{k\alpha}_{\text{for each piece}} + \text{the rest}", ["k", r"\alpha"]),
    (r"\log_2 P + \operatorname{relu}(x)", ["P", "x"])])
def test_letters_of_a_formula(latex, found):
    assert spelled(latex) == found


def test_a_numbered_letter_is_the_letter_and_a_named_one_is_not():
    known = {"H": 1, "X": 1, "H_'f": 1}
    look = lambda latex: letters.look(next(letters.signs(latex)), known)
    assert [look(x) for x in ("X_1", "X_{r+1}", "X^2", "H_{\\mathrm f}", "H_{\\mathrm g}", "Z")] == ["X", "X", "X", "H_'f", None, None]


OLD_15 = ["$Y = \\sigma(XA)\\,B$ on $t$ ranks, with peak $F$.", ">\ntensor_parallel_ratio(1, 2, 3, 4, 5, 6)",
          ">\nlayouts = search('B D', [['D F/t', 'D/t F']], 'B E', size, mesh)",
          "Here `layouts`; the pair $f$, $g$.", ">\nback = [backward(f.choice) for f in layouts]"]
ALPHABET = """>
# alphabet
alphabet = {"X": "input", "Y": "output", r"\\sigma": "function of an entry", "A": "first weight", "B": "second weight",
            "f": "copies forward, sums backward", "g": "the reverse of f"%s}"""


def test_the_old_chapter_15_is_refused():
    wrong = "\n".join(letters.Page(notebook(*OLD_15)).faults())
    assert "letters without a meaning: Y, \\sigma, X, A, B, f, g" in wrong
    assert "F is a letter of the placements and elsewhere “dense peak arithmetic of one device”" in wrong
    wrong = "\n".join(letters.Page(notebook(ALPHABET % "", *OLD_15)).faults())
    assert "B is a letter of the placements and elsewhere “second weight”" in wrong
    assert "visible code uses f for a loop; on this page it is “copies forward, sums backward”" in wrong
    assert "t is a letter of the placements" not in wrong            # tensor-parallel ranks, as in the formulas
    wrong = "\n".join(letters.Page(notebook(ALPHABET % ', "B/": "tokens", "F/": "width of the layer"', *OLD_15)).faults())
    assert "B has two meanings: “tokens” in placements, “second weight” elsewhere" in wrong
    assert "F has two meanings: “width of the layer” in placements" in wrong


def test_a_page_with_one_meaning_for_each_letter():
    good = notebook(ALPHABET % "", "$Y = \\sigma(XA)B$; `ranks` and $f$, $g$ on $t$ ranks.",
                    ">\ntensor_parallel_ratio(1, 2, 3, 4, 5, 6)", ">\nranks = [t for t in (2, 4)]", ">\nplaced = 'tokens width/t'")
    assert letters.Page(good).faults() == []


def test_formula_cards_that_disagree():
    formulas = [getattr(capacity, name) for name in dir(capacity)]
    one, two = (next(f.__name__ for f in formulas if isinstance(f, letters.Formula) and k in f.units) for k in ("segments", "buckets"))
    cards = "".join(f'<div class="formula-card"><p><strong><code>{name}</code>' for name in (one, two))
    cells = [{"cell_type": "code", "source": "show()", "metadata": {}, "outputs": [{"data": {"text/html": cards}}]}]
    assert any(w.startswith("k has two meanings in the formula cards") for w in letters.Page(cells).faults())


# ---- chapters
@each_chapter
def test_layers_and_marks(path):
    wrong = layers.faults(load(path))
    assert not wrong, "\n" + "\n".join(wrong)


@each_chapter
def test_one_letter_one_meaning(path):
    wrong = letters.Page(load(path)).faults()
    assert not wrong, "\n" + "\n".join(wrong)


RAW = re.compile(r"\s*([(\[{]|'.*'\s*$|\".*\"\s*$|array\(|dict_|np\.)")


@each_chapter
def test_results_are_shown_not_dumped(path):
    raw = []
    for cell in load(path):
        for o in cell.get("outputs", []):
            data = o.get("data", {"text/plain": o.get("text", "")})
            if set(data) <= {"text/plain"} and RAW.match("".join(data["text/plain"])):
                raw.append("".join(data["text/plain"])[:80])
    assert not raw, raw


def test_a_number_keeps_its_unit_and_a_formula_its_full_stop():
    formula, mark = '<span class="math notranslate nohighlight">\\(2 s\\)</span>', '<a class="cx-qed" href="#p">∎</a>'
    body = pages.bind(f"<p>3 GB/s, 4 %, 5 ranks, 6 seconds, {formula}.\u00a0{mark} \\(7 s\\)</p><pre>8 GB</pre>")
    assert body == (f"<p>3\u00a0GB/s, 4\u00a0%, 5 ranks, 6 seconds, <span class=\"cx-nb\">{formula}.\u00a0{mark}</span> \\(7 s\\)</p>"
                    "<pre>8 GB</pre>")
    assert pages.bind("<li>A question? 5 min ··</li>") == "<li>A question? 5\u00a0min\u00a0··</li>"
    assert pages.bind(f"<p>alone ({formula} of them)</p>") == f'<p>alone <span class="cx-nb">({formula}</span> of them)</p>'

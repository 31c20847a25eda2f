"""Every number in a notebook's prose was computed by a cell of that notebook, or stands in a table with a source.

A number counts as computed if its value, as printed, occurs in a code cell or in an output.  Left out are whole
numbers up to ten, years, exponents, identifiers such as H100 or bf16, numbers of chapters, exercises and equations,
inline code and the targets of links.

A caption under a mark is held to more: its numbers stand in its own cell, in an earlier assert or in an output.
"""
import ast
import functools
import html
import re
from pathlib import Path

import nbformat
import pytest

ROOT = Path(__file__).resolve().parents[1]
NOTEBOOKS = sorted(p for d in ("chapters", "solutions", "exercises", "appendices", "labs") for p in (ROOT/d).glob("*.ipynb"))
SUPERSCRIPT = str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789")
DROP = [
    r"```.*?```", r"`[^`]*`",                                # code
    r"\[\d+[a-z]?\]\(\d\d[^)]*\.ipynb\)",               # numbers of chapters, linked
    r"\{\w+\}`[^`]*`", r"\]\([^)]*\)", r"https?://\S+",     # citations and targets of links
    r"^#+ .*$",                                             # headings are titles
    r"\*\*\d+a?\.\d+\*\*", r"\*\(\d+ minutes, \w+\)\*", r"\d+ min ·+",
    r"\(by hand, \d+ points?, \d+ minutes\)",             # exercise ids, how long they take
    r"(?i)\b(chapters?|exercises?|parts?|appendix|section|table|figure|fig\.)\s+\d+[a-z]?(\.\d+)?"
    r"((,| and| to|–|-)\s*\d+[a-z]?(\.\d+)?)*",
    r"(?i)arXiv:\S+",
]
POWER = re.compile(r"(\d[\d,]*(?:\.\d+)?)\s*(?:\\cdot|\\times|×|·)\s*10\^?\{?(-?\d+)\}?")
BARE_POWER = re.compile(r"(?<![\d.])10\^\{?(-?\d+)\}?")
NUMBER = re.compile(r"(?<![A-Za-z_\d.^-])-?\d[\d,]*(?:\.\d+)?(?:e[+-]?\d+)?(?![\d])")
CODE_NUMBER = re.compile(r"\d[\d,_]*(?:\.\d+)?(?:e[+-]?\d+)?")


def plain(text):
    """Superscripts after a 10 written as a caret."""
    text = re.sub(r"10([⁻⁰¹²³⁴⁵⁶⁷⁸⁹]+)", lambda m: "10^" + m[1].translate(SUPERSCRIPT), text)
    return text.replace("−", "-").replace("\\,", "").replace("{,}", ",").replace("\\%", "%")


def value(text):
    return abs(float(text.replace(",", "").replace("_", "")))


def computed(nb):
    """The values that code cells and outputs contain, and the values in tables that cite a source."""
    texts = []
    for cell in nb.cells:
        if cell.cell_type == "code":
            texts.append(cell.source)
            for o in cell.outputs:
                data = o.get("data", {})
                texts += [o.get("text", ""), str(data.get("text/plain", "")), str(data.get("text/latex", "")),
                          html.unescape(re.sub(r"<[^>]*>", " ", str(data.get("text/html", ""))))]
        else:
            tables = re.findall(r"(?:^\|.*\n?)+", cell.source, re.M)
            texts += [t for t in tables if "{cite" in cell.source]
    text = plain("\n".join(texts))
    values = {value(m[1])*10.0**int(m[2]) for m in POWER.finditer(text)}
    values |= {10.0**int(m[1]) for m in BARE_POWER.finditer(text)}
    for m in CODE_NUMBER.finditer(text):
        for token in {m[0], *m[0].split(",")}:
            if token and token[-1] not in ",_":
                values.add(value(token))
    return values


def quoted(nb):
    """(the number as written, its value) for the numbers in Markdown that need an origin."""
    for cell in nb.cells:
        if cell.cell_type != "markdown":
            continue
        text = plain(cell.source)
        for pattern in DROP:
            text = re.sub(pattern, " ", text, flags=re.S | re.M if pattern.startswith("```") else re.M)
        if "{cite" in cell.source:
            text = re.sub(r"(?:^\|.*\n?)+", " ", text, flags=re.M)
        for m in POWER.finditer(text):
            yield m[0], value(m[1])*10.0**int(m[2])
        text = POWER.sub(" ", text)
        for m in BARE_POWER.finditer(text):
            yield m[0], 10.0**int(m[1])
        text = re.sub(r"\^\{?-?\d+\}?", " ", BARE_POWER.sub(" ", text))
        for m in NUMBER.finditer(text):
            token = m[0].rstrip(",")
            x = value(token)
            year = re.fullmatch(r"(19|20)\d\d", token)
            if not year and not (x == int(x) and x <= 10 and "." not in token):
                yield token, x


@functools.cache
def both(path):
    """What a notebook computes and what it quotes: a chapter is asked for its solutions and exercises too."""
    nb = nbformat.read(path, as_version=4)
    return computed(nb), [*quoted(nb)]


def known(x, values):
    return any(abs(x - v) <= 1e-12*max(x, v) for v in values)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda p: f"{p.parent.name}/{p.stem}")
def test_prose_quotes_what_cells_computed(path):
    values, numbers = both(path)
    if path.parent.name in ("exercises", "solutions"):                     # about a chapter; what is asked, the solution's cells compute
        values = values.union(*(both(path.parents[1]/folder/path.name)[0] for folder in ("chapters", "solutions")))
    missing = [written for written, x in numbers if not known(x, values)]
    assert not missing, f"no cell computes, and no cited table holds: {', '.join(missing)}"


def notebook(*cells):
    make = {"m": nbformat.v4.new_markdown_cell, "c": nbformat.v4.new_code_cell}
    return nbformat.v4.new_notebook(cells=[make[k](s) for k, s in cells])


@pytest.mark.parametrize("prose, missing", [
    ("It takes 36 years and 1,979 TFLOP/s.", ["36", "1,979"]), ("About $3.1\\cdot 10^{23}$ FLOP.", ["3.1\\cdot 10^{23}"]),
    ("An H100 in bf16, `42` of them, in 2024, three of 8; see chapter 31 and [12](x-77.ipynb).", ["12"]),
    ("Half is 0.5, a tenth $10^{-1}$, and $x^{17}$.", ["0.5", "10^{-1}"]), ("38 to 43 % of 20.", ["38", "43", "20"])])
def test_the_test_sees_numbers(prose, missing):
    nb = notebook(("m", prose), ("c", "x = 7"))
    assert sorted(w for w, x in quoted(nb) if not known(x, computed(nb))) == sorted(missing)


def test_the_test_accepts_what_was_computed():
    nb = notebook(("m", "36 years, 1,979, 3.14e23 as $3.14\\cdot 10^{23}$, 0.5 and 20."), ("c", "36, 1979, 3.14e23, 0.5, [1,20]"))
    assert [w for w, x in quoted(nb) if not known(x, computed(nb))] == []
    table = notebook(("m", "| a | b |\n|---|---|\n| 55 | 66 |\n\nFrom {cite}`x`."), ("m", "The 55 of the table."))
    assert [w for w, x in quoted(table) if not known(x, computed(table))] == []


# Captions of proofs and tests.  What a mark claims is claimed by its own cell, so its numbers are looked for there.
MARKED = re.compile(r"# (further )?[∎✓]")
IN_CODE = re.compile(r"(?<![\w.])(\d[\d,_]*(?:\.\d+)?|\.\d+)(e[+-]?\d+)?")
WORDS = {"thousand": 3, "million": 6, "billion": 9, "trillion": 12, "k": 3, "kB": 3, "M": 6, "MB": 6, "G": 9, "B": 9, "GB": 9,
         "T": 12, "TB": 12, "PB": 15, "µs": -6, "ms": -3, "Gb/s": 9, "GB/s": 9, "TFLOP/s": 12}


def caption(source):
    """(caption, the code below it) of a marked cell; None of any other."""
    lines = source.split("\n")
    if not MARKED.match(lines[0]):
        return None
    end = next((i for i, line in enumerate(lines) if not line.startswith("#")), len(lines))
    return " ".join(line.lstrip("# ") for line in lines[:end]), "\n".join(lines[end:])


def asserted(code):
    """The statements of a cell that hold an assert: a loop or a function with all that it says."""
    tree = ast.parse(re.sub(r"^[%!].*$", "", code, flags=re.M))
    return "\n".join(ast.get_source_segment(code, node) for node in tree.body
                     if any(isinstance(part, ast.Assert) for part in ast.walk(node)))


def shown(cell):
    """What a cell's outputs say, as text."""
    data = [o.get("data", {}) for o in cell.outputs]
    return "\n".join([o.get("text", "") for o in cell.outputs] + [str(d.get("text/plain", "")) for d in data]
                     + [html.unescape(re.sub(r"<[^>]*>", " ", str(d.get("text/html", "")))) for d in data])


def written(text):
    """The values of all numbers in a text of code or of outputs."""
    text = plain(text)
    values = {value(m[1])*10.0**int(m[2]) for m in POWER.finditer(text)}
    values |= {float(a)**int(b) for a, b in re.findall(r"(?<![\w.])(\d+)\*\*(\d{1,2})(?!\d)", text)}
    values |= {float(a)*10.0**int(b) for a, b in re.findall(r"(?<![\w.])(\d+(?:\.\d+)?)\*10\*\*(\d+)", text)}
    values |= {10.0**int(m[1]) for m in BARE_POWER.finditer(text)}
    for m in IN_CODE.finditer(text):
        for token in {m[1], *m[1].split(",")}:
            if token.strip(",_"):
                values.add(value(token.strip(",_") + (m[2] or "")))
    return values


def unfounded(nb):
    """(cell, number) for numbers in captions that neither the cell's code, nor an earlier assert, nor an output holds.

    A share may stand in code for its percentage, the end of a `range` for the last of it, and a value in SI units for
    one with a prefix or a word, as in 4.5 GB, 3 ms or 14 digits.
    """
    before = set()
    for cell in nb.cells:
        if cell.cell_type != "code":
            continue
        code, said = (caption(cell.source) or ("", cell.source))[::-1]
        if said != cell.source:
            values = before | written(f"{code}\n{shown(cell)}")
            ends = {value(v) for v in re.findall(r"(?:range|integers)\((?:[^(),]*, ?)?([\d_]+)[,)]", code)}
            for number, x in quoted(nbformat.v4.new_notebook(cells=[nbformat.v4.new_markdown_cell(said)])):
                follows = {m[1] for m in re.finditer(re.escape(number) + r"\s*([\w/µ%]*)", plain(said))}
                powers = [WORDS[w] for w in follows & set(WORDS)]
                share = bool(re.search(re.escape(number) + r"(?:[^.;:]|\.(?=\d))*(%|percent|points)", plain(said)))
                if not (known(x, values) or x + 1 in ends or share and any(known(v, values) for v in (x/100, 1 - x/100, 1 + x/100))
                        or any(known(x*10.0**p, values) for p in powers) or "digits" in follows and known(10.0**-x, values)):
                    yield cell.id, number
        before |= written("\n".join([asserted(code or cell.source), shown(cell)]))


@pytest.mark.parametrize("path", [p for p in NOTEBOOKS if p.parent.name == "chapters"], ids=lambda p: p.stem)
def test_a_caption_says_numbers_of_its_cell(path):
    missing = [f"{cell}: {number}" for cell, number in unfounded(nbformat.read(path, as_version=4))]
    assert not missing, f"neither its cell, nor an earlier assert, nor an output holds {'; '.join(missing)}"


@pytest.mark.parametrize("cells, missing", [
    (["# \u2713 On 32 words, 200,000 rounds yield 4.07 and 3.00 tokens at\n#   acceptances 0.896 and 0.741\n"
      "for blend in (.35, .9):\n    n = rounds(32, 100_000)\n    assert abs(n/many(blend) - 1) < .01"],
     ["200,000", "4.07", "3.00", "0.896", "0.741"]),
    (["# \u2713 It gains 12.5 % at 45 GB, for 1 to 19 ranks, to 13 digits\nfor p in range(1, 20):\n"
      "    assert abs(gain(p, 45e9) - .125) < 1e-13"], []),
    (["n = 64", "# \u220e All 64 agree\nassert all(agree(i) for i in range(n))"], ["64"]),
    (["n = 64\nassert n == 64", "# \u220e All 64 agree\nassert all(agree(i) for i in range(n))"], []),
    (["# further \u2713 DeepSeek 67B keeps 0.3\nkeep = .3             # of DeepSeek 67B\nassert kept() == keep"], [])])
def test_the_test_sees_captions(cells, missing):
    assert [number for _, number in unfounded(notebook(*(("c", c) for c in cells)))] == missing

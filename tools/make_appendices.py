"""Write the generated appendices: quick reference, glossary, notation, formulas, hardware and models, the package, bibliography.

    python tools/make_appendices.py            write appendices/*.md
    python tools/make_appendices.py --check    fail if a page is not what this would write

The pages come from capacity.notation, the registry of formulas, capacity/specs, tools/appendices and
tools/quick_reference.py: edit those, never the pages.
"""
import functools
import importlib
import inspect
import json
import pkgutil
import re
import sys
import textwrap
import tomllib
from html import escape
from itertools import chain, groupby
from math import inf
from pathlib import Path

import quick_reference as quick
from docutils.nodes import make_id

import capacity
from capacity import formulas as _  # noqa: F401  (fills the registry)
from capacity import specs, units
from capacity.grammar import REGISTRY
from capacity.hardware import accelerators, clusters, links
from capacity.notation import NOTATION
from capacity.transformer import models
from capacity.units import show

ROOT = Path(__file__).resolve().parent.parent
PAGES = ROOT/"appendices"
GENERATED = "<!-- Written by tools/make_appendices.py: edit the package, not this page. -->\n"


def table(head, rows, align=""):
    """A Markdown table; `align` holds l or r per column."""
    rule = ["---:" if a == "r" else ":---" for a in align.ljust(len(head), "l")]
    return "\n".join("| " + " | ".join(map(str, row)) + " |" for row in [head, rule, *rows]) + "\n"


def chapters():
    """Chapters that define formulas, in the order of the book."""
    return sorted({f.chapter for f in REGISTRY.values()})


def number(chapter):
    """The chapter's number as the book writes it: 3a for 03a-data-pipeline-io."""
    return chapter.split("-")[0].lstrip("0")


def title(chapter):
    """The heading of a chapter's notebook: 4 The α–β model."""
    cells = json.loads((ROOT/f"chapters/{chapter}.ipynb").read_text(encoding="utf-8"))["cells"]
    return re.match(r"# (.+)", "".join(cells[0]["source"]))[1]


def cite(key):
    return f"{{cite}}`{key}`"


def unit(u):
    return str(u).replace("$", r"\$") or "ratio"


def domain(u):
    """What an argument may be: 'a count, at least 1', 'B/s, above 0'."""
    return u.domain if u.whole else f"{unit(u)}, {u.domain}"


# ---- notation --------------------------------------------------------------------------------
def notation_row(name, letter):
    uses = [f for f in REGISTRY.values() if name in f.units]
    units = {unit(f.units[name]) for f in uses}
    assert len(units) < 2, f"{name} has several units: {units}"
    first = min((f.chapter for f in uses), key=chapters().index, default=None)
    link = f"{{doc}}`{number(first)} <../chapters/{first}>`" if first else ""
    return f"${letter.latex}$", f"`{name}`", letter.meaning, units.pop() if units else "", link


def notation():
    rows = [notation_row(name, letter) for name, letter in NOTATION.items()]
    return f"""# Notation

{GENERATED}
The interface uses words and the mathematics uses letters. This is the whole dictionary: each
argument name of the package, the letter that stands for it, and the chapter whose formulas use it
first. Inside a chapter a letter has one meaning; a few letters come back elsewhere with another.

Conventions that hold everywhere: bandwidth is bytes per second **leaving one device in one
direction**; latency is seconds per message; peaks are **dense**; GB is $10^9$ bytes and GiB is
$2^{{30}}$; a multiplication and an addition count as two FLOP; a message of $n$ bytes takes
$\\alpha + n/\\beta$, with $\\beta$ in bytes per second (half of the literature writes $\\beta$ for
the inverse).

$\\alpha$ and $\\beta$ are a latency and a bandwidth on every page. The papers on scaling laws write
them for the two exponents of the loss, which are $a_\\Psi$ and $a_D$ here.

{table(["Letter", "Name", "Meaning", "Unit", "Chapter"], rows)}"""


# ---- formulas --------------------------------------------------------------------------------
def spec(f):
    """What the calculator of tools/appendices/formulas.js needs of a formula."""
    args = [[k, u.least, None if u.most == inf else u.most, u.multiple if u.whole else "any"] for k, u in f.units.items()]
    return escape(json.dumps({"js": f.js(), "unit": str(f.unit), "args": args}))


def formula_card(f):
    """Name, sentence and formula; letters, units and source in a fold, where the page adds a calculator."""
    rows = [(f"${NOTATION[k].latex}$", f"`{k}`", NOTATION[k].meaning, domain(u))
            for k, u in f.units.items()]
    rows += [("", f"`{k}`", f"constant {value:g}", domain(f.constant_units[k]))
             for k, value in f.constants.items()]
    name = f.__name__
    derived = f"derived in {{doc}}`../chapters/{f.chapter}`"
    return f"""(formula-{name.replace("_", "-")})=
### `{name}`

{f.summary}

$$
{f.latex} \\qquad [\\text{{{unit(f.unit)}}}]
$$

<details class="cx-card" data-spec="{spec(f)}">
<summary>letters, source, calculator</summary>

{table(["", "Argument", "Meaning", "Takes"], rows)}
Source: {derived if f.source == "derived" else cite(f.source)}.

</details>
"""


def formulas():
    parts = [f"""# Formulas

{GENERATED}
Every formula of the package, by the chapter that derives it. Each is a Python function of numbers,
arrays or symbols; the mathematics below is its trace, so page and code cannot differ. Named
constants stand in the formula with their values. <span class="cx-screen">Open a card to read its letters and to compute it with your own
numbers.</span>
"""]
    for chapter in chapters():
        parts.append(f"## {title(chapter)}\n\n{{doc}}`Chapter {number(chapter)} <../chapters/{chapter}>` derives them.\n")
        parts += [formula_card(f) for f in REGISTRY.values() if f.chapter == chapter]
    script = (ROOT/"tools/appendices/formulas.js").read_text(encoding="utf-8")
    return "\n".join([*parts, f"<script>\n{script}</script>\n"])


# ---- glossary --------------------------------------------------------------------------------
def stems():
    """The file of each chapter by its number: {"3a": "03a-data-pipeline-io"}."""
    return {number(path.stem): path.stem for path in sorted((ROOT/"chapters").glob("*.ipynb"))}


def terms():
    """The words of tools/appendices/glossary.toml, in the order of the alphabet."""
    found = tomllib.loads((ROOT/"tools/appendices/glossary.toml").read_text(encoding="utf-8"))["term"]
    return sorted(found, key=lambda t: t["name"].lower())


def glossary_entry(term):
    """A term, its sentences, where it is derived, and what the search shall find it by."""
    chapter, also = stems()[term["chapter"]], term.get("also", [])
    where = "Derived in" if "formula" in term else "See"
    says = [term["says"], f"{where} {{doc}}`chapter {term['chapter']} <../chapters/{chapter}>`"]
    if "formula" in term:
        says[-1] += f"; formula {formula_link(term['formula'])}"
    says[-1] += "."
    says += ["*Also here:* " + ", ".join(also) + "."]*bool(also)
    loose = [word.replace("-", " ") for word in [term["name"], *also] if "-" in word]           # as people type it
    found = dict.fromkeys([*also, *loose])
    index = "".join(f"  :::{{index}} !{word}\n  :::\n" for word in found)
    return f"{term['name']}\n{index}  {' '.join(says)}\n"


def formula_link(name):
    """A link to the card of a formula."""
    return f"{{ref}}`{name} <formula-{name.replace('_', '-')}>`"


def glossary():
    letters = groupby(terms(), lambda t: t["name"][0].upper() if t["name"][0].isalpha() else "0 to 9")
    parts = [f"## {letter}\n\n```{{glossary}}\n" + "\n".join(map(glossary_entry, some)) + "```\n" for letter, some in letters]
    return f"""# Glossary

{GENERATED}
The words of this book in a sentence or two, each with the chapter that derives it and, where it is a quantity, the formula that
computes it. The search finds them by other names and kindred words as well, which stand behind *Also here*.

""" + "\n".join(parts)


# ---- quick reference -------------------------------------------------------------------------
def quick_row(row):
    """A question and when its answer holds; the formula; an example that is computed here, and what tests it."""
    f, chapter = REGISTRY[row.formula], stems()[row.chapter] if row.chapter else REGISTRY[row.formula].chapter
    asks = f"**{row.question}** {{doc}}`{number(chapter)} <../chapters/{chapter}>`<br><small>Condition: {row.holds}.</small>"
    shown = f"$\\displaystyle {f.narrow}$<br><small>{formula_link(row.formula)}</small>"
    return asks, shown, f"{row.example} **{row.shown()}**<br><small>Tested by: {row.tested}.</small>"


def quick_letters(rows):
    """What the letters of these rows mean; where one has two meanings, in which row."""
    asked = {}
    for row in rows:
        for name in REGISTRY[row.formula].units:
            asked.setdefault(name, row.question)
    letters = [NOTATION[name].latex for name in asked]
    said = {f"${NOTATION[k].latex}$ {NOTATION[k].meaning}" + f" (in *{q}*)"*(letters.count(NOTATION[k].latex) > 1)
            for k, q in asked.items()}
    return "; ".join(sorted(said, key=str.lower))


def quick_reference():
    head = ["Question, chapter", "Formula", "Example"]
    parts = [f"## {title}\n\n:::{{container}} cx-rows\n{table(head, [quick_row(row) for row in rows])}:::\n\n"
             f"Letters: {quick_letters(rows)}.\n" for title, rows in quick.GROUPS.items()]
    return f"""# Quick reference

{GENERATED}
One line for each question that a plan meets first. Every example is computed when this page is written, by the function whose
algebra stands beside it; a test computes the same number in a second way, which is named below it. Peaks are dense, a bandwidth is
what leaves one device in one direction, and GB is $10^9$ bytes.

""" + "\n".join(parts) + """
## Corrected

These lines replace statements that are widely copied; each is asserted by a test. {doc}`corrections` has the computations.

""" + "\n".join(f"- {says}" for says in quick.CORRECTED) + "\n"


# ---- corrections: the table at their head ----------------------------------------------------
CORRECTIONS, HEAD = PAGES/"corrections.ipynb", "corrections-in-one-table"
CORRECTION = re.compile(r"### (.+)\n\n\*(.+?)\.?\*\s+(.+)", re.S)


def corrections():
    """The notebook, in whose cell HEAD each correction of a founding text is a row that leads to its computation."""
    notebook = json.loads(CORRECTIONS.read_text(encoding="utf-8"))
    found = filter(None, (CORRECTION.fullmatch("".join(c["source"])) for c in notebook["cells"] if c["cell_type"] == "markdown"))
    rows = [(f'<a href="#{make_id(holds)}">{holds}</a>', claim, place) for holds, place, claim in (m.groups() for m in found)]
    cell = next(c for c in notebook["cells"] if c["id"] == HEAD)
    cell["source"] = table(["What holds", "What was printed", "Where"], rows).strip().splitlines(keepends=True)
    return json.dumps(notebook, ensure_ascii=False, indent=1) + "\n"


# ---- hardware and models ---------------------------------------------------------------------
def origin(key, entry):
    """One line on where an entry comes from: citations, date, assumptions, note."""
    own = {}
    for name, source in entry.sources.items():
        own.setdefault(source, []).append(f"`{name}`")
    others = "".join(f"; {', '.join(names)}: {cite(source)}" for source, names in own.items())
    parts = [f"- **`{key}`** {entry.name}. {cite(entry.source)}{others}; read {entry.read}."]
    parts += [f"Assumed: `{name}`, {why}." for name, why in entry.assumed.items()]
    return " ".join(parts + [entry.note] * bool(entry.note))


def origins(entries):
    return "\n".join(origin(*item) for item in entries.items()) + "\n"


def per_second(x):
    return "" if x is None else show(x, "B/s", 4)


def tera(rates, *formats):
    """The rate of the first of these formats that the device has, in TFLOP/s."""
    return next((f"{round(rates[f]/1e12, 1):,.6g}" for f in formats if f in rates), "")


def arithmetic_table():
    formats = [("fp32",), ("tf32",), ("bf16", "fp16"), ("fp8",), ("int8",), ("fp4",)]
    rows = [(f"`{k}`", *(tera(a.dense, *names) for names in formats), tera(a.measured, "bf16"))
            for k, a in accelerators().items()]
    head = ["TFLOP/s, dense", "fp32", "tf32", "16 bit", "fp8", "int8", "fp4", "16 bit, measured"]
    return table(head, rows, "lrrrrrrr")


def movement_table():
    rows = [(f"`{k}`", specs.read("accelerators")[k]["memory"], per_second(a.bandwidth),
             per_second(a.scale_up), per_second(a.nic)) for k, a in accelerators().items()]
    return table(["Device", "Memory", "Memory bandwidth", "Scale-up", "Network"], rows, "lrrrr")


def links_table():
    def latency(x):
        return show(x.alpha, "s") + (" (assumed)" if "alpha" in x.assumed else "")
    rows = [(f"`{k}`", x.name, latency(x), per_second(x.beta), per_second(x.measured))
            for k, x in links().items()]
    return table(["Link", "What it is", "Latency α", "Bandwidth β", "Measured"], rows, "llrrr")


def clusters_table():
    def level(x):
        thinned = f" at 1:{x.oversubscription}" if x.oversubscription != 1 else ""
        return f"{x.devices:,} by `{x.link.key}`{thinned}"
    rows = [(f"`{k}`", c.name, f"`{c.device.key}`", ", ".join(map(level, c.levels)))
            for k, c in clusters().items()]
    return table(["Cluster", "What it is", "Device", "Levels, innermost first"], rows)


def models_tables():
    def feed_forward(m):
        x = m.experts
        return f"{x.ffn:,} × {x.count} experts, {x.active} active" if x else f"{m.ffn:,}"
    size = [(f"`{k}`", f"{m.params:,}", f"{m.active_params:,}" if m.experts else "all", f"{m.matmul_params:,}")
            for k, m in models().items()]
    shape = [(f"`{k}`", m.layers, f"{m.hidden:,}", f"{m.heads}/{m.kv_heads}", f"{m.vocab:,}", feed_forward(m)) for k, m in models().items()]
    return "\n".join([table(["Model", "Parameters", "Active", "In matmuls"], size, "lrrr"),
                      table(["Model", "Layers", "Hidden", "Heads/KV", "Vocabulary", "Feed-forward"], shape, "lrrrrl")])


def device_names():
    """What people call the devices, for the search: H100, GB200, TPU v5p, and what they ask of them."""
    names = [name.replace("tpu-", "TPU ") if name.startswith("tpu") else name.upper() for name in accelerators()]
    short = dict.fromkeys(name.partition("-")[0] for name in names)
    return ", ".join(f"!{name}" for name in (*short, "HBM bandwidth", "NVLink bandwidth", "InfiniBand bandwidth", "peak FLOP/s"))


def hardware():
    return f"""# Hardware and models

{GENERATED}
```{{index}} {device_names()}
```

Every number below is an entry of `capacity/specs` with the document it was read from and the date.
Peaks are dense; where a sheet prints a figure with 2:4 sparsity, it is in the data as `sparse` and
never used. Bandwidth is what leaves one device in one direction, so it is half of what sheets that
add both directions print.

## Accelerators

`accelerator("h100-sxm")` gives an object with these fields. *16 bit, measured* is the fastest
matrix product that was published for the part.

{arithmetic_table()}
{movement_table()}
{origins(accelerators())}
## Links

`link("nvlink4")`. The latency is the time of the smallest message from end to end; a library's
collective pays more per step.

{links_table()}
{origins(links())}
## Clusters

`cluster("dgx-h100")`, or `cluster("dgx-h100", devices=256)` for another size. A level gives the
devices of one group, inner groups included, and the link that joins them.

{clusters_table()}
{origins(clusters())}
## Models

`model("llama3-70b")`. *Parameters* are computed from the shape and equal the exact counts of their
owners where these are published; *active* are those a token uses; *in matmuls* are the active
weights that multiply it, output head included, embedding lookup excluded.

{models_tables()}
{origins(models())}"""


# ---- the package -----------------------------------------------------------------------------
ROOMS = {"Nouns": ["hardware", "transformer", "legality", "huggingface", "layout", "stack", "placement", "runs"],
         "Verbs": ["footprint", "step", "fits", "protocol"], "Doors": ["planner", "launch", "cli"], "Data": ["specs"],
         "Language": ["units", "algebra", "notation", "js", "tape", "grammar"], "Pictures": ["pictures."], "Witnesses": ["witness."]}
WHAT = {"Nouns": "What a run is made of. Every entry of the specs has a source.",
        "Verbs": "What one step holds and takes.",
        "Doors": "Through which one comes in: a search over all layouts, in Python and in a shell.",
        "Data": "The reader of the tables, and what each of their entries carries.",
        "Language": "Units, letters and the decorator that makes a function a formula.",
        "Pictures": "What a page shows, alike in the book, in JupyterLab and on paper.",
        "Witnesses": "Programs and simulators that import no formula."}


TOP = set(dir(capacity))


def found_in(place):
    """Names of the modules that `place` stands for: itself, or all of a folder (`witness.`)."""
    room = importlib.import_module("capacity." + place.rstrip("."))
    return [m.name for m in pkgutil.walk_packages(room.__path__, room.__name__ + ".")] if place.endswith(".") else [room.__name__]


def public(module):
    """(name, object) of the public functions and classes that a module defines, in its order.

    Of a picture's module only what `from capacity import ...` gives: the rest is its workshop.  A function that remembers its
    results is one too.
    """
    top = {name for name, home in capacity._MODULE_OF.items() if "capacity." + home == module.__name__}
    for name, x in vars(module).items():
        if inspect.isfunction(inspect.unwrap(x)) or inspect.isclass(x):
            ours = x.__module__ == module.__name__ and not name.startswith("_")
            if ours and (name in top or not module.__name__.startswith("capacity.pictures")):
                yield name, x


def called(name, x):
    """`name(a, b, *, c=1)`, without annotations and long defaults, at most 76 columns wide."""
    try:
        signature = inspect.signature(x)
    except ValueError:                                    # a class made by the library
        return name
    plain = signature.replace(parameters=[p.replace(annotation=p.empty, default=p.default if len(repr(p.default)) < 200 else ...)
                                          for p in signature.parameters.values()], return_annotation=signature.empty)
    words = re.sub(r"<function (\S+) at 0x[0-9a-f]+>|<class '([\w.]+)'>", r"\1\2", str(plain))
    words = re.sub("<factory>|Ellipsis", "...", words)
    return textwrap.fill(name + words, 76, subsequent_indent=" "*(len(name) + 1), break_long_words=False, break_on_hyphens=False)


def paragraphs(doc):
    """A docstring as Markdown: prose flows; what is aligned in columns or indented stays as it stands."""
    for block in doc.split("\n\n"):
        if any(line.startswith(" ") or "   " in line for line in block.splitlines()):
            yield f"```{{code-block}} text\n:class: docstring\n{block}\n```"
        else:
            words = re.split("(`[^`]*`)", " ".join(block.split()).replace("-> ", "→\u00a0"))
            yield "".join(w if w.startswith("`") else re.sub(r"([\\*_$<\[\]#|{}])", r"\\\1", w) for w in words)


def entry(name, x):
    """Heading, signature and docstring of one function or class."""
    doc = inspect.getdoc(x)
    if not doc:
        sys.exit(f"{x.__module__}.{name} is public and has no docstring")
    kind = "class " if inspect.isclass(x) else ""
    door = f"\n\n*from capacity import* `{name}`" if name in TOP and getattr(capacity, name) is x else ""
    return f"#### {name}{door}\n\n```python\n{kind}{called(name, x)}\n```\n\n" + "\n\n".join(paragraphs(doc)) + "\n"


def argument_types():
    """The types of the arguments of formulas, which are annotations and have no docstring."""
    rows = [(f"`{name}`", unit(u), u.domain.removeprefix("a count, "))
            for name, x in vars(units).items() for u in getattr(x, "__metadata__", ())]
    return f"The types of a formula's arguments, each from `capacity`:\n\n{table(['Type', 'Unit', 'Takes'], rows)}"


def package():
    parts = [f"""# The package

{GENERATED}
Every public function and class of `capacity`, from its docstring. What stands under *Formulas* in the other appendix is not
repeated. A name that stands at the top of the package says so; the others are imported from the module in whose section they stand.
"""]
    for room, modules in ROOMS.items():
        parts.append(f"## {room}\n\n{WHAT[room]}\n")
        for module in map(importlib.import_module, chain.from_iterable(map(found_in, modules))):
            head = inspect.getdoc(module).split("\n\n")[0]
            found = [argument_types()]*(module is units) + [entry(*item) for item in public(module)]
            if found:
                parts.append(f"### {module.__name__}\n\n{head}\n\n" + "\n".join(found))
    return "\n".join(parts)


def bibliography():
    return f"""# Bibliography

{GENERATED}
```{{bibliography}}
:all:
:style: plain
```
"""


@functools.cache
def pages():
    """The text of each page by its file name."""
    made = (quick_reference, glossary, notation, formulas, hardware, package, bibliography)
    return {f"{make.__name__.replace('_', '-')}.md": make() for make in made} | {CORRECTIONS.name: corrections()}


def main():
    texts = pages()
    stale = [name for name, text in texts.items()
             if not (PAGES/name).exists() or (PAGES/name).read_text(encoding="utf-8") != text]
    if "--check" in sys.argv[1:]:
        if stale:
            sys.exit("run tools/make_appendices.py: out of step are " + ", ".join(stale))
        return
    PAGES.mkdir(exist_ok=True)
    for name in stale:
        (PAGES/name).write_text(texts[name], encoding="utf-8")
        print(f"wrote appendices/{name}")


if __name__ == "__main__":
    main()

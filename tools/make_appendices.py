"""Write the generated appendices: notation, formulas, hardware and models, bibliography.

    python tools/make_appendices.py            write appendices/*.md
    python tools/make_appendices.py --check    fail, with the names, if a page is not what this would write

The pages come from capacity.notation, the registry of formulas and capacity/specs: edit those, never the pages.
"""
import sys
from pathlib import Path

from capacity import REGISTRY, specs
from capacity import formulas as _  # noqa: F401  (fills the registry)
from capacity.hardware import accelerators, clusters, links
from capacity.models import models
from capacity.notation import NOTATION
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


def unit(u):
    return str(u).replace("$", r"\$") or "ratio"


def cite(key):
    return f"{{cite}}`{key}`"


def domain(u):
    """What an argument may be: 'a count, at least 1', 'B/s, above 0'."""
    return u.domain if u.whole else f"{unit(u)}, {u.domain}"


def anchor(name):
    return f"formula-{name.replace('_', '-')}"


# ---- notation --------------------------------------------------------------------------------
def notation():
    order = chapters()

    def row(name, letter):
        uses = [f for f in REGISTRY.values() if name in f.units]
        units = {unit(f.units[name]) for f in uses}
        assert len(units) < 2, f"{name} has several units: {units}"
        first = min((f.chapter for f in uses), key=order.index, default=None)
        return (f"${letter.latex}$", f"`{name}`", letter.meaning, units.pop() if units else "",
                f"{{doc}}`{number(first)} <../chapters/{first}>`" if first else "")
    return f"""# Notation

{GENERATED}
The interface uses words and the mathematics uses letters. This is the whole dictionary: each argument name of the package, the
letter that stands for it, and the chapter whose formulas use it first. Inside a chapter a letter has one meaning; a few letters
come back elsewhere with another.

Conventions that hold everywhere: bandwidth is bytes per second **leaving one device in one direction**; latency is
seconds per message; peaks are **dense**; GB is $10^9$ bytes and GiB is $2^{{30}}$; a multiplication and an addition count as two FLOP;
a message of $n$ bytes takes $\\alpha + n/\\beta$, with $\\beta$ in bytes per second (half of the literature writes $\\beta$ for the inverse).

{table(["Letter", "Name", "Meaning", "Unit", "Chapter"], [row(*x) for x in NOTATION.items()])}"""


# ---- formulas --------------------------------------------------------------------------------
def formula_card(f):
    rows = [(f"${NOTATION[k].latex}$", f"`{k}`", NOTATION[k].meaning, domain(u)) for k, u in f.units.items()]
    rows += [("", f"`{k}`", f"constant {v:g}", domain(f.constant_units[k])) for k, v in f.constants.items()]
    name = f.__name__.replace("_", r"\_")
    source = f"derived in {{doc}}`../chapters/{f.chapter}`" if f.source == "derived" else cite(f.source)
    return f"""({anchor(f.__name__)})=
### `{f.__name__}`

{f.summary}

$$
\\mathtt{{{name}}} = {f.latex} \\qquad [\\text{{{unit(f.unit)}}}]
$$

{table(["", "Argument", "Meaning", "Takes"], rows)}
Source: {source}.
"""


def formulas():
    parts = [f"""# Formulas

{GENERATED}
Every formula of the package, by the chapter that derives it. Each is a Python function of numbers, arrays or symbols; the mathematics
below is its trace, so page and code cannot differ. Named constants stand in the formula with their values.
"""]
    for chapter in chapters():
        parts.append(f"## Chapter {number(chapter)}\n\n{{doc}}`../chapters/{chapter}`\n")
        parts += [formula_card(f) for f in REGISTRY.values() if f.chapter == chapter]
    return "\n".join(parts)


# ---- hardware and models ---------------------------------------------------------------------
def origin(entry):
    """Where an entry comes from: citations, with the fields that have one of their own, date, assumptions, note."""
    own = {}
    for name, source in entry.sources.items():
        own.setdefault(source, []).append(f"`{name}`")
    others = "".join(f"; {', '.join(names)}: {cite(source)}" for source, names in own.items())
    parts = [f"{cite(entry.source)}{others}; read {entry.read}."]
    parts += [f"Assumed: `{field}`, {why}." for field, why in getattr(entry, "assumed", {}).items()]
    return " ".join(parts + [entry.note] * bool(entry.note))


def origins(entries):
    return "\n".join(f"- **`{key}`** {entry.name}. {origin(entry)}" for key, entry in entries.items()) + "\n"


def per_second(x):
    return "" if x is None else show(x, "B/s", 4)


def tera(rates, *formats):
    """The rate of the first of these formats that the device has, in TFLOP/s."""
    return next((f"{round(rates[f]/1e12, 1):,.6g}" for f in formats if f in rates), "")


def devices_table():
    arithmetic = [(f"`{k}`", tera(a.dense, "fp32"), tera(a.dense, "tf32"), tera(a.dense, "bf16", "fp16"), tera(a.measured, "bf16"),
                   tera(a.dense, "fp8"), tera(a.dense, "int8"), tera(a.dense, "fp4")) for k, a in accelerators().items()]
    movement = [(f"`{k}`", specs.read("accelerators")[k]["memory"], per_second(a.bandwidth), per_second(a.scale_up), per_second(a.nic))
                for k, a in accelerators().items()]
    return (table(["TFLOP/s, dense", "fp32", "tf32", "16 bit", "16 bit, measured", "fp8", "int8", "fp4"], arithmetic, "lrrrrrrr") + "\n"
            + table(["Device", "Memory", "Memory bandwidth", "Scale-up", "Network"], movement, "lrrrr"))


def links_table():
    rows = [(f"`{k}`", x.name, show(x.alpha, "s") + (" (assumed)" if "alpha" in x.assumed else ""), per_second(x.beta),
             per_second(x.measured)) for k, x in links().items()]
    return table(["Link", "What it is", "Latency α", "Bandwidth β", "Measured"], rows, "llrrr")


def clusters_table():
    def levels(c):
        return ", ".join(f"{x.devices:,} by `{x.link.key}`" + (f" at 1:{x.oversubscription}" if x.oversubscription != 1 else "")
                         for x in c.levels)
    rows = [(f"`{k}`", c.name, f"`{c.device.key}`", levels(c)) for k, c in clusters().items()]
    return table(["Cluster", "What it is", "Device", "Levels, innermost first"], rows)


def models_table():
    def ffn(m):
        return f"{m.experts.ffn:,} × {m.experts.count} experts, {m.experts.active} active" if m.experts else f"{m.ffn:,}"
    rows = [(f"`{k}`", m.layers, f"{m.hidden:,}", f"{m.heads}/{m.kv_heads}", ffn(m), f"{m.vocab:,}", f"{m.params:,}",
             f"{m.active_params:,}" if m.experts else "all", f"{m.matmul_params:,}") for k, m in models().items()]
    return table(["Model", "Layers", "Hidden", "Heads/KV", "Feed-forward", "Vocabulary", "Parameters", "Active", "In matmuls"],
                 rows, "lrrrrrrrr")


def hardware():
    return f"""# Hardware and models

{GENERATED}
Every number below is an entry of `capacity/specs` with the document it was read from and the date. Peaks are dense; where a sheet prints
a figure with 2:4 sparsity, it is in the data as `sparse` and never used. Bandwidth is what leaves one device in one direction, so it is half
of what sheets that add both directions print.

## Accelerators

`accelerator("h100-sxm")` gives an object with these fields. *16 bit, measured* is the fastest matrix product that was published for the part.

{devices_table()}
{origins(accelerators())}
## Links

`link("nvlink4")`. The latency is the time of the smallest message from end to end; a library's collective pays more per step.

{links_table()}
{origins(links())}
## Clusters

`cluster("dgx-h100")`, or `cluster("dgx-h100", devices=256)` for another size.

{clusters_table()}
{origins(clusters())}
## Models

`model("llama3-70b")`. *Parameters* are computed from the shape and equal the exact counts of their owners where these are published;
*active* are those a token uses; *in matmuls* are the active weights that multiply it, output head included, embedding lookup excluded.

{models_table()}
{origins(models())}"""


def bibliography():
    return f"""# Bibliography

{GENERATED}
```{{bibliography}}
:all:
:style: plain
```
"""


def pages():
    """The text of each page by its file name."""
    return {f"{make.__name__}.md": make() for make in (notation, formulas, hardware, bibliography)}


def main():
    stale = [name for name, text in pages().items() if not (PAGES/name).exists() or (PAGES/name).read_text() != text]
    if "--check" in sys.argv[1:]:
        if stale:
            sys.exit("run tools/make_appendices.py: out of step are " + ", ".join(stale))
        return
    PAGES.mkdir(exist_ok=True)
    for name in stale:
        (PAGES/name).write_text(pages()[name])
        print(f"wrote appendices/{name}")


if __name__ == "__main__":
    main()

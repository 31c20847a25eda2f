"""Three layers of a chapter's code, told by the first comment of a cell, and the marks that bind a proof to its sentence.

    # ∎ sentence    # ✓ sentence                 PROOF     proved; tested on the cases that the sentence names
    # further ∎ …   # further ✓ …                FURTHER   one fold a section
    # figure   # table: what   # setup  …        WORKSHOP  what made a picture; behind a button
    anything else                                ARGUMENT  visible

A sentence may go on in lines that begin with "#   ".  In Markdown a ∎ or ✓ after the end of a sentence is the mark of that
sentence; the proofs that follow, before the next Markdown cell with marks, belong to the marks in order.

    python tools/layers.py chapters/*.ipynb      what is wrong, in words for the author
"""
import ast
import json
import re
import sys
from pathlib import Path
from typing import NamedTuple

WORDS = {"figure": "Code of the figure", "drawing": "Code of the drawing", "scene": "Code of the scene", "table": "Code of the table",
         "explorer": "Code of the explorer", "decide": "Code of the card", "quiz": "Code of the questions", "guess": "Code of the question",
         "recipe": "Code", "helper": "Code", "setup": "Setup", "alphabet": "The letters of this page"}
PROOF = re.compile(r"#\s*(?P<further>further\s+)?(?P<mark>[∎✓])\s*(?P<says>.+)")
WORKSHOP = re.compile(rf"#\s*(?P<kind>{'|'.join(WORDS)})\s*(?::\s*(?P<says>.*))?$")
CHECK = re.compile(r"#\s*(check|why) (?P<of>\d+[a-z]?\.\d+)")
SOLUTION = re.compile(r"\n[ \t]*### (BEGIN|END) SOLUTION\b")
ACTS = ("Understand", "Compute", "Use")

VISIBLE, MARKS, TOGETHER, LONGEST = 20, 15, 2, 140     # cells, marks a page, marks a paragraph, characters of a caption
UNIVERSAL = re.compile(r"\b(only|if and only if|iff|any|never|always|every|uniquely|unique)\b"
                       r"|\bfrom\b[^,;:.]{1,50}?\bon(?=$|[,;:.]| (?:and|or|but)\b)", re.I)
SWEEPING = re.compile(r"\b(no(?! (?:less|more)\b)|nobody|none|whatever|cannot|in all cases)\b", re.I)     # in the named cases
CASES = re.compile(r"[\d½¼]|\b(?:two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|dozen|hundred|thousand)\b|,.*\band\b", re.I)
HOUSEKEEPING = re.compile(r"\bthe (?:book|package|library|chapter)['’]s\b|\bof the (?:book|package|library)\b"
                          r"|\bcapacity\.|\b[a-z]+_[a-z_]+\b")
VERBS = set("""is are was were be been being am has have had do does did can cannot could may might must will would shall should
add adds agree agrees allow allows arrive arrives beat beats become becomes begin begins bring brings carry carries change changes
come comes commute commutes compute computes contain contains cost costs count counts cross crosses cut cuts decide decides
depend depends differ differs disagree disagrees divide divides double doubles drop drops end ends equal equals exceed exceeds fail
fails fall falls find finds fit fits follow follows gain gains gather gathers get gets give gives go goes grow grows halve halves hide
hides hold holds keep keeps lag lags last lasts lead leads leave leaves lie lies lose loses make makes match matches mean means
measure measures meet meets miss misses move moves need needs overlap overlaps pay pays pass passes predict predicts prevent prevents
reach reaches read reads receive receives remain remains repeat repeats return returns rise rises run runs save saves say says scale
scales send sends share shares shrink shrinks sit sits solve solves split splits start starts stay stays stop stops store stores sum
sums take takes tend tends tie ties touch touches turn turns use uses vanish vanishes wait waits win wins work works write writes
yield yields underestimates underestimate overestimates overestimate explains explain stands stand sees see shows show puts put
reproduces reproduce recovers recover loads load copies reduces reduce separates separate bounds bound""".split())


class Cell(NamedTuple):
    """A code cell: its layer, its word (figure, table …), its mark, what its first comment says, the code below."""
    layer: str
    kind: str
    mark: str
    says: str
    code: str


def read(source):
    """The Cell that its first comment makes of a source."""
    first, _, rest = source.partition("\n")
    proof, workshop, check = (pattern.match(first) for pattern in (PROOF, WORKSHOP, CHECK))
    if check:
        return Cell("workshop", "check", "", f"The {check[1] if check[1] == 'check' else 'reason, computed,'} of {check['of']}", rest)
    if not (proof or workshop):
        return Cell("argument", "", "", "", source)
    says = [(proof or workshop)["says"] or ""]
    while rest.startswith("#   "):                        # a sentence may go on in the next line
        line, _, rest = rest.partition("\n")
        says.append(line.lstrip("# "))
    says = " ".join(says).strip()
    if proof:
        return Cell("further" if proof["further"] else "proof", "", proof["mark"], says, rest)
    name = WORDS[workshop["kind"]]
    return Cell("workshop", workshop["kind"], "", f"{name}: {says}" if says else name, rest)


# ---- marks
HIDDEN = re.compile(r"^(`{3,}|~{3,}).*?^\1|^\$\$.*?^\$\$|(`+)[^`\n].*?\2|(?<!\\)\$(?=\S)[^$\n]+?(?<=\S)\$(?!\d)"
                    r"|^#{1,6} .*?$|^\s*\|.*?$|<!--.*?-->", re.S | re.M)
MARK = re.compile(r"[ \u00a0](?P<mark>[∎✓])(?=$|[\s).,;:])", re.M)
STOP = re.compile(r"(?<=[.!?:])(?:[*_)\"”]*)(?:\s+[∎✓])?\s+(?=\S)|\n\s*\n|\n\s*(?:[-*]|\d+\.)\s")


def visible(text):
    """Markdown with code, displayed formulas, headings and tables blanked out, character by character."""
    return HIDDEN.sub(lambda m: re.sub(r"[^\n]", " ", m[0]), text)


def marks(text):
    """The marks of a Markdown cell, as matches of MARK in its text."""
    return list(MARK.finditer(visible(text)))


def sentence(text, mark):
    """The sentence that a mark stands at the end of."""
    before = text[:mark.start()].rstrip()
    return re.sub(r"\s+", " ", before[max((m.end() for m in STOP.finditer(before)), default=0):])


def bind(cells):
    """({(cell, number of the mark in it): cell of its proof}, faults) of a notebook's cells."""
    bound, wrong, waiting = {}, [], []
    for i, cell in enumerate(cells):
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            found = marks(source)
            if found:
                wrong += [f"cell {at}: the {kind} at “…{said[-50:]}” has no proof after it" for at, _, kind, said in waiting]
                waiting = [(i, k, m["mark"], sentence(source, m)) for k, m in enumerate(found)]
        elif cell["cell_type"] == "code" and read(source).layer == "proof":
            says = read(source)
            if not waiting:
                wrong.append(f"cell {i}: no sentence before it carries a {says.mark} for: {says.says}  "
                             f"(end the sentence with ' {says.mark}', or begin the cell with '# further {says.mark}')")
                continue
            at, k, kind, said = waiting.pop(0)
            bound[at, k] = i
            if kind != says.mark:
                wrong.append(f"cell {i}: a {says.mark} for the {kind} at “…{said[-50:]}”: {says.says}")
    return bound, wrong + [f"cell {at}: the {kind} at “…{said[-50:]}” has no proof after it" for at, _, kind, said in waiting]


def headings(cells):
    """(level, text) of each heading."""
    text = "\n\n".join("".join(c["source"]) for c in cells if c["cell_type"] == "markdown")
    text = re.sub(r"^(`{3,}|:{3,}|~{3,}).*?^\1", "", text, flags=re.S | re.M)
    return [(len(m[1]), m[2].strip()) for m in re.finditer(r"^(#{1,6}) +(.+)$", text, re.M)]


def in_acts(cells):
    """Whether a chapter is in the form of three acts: its H2 begin with Understand, Compute and Use."""
    titles = [text for level, text in headings(cells) if level == 2]
    return all(any(re.match(rf"{act}\b", t) for t in titles) for act in ACTS)


# ---- the check
def names(code):
    """Names that a cell binds."""
    tree = ast.parse(re.sub(r"^[!%].*$", "", code, flags=re.M))
    return {n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)} | {
        n.name for n in ast.walk(tree) if isinstance(n, (ast.FunctionDef, ast.ClassDef))}


def mentions(text, name):
    """Whether Markdown speaks about a name: in code or mathematics, or as a word where it has more than one letter."""
    inside = re.findall(r"`+[^`]+`+|\$[^$]+\$", text)
    return any(re.search(rf"(?<![A-Za-z]){re.escape(name)}(?![A-Za-z])", s) for s in inside) or (
        len(name) > 2 and re.search(rf"\b{re.escape(name)}\b", text) is not None)


def caption_faults(says, mark):
    """What is wrong with a proof's sentence."""
    words = set(re.findall(r"[a-z]+", says.lower()))
    universal, keeping = UNIVERSAL.search(says) or not CASES.search(says) and SWEEPING.search(says), HOUSEKEEPING.search(says)
    if len(says) > LONGEST:
        yield f"{len(says)} characters; at most {LONGEST}"
    if says.endswith(".") or re.search(r"[.!?] [A-Z]", says):
        yield "one sentence, without a full stop"
    if not words & VERBS:
        yield "no verb: a caption is a sentence that one can disagree with (a verb that is missing belongs in layers.VERBS)"
    if keeping:
        yield f"“{keeping[0]}” is housekeeping: say what is true, not how it is called here"
    if mark == "✓" and universal:
        yield f"“{universal[0]}” under ✓: name the cases that were tested, or prove it (∎)"


def faults(cells):
    """What is wrong with the layers of a chapter in three acts: sentences for its author."""
    bound, wrong = bind(cells)
    code = {i: read("".join(c["source"])) for i, c in enumerate(cells) if c["cell_type"] == "code"}
    shown = [i for i, c in code.items() if c.layer == "argument"]
    if len(shown) > VISIBLE:
        wrong.append(f"{len(shown)} visible code cells; at most {VISIBLE} (ten are better)")
    if len(bound) > MARKS:
        wrong.append(f"{len(bound)} marks; at most {MARKS}: the rest are '# further' checks")
    for i, cell in code.items():
        if cell.layer in ("proof", "further"):
            if not re.search(r"^\s*assert\b", cell.code, re.M):
                wrong.append(f"cell {i}: a proof without an assert: {cell.says}")
            wrong += [f"cell {i}: {fault}: {cell.says}" for fault in caption_faults(cell.says, cell.mark)]
        if cell.layer == "argument" and not cells[i].get("outputs"):
            text = "".join("".join(c["source"]) for c in (
                next((c for c in reversed(cells[:i]) if c["cell_type"] == "markdown"), {"source": ""}),
                next((c for c in cells[i:] if c["cell_type"] == "markdown"), {"source": ""})))
            if not any(mentions(text, name) for name in names(cell.code)):
                wrong.append(f"cell {i}: visible, shows nothing, and the text beside it names nothing that it defines "
                             f"({', '.join(sorted(names(cell.code))) or 'nothing'}): '# helper', or say what it is for")
    for i, cell in enumerate(cells):
        if cell["cell_type"] != "markdown":
            continue
        text = "".join(cell["source"])
        for m in marks(text):
            universal = UNIVERSAL.search(sentence(text, m)) if m["mark"] == "✓" else None
            if universal:
                wrong.append(f"cell {i}: “{universal[0]}” in a sentence under ✓: {sentence(text, m)}")
        for paragraph in re.split(r"\n\s*\n", visible(text)):
            if len(MARK.findall(paragraph)) > TOGETHER:
                wrong.append(f"cell {i}: {len(MARK.findall(paragraph))} marks in one paragraph; at most {TOGETHER}")
    return wrong


def main(paths):
    bad = 0
    for path in paths:
        cells = json.loads(Path(path).read_text(encoding="utf-8"))["cells"]
        kinds = [read("".join(c["source"])).layer for c in cells if c["cell_type"] == "code"]
        print(f"{Path(path).stem}: " + ", ".join(f"{kinds.count(k)} {k}" for k in ("argument", "proof", "further", "workshop"))
              + ("" if in_acts(cells) else "; not yet in three acts"))
        for line in faults(cells) if in_acts(cells) else []:
            bad += 1
            print("   ", line)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""The built page: a notebook's layers become marks, folds and buttons; cards, citations and letters become links and notes.

A Sphinx extension.  It reads tools/layers.py's grammar while a notebook is read and changes nothing on disk.
"""
import copy
import gc
import html
import json
import posixpath
import re
import tomllib
from pathlib import Path
from xml.etree import ElementTree

import explorers
import landing
import layers
import letters
import make_plan
import publish
import reading
import toolkit
from docutils import nodes
from docutils.parsers.rst import directives
from docutils.statemachine import StringList
from fontTools import subset
from pybtex.backends import plaintext
from pybtex.plugin import register_plugin
from sphinx import addnodes
from sphinx.transforms import SphinxTransform
from sphinx.util.docutils import SphinxDirective
from sphinx.util.osutil import relative_uri

from capacity.pictures.shapes import width

STATIC = Path(__file__).resolve().parents[1]/"capacity/pictures/static"
BESIDE = 215                            # pixels of a phone beside the label of a drawing's switches
ASKED = "how many GPUs do I need", "how many devices", "how long does training take"         # of the planner, by those who search
# Where the button of the code stands, by what the cell shows: in its box, or beside what has none.
BUTTON = {"boxed": "cx-explore|cx-stepper|cx-gantt|cx-duty|cx-scenes|cx-ask|cx-decide|cx-quiz", "wide": "cx-gantt",
          "beside": "cx-table|cx-named|cx-recall|formula-card|text_latex|cx-answer|printed"}
GLOSSARY = Path(__file__).parent/"appendices/glossary.toml"


class mark(nodes.Inline, nodes.TextElement):
    """∎ or ✓ at a sentence: opens the program that proves it."""


class fold(nodes.General, nodes.Element):
    """<details>: its first child is a `says`."""


class says(nodes.General, nodes.TextElement):
    """<summary>"""


# ---- reading: the notebook, in memory
def annotate(notebook):
    """Sources without their first comments, a role for each mark, and what the transform needs, in the cells' metadata."""
    cells = notebook["cells"]
    chapter = layers.in_acts(cells)
    bound, minutes = (layers.bind(cells)[0], reading.minutes(cells)) if chapter else ({}, 0)
    for i, cell in enumerate(cells):
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown" and chapter:
            found = layers.marks(source)
            for k, m in reversed(list(enumerate(found))):
                if (i, k) in bound:
                    source = f"{source[:m.start()]}\u00a0{{cx-mark}}`{bound[i, k]}`{source[m.end():]}"
            cell["source"] = source
        if cell["cell_type"] != "code":
            continue
        read = layers.read(source)
        kept = cell["metadata"].get("tags", [])
        shown = [o.get("data", {}) for o in cell["outputs"]]
        made = "".join("".join(data.get("text/html", "")) or "text_latex"*("text/latex" in data) for data in shown)
        made = made or "printed"*any(o["output_type"] == "stream" for o in cell["outputs"])
        placed = [place for place, names in BUTTON.items() if re.search(rf"\b({names})\b", made)]
        cell["metadata"]["tags"] = [*kept, read.layer, *([read.kind] if read.kind else []), *(placed if read.layer == "workshop" else [])]
        cell["metadata"]["book"] = {"index": i, **read._asdict()}
        cell["source"] = layers.SOLUTION.sub("", read.code) if read.layer == "argument" else read.code
        for output in cell["outputs"]:
            picture(cell, output)
            data = output.get("data", {})
            if 'class="cx-switches"' in "".join(data.get("text/html", "")):
                data["text/html"] = re.sub(r"<fieldset>.*?</fieldset>", switches, "".join(data["text/html"]))
            if "".join(data.get("text/plain", "")).startswith("explore("):
                data["text/html"] = explorers.dressed("".join(data["text/html"]), "".join(data["text/plain"]))
    if chapter:
        under_title(cells, len(bound), round(minutes))
    return notebook


def picture(cell, output):
    """An SVG lies in the page, named by the cell's alternative text, so that it has the page's colours."""
    data, alt = output.get("data", {}), cell["metadata"].get("mystnb", {}).get("image", {}).get("alt", "")
    if "image/svg+xml" in data and "text/html" not in data:
        svg = re.sub(r"^.*?(?=<svg)", "", "".join(data.pop("image/svg+xml")), flags=re.S)
        data["text/html"] = f'<figure class="cx-sketch cx-chart">{svg}</figure>'
    if not alt and 'class="cx-sketch cx-chart"' in "".join(data.get("text/html", "")):        # its title says what it shows
        title = re.search(r"<figcaption>(.*?)</figcaption>", "".join(data["text/html"]), re.S)
        alt = html.unescape(re.sub(r"<[^>]+>", "", title[1])) if title else ""
    if alt and "<svg" in "".join(data.get("text/html", "")):
        label = f'<svg role="img" aria-label="{html.escape(alt)}" '
        data["text/html"] = re.sub(r'<svg (?![^>]*aria-)(?:role="img" )?', lambda _: label, "".join(data["text/html"]))


def switches(found):
    """A row of switches; one that a phone has no room for beside its label says so, and goes below it."""
    options = re.findall(r"<span>(.*?)</span>", found[0])
    below = sum(width(html.unescape(o)) + 21 for o in options) > BESIDE
    return found[0].replace("<fieldset>", '<fieldset class="cx-below">') if below else found[0]


def under_title(cells, statements, minutes):
    """The page's length, the way to the decision, and what the marks mean, in one paragraph below the title."""
    first = next(c for c in cells if c["cell_type"] == "markdown")
    made = ["".join(o.get("data", {}).get("text/html", "")) for c in cells if c["cell_type"] == "code" for o in c["outputs"]]
    text = " ".join("".join(c["source"]) for c in cells if c["cell_type"] == "markdown")
    card = next((m[1] for m in (re.search(r'class="cx-decide[^"]*" id="([\w-]+)"', one) for one in made) if m), None)
    section = re.search(r"(?:^| )\((decide[\w-]*)\)=$", text, re.M)          # what it asks for is explained before the card
    way = section[1] if section else card
    lines = [f"About {minutes} minutes." + (f' <span class="cx-screen">Ten minutes? <a href="#{way}">Go to the decision</a>.</span>'
                                            if card and "Ten minutes?" not in text else "")]
    if statements:
        lines.append(f"{statements} statement{'s carry' if statements > 1 else ' carries'} ∎ (proved with symbols or for every case) or ✓ "
                     "(tested on the cases it names): each is a program that ran before this page was built, and would have stopped it "
                     "by failing.")
    title, _, rest = "".join(first["source"]).partition("\n")
    first["source"] = f"{title}\n\n:::{{container}} cx-under\n" + "\n\n".join(lines) + f"\n:::\n{rest}"


def under_exercises(cells, stem, address):
    """The way to the chapter's quick questions, and how to run the page, below its first words."""
    made = "".join(landing.made(stem.partition("-")[0].lstrip("0")))
    asked = re.search(r'class="cx-question" id="([\w-]+-1)"', made)[1]
    take = "" if address else f' and <a href="../{publish.wheel_name()}" download>the wheel</a>, saved beside it'
    cells[0]["source"] = "".join(cells[0]["source"]) + (
        f'\n\n<p class="cx-screen">Warm up with the <a href="../chapters/{stem}.html#{asked}">three quick questions</a> of the chapter. '
        'The exercises run in JupyterLab: <code class="literal">make study</code> opens it in a clone of the book; or take the notebook, '
        f'with the arrow at the top of this page{take}: its second cell installs the package <code class="literal">capacity</code>.</p>\n')


def read(app, docname, source):
    if not str(app.env.doc2path(docname)).endswith(".ipynb"):
        return
    notebook = annotate(json.loads(source[0]))
    folder, _, stem = docname.partition("/")
    if folder == "exercises":
        under_exercises(notebook["cells"], stem, app.config.book_repository)
    source[0] = json.dumps(notebook)


def role(name, rawtext, text, lineno, inliner, options=None, content=None):
    return [mark(text, "", proof=int(text))], []


class PlanARun(SphinxDirective):
    """The planner of the page "Plan a run"."""

    def run(self):
        for path in (make_plan.__file__, *make_plan.HERE.iterdir()):
            self.env.note_dependency(str(path))
        return [nodes.raw("", make_plan.html(), format="html")]


class MapOfChapters(SphinxDirective):
    """What each chapter builds on, folded unless it is to be open."""

    option_spec = {"open": directives.flag}

    def run(self):
        self.env.note_dependency(str(reading.__file__))
        if "open" in self.options:
            return [nodes.raw("", f'<div class="cx-map" id="map">{reading.map_of_chapters()}</div>', format="html")]
        return [make_fold("detour", [nodes.Text("What each chapter builds on")],
                          [nodes.raw("", reading.map_of_chapters(), format="html")], ids=["map"])]


class LivePicture(SphinxDirective):
    """A player of the book, and the style of the page that it opens."""

    def run(self):
        self.env.note_dependency(str(landing.STYLE))
        return [nodes.raw("", f"<style>{landing.STYLE.read_text(encoding='utf-8')}</style>{landing.live()}", format="html")]


class ChapterCards(SphinxDirective):
    """Every chapter with its question, a picture and its minutes."""

    def run(self):
        return [nodes.raw("", landing.cards(), format="html")]


class Counted(SphinxDirective):
    """What is counted in the notebooks."""

    def run(self):
        for path in (reading.__file__, landing.__file__, *reading.ROOT.glob("chapters/*.ipynb"), *reading.ROOT.glob("exercises/*.ipynb")):
            self.env.note_dependency(str(path))
        box = nodes.container()
        self.state.nested_parse(StringList(self.text().splitlines()), self.content_offset, box)
        return [box]


class Findings(Counted):
    """Numbers that surprise."""

    def text(self):
        return landing.findings()


class RunThisBook(Counted):
    """How to get the book and the package."""

    def text(self):
        return landing.run(self.config.book_repository)


class CiteThisBook(Counted):
    """How to cite, copy and correct it."""

    def text(self):
        return landing.cite(self.config.book_repository)


class ReadingPaths(Counted):
    """Ways through the book, and the hours that they take."""

    def text(self):
        return reading.paths()


class Points(Counted):
    """What the exercises of each part are worth."""

    def text(self):
        return reading.worth()


class Course(Counted):
    """The plan of a course that meets every week or day."""

    required_arguments = 1

    def text(self):
        return reading.course(self.arguments[0])


class Toolkit(SphinxDirective):
    """The questions of the page "The toolkit as a quiz"."""

    def run(self):
        self.env.note_dependency(str(toolkit.__file__))
        return [nodes.raw("", toolkit.html(), format="html")]


# ---- the document
def inline(text):
    """Text, $mathematics$ and `code` as nodes."""
    for plain, formula, code in re.findall(r"([^$`]+)|\$([^$]+)\$|`([^`]+)`", text):
        yield nodes.Text(plain) if plain else nodes.math(formula, formula) if formula else nodes.literal(code, code)


def spoken(text):
    """The same for a screen reader."""
    return re.sub(r"[$`]", "", text)


def make_fold(kind, summary, children, **attributes):
    return fold("", says("", "", *summary), *children, kind=kind, **attributes)


class Words(SphinxTransform):
    """A chapter is found by the words of the glossary that it derives, and by their other names."""

    default_priority = 500

    def apply(self, **kwargs):
        folder, _, stem = self.env.docname.partition("/")
        if self.env.docname == "plan":
            self.document.insert(0, addnodes.index(entries=[("single", word, "", "main", None) for word in ASKED], inline=False))
        if folder != "chapters":
            return
        self.env.note_dependency(str(GLOSSARY))
        number = stem.partition("-")[0].lstrip("0")
        terms = [t for t in tomllib.loads(GLOSSARY.read_text(encoding="utf-8"))["term"] if t["chapter"] == number]
        words = [w for t in terms for w in (t["name"], *t.get("also", []))]
        self.document.insert(0, addnodes.index(entries=[("single", word, "", "main", None) for word in words], inline=False))


class Folds(SphinxTransform):
    """Proofs go behind the paragraph that they prove, further checks to the end of their section, code behind its button."""

    default_priority = 880

    def apply(self, **kwargs):
        cells = {c["cell_metadata"]["book"]["index"]: c for c in self.document.findall(nodes.container)
                 if c.get("nb_element") == "cell_code" and "book" in c.get("cell_metadata", {})}
        if not cells:
            return
        proofs, last = {}, {}
        for i, cell in cells.items():
            book = cell["cell_metadata"]["book"]
            if book["layer"] in ("proof", "further"):
                summary = [nodes.inline("", book["mark"] + "\u00a0", classes=["cx-sign"]), *inline(book["says"])]
                proofs[i] = make_fold("proof", summary, [cell.deepcopy()], ids=[f"proof-{i}"])
                if book["layer"] == "proof":
                    cell.replace_self(proofs[i])
            elif book["layer"] == "workshop":
                code, *outputs = cell.children
                silent = not outputs
                cell["classes"] += ["silent"]*silent + ["check"]*(silent and book["kind"] == "check")
                cell[0] = make_fold("shop", [nodes.inline("", book["says"])], [code.deepcopy()])
        for m in list(self.document.findall(mark)):
            proof = proofs[m["proof"]]
            book = cells[m["proof"]]["cell_metadata"]["book"]
            m["sign"], m["name"] = book["mark"], spoken(book["says"])
            block = m
            while not isinstance(block.parent, (nodes.section, nodes.document)):
                block = block.parent
            proof.parent.remove(proof)
            after = last.get(id(block), block)
            after.parent.insert(after.parent.index(after) + 1, proof)
            last[id(block)] = proof
        self.gather(cells, proofs)
        for section in [s for s in self.document.findall(nodes.section) if s[0].astext().startswith("Detour:")]:
            section.replace_self(make_fold("detour", section[0].children, section[1:], ids=section["ids"]))

    def gather(self, cells, proofs):
        """One fold of the further checks of each section, at the end of its own text."""
        sections = {}
        for i, cell in cells.items():
            if cell["cell_metadata"]["book"]["layer"] == "further":
                section = cell
                while not isinstance(section, nodes.section):
                    section = section.parent
                sections.setdefault(id(section), (section, []))[1].append(proofs[i])
                cell.parent.remove(cell)
        for section, found in sections.values():
            count = f"{len(found)} further check{'s' if len(found) > 1 else ''}"
            at = next((k for k, c in enumerate(section.children) if isinstance(c, nodes.section)), len(section))
            while at and isinstance(section[at - 1], nodes.target):          # a label belongs to the section after it
                at -= 1
            section.insert(at, make_fold("further", [nodes.Text(count)], found))


def visit_fold(self, node):
    self.body.append(self.starttag(node, "details", "\n", CLASS=f"cx-fold cx-{node['kind']}"))


def depart_fold(self, node):
    self.body.append("</div></details>\n")


def visit_says(self, node):
    self.body.append("<summary><span>")


def depart_says(self, node):
    self.body.append('</span></summary><div class="cx-inside">\n')


def visit_mark(self, node):
    name = html.escape(node["name"], quote=True)
    self.body.append(f'<a class="cx-qed" role="button" href="#proof-{node["proof"]}" aria-controls="proof-{node["proof"]}" '
                     f'aria-expanded="false" aria-label="{name}" title="{name}">{node["sign"]}</a>')
    raise nodes.SkipNode


def visit_mark_plain(self, node):
    self.body.append(node["sign"])
    raise nodes.SkipNode


def nothing(self, node):
    pass


# ---- the page
def navigation(app, name, context):
    """Chapter, its exercises, the next chapter: next and back skip the solutions."""
    if not hasattr(app, "book_relations"):
        app.book_relations = app.env.collect_relations()                # page -> [up, before, after]
    relations, stem = app.book_relations, posixpath.basename(name)

    def to(other):
        return {"link": app.builder.get_relative_uri(name, other), "title": app.builder.render_partial(
            app.env.titles[other])["title"]} if other else None
    if name == f"exercises/{stem}" and f"solutions/{stem}" in relations:
        context["next"] = to(relations[f"solutions/{stem}"][2])
    if name.startswith("chapters/") and relations.get(name, [None]*3)[1]:
        before = relations[name][1]
        context["prev"] = to(before.replace("solutions/", "chapters/") if before.startswith("solutions/") else before)


def sidebar(app, name):
    """What Sphinx gives as `toctree` for the page: resolved once, for it is the same tree on all pages, with other addresses."""
    def toctree(**kwargs):
        trees = app.__dict__.setdefault("book_trees", {})
        key = tuple(sorted(kwargs.items()))
        if key not in trees:
            trees[key] = ElementTree.fromstring(f"<nav>{app.builder._get_local_toctree(app.config.root_doc, **kwargs)}</nav>")
        tree, here = copy.deepcopy(trees[key]), app.builder.get_target_uri(name)
        above = {child: parent for parent in tree.iter() for child in parent}
        for link in tree.iter("a"):
            if link.get("href") == here:
                link.set("href", "#")
                node = link
                while node is not tree:
                    classes = node.get("class", "").split()
                    node.set("class", " ".join(["current", *classes] if node is link else [*classes, "current"]))
                    node = above[node]
            elif "://" not in link.get("href"):
                link.set("href", relative_uri(here, link.get("href")))
        return "".join(ElementTree.tostring(e, encoding="unicode", method="html") for e in tree)
    return toctree


def side_bar(app, name, template, context, doctree):
    context["toctree"] = sidebar(app, name)


def cards(app, name, body):
    """What a formula's card says about its origin becomes links."""
    titles = app.env.titles
    cites = {c.key: c for c in app.env.get_domain("cite").citations}

    def chapter(match):
        target = "chapters/" + match[1]
        if target == name:
            return "derived here"
        return (f'derived in <a href="{app.builder.get_relative_uri(name, target)}">chapter '
                f"{titles[target].astext().split(' ')[0]}</a>") if target in titles else match[0]

    def source(match):
        if match[1] not in cites:
            return match[0]
        cited = cites[match[1]]
        uri = app.builder.get_relative_uri(name, cited.bibliography_key.docname)
        says = cited.formatted_entry.text.render(plaintext.Backend())
        return (f'source: <span class="bibtex-citation">[<a class="reference internal" href="{uri}#{cited.citation_id}" '
                f'title="{html.escape(says)}">{cited.formatted_entry.label}</a>]</span>')

    def recalled(match):
        formula, target = match[1], "chapters/" + match[2]
        link = f' · <a href="{app.builder.get_relative_uri(name, target)}">chapter ' \
               f"{titles[target].astext().split(' ')[0]}</a>" if target in titles else ""
        card = app.builder.get_relative_uri(name, "appendices/formulas") + "#" + formula.replace("_", "-")
        return match[0].replace(f"<code>{formula}</code>", f'<a href="{card}"><code>{formula}</code></a>{link}')
    body = re.sub(r"derived in ([\w-]+)", chapter, body)
    body = re.sub(r"source: (\w+)", source, body)
    return re.sub(r'<li data-formula="(\w+)" data-chapter="([\w-]+)">.*?</li>', recalled, body, flags=re.S)


def exercises(app, name, body):
    """A number in bold, 15.3, leads to the exercise of that number, and the check of an exercise to its solution."""
    stem = posixpath.basename(name)
    if name.startswith("exercises/") and f"solutions/{stem}" in app.env.tocs:
        uri = app.builder.get_relative_uri(name, f"solutions/{stem}")
        found = {ref.astext().partition(" ")[0]: ref["anchorname"] for ref in app.env.tocs[f"solutions/{stem}"].findall(nodes.reference)}

        def solved(m):
            link = f'<a href="{uri}{found.get(m[1])}">The solution of {m[1]}</a>'
            return f'{m[0]}\n<p class="cx-solved-in">{link}</p>' if m[1] in found else m[0]
        return re.sub(r"The check of (\d+[ab]?\.\d+)</span></span></summary>.*?</details>", solved, body, flags=re.S)
    if not name.startswith("chapters/") or f"exercises/{stem}" not in app.env.tocs:
        return body
    uri, found = app.builder.get_relative_uri(name, f"exercises/{stem}"), {}
    for ref in app.env.tocs[f"exercises/{stem}"].findall(nodes.reference):
        number = re.match(r"\d+[ab]?\.\d+", ref.astext())
        if number:
            found[number[0]] = ref["anchorname"]
    return re.sub(r'(<a class="reference internal"[^>]*><span[^>]*>)?<strong>(\d+[ab]?\.\d+)</strong>(?(1)</span></a>)',
                  lambda m: f'<a href="{uri}{found[m[2]]}"><strong>{m[2]}</strong></a>' if m[2] in found else m[0], body)


WORDY = 100                             # characters of a row in the middle: in more, a phone shows words one under the other


def stack(found):
    """A table that is mostly words: each cell carries its head, for on a phone a row is a card."""
    def bare(part):
        return html.unescape(re.sub(r"<[^>]+>", "", part)).strip()
    head, *rows = [re.split(r"(?=<t[hd]\b)", row) for row in re.findall(r"<tr\b.*?</tr>", found[0], re.S)]
    middle = [sorted(len(bare(cell)) for cell in column)[len(rows)//2] for column in zip(*rows)]
    if sum(middle) <= WORDY:
        return found[0]
    heads = ["", *(html.escape(re.sub(r"\\[()]", "", bare(h))) for h in head[1:])]
    if middle[1] > 3:                                                    # a name says itself, a number does not
        heads[1] = ""
    labelled = "".join(c.replace("<td", f'<td data-label="{h}"', 1) if h and bare(c) else c for row in rows for h, c in zip(heads, row))
    return f'<table class="table cx-stack"><thead>{"".join(head)}</thead><tbody>{labelled}</tbody></table>'


UNIT = re.compile(r"(?<=[\d⁰¹²³⁴⁵⁶⁷⁸⁹]) (?=(?:%|[kMGTPEµmn]?i?(?:B|FLOP|s|W|J|Hz)(?:/s)?|min|h)(?![\w/]))"
                  r"|(?<=×) (?=\d)|(?<=\d) (?=× \d)|(?<=\d min) (?=·)")
KEPT = re.compile(r"<(pre|script|style|svg)\b.*?</\1>|<(?:span|div) class=\"math.*?</(?:span|div)>|<[^>]+>|\\\(.*?\\\)", re.S)
TIGHT = re.compile(r'([(\[“]?<span class="math notranslate nohighlight"[^>]*>[^<]*</span>)'
                   r'((?:[.,;:!?)\]’”]|[-–‑](?=\w)\w+)*(?:\u00a0<a class="cx-qed".*?</a>)?)')


def bind(body):
    """Numbers keep their units and factors, an exercise its dots, formulas the signs around them, on one line."""
    out, at = [], 0
    for kept in KEPT.finditer(body):
        out += UNIT.sub("\u00a0", body[at:kept.start()]), kept[0]
        at = kept.end()
    out.append(UNIT.sub("\u00a0", body[at:]))
    return TIGHT.sub(lambda m: f'<span class="cx-nb">{m[1]}{m[2]}</span>' if m[2] or m[1][0] != "<" else m[1], "".join(out))


def without_mathjax(context, body):
    """A page without mathematics does not load what typesets it; Jupyter Book would load it everywhere."""
    if 'class="math' not in body and "\\(" not in body:
        context["script_files"] = [f for f in context["script_files"]
                                   if "mathjax" not in str(f.filename) and "MathJax" not in f.attributes.get("body", "")]


# Names, signs and spaces of code have the colour of its text: three quarters of all spans, half of the elements of a chapter.
PLAIN = re.compile(r'<span class="(?:n|o|p|w)">([^<]*)</span>')


# Of sphinx_design the book takes a directive that needs no style: 55 kB, and a hundred rules that are tried on each element.
UNUSED = "sphinx-design.min.css", "design-tabs.js"


def page(app, name, template, context, doctree):
    navigation(app, name, context)
    for kind in ("css_files", "script_files"):
        context[kind] = [f for f in context[kind] if not str(f.filename).endswith(UNUSED)]
    context["metatags"] = re.sub(r'<meta name="viewport"[^>]*>', "", context.get("metatags", ""))         # the theme has its own
    body = context.get("body")
    if body:
        without_mathjax(context, body)
    if any("mathjax/" in str(script.filename) for script in context["script_files"]):             # its parts at once, not one after another
        context["metatags"] += "".join(
            f'<link rel="preload" as="script" href="{context["pathto"](f"_static/mathjax/{part}.js", 1)}" />\n'
            for part in app.config.mathjax3_config["loader"]["load"])
    if not body:
        return
    body = re.sub(r"<th\b[^>]*>(?:<p></p>)?\s*</th>", "<td></td>", exercises(app, name, cards(app, name, body)))     # heads nothing
    if name == "appendices/formulas":                            # the letters of a card are typeset when it opens, by formulas.js
        body = re.sub(r'<details class="cx-card".*?</details>',
                      lambda card: card[0].replace('<span class="math notranslate nohighlight">', '<span class="cx-tex">'),
                      body, flags=re.S)
    if name not in ("appendices/formulas", "appendices/quick-reference"):                              # these have cards of their own
        body = re.sub(r'<table class="table">.*?</table>', stack, body, flags=re.S)
    path = Path(app.env.doc2path(name))
    if path.suffix == ".ipynb":
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        if layers.in_acts(cells):
            body = letters.explain(body, cells)
    context["body"] = bind(PLAIN.sub(r"\1", body))


def pictures(app, config):
    """The scripts and styles of the package's pictures, on every page; and book.css last, wherever the disk lists it."""
    config.html_css_files.sort(key="book.css".__eq__)
    config.html_static_path.append(str(STATIC))
    for path in sorted(STATIC.iterdir()):
        (app.add_js_file if path.suffix == ".js" else app.add_css_file)(path.name)


RULE = re.compile(r'((?:\.fa-[\w-]+:before,?)+)\{content:"[^"]*"\}')
FONT = re.compile(r'/(fa-\w+-\d+)\.woff2\) format\("woff2"\),url\([^)]*\) format\("truetype"\)')


def icons(app, error):
    """Of the theme's two thousand icons those that the pages show: all of them weigh as much as all mathematics."""
    if error or app.builder.format != "html":
        return
    static = Path(app.outdir, "_static")
    css, fonts = static/"styles/pydata-sphinx-theme.css", static/"vendor/fontawesome/webfonts"
    used = {icon for path in (*Path(app.outdir).rglob("*.html"), *static.glob("scripts/*theme.js"))
            for icon in re.findall(r"\bfa-[\w-]+", path.read_text(encoding="utf-8"))}
    text = RULE.sub(lambda m: m[0] if used & set(re.findall(r"fa-[\w-]+", m[1])) else "", css.read_text(encoding="utf-8"))
    text = FONT.sub(r'/\1.woff) format("woff")', text)
    css.write_text(text, encoding="utf-8")
    signs = {int(code, 16) for code in re.findall(r"\\([ef][0-9a-f]{3})", text)} | {ord(c) for c in text if "\ue000" <= c <= "\uf8ff"}
    options = subset.Options(flavor="woff", layout_features=[])
    for path in fonts.glob("*.ttf"):
        font, cut = subset.load_font(path, options), subset.Subsetter(options)
        cut.populate(unicodes=signs)
        cut.subset(font)
        subset.save_font(font, path.with_suffix(".woff"), options)
        path.unlink()
        path.with_suffix(".woff2").unlink()


# Of each box whether it scrolls, and at once its tab stop, for which the next one is laid out anew: fifty layouts of a chapter,
# at each change of its width or of a picture.
ONE_BY_ONE = re.compile(r'(document\.querySelectorAll\(\[[^]]*\]\.join\(", "\)\))'
                        r'\.forEach\(e=>\{e\.tabIndex=(e\.scrollWidth>[^?]*)\?0:-1\}\)')
AT_ONCE = r"[...\1].filter(e=>e.checkVisibility()).map(e=>[e,\2?0:-1]).forEach(([e,t])=>{e.tabIndex!==t&&(e.tabIndex=t)})"


def tab_stops(app, error):
    """The theme's script asks all boxes that are seen first; form.js asks the folded ones when they open."""
    if error or app.builder.format != "html":
        return
    script = Path(app.outdir, "_static/scripts/pydata-sphinx-theme.js")
    text, found = ONE_BY_ONE.subn(AT_ONCE, script.read_text(encoding="utf-8"))
    if found != 1:
        raise ValueError(f"{script.name} sets tab stops in {found} places; expected: one")
    script.write_text(text, encoding="utf-8")


def setup(app):
    register_plugin("pybtex.backends", "plaintext", plaintext.Backend, force=True)      # else looked up on the disk for each citation
    plain = (nothing, nothing)
    app.add_node(mark, html=(visit_mark, None), latex=(visit_mark_plain, None), text=plain)
    app.add_node(fold, html=(visit_fold, depart_fold), latex=plain, text=plain)
    app.add_node(says, html=(visit_says, depart_says), latex=plain, text=plain)
    app.add_role("cx-mark", role)
    app.add_directive("plan-a-run", PlanARun)
    app.add_directive("toolkit", Toolkit)
    app.add_directive("map-of-chapters", MapOfChapters)
    app.add_directive("reading-paths", ReadingPaths)
    app.add_directive("live-picture", LivePicture)
    app.add_directive("chapter-cards", ChapterCards)
    app.add_directive("findings", Findings)
    app.add_directive("run-this-book", RunThisBook)
    app.add_directive("cite-this-book", CiteThisBook)
    app.add_directive("course", Course)
    app.add_directive("points", Points)
    app.add_transform(Words)
    app.add_transform(Folds)
    app.connect("config-inited", pictures)
    app.connect("source-read", read)
    app.connect("html-page-context", side_bar, priority=400)         # before the theme asks for it
    app.connect("html-page-context", page, priority=900)
    app.connect("build-finished", icons)
    app.connect("build-finished", tab_stops)
    app.connect("build-finished", landing.share)
    gc.set_threshold(200_000, 50, 100)          # documents are large trees: the search for garbage took a quarter of the build
    return {"parallel_read_safe": True, "parallel_write_safe": True}

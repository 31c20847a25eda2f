"""Three layers of a chapter's code, told by the first comment of a cell; and small repairs of the built pages.

    # ✓ Columns, parts, rows is the only layout that sends 2 units      PROOF     one line, click to open
    # figure   # table   # setup   # helper ...                        WORKSHOP  "Code of the figure", click to open
    anything else                                                      ARGUMENT  visible

As a Sphinx extension it reads the comment while the page is built and sets MyST-NB's tags and prompts in memory: the
notebook holds no second copy of it, and in JupyterLab cells are ordinary.  As a program it checks:

    python tools/layers.py chapters/*.ipynb
"""
import json
import posixpath
import re
import sys
from pathlib import Path

from docutils import nodes

WORDS = {"figure": "Code of the figure", "table": "Code of the table", "setup": "Setup", "helper": "Code", "guess": "Code",
         "explorer": "Code of the explorer"}
PROOF = re.compile(r"#\s*✓\s*(?P<says>.+)")
CHECK = re.compile(r"#\s*(check|why) (?P<of>\d+a?\.\d+)")
MARKS = re.compile(r"^\s*### (BEGIN|END) SOLUTION\n", re.M)
WORKSHOP = re.compile(rf"#\s*(?P<kind>{'|'.join(WORDS)})\b:?\s*(?P<says>.*)")
MOST, LONGEST = 30, 110                 # visible cells of a chapter; characters of a sentence


def layer(source):
    """(layer, what its line says, the code below its mark) of a cell."""
    first, _, rest = source.partition("\n")
    proof, workshop = PROOF.match(first), WORKSHOP.match(first)
    more = []
    while (proof or workshop) and rest.startswith("#   "):            # a sentence may go on in the next line
        line, _, rest = rest.partition("\n")
        more.append(line.lstrip("# "))
    if proof:
        return "proof", " ".join([proof["says"], *more]), rest
    check = CHECK.match(first)
    if check:
        return "workshop", f"The {check[1] if check[1] == 'check' else 'reason, computed,'} of {check['of']}", rest
    if workshop:
        says = " ".join([workshop["says"], *more]).strip()
        return "workshop", WORDS[workshop["kind"]] + (f": {says}" if says else ""), rest
    return "argument", "", source


def fold(notebook):
    """The notebook with the tags and prompts that MyST-NB reads."""
    for cell in notebook["cells"]:
        if cell["cell_type"] != "code":
            continue
        kind, says, code = layer("".join(cell["source"]))
        if kind != "argument":
            cell["metadata"]["tags"] = [*cell["metadata"].get("tags", []), "hide-input", kind,
                                        *(["setup"] if says.startswith("Setup") else [])]
            cell["metadata"]["mystnb"] = {**cell["metadata"].get("mystnb", {}), "code_prompt_show": says,
                                          "code_prompt_hide": says}
            cell["source"] = code
        else:
            cell["metadata"]["tags"] = [*cell["metadata"].get("tags", []), "argument"]
            cell["source"] = MARKS.sub("", code)
    return notebook


# ---- Sphinx
def read(app, docname, source):
    if str(app.env.doc2path(docname)).endswith(".ipynb"):
        source[0] = json.dumps(fold(json.loads(source[0])))


def page(app, name, template, context, doctree):
    """Next and back skip the solutions; what a card says about its origin becomes links."""
    if not hasattr(app, "book_relations"):
        app.book_relations = app.env.collect_relations()                # page -> [up, before, after]
    relations = app.book_relations

    def to(other):
        return {"link": app.builder.get_relative_uri(name, other), "title": app.builder.render_partial(
            app.env.titles[other])["title"]} if other else None
    stem = posixpath.basename(name)
    if name == f"exercises/{stem}" and f"solutions/{stem}" in relations:
        context["next"] = to(relations[f"solutions/{stem}"][2])
    if name.startswith("chapters/") and relations.get(name, [None]*3)[1]:
        before = relations[name][1]
        context["prev"] = to(before.replace("solutions/", "chapters/") if before.startswith("solutions/") else before)
    body = context.get("body")
    if not body:
        return
    titles = app.env.titles
    cites = {c.key: (c.bibliography_key.docname, c.citation_id) for c in app.env.get_domain("cite").citations}

    def chapter(match):
        target = "chapters/" + match[1]
        if target == name:
            return "derived here"
        return (f'derived in <a href="{app.builder.get_relative_uri(name, target)}">chapter '
                f"{titles[target].astext().split(' ')[0]}</a>") if target in titles else match[0]

    def source(match):
        if match[1] not in cites:
            return match[0]
        doc, anchor = cites[match[1]]
        return f'source: <a href="{app.builder.get_relative_uri(name, doc)}#{anchor}">{match[1]}</a>'

    def recalled(match):
        formula, target = match[1], "chapters/" + match[2]
        link = f' · <a href="{app.builder.get_relative_uri(name, target)}">chapter ' \
               f"{titles[target].astext().split(' ')[0]}</a>" if target in titles else ""
        card = app.builder.get_relative_uri(name, "appendices/formulas") + "#" + formula.replace("_", "-")
        return match[0].replace(f"<code>{formula}</code>", f'<a href="{card}"><code>{formula}</code></a>{link}')
    # MyST-NB names every summary "Toggle hidden content"; its own words are better for those who hear the page
    body = body.replace('<summary aria-label="Toggle hidden content">', "<summary>")
    body = re.sub(r"derived in ([\w-]+)", chapter, body)
    body = re.sub(r"source: (\w+)", source, body)
    body = re.sub(r'<li data-formula="(\w+)" data-chapter="([\w-]+)">.*?</li>', recalled, body, flags=re.S)
    if name.startswith("chapters/") and f"exercises/{stem}" in app.env.tocs:       # 15.3 in the list leads to 15.3
        uri, found = app.builder.get_relative_uri(name, f"exercises/{stem}"), {}
        for ref in app.env.tocs[f"exercises/{stem}"].findall(nodes.reference):
            number = re.match(r"\d+a?\.\d+", ref.astext())
            if number:
                found[number[0]] = ref["anchorname"]
        body = re.sub(r"<strong>(\d+a?\.\d+)</strong>", lambda m: f'<a href="{uri}{found[m[1]]}"><strong>{m[1]}</strong></a>'
                      if m[1] in found else m[0], body)
    if "cx-chapters" in body:                                          # a chapter's title and question: one card
        body = re.sub(r"(<dt.*?</dd>)", r"<div>\1</div>", body, flags=re.S)
    context["body"] = body


STATIC = Path(__file__).resolve().parents[1]/"capacity/pictures/static"


def pictures(app, config):
    """The scripts and styles of the package's pictures, on every page."""
    config.html_static_path.append(str(STATIC))
    for path in sorted(STATIC.iterdir()):
        (app.add_js_file if path.suffix == ".js" else app.add_css_file)(path.name)


def setup(app):
    app.connect("config-inited", pictures)
    app.connect("source-read", read)
    app.connect("html-page-context", page, priority=900)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


# ---- the check
def faults(path):
    """What is wrong with the layers of a notebook, and how many cells each has."""
    count, wrong = dict(argument=0, proof=0, workshop=0), []
    for i, cell in enumerate(json.loads(Path(path).read_text(encoding="utf-8"))["cells"]):
        if cell["cell_type"] != "code":
            continue
        source = "".join(cell["source"])
        kind, says, code = layer(source)
        count[kind] += 1
        if kind == "proof" and "assert" not in code:
            wrong.append(f"cell {i}: a proof without an assert: {says}")
        if kind == "proof" and (len(says) > LONGEST or says.endswith(".")):
            wrong.append(f"cell {i}: {len(says)} characters, or a full stop: {says}")
        if kind == "argument" and not cell.get("outputs") and "assert" in source:
            wrong.append(f"cell {i}: asserts and prints nothing: say what it proves, in a first line '# ✓ ...'")
    if count["argument"] > MOST:
        wrong.append(f"{count['argument']} visible cells; at most {MOST}")
    return count, wrong


def main(paths):
    bad = 0
    for path in paths:
        count, wrong = faults(path)
        print(f"{Path(path).stem}: " + ", ".join(f"{n} {k}" for k, n in count.items()))
        for line in wrong:
            bad += 1
            print("   ", line)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

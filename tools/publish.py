"""What a page says of itself to those who link to it, what a reader takes away, and what an address turns on.

A Sphinx extension.  Every page gets a description: the question that it opens with, what its exercises are called, or its first
sentence.  The site carries the package as a wheel, and a notebook that is downloaded begins by installing it where it is missing.  With

    sphinx: {config: {book_repository: https://github.com/OWNER/NAME}}

in _config.yml pages also get links to their source, to a new issue and to Colab and Binder, a canonical address, the
picture that shared links show (tools/landing.py draws it, in Chromium), and the site a map; it is taken to be published
on GitHub Pages. Without it all of these are absent. Colab opens a notebook as it is downloaded, from the branch that the
workflow writes; Binder installs what .binder names.
"""
import html
import json
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path
from xml.sax.saxutils import escape

import reading
from docutils import nodes
from sphinx.errors import ConfigError

ROOT = Path(__file__).resolve().parents[1]
REPOSITORY = re.compile(r"https://github\.com/([\w.-]+)/([\w.-]+)")
INSTALL = "install-capacity"                              # the name of the cell that a downloaded notebook gets
LONGEST = 200                                             # characters of a description that a search engine shows
SHARED = 1200, 630                                        # pixels of the picture that a shared link shows
BRANCH = "notebooks"                                      # holds what readers download; the workflow writes it
LINK = re.compile(r"\[([^\]]+)\]\((\.\./)?((?:chapters|exercises|solutions|labs|appendices)/)?([\w.-]+?)\.(?:ipynb|md)(#[\w-]*)?\)")


def site(repository):
    """The address of the site that GitHub Pages makes of a repository; "" of none. ConfigError for another address."""
    if not repository:
        return ""
    found = REPOSITORY.fullmatch(repository)
    if not found:
        raise ConfigError(f"book_repository = {repository!r}; allowed: https://github.com/OWNER/NAME")
    owner, name = found.groups()
    return f"https://{owner.lower()}.github.io/{name}/"


def turn_on(app, config):
    """The theme's options and the base address of the site, from the repository's."""
    address = config.book_repository
    config.html_baseurl = site(address)
    if not address:
        return
    config.html_theme_options |= {
        "repository_url": address, "repository_branch": "main", "path_to_docs": "", "repository_provider": "github",
        "use_repository_button": True, "use_source_button": True, "use_issues_button": True,
        "launch_buttons": {"colab_url": "https://colab.research.google.com", "binderhub_url": "https://mybinder.org",
                           "notebook_interface": "jupyterlab"}}


def colab(app, name, template, context, doctree):
    """The button's address leads to the notebook that installs the package: in the repository no notebook does."""
    for group in context.get("header_buttons", []):
        for button in group.get("buttons", []):
            if button.get("text") == "Colab":
                button["url"] = button["url"].replace("/blob/main/", f"/blob/{BRANCH}/")


def description(name, doctree):
    """The bold question of a chapter; what exercises are called; of another page the beginning of its first paragraph."""
    bold = next((b.astext() for b in doctree.findall(nodes.strong) if b.astext().endswith("?")), None)
    first = next((p.astext() for p in doctree.findall(nodes.paragraph) if len(p.astext()) > 40), "")
    called = [m[1] for t in doctree.findall(nodes.title) if (m := re.match(r"\d+[a-z]?\.\d+ (.+)", t.astext()))]
    folder = name.partition("/")[0]
    text = f"{folder.capitalize()}: {' · '.join(called)}" if folder in ("exercises", "solutions") else " ".join((bold or first).split())
    return text if len(text) <= LONGEST else text[:LONGEST].rsplit(" ", 1)[0] + " …"


def picture_of(name):
    """The file of the picture for links to a page: that of its chapter, also of its exercises and their solutions, or the book's."""
    stem = name.rpartition("/")[2]
    return f"_static/shared/{stem if stem in reading.stems().values() else 'book'}.png"


def describe(app, name, template, context, doctree):
    if doctree is None:
        return
    about = {"description": description(name, doctree)}
    tags = [f'<meta name="description" content="{html.escape(about["description"])}" />']
    shared = {"title": f"{html.unescape(re.sub('<.*?>', '', context['title']))} · {app.config.html_title}", "type": "article", **about}
    if app.config.html_baseurl:
        shared |= {"url": f"{app.config.html_baseurl}{name}.html", "image": app.config.html_baseurl + picture_of(name),
                   "image:width": str(SHARED[0]), "image:height": str(SHARED[1]), "image:alt": about["description"]}
    tags += [f'<meta property="og:{key}" content="{html.escape(value)}" />' for key, value in shared.items()]
    if app.config.html_baseurl:
        tags.append('<meta name="twitter:card" content="summary_large_image" />')
    context["metatags"] = context.get("metatags", "") + "\n".join(tags)


def site_map(app, error):
    """sitemap.xml, one address a page."""
    if error or not app.config.html_baseurl:
        return
    pages = "".join(f"<url><loc>{escape(app.config.html_baseurl + name)}.html</loc></url>\n" for name in sorted(app.env.found_docs))
    text = f'<?xml version="1.0" encoding="UTF-8"?>\n<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">\n{pages}</urlset>\n'
    Path(app.outdir, "sitemap.xml").write_text(text, encoding="utf-8")


# ---- the package, and notebooks that find it
def project():
    """What pyproject.toml says of the package."""
    return tomllib.loads((ROOT/"pyproject.toml").read_text(encoding="utf-8"))["project"]


def wheel_name():
    """The file that pip makes of this version of the package."""
    return f"{project()['name'].replace('-', '_')}-{project()['version']}-py3-none-any.whl"


def needs():
    """The packages that pip brings along, in words."""
    *first, last = (re.match(r"\w+", line)[0] for line in project()["dependencies"])
    return f"{', '.join(first)} and {last}"


def alone(text, address, folder):
    """Text of a page in `folder` whose links to other pages of the book lead to `address`, or are words where there is none."""
    def lead(m):
        words, up, there, stem, anchor = m.groups()
        where = there or ("" if up else f"{folder}/")
        return f"[{words}]({address}{where}{stem}.html{anchor or ''})" if address else words
    return LINK.sub(lead, text)


def leans(cells):
    """Whether a notebook reads files of the book."""
    return any(re.search(r'Path\("\.|open\(f?"', "".join(c["source"])) for c in cells if c["cell_type"] == "code")


def installing(cells, address):
    """The cell that a downloaded notebook gets: the package from the site at `address`, or from beside the notebook."""
    where = f"{address}{wheel_name()}" if address else f"./{wheel_name()}"
    lines = ["# The package of the book, if it is not here yet."]
    if not address:
        lines.append('# Save the wheel beside this notebook first: the page that opens the book has it, under "Run this book".')
    if leans(cells):
        lines.append("# This notebook also reads files of the book: run it in a clone of the repository.")
    lines += ["try:", "    import capacity", "except ModuleNotFoundError:", f"    %pip install --quiet {where}"]
    return {"cell_type": "code", "id": INSTALL, "execution_count": None, "metadata": {}, "outputs": [],
            "source": "\n".join(lines).splitlines(keepends=True)}


def take_away(app, error):
    """The wheel at the site's root; notebooks that are downloaded install it in their second cell, and stand alone."""
    if error or app.builder.name != "html":
        return
    with tempfile.TemporaryDirectory() as source:             # pip leaves its traces where it builds
        for name in ("pyproject.toml", "README.md", "LICENSE"):
            shutil.copy(ROOT/name, source)
        shutil.copytree(ROOT/"capacity", Path(source, "capacity"), ignore=shutil.ignore_patterns("__pycache__"))
        subprocess.run([sys.executable, "-m", "pip", "--disable-pip-version-check", "wheel", "-q", "--no-deps", "--no-build-isolation",
                        "-w", app.outdir, source], check=True)
    for path in Path(app.outdir, "_sources").rglob("*.ipynb"):
        notebook = json.loads(path.read_text(encoding="utf-8"))
        cells = [c for c in notebook["cells"] if c.get("id") != INSTALL]               # Sphinx copies what has changed: this may be ours
        for cell in cells:
            if cell["cell_type"] == "markdown":
                cell["source"] = alone("".join(cell["source"]), app.config.html_baseurl, path.parent.name).splitlines(keepends=True)
        if any("capacity" in "".join(c["source"]) for c in cells if c["cell_type"] == "code"):
            cells.insert(1, installing(cells, app.config.html_baseurl))
        notebook["cells"] = cells
        path.write_text(json.dumps(notebook, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")


def setup(app):
    app.add_config_value("book_repository", "", "html", str)
    app.connect("config-inited", turn_on)
    app.connect("html-page-context", describe)
    app.connect("html-page-context", colab, priority=600)      # after the theme's, which makes the buttons
    app.connect("build-finished", site_map)
    app.connect("build-finished", take_away)
    return {"parallel_read_safe": True, "parallel_write_safe": True}

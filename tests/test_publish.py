"""What the address of a repository turns on, and that nothing of it is there without one."""
import json
import os
import re
import shutil
import struct
import subprocess
import sys
from pathlib import Path

import browser
import changes
import publish
import pytest
import yaml
from built import HTML

ROOT = Path(__file__).resolve().parents[1]
PAGE = "chapters/04-alpha-beta-model"
ADDRESS = "https://github.com/owner/name"
# Without the grammar of web addresses that jsonschema would build, for a second.
BUILD = """
import sys
sys.modules["rfc3987_syntax"] = None
from jupyter_book.cli.main import main
main(["build", ".", "--keep-going", "-q"])
"""


def tags(html):
    return {m[1]: m[2] for m in re.finditer(r'<meta (?:name|property)="([\w:]+)" content="([^"]*)" />', html)}


def test_without_an_address_a_page_describes_itself_and_links_nowhere():
    html = (HTML/f"{PAGE}.html").read_text()
    assert tags(html)["description"].endswith("?") and "og:url" not in tags(html)
    assert 'rel="canonical"' not in html and not re.search(r'href="https?://[^"]*(github|colab|mybinder)', html.split("<main")[0])
    assert not (HTML/"sitemap.xml").exists()


def test_pages_describe_themselves_differently():
    said = [tags(p.read_text()).get("description") for p in sorted((HTML/"chapters").glob("*.html"))]
    assert all(said) and len(set(said)) == len(said) and max(map(len, said)) <= publish.LONGEST + 40


def test_with_an_address_every_link_is_there(tmp_path):
    """A book of two pages, built with the one setting."""
    if not browser.find():
        (pytest.fail if os.environ.get("CI") else pytest.skip)(browser.MISSING)
    files = subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split("\n")
    kept = re.compile(rf"capacity/|tools/|_templates/|vendor/|_static/|references.bib|_config.yml|preface.md|pyproject.toml|README.md|LICENSE$|CITATION.cff|{PAGE}")
    for name in filter(kept.match, files):
        if (ROOT/name).exists():
            (tmp_path/name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT/name, tmp_path/name)
    config = tmp_path/"_config.yml"
    config.write_text(config.read_text().replace('book_repository: ""', f"book_repository: {ADDRESS}"))
    (tmp_path/"_toc.yml").write_text(f"format: jb-book\nroot: preface\nchapters:\n  - file: {PAGE}\n")
    subprocess.run([sys.executable, "-c", BUILD], cwd=tmp_path, check=True, capture_output=True)
    html = (tmp_path/"_build/html"/f"{PAGE}.html").read_text()
    said, site = tags(html), "https://owner.github.io/name/"
    assert said["og:url"] == f"{site}{PAGE}.html" and said["og:description"] == said["description"] and said["og:title"].startswith("4 · ")
    assert f'<link rel="canonical" href="{site}{PAGE}.html" />' in html
    front = tags((tmp_path/"_build/html/preface.html").read_text())
    pictures = [(tmp_path/"_build/html"/page["og:image"].removeprefix(site)).read_bytes() for page in (said, front)]
    assert said["og:image"].endswith("/04-alpha-beta-model.png") and said["og:image:alt"] == said["description"]
    assert [struct.unpack(">II", p[16:24]) for p in pictures] == [publish.SHARED]*2 == [(1200, 630)]*2 and pictures[0] != pictures[1]
    for link in (f"{ADDRESS}/blob/main/{PAGE}.ipynb?plain=1", f"{ADDRESS}/issues/new?", f"https://colab.research.google.com/github/owner/name/blob/notebooks/{PAGE}.ipynb",
                 f"https://mybinder.org/v2/gh/owner/name/main?urlpath=lab/tree/{PAGE}.ipynb"):
        assert f'href="{link}' in html, link
    away = json.loads((tmp_path/"_build/html/_sources"/f"{PAGE}.ipynb").read_text())["cells"]
    assert f"%pip install --quiet {site}{publish.wheel_name()}" in "".join(away[1]["source"])
    links = re.findall(r"\]\(([^)#]+)", "".join("".join(c["source"]) for c in away if c["cell_type"] == "markdown"))
    assert f"{site}exercises/04-alpha-beta-model.html" in links and all(link.startswith("https://") for link in links)
    assert (tmp_path/"_build/html"/publish.wheel_name()).exists()
    assert (tmp_path/"_build/html/sitemap.xml").read_text().count("<loc>") == 2


@pytest.mark.parametrize("name, of", {PAGE: "04-alpha-beta-model", "exercises/31b-inference-inner-loop": "31b-inference-inner-loop",
                                      "index": "book", "appendices/formulas": "book", "labs/README": "book"}.items())
def test_a_shared_link_shows_the_picture_of_its_chapter(name, of):
    assert publish.picture_of(name) == f"_static/shared/{of}.png"


@pytest.mark.parametrize("address", ["https://example.org/a/b", "github.com/owner/name", "https://github.com/owner"])
def test_another_address_is_refused(address):
    class Config:
        book_repository = address
    with pytest.raises(publish.ConfigError, match="allowed: https://github.com/OWNER/NAME"):
        publish.turn_on(None, Config)


def test_the_workflow_calls_what_the_repository_has():
    text = (ROOT/".github/workflows/book.yml").read_text()
    jobs = yaml.safe_load(text)["jobs"]
    targets = set(re.findall(r"^([a-z]+):", (ROOT/"Makefile").read_text(), re.M))
    called = {target for targets_ in re.findall(r"run: make ([\w ]+)", text) for target in targets_.split()}
    assert called and called <= targets and "run: .ci/run" in text and (ROOT/".ci/run").stat().st_mode & 0o111
    named = re.search(r"hashFiles\((.*)\)", text)[1].replace("'", "").split(", ")
    assert all((ROOT/name).exists() for name in [*named, "tools/changes.py"])
    ignored = (ROOT/".gitignore").read_text()
    kept = next(step["with"]["path"].split() for step in jobs["test"]["steps"] if "cache@" in step.get("uses", ""))
    assert {f"{path}/" for path in kept} <= set(ignored.split()) and {*kept} == set(re.findall(r"= (\.venv[\w-]*)$", (ROOT/"Makefile").read_text(), re.M))
    pushed = next(step["run"] for step in jobs["publish"]["steps"] if "git push" in step.get("run", ""))
    assert pushed.split()[-1] == publish.BRANCH and jobs["publish"]["permissions"]["contents"] == "write"


def test_binder_installs_the_package():
    """Its Python is one that the package takes; the file in .binder is read instead of the one beside pyproject.toml."""
    lines = (ROOT/".binder/requirements.txt").read_text().splitlines()
    assert "." in lines and "jupyterlab-myst" in lines
    version = tuple(map(int, (ROOT/".binder/runtime.txt").read_text().strip().removeprefix("python-").split(".")))
    assert version >= tuple(map(int, publish.project()["requires-python"].removeprefix(">=").split(".")))


LINKS = {"[4](04-a.ipynb)": "[4]({}chapters/04-a.html)", "[x](../exercises/04-a.ipynb#e-1)": "[x]({}exercises/04-a.html#e-1)",
         "[Teach](../teach.md)": "[Teach]({}teach.html)", "[labs](../labs/README.md)": "[labs]({}labs/README.html)"}


@pytest.mark.parametrize("text", LINKS)
def test_a_notebook_alone_links_to_the_site_or_says_words(text):
    assert publish.alone(text, "https://owner.github.io/name/", "chapters") == LINKS[text].format("https://owner.github.io/name/")
    assert publish.alone(text, "", "chapters") == text[1:text.index("]")]


@pytest.mark.parametrize("text", ["[card](#decide-search)", "[docs](https://example.org/a.md)", "an [Op](n) and `x[1](2)`"])
def test_other_links_stay(text):
    assert publish.alone(text, "https://owner.github.io/name/", "chapters") == text == publish.alone(text, "", "chapters")


def test_no_download_links_to_a_file_beside_it():
    for path in (HTML/"_sources").rglob("*.ipynb"):
        said = "".join("".join(c["source"]) for c in json.loads(path.read_text())["cells"] if c["cell_type"] == "markdown")
        assert not re.search(r"\]\((?!https?:|#)[^)]*\.(ipynb|md)", said), path


def test_one_version(capsys):
    changes.main()
    assert capsys.readouterr().out.strip()
    with pytest.raises(SystemExit, match="the tag says 9.9.9"):
        changes.main("v9.9.9")


def test_the_newest_section_alone():
    assert changes.newest("# Changes\n\n## 0.2.0, 2026-11-24\n\n- b\n\n## 0.1.0, 2026-11-23\n\n- a\n") == ("0.2.0", "2026-11-24", "- b")


def test_few_downloads_need_the_repository():
    """The record of all claims reads the chapters; lab 2's page reads what the lab recorded."""
    leaning = {f"{path.parent.name}/{path.stem}" for folder in ("chapters", "exercises", "solutions", "appendices", "labs")
               for path in (ROOT/folder).glob("*.ipynb") if publish.leans(json.loads(path.read_text(encoding="utf-8"))["cells"])}
    assert leaning == {"chapters/37-conclusion", "labs/alpha-beta"}

"""What the address of a repository turns on, and that nothing of it is there without one."""
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import publish
import pytest
from built import HTML

ROOT = Path(__file__).resolve().parents[1]
PAGE = "chapters/04-alpha-beta-model"
ADDRESS = "https://github.com/owner/name"


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
    files = subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split("\n")
    kept = re.compile(rf"capacity/|tools/|_templates/|vendor/|_static/|references.bib|_config.yml|preface.md|pyproject.toml|README.md|LICENSE$|{PAGE}")
    for name in filter(kept.match, files):
        if (ROOT/name).exists():
            (tmp_path/name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT/name, tmp_path/name)
    config = tmp_path/"_config.yml"
    config.write_text(config.read_text().replace('book_repository: ""', f"book_repository: {ADDRESS}"))
    (tmp_path/"_toc.yml").write_text(f"format: jb-book\nroot: preface\nchapters:\n  - file: {PAGE}\n")
    subprocess.run([Path(sys.executable).with_name("jupyter-book"), "build", ".", "--keep-going", "-q"], cwd=tmp_path, check=True,
                   capture_output=True)
    html = (tmp_path/"_build/html"/f"{PAGE}.html").read_text()
    said, site = tags(html), "https://owner.github.io/name/"
    assert said["og:url"] == f"{site}{PAGE}.html" and said["og:description"] == said["description"] and said["og:title"].startswith("4 · ")
    assert f'<link rel="canonical" href="{site}{PAGE}.html" />' in html
    assert (tmp_path/"_build/html"/said["og:image"].removeprefix(site)).exists()
    for link in (f"{ADDRESS}/blob/main/{PAGE}.ipynb?plain=1", f"{ADDRESS}/issues/new?", f"https://colab.research.google.com/github/owner/name/blob/main/{PAGE}.ipynb",
                 f"https://mybinder.org/v2/gh/owner/name/main?urlpath=lab/tree/{PAGE}.ipynb"):
        assert f'href="{link}' in html, link
    assert f"%pip install --quiet {site}{publish.wheel_name()}" in (tmp_path/"_build/html/_sources"/f"{PAGE}.ipynb").read_text()
    assert (tmp_path/"_build/html"/publish.wheel_name()).exists()
    assert (tmp_path/"_build/html/sitemap.xml").read_text().count("<loc>") == 2


@pytest.mark.parametrize("address", ["https://example.org/a/b", "github.com/owner/name", "https://github.com/owner"])
def test_another_address_is_refused(address):
    class Config:
        book_repository = address
    with pytest.raises(publish.ConfigError, match="allowed: https://github.com/OWNER/NAME"):
        publish.turn_on(None, Config)


def test_the_workflow_calls_what_the_repository_has():
    text = (ROOT/".github/workflows/book.yml").read_text()
    targets = set(re.findall(r"^([a-z]+):", (ROOT/"Makefile").read_text(), re.M))
    called = set(re.findall(r"run: make (\w+)", text))
    assert called and called <= targets and "run: .ci/run" in text and (ROOT/".ci/run").stat().st_mode & 0o111
    assert all((ROOT/name).exists() for name in ("requirements.lock.txt", "labs/requirements.txt", "CHANGELOG.md"))


def test_few_downloads_need_the_repository():
    """The record of all claims reads the chapters; lab 2's page reads what the lab recorded."""
    leaning = {f"{path.parent.name}/{path.stem}" for folder in ("chapters", "exercises", "solutions", "appendices", "labs")
               for path in (ROOT/folder).glob("*.ipynb") if publish.leans(json.loads(path.read_text(encoding="utf-8"))["cells"])}
    assert leaning == {"chapters/37-conclusion", "labs/alpha-beta"}

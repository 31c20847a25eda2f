"""What can be said of the labs without running them: `make labs` does."""
import re
from pathlib import Path

import pytest

LABS = Path(__file__).resolve().parents[1]/"labs"
RECIPES = sorted((LABS/"recipes").glob("*.py"))


@pytest.mark.parametrize("path", RECIPES, ids=lambda p: p.stem)
def test_a_recipe_leaves_at_once(path):
    """A thread of gloo that still holds a tensor when Python ends aborts the process, in one run of four on a busy machine."""
    text = path.read_text(encoding="utf-8")
    for end in re.finditer(r"destroy_process_group\(\).*\n *(.*)", text):
        assert end[1].startswith("os._exit(0)")
    assert "init_process_group" not in text or "destroy_process_group()" in text


def test_the_readme_lists_every_recipe():
    row, = re.findall(r"^\| `recipes/`.*\| (.*) \|$", (LABS/"README.md").read_text(encoding="utf-8"), re.M)
    assert row.split(", ") == [p.name.partition("_")[0].lstrip("0") for p in RECIPES]

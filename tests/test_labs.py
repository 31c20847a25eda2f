"""What can be said of the labs without running them: `make labs` does."""
import ast
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
    row, = re.findall(r"^\| `recipes/`.*\| all but (.*) \|$", (LABS/"README.md").read_text(encoding="utf-8"), re.M)
    assert CHAPTERS - set(row.split(", ")) == {p.name.partition("_")[0].lstrip("0") for p in RECIPES}


FILES = sorted(LABS.glob("lab[0-9]*.py"), key=lambda p: int(re.findall(r"\d+", p.stem)[0]))
README = (LABS/"README.md").read_text(encoding="utf-8")
CHAPTERS = {p.name.partition("-")[0].lstrip("0") for p in (LABS.parent/"chapters").glob("*.ipynb")}


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.stem)
def test_a_lab_begins_with_a_number_and_ends_with_a_line(path):
    """The question names a chapter and ends in a question mark, the lab counts its answer, and the line can be broken."""
    text = path.read_text(encoding="utf-8")
    ends = [" ".join(p.split()) for p in ast.get_docstring(ast.parse(text)).split("\n\n")[-2:]]
    chapter, question = re.fullmatch(r"Before you look \(chapter (\w+)\): (.*\?)", ends[0]).groups()
    line, = re.fullmatch(r"Break it: (.*)\.", ends[1]).groups()
    assert chapter in CHAPTERS
    assert "answer(" in text and "broken()" in text
    number = re.findall(r"\d+", path.stem)[0]
    assert f"| {number} | {chapter} | {question[0].upper() + question[1:]} |" in README
    assert f"**Lab {number}.** {line[0].upper() + line[1:]}.\n" in README
    row, = re.findall(rf"^\| `{path.name}` \| .* \| (.*) \|$", README, re.M)
    assert chapter in row.split(", ")


def test_the_questions_stand_in_the_order_of_the_chapters():
    chapters = re.findall(r"^\| \d+ \| (\w+) \| ", README, re.M)
    assert len(chapters) == len(FILES)
    assert chapters == sorted(chapters, key=lambda c: (int(re.match(r"\d+", c)[0]), c))


def test_every_broken_lab_is_run_and_its_message_printed():
    breaks, = (ast.literal_eval(node.value) for node in ast.parse((LABS/"failures.py").read_text(encoding="utf-8")).body
               if isinstance(node, ast.Assign) and node.targets[0].id == "BREAKS")
    assert [f"lab{n}" for n in breaks] == [p.stem.partition("_")[0] for p in FILES]
    for sentence in breaks.values():
        assert f"```\n{sentence}\n```" in README


@pytest.mark.parametrize("path", sorted((LABS/"solutions").glob("*.py")), ids=lambda p: p.stem)
def test_a_solution_fills_the_blanks_of_its_task_and_no_more(path):
    blanks = (LABS/path.name).read_text(encoding="utf-8").count("# BLANK ")
    assert blanks == len(re.findall(r"^task\.\S+ = ", path.read_text(encoding="utf-8"), re.M)) > 0

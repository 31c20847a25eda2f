"""What tools/make_course.py hands to nbgrader; nbgrader itself grades it in `make course`, and one chapter of it here where it is installed."""
import os
import random
import re
import subprocess
import sys
import time
from pathlib import Path

import nbformat
import pytest

import hidden
import make_course
import make_exercises
import mutants
import wrong

ROOT = Path(__file__).resolve().parents[1]
SOLUTIONS = sorted((ROOT/"solutions").glob("*.ipynb"))
COURSE = ROOT/".venv-course"
STATEMENT = nbformat.v4.new_markdown_cell("## 1.1 Times\nWrite f. *(5 minutes, easy)*")


def solved(answer, check):
    new = nbformat.v4
    code = f"# exercise 1.1\ndef f(n, P):\n    ### BEGIN SOLUTION\n    return {answer}\n    ### END SOLUTION"
    return new.new_notebook(cells=[new.new_markdown_cell("# Solutions 1"), new.new_code_cell("import random"), STATEMENT,
                                   new.new_code_cell(code), new.new_code_cell(f"# check 1.1\n{check}"),
                                   new.new_markdown_cell("**Why.** So.")])


@pytest.mark.parametrize("path", SOLUTIONS, ids=lambda p: p.stem)
def test_an_assignment_stands_alone(path):
    nb = make_course.source(path, "capacity_algebra-1.whl", "", {})
    text = "\n".join(c.source for c in nb.cells)
    assert nb.cells[0].source.startswith("# Exercises ") and not re.search(r"\]\(\.\./|\*\*Why\.|\*\*Points\.|# why \d", text)
    assert 'Path("..").glob("capacity_algebra-*.whl")' in nb.cells[1].source
    answers = [c for c in nb.cells if c.metadata.get("nbgrader", {}).get("solution")]
    assert {c.id for c in nb.cells if "### BEGIN SOLUTION" in c.source} == {c.id for c in answers if not c.metadata.nbgrader.grade}
    judged = [c for c in answers if c.metadata.nbgrader.grade]
    assert all(c.source == make_exercises.ANSWER for c in judged)
    assert sum(c.metadata.nbgrader.points for c in judged) == make_exercises.by_hand(nb.cells[2:])


def test_who_knows_the_visible_numbers_by_heart_fails_the_hidden_ones():
    nb = solved("n*(P - 1)/P", "assert f(80., 4) == 60\nassert f(90., 3) == 60")
    blocks, without, found = wrong.tried(nb)
    assert not without and blocks["1.1"].count("('f(") == hidden.CASES
    passing = {how: (seen, unseen) for _, how, _, seen, unseen in found}
    assert passing["table"] == (True, False) and not any(unseen for _, unseen in passing.values())


@pytest.mark.parametrize("path", SOLUTIONS, ids=lambda p: p.stem)
def test_every_answer_can_be_changed(path):
    """Else nothing says that its check can fail: a sheet of True and False had no wrong answer once."""
    cells = {number: c.source for c in nbformat.read(path, 4).cells for what, number in [make_exercises.kind(c)] if what == "exercise"}
    assert cells
    for number, source in cells.items():
        assert next(wrong.changed(source, hidden.answers(source), random.Random(0)), None), f"{number} has no wrong answer"


def test_a_sheet_of_claims_has_a_wrong_answer_for_each():
    nb = solved('{"a": True, "b": False}', "said = f(1, 2)\nassert said['a'] and not said['b']")
    _, _, found = wrong.tried(nb)
    assert [(how, seen) for _, how, _, seen, _ in found if how != "table"] == [("changed 1", False), ("changed 2", False)]


def test_a_set_of_words_has_wrong_answers():
    cells = {*wrong.changed('def f():\n    """Words."""\n    return {"b", "d"}', ["f"], random.Random(0))}
    assert cells == {f'def f():\n    """Words."""\n    return {{{x!r}, {x!r}}}' for x in "bd"}


def test_the_same_answer_in_another_form_is_not_wrong():
    assert wrong.alike([range(3), 2.00001], [{0, 1, 2}, 2.]) and not wrong.alike([100_001], [100_000])
    nb = solved("{0, P - 1}", "for P in (3, 4, 9):\n    assert set(f(0, P)) == {0, P - 1}")
    blocks, without, found = wrong.tried(nb, most=20)
    assert not without and "set(got) == want" in blocks["1.1"] and not any(unseen for *_, unseen in found)
    with_list = nb.cells[3].source.replace("{0, P - 1}", "[0, P - 1]")
    names = {}
    hidden.play(with_list, names)
    assert hidden.passes(f"{nb.cells[4].source}\n{blocks['1.1']}", names)


def test_the_wrong_student_errs_in_another_way_each_time():
    found = [(n, how, f"{n} {how}", True, how == "changed 1") for n in ("1.1", "1.2") for how in ("twice", "changed 1")]
    assert wrong.student(found) == {"1.1": "1.1 twice", "1.2": "1.2 changed 1"}
    assert wrong.tally([*found, ("1.3", "changed 2", "", False, False)]) == {"twice": [2, 2, 0], "changed": [3, 2, 2]}


def test_what_waits_is_not_too_long_and_what_computes_without_end_is():
    with mutants.limited(.05):
        time.sleep(.1)
    with pytest.raises(mutants.TooLong), mutants.limited(.05):
        while True:
            pass


def test_hidden_cases_keep_what_visible_calls_have_in_common():
    nb = solved("n//P", "for P in (2, 4, 8):\n    assert f(16*P, P) == 16")
    cases = re.findall(r"f\((\d+), (\d+)\)", hidden.hidden(nb)[0]["1.1"])
    assert cases and all(int(n) % int(P) == 0 and int(P).bit_count() == 1 for n, P in cases)


def test_an_open_answer_has_no_hidden_cases():
    nb = solved("P + 1", "assert f(1., 2) > 2\nassert f(2., 5) > 5")              # any larger number is right
    blocks, without, _ = wrong.tried(nb)
    assert not blocks and "another right answer" in without["1.1"]


def test_a_changed_answer_to_an_open_question_is_right_where_it_passes(monkeypatch):
    nb = solved("P + 1", "assert f(1., 2) > 2\nassert f(2., 5) > 5")
    monkeypatch.setitem(hidden.OPEN, "1.1", "any larger number is right")
    blocks, without, found = wrong.tried(nb, most=20)
    assert not blocks and without["1.1"] == "any larger number is right"
    passing = {text for _, how, text, _, unseen in found if unseen and how.startswith("changed")}
    assert not passing and any(how.startswith("changed") for _, how, *_ in found)


def test_seeds_are_changed_where_arguments_cannot_be_written_down():
    blocks, without = hidden.hidden(solved("P(n)", "for seed in range(3):\n    x = random.Random(seed).random()\n"
                                                   "    assert f(x, lambda y: 2*y) == 2*x"))
    assert not without and "random.Random(1000 + seed)" in blocks["1.1"]


def test_a_folder_with_something_else_is_not_deleted(tmp_path, monkeypatch):
    (tmp_path/"grades.csv").write_text("all of them")
    monkeypatch.setattr(sys, "argv", ["make_course.py", "--pages", "no", str(tmp_path)])
    with pytest.raises(SystemExit, match="is not empty and not a course"):
        make_course.main()
    assert (tmp_path/"grades.csv").exists()


def test_hidden_tests_lie_between_nbgraders_marks():
    nb = make_course.with_hidden(solved("n", "assert f(1, 2) == 1"), {"1.1": "assert f(3, 4) == 3"})
    assert nb.cells[4].source.endswith("== 1\n### BEGIN HIDDEN TESTS\nassert f(3, 4) == 3\n### END HIDDEN TESTS")


def test_links_lead_to_the_published_book_or_are_words():
    text = "See [chapter 3](../chapters/03-x.ipynb#a-b) and [all](../appendices/formulas.md)."
    assert make_course.alone(text, "", "exercises") == "See chapter 3 and all."
    assert make_course.alone(text, "https://o.github.io/b/", "exercises") == \
        "See [chapter 3](https://o.github.io/b/chapters/03-x.html#a-b) and [all](https://o.github.io/b/appendices/formulas.html)."


def test_the_book_without_solutions_names_none(tmp_path):
    make_course.without_solutions(tmp_path)
    assert not (tmp_path/"solutions").exists() and "solutions" not in (tmp_path/"_toc.yml").read_text()
    kept = (ROOT/"_toc.yml").read_text().count("file: ") - len(SOLUTIONS)
    assert (tmp_path/"_toc.yml").read_text().count("file: ") == kept
    for path in (tmp_path/"exercises").glob("*.ipynb"):
        assert not any("(../solutions" in c.source for c in nbformat.read(path, 4).cells), path.name


@pytest.mark.skipif(not (COURSE/".installed").exists() and not os.environ.get("CI"), reason="nbgrader is installed by `make course`")
def test_nbgrader_grades_a_chapter(tmp_path):
    subprocess.run([sys.executable, "tools/make_course.py", "--pages", "no", tmp_path/"course", "02-extended-roofline"], cwd=ROOT, check=True)
    done = subprocess.run([COURSE/"bin/python", "tools/try_course.py", tmp_path/"course"], cwd=ROOT, capture_output=True, text=True,
                          env=os.environ | {"PATH": f"{COURSE/'bin'}:{os.environ['PATH']}"})
    assert done.returncode == 0 and re.search(r"the key earns all \d+ points", done.stdout) and "02-extended-roofline" in done.stdout, done.stdout + done.stderr


def test_four_students_are_counted():
    nb = solved("n*(P - 1)/P", "assert f(80., 4) == 60\nassert f(90., 3) == 60")
    blocks, _, found = wrong.tried(nb)
    assert wrong.earned(nb, blocks, found) == {"checks": 1, "hidden": 1, "key": 1, "blank": 0, "wrong": 0, "by heart": 0}
    seen = [(number, how, text, seen, seen) for number, how, text, seen, _ in found]              # as if nothing were hidden
    assert wrong.earned(nb, {}, seen)["by heart"] == 1
    nb.cells[2] = nbformat.v4.new_markdown_cell(STATEMENT.source.replace("easy", "hard"))
    assert wrong.earned(nb, blocks, found)["key"] == 3 and wrong.earned(nb, {}, seen)["by heart"] == 3


def test_hidden_cases_name_a_model_by_its_key_and_take_sets():
    check = 'from capacity import model\nassert f(model("llama3-8b"), 8) == {"tp"}\nassert f(model("llama3-70b"), 64) == {"tp", "pp"}'
    block = hidden.hidden(solved('{"tp"} if P < 32 else {"tp", "pp"}', check))[0]["1.1"]
    assert ".model('llama3-" in block and "'tp'}" in block


def test_what_is_unpacked_is_changed_in_its_place():
    assert "(*(2 * _x for _x in g(x)), 2 * 3)" in wrong.returned("def f(x):\n    return (*g(x), 3)", ["f"], lambda t: f"2*({t})")

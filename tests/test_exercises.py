"""Every check fails on the blank exercise and on cheap answers; nbval runs it on the solution."""
import functools
import re
from pathlib import Path

import nbformat
import pytest

import make_exercises

ROOT = Path(__file__).resolve().parents[1]
SOLUTIONS = sorted((ROOT / "solutions").glob("*.ipynb"))
FAKES = ["raise NotImplementedError", "return None", "return 0", "return 1"]
each_solution = pytest.mark.parametrize("path", SOLUTIONS, ids=lambda p: p.stem)


@pytest.fixture(autouse=True)
def no_windows(monkeypatch):
    monkeypatch.setenv("MPLBACKEND", "agg")


@functools.cache
def read(path):
    """A notebook; who changes it takes a copy."""
    return nbformat.read(path, as_version=4)


def numbers(nb, what):
    """The numbers of a notebook's exercises or checks, in order."""
    return [n for k, n in map(make_exercises.kind, nb.cells) if k == what]


def failing(nb):
    """The numbers of the checks that raise when the notebook is run."""
    names, failed = {"__name__": "__main__"}, []
    for cell in nb.cells:
        if cell.cell_type != "code":
            continue
        what, number = make_exercises.kind(cell)
        try:
            exec(compile(cell.source, f"<{what or 'cell'} {number or ''}>", "exec"), names)
        except Exception:
            if what != "check":
                raise
            failed.append(number)
    return failed


@pytest.mark.parametrize("fake", FAKES)
@each_solution
def test_every_check_catches(path, fake):
    blank = make_exercises.blank(make_exercises.mark(read(path)), fake)
    passed = sorted({*numbers(blank, "check")} - {*failing(blank)})
    assert not passed, f"these checks accept '{fake}': {passed}"


@each_solution
def test_exercise_is_in_step(path):
    stale = make_exercises.out_of_step(path, check=True)
    assert not stale, f"run tools/make_exercises.py {path.stem}"


@each_solution
def test_numbers_are_permanent_and_complete(path):
    nb = read(path)
    chapter = path.stem.split("-")[0].lstrip("0")
    exercises = numbers(nb, "exercise")
    assert all(re.fullmatch(rf"{chapter}\.[1-9]\d*", n) for n in exercises), exercises
    places = [int(n.split(".")[1]) for n in exercises]
    assert places == sorted(set(places)), "each number once, in order"
    assert exercises == numbers(nb, "check"), "each exercise has its check"
    assert 6 <= len(exercises) <= 10, f"{len(exercises)} exercises; a chapter has 6 to 10"


@each_solution
def test_each_exercise_has_four_cells(path):
    """## 4.1 Title and statement; # exercise 4.1; # check 4.1; **Why.**"""
    cells = read(path).cells
    for i, cell in enumerate(cells):
        what, number = make_exercises.kind(cell)
        if what == "exercise":
            statement = cells[i - 1].source
            assert re.match(rf"## {re.escape(number)} \S", statement), f"'## {number} Title'"
            assert len(statement.splitlines()) > 1, f"{number}: a statement below the heading"
            assert make_exercises.kind(cells[i + 1]) == ("check", number)
            assert make_exercises.kind(cells[i + 2])[0] == "why", f"{number}: **Why.**"
    first = next(c for c in cells if c.cell_type == "code")
    strays = [s for s in first.source.splitlines() if not re.match(r"(import|from) |[ )#]|$", s)]
    assert not strays, f"the first code cell holds imports only: {strays}"


def test_exercises_and_chapters_belong_together():
    chapters, exercises, solutions = ({p.name for p in (ROOT / folder).glob("*.ipynb")}
                                      for folder in ("chapters", "exercises", "solutions"))
    assert chapters == exercises == solutions


# --- the generator itself, on a notebook small enough to see through

def small():
    new = nbformat.v4
    code = "def f(x):\n    ### BEGIN SOLUTION\n    y = 2*x\n    return y\n    ### END SOLUTION"
    return new.new_notebook(cells=[
        new.new_markdown_cell("# 1 · Solutions"),
        new.new_markdown_cell("## 1.1 Double\nWrite f. *(5 minutes, medium)*"),
        new.new_code_cell("# exercise 1.1\n" + code),
        new.new_code_cell("# check 1.1\nassert f(3) == 6"),
        new.new_markdown_cell("**Why.** Two of them."),
    ])


def test_blank_hides_answer_and_reason():
    solved = small()
    solved.cells[3].outputs, solved.cells[3].execution_count = [nbformat.v4.new_output("stream", text="6")], 2
    nb = make_exercises.introduce(make_exercises.blank(make_exercises.mark(solved)), "01-x")
    assert nb.cells[3].outputs == [] and nb.cells[3].execution_count is None
    sources = [c.source for c in nb.cells]
    assert sources[2] == "# exercise 1.1\ndef f(x):\n    raise NotImplementedError"
    assert "raises-exception" in nb.cells[3].metadata.tags
    assert sources[0].startswith("# 1 · Exercises\n") and "solutions/01-x.ipynb" in sources[0]
    assert not any("Two of them" in s for s in sources)


def test_marking_is_idempotent_and_speaks_nbgrader():
    once = make_exercises.mark(small())
    assert make_exercises.text(once) == make_exercises.text(make_exercises.mark(once))
    exercise, check = (c.metadata.nbgrader for c in once.cells[2:4])
    assert (exercise.grade_id, check.grade_id) == ("exercise-1-1", "check-1-1") and not any("nbgrader" in c.metadata for c in once.cells[4:])
    assert exercise.solution and not exercise.grade
    assert check.grade and check.locked and check.points == 2          # medium


@each_solution
def test_no_two_cells_have_one_grade(path):
    marked, exercise = make_exercises.derive(path)
    for nb in marked, exercise:
        names = [c.metadata.nbgrader.grade_id for c in nb.cells if "nbgrader" in c.metadata]
        assert len(names) == len(set(names))


@each_solution
def test_every_statement_says_how_hard_it_is(path):
    for cell in read(path).cells:
        if re.match(r"## \d", cell.source):
            assert len(re.findall(r"\*\(\d+ minutes, (easy|medium|hard)\)\*", cell.source)) == 1, cell.source[-80:]     # as tools/reading.py counts


def test_a_judgement_gets_a_cell_to_answer_in():
    nb = small()
    nb.cells.append(nbformat.v4.new_markdown_cell("**Judge it** *(by hand, 3 points, 10 minutes)*. Why so? One point for each reason."))
    blank = make_exercises.blank(make_exercises.mark(nb))
    question, answer = blank.cells[-2:]
    assert question.source.startswith("**Judge it**") and "nbgrader" not in question.metadata
    assert answer.metadata.nbgrader == make_exercises.nbgrader("judge", "1.1", 3) and answer.metadata.nbgrader.grade


@each_solution
def test_what_is_graded_by_hand_has_points_minutes_and_levels(path):
    """Whoever asks for words says points and minutes, and a table says what earns all, half and nothing of each point."""
    text = [c.source for c in read(path).cells[1:] if c.cell_type == "markdown"]
    rubrics = 0
    for exercise in "\n\n".join(["", *text]).split("\n\n## ")[1:]:
        asked, *points = exercise.split("**Points.**")
        promised = [int(p) for p in make_exercises.BY_HAND.findall(asked)]
        assert len(promised) == len(re.findall(r"by hand, \d|points?, by hand", exercise)) == len(points) <= 1, exercise[:60]
        for rubric in points:
            head, _, *rows = [[x.strip() for x in line.strip("|").split("|")] for line in rubric.strip().splitlines()]
            assert head == ["points", "full", "half", "nothing"] and all(len(row) == 4 and all(row) for row in rows), exercise[:60]
            assert sum(int(row[0]) for row in rows) == promised[0], exercise[:60]
            rubrics += 1
    assert rubrics == sum(t.startswith("**Points.**") for t in text)


@each_solution
def test_each_chapter_asks_something_that_only_a_person_can_grade(path):
    assert make_exercises.by_hand(read(path).cells[1:]) > 0


@each_solution
def test_a_harder_exercise_is_worth_more(path):
    """Easy, medium and hard are one, two and three points; each statement says which."""
    marked, _ = make_exercises.derive(path)
    levels = [make_exercises.LEVEL.findall(c.source) for c in marked.cells if c.source.startswith("## ")]
    checks = [c.metadata.nbgrader.points for c in marked.cells if make_exercises.kind(c)[0] == "check"]
    assert all(len(level) == 1 for level in levels) and checks == [make_exercises.POINTS[level] for [level] in levels]


def open_questions(cells):
    """The texts that ask for words and are not graded by hand."""
    asks = re.compile(r"\*\*(Judge|Defend|Prove|Explain|Choose|Advise|Say|Find the error)\b[^*]*\*\*|\b(sentences?|paragraph)[:,.]|[Ee]xplain (why|how|what|in)\b|[Pp]rove ")
    return [c.source for c in cells if c.cell_type == "markdown" and not c.source.startswith(make_exercises.WHY)
            and asks.search(c.source) and not make_exercises.BY_HAND.search(c.source)]


@each_solution
def test_an_open_question_is_graded_by_hand(path):
    assert open_questions(read(path).cells[1:]) == []


def test_an_open_question_without_a_hand_is_found():
    nb = small()
    assert open_questions(nb.cells) == []
    nb.cells.append(nbformat.v4.new_markdown_cell("Then explain in two sentences."))
    assert open_questions(nb.cells) == ["Then explain in two sentences."]


def test_what_is_out_of_step_is_found(tmp_path, monkeypatch):
    monkeypatch.setattr(make_exercises, "ROOT", tmp_path)
    for folder in "solutions", "exercises":
        (tmp_path/folder).mkdir()
    solution, exercise = tmp_path/"solutions"/"01-x.ipynb", tmp_path/"exercises"/"01-x.ipynb"
    solution.write_text(make_exercises.dumps(small()))
    assert make_exercises.out_of_step(solution, check=True) == [solution, exercise]
    for path, nb in zip((solution, exercise), make_exercises.derive(solution)):
        path.write_text(make_exercises.dumps(nb))
    assert make_exercises.out_of_step(solution, check=True) == []
    exercise.write_text(exercise.read_text().replace("raise NotImplementedError", "return 6"))
    assert make_exercises.out_of_step(solution, check=True) == [exercise]


@pytest.mark.parametrize("source", [
    "# exercise 1.1\nx = 1",                                                # nothing to blank
    "# exercise 1.1\n### BEGIN SOLUTION\nx = 1\n### END SOLUTION",          # not inside a function
    "def f():\n    ### BEGIN SOLUTION\n    return 1\n    ### END SOLUTION",    # not marked
    "# exercise 1.1\ndef f():\n    ### BEGIN SOLUTION\n    return 1",       # never ends
    "# exercise 1.1\ndef f():\n    ### BEGIN SOLUTION\n    return 1\n    ### END SOLUTION\n    ### BEGIN SOLUTION",
])
def test_a_wrong_region_is_refused(source):
    nb = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source)])
    with pytest.raises(SystemExit, match="BEGIN SOLUTION"):
        make_exercises.blank(nb)

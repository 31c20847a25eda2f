"""Derive exercises/NAME.ipynb from solutions/NAME.ipynb, the hand-written master.

    python tools/make_exercises.py [--check] [NAME ...]

An author writes only text. One exercise is four cells:

    markdown   ## 4.1 Title, then the statement
    code       # exercise 4.1    answers between indented '### BEGIN SOLUTION' and '### END SOLUTION'
    code       # check 4.1       asserts
    markdown   **Why.** ...
    code       # why 4.1         optional: what the explanation computes
    markdown   **Judge it** *(by hand, 3 points, 10 minutes)*. ...     optional: a question, here or in the statement
    markdown   **Points.** and a table                      then: what earns all, half and nothing of them, for who grades

From this the tool derives nbgrader's metadata (schema 3), in the solution too; a check is worth a point if the exercise is
easy, two if it is medium, three if it is hard. In the exercise the answers are blank, the **Why.** and **Points.** cells are
gone, what is graded by hand has a cell to answer in, and each check carries the tag raises-exception: Run All goes on past
it, and nbval demands that it really fails.
tools/make_course.py makes what nbgrader takes.
--check writes nothing and fails if a file is out of step.
"""
import argparse
import copy
import re
import sys
from pathlib import Path

import nbformat

from execute import ROOT, dumps, run

ID = r"(\d+[a-z]?\.\d+)"
MARK = re.compile(rf"# (exercise|check|why) {ID}\s*$", re.M)
REGION = re.compile(r"^([ \t]+)### BEGIN SOLUTION[ \t]*\n.*?^\1### END SOLUTION[ \t]*$", re.S | re.M)
MARKER = re.compile("### (BEGIN|END) SOLUTION")
WHY = ("**Why.**", "**Points.**")         # of solutions only: reasons, and what earns the points of a hand
LEVEL = re.compile(r"\*\(\d+ minutes, (\w+)\)\*")
POINTS = {"easy": 1, "medium": 2, "hard": 3}         # of a check
BY_HAND = re.compile(r"\(by hand, (\d+) points?, \d+ minutes\)")
ANSWER = "*Your answer:*"
STUB = "raise NotImplementedError"
HOW = ("Replace each `raise NotImplementedError` by your answer, run the cell, then run the check "
       "below it: a check that says nothing has passed. When you are done, restart the kernel and "
       "run all cells. An easy exercise is worth one point, a medium one two, a hard one three.")
SOLVED = " The [solutions](../solutions/{}.ipynb) say why."


def kind(cell):
    """('exercise' | 'check' | 'why', '4.1') of a marked code cell, ('why', None) of text, or ('', None)."""
    if cell.cell_type == "markdown" and cell.source.startswith(WHY):
        return "why", None
    m = MARK.match(cell.source) if cell.cell_type == "code" else None
    return m.groups() if m else ("", None)


def nbgrader(what, number, points):
    """What nbgrader wants to know of an answer ("exercise"), a check, or an answer graded by hand ("judge").

    Its names know no dots: check 4.1 is check-4-1.
    """
    return {"schema_version": 3, "grade_id": f"{what}-{number.replace('.', '-')}", "task": False,
            "solution": what != "check", "locked": what == "check", "grade": what != "exercise",
            **({"points": points} if what != "exercise" else {})}


def mark(nb):
    """The solution notebook with nbgrader's metadata at answers and checks."""
    nb = copy.deepcopy(nb)
    for cell in nb.cells:
        cell.metadata.pop("nbgrader", None)
        what, number = kind(cell)
        if cell.cell_type == "markdown" and cell.source.startswith("## "):
            points = sum(POINTS[level] for level in LEVEL.findall(cell.source))
        if number and what != "why":
            cell.metadata["nbgrader"] = nbformat.from_dict(nbgrader(what, number, points))
    return nb


def by_hand(cells):
    """Points of what is graded by hand in an exercise's cells."""
    return sum(int(p) for c in cells if c.cell_type == "markdown" and kind(c)[0] != "why" for p in BY_HAND.findall(c.source))


def sheet(nb):
    """The exercises of a marked solution with the answers still in: no reasons; where a hand grades, a cell to answer in."""
    nb = copy.deepcopy(nb)
    starts = [i for i, c in enumerate(nb.cells) if c.cell_type == "markdown" and c.source.startswith("## ")] + [len(nb.cells)]
    cells = nb.cells[:starts[0]]
    for start, end in zip(starts, starts[1:]):
        exercise = [c for c in nb.cells[start:end] if kind(c)[0] != "why"]
        points = by_hand(exercise)
        cells += exercise
        if points:
            number = next(n for what, n in map(kind, exercise) if what == "exercise")
            answer = nbformat.v4.new_markdown_cell(ANSWER, id=f"{exercise[0].id}-answer")
            answer.metadata["nbgrader"] = nbformat.from_dict(nbgrader("judge", number, points))
            cells.append(answer)
    nb.cells = cells
    return nb


def blank(nb, stub=STUB):
    """The exercise of a marked solution, not executed; `stub` stands where each answer was.

    SystemExit if a marked region is missing, unindented, unbalanced or outside an exercise.
    """
    nb = sheet(nb)
    for cell in nb.cells:
        what, number = kind(cell)
        cell.source, regions = REGION.subn(rf"\1{stub}", cell.source)
        if bool(regions) != (what == "exercise") or MARKER.search(cell.source):
            raise SystemExit(f"{what or cell.cell_type} {number or cell.source[:60]!r}: an exercise has "
                             "indented lines ### BEGIN SOLUTION and ### END SOLUTION, and no other "
                             "cell has them")
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
        if what == "check":
            tags = {*cell.metadata.get("tags", []), "raises-exception", "remove-output"}
            cell.metadata["tags"] = sorted(tags)
    return nb


def introduce(nb, name):
    """Say 'Exercises' in the title, and how to work below it."""
    title, _, rest = nb.cells[0].source.partition("\n")
    title = re.sub("solution", "exercise", re.sub("Solution", "Exercise", title))
    nb.cells[0].source = "\n\n".join(filter(None, [title, HOW + SOLVED.format(name), rest.strip()]))
    return nb


def text(nb):
    """All of a notebook but its outputs."""
    return [(c.cell_type, c.id, c.source, c.metadata) for c in nb.cells]


def derive(solution):
    """(marked solution, exercise) of a solution's path."""
    marked = mark(nbformat.read(solution, as_version=4))
    return marked, introduce(blank(marked), solution.stem)


def out_of_step(solution, check):
    """The paths that are not what the solution says. Unless `check`, write and execute them."""
    marked, exercise = derive(solution)
    target = ROOT / "exercises" / solution.name
    stale = []
    if text(nbformat.read(solution, as_version=4)) != text(marked):
        stale.append(solution)
        if not check:
            solution.write_text(dumps(marked), encoding="utf-8")
    if not target.exists() or text(nbformat.read(target, as_version=4)) != text(exercise):
        stale.append(target)
        if not check:
            target.parent.mkdir(exist_ok=True)
            target.write_text(dumps(exercise), encoding="utf-8")
            *_, state, _, message = run(target)
            if message:
                raise SystemExit(f"{target.name}: {message}")
    return stale


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help="04-alpha-beta-model; all if none")
    parser.add_argument("--check", action="store_true",
                        help="write nothing; fail if a file is out of step")
    args = parser.parse_args()
    solutions = sorted((ROOT / "solutions").glob("*.ipynb"))
    if args.names:
        stems = {Path(n).stem for n in args.names}
        solutions = [s for s in solutions if s.stem in stems]
    stale = [p for s in solutions for p in out_of_step(s, args.check)]
    orphans = {p.name for p in (ROOT / "exercises").glob("*.ipynb")
               if not (ROOT / "solutions" / p.name).exists()}
    for p in stale:
        print(f"{'out of step' if args.check else 'written'}: {p.relative_to(ROOT)}")
    for o in sorted(orphans):
        print(f"exercises/{o} has no solution")
    if not (stale or orphans):
        print("exercises are in step with the solutions")
    return 1 if orphans or (args.check and stale) else 0


if __name__ == "__main__":
    sys.exit(main())

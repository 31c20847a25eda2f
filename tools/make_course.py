"""Write a course out of the book: what nbgrader takes, the key, the wheel, and the book without solutions.

    python tools/make_course.py [--pages no] _build/course [NAME ...]

    source/NAME/NAME.ipynb   exercises with their answers and hidden tests, nbgrader's source
    key/NAME.ipynb           answers, reasons, hidden tests, and what earns the points of a hand
    wrong/NAME.ipynb         a student who answers every exercise wrongly, in another way each
    wrong_answers.txt        of each kind of wrong answer, how many were tried here and how many pass; of each chapter, how many
                             checks have hidden tests, and what the key, a blank, the wrong student and one by heart earn
    release/                 the package's wheel, and what a classroom repository needs; nbgrader writes the exercises beside them
    site/                    the book without solutions (not with --pages no)

Links in a notebook that is handed out alone lead to the published book if _config.yml names a repository; else they are words.
"""
import argparse
import copy
import re
import shutil
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import nbformat
import yaml

from execute import ROOT, dumps
from hidden import BEGIN, END
from make_exercises import HOW, SOLVED, kind, mark, sheet
from publish import alone, site
from wrong import account, earned, said, student, tally, tried

MOST = 0.05                     # of the wrong answers may pass, over all chapters
CONFIG = '''"""nbgrader's settings for this course: `nbgrader generate_assignment NAME` in this folder writes release/NAME."""
c = get_config()                                            # noqa: F821
c.CourseDirectory.course_id = "capacity"
c.ClearSolutions.code_stub = {"python": "raise NotImplementedError"}
c.ExecutePreprocessor.timeout = 120
c.ExecutePreprocessor.iopub_timeout = 60                      # a long traceback on a busy machine
'''
INSTALL = """# The book's package: installed from the file beside this notebook, if you have none yet.
try:
    import capacity
except ModuleNotFoundError:
    from pathlib import Path
    wheels = [*Path().glob("{package}-*.whl"), *Path("..").glob("{package}-*.whl")]
    assert wheels, "put {wheel} beside this notebook"
    %pip install --quiet {{wheels[0]}}"""


def with_hidden(nb, blocks):
    """The notebook with hidden tests at the ends of its checks."""
    for cell in nb.cells:
        what, number = kind(cell)
        if what == "check" and number in blocks:
            cell.source += f"\n{BEGIN}\n{blocks[number]}\n{END}"
    return nb


def source(solution, wheel, address, blocks):
    """What nbgrader takes: the exercises of a solution, answers still in, hidden tests, readable alone."""
    nb = with_hidden(sheet(mark(nbformat.read(solution, as_version=4))), blocks)
    title, _, rest = nb.cells[0].source.partition("\n")
    nb.cells[0].source = "\n\n".join([title.replace("Solution", "Exercise"), HOW, rest.strip()])
    for cell in nb.cells:
        if cell.cell_type == "markdown":
            cell.source = alone(cell.source, address, "exercises")
        else:
            cell.outputs, cell.execution_count = [], None
    nb.cells.insert(1, nbformat.v4.new_code_cell(INSTALL.format(wheel=wheel, package=wheel.split("-")[0]), id="install"))
    return nb


def answered(nb, given):
    """A notebook whose answers are `given`, {number: source of the cell}."""
    nb = copy.deepcopy(nb)
    for cell in nb.cells:
        what, number = kind(cell)
        if what == "exercise":
            cell.source = f"# exercise {number}\n{given[number]}"
    return nb


def assignment(job):
    """Write one solution's files; (the exercises without hidden tests and why, its wrong answers, what four students earn)."""
    solution, out, wheel, address = job
    nb = nbformat.read(solution, as_version=4)
    blocks, without, found = tried(nb)
    written = source(solution, wheel, address, blocks)
    files = {out/"source"/solution.stem/solution.name: written, out/"key"/solution.name: with_hidden(nb, blocks),
             out/"wrong"/solution.name: answered(written, student(found))}
    for path, made in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(dumps(made), encoding="utf-8")
    return without, found, earned(nb, blocks, found)


def without_solutions(folder):
    """The book's files in `folder`, without solutions: the contents do not name them and no page links to one."""
    files = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()
    for name in files:
        if not name.startswith("solutions/"):
            (folder/name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT/name, folder/name)
    toc = folder/"_toc.yml"
    toc.write_text(re.sub(r" +- file: solutions/.*\n +title: Solutions\n", "", toc.read_text(encoding="utf-8")), encoding="utf-8")
    for path in (folder/"exercises").glob("*.ipynb"):
        nb = nbformat.read(path, as_version=4)
        nb.cells[0].source = nb.cells[0].source.replace(SOLVED.format(path.stem), "")
        path.write_text(dumps(nb), encoding="utf-8")


def pages(out):
    """The built book without solutions."""
    without_solutions(out/"book")
    subprocess.run([Path(sys.executable).with_name("jupyter-book"), "build", out/"book", "-W", "--keep-going", "-q"], check=True,
                   stdout=subprocess.DEVNULL)
    shutil.move(out/"book/_build/html", out/"site")
    shutil.rmtree(out/"book")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("names", nargs="*", help="04-alpha-beta-model; all if none")
    parser.add_argument("--pages", choices=["yes", "no"], default="yes", help="build the site, too")
    args = parser.parse_args()
    out = args.out.resolve()
    if out.exists() and not (out/"wrong_answers.txt").exists() and any(out.iterdir()):
        raise SystemExit(f"{out} is not empty and not a course that this program wrote: it would be deleted. Name a new folder")
    for old in (out, ROOT/"build"):             # what setuptools left there would get into the wheel
        shutil.rmtree(old, ignore_errors=True)
    shutil.copytree(ROOT/"tools/course/release", out/"release")
    subprocess.run([sys.executable, "-m", "pip", "--disable-pip-version-check", "wheel", "-q", "--no-deps", "--no-build-isolation",
                    "-w", out/"release", ROOT], check=True)
    [wheel] = (out/"release").glob("*.whl")
    config = yaml.safe_load((ROOT/"_config.yml").read_text(encoding="utf-8"))["sphinx"]["config"]
    solutions = [p for p in sorted((ROOT/"solutions").glob("*.ipynb")) if not args.names or p.stem in args.names]
    with ProcessPoolExecutor(2) as pool:
        done = [*pool.map(assignment, [(s, out, wheel.name, site(config["book_repository"])) for s in solutions])]
    (out/"nbgrader_config.py").write_text(CONFIG, encoding="utf-8")
    lines = [f"{number:8} {why}" for without, *_ in done for number, why in without.items()]
    (out/"without_hidden_tests.txt").write_text("\n".join([*lines, ""]), encoding="utf-8")
    print(f"{len(solutions)} assignments in {out}/source and their key; {len(lines)} exercises have no hidden test")
    found = [answer for _, answers, _ in done for answer in answers]
    counts = {s.stem: count for s, (*_, count) in zip(solutions, done)}
    (out/"wrong_answers.txt").write_text(f"{said(tally(found))}\n\n{account(counts)}\n", encoding="utf-8")
    print((out/"wrong_answers.txt").read_text(encoding="utf-8"), end="")
    if not args.names and sum(unseen for *_, unseen in found) > MOST*len(found):
        raise SystemExit(f"more than {MOST:.0%} of the wrong answers pass: tools/wrong.py prints them")
    if args.pages == "yes":
        pages(out)
        print(f"the book without solutions: {out}/site")


if __name__ == "__main__":
    main()

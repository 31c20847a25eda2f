"""Let nbgrader validate a course, hand it out, take it in from students, grade it and report. Needs nbgrader (make course).

    python tools/try_course.py _build/course [NAME ...]

The key must earn every point of the checks, a blank none, and the student of wrong/ at most MOST of them all together.
"""
import re
import shutil
import sys
import warnings
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import warm
from nbgrader.api import Gradebook
from nbgrader.apps import NbGraderAPI
from nbgrader.validator import Validator
from traitlets.config.loader import PyFileConfigLoader

warm.install()
warnings.filterwarnings("ignore", "Object of type")        # of nbgrader's database
MOST = 0.05                     # of the points, to those who answer wrongly
RIGHT, BLANK, WRONG = STUDENTS = "key", "blank", "wrong"


def course(root, name):
    """nbgrader with the course's own settings, and a gradebook for one assignment: they are graded side by side."""
    config = PyFileConfigLoader("nbgrader_config.py", path=str(root)).load_config()
    config.CourseDirectory.root = str(root)
    config.CourseDirectory.db_url = f"sqlite:///{root}/{name}.db"
    config.ExecutePreprocessor.extra_arguments = ["--log-level=ERROR"]
    config.NbGrader.logfile = ""
    return NbGraderAPI(config=config), config.CourseDirectory.db_url


def handed_in(root, name, student):
    """The file that a student hands in."""
    folder = {RIGHT: root/"source"/name, BLANK: root/"release"/name, WRONG: root/"wrong"}[student]
    target = root/"submitted"/student/name/f"{name}.ipynb"
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(folder/f"{name}.ipynb", target)


def valid(path):
    """How many checks nbgrader's validator finds failing in a notebook."""
    found = Validator().validate(str(path))
    if "error" in found or "changed" in found:
        raise SystemExit(f"{path.name}: not valid\n{found}")
    return len(found.get("failed", []))


def graded(root, name):
    """{student: points of the checks}, and how many there are."""
    api, gradebook = course(root, name)
    made = api.generate_assignment(name, force=True)
    if not made["success"]:
        raise SystemExit(f"{name}: nbgrader refuses it\n{made['log']}")
    handed = (root/"release"/name/f"{name}.ipynb").read_text(encoding="utf-8")
    if re.search("BEGIN SOLUTION|HIDDEN TESTS|\\*\\*Why\\.", handed):
        raise SystemExit(f"{name}: what students get holds an answer")
    open_checks = valid(root/"release"/name/f"{name}.ipynb")
    points = {}
    for student in STUDENTS:
        handed_in(root, name, student)
        done = api.autograde(name, student, force=True)
        if not done["success"]:
            raise SystemExit(f"{name}, {student}: not graded\n{done['log']}")
        with Gradebook(gradebook) as book:
            checks = [g for n in book.find_submission(name, student).notebooks for g in n.grades if g.cell_type == "code"]
            points[student] = sum(g.auto_score or 0 for g in checks)
            most = sum(g.max_score for g in checks)
    if open_checks < len(checks):         # unanswered questions of a hand count, too
        raise SystemExit(f"{name}: of {len(checks)} checks the validator fails {open_checks} in a blank notebook")
    if not api.generate_feedback(name, RIGHT, force=True)["success"]:
        raise SystemExit(f"{name}: no feedback")
    return name, points, most


def main(root, names):
    for folder in ("submitted", "autograded", "feedback"):
        shutil.rmtree(root/folder, ignore_errors=True)
    names = names or sorted(p.name for p in (root/"source").iterdir())
    refused, total = [], Counter()
    with ProcessPoolExecutor(2) as pool:
        for name, points, most in pool.map(graded, [root]*len(names), names):
            print(f"{name:40} " + "  ".join(f"{student} {got:g}/{most:g}" for student, got in points.items()), flush=True)
            total.update(points | {"all": most})
            if points[RIGHT] != most or points[BLANK]:
                refused.append(name)
    if refused:
        raise SystemExit(f"graded wrongly: {', '.join(refused)}")
    print(f"{len(names)} assignments: the key earns all {total['all']:g} points, the blank none, wrong answers {total[WRONG]:g}")
    if total[WRONG] > max(1, MOST*total["all"]):          # of one chapter, a point
        raise SystemExit(f"wrong answers earn more than {MOST:.0%}")


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    main(Path(sys.argv[1]).resolve(), sys.argv[2:])

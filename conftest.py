"""Tests and the kernels they start run in the same environment as tools/execute.py."""
import os
from collections import Counter

import nbval.kernel
import warm
from reproducible import ENVIRONMENT

os.environ.update(ENVIRONMENT)
warm.install()
nbval.kernel.pformat = lambda message: message              # for a log at a level that nobody reads: laid out only if written
TOOK = Counter()                                            # seconds by file
# A worker takes the next file when it has done one; a long file that comes late leaves the others idle.  Most seconds first.
LONG = ("book", "planner", "site", "algorithms", "explorer", "estimate", "type", "player", "exercises", "chart", "landing",
        "pdf", "publish", "mutants", "formulas", "wheel")
FIRST = {f"test_{name}.py": k for k, name in enumerate(LONG)}


def pytest_collection_modifyitems(items):
    """The long files, then the notebooks, each with a kernel of its own, then what is left."""
    items.sort(key=lambda item: FIRST.get(item.path.name, len(LONG) + (item.path.suffix != ".ipynb")))


def pytest_collection_finish():
    warm.settle()


def pytest_runtest_logreport(report):
    TOOK[report.nodeid.split("::")[0]] += report.duration


def pytest_terminal_summary(terminalreporter):
    if len(TOOK) > 10:
        terminalreporter.section("slowest ten files")
        for path, seconds in TOOK.most_common(10):
            terminalreporter.line(f"{seconds:7.1f} s  {path}")

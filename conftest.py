"""Tests and the kernels they start run in the same environment as tools/execute.py."""
import os
from collections import Counter

import warm
from reproducible import ENVIRONMENT

os.environ.update(ENVIRONMENT)
warm.install()
TOOK = Counter()                                            # seconds by file


def pytest_runtest_logreport(report):
    TOOK[report.nodeid.split("::")[0]] += report.duration


def pytest_terminal_summary(terminalreporter):
    if len(TOOK) > 10:
        terminalreporter.section("slowest ten files")
        for path, seconds in TOOK.most_common(10):
            terminalreporter.line(f"{seconds:7.1f} s  {path}")

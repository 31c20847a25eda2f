"""The tools that guard the notebooks do guard them: tried on two tiny notebooks in an empty folder."""
import os
import sys

import execute
import make_exercises
import nbformat
import new_chapter
import pytest
from jupyter_client.provisioning import KernelProvisionerFactory
from nbval.kernel import CURRENT_ENV_KERNEL_NAME, RunningKernel

SOLUTION = ["# Solutions", "## 1.1 Two\n\nGive 2.", "# exercise 1.1\ndef two():\n    ### BEGIN SOLUTION\n    return 2\n    ### END SOLUTION",
            "# check 1.1\nassert two() == 2", "**Why.** It is."]


@pytest.fixture
def book(tmp_path, monkeypatch):
    """A folder with one chapter (1 + 1) and one solution, where the tools believe the book to be; kernels start by themselves."""
    monkeypatch.setattr(KernelProvisionerFactory.instance(), "default_provisioner_name", "local-provisioner")
    for tool in execute, make_exercises, new_chapter:
        monkeypatch.setattr(tool, "ROOT", tmp_path)
    for folder in execute.FOLDERS:
        (tmp_path/folder).mkdir()
    write(tmp_path/"chapters/01-sum.ipynb", ["# Sum", "1 + 1\n# code"])
    write(tmp_path/"solutions/01-sum.ipynb", SOLUTION)
    return tmp_path


def write(path, sources):
    cells = [(nbformat.v4.new_markdown_cell if s.startswith(("# S", "## ", "**")) else nbformat.v4.new_code_cell)(s) for s in sources]
    path.write_text(execute.dumps(execute.normalise(nbformat.v4.new_notebook(cells=cells), path.stem)))


def call(monkeypatch, tool, *arguments):
    monkeypatch.setattr(sys, "argv", ["tool", *map(str, arguments)])
    return tool.main()


def test_execute_writes_and_check_does_not(book, monkeypatch, capsys):
    chapter = book/"chapters/01-sum.ipynb"
    before = chapter.read_text()
    assert call(monkeypatch, execute, "--check", chapter) == 1 and chapter.read_text() == before, "not executed yet"
    assert call(monkeypatch, execute, chapter) == 0 and '"2"' in chapter.read_text()
    assert call(monkeypatch, execute, "--check", chapter) == 0
    chapter.write_text(chapter.read_text().replace('"2"', '"3"'))
    assert call(monkeypatch, execute, "--check", chapter) == 1, "a changed output"
    write(chapter, ["# Sum", "1/0\n# code"])
    assert call(monkeypatch, execute, chapter) == 1 and "ZeroDivisionError" in capsys.readouterr().out


def test_a_slow_chapter_is_over_budget_and_a_slow_exercise_is_not(book, monkeypatch):
    monkeypatch.setattr(execute, "run", lambda path, check: (path, "same", 13, ""))
    assert execute.over_budget(book/"chapters/01-sum.ipynb", 13)
    assert not execute.over_budget(book/"chapters/01-sum.ipynb", 11)
    assert not execute.over_budget(book/"solutions/01-sum.ipynb", 13)


def test_make_exercises_writes_and_check_does_not(book, monkeypatch, capsys):
    exercise = book/"exercises/01-sum.ipynb"
    assert call(monkeypatch, make_exercises, "--check") == 1 and not exercise.exists()
    assert call(monkeypatch, make_exercises) == 0 and "raise NotImplementedError" in exercise.read_text()
    assert "return 2" not in exercise.read_text()
    assert call(monkeypatch, make_exercises, "--check") == 0
    exercise.rename(book/"exercises/02-orphan.ipynb")
    assert call(monkeypatch, make_exercises) == 1 and "has no solution" in capsys.readouterr().out


def test_a_new_chapter_executes_and_stands_in_the_contents(book):
    entry = new_chapter.TOC.format
    (book/"_toc.yml").write_text(entry("01-sum") + entry("20-last") + "  - caption: Labs\n")
    new_chapter.main("03a-new-thing", "A new thing")
    assert (book/"_toc.yml").read_text() == entry("01-sum") + entry("03a-new-thing") + entry("20-last") + "  - caption: Labs\n"
    for folder in "chapters", "solutions", "exercises":
        path, state, _, message = execute.run(book/folder/"03a-new-thing.ipynb")
        assert state != "FAILED", message
    with pytest.raises(SystemExit, match="exists"):
        new_chapter.main("03a-new-thing", "A new thing")
    with pytest.raises(SystemExit, match="allowed: a number and words"):
        new_chapter.main("New thing", "A new thing")


def test_a_warm_kernel_is_as_fresh_as_its_folder(tmp_path):
    """Two kernels are two processes, with none of the other's names, in the notebook's folder, without the tools.

    They take no ports, for which kernels of other workers would race.
    """
    told = []
    for k in range(2):
        kernel = RunningKernel(CURRENT_ENV_KERNEL_NAME, cwd=str(tmp_path))
        kernel.await_reply(kernel.execute_cell_input("import os, sys; from pathlib import Path\n"
            f"Path('{k}').write_text(repr([os.getpid(), 'mine' in globals(), [p for p in sys.path if p.endswith('tools')]])); mine = 1"), 20)
        told.append(eval((tmp_path/str(k)).read_text()))
        assert kernel.km.transport == "ipc"
        kernel.stop()
        with pytest.raises(ProcessLookupError):
            os.kill(told[k][0], 0)
    assert told[0][0] != told[1][0] and [rest for _, *rest in told] == [[False, []]]*2

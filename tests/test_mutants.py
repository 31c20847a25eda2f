"""The tool that breaks formulas and modules: it stops, and it sees."""
import json
import subprocess
import sys
import types
from pathlib import Path

import mutants
import pytest
from mutants import TooLong, Trial, limited, module_mutants


def test_a_mutant_that_never_ends_is_stopped(monkeypatch):
    with pytest.raises(TooLong, match="more than 0.1 s"), limited(0.1):
        while True:
            pass
    with limited(60):
        pass

    def for_ever(self, F, function):
        while True:
            pass
    monkeypatch.setattr(mutants, "SECONDS", 0.1)
    monkeypatch.setattr(Trial, "killer", for_ever)
    assert Trial([], {}, ("message_time", "for ever", 0)).run() == ("message_time", "for ever", "time", "more than 0.1 s")


def test_a_chapter_runs_as_a_notebook_does(tmp_path, monkeypatch):
    (tmp_path/"chapters").mkdir()
    monkeypatch.setattr(mutants, "ROOT", tmp_path)
    monkeypatch.chdir(tmp_path)
    for source, found in ("display(1, 2)", None), ("x = 1\nassert x == 2", ("witness or number", "assert x == 2")):
        assert mutants.noticed([source]) == found


BEFORE = "from capacity import message_time as T, optimal_segments as k\ncount = count + 1 if 'count' in globals() else 1"


def test_mutants_are_tried_by_the_cells_from_the_first_that_uses_the_formula(tmp_path, monkeypatch):
    """What stands before runs once; what a cell asserts afterwards notices, and what it does not assert survives."""
    (tmp_path/"chapters").mkdir()
    cells = [BEFORE, "assert T(1, 2, 1) == 3", "assert count == 1", "k(1, 3, 1, 1)"]
    notebook = {"cells": [{"cell_type": "code", "source": [source]} for source in cells]}
    (tmp_path/"chapters"/"1.ipynb").write_text(json.dumps(notebook))
    monkeypatch.setattr(mutants, "ROOT", tmp_path)
    monkeypatch.chdir(tmp_path)
    first, complaint = mutants.alone(mutants.first_uses, cells, {"message_time", "optimal_segments", "training_cost"})
    assert first == {"message_time": 1, "optimal_segments": 3} and complaint is None
    jobs = [(name, text, i) for name in first for i, (text, _) in enumerate(mutants.mutants(mutants.REGISTRY[name]))]
    killers = {(name, text): killer for name, text, killer, _ in mutants.chapter_trials("1", jobs)}
    assert len(killers) == len({job[:2] for job in jobs})
    assert killers["message_time", "all of it, twice"] == "witness or number"
    assert killers["optimal_segments", "all of it, twice"] == "SURVIVED"
    assert "SURVIVED" not in {killer for (name, _), killer in killers.items() if name == "message_time"}


def imported_elsewhere():
    """Whether the planner, which imported the rules of legality by name, has those of the broken module, seen in another process."""
    from capacity import legality, planner
    broken = types.ModuleType("capacity.legality")
    exec(Path(legality.__file__).read_text(), vars(broken))
    mutants.put_in_place(legality, broken)
    return planner.SYNONYMS is broken.SYNONYMS is legality.SYNONYMS


def test_who_has_imported_a_tuple_has_the_broken_one():
    assert mutants.alone(imported_elsewhere)


def test_mutants_of_a_module_are_sentences_of_its_code():
    step = [text for _, text, _ in module_mutants("step")]
    for expected in ("share * routing -> share / routing", "lay.zero == 3 -> lay.zero != 3", "lay.zero < 2 -> lay.zero <= 2",
                     "lay.zero >= stage -> lay.zero > stage", "2 * q.state -> 2 / q.state"):
        assert expected in step, expected
    legality = {text for _, text, _ in module_mutants("legality")}
    assert any(" % " in text and " // " in text for text in legality) and any(" & " in text and " | " in text for text in legality)
    assert any(" and " in text and " or " in text for text in step) and any(" in " in text and " not in " in text for text in legality)
    assert not any(words in text for text in step for words in ("spread_from", "divided and multiplied", "Seconds on the critical")), "no docstring"
    layout = [source for _, text, source in module_mutants("layout") if text == "self.batch / (self.dp * self.microbatch) -> "
              "self.batch * (self.dp * self.microbatch)"]
    assert len(layout) == 1


PROGRAM = """
import sys
sys.path.insert(0, "tools")
import mutants
mutants.TESTS = [sys.argv[1]]
source = (mutants.ROOT/"capacity"/"layout.py").read_text()
broken = source.replace("self.batch/(self.dp*self.microbatch)", "self.batch*(self.dp*self.microbatch)")
for text, source in ("no Python", "("), ("whole", source), ("broken", broken):
    print(mutants.module_trial(("layout", text, source))[1:])
"""


def test_a_broken_module_is_noticed_and_a_whole_one_is_not(tmp_path):
    """In a process of its own, because it breaks the package."""
    (tmp_path/"test_it.py").write_text("from capacity.layout import Layout\n\n"
                                       "def test_it():\n    assert Layout(batch=8, dp=2).microbatches == 4\n")
    done = subprocess.run([sys.executable, "-c", PROGRAM, str(tmp_path/"test_it.py")], cwd=mutants.ROOT, capture_output=True,
                          text=True, check=True)
    none, whole, broken = done.stdout.splitlines()
    assert none.startswith("('no Python', 'error', \"SyntaxError: '(' was never closed"), none
    assert whole == "('whole', 'SURVIVED', '')" and broken == "('broken', 'test', 'test_it')"

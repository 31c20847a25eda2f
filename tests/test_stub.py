"""Editors and type checkers see what Python sees."""
import re

import capacity
import make_stub


def test_stub_is_current():
    assert make_stub.STUB.read_text(encoding="utf-8") == make_stub.text(), "run tools/make_stub.py"


def test_stub_names_everything_that_is_public():
    assert set(re.findall(r" as (\w+)$", make_stub.text(), re.M)) == set(dir(capacity))


def test_every_line_of_the_stub_holds():
    scope = {"__package__": "capacity"}
    exec(make_stub.text(), scope)
    assert all(scope[name] is getattr(capacity, name) for name in dir(capacity))


def test_the_package_says_that_it_is_typed():
    assert make_stub.STUB.with_name("py.typed").exists()

"""The generated appendices are what the package says, and a letter has one meaning in a chapter."""
import re
from collections import defaultdict

import make_appendices
import pytest

from capacity import formulas  # noqa: F401  (fills the registry)
from capacity.grammar import REGISTRY
from capacity.notation import NOTATION

BIB = re.findall(r"^@\w+\{([^,\s]+),", (make_appendices.ROOT/"references.bib").read_text(), re.M)


@pytest.mark.parametrize("page", ["notation.md", "formulas.md", "hardware.md", "package.md", "bibliography.md"])
def test_page_is_in_step(page):
    """Run tools/make_appendices.py if this fails."""
    assert (make_appendices.PAGES/page).read_text() == make_appendices.pages()[page]


@pytest.mark.parametrize("chapter", make_appendices.chapters())
def test_a_letter_has_one_meaning_in_a_chapter(chapter):
    names = defaultdict(set)
    for f in REGISTRY.values():
        if f.chapter == chapter:
            for name in f.units:
                names[NOTATION[name].latex].add(name)
    assert {letter: found for letter, found in names.items() if len(found) > 1} == {}


def test_alpha_is_a_latency_and_beta_a_bandwidth_everywhere():
    for letter, meaning in ((r"\alpha", "s"), (r"\beta", "B/s")):
        names = {name for name, x in NOTATION.items() if re.match(re.escape(letter) + r"(?![a-z])", x.latex)}
        units = {make_appendices.unit(f.units[name]) for f in REGISTRY.values() for name in names & set(f.units)}
        assert units == {meaning}


def test_every_source_of_a_formula_is_in_the_bibliography():
    assert {f.source for f in REGISTRY.values()} - {"derived"} <= set(BIB)


def test_every_citation_of_the_pages_exists():
    for text in make_appendices.pages().values():
        assert set(re.findall(r"\{cite\}`([^`]+)`", text)) <= set(BIB)

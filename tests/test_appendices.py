"""The generated appendices are what the package says, and a letter has one meaning in a chapter."""
import functools
import json
import re
from collections import defaultdict

import make_appendices
import pytest
from test_architecture import ORDER

import capacity
from capacity import formulas  # noqa: F401  (fills the registry)
from capacity.grammar import REGISTRY
from capacity.notation import NOTATION

BIB = re.findall(r"^@\w+\{([^,\s]+),", (make_appendices.ROOT/"references.bib").read_text(), re.M)


@pytest.mark.parametrize("page", ["quick-reference.md", "glossary.md", "notation.md", "formulas.md", "hardware.md", "package.md", "bibliography.md", "corrections.ipynb"])
def test_page_is_in_step(page):
    """Run tools/make_appendices.py if this fails."""
    assert (make_appendices.PAGES/page).read_text() == make_appendices.pages()[page]


def test_every_name_that_can_be_called_has_its_entry():
    text = {name: (make_appendices.PAGES/name).read_text() for name in ("package.md", "formulas.md")}
    known = {*re.findall(r"^#### (\w+)$|^\| `(\w+)` \|", text["package.md"], re.M), *re.findall(r"^()### `(\w+)`$", text["formulas.md"], re.M)}
    assert {name for name in dir(capacity) if callable(getattr(capacity, name))} <= {a or b for a, b in known}


def test_the_rooms_of_the_page_are_those_of_the_architecture():
    rooms = [name for names in make_appendices.ROOMS.values() for name in names]
    assert sorted(rooms) == sorted({"pictures.", "witness.", *sum(ORDER, [])} - {"formulas", "__main__"})


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
        assert {key.strip() for keys in re.findall(r"\{cite[^}]*\}`([^`]+)`", text) for key in keys.split(",")} <= set(BIB)


# ---- the glossary
TERMS = make_appendices.terms()
STEMS = make_appendices.stems()

# Abbreviations that are no terms: units, and names of models, programs, firms and data.
UNITS = set("GB MB TB PB KiB MiB GiB kB GN".split())
NAMES = set("""PyTorch DeepSeek GPT NVIDIA BLOOM DeepSpeed ImageNet vLLM SGLang KempnerForge MaxText InternEvo SimuMax TeX ResNet GB200 GB200s GB300
LM OLMo PaLM MiniMax ByteDance AMD OpenAI GitHub MLPerf CUDA CPU IV II III VI VII VIII JavaScript JupyterLab AI README""".split())


@functools.cache
def prose(chapter):
    cells = json.loads((make_appendices.ROOT/f"chapters/{STEMS[chapter]}.ipynb").read_text())["cells"]
    return " ".join("".join(c["source"]) for c in cells if c["cell_type"] == "markdown")


def spellings(term):
    return [term["name"], *term.get("also", [])]


def plain(text):
    """Small letters, one space, no hyphens, no emphasis."""
    return re.sub(r"[\s\u00a0-]+", " ", text.replace("*", "")).lower()


def test_no_word_stands_for_two_terms():
    words = [w for t in TERMS for w in {plain(w) for w in spellings(t)}]
    assert {w for w in words if words.count(w) > 1} == set()
    for t in TERMS:
        assert len({w.lower() for w in spellings(t)}) == len(spellings(t)), t["name"]


@pytest.mark.parametrize("term", TERMS, ids=lambda t: t["name"])
def test_a_term_leads_to_a_chapter_that_uses_it_and_a_formula_that_exists(term):
    assert set(term) <= {"name", "also", "chapter", "formula", "says"} and term["says"].endswith(".")
    assert term["chapter"] in STEMS
    assert "formula" not in term or term["formula"] in REGISTRY
    text = plain(prose(term["chapter"]))
    assert any(re.search(rf"(?<!\w){re.escape(plain(w))}(s|es)?(?!\w)", text) for w in spellings(term)), \
        f"chapter {term['chapter']} says none of {spellings(term)}"


def test_every_abbreviation_of_two_pages_is_a_term():
    """What has two capitals in the prose, citations, code and formulas left out."""
    found = defaultdict(set)
    pages = {number: prose(number) for number in STEMS} | {name: (make_appendices.ROOT/name).read_text() for name in ("index.md", "preface.md", "plan.md")}
    for page, text in pages.items():
        text = re.sub(r"\{cite\}`[^`]*`|`[^`]*`|\$\$.*?\$\$|\$[^$]*\$|\]\([^)]*\)", " ", text, flags=re.S)
        for word in re.findall(r"\b[A-Za-z]*[A-Z][A-Za-z0-9]*[A-Z][A-Za-z0-9]*\b", text):
            found[word].add(page)
    known = {part for t in TERMS for w in spellings(t) for part in (w, *re.split(r"[ -]", w))}
    known = {form for w in known for form in (w, w + "s", w.upper())}
    assert {w: sorted(on) for w, on in found.items() if len(on) > 1 and w not in known | UNITS | NAMES} == {}

"""The map of the chapters is that of the book, and the hours of the ways are those of the notebooks."""
import functools
import json
import re

import pytest
import reading

from capacity import formulas  # noqa: F401  (fills the registry)
from capacity.grammar import REGISTRY

ORDER = list(reading.NEEDS)


def test_the_map_has_every_chapter_in_the_order_of_the_book():
    toc = re.findall(r"- file: chapters/(\S+)", (reading.ROOT/"_toc.yml").read_text())
    assert [reading.stems()[c] for c in ORDER] == toc and sorted(toc) == sorted(reading.stems().values())
    assert [c for row in reading.PARTS.values() for c in row] == ORDER and set(reading.SHORT) == set(ORDER)


def test_a_chapter_builds_on_earlier_ones_and_says_it_once():
    for chapter, needs in reading.NEEDS.items():
        for n in needs:
            assert ORDER.index(n) < ORDER.index(chapter)
            assert not any(n in reading.ground(m) for m in needs if m != n), f"{chapter} needs {n} through another one"


def test_parts_three_to_six_need_nothing_of_part_two():
    for part in ("III", "IV", "V", "VI"):
        for chapter in reading.PARTS[part]:
            assert not reading.ground(chapter) & set(reading.PARTS["II"])


@pytest.mark.parametrize("chapter", ORDER)
def test_a_link_back_is_in_the_map_or_said_to_be_aside(chapter):
    """A link to what the chapter does not build on stands in ASIDE, and nothing else stands there."""
    of = {stem: c for c, stem in reading.stems().items()}
    text = " ".join("".join(c["source"]) for c in reading.cells("chapters", chapter) if c["cell_type"] == "markdown")
    linked = {of[stem] for stem in re.findall(r"\((\d[\w-]*)\.ipynb", text) if stem in of}
    back = {c for c in linked if ORDER.index(c) < ORDER.index(chapter)}
    assert sorted(back - reading.ground(chapter)) == sorted(reading.ASIDE.get(chapter, [])), "add it to NEEDS or to ASIDE of tools/reading.py"


def test_a_way_that_takes_nothing_on_trust_is_closed():
    for name, (chapters, _, says) in reading.PATHS.items():
        assert chapters == sorted(chapters, key=ORDER.index)
        assert ("on trust" in says) == any(reading.ground(c) - set(chapters) for c in chapters), name
    assert list(reading.PATHS) == ["Decide", "Understand", "Teach"]


def test_what_a_way_takes_on_trust_is_said_in_full():
    chapters, _, says = reading.PATHS["Decide"]
    whole = {part for part in reading.PARTS if f" {part} " in says.partition("Parts")[2]}
    said = set(re.findall(r"\d+[ab]?", says)) | {c for part in whole for c in reading.PARTS[part]}
    assert whole == {"III", "IV"} and said == set().union(*map(reading.ground, chapters)) - set(chapters)


# What a chapter is about as a whole: no single link or formula would say so.
SUBJECT = {"12": ["11"], "20": ["14"], "27": ["24"]}


@pytest.mark.parametrize("chapter", ORDER[:ORDER.index("32")])
def test_a_line_of_the_map_has_a_trace_in_the_chapter(chapter):
    """A link to what is needed, or a formula that has its home there."""
    cells = reading.cells("chapters", chapter)
    text = "".join("".join(c["source"]) for c in cells if c["cell_type"] == "markdown")
    words = set(re.findall(r"\w+", "\n".join("".join(c["source"]) for c in cells if c["cell_type"] == "code")))
    homes = {REGISTRY[name].chapter for name in words & set(REGISTRY)}
    for n in reading.NEEDS[chapter]:
        stem = reading.stems()[n]
        assert f"({stem}.ipynb" in text or stem in homes or n in SUBJECT.get(chapter, []), n


def test_the_hours_are_counted_in_the_notebooks():
    """A second count: words one by one, pictures by their outputs, exercises by the solutions that they are made of."""
    @functools.cache
    def notebook(folder, c):
        return json.loads((reading.ROOT/folder/f"{reading.stems()[c]}.ipynb").read_text())["cells"]
    said, whole = reading.paths(), {"All chapters": (ORDER, ["easy", "medium", "hard"], "")}
    for name, (chapters, levels, _) in (reading.PATHS | whole).items():
        minutes = 0
        for c in chapters:
            for cell in notebook("chapters", c):
                if cell["cell_type"] == "markdown":
                    minutes += sum(1 for _ in re.finditer(r"\w[\w'-]*", "".join(cell["source"])))/200
                else:
                    minutes += sum(any(k == "image/png" or k == "text/html" and re.search("<svg|<figure", "".join(v))
                                       for k, v in o.get("data", {}).items()) for o in cell["outputs"])/2
            for exercise in "".join(f"\n\n{''.join(cell['source'])}" for cell in notebook("solutions", c)
                                    if cell["cell_type"] == "markdown").split("\n\n## ")[1:]:
                [level] = re.findall(r" minutes, (easy|medium|hard)\)\*", exercise)
                if level in levels:
                    minutes += sum(map(int, re.findall(r"(\d+) minutes(?:, \w+)?\)\*", exercise)))
        assert re.search(rf"{name}\b.* {minutes/60:.0f} hours", said)


def test_the_hours_of_a_project_are_counted_from_its_parts():
    text = (reading.ROOT/"teach.md").read_text()
    found = re.findall(r"\*\*([A-Z][\w ]+)\*\* \*\((\d+) points, ([\d.]+) hours: (.*?)\)\*.*?\n\|---:.*?\n(.*?)\n\n", text, re.S)
    assert {name.lower(): float(hours) for name, _, hours, *_ in found} == reading.PROJECT_HOURS
    assert {due for dues in reading.PROJECTS.values() for due in dues.values()} == set(reading.PROJECT_HOURS)
    for name, points, hours, parts, table in found:
        rows = [[x.strip() for x in line.strip("|").split("|")] for line in table.splitlines()]
        assert all(len(row) == 5 and all(row) for row in rows) and sum(int(row[0]) for row in rows) == int(points), name
        took = {"words read": 1/200, "commands": 10, "words written": 1/5}
        counted = sum(int(k.replace(",", ""))*took[of] for k, of in (part.split(" ", 1) for part in parts.split(", ")))
        assert counted == sum(int(row[1]) for row in rows) == 60*float(hours), name


def test_every_chapter_is_drawn_once_and_nothing_touches():
    for width in (680, 336):
        sheet = reading.chart(width)
        assert sheet.faults() == [] and [t for t in sheet.said if t in ORDER] == ORDER
    lines = sum(len(needs) for needs in reading.NEEDS.values())
    assert sum(type(s).__name__ == "Path" for s in sheet.shapes) == lines
    assert 'aria-label="24 · 3D parallelism, builds on 16 and 20"' in reading.map_of_chapters()


def test_the_readme_counts_chapters_and_parts():
    assert f"{ {42: 'Forty-two'}[len(ORDER)]} chapters in { {8: 'eight'}[len(reading.PARTS)]} parts" in (reading.ROOT/"README.md").read_text()


def test_a_course_of_weeks_reads_nothing_before_what_it_builds_on():
    read = []
    for _, chapters in reading.COURSES["week"]:
        for chapter in chapters:
            assert set(reading.NEEDS[chapter]) <= set(read), f"chapter {chapter}"
            read.append(chapter)
    assert len(read) == len(set(read)) == 24 and "On trust" not in reading.course("week")


def test_a_course_of_days_says_what_it_takes_on_trust():
    taken = {c for _, chapters in reading.COURSES["day"] for c in chapters}
    said = set(re.findall(r"\[(\w+)\]", reading.course("day").split("On trust")[1]))
    assert said == set().union(*map(reading.ground, taken)) - taken


def test_points_are_those_of_the_exercises():
    for chapter in ORDER:
        text = " ".join("".join(c["source"]) for c in reading.cells("exercises", chapter))
        levels = re.findall(r"\*\(\d+ minutes, (easy|medium|hard)\)\*", text)
        assert reading.points(chapter)[0] == sum(("easy", "medium", "hard").index(level) + 1 for level in levels)
    total = sum(map(int, re.findall(r"\| (\d+) \| \d+ \|", reading.worth())))
    assert total == sum(reading.points(c)[0] for c in ORDER)

"""What every notebook of the book keeps to, and what every chapter keeps to besides."""
import functools
import re
from pathlib import Path

import execute
import layers
import nbformat
import pytest

ROOT = Path(__file__).resolve().parents[1]
NOTEBOOKS = execute.notebooks()
CHAPTERS = [p for p in NOTEBOOKS if p.parent.name == "chapters"]
HYPE = (r"\b(crucial|powerful|seamless|leverage|delve|dive into|game.chang|simply put"
        r"|in conclusion)\w*")


@functools.cache
def read(path):
    """The notebook, which a test does not change."""
    return nbformat.read(path, as_version=4)


each_notebook = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda p: f"{p.parent.name}/{p.stem}")
each_chapter = pytest.mark.parametrize("path", CHAPTERS, ids=lambda p: p.stem)       # tests/test_form.py has the rules of its layers


def cells(path, kind):
    return [c for c in read(path).cells if c.cell_type == kind]


def lines(source):
    """The lines that count: not empty, not only a comment."""
    return [s for s in source.splitlines() if s.strip() and not s.strip().startswith("#")]


def headings(path):
    """(level, text) of each heading, outside fences."""
    text = "\n\n".join(c.source for c in cells(path, "markdown"))
    text = re.sub(r"^(```|:::).*?^\1", "", text, flags=re.S | re.M)
    return [(len(m[1]), m[2]) for m in re.finditer(r"^(#{1,6}) +(.+)$", text, re.M)]


# --- every notebook

@each_notebook
def test_was_run_from_top_to_bottom(path):
    counts = [c.execution_count for c in cells(path, "code")]
    assert counts == list(range(1, len(counts) + 1)), f"run tools/execute.py {path.relative_to(ROOT)}"


@each_notebook
def test_is_normalised(path):
    nb = nbformat.read(path, as_version=4)
    assert execute.dumps(execute.normalise(nb, path.stem)) == path.read_text(encoding="utf-8"), \
        f"run tools/execute.py {path.relative_to(ROOT)}"


@each_notebook
def test_no_stray_error(path):
    for c in cells(path, "code"):
        errors = [o for o in c.outputs if o.output_type == "error"]
        assert bool(errors) == ("raises-exception" in c.metadata.get("tags", [])), c.source


@each_notebook
def test_outputs_are_readable_and_small(path):
    for c in cells(path, "code"):
        for o in c.outputs:
            assert "image/svg+xml" not in o.get("data", {}), "figures are PNG"
            assert len(str(o)) < 400_000, f"an output of {len(str(o))} characters:\n{c.source}"
            text = o.get("text", "") if o.output_type == "stream" else ""
            assert all(len(s) <= 100 for s in text.splitlines()), f"a printed line is too long:\n{text}"


RAW = re.compile(r"""^\s*[(\[{]|\b(np\.\w+|array)\(|[\[{]['"\d(\[{-]|\('""", re.M)


def raw(output):
    """Whether an output is text alone, in which Python wrote a tuple, a list, a dict or an array."""
    data = output.get("data", {})
    return set(data) <= {"text/plain"} and bool(RAW.search(output.get("text", "") or data.get("text/plain", "")))


@each_notebook
def test_results_have_names(path):
    """Not (8, 456.6, 57.1): capacity.named and capacity.table say what each number is."""
    bad = [c.source for c in cells(path, "code") if any(map(raw, c.outputs))]
    assert not bad, "\n\n".join(bad)


@pytest.mark.parametrize("text, found", [
    ("(8, 456.6, 57.1)", True), ("[36.5, 50.5]", True), ("{1: 56.5, 2: 38.9}", True), ("array([[2., 2.]])", True),
    ("[0.36 0.56] 0.92", True), ("np.float64(0.125)", True), ("batches [4, 8]", True), ("2.08 ('inside', 1.0)", True),
    ("one\n[8]", True), ("", False), ("112 ms", False), ("-0.025 nats (of 2)", False), ("state, GB = 456.6\nranks = 8", False)])
def test_the_test_sees_what_python_wrote(text, found):
    assert raw(nbformat.v4.new_output("stream", text=text)) == found
    assert raw(nbformat.v4.new_output("execute_result", data={"text/plain": text})) == found
    assert not raw(nbformat.v4.new_output("execute_result", data={"text/plain": text, "text/html": "<dl></dl>"}))


@each_notebook
def test_cell_does_not_end_in_a_semicolon(path):
    """A value hidden so is not hidden when the tests run the cell: write plt.show() or `_ =`."""
    bad = [c.source for c in cells(path, "code") if c.source.rstrip().endswith(";")]
    assert not bad, bad


@each_notebook
def test_every_picture_says_what_it_shows(path):
    for c in cells(path, "code"):
        pictures = [o for o in c.outputs
                    if "image/png" in o.get("data", {}) and "text/html" not in o.data]
        if pictures:
            alt = c.metadata.get("mystnb", {}).get("image", {}).get("alt", "")
            assert len(alt) >= 30, f"alt text in the cell's metadata: mystnb.image.alt\n{c.source}"
            sized = [{"width", "height"} <= set(o.metadata.get("image/png", {})) for o in pictures]
            assert all(sized), f"a figure is drawn at twice its size (capacity.pictures.plot)\n{c.source}"


@each_notebook
def test_headings_form_a_tree(path):
    levels = [level for level, _ in headings(path)]
    assert levels[:1] == [1] and levels.count(1) == 1, "one title, first"
    assert all(b - a <= 1 for a, b in zip(levels, levels[1:])), f"a level is skipped: {headings(path)}"


@each_notebook
def test_no_clock_no_network(path):
    text = "\n".join(c.source for c in cells(path, "code"))
    found = re.findall(r"perf_counter|time\.time\(|datetime\.now|urllib|requests\.|%time|^[!%].*", text, re.M)
    assert not found, found


@each_notebook
def test_links_between_files_lead_somewhere(path):
    for c in cells(path, "markdown"):
        for target in re.findall(r"\]\((?!https?:|#|mailto:)([^)#\s]+)", c.source):
            there = path.parent / target
            assert there.exists() or any(there.with_name(there.name + end).exists() for end in (".ipynb", ".md")), \
                f"{target} in:\n{c.source}"


# --- the normaliser, on outputs small enough to see through

def cell(*outputs):
    c = nbformat.v4.new_code_cell("x", outputs=list(outputs), metadata={"tags": ["t"], "scrolled": True})
    return nbformat.v4.new_notebook(cells=[c], metadata={"kernelspec": {"name": "mine", "display_name": "mine"}})


def test_normalise_drops_what_changes():
    new = nbformat.v4.new_output
    data = {execute.WIDGET: {"model_id": "1"}, "text/plain": "x"}
    nb = cell(new("stream", text="a"), new("stream", text="b"), new("display_data", data), new("display_data", {execute.WIDGET: {}}),
              new("error", ename="E", evalue="\x1b[31mbad", traceback=["long", "path"]))
    twin = nbformat.v4.new_code_cell("y", id="one")
    nb.cells[0].id = "one"
    nb.cells.append(twin)
    nb = execute.normalise(nb, "01-x")
    stream, shown, error = nb.cells[0].outputs
    assert stream.text == "ab" and shown.data == {"text/plain": "x"} and error.traceback == ["E: bad"]
    assert nb.cells[0].metadata == {"tags": ["t"]} and nb.metadata.kernelspec.name == "python3"
    assert [c.id for c in nb.cells] == ["one", "01-x-001"]
    assert execute.dumps(execute.normalise(nb, "01-x")) == execute.dumps(nb)


@pytest.mark.parametrize("output, said", [
    (nbformat.v4.new_output("stream", name="stderr", text="careful"), "writes to stderr: careful"),
    (nbformat.v4.new_output("stream", text="<f at 0x7f3ddd181c60>"), "prints a memory address"),
    (nbformat.v4.new_output("execute_result", {"text/plain": "<f at 0x7f3ddd181c60>"}), "prints a memory address")])
def test_normalise_refuses_what_no_reader_should_see(output, said):
    with pytest.raises(execute.Unreproducible, match=said):
        execute.normalise(cell(output), "01-x")


# --- every chapter

@each_chapter
def test_code_fits_the_page(path):
    wide = [s for c in cells(path, "code") for s in c.source.splitlines() if len(s) > 72]
    assert not wide, "over 72 characters:\n" + "\n".join(wide)


@each_chapter
def test_claims_end_in_asserts(path):
    source = "\n".join(c.source for c in cells(path, "code"))
    assert len(re.findall(r"^\s*assert\b", source, re.M)) >= 6
    assert re.search(r"assert .*(simplify|equals|expand|factor)\(", source), \
        "a derivation ends in a comparison with the package"


@each_chapter
def test_plain_words(path):
    text = "\n".join(c.source for c in cells(path, "markdown"))
    assert not re.findall(HYPE, text, re.I)


@each_chapter
def test_links_to_its_exercises(path):
    assert f"exercises/{path.stem}" in "\n".join(c.source for c in cells(path, "markdown"))


def box(text, name):
    """The words of each box of a class."""
    return re.findall(rf"^:::+\{{admonition\}}[^\n]*\n:class: {name}\n(.*?)^:::", text, re.S | re.M)


@each_chapter
def test_what_is_read_is_short(path):
    """The argument and its proofs; what makes a picture may be longer."""
    for c in cells(path, "code"):
        read = layers.read(c.source)
        assert len(lines(c.source)) <= (40 if read.layer == "workshop" else 25), f"{len(lines(c.source))} lines:\n{c.source}"


@each_chapter
def test_begins_with_a_question_a_picture_a_guess_and_the_answer(path):
    nb = read(path)
    question = re.findall(r"\*\*([^*]*\?)\*\*", nb.cells[0].source)
    assert nb.cells[0].source.startswith("# ") and question, "the first cell: title, question in bold"
    assert len(question[-1].split()) <= 30, f"{len(question[-1].split())} words: {question[-1]}"
    act = next(i for i, c in enumerate(nb.cells) if c.cell_type == "markdown" and re.search("^## Understand", c.source, re.M))
    before = nb.cells[:act] + [nbformat.v4.new_markdown_cell(nb.cells[act].source.partition("## Understand")[0])]
    shown = [str(o.get("data", {}).get("text/html", "")) for c in before if c.cell_type == "code" for o in c.outputs]
    assert any("<svg" in s or "<figure" in s for s in shown), "a picture before the first act"
    assert any("cx-ask" in s for s in shown), "guess(...) before the first act"
    answers = box("\n\n".join(c.source for c in before if c.cell_type == "markdown"), "answer")
    assert len(answers) == 1 and len(answers[0].split()) <= 60, f"one answer of at most 60 words: {[len(a.split()) for a in answers]}"


@each_chapter
def test_has_the_shape_of_a_chapter(path):
    levels = headings(path)
    assert sum(level == 3 for level, _ in levels) <= 12, "at most twelve sections"
    text = "\n\n".join(c.source for c in cells(path, "markdown"))
    acts = re.split(r"^## ", text, flags=re.M)
    for name in layers.ACTS:
        act = next(a for a in acts if a.startswith(name))
        assert box(act, "takeaway") or name == "Use" and box(act, "remember"), f"{name} ends in a takeaway"
    assert len(box(text, "remember")) == 1, "one box to remember"
    shown = "".join(str(o.get("data", {}).get("text/html", "")) for c in cells(path, "code") for o in c.outputs)
    for word, what in {"cx-answer": "answer(...)", "cx-decide": "decide(...)", "cx-quiz": "quiz(...)"}.items():
        assert word in shown, what
    assert re.search("cx-(explore|scenes|stepper|gantt)", shown), "something that moves"

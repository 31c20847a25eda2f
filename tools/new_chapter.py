"""Begin a chapter: write its notebook and its solution in the form of the book, and enter both in the contents.

    python tools/new_chapter.py 19-memory-equation "The memory equation"

What it writes executes and folds; every line in angle brackets is yours to replace.  It refuses a name that exists.
"""
import re
import sys

import nbformat
from execute import ROOT, dumps, normalise
from make_exercises import out_of_step

CHAPTER = [
    ("markdown", """# {number} · {title}

<Two to four sentences with real numbers that lead to the question.>

**<One decision that the reader could take, in at most thirty words?>**"""),
    ("code", """# setup
import sympy as sp

from capacity import Sketch, drawing, guess"""),
    ("code", """# drawing
def thing(W):
    s = Sketch(W)
    s.box(W/2 - 60, 10, 120, 40, "the object")
    return s


drawing("{slug}-thing", thing, title="<What the picture shows, as a sentence>",
        alt="<What a reader who cannot see it would miss>")"""),
    ("code", """# guess
my_guess = 10
guess("{slug}", my_guess, "units", question="<What do you expect?>",
      lo=1, hi=1000, scale="log")"""),
    ("markdown", """:::{{admonition}} The answer
:class: answer
<At most sixty words; the same model and the same numbers as in Remember.>
:::"""),
    ("markdown", """## Understand

### A tiny case, by hand

<Two or three ranks.> The sum is the same in both orders. ∎"""),
    ("code", """# ∎ Addition of two numbers commutes
a, b = sp.symbols("a b")
assert sp.simplify((a + b) - (b + a)) == 0"""),
    ("markdown", """:::{{admonition}} Takeaway
:class: takeaway
<One sentence.>
:::

## Compute

### <Derive it>

<The picture before the algebra; each step has a reason.>

:::{{admonition}} Takeaway
:class: takeaway
<One sentence.>
:::

## Use

### In practice

<Knobs with the term they move, symptoms with their cause, how to measure the constants.>

:::{{admonition}} Remember
:class: remember
<The answer, one inequality, its hypotheses.>
:::"""),
]
SOLUTION = [
    ("markdown", "# Solutions {number} · {title}"),
    ("markdown", "## {short}.1 <Title>\n\n<What is asked.> *(5 minutes, easy)*"),
    ("code", "# exercise {short}.1\ndef answer():\n    ### BEGIN SOLUTION\n    return 42\n    ### END SOLUTION"),
    ("code", "# check {short}.1\nassert answer() == 42, \"<what is wrong, and what was expected about>\""),
    ("markdown", "**Why.** <The reason.>"),
]


def notebook(cells, **words):
    make = {"markdown": nbformat.v4.new_markdown_cell, "code": nbformat.v4.new_code_cell}
    nb = nbformat.v4.new_notebook(cells=[make[kind](text.format(**words)) for kind, text in cells])
    for cell in nb.cells:
        cell.id = ""                                        # normalise counts them
    return normalise(nb, words["stem"])


TOC = """      - file: chapters/{0}
        sections:
          - file: exercises/{0}
            title: Exercises
          - file: solutions/{0}
            title: Solutions
"""


def entered(toc, stem):
    """The contents with the chapter and its exercises behind the last chapter that comes before it."""
    blocks = re.findall(r"^      - file: chapters/(\S+)\n(?:^ {8}.*\n)*", toc, re.M)
    last = max(b for b in blocks if b < stem)
    return toc.replace(TOC.format(last), TOC.format(last) + TOC.format(stem))


def main(stem, title):
    match = re.fullmatch(r"(\d\d[a-z]?)-([a-z0-9]+(-[a-z0-9]+)*)", stem)
    if not match:
        sys.exit(f"name {stem!r}; allowed: a number and words, such as 19-memory-equation")
    files = [ROOT/folder/f"{stem}.ipynb" for folder in ("chapters", "solutions")]
    if any(f.exists() for f in files):
        sys.exit(f"{stem} exists")
    short = match[1].lstrip("0")
    words = {"stem": stem, "slug": match[2], "number": short, "short": short, "title": title}
    for path, cells in zip(files, (CHAPTER, SOLUTION)):
        path.write_text(dumps(notebook(cells, **words)), encoding="utf-8")
    toc = ROOT/"_toc.yml"
    toc.write_text(entered(toc.read_text(encoding="utf-8"), stem), encoding="utf-8")
    out_of_step(files[1], check=False)                 # writes the exercises
    print(f"wrote {stem}: now python tools/execute.py chapters/{stem}.ipynb solutions/{stem}.ipynb exercises/{stem}.ipynb")


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])

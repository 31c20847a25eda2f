"""Call figure_style() in the import cell of every notebook that draws with matplotlib; a second run changes nothing.

    python tools/add_style.py chapters/*.ipynb solutions/*.ipynb
"""
import ast
import sys
import textwrap
from pathlib import Path

import nbformat

NAME, WIDTH = "figure_style", 72


def styled(source):
    """The source of an import cell with `figure_style` imported beside the book's other names, and called."""
    node = next(n for n in ast.parse(source).body if isinstance(n, ast.ImportFrom) and n.module == "capacity")
    names = [a.name + (f" as {a.asname}" if a.asname else "") for a in node.names]
    at = next((k for k, n in enumerate(names) if n.islower() and n > NAME), len(names))
    names.insert(at, NAME)
    block = textwrap.fill(", ".join(names), WIDTH - 1, initial_indent="    ", subsequent_indent="    ",
                          break_long_words=False, break_on_hyphens=False)
    lines = source.splitlines()
    lines[node.lineno - 1:node.end_lineno] = f"from capacity import (\n{block})".splitlines()
    return "\n".join([*lines, "", f"{NAME}()"])


def main(paths):
    for path in map(Path, paths):
        nb = nbformat.read(path, as_version=4)
        code = [c for c in nb.cells if c.cell_type == "code"]
        text = "\n".join(c.source for c in code)
        if NAME in text or "plt." not in text:
            continue
        cell = next(c for c in code if "from capacity import" in c.source)
        cell.source = styled(cell.source)
        path.write_text(nbformat.writes(nb) + "\n", encoding="utf-8")
        print(path)


if __name__ == "__main__":
    main(sys.argv[1:])

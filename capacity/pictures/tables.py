"""Results as a reader wants them: tables, named equations, formulas that come back, 

Every object shows HTML and prints plain text with the same content, which nbval compares.
"""
import html
import json
import re



YES, NO = "✓", "–"


def _cell(v):
    return YES if v is True else NO if v is False else "" if v is None else str(v)


def _inner(v):
    """HTML of a cell: $...$ is mathematics, `...` code."""
    text = html.escape(_cell(v))
    text = re.sub(r"\$(.+?)\$", r"\\(\1\\)", text)
    return re.sub("`(.+?)`", r"<code>\1</code>", text)


class Table:
    def __init__(self, head, rows, mark, bar, note):
        self.head, self.rows = list(head), [list(r) for r in rows]
        for r in self.rows:
            if len(r) != len(self.head):
                raise ValueError(f"row {r!r} has {len(r)} cells; the head has {len(self.head)}")
        self.mark, self.bar, self.note = mark, bar, note
        self.right = [all(isinstance(r[k], (int, float)) and not isinstance(r[k], bool) or
                          re.match(r"[-−+]?[\d.,]+(\s?[%\w/µ]{0,8})?$" if k else r"[\d.,]+$", _cell(r[k])) for r in self.rows)
                      for k in range(len(self.head))]

    def _repr_html_(self):
        side = [' class="num"' if right else "" for right in self.right]
        most = max((float(r[self.bar]) for r in self.rows), default=1) if self.bar is not None else 1
        body = ""
        for i, row in enumerate(self.rows):
            cells = ""
            for k, v in enumerate(row):
                text = _inner(v)
                if k == self.bar:
                    text = (f'<span class="cx-barred"><b>{text}</b><i style="width:{5.5*float(v)/most:.2f}rem"></i></span>')
                tag = "th scope=\"row\"" if k == 0 else "td"
                long = ' class="long"' if len(_cell(v)) > 26 and k else ""
                cells += f'<{tag}{side[k] if k != self.bar else ""}{long}>{text}</{tag.split()[0]}>'
            body += f'<tr{" class=cx-mark" if i == self.mark else ""}>{cells}</tr>'
        head = "".join(f'<th scope="col"{"" if k == self.bar else s}>{_inner(h)}</th>' for k, (h, s) in
                       enumerate(zip(self.head, side)))
        note = f"<p>{_inner(self.note)}</p>" if self.note else ""
        return (f'<div class="cx-table mathjax_process" tabindex="0"><table><thead><tr>{head}</tr></thead>'
                f"<tbody>{body}</tbody></table>{note}</div>")

    def __repr__(self):
        grid = [[_cell(v) for v in r] for r in [self.head, *self.rows]]
        wide = [max(len(r[k]) for r in grid) for k in range(len(self.head))]
        lines = ["  ".join(c.rjust(n) if right else c.ljust(n) for c, n, right in zip(r, wide, self.right)).rstrip()
                 for r in grid]
        return "\n".join([lines[0], "-"*min(79, sum(wide) + 2*len(wide) - 2), *lines[1:], *([self.note] if self.note else [])])


def table(head, rows, *, mark=None, bar=None, note=""):
    """A table: head and rows of text, numbers or booleans; $...$ is mathematics.

    mark: the row that the text talks about.  bar: the column drawn as bars.  note: a line below.
    """
    return Table(head, rows, mark, bar, note)


class Named:
    def __init__(self, pairs):
        self.pairs = pairs

    def _repr_latex_(self):
        import sympy as sp
        rows = r" \\ ".join(rf"{k} &= {v if isinstance(v, str) else sp.latex(v)}" for k, v in self.pairs)
        return rf"$$\begin{{aligned}} {rows} \end{{aligned}}$$"

    def __repr__(self):
        return "\n".join(f"{k} = {v}" for k, v in self.pairs)


def named(*pairs):
    """named(("R", R), ("t", limit)): each expression in a line of its own, with its name (LaTeX)."""
    return Named(pairs)


class Recall:
    def __init__(self, formulas):
        self.formulas = formulas

    def _repr_html_(self):
        rows = "".join(
            rf'<li data-formula="{f.__name__}" data-chapter="{f.chapter}">\({f.latex}\)<span>{html.escape(f.summary)} '
            f"<code>{f.__name__}</code></span></li>" for f in self.formulas)
        return f'<ul class="cx-recall mathjax_process">{rows}</ul>'

    def __repr__(self):
        return "\n".join(map(repr, self.formulas))


def recall(*formulas):
    """Formulas of other chapters that this one uses, a line each, linked to their cards."""
    return Recall(formulas)

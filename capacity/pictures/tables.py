"""Results as a reader wants them: tables, named results and equations, formulas that come back.

Every object shows HTML (or LaTeX) and prints plain text with the same content, which nbval compares.
"""
import html
import math
import re
from collections.abc import Mapping

from ..units import show

YES, NO = "✓", "–"
MATHS = re.compile(r"\$(?=\S)((?:[^$]*?\S)?)\$(?!\d)")          # "$2 M, not $3 M" is money
NUMBER = re.compile(r"[-−+±≈<>≤≥$×]{0,2}\s?[\d.,×⁰¹²³⁴⁵⁶⁷⁸⁹⁻]+(\s?[%\w/µ·²³×]{0,8})?$")
GAPS = "", "-", "–"                     # what stands in a column of numbers where there is none
PHONE, COLUMN = 40, 84                  # characters of a table that a phone, and the column of text, hold


def prose(text):
    """HTML of a text in which $...$ is mathematics and `...` code, which breaks after a dot, a comma or a slash only."""
    def code(match):
        return "<code>" + re.sub(r"([.,/=])(?=\w)", r"\1<wbr>", match[1]) + "</code>"
    text = MATHS.sub(r"\\(\1\\)", html.escape(text))
    return re.sub("`(.+?)`", code, text)


def counted(v, unit, digits=3):
    """capacity.show with the singular at one: "1 piece" where the unit is "pieces"."""
    return one(show(v, unit, digits))


def one(said):
    found = re.fullmatch(r"1 (.*[A-Za-z][A-Za-rt-z]s)", said)
    if not found or re.search(r"(^|[ -])(times|bus|series)$", found[1]):
        return said
    return "1 " + re.sub(r"s$", "", re.sub(r"(ch|sh|ss|x)es$", r"\1s", re.sub(r"ies$", "ys", found[1])))


def _cell(v):
    if v is True or v is False or v is None:
        return {True: YES, False: NO, None: ""}[v]
    if isinstance(v, str):
        return v
    if isinstance(v, (list, tuple, set, frozenset)):
        v = sorted(v) if isinstance(v, (set, frozenset)) else v
        return ("; " if any(isinstance(x, (list, tuple, Mapping)) for x in v) else ", ").join(map(_cell, v))
    if isinstance(v, Mapping):
        return ", ".join(f"{k}: {_cell(x)}" for k, x in v.items())
    try:
        return show(v) if math.isfinite(v) and float(v) != int(v) else f"{int(v):,}"
    except (TypeError, ValueError, OverflowError):
        return str(v)


def _names(of):
    return ", ".join(map(repr, of))


class Table:
    """A table; see `table`."""

    def __init__(self, head, rows, mark, bar, note, format, title):
        self.head, self.title, self.note = list(head), title, note
        rows = [[k, *v] for k, v in rows.items()] if isinstance(rows, Mapping) else [list(r) for r in rows]
        for r in rows:
            if len(r) != len(self.head):
                raise ValueError(f"row {r!r} has {len(r)} cells; the head has {len(self.head)}")
        for k in format or {}:
            if k not in self.head:
                raise ValueError(f"format of the column {k!r}; allowed: {_names(self.head)}")
        names = [_cell(r[0]) for r in rows]
        if isinstance(mark, str) and mark not in names:
            raise ValueError(f"mark is {mark!r}; allowed: a number of a row or {_names(names)}")
        if isinstance(bar, str) and bar not in self.head:
            raise ValueError(f"bar is {bar!r}; allowed: a number of a column or {_names(self.head)}")
        self.mark = names.index(mark) if isinstance(mark, str) else mark
        self.bar = self.head.index(bar) if isinstance(bar, str) else bar
        self.lengths = None
        if self.bar is not None:
            try:
                self.lengths = [float(r[self.bar]) for r in rows]
            except (TypeError, ValueError):
                self.lengths = [-1]
            if not all(0 <= v < math.inf for v in self.lengths):
                raise ValueError(f"bar: the column {self.head[self.bar]!r} is {[r[self.bar] for r in rows]!r}; allowed: "
                                 "finite numbers from 0")
        how = [(format or {}).get(h) for h in self.head]
        self.text = [[_formatted(v, f, h) for v, f, h in zip(r, how, self.head)] for r in rows]
        self.right = [self._numbers(k, [r[k] for r in rows]) for k in range(len(self.head))]

    def _numbers(self, k, given):
        """Whether a column is set to the right: numbers, and gaps between them."""
        said = [r[k] for r in self.text]
        return set(said) - set(GAPS) != set() and all(
            isinstance(v, (int, float)) and not isinstance(v, bool) or k and t in GAPS or
            NUMBER.match(t) and (k or t[0].isdigit()) for v, t in zip(given, said))

    def _room(self):
        """Characters that the table needs where every text has been broken as far as it breaks."""
        def longest(t):
            return max((len(w) for w in re.split(r"[\s-]|(?<=[.,/=])(?=\w)", MATHS.sub("xxxx", t).replace("`", ""))), default=0)
        return sum(max([longest(self.head[k]), *(len(r[k]) if self.right[k] else longest(r[k]) for r in self.text)])
                   + (10 if k == self.bar else 2) for k in range(len(self.head)))

    def _repr_html_(self):
        side = ["num" if right else "" for right in self.right]
        most = max(self.lengths or [], default=0) or 1
        body = ""
        for i, row in enumerate(self.text):
            cells = f'<th scope="row"{_class(side[0])}>{prose(row[0])}</th>'
            for k, text in enumerate(row[1:], 1):
                inner = prose(text)
                if k == self.bar:
                    inner = f'<span class="cx-barred"><b>{inner}</b><i style="--part:{self.lengths[i]/most:.4f}"></i></span>'
                elif re.search(r"<|\\\(", inner):                    # on a phone a cell is a flex box: one item
                    inner = f"<span>{inner}</span>"
                label = html.escape(re.sub(r"[$`\\]", "", self.head[k]))
                cells += f'<td{_class("bar" if k == self.bar else side[k])} data-label="{label}">{inner}</td>'
            body += f'<tr{" class=cx-mark" if i == self.mark else ""}>{cells}</tr>'
        head = "".join(f'<th scope="col"{_class("" if k == self.bar else s)}>{prose(_cell(h))}</th>'
                       for k, (h, s) in enumerate(zip(self.head, side)))
        caption = f"<caption>{prose(self.title)}</caption>" if self.title else ""
        note = f"<p>{prose(self.note)}</p>" if self.note else ""
        wide = sum(max(len(r[k]) for r in [self.head, *self.text]) + 3 for k in range(len(self.head)))
        room = self._room()
        kind = " ".join(["cx-table", *(["cx-part"] if wide <= COLUMN*2/3 and self.bar is None else []),
                         *(["cx-cards"] if room > PHONE else []), *(["cx-tight"] if room > COLUMN else [])])
        return (f'<div class="{kind} mathjax_process"><table>{caption}<thead><tr>{head}</tr></thead>'
                f"<tbody>{body}</tbody></table>{note}</div>")

    def __repr__(self):
        grid = [list(map(_cell, self.head)), *self.text]
        wide = [max(len(r[k]) for r in grid) for k in range(len(self.head))]
        lines = ["  ".join(c.rjust(n) if right else c.ljust(n) for c, n, right in zip(r, wide, self.right)).rstrip()
                 for r in grid]
        return "\n".join([*([self.title] if self.title else []), lines[0], "-"*min(79, sum(wide) + 2*len(wide) - 2), *lines[1:],
                          *([self.note] if self.note else [])])


def _class(name):
    return f' class="{name}"' if name else ""


def _formatted(v, how, column):
    """The text of a cell; `how` is a unit, (unit, digits) or a function of the value."""
    if how is None or v is None or isinstance(v, (str, bool)):
        return _cell(v)
    if callable(how):
        return str(how(v))
    unit, digits = how if isinstance(how, tuple) else (how, 3)
    if not isinstance(unit, str) or not isinstance(digits, int):
        raise ValueError(f"format of {column!r} is {how!r}; allowed: a unit, (unit, digits) or a function")
    return show(v, unit, digits)


def table(head, rows, *, mark=None, bar=None, note="", format=None, title=""):
    """A table: head and rows of text, numbers or booleans; in a text $...$ is mathematics and `...` code.

    rows    lists as long as the head, or {name of the row: its other cells}
    format  {head of a column: how its numbers are written}: a unit as for capacity.show ("s", "B/s", "%", ""), or
            (unit, digits), or a function of the value; without it a number is written by capacity.show
    mark    the row that the text talks about: its name or its number from 0
    bar     the column drawn as bars too: its head or its number from 0; its values are numbers from 0
    note    a line below.  title: a line above
    Raises ValueError naming the row, column or argument.
    """
    return Table(head, rows, mark, bar, note, format, title)


class Named:
    """Equations, or results with their names; see `named`."""

    def __init__(self, pairs):
        self.pairs = pairs
        self.equations = any(_is_mathematics(p[1]) for p in pairs)

    def _latex(self):
        import sympy as sp
        rows = r" \\ ".join(rf"{p[0]} &= {p[1] if isinstance(p[1], str) else sp.latex(getattr(p[1], 'expr', p[1]))}"
                            for p in self.pairs)
        return rf"$$\begin{{aligned}} {rows} \end{{aligned}}$$"

    def _html(self):
        rows = "".join(f"<div><dt>{prose(str(p[0]))}</dt><dd>{prose(_formatted(p[1], *p[2:] or (None,), p[0]))}</dd></div>"
                       for p in self.pairs)
        return f'<dl class="cx-named mathjax_process">{rows}</dl>'

    def _repr_mimebundle_(self, include=None, exclude=None):
        shown = {"text/latex": self._latex()} if self.equations else {"text/html": self._html()}
        return {"text/plain": repr(self)} | shown

    def __repr__(self):
        return "\n".join(f"{p[0]} = {p[1] if self.equations else _formatted(p[1], *p[2:] or (None,), p[0])}" for p in self.pairs)


def _is_mathematics(v):
    return hasattr(v, "free_symbols") or hasattr(v, "expr") or isinstance(v, str) and "\\" in v


def named(*pairs):
    """Results, a line each with its name: named(("R", R), ("t", limit)) or named({"ranks": 8, "spare": [3, 5]}).

    With an expression, a Formula or a text of LaTeX among the values they are equations, and names are LaTeX.  Else they
    are a list: (name, value), or (name, value, unit) with a unit as for capacity.show; a list or tuple is written
    with commas, a boolean as ✓ or –.  Raises ValueError for what is no such pair.
    """
    if len(pairs) == 1 and isinstance(pairs[0], Mapping):
        pairs = tuple(pairs[0].items())
    for p in pairs:
        if not isinstance(p, tuple) or len(p) not in (2, 3):
            raise ValueError(f"named: {p!r}; allowed: (name, value), (name, value, unit) or one dict")
    return Named(pairs)


class Recall:
    """Formulas of other chapters; see `recall`."""

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

"""decide(): a card that takes the reader's numbers and gives a verdict, alive wherever the book is read.

* The HTML book: `capacity/pictures/static/words.js` evaluates JavaScript compiled out of the same expressions and keeps
  the setting in the address, #name=...; no kernel, no network.
* JupyterLab with a kernel: ipywidgets.  Where no script runs, and on paper: the table and the verdict of the first setting.

    decide("tensor-ranks", title="How many tensor-parallel ranks for your model?",
           inputs=[Choice("model", {"Llama 3 8B": {H: 4096, kv: 8}, "Llama 3 70B": {H: 8192, kv: 8}}, "Llama 3 70B"),
                   Field(M, 80*GB, "memory of a GPU", "GB", lo=16*GB, hi=300*GB),
                   Switch(s, "sequence parallelism", on=True)],
           rows=(t, [1, 2, 4, 8, 16]),
           columns=[Column("memory", memory, "B", at_most=M, fails="does not fit"),
                    Column("time waiting", share, "%", at_most=0.3, fails="waits too long"),
                    Column("heads", sp.Eq(sp.Mod(kv, t), 0), fails="{t} ranks cannot share the heads")],
           verdict=Verdict("Take t = {t}: it holds {memory} and waits {time waiting} of the time.", take="first"))
"""
import html
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from ..grammar import Formula, expression
from ..units import show
from . import svg as draw
from .tables import counted, one, prose

TAKES = ["first", "last", "least", "most"]
PREFIX = {"": 1, "k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12, "P": 10**15, "E": 10**18}
SMALL = {"m": 10**3, "µ": 10**6, "n": 10**9}
LONG = {"min": 60, "h": 3600, "hours": 3600, "days": 86400, "years": 31557600}


def scale(unit):
    """(times, over): a number in `unit`, as the reader types it, times the one and over the other is the SI value."""
    if unit == "%":
        return 1, 100
    if unit in LONG:
        return LONG[unit], 1
    for base in "B", "B/s", "s", "FLOP", "FLOP/s", "W", "J", "Hz":
        for prefix in PREFIX:
            if unit == prefix + base:
                return PREFIX[prefix], 1
        for prefix in SMALL:
            if unit == prefix + base:
                return 1, SMALL[prefix]
    return 1, 1


def _number(who, v):
    try:
        good = not isinstance(v, (str, bool)) and math.isfinite(v)
    except (TypeError, OverflowError):
        good = False
    if not good:
        raise ValueError(f"{who} is {v!r}; allowed: finite numbers")
    return float(v)


@dataclass(frozen=True)
class Choice:
    """One of several named things; each sets the same symbols: {"Llama 3 70B": {H: 8192, kv: 8}}.

    label: what is chosen.  options: {name: {symbol: number}}; a symbol is a sympy symbol or the name of a formula's
    argument, numbers are SI.  start: the name chosen first (the first one by default).
    Raises ValueError naming the option for no options, symbols that differ, a value that is no finite number, or an
    unknown start.
    """
    label: str
    options: Mapping
    start: str = None

    def __post_init__(self):
        if not isinstance(self.options, Mapping) or not self.options:
            raise ValueError(f"choice {self.label!r}: options is {self.options!r}; allowed: a dict {{name: {{symbol: number}}}}")
        keys = None
        for name, values in self.options.items():
            if not isinstance(values, Mapping) or not values:
                raise ValueError(f"choice {self.label!r}: option {name!r} is {values!r}; allowed: a dict {{symbol: number}}")
            for symbol, v in values.items():
                _number(f"choice {self.label!r}: {symbol} of {name!r}", v)
            keys = keys or list(values)
            if set(values) != set(keys):
                raise ValueError(f"choice {self.label!r}: option {name!r} sets {_list(values)}; allowed: {_list(keys)}, as the "
                                 "first one")
        if self.start is not None and self.start not in self.options:
            raise ValueError(f"choice {self.label!r}: start is {self.start!r}; allowed: {_list(self.options)}")

    def numbers(self):
        """The values of each option, in the order of the first one's symbols."""
        keys = list(next(iter(self.options.values())))
        return [[float(values[k]) for k in keys] for values in self.options.values()]

    @property
    def first(self):
        return list(self.options).index(self.start) if self.start is not None else 0


@dataclass(frozen=True)
class Field:
    """A number that the reader types: a symbol, its SI value, a label, the unit she types it in, SI bounds.

    The unit may carry a prefix ("GB", "TFLOP/s", "µs", "%", "days"): Field(M, 80*GB, "memory", "GB", lo=GB, hi=TB) shows 80.
    whole: only whole numbers.  With lo=0 and a symbol that is positive, 0 itself is refused.
    Raises ValueError naming the field if a number is not finite, the value is outside its bounds or, with whole, not whole.
    """
    symbol: object
    value: float
    label: str
    unit: str = ""
    lo: float = None
    hi: float = None
    whole: bool = False

    def __post_init__(self):
        for what in "value", "lo", "hi":
            _number(f"field {self.label!r}: {what}", getattr(self, what))
        if not self.lo <= self.value <= self.hi or self.lo == self.hi:
            raise ValueError(f"field {self.label!r}: value is {self.value:g}; allowed: between lo {self.lo:g} and hi {self.hi:g}")
        for what in ("value", "lo", "hi") if self.whole else ():
            if getattr(self, what) % 1:
                raise ValueError(f"field {self.label!r}: {what} is {getattr(self, what):g}; allowed with whole=True: whole numbers")


@dataclass(frozen=True)
class Switch:
    """Yes or no: a symbol that is 1 where it is on and 0 where it is off."""
    symbol: object
    label: str
    on: bool = False

    def __post_init__(self):
        if not isinstance(self.on, bool):
            raise ValueError(f"switch {self.label!r}: on is {self.on!r}; allowed: True, False")


@dataclass(frozen=True)
class Column:
    """What is computed for each alternative, and what it must satisfy.

    label: its head.  value: a Formula, a sympy expression, a condition or a number.  unit: as for capacity.show.
    at_most, at_least: limits of the value, expressions too.  test: any condition.  (A value that is itself a condition is
    its own test if `fails` is given.)  fails: what the cell says where the test is not passed; {row} and the labels of
    the inputs are filled in.  digits: significant ones.
    Raises ValueError naming the column for more than one test, a test without words, or words without a test.
    """
    label: str
    value: object
    unit: str = ""
    at_most: object = None
    at_least: object = None
    test: object = None
    fails: str = ""
    digits: int = 3

    def __post_init__(self):
        tests = [k for k in ("at_most", "at_least", "test") if getattr(self, k) is not None]
        if len(tests) > 1:
            raise ValueError(f"column {self.label!r}: {' and '.join(tests)} are given; allowed: one of at_most, at_least, test")
        if tests and not self.fails:
            raise ValueError(f"column {self.label!r}: fails is empty; allowed: the words for a failed {tests[0]}")


@dataclass(frozen=True)
class Verdict:
    """The sentence at the end.  take: which of the rows that fail nothing is taken.

    says: the sentence, or {sentence: condition} of which the first that holds for the row taken is said (the last
    condition must be True).  none: the sentence where every row fails something.
    take: "first" or "last" of the rows, or the row with "least" or "most" in the column `by`.
    Filled in: {row} ("t = 8"), the symbol of the rows ({t}: "8"), the label of an input or of a column; in `none`
    {row} is the nearest miss, the one whose worst failure is the smallest, and {why} says what it fails.
    {t|bucket|buckets} is "1 bucket" and "8 buckets".
    Raises ValueError naming the argument.
    """
    says: object
    none: str = "No alternative passes. The nearest miss is {row}: {why}."
    take: str = "first"
    by: str = None

    def __post_init__(self):
        if self.take not in TAKES:
            raise ValueError(f"verdict: take is {self.take!r}; allowed: {_list(TAKES)}")
        if (self.by is not None) != (self.take in ("least", "most")):
            raise ValueError(f"verdict: by is {self.by!r} with take={self.take!r}; allowed: the label of a column with "
                             "'least' or 'most', else nothing")
        if not self.says or not isinstance(self.says, (str, Mapping)):
            raise ValueError(f"verdict: says is {self.says!r}; allowed: a sentence or a dict {{sentence: condition}}")


def decide(name, *, title, inputs, rows, columns, verdict):
    """A decision card: the reader's numbers in, the alternatives with what each fails and a verdict out.

    name      slug, unique on its page: lower case, digits, hyphens
    title     the decision, as a question
    inputs    [Choice, Field, Switch, ...]
    rows      (symbol, [values]), (symbol, [values], label) or (symbol, [values], label, unit); or named alternatives
              {"ring": {symbol: expression}}, each setting the same symbols
    columns   [Column, ...]
    verdict   Verdict(...)
    Raises ValueError naming what is wrong: a symbol that nothing sets, or two things set; an input that moves nothing; an
    unknown {word} in a sentence; a value that a symbol's assumptions exclude.  Raises NotImplementedError naming an
    expression that JavaScript cannot state.
    """
    return Decision(name, title, list(inputs), rows, list(columns), verdict)


class Decision:
    """A checked card: .spec() for JavaScript, .numbers(setting), .to_html(setting), .widget().

    A setting is a list, one entry per input: the index of an option, an SI number, or 0 and 1.
    """

    def __init__(self, name, title, inputs, rows, columns, verdict):
        self.name, self.title, self.inputs, self.columns, self.verdict = name, title, inputs, columns, verdict
        draw.slug("decision", name)
        if not title or not title.strip():
            raise ValueError(f"{name}: the title is empty; it asks for the decision")
        for kinds, what, values in (((Choice, Field, Switch), "an input", inputs), ((Column,), "a column", columns),
                                    ((Verdict,), "verdict", [verdict])):
            for v in values:
                if not isinstance(v, kinds):
                    raise ValueError(f"{name}: {what} is {v!r}; allowed: {' or '.join(k.__name__ + '(...)' for k in kinds)}")
        if verdict.by is not None and verdict.by not in [c.label for c in columns]:
            raise ValueError(f"{name}: verdict by {verdict.by!r}; allowed: {_list(c.label for c in columns)}")
        self._formulas = []
        self._read_rows(rows)
        labels = ["row", "why", *([_bare(self.row_label)] if self.row_label else []), *(_bare(x.label) for x in [*inputs, *columns])]
        for label in labels:
            if labels.count(label) > 1:
                raise ValueError(f"{name}: the label {label!r} stands twice; allowed: one of the rows, inputs, columns, 'row' and 'why'")
        self._read_columns()
        self._bind()
        self._compile()

    # ---- reading the arguments -------------------------------------------------------------
    def _expr(self, value, what):
        if isinstance(value, Formula):
            self._formulas.append(value)
        return expression(value, f"{self.name}: {what}")

    def _read_rows(self, rows):
        if isinstance(rows, Mapping) and rows and all(isinstance(v, Mapping) and v for v in rows.values()):
            self.row_label, self.row_keys = "", list(next(iter(rows.values())))
            for k, values in rows.items():
                if set(values) != set(self.row_keys):
                    raise ValueError(f"{self.name}: the row {k!r} sets {_list(values)}; allowed: {_list(self.row_keys)}, as the first")
            self.row_names = list(rows)
            self.bindings = [[self._expr(values[k], f"{k} of the row {row!r}") for k in self.row_keys]
                             for row, values in rows.items()]
        elif isinstance(rows, tuple) and 2 <= len(rows) <= 4 and not isinstance(rows[1], str) and len(rows[1]):
            symbol, values = rows[:2]
            self.row_label = rows[2] if len(rows) > 2 else _plain(symbol)
            self.row_keys = [symbol]
            for v in values:
                _number(f"{self.name}: a row's {symbol}", v)
            self.row_names = [counted(v, rows[3] if len(rows) > 3 else "") for v in values]
            self.bindings = [[self._expr(v, f"{symbol} of a row")] for v in values]
        else:
            raise ValueError(f"{self.name}: rows is {rows!r}; allowed: (symbol, [values]) or {{name: {{symbol: expression}}}}")

    def _read_columns(self):
        self.values, self.tests = [], []
        for c in self.columns:
            value = self._expr(c.value, f"the column {c.label!r}")
            if c.test is not None:
                test = "test", self._expr(c.test, f"the test of {c.label!r}")
                if not _is_condition(test[1]):
                    raise ValueError(f"{self.name}: the test of {c.label!r} is {c.test!r}; allowed: a condition")
            elif c.at_most is not None:
                test = "at most", self._expr(c.at_most, f"at_most of {c.label!r}")
            elif c.at_least is not None:
                test = "at least", self._expr(c.at_least, f"at_least of {c.label!r}")
            elif _is_condition(value) and c.fails:
                test = "test", value
            elif c.fails:
                raise ValueError(f"{self.name}: the column {c.label!r} has words for failing, but no test")
            else:
                test = None
            self.values.append(value)
            self.tests.append(test)
        says = self.verdict.says
        says = says if isinstance(says, Mapping) else {says: True}
        self.says = [(text, self._expr(condition, f"the condition of {text!r}")) for text, condition in says.items()]
        if self.says[-1][1] != True:    # noqa: E712  (sympy's true)
            raise ValueError(f"{self.name}: the condition of the last sentence {self.says[-1][0]!r} must be True")

    def _exprs(self):
        """Every expression that sees the rows, with what it belongs to."""
        for c, value, test in zip(self.columns, self.values, self.tests):
            yield f"column {c.label!r}", value
            if test:
                yield f"column {c.label!r}", test[1]
        for text, condition in self.says:
            yield f"sentence {text!r}", condition

    def _named(self, key, free):
        if not isinstance(key, str):
            return {key}
        return ({f.symbols[key] for f in self._formulas if key in f.symbols}
                | {s for s in free if s.name.lstrip("\\") == key})

    def _bind(self):
        """self.args: a tuple of symbols per number, first those of the inputs, then those of the rows."""
        free = {s: what for what, e in self._exprs() for s in e.free_symbols}
        free |= {s: "rows" for row in self.bindings for e in row for s in e.free_symbols}
        self.args, self.slots, owner = [], [], {}
        for x in self.inputs:
            keys = list(next(iter(x.options.values()))) if isinstance(x, Choice) else [x.symbol]
            values = ([[o[k] for o in x.options.values()] for k in keys] if isinstance(x, Choice)
                      else [[x.value, x.lo or x.value, x.hi] if self._open(x, free) else [x.value, x.lo, x.hi]]
                      if isinstance(x, Field) else [[0, 1]])
            self.slots.append((len(self.args), keys))
            used = [self._own(f"input {x.label!r}", key, v, free, owner) for key, v in zip(keys, values)]
            if not any(used):
                raise ValueError(f"{self.name}: the input {x.label!r} is in no expression; the symbols are {_list(free)}")
        self.inputs_end = len(self.args)
        in_rows = {s for row in self.bindings for e in row for s in e.free_symbols}
        for k, key in enumerate(self.row_keys):
            numbers = [float(row[k]) for row in self.bindings if row[k].is_number]
            if not self._own("rows", key, numbers, free, owner):
                raise ValueError(f"{self.name}: the rows' symbol {key} is in no column; the symbols are {_list(free)}")
            if in_rows & set(self.args[-1]):
                raise ValueError(f"{self.name}: the rows' symbol {key} is in an expression of the rows")
        for s, what in sorted(free.items(), key=lambda item: str(item[0])):
            if s not in owner:
                twin = next((f"; {w} sets another symbol of that name, with other assumptions"
                             for o, w in owner.items() if o.name == s.name), "")
                raise ValueError(f"{self.name}: nothing sets the symbol {s} of the {what}{twin}")

    def _open(self, x, free):
        """Whether a field from 0 excludes 0: its symbol is positive."""
        return x.lo == 0 and any(s.is_positive for s in self._named(x.symbol, free))

    def _own(self, who, key, values, free, owner):
        symbols = self._named(key, free)
        for s in symbols:
            if s in owner:
                raise ValueError(f"{self.name}: {owner[s]} and {who} both set the symbol {s}")
            owner[s] = who
            for v in values:
                need = ("a whole number" if s.is_integer and v != int(v) else "above 0" if s.is_positive and v <= 0
                        else "at least 0" if s.is_nonnegative and v < 0 else None)
                if need:
                    raise ValueError(f"{self.name}: {who} gives {s} the value {v:g}; allowed: {need}")
        for f in self._formulas:
            unit = next((u for k, u in f.units.items() if f.symbols[k] in symbols), None)
            for v in values if unit else ():
                if not unit.least <= v <= unit.most:
                    raise ValueError(f"{self.name}: {who} gives {key} of {f.__name__} the value {v:g}; allowed: {unit.domain}")
        self.args.append(tuple(sorted(symbols, key=str)))
        return bool(symbols & set(free))

    # ---- numbers ---------------------------------------------------------------------------
    def _compile(self):
        from ..js import function
        self._rows = [[function(self.args, e) for e in row] for row in self.bindings]
        self._values = [function(self.args, e) for e in self.values]
        self._tests = [test and function(self.args, test[1]) for test in self.tests]
        self._says = [function(self.args, e) for _, e in self.says]
        known = ["row", *([_bare(self.row_label)] if self.row_label else []), *(_bare(x.label) for x in self.inputs)]
        columns = [_bare(c.label) for c in self.columns]
        self._fails = [self._template(c.fails, known) for c in self.columns]
        self._sentences = [self._template(text, known + columns) for text, _ in self.says]
        self._none = self._template(self.verdict.none, known + columns + ["why"])
        self._spec = self.spec()                          # raises now what JavaScript cannot state

    def _template(self, text, known):
        """The sentence cut at its words in braces: HTML at even places, names at odd ones."""
        text, pieces, at = prose(text), [""], 0
        for found in re.finditer(r"\\\(.*?\\\)|\{([^{}]+)\}", text):
            pieces[-1] += text[at:found.start()]
            at, word = found.end(), found[1] and html.unescape(found[1])
            if word is None:
                pieces[-1] += found[0]                    # mathematics has braces of its own
            elif word.split("|")[0] not in known or word.count("|") not in (0, 2):
                raise ValueError(f"{self.name}: {{{word}}} in {text!r}; allowed: {', '.join(f'{{{k}}}' for k in known)}")
            else:
                pieces += [word, ""]
        pieces[-1] += text[at:]
        return pieces

    @property
    def start(self):
        """The setting before anybody changes it."""
        return [x.first if isinstance(x, Choice) else float(x.value) if isinstance(x, Field) else int(x.on) for x in self.inputs]

    def _vector(self, setting):
        v = []
        for x, s in zip(self.inputs, setting):
            v += x.numbers()[int(s)] if isinstance(x, Choice) else [float(s)]
        return v

    def numbers(self, setting=None):
        """All numbers of the card at a setting: cells, limits and failures by row, the row taken, the nearest miss."""
        first = self._vector(self.start if setting is None else setting)
        first = [np.float64(x) for x in first]
        D = {"cells": [], "limits": [], "fails": [], "take": -1, "near": -1, "worst": -1, "says": -1}
        vectors, best = [], None
        with np.errstate(all="ignore"):
            for r, row in enumerate(self._rows):
                v = first + [np.float64(f(first)) for f in row]
                vectors.append(v)
                cells = [_value(f(v), e) for f, e in zip(self._values, self.values)]
                limits, fails, misses = [], [], []
                for value, test, f in zip(cells, self.tests, self._tests):
                    kind = test and test[0]
                    bound = f(v) if test else None
                    limits.append(float(bound) if kind in ("at most", "at least") else None)
                    good = (not test or (bool(value <= bound) if kind == "at most" else bool(value >= bound)
                            if kind == "at least" else bool(bound)))
                    fails.append(not good)
                    miss = (math.inf if kind == "test" else float(np.float64(value)/bound) if kind == "at most"
                            else float(bound/np.float64(value)) if kind == "at least" else 0)
                    misses.append(0 if good else miss if miss > 1 else math.inf)
                for key, x in ("cells", cells), ("limits", limits), ("fails", fails):
                    D[key].append(x)
                score = max(misses, default=0), sum(fails)
                if any(fails) and (best is None or score < best):
                    best, D["near"], D["worst"] = score, r, misses.index(score[0])
            passed = [r for r, fails in enumerate(D["fails"]) if not any(fails)]
            if passed:
                take, by = self.verdict.take, self.verdict.by
                D["take"] = passed[0] if take == "first" else passed[-1]
                if by is not None:
                    k = [c.label for c in self.columns].index(by)
                    sign = 1 if take == "least" else -1
                    numbers = [sign*D["cells"][r][k] for r in passed]
                    numbers = [math.inf if n != n else n for n in numbers]
                    D["take"] = passed[numbers.index(min(numbers))]
                D["says"] = next(i for i, f in enumerate(self._says) if bool(f(vectors[D["take"]])))
        return D

    # ---- words -----------------------------------------------------------------------------
    def _text(self, value, k):
        c = self.columns[k]
        return ("yes" if value else "no") if isinstance(value, bool) else counted(value, c.unit, c.digits)

    def _input_text(self, x, s):
        if isinstance(x, Choice):
            return list(x.options)[int(s)]
        if isinstance(x, Switch):
            return "yes" if s else "no"
        times, over = scale(x.unit)
        v = s*over/times
        return one(f"{f'{v:,.12g}' if v == 0 or 1e-4 <= abs(v) < 1e12 else show(v, digits=6)} {x.unit}".rstrip())

    def _scope(self, D, r, setting):
        name = self.row_names[r]
        return {_bare(x.label): self._input_text(x, s) for x, s in zip(self.inputs, setting)} | {
            "row": f"{_bare(self.row_label)} = {name}" if self.row_label else name, _bare(self.row_label): name} | {
            _bare(c.label): self._text(D["cells"][r][k], k) for k, c in enumerate(self.columns)}

    def _cell(self, D, r, k, scope):
        value = D["cells"][r][k]
        text = self._text(value, k)
        if not D["fails"][r][k]:
            return html.escape(text)
        words = f'<span>✗ {_fill(self._fails[k], scope)}</span>'
        return words if isinstance(value, bool) else f"<b>{html.escape(text)}</b> {words}"

    def _limit(self, D, k):
        """'at most 80 GB' where all rows have the same limit."""
        limits = {row[k] for row in D["limits"]}
        return f"{self.tests[k][0]} {self._text(limits.pop(), k)}" if len(limits) == 1 and None not in limits else ""

    def sentence(self, setting=None, D=None):
        """The verdict at a setting, as HTML."""
        setting = self.start if setting is None else setting
        D = D or self.numbers(setting)
        if D["take"] >= 0:
            return _fill(self._sentences[D["says"]], self._scope(D, D["take"], setting))
        r, k = D["near"], D["worst"]
        scope = self._scope(D, r, setting)
        value, bound, c = D["cells"][r][k], D["limits"][r][k], self.columns[k]
        why = (f"{_bare(c.label)}: " + re.sub("<.*?>", "", html.unescape(_fill(self._fails[k], scope))) if bound is None else
               f"{_bare(c.label)} is {self._text(value, k)}, and may be {self.tests[k][0]} {self._text(bound, k)}")
        return _fill(self._none, scope | {"why": why})

    def setting_text(self, setting=None):
        """'model: Llama 3 70B; memory of a GPU: 80 GB': the inputs before anybody changes them."""
        return "; ".join(f"{_bare(x.label)}: {self._input_text(x, s)}"
                         for x, s in zip(self.inputs, self.start if setting is None else setting))

    def table(self, setting=None):
        """The alternatives at a setting, as an HTML table."""
        setting = self.start if setting is None else setting
        D = self.numbers(setting)
        head = "".join(f'<th scope="col">{prose(c.label)} <small>{html.escape(self._limit(D, k))}</small></th>'
                       for k, c in enumerate(self.columns))
        body = ""
        for r, name in enumerate(self.row_names):
            scope = self._scope(D, r, setting)
            cells = "".join(f'<td data-label="{html.escape(_bare(c.label))}"{" class=cx-fail" if D["fails"][r][k] else ""}>'
                            f"{self._cell(D, r, k, scope)}</td>" for k, c in enumerate(self.columns))
            taken = r == D["take"]
            body += (f'<tr{" class=cx-mark" if taken else ""}><th scope="row"><i>{prose(self.row_label)}'
                     f'{" = " if self.row_label else ""}</i>{html.escape(name)} <em>{"take" if taken else ""}</em></th>{cells}</tr>')
        return (f'<table><thead><tr><th scope="col">{prose(self.row_label)}</th>{head}</tr></thead>'
                f"<tbody>{body}</tbody></table>")

    def to_html(self, setting=None):
        """The card of the built book; readable where no script runs."""
        return (f'<figure class="cx-decide mathjax_process" id="{self.name}" data-spec=\'{draw.attribute(self._spec)}\'>\n'
                f"<figcaption>{prose(self.title)}</figcaption>\n"
                f'<p class="cx-setting">{html.escape(self.setting_text(setting))}</p>\n'
                f'<p class="cx-verdict">{self.sentence(setting)}</p>\n<div class="cx-alternatives">{self.table(setting)}</div>\n</figure>')

    # ---- the specification -----------------------------------------------------------------
    def spec(self):
        """The card as JSON: what words.js computes from.  NotImplementedError."""
        from ..js import javascript
        names = {s: f"v[{i}]" for i, group in enumerate(self.args) for s in group}

        def js(expr):
            return javascript(expr, names)
        inputs = []
        for x in self.inputs:
            if isinstance(x, Choice):
                inputs.append({"label": _bare(x.label), "at": x.first, "options": [
                    [name, [_short(v) for v in values]] for name, values in zip(x.options, x.numbers())]})
            elif isinstance(x, Field):
                times, over = scale(x.unit)
                symbols = self.args[self.slots[len(inputs)][0]]
                whole = x.whole or any(s.is_integer for s in symbols)
                inputs.append({"label": _bare(x.label), "value": _short(float(x.value)), "lo": _short(float(x.lo)),
                               "hi": _short(float(x.hi)), "unit": x.unit, "times": times, "over": over, "whole": whole}
                              | ({"above": True} if self._open(x, symbols) else {}))
            else:
                inputs.append({"label": _bare(x.label), "on": int(x.on)})
        columns = []
        for c, value, test, fails in zip(self.columns, self.values, self.tests, self._fails):
            columns.append({"label": _bare(c.label), "unit": c.unit, "digits": c.digits, "js": js(value), "fails": fails}
                           | ({"kind": test[0], "test": js(test[1])} if test else {}))
        refs = {"row": ["row"], _bare(self.row_label): ["name"]} | {_bare(x.label): ["input", i] for i, x in enumerate(self.inputs)} \
            | {_bare(c.label): ["column", k] for k, c in enumerate(self.columns)} | {"why": ["why"]}

        def cut(template):
            return [p if i % 2 == 0 else ref(*p.split("|")) for i, p in enumerate(template)]

        def ref(word, *forms):
            return [*refs[word], *([None]*(2 - len(refs[word])) if forms else []), *forms]
        for c in columns:
            c["fails"] = cut(c["fails"])
        by = [c.label for c in self.columns].index(self.verdict.by) if self.verdict.by is not None else None
        return {"title": self.title, "inputs": inputs, "row": _bare(self.row_label),
                "rows": [[name, [js(e) for e in row]] for name, row in zip(self.row_names, self.bindings)],
                "columns": columns, "take": self.verdict.take, "by": by,
                "says": [[cut(t), js(e)] for t, (_, e) in zip(self._sentences, self.says)], "none": cut(self._none)}

    # ---- ipywidgets ------------------------------------------------------------------------
    def widget(self):
        """Inputs, verdict and table, recomputed by the kernel."""
        import ipywidgets as W
        wide = W.Layout(width="100%", max_width="32rem")
        labels = [f"{x.label}, {x.unit}" if isinstance(x, Field) and x.unit else x.label for x in self.inputs]
        style = {"description_width": f"{max(map(len, labels))}ch"}            # a label that is longer is cut
        controls = []
        for x, label in zip(self.inputs, labels):
            if isinstance(x, Choice):
                c = W.Dropdown(options=[(n, i) for i, n in enumerate(x.options)], value=x.first, description=label,
                               style=style, layout=wide)
            elif isinstance(x, Field):
                times, over = scale(x.unit)
                least = x.lo or (x.hi*1e-12 if self._open(x, self.args[self.slots[len(controls)][0]]) else 0)
                kind = W.BoundedIntText if x.whole and times == over == 1 else W.BoundedFloatText
                c = kind(value=x.value*over/times, min=least*over/times, max=x.hi*over/times, style=style,
                         description=label, layout=wide)
            else:
                c = W.Checkbox(value=x.on, description=label, style=style, indent=True, layout=wide)
            controls.append(c)
        said = W.HTMLMath()

        def setting():
            return [c.value*scale(x.unit)[0]/scale(x.unit)[1] if isinstance(x, Field) else int(c.value)
                    for x, c in zip(self.inputs, controls)]

        def redraw(_=None):
            s = setting()
            said.value = (f'{draw.LAB}<div class="cx-lab"><p aria-live="polite"><strong>{self.sentence(s)}</strong></p>'
                          f"{self.table(s)}</div>")
        for c in controls:
            c.observe(redraw, "value")
        redraw()
        return W.VBox([W.HTML(f"<strong>{html.escape(self.title)}</strong>"), *controls, said])

    def _repr_mimebundle_(self, include=None, exclude=None):
        data = {"text/plain": repr(self), "text/html": self.to_html()}
        self._widget = self.widget()                      # keeps its callbacks alive
        view = self._widget._repr_mimebundle_()
        return data | {k: v for k, v in view.items() if "widget-view" in k}

    def __repr__(self):
        D = self.numbers()
        lines = [f"decide({self.name!r}): {self.setting_text()}"]
        for r in range(len(self.row_names)):
            scope = self._scope(D, r, self.start)
            says = ", ".join(f"{_bare(c.label)} " + html.unescape(re.sub("<.*?>", "", self._cell(D, r, k, scope)))
                             for k, c in enumerate(self.columns))
            lines.append(f"{scope['row']}: {says}")
        return "\n".join([*lines, html.unescape(re.sub("<.*?>", "", self.sentence(D=D)))])


def _is_condition(expr):
    import sympy as sp
    return isinstance(expr, sp.logic.boolalg.Boolean) and not isinstance(expr, sp.Expr)        # a Symbol is both


def _value(x, expr):
    """The value of a column: True or False for a condition, else a float."""
    return bool(x) if _is_condition(expr) else float(x)


def _fill(template, scope):
    return "".join(p if i % 2 == 0 else html.escape(_said(scope, *p.split("|"))) for i, p in enumerate(template))


def _said(scope, word, *forms):
    return f"{scope[word]} {forms[scope[word] != '1']}" if forms else scope[word]


def _plain(symbol):
    return str(symbol).lstrip("\\")


def _bare(text):
    """A label without the marks of mathematics and code."""
    return re.sub(r"[$`\\]", "", text)


def _short(v):
    return int(v) if v == int(v) and abs(v) < 2**53 else v


def _list(names):
    return ", ".join(map(str, names))

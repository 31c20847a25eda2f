r"""The alphabet of a page: what each letter means, from the formulas that the page uses and from the chapter's own declaration.

A chapter declares its letters in one code cell, a dict of LaTeX to meaning, anywhere:

    # alphabet
    alphabet = {"W_1": "weights of the first product", r"H_{\mathrm{f}}": "width between the two products"}

Everything else comes out of capacity.notation, through the arguments of the formulas that the notebook names.  "B/" declares
what B stands for in placements ("B D/t"), "f =" what visible code binds to f: they must mean what the letter means elsewhere.
"""
import ast
import html
import json
import re
from typing import NamedTuple

import layers

import capacity
from capacity.grammar import Formula
from capacity.notation import NOTATION

KNOWN = set(dir(capacity))
FREE = set("ijde") | {"T", r"\log", r"\ln", r"\max", r"\min"}      # running numbers, derivatives, logarithms, transposes
SIGN = re.compile(r"""(?P<accent>\\(?:bar|hat|tilde|dot|vec)\s*\{?)?
    (?P<base>\\[A-Za-z]+|[A-Za-z])\}?
    (?:_\s*(?P<index>\{(?:[^{}]|\{[^{}]*\})*\}|\\[A-Za-z]+|'\w+|[\w*]))?
    (?P<power>\^2\b)?""", re.X)
WRITTEN = re.compile(r"\\(?:text|mathrm|operatorname|mathit|textbf|mathbf|begin|end|vphantom|phantom|label|tag)\*?\s*"
                     r"\{(?:[^{}]|\{[^{}]*\})*\}")
GREEK = set(r"""\alpha \beta \gamma \delta \epsilon \varepsilon \zeta \eta \theta \iota \kappa \lambda \mu \nu \xi \pi \rho \sigma \tau
    \upsilon \phi \varphi \chi \psi \omega \Gamma \Delta \Theta \Lambda \Xi \Pi \Sigma \Upsilon \Phi \Psi \Omega \ell""".split())
FORMULA = re.compile(r"(?<![\\$])\$\$(.+?)\$\$|(?<![\\$])\$(?=\S)([^$\n]+?)(?<=\S)\$(?!\d)", re.S)


def plain(latex):
    r"""One spelling of a letter: H_{\mathrm{f}} and H_\mathrm f are H_'f; the quote keeps words apart from running numbers."""
    return re.sub(r"[{}\s]", "", re.sub(r"\\(?:mathrm|text|mathit)\s*", "'", latex))


class Sign(NamedTuple):
    """A letter in a formula: with index and power, without them, the index; each in one spelling."""
    whole: str
    base: str
    index: str


def signs(latex):
    """The letters of a formula, in order."""
    latex = re.sub(r"(_\s*\{?\s*)\\(?:mathrm|text)\s*(?:\{(\w+)\}|(\w))", lambda m: f"{m[1]}'{m[2] or m[3]}", latex)
    if "\\under" in latex or "\\over" in latex:                     # what is written below a brace is no index
        latex = re.sub(r"(?<=\})\s*[_^]\s*\{(?:[^{}]|\{[^{}]*\})*\}", " ", latex)
    for m in SIGN.finditer(WRITTEN.sub(" ", latex)):
        base = m["base"]
        if len(base) > 1 and base not in GREEK:
            continue
        base, index = re.sub(r"[\s{]", "", m["accent"] or "") + base, plain(m["index"] or "")
        yield Sign(base + (f"_{index}" if index else "") + (m["power"] or ""), base, index)


RUNNING = re.compile(r"\w?(?:[,+\-]\w)*|\d+|\*|\\star|\\max|\\min|\\ell")


def look(sign, alphabet):
    """The key of the alphabet that explains a sign, or None: the sign itself, without its power, or numbered (X_1 is an X)."""
    for key in (sign.whole, sign.whole.removesuffix("^2")):
        if key in alphabet:
            return key
    return sign.base if sign.base in alphabet and RUNNING.fullmatch(sign.index) else None


class Page:
    """The letters of a notebook's cells: declared, those of its formulas, and where each is seen."""

    def __init__(self, cells):
        self.cells = cells
        self.code = [(i, layers.read("".join(c["source"]))) for i, c in enumerate(cells) if c["cell_type"] == "code"]
        self.trees = {i: ast.parse(re.sub(r"^[!%].*$", "", c.code, flags=re.M)) for i, c in self.code}
        self.wrong = []
        self.declared = self._declared()
        names = {n.id if isinstance(n, ast.Name) else n.attr for t in self.trees.values() for n in ast.walk(t)
                 if isinstance(n, (ast.Name, ast.Attribute))}
        self.used = self._letters(names)
        page = "".join("".join(o.get("data", {}).get("text/html", "")) for _, o in self._outputs())
        self.shown = self._letters(re.findall(r'formula-card[^>]*><p><strong><code>(\w+)</code>|data-formula="(\w+)"', page))

    def _outputs(self):
        return [(i, o) for i, c in enumerate(self.cells) if c["cell_type"] == "code" for o in c.get("outputs", [])]

    def _declared(self):
        found = {}
        for i, cell in self.code:
            if cell.kind != "alphabet":
                continue
            entry = next((n.value for n in self.trees[i].body if isinstance(n, ast.Assign) and isinstance(n.value, ast.Dict)), None)
            if entry is None:
                self.wrong.append(f"cell {i}: '# alphabet' is followed by a dict of LaTeX to meaning: alphabet = {{\"t\": \"ranks\"}}")
                continue
            for key, value in zip(entry.keys, entry.values):
                letter, meaning = plain(ast.literal_eval(key)), ast.literal_eval(value)
                if found.get(letter, (None, meaning))[1] != meaning:
                    self.wrong.append(f"cell {i}: {letter} is declared twice: “{found[letter][1]}” and “{meaning}”")
                found[letter] = (ast.literal_eval(key), meaning)
        return found

    def _letters(self, names):
        """letter -> {meaning: (its LaTeX, a formula that says so)} of formulas by name."""
        found = {}
        for name in names:
            name = "".join(name)                     # one of two groups of a match
            formula = getattr(capacity, name) if name in KNOWN else None
            if isinstance(formula, Formula):
                for k in formula.units:
                    found.setdefault(plain(NOTATION[k].latex), {})[NOTATION[k].meaning] = (NOTATION[k].latex, name)
        return found

    def alphabet(self):
        """letter -> (LaTeX, meaning) of all letters with one meaning on this page."""
        found = {k: [(latex, meaning) for meaning, (latex, _) in m.items()] for k, m in {**self.used, **self.shown}.items()}
        return {k: v[0] for k, v in found.items() if len(v) == 1} | {
            k: v for k, v in self.declared.items() if k[-1] not in "/="}

    def formulas(self):
        """(cell, LaTeX) of the mathematics in Markdown and in LaTeX outputs."""
        for i, c in enumerate(self.cells):
            if c["cell_type"] == "markdown":
                text = re.sub(r"^(`{3,}).*?^\1|(`+)[^`\n]+\2", " ", "".join(c["source"]), flags=re.S | re.M)
                for m in FORMULA.finditer(text):
                    yield i, m[1] or m[2]
        for i, o in self._outputs():
            if "text/latex" in o.get("data", {}) and "formula-card" not in "".join(o["data"].get("text/html", "")):
                yield i, "".join(o["data"]["text/latex"]).strip("$")

    def placements(self):
        """(cell, letter, whether it is a mesh axis) of each one-letter name in a placement ("B D/t", "B {t}") of the code."""
        name = r"[A-Za-z]\w*(?:/[A-Za-z]\w*)*"
        pattern = re.compile(rf"{name}(?: {name})*(?: \{{[A-Za-z]\w*(?: [A-Za-z]\w*)*\}})?")
        for i, tree in self.trees.items():
            for n in ast.walk(tree):
                if not (isinstance(n, ast.Constant) and isinstance(n.value, str) and pattern.fullmatch(n.value)) or UNIT.fullmatch(n.value):
                    continue
                words = re.sub(r"[{}]", "", n.value).split()
                if not re.search(r"[/{]", n.value) and not (len(words) > 1 and all(re.fullmatch("[A-Z]", w) for w in words)):
                    continue
                if not any(re.fullmatch("[A-Za-z](/.*)?", w) for w in words):
                    continue
                partial = re.findall(r"\{(.*)\}", n.value)
                for w in re.sub(r"\{.*\}", "", n.value).split():
                    axis, *cuts = w.split("/")
                    if len(axis) == 1:
                        yield i, axis, False
                    yield from ((i, cut, True) for cut in cuts if len(cut) == 1)
                yield from ((i, cut, True) for p in partial for cut in p.split() if len(cut) == 1)

    def bound(self):
        """(cell, letter, how) of each one-letter name that visible code binds otherwise than to what the letter stands for.

        A loop over numbers, a symbol of that name and an assignment can mean the letter; a loop over anything else, a
        parameter and an import cannot.
        """
        for i, cell in self.code:
            if cell.layer != "argument":
                continue
            for n in ast.walk(self.trees[i]):
                if isinstance(n, (ast.For, ast.comprehension)) and not _numbers(n.iter):
                    yield from ((i, t.id, "a loop") for t in ast.walk(n.target) if isinstance(t, ast.Name))
                elif isinstance(n, ast.Lambda):
                    yield from ((i, a.arg, "a parameter of a lambda") for a in n.args.args)
                elif isinstance(n, ast.alias) and n.asname:
                    yield i, n.asname, "an import"
                elif isinstance(n, (ast.With, ast.ExceptHandler)):
                    yield from ((i, t.id, "a with") for item in getattr(n, "items", []) if isinstance(item.optional_vars, ast.Name)
                                for t in [item.optional_vars])
                elif isinstance(n, (ast.FunctionDef, ast.ClassDef)):
                    yield i, n.name, "a function"

    def drawn(self):
        """(cell, letter) of each single letter that a drawing writes."""
        for i, o in self._outputs():
            page = "".join(o.get("data", {}).get("text/html", ""))
            for text in re.findall(r"<text[^>]*>([^<]+)</text>|<tspan[^>]*>([^<]+)</tspan>", page):
                word = "".join(text).strip()
                if re.fullmatch(r"[A-Za-zα-ωΑ-Ω][₀-₉]?", word):
                    yield i, word

    def faults(self):
        """Letters with two meanings, and letters without one: sentences for the author."""
        wrong, known = list(self.wrong), self.alphabet()
        for k, meanings in self.shown.items():
            if len(meanings) > 1:
                wrong.append(f"{k} has two meanings in the formula cards: " + "; ".join(f"“{m}” ({f})" for m, (_, f) in meanings.items()))
            for m, (_, f) in meanings.items():
                if k in self.declared and self.declared[k][1] != m:
                    wrong.append(f"{k} is declared as “{self.declared[k][1]}”, and the card of {f} says “{m}”")
        for name, where in (("/", "placements"), ("=", "visible code")):
            for k, (_, meaning) in self.declared.items():
                if k.endswith(name) and known.get(k[:-1], ("", meaning))[1] != meaning:
                    wrong.append(f"{k[:-1]} has two meanings: “{meaning}” in {where}, “{known[k[:-1]][1]}” elsewhere")
        for letter, axis in sorted({(letter, axis) for _, letter, axis in self.placements()}):
            says = known.get(letter, ("", ""))[1]
            if f"{letter}/" not in self.declared and not (axis and re.search(r"\branks?\b", says)):
                wrong.append(f"{letter} is a letter of the placements" + (f" and elsewhere “{says}”" if says else "")
                             + f": use words (\"tokens width/t\"), or declare \"{letter}/\" in the '# alphabet' cell")
        for i, letter, how in self.bound():
            if letter in known and f"{letter}=" not in self.declared:
                wrong.append(f"cell {i}: visible code uses {letter} for {how}; on this page it is “{known[letter][1]}”: rename it "
                             f"(or declare \"{letter} =\" if it is that)")
        missing = self.missing(known)
        if missing:
            wrong.append("letters without a meaning: " + ", ".join(missing) + "\n        # alphabet\n        alphabet = {" + ", ".join(
                f'r"{_written(k)}": "{why}"' for k, why in missing.items()) + "}")
        return list(dict.fromkeys(wrong))


    def missing(self, known):
        """letter -> why, for the letters of formulas and drawings that nothing explains."""
        seen = [(i, sign) for i, latex in self.formulas() for sign in signs(latex)]
        seen += [(i, next(signs(_latex(word)))) for i, word in self.drawn()]
        found = {}
        for i, sign in seen:
            if look(sign, known) is None and sign.base not in FREE:
                key = sign.base if RUNNING.fullmatch(sign.index) else sign.whole.removesuffix("^2")
                two = {**self.used, **self.shown}.get(key, {})
                found.setdefault(key, f"cell {i}" + (f"; formulas: {' or '.join(two)}" if two else ""))
        return found


NAMES = dict(zip("αβγδεζηθικλμνξπρστυφχψωΓΔΘΛΞΠΣΥΦΨΩ", r"""\alpha \beta \gamma \delta \varepsilon \zeta \eta \theta \iota \kappa
    \lambda \mu \nu \xi \pi \rho \sigma \tau \upsilon \varphi \chi \psi \omega \Gamma \Delta \Theta \Lambda \Xi \Pi \Sigma
    \Upsilon \Phi \Psi \Omega""".split()))


def _written(key):
    """H_'f as an author writes it."""
    return re.sub(r"'(\w+)", r"{\\mathrm{\1}}", key)


def _latex(word):
    """α₁ as \\alpha_1."""
    base = NAMES.get(word[0], word[0])
    return base + (f"_{ord(word[1]) - ord('₀')}" if len(word) > 1 else "")


UNIT = re.compile(r"[kMGTPE]?i?(?:B|FLOP|s|b)(?:/(?:s|h|B|FLOP))*")


def _numbers(node):
    """Whether an expression is a range or a display of numbers."""
    if isinstance(node, (ast.Tuple, ast.List, ast.Set)):
        return all(isinstance(e, (ast.UnaryOp, ast.BinOp)) or isinstance(e, ast.Constant) and isinstance(e.value, (int, float))
                   for e in node.elts)
    return isinstance(node, ast.Call) and getattr(node.func, "id", getattr(node.func, "attr", "")) in NUMBERS


NUMBERS = {"range", "arange", "linspace", "logspace", "geomspace"}


# ---- on the page
INLINE = re.compile(r'<(span|div) class="math notranslate nohighlight">(.*?)</\1>', re.S)


def explain(body, cells):
    """A page's HTML whose formulas name the letters that the alphabet explains, and these letters as JSON at its end.

    Of the formulas only those with a letter that none before them has are stops of the Tab key.
    """
    known = Page(cells).alphabet()
    order, said = {}, set()

    def mark(m):
        keys = list(dict.fromkeys(k for k in (look(s, known) for s in signs(html.unescape(m[2]))) if k))
        if not keys:
            return m[0]
        stop = ' tabindex="0"' if set(keys) - said else ""
        said.update(keys)
        numbers = " ".join(str(order.setdefault(k, len(order))) for k in keys)
        return f'<{m[1]} class="math notranslate nohighlight" data-letters="{numbers}"{stop}>{m[2]}</{m[1]}>'
    body = INLINE.sub(mark, body)
    data = json.dumps([known[k] for k in order], ensure_ascii=False).replace("</", "<\\/")
    return body + (f'<script type="application/json" id="cx-letters">{data}</script>' if order else "")

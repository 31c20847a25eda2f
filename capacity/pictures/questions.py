"""Questions to the reader: a guess that the page remembers, and its place beside the answer."""
import html
import json


class Guess:
    def __init__(self, name, value, unit, question, lo, hi):
        self.name, self.value, self.unit, self.question, self.lo, self.hi = name, value, unit, question, lo, hi

    def _repr_html_(self):
        spec = html.escape(json.dumps({"lo": self.lo, "hi": self.hi, "value": self.value, "unit": self.unit}))
        return (f'<div class="cx-ask" data-ask="{self.name}" data-spec="{spec}"><label for="ask-{self.name}">'
                f"{html.escape(self.question)}</label> <span><b>{self.value:,}</b> {html.escape(self.unit)}</span></div>")

    def __repr__(self):
        return f"guess: {self.value} {self.unit}"


def guess(name, value, unit, *, question, lo, hi):
    """The reader's guess: an input on the web that the browser remembers; here the variable's value."""
    return Guess(name, value, unit, question, lo, hi)


class Answer:
    def __init__(self, name, guess, truth, unit, lo, hi, others):
        self.name, self.guess, self.truth, self.unit, self.lo, self.hi, self.others = name, guess, truth, unit, lo, hi, others

    def _repr_html_(self):
        spec = html.escape(json.dumps({"lo": self.lo, "hi": self.hi, "truth": self.truth, "unit": self.unit,
                                       "guess": self.guess, "others": self.others}, ensure_ascii=False))
        marks = "".join(f"<tr><th>{html.escape(k)}</th><td>{v:,}</td></tr>" for k, v in self.others.items())
        return (f'<div class="cx-answer" data-answer="{self.name}" data-spec="{spec}"><p>You said <b>{self.guess:,}</b> '
                f"{html.escape(self.unit)}; it is <b>{self.truth:,}</b>.</p><table>{marks}</table></div>")

    def __repr__(self):
        return f"you said {self.guess} {self.unit}; it is {self.truth}; " + "; ".join(
            f"{k}: {v}" for k, v in self.others.items())


def answer(name, guess, truth, unit, *, lo, hi, others):
    """The guess beside the answer, on one scale with the answers of those who forgot something: {why: number}."""
    return Answer(name, guess, truth, unit, lo, hi, others)

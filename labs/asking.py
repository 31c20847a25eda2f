"""What a lab asks before it runs, and what it does when you break it.

The docstring of a lab ends in two paragraphs, "Before you look (chapter 12): ..." and "Break it: ...".  They are shown from
there.  `--guess NUMBER` is compared with what the lab counts; `--break` changes the line that the second paragraph names.
"""
import argparse
import sys

_state = {"guess": None, "broken": False, "answer": None}


def begin(aloud=True):
    """Take --guess and --break from the command line, and ask the lab's question; the other arguments stay."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("--guess", type=float, metavar="NUMBER")
    parser.add_argument("--break", dest="broken", action="store_true")
    args, sys.argv[1:] = parser.parse_known_args()
    _state.update(guess=args.guess, broken=args.broken)
    if aloud:
        print(paragraph("Break it" if args.broken else "Before you look"), flush=True)
        if args.guess is None and not args.broken:
            print("Write your number down, or pass it: --guess NUMBER", flush=True)


def broken():
    """Whether the reader asked for the broken line."""
    return _state["broken"]


def answer(value, unit):
    """What the lab counted; `end` shows it."""
    _state["answer"] = float(value), unit


def end():
    """The number that was asked for, beside the guess."""
    value, unit = _state["answer"]
    guess = _state["guess"]
    if guess is None:
        print(f"The number: {told(value)} {unit}", flush=True)
    else:
        off = f": {value/guess:.3g} times what you said" if guess and abs(value/guess - 1) > .02 else ""
        print(f"You said {told(guess)}, it is {told(value)} {unit}{off}", flush=True)


def told(x):
    return f"{x:,.0f}" if abs(x) >= 100 or x == round(x) else f"{x:,.3g}"


def paragraph(first):
    """The paragraph of the lab's docstring that begins so, on one line."""
    return next(" ".join(p.split()) for p in sys.modules["__main__"].__doc__.split("\n\n") if p.startswith(first))

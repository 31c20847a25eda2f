"""The landing page: a picture that plays, cards of the chapters, findings, and how to get, cite and correct the book.

`tools/page.py` puts these where index.md says so.  A card's words and picture are those of its chapter; a number of a finding is
read out of the output that computed it.
"""
import functools
import html
import re
import tempfile
from pathlib import Path

import browser
import publish
import reading
import yaml

STYLE = Path(__file__).with_suffix(".css")
LIVE = "12", "ring-all-reduce"                             # a chapter and the player of it that opens the book

# The question of a part, under its title in _toc.yml.
QUESTIONS = {
    "I": "What limits a job, and how do you estimate it?",
    "II": "How large a model, how many tokens, which batch?",
    "III": "What can ranks say to each other, and how fast?",
    "IV": "Which splits are correct, and why?",
    "V": "What buys memory, and with which currency?",
    "VI": "How do splits combine, and what if a device dies?",
    "VII": "What is left to gain?",
    "VIII": "Does all this explain the systems that were built?",
}

# Of each chapter a drawing by its name, and the window of it that a card shows: x, y, width and height; none: all of it.
PICTURES = {
    "1": ("three-limits", "-16 0 322 232"), "2": ("overlap", ""), "3": ("stairs", ""), "3a": ("six", ""), "4": ("pieces", ""),
    "5": ("hyperbola", ""), "6": ("eight-outcomes", ""), "7": ("valley", "0 0 300 216"), "8": ("columns-of-work", "0 0 300 232"),
    "9": ("dice", ""), "10": ("noisy-arrows", "30 26 240 174"),
    "11": ("seven", ""), "12": ("four-ways", "0 0 300 243"), "13": ("one-port", "0 22 300 218"), "13a": ("cards", "0 24 300 176"),
    "14": ("step", ""), "15": ("states", "0 0 336 148"), "16": ("by-hand", ""), "17": ("swap", ""), "18": ("crossing", ""),
    "19": ("segments", ""), "20": ("cut", "0 0 300 146"), "21": ("ladder", ""), "22": ("chain", ""),
    "23": ("orders", "0 0 300 160"), "24": ("cube", "-40 0 352 202"), "25": ("placement", ""), "26": ("day", "0 0 300 186"),
    "27": ("ground", "0 103 300 165"),
    "28": ("places", ""), "29": ("ways", ""), "30": ("blocks", ""), "31": ("step", ""), "31a": ("readers", "0 0 336 140"),
    "31b": ("reads", ""),
    "32": ("inside", ""), "33": ("tree", "0 12 336 172"), "34": ("slots", "0 0 336 188"), "35": ("layout", "0 0 336 160"),
    "36": ("name", ""), "36a": ("schedules", ""), "37": ("strategies", ""),
}

# A chapter, a sentence, and for each number in it the output that holds it.
FINDINGS = [
    ("20", "**{}** is how long a step of GPT-3 takes on 768 A100s that keep its weights, gradients and optimizer in equal parts. "
     "With twice the GPUs and the same batch it takes {}. Both were measured.",
     [r"175B +768 .* ([\d.]+ s) +sets", r"175B +1,536 .* ([\d.]+ s) +\+0\.0 %"]),
    ("23", "**{}** of sending in a step is what Llama 3's 16,384 GPUs pay if you number them in the worst order; its number tells a "
     "GPU which piece of the work is its own. In the best one it is {}.", [r"p, d, t .* ([\d.]+ s)\n", r"t, p, d .* ([\d.]+ s)\n"]),
    ("28", "**{}** is what becomes of a step of {} when each of 64 GPUs sends only the largest one per cent of its gradient: "
     "everybody must receive what all the others chose, each number with its place. Choosing is not counted.",
     [r"it is (\d+ ms)\.", r"without communication, (\d+ ms) with all of it"]),
]


# ---- what the chapters say
def question(chapter):
    """The bold question that the chapter opens with."""
    return re.findall(r"\*\*([^*]+\?)\*\*", "".join(reading.cells("chapters", chapter)[0]["source"]))[-1]


def made(chapter):
    """The HTML of every output of a chapter."""
    return ["".join(o.get("data", {}).get("text/html", "")) for c in reading.cells("chapters", chapter) if c["cell_type"] == "code"
            for o in c["outputs"]]


def said(chapter):
    """The text of every output of a chapter."""
    kinds = [[o.get("text", ""), o.get("data", {}).get("text/plain", ""), o.get("data", {}).get("text/html", "")]
             for c in reading.cells("chapters", chapter) if c["cell_type"] == "code" for o in c["outputs"]]
    return re.sub(r"<[^>]+>", " ", "\n".join("".join(text) for output in kinds for text in output))


def figure(chapter, name):
    return next(f for h in made(chapter) for f in re.findall(r"<figure\b.*?</figure>", h, re.S) if f' id="{name}"' in f[:f.index(">")])


def picture(chapter):
    """A drawing as its chapter shows it first, in the form for a narrow column, without its words: the card says more."""
    name, window = PICTURES[chapter]
    drawn = figure(chapter, name)
    if "cx-scenes" in drawn:
        drawn = next(s for s in drawn.split('<div class="cx-scene" ')[1:] if " hidden" not in s.partition(">")[0])
    drawn = drawn.partition('<div class="cx-narrow"')[2] or drawn
    head, body = re.search(r"<svg (.*?)>(.*?)</svg>", drawn, re.S).groups()
    window = window or re.search(r'viewBox="([^"]+)"', head)[1]
    x, y, w, h = window.split()                                # an inner sheet: nothing beside its window shows
    ink = " ".join(re.findall(r'\b(?:fill|font-size|stroke-linejoin)="[^"]*"', head))
    return (f'<svg viewBox="{window}" {ink} aria-hidden="true"><svg x="{x}" y="{y}" width="{w}" height="{h}" viewBox="{window}">'
            f'{re.sub(r"<title>.*?</title>", "", body)}</svg></svg>')


# ---- what a link shows that somebody shares
SHEET = """<!doctype html><html lang="en"><meta charset="utf-8"><style>
@font-face {{ font-family: "Book Serif"; src: url("{fonts}/serif-regular.woff2"); }}
@font-face {{ font-family: "Book Serif"; font-weight: 600; src: url("{fonts}/serif-semibold.woff2"); }}
body {{ margin: 0; font-family: "Book Serif"; color: #14181c; background: #fff; }}
section {{ box-sizing: border-box; width: 1200px; height: 630px; padding: 56px 60px; border-top: 14px solid #0072B2; display: grid;
  grid-template: "book picture" auto "title picture" auto "says picture" 1fr / 560px 1fr; column-gap: 50px; overflow: hidden; }}
section > * {{ margin: 0; }}
p {{ font-size: 24px; color: #48566b; }}
h1 {{ margin: 44px 0 22px; font-size: 52px; font-weight: 600; line-height: 1.15; text-wrap: balance; }}
h1 + p {{ font-size: 30px; line-height: 1.4; color: inherit; }}
section > :is(svg, img) {{ grid-area: picture; width: 100%; height: 100%; min-height: 0; box-sizing: border-box; padding: 0 0 20px;
  font-family: system-ui, sans-serif; }}
</style>{cards}"""


def sheet():
    """A page of these pictures: the book's own, then one for each chapter, with its title, its question and its drawing."""
    book, thesis = citation()["title"], "Every way to split the training of a model exploits a mathematical property of the computation."
    motif = f'<img src="{(reading.ROOT/"_static/favicon.svg").as_uri()}" alt="">'
    cards = [("book", book, "Derive, don't explain", thesis, motif)] + [
        (stem, reading.title(chapter), book, question(chapter), picture(chapter)) for chapter, stem in reading.stems().items()]
    return SHEET.format(fonts=(reading.ROOT/"vendor/_static/fonts").as_uri(), cards="".join(
        f'<section id="{name}"><p>{html.escape(above)}</p><h1>{html.escape(title)}</h1><p>{html.escape(says)}</p>{drawn}</section>'
        for name, title, above, says, drawn in cards))


def share(app, error):
    """Where the book has an address, a picture of 1200 by 630 pixels for each chapter, and one for all other pages."""
    if error or not app.config.html_baseurl:
        return
    with tempfile.TemporaryDirectory() as folder, browser.chromium() as chromium:
        path, page = Path(folder, "sheet.html"), chromium.new_page(viewport=dict(zip(("width", "height"), publish.SHARED)))
        path.write_text(sheet(), encoding="utf-8")
        page.goto(path.as_uri())
        page.evaluate("document.fonts.ready")
        for card in page.locator("section").all():
            card.screenshot(path=Path(app.outdir, publish.picture_of(card.get_attribute("id"))))


# ---- the parts of the page
def live():
    """The player, which begins by itself where nobody asked for less motion."""
    return figure(*LIVE).replace("<figure ", "<figure data-plays ", 1)


def titles():
    """The titles of the parts."""
    return dict(re.findall(r'caption: "Part ([IV]+) · (.+)"', (reading.ROOT/"_toc.yml").read_text(encoding="utf-8")))


def cards():
    """A card for each part and each chapter of it."""
    out, named = [], titles()
    for part, row in reading.PARTS.items():
        out.append(f'<section class="cx-cards" aria-labelledby="part-{part}"><div class="cx-part">'
                   f'<h3 id="part-{part}">{part} · {named[part]}</h3>'
                   f"<p>{QUESTIONS[part]}</p><p>{len(row)} chapters, {reading.hours(row, []):.1f} hours to read</p></div>")
        for chapter in row:
            out.append(f'<article class="cx-card cx-sketch">{picture(chapter)}'
                       f'<h4><a href="chapters/{reading.stems()[chapter]}.html">{html.escape(reading.title(chapter))}</a></h4>'
                       f"<p>{html.escape(question(chapter))}</p><p>{reading.reading(chapter):.0f} minutes</p></article>")
        out.append("</section>")
    return "".join(out)


def findings():
    """Each finding in Markdown, its numbers read out of the chapter's outputs; LookupError if one is not there."""
    rows = []
    for chapter, sentence, patterns in FINDINGS:
        numbers = [re.search(p, said(chapter)) for p in patterns]
        if None in numbers:
            raise LookupError(f"chapter {chapter}: no output holds {patterns[numbers.index(None)]!r}")
        rows.append(f":::{{div}} cx-finding\n{sentence.format(*(n[1] for n in numbers))} "
                    f"[Chapter {chapter}](chapters/{reading.stems()[chapter]}.ipynb)\n:::")
    return "::::{div} cx-three\n" + "\n\n".join(rows) + "\n::::"


def run(address):
    """How to get the book and the package. `address`: of the repository, or empty."""
    wheel, site = publish.wheel_name(), publish.site(address)
    clone = f"git clone {address} book && cd book\n" if address else ""
    begin = "Clone the repository" if address else "In a clone of the repository"
    away = [c for c in reading.NEEDS if publish.leans(reading.cells("chapters", c))]
    links = " and ".join(f"[chapter {c}](chapters/{reading.stems()[c]}.ipynb)" for c in away)
    paper = f" On paper? [The whole book as a PDF]({address}/releases/latest)." if address else ""
    first = (f"{begin}{'; ' if address else ', '}two commands make an environment of their own, build this site and open the chapters in "
             "JupyterLab, where you change a number and run on. They need make and Python 3.11 or newer.")
    return f"""{first}

```bash
{clone}make book     # this site, on your machine
make study    # the chapters in JupyterLab
```

Only the package? <a href="{wheel}" download>{wheel}</a> is the one that computed these pages; it needs {publish.needs()}. \
It gives you the formulas, the machines and models, the planner and the command `capacity`; \
[ten questions](questions.md) show what to ask.

```bash
{"" if site else "# in the folder where you saved it" + chr(10)}pip install {site}{wheel}
```

Only one chapter? The arrow at its top gives you the notebook. Its second cell installs the package where it is missing, \
{'from this site' if address else 'from the wheel, if you save that beside it'}. \
Run {links} in a clone: files of the book are read there, too.{paper}"""


@functools.cache
def citation():
    """CITATION.cff."""
    return yaml.safe_load((reading.ROOT/"CITATION.cff").read_text(encoding="utf-8"))


def cite(address):
    """BibTeX, the licences, who writes, and what to do with an error, in Markdown."""
    c = citation()
    authors, url = " and ".join(f"{{{a['name']}}}" for a in c["authors"]), f"  url     = {{{publish.site(address)}}},\n" if address else ""
    report = f"[Open an issue]({address}/issues) with" if address else "Tell whoever gave you this book, with"
    return f"""This is version {c['version']} of {c['date-released']:%-d %B %Y}, written by {c['authors'][0]['name']}. Cite it so, or take \
{{download}}`CITATION.cff`, which reference managers read:

```bibtex
@book{{algebra-of-distributed-training,
  title   = {{{c['title']}}},
  author  = {{{authors}}},
  edition = {{Version {c['version']}}},
{url}  year    = {{{c['date-released']:%Y}}}
}}
```

The code is under the {{download}}`MIT license <LICENSE>`. Text and figures are under {{download}}`CC BY-NC-SA 4.0 <LICENSE-CONTENT.md>`: \
copy, change and share them with the book's name, not for money, on the same terms. What moved between versions, the \
{{download}}`list of changes <CHANGELOG.md>` says.

Found a false sentence, a number that is not what the world measures, an assert that cannot fail? {report} the page, the \
sentence and what you found instead: a correction is worth more to this book than a chapter."""

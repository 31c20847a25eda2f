"""What a reader meets on each built page, measured in Chromium: make html first.

    python tools/measure.py [chapter ...]

At 1280 px: visible code cells, the share of the height that is code, where the first picture is, pictures, words (a
formula is one), sizes of type.
Then what is wider than its box at 1280, 768 and 375 px and in print, but for code that scrolls and
shows its edge.  A star: not yet in three acts.
"""
import json
import os
import sys
from pathlib import Path

import browser as tools
import layers
from serve import serve

ROOT = Path(__file__).resolve().parents[1]
WIDTHS = 1280, 768, 375
PAPER = 718                              # px of an A4 page between its margins

MEET = """() => {
  const art = document.querySelector('article.bd-article'), height = e => e.getBoundingClientRect().height;
  const seen = e => { if (!e.checkVisibility({visibilityProperty: true})) return false;      // what is folded costs a layout to measure
    const r = e.getBoundingClientRect(); return r.width > 1 && r.height > 1 };
  const blocks = 'div.cell_input, div.highlight-python, div.highlight-ipython3';
  const code = [...art.querySelectorAll(blocks)].filter(e => seen(e) && !e.parentElement.closest(blocks));
  const pics = [...art.querySelectorAll('figure, svg, img, canvas')].filter(e => seen(e) && height(e) > 60);
  const sizes = {}, walk = document.createTreeWalker(art, NodeFilter.SHOW_TEXT);
  while (walk.nextNode()) {
    const p = walk.currentNode.parentElement, text = walk.currentNode.data.trim();
    if (text && seen(p) && !p.closest('svg, mjx-container'))
      sizes[Math.round(2*parseFloat(getComputedStyle(p).fontSize))/2] ??= `${p.tagName}.${p.className}: ${text.slice(0, 30)}`;
  }
  const words = e => e.innerText.trim().split(/\\s+/).length, formulas = [...art.querySelectorAll('mjx-container')].filter(seen);
  return {cells: code.length, share: code.reduce((s, e) => s + height(e), 0)/height(art), pictures: pics.length,
          first: pics.length ? Math.round(Math.min(...pics.map(e => e.getBoundingClientRect().top + scrollY))) : null,
          words: words(art) - formulas.reduce((s, e) => s + words(e) - 1, 0), sizes, height: Math.round(height(art))} }"""
WIDE = """right => { const boxes = 'pre, table, figure, div.math, .cell_output > *, .pst-scrollable-table-container, .admonition';
  return [...document.querySelectorAll(`article.bd-article :is(${boxes})`)].filter(e => e.checkVisibility())
    .filter(e => { const r = e.getBoundingClientRect();
    const edged = e.tagName === 'PRE' && e.closest('.highlight') && getComputedStyle(e).backgroundImage.includes('gradient');
    return r.width > 2 && !e.closest('.cx-picture') && !edged
      && (e.clientWidth > 0 && e.scrollWidth > e.clientWidth + 2 || r.right > right + 2); })
  .map(e => `${e.tagName.toLowerCase()}.${(e.className.baseVal ?? e.className).split(' ').slice(0, 2).join('.')} ${e.scrollWidth} > `
    + `${Math.min(e.clientWidth, right)}: ${e.innerText.trim().slice(0, 60).replace(/\\s+/g, ' ')}`) }"""
SETTLED = """async () => {
  await window.MathJax?.startup?.promise;
  await window.MathJax?.startup?.document?.lazyTypesetAll?.();
  await new Promise(r => requestIdleCallback(() => requestAnimationFrame(() => requestAnimationFrame(r)), { timeout: 1000 })); }"""


def wide(page, width):
    """What is wider than its box on an open page at a width, or in "print", where the page stays."""
    paper = width == "print"
    right = PAPER if paper else width
    if paper:                            # said again, even "screen" would be a style for each element anew
        page.emulate_media(media="print")
    page.set_viewport_size(dict(width=right, height={"print": 1000, 375: 812}.get(width, 900)))
    page.evaluate(SETTLED)
    return page.evaluate(WIDE, right)


def measure(page):
    """What MEET says of an open page, and per width and on paper, where the page stays, what is wider than its box."""
    page.set_viewport_size(dict(width=1280, height=900))
    page.evaluate(SETTLED)
    found = page.evaluate(MEET)
    found["wide"] = {str(width): wide(page, width) for width in (*WIDTHS, "print")}
    return found


HEAD = f"{'chapter':40}{'cells':>6}{'code':>7}{'first':>7}{'pics':>6}{'words':>7}{'sizes':>6}{'px':>8}  wide 1280/768/375/print"


def line(name, m, acts=True):
    """One line of the table."""
    wide = "/".join(str(len(w)) for w in m["wide"].values())
    return (f"{name[:37] + ('' if acts else ' *'):40}{m['cells']:6}{m['share']:7.1%}{m['first'] or '–':>7}{m['pictures']:6}{m['words']:7}"
            f"{len(m['sizes']):6}{m['height']:8}  {wide}")


def acts(name):
    """Whether the chapter of this name is in three acts."""
    return layers.in_acts(json.loads((ROOT/f"chapters/{name}.ipynb").read_text(encoding="utf-8"))["cells"])


def main(names):
    html = Path(os.environ.get("BOOK_HTML", ROOT/"_build/html"))
    print(HEAD)
    with serve(html) as address, tools.chromium() as chromium:
        for name in names or sorted(p.stem for p in (html/"chapters").glob("*.html")):
            page = chromium.new_page()
            page.goto(f"{address}chapters/{name}.html", wait_until="load")
            found = measure(page)
            print(line(name, found, acts(name)), flush=True)
            for width, boxes in found["wide"].items() if names else ():
                for box in boxes:
                    print(f"    {width}: {box}")
            if names:
                print("    sizes: " + "; ".join(f"{s} px, {e}" for s, e in sorted(found["sizes"].items(), key=lambda x: float(x[0]))))
            page.close()


if __name__ == "__main__":
    main(sys.argv[1:])

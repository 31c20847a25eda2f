"""The built book in a real Chromium: offline, clean, light, narrow enough, readable in the dark.

`make html` first. BOOK_HTML names another built book, BROWSER_PATH another browser.
"""
import json
import re

import layers
import measure
import pytest

import built
from built import HTML, PHONE, ROOT, compressed
from figures import DRAWN

ASIDE = {"_static", "_sources", "_images", "_downloads", "_sphinx_design_static"}
# A page of each kind but chapters, in which type is measured.
KINDS = ["index.html", "plan.html", "exercises/17-sequence-parallelism-decomposability.html", "solutions/17-sequence-parallelism-decomposability.html",
         "appendices/hardware.html", "appendices/notation.html", "labs/README.html"]
SCROLLS = "div.pst-scrollable-table-container", "table.table", "table.map"       # on a phone, in a box that shows its edge
SAMPLE = "04", "07", "12", "15", "19", "24", "30", "35"                     # one chapter of each part
# Chapters first: pytest brings all tests of a page together by its number in such a list.  What an exercise's page shows,
# its solution's shows too.
PAGES = sorted((name for name in (p.relative_to(HTML).as_posix() for p in HTML.rglob("*.html")
                                  if not ASIDE & set(p.relative_to(HTML).parts) and p.name != "genindex.html")
                if not name.startswith("exercises/") or name[len("exercises/"):][:2] in SAMPLE or name in KINDS),
               key=lambda name: (not name.startswith("chapters/"), name))
CHAPTERS = [p for p in PAGES if p.startswith("chapters/")]
FURTHER = ["toolkit.html", "teach.html", "questions.html", "appendices/formulas.html", "labs/alpha-beta.html", *KINDS]
MODELS = {p for p in CHAPTERS if p[len("chapters/"):][:2] in ("04", "15")}
each_chapter = pytest.mark.parametrize("page", CHAPTERS, indirect=True, scope="module")
CHAPTER = "chapters/04-alpha-beta-model.html"
of = lambda *pages: pytest.mark.parametrize("page", pages, indirect=True, scope="module")
# Of what one script does on every page alike.
some_chapters = pytest.mark.parametrize("page", [p for p in CHAPTERS if p[len("chapters/"):][:2] in SAMPLE], indirect=True, scope="module")
PICTURES = {".png", ".jpg", ".jpeg", ".svg", ".gif"}
LIGHT = 600_000


def having(kind):
    """The pages with a figure of this kind."""
    return [p for p in PAGES if f'class="{kind}"' in (HTML/p).read_text(encoding="utf-8")]


@pytest.fixture(scope="module")
def book():
    with built.opened() as book:
        yield book
    print("\n" + "\n".join([measure.HEAD, *(measure.line(name, m) for name, m in MET.items() if "cells" in m)]))


@pytest.fixture(scope="module", params=PAGES or ["index.html"])
def page(request, book):
    """One visit for all the tests of a page."""
    page = book.visit(request.param)
    page.name, page.files = request.param, book.files
    return page


def test_asks_no_other_host(page):
    assert page.log.external == []


def test_has_no_errors(page):
    assert page.log.failed == []
    assert page.log.console == []


def test_an_address_leads_to_one_place(page):
    twice = page.evaluate("""(() => { const seen = new Set();
        return [...document.querySelectorAll('[id]')].map(e => e.id).filter(id => seen.has(id) || !seen.add(id)); })()""")
    assert twice == []


def test_names_no_script_or_style_of_another_host(page):
    named = page.evaluate("[...document.querySelectorAll('script[src], link[rel=stylesheet], img, iframe')].map(e => e.src || e.href)")
    assert [n for n in named if n and not n.startswith(("http://127.0.0.1", "data:"))] == []


def test_mathematics_is_typeset(page):
    assert page.evaluate("document.querySelectorAll('mjx-merror').length") == 0
    left = page.evaluate(r"[...document.querySelectorAll('.math')].map(e => e.textContent).filter(t => /\\[(\[]/.test(t))")
    assert left == [], "not typeset"


def test_is_light(page):
    """Everything but pictures, compressed as a server would, weighs less than 0.6 MB."""
    sizes = {f.name: compressed(f) for f in page.files() if f.suffix not in PICTURES}
    assert {page.name.rpartition("/")[2], "book.css"} <= {*sizes}
    heavy = sorted(sizes.items(), key=lambda x: -x[1])[:5]
    assert sum(sizes.values()) < LIGHT, f"{sum(sizes.values())} bytes: {heavy}"


def test_every_picture_has_words(page):
    bare = page.evaluate("""[...document.querySelectorAll('.bd-article :is(img, svg[role=img])')]
        .filter(e => !(e.alt || e.ariaLabel)?.trim()).map(e => e.src || e.outerHTML.slice(0, 120))""")
    assert bare == []


def test_code_has_no_scroll_bar(page):
    """Folded code too: all is unfolded for a moment, for whatever is folded costs a layout to measure."""
    if "/chapters/" in page.url:
        wide = page.evaluate("""() => { const folded = [...document.querySelectorAll('details:not([open])')];
            folded.forEach(d => { d.open = true; });
            const wide = [...document.querySelectorAll('.cell_input pre')].filter(e => e.scrollWidth > e.clientWidth + 1).map(e => e.textContent);
            folded.forEach(d => { d.open = false; });
            return wide; }""")
        assert wide == []


# The contrast of every visible piece of text with what lies behind it, as WCAG counts it.
FAINT = """least => {
    const rgba = c => { const m = c.match(/[\\d.]+/g).map(Number);
        const k = c.startsWith('color(srgb') ? 255 : 1;
        return [m[0]*k, m[1]*k, m[2]*k, m[3] ?? 1]; };
    const over = (a, b) => [0, 1, 2].map(i => a[i]*a[3] + b[i]*(1 - a[3]));
    const linear = v => v <= .04045 ? v/12.92 : ((v + .055)/1.055)**2.4;
    const light = c => { const [r, g, b] = c.map(v => linear(v/255));
        return .2126*r + .7152*g + .0722*b; };
    const grounds = new Map([[null, [255, 255, 255]]]), looked = new Set(), bad = {};
    const ground = e => {
        if (!grounds.has(e)) grounds.set(e, over(rgba(getComputedStyle(e).backgroundColor), ground(e.parentElement)));
        return grounds.get(e); };
    const shown = new Map([[null, 1]]), opaque = e => {          // but for a choice that is not there
        if (!shown.has(e)) shown.set(e, e.matches(':disabled + span') ? 1 : getComputedStyle(e).opacity*opaque(e.parentElement));
        return shown.get(e); };
    // A word of a picture may stand on bars: what is filled below its middle (beside an edge that runs there), one over the other; a halo keeps the page's colour.
    const pictures = new Map();
    const bars = svg => {
        if (!pictures.has(svg)) pictures.set(svg, [...svg.querySelectorAll('rect, path')].map(r => [r, getComputedStyle(r), r.getBoundingClientRect()])
            .filter(([r, s]) => s.fill.startsWith('rgb') || s.fill.startsWith('color(')));
        return pictures.get(svg); };
    const barred = (e, back) => {
        const { left, right, top, bottom } = e.getBoundingClientRect(), [x, y] = [(left + right)/2 + .25, (top + bottom)/2];
        if (getComputedStyle(e).paintOrder.startsWith('stroke')) return back;
        for (const [r, s, b] of bars(e.ownerSVGElement)) {
            if (!(r.compareDocumentPosition(e) & 4) || b.left > x || b.right < x || b.top > y || b.bottom < y) continue;
            if (!r.isPointInFill(new DOMPoint(x, y).matrixTransform(r.getScreenCTM().inverse()))) continue;
            const [red, green, blue, a] = rgba(s.fill);
            back = over([red, green, blue, a*s.fillOpacity*s.opacity], back);
        }
        return back; };
    const unread = 'script, style, mjx-assistive-mml, .headerlink, .visually-hidden, [aria-hidden=true]:not(mjx-container *, svg *)';
    const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_ELEMENT | NodeFilter.SHOW_TEXT,
        n => n.nodeType === 3 ? (n.data.trim() ? 1 : 2) : n.matches(unread) ? 2 : 3);     // accept, reject with all in it, skip
    while (walk.nextNode()) {
        const e = walk.currentNode.parentElement;
        if (looked.has(e)) continue;
        looked.add(e);
        const s = getComputedStyle(e);
        if (!e.checkVisibility({checkVisibilityCSS: true, checkOpacity: true})) continue;
        if (e.getBoundingClientRect().width < 2) continue;
        const drawn = e.ownerSVGElement, back = drawn ? barred(e, ground(e)) : ground(e);
        const [red, green, blue, a] = rgba(drawn ? s.fill : s.color);
        const [darker, lighter] = [light(over([red, green, blue, a*(drawn ? s.fillOpacity : opaque(e))], back)), light(back)].sort((a, b) => a - b);
        const need = parseFloat(s.fontSize) >= 24 ? Math.min(3, least) : least, ratio = (lighter + .05)/(darker + .05);
        if (ratio < need) bad[[e.closest('[id]')?.id, e.tagName, e.className.baseVal ?? e.className].join(' ')] =
            ratio.toFixed(2) + ' ' + walk.currentNode.textContent.trim().slice(0, 40);
    }
    return bad;
}"""
# A picture must not lie on a light box; the theme draws one behind pictures and HTML outputs.
BOXES = """() => [...document.querySelectorAll('.cell_output img, .cell_output .text_html')].filter(e => {
    const m = getComputedStyle(e).backgroundColor.match(/[\\d.]+/g).map(Number);
    return (m[3] ?? 1) > .1 && (m[0] + m[1] + m[2])/3 > 128; }).map(e => e.outerHTML.slice(0, 120))"""


def test_text_stands_out(page):
    assert page.evaluate(FAINT, 4.5) == {}


# --- type

@of(*KINDS)
def test_at_most_eight_sizes(page):
    sizes = page.evaluate(measure.MEET)["sizes"]
    assert len(sizes) <= 8, sizes


@of(CHAPTER, *KINDS)
def test_the_text_and_its_headings_are_in_the_book_s_face(page):
    assert page.evaluate("document.fonts.check('16px \"Book Serif\"') && [...document.fonts].some(f => f.family.includes('Book Serif') && f.status === 'loaded')")
    families = page.evaluate("[...document.querySelectorAll('.bd-article :is(p, h1, h2, h3, td):not(figure *, .cx-ask *)')].map(e => getComputedStyle(e).fontFamily.split(',')[0])")
    assert {f.strip('"') for f in families} <= {"Book Serif"}


@of(CHAPTER, *KINDS)
def test_headings_outweigh_titles_of_figures(page):
    heads, titles = page.evaluate("""['h2, h3', '.cx-title, figcaption, caption'].map(s => [...document.querySelectorAll(`.bd-article :is(${s})`)]
        .map(e => [parseFloat(getComputedStyle(e).fontSize), Number(getComputedStyle(e).fontWeight)]))""")
    assert all(size >= most and weight >= heavy for size, weight in heads for most, heavy in titles)


@of(CHAPTER, *KINDS)
def test_tables_have_one_measure(page):
    found = page.evaluate("""[...document.querySelectorAll('.bd-article :is(table.table, .cx-table:not(.cx-tight) table)')].filter(t => !t.closest('.cx-plan')).map(t => {
        const s = (e) => e && [getComputedStyle(e).fontSize, getComputedStyle(e).paddingTop, getComputedStyle(e).borderBottomWidth].join(' ');
        return s(t.querySelector('tbody td')) })""")
    assert len({f for f in found if f}) <= 1, found


@of(*KINDS)
def test_nothing_is_clipped(page):
    assert wide(page, 1280) == []


# --- chapters: what a reader meets

# The page is idle, and then no frame of four in a row has moved or stretched it.
STILL = """async () => {
    const frame = () => new Promise(r => requestAnimationFrame(r)), now = () => scrollY + ' ' + document.documentElement.scrollHeight;
    await new Promise(r => requestIdleCallback(r, { timeout: 1000 }));
    for (let seen = now(), same = 0; same < 4; same = now() === seen ? same + 1 : 0, seen = now()) await frame(); }"""


def cells(name):
    """The cells of a chapter's notebook."""
    return json.loads((ROOT/name).with_suffix(".ipynb").read_text(encoding="utf-8"))["cells"]


MET = {}                                                                   # what is measured on each chapter, at one width after the other


@each_chapter
def test_measurements(page):
    m = MET[page.name] = page.evaluate(measure.MEET) | {"wide": {}}
    assert m["cells"] <= 20
    assert m["share"] <= .10
    assert m["first"] is not None and m["first"] < 900
    assert m["words"] <= 5500
    assert len(m["sizes"]) <= 8, m["sizes"]


def wide(page, width):
    """What is wider than its box at a width or in print; noted for the table."""
    found = measure.wide(page, width)
    MET.setdefault(page.name, {"wide": {}})["wide"][width] = found
    return found


@each_chapter
def test_nothing_is_wider_than_its_box(page):
    assert wide(page, 1280) == []


@some_chapters
def test_a_mark_opens_its_program(page):
    marks = page.locator("a.cx-qed")
    assert marks.count() == len(layers.bind(cells(page.name))[0])
    mark = next(m for m in marks.all() if m.is_visible())
    proof = page.locator(f"[id='{mark.get_attribute('aria-controls')}']")
    assert not proof.is_visible() and mark.get_attribute("aria-label") in [
        layers.read("".join(c["source"])).says.replace("$", "").replace("`", "") for c in cells(page.name)]
    mark.focus()
    page.keyboard.press("Enter")
    assert proof.locator("pre").first.is_visible() and mark.get_attribute("aria-expanded") == "true"
    page.keyboard.press("Space")
    assert not proof.is_visible()
    mark.hover()
    page.locator(".cx-tip").wait_for(timeout=3000)
    mark.click()
    assert proof.is_visible() and not page.locator(".cx-tip").is_visible()
    page.keyboard.press("Escape")
    assert not proof.is_visible() and mark.evaluate("e => e === document.activeElement")


@some_chapters
def test_a_letter_explains_itself(page):
    formula = page.locator(".bd-article [data-letters]").first
    formula.scroll_into_view_if_needed()
    formula.hover()
    page.locator(".cx-tip dd").first.wait_for(timeout=3000)
    page.keyboard.press("Escape")
    assert not page.locator(".cx-tip").is_visible()


@some_chapters
def test_the_code_switch_shows_what_it_says_and_keeps_the_place(page):
    section = page.locator("article section section section").nth(3)
    top = "e => Math.round(e.getBoundingClientRect().top)"
    shown = "[...document.querySelectorAll('.bd-article .cell_input')].filter(e => e.checkVisibility()).length"
    page.locator(".cx-codes input[value=argument]").check(force=True)
    section.evaluate("e => scrollTo({ top: e.getBoundingClientRect().top + scrollY - 128, behavior: 'instant' })")
    page.evaluate(STILL)
    before, seen = section.evaluate(top), {}
    every_change, every_mode = ("all", "none", "all", "argument", "none", "argument"), ("all", "none", "argument")
    for mode in every_change if page.name in MODELS else every_mode:
        box = page.locator(".cx-codes label", has_text=mode).bounding_box()     # a real click: the focus moves before the choice does
        page.mouse.click(box["x"] + box["width"]/2, box["y"] + box["height"]/2)
        page.evaluate(STILL)
        assert page.evaluate("document.documentElement.dataset.code") == mode and abs(section.evaluate(top) - before) <= 2, mode
        seen[mode] = page.evaluate(shown)
    all_code = [c for c in cells(page.name) if c["cell_type"] == "code"]
    assert seen["none"] == 0 and seen["argument"] < seen["all"] == len(all_code), seen
    if page.name in MODELS:                              # the arrow keys move one and the same switch
        for key, mode in (("ArrowRight", "all"), ("ArrowLeft", "argument"), ("ArrowLeft", "none"), ("ArrowRight", "argument")):
            page.keyboard.press(key)
            page.evaluate(STILL)
            assert page.evaluate("document.documentElement.dataset.code") == mode and abs(section.evaluate(top) - before) <= 2, key


@some_chapters
def test_the_code_switch_closes_the_detours_that_it_opened(page):
    opened = "[...document.querySelectorAll('.cx-detour')].map(d => d.open)"
    page.locator(".cx-codes label", has_text="argument").click()
    detours = page.locator(".cx-detour > summary")
    if not detours.count():
        pytest.skip("no detours")
    detours.first.click()                                                        # this one the reader's own hand has opened
    before = page.evaluate(opened)
    assert before == [True] + [False]*(detours.count() - 1)
    page.locator(".cx-codes label", has_text="all").click()
    assert all(page.evaluate(opened))
    page.locator(".cx-codes label", has_text="argument").click()
    assert page.evaluate(opened) == before
    detours.first.click()


@some_chapters
def test_the_contents_show_where_the_reader_is(page):
    links = page.locator("#pst-page-toc-nav a.nav-link")
    for k in (links.count() - 2, 1):
        page.evaluate("id => document.getElementById(id).scrollIntoView({ behavior: 'instant' })", links.nth(k).get_attribute("href")[1:])
        page.evaluate(STILL)
        assert links.nth(k).evaluate("e => e.classList.contains('active')"), links.nth(k).inner_text()


@each_chapter
def test_the_contents_list_the_sections_of_use(page):
    shown = page.evaluate(r"""[...document.querySelectorAll('#pst-page-toc-nav li.toc-h2')].filter(li => /^\s*Use\b/.test(li.textContent))
        .flatMap(li => [...li.querySelectorAll('li.toc-h3 > a')]).map(a => a.checkVisibility({ visibilityProperty: true }) && a.getClientRects().length > 0)""")
    assert len(shown) >= 2 and all(shown)


@pytest.mark.parametrize("name", sorted(MODELS))
def test_the_first_screen_of_a_phone_has_a_picture(book, name):
    page = book.chromium.new_context(viewport=PHONE).new_page()
    page.goto(book.address + name, wait_until="load")
    page.evaluate(built.TYPESET)
    assert page.evaluate(measure.MEET)["first"] < PHONE["height"]


@pytest.mark.parametrize("name", sorted(MODELS))
def test_without_scripts_everything_can_be_read(book, name):
    """The styles are the same on all pages; what they speak of is counted in each file below."""
    page = book.chromium.new_context(viewport=built.DESK, java_script_enabled=False).new_page()
    page.goto(book.address + name, wait_until="load")
    answers = page.locator(".admonition.answer")
    assert answers.count() == 1 and answers.is_visible()
    proofs = page.locator("details.cx-proof > summary")
    folded = "e => !!e.parentElement.parentElement.closest('details:not([open])')"
    assert proofs.count() and all(s.is_visible() for s in proofs.all() if not s.evaluate(folded))


@pytest.mark.parametrize("name", CHAPTERS)
def test_the_answer_and_the_proofs_stand_in_the_file(name):
    text = (HTML/name).read_text(encoding="utf-8")
    assert len(re.findall(r'<div class="answer admonition"', text)) == 1
    proofs = len(layers.bind(cells(name))[0])
    assert text.count('<a class="cx-qed"') == proofs <= len(re.findall(r'<details class="[^"]*\bcx-proof\b', text))


# --- figures: explorers, players, charts of a pipeline

# In the page, a whole figure at once: `state` is what a figure shows, everything but its controls; `drawn` does now what a
# script wants done in the next frame; `odd` is what no reader should see. The page's address is changed once, in the end:
# each change is work for the whole browser.
ALIVE = """const state = f => { const g = f.cloneNode(true);
        g.querySelectorAll('input, select, button, output, label').forEach(e => e.remove());
        return [...g.querySelectorAll('svg')].map(s => s.outerHTML).join('') + g.textContent; };
    const waiting = [], frame = window.requestAnimationFrame;
    let address = null;
    const drawn = () => { while (waiting.length) waiting.shift()(performance.now()); };
    const set = (input, value) => { input.value = value; input.dispatchEvent(new Event('input', { bubbles: true }));
        input.dispatchEvent(new Event('change', { bubbles: true })); drawn(); };
    const usable = e => !e.disabled && e.checkVisibility({ checkVisibilityCSS: true, checkOpacity: true });
    const odd = s => /NaN|undefined|Infinity/.test(s);
    window.requestAnimationFrame = (f) => waiting.push(f);
    history.replaceState = (...to) => { address = to; };
    try { return play(); }
    finally { drawn(); window.requestAnimationFrame = frame; delete history.replaceState; if (address) history.replaceState(...address); }"""

# For each slider its name, and how many pictures it shows at two steps up, at its first, its last and its last but one stop.
SLIDERS = """figure => { function play() {
    return [...figure.querySelectorAll('input[type=range]')].map((s) => {
        const seen = new Set([state(figure)]), [lo, hi, at] = [s.min, s.max, s.value].map(Number);
        if (usable(s)) for (const v of [at + 1, at + 2, lo, hi, hi - 1]) { set(s, Math.max(lo, Math.min(hi, v))); seen.add(state(figure)); }
        return { name: s.ariaLabel || [...s.labels].map(l => l.textContent).join(), seen: seen.size, odd: [...seen].some(odd) };
    }); }""" + ALIVE + "}"

# For each control that can be used: whether another choice, or the other end, shows something else.
CHOICES = """figure => { function play() {
    return [...figure.querySelectorAll('input[type=radio], input[type=range]')].map((c, i) => {
        if (c.disabled || c.type === 'radio' && c.checked) return null;
        const before = state(figure);
        if (c.type === 'radio') { c.click(); drawn(); } else if (usable(c)) set(c, c.value !== c.max ? c.max : c.min);
        const after = state(figure);
        return { name: `control ${i}`, moved: after !== before, odd: odd(after) };
    }).filter(Boolean); }""" + ALIVE + "}"

# The picture and the sentence of each step, by the arrow key from the first on.
STEPS = """figure => { function play() {
    const first = [...figure.querySelectorAll('button')].find(b => b.textContent === 'First'), seen = []; figure.cx.go(0);
    for (let k = 0; k <= Number(figure.querySelector('input[type=range]').max); k++) {
        seen.push([figure.querySelector('svg[role=img]').outerHTML, figure.querySelector('[aria-live=polite]').innerText]);
        first.dispatchEvent(new KeyboardEvent('keydown', { key: 'ArrowRight', bubbles: true, cancelable: true }));
        drawn();
    }
    return seen.map(([svg, said]) => [svg, said, odd(svg)]); }""" + ALIVE + "}"


def figures(page, kind):
    """The figures of a kind, as many as the file has; each takes a script. No handles: they load a script into the page that is long."""
    count = (HTML/page.name).read_text(encoding="utf-8").count(f'class="{kind}"')
    assert page.evaluate(f"document.querySelectorAll('figure.{kind}').length") == count
    return [lambda script, k=k: page.evaluate(f"() => ({script})(document.querySelectorAll('figure.{kind}')[{k}])") for k in range(count)]


def by_keys(page, figure, *keys):
    """Whether real keys at the sliders change what the figure shows; one that does is enough."""
    sliders = "figure.querySelectorAll('input[type=range]:enabled')"
    figure("figure => { function play() { figure.before = state(figure); }" + ALIVE + "}")
    for k in range(figure(f"figure => {sliders}.length")):
        figure(f"figure => {sliders}[{k}].focus()")
        for key in keys:
            page.keyboard.press(key)
            page.evaluate(DRAWN)
            if figure("figure => { function play() { return state(figure) !== figure.before; }" + ALIVE + "}"):
                return True
    return False


def test_every_slider_moves_the_picture(page):
    for figure in figures(page, "cx-explore"):
        sliders = figure(SLIDERS)
        assert sliders, "a figure without a slider"
        for slider in sliders:
            assert slider["name"].strip(), "a slider without a name"
            assert slider["seen"] > 1, f"{slider['name']}: nothing moved"
            assert not slider["odd"], slider["name"]
        assert by_keys(page, figure, "Home", "End"), "the keyboard moves nothing"
    assert page.log.console == []


def test_every_step_is_drawn_and_said(page):
    for figure in figures(page, "cx-stepper"):
        last, rows = figure("f => [Number(f.querySelector('input[type=range]').max), f.querySelectorAll('tbody tr').length]")
        seen, said, odd = zip(*figure(STEPS))
        assert len(set(seen)) == last + 1 and not any(odd)
        assert [s.partition(":")[0] for s in said] == ["Start", *(f"Step {k} of {last}" for k in range(1, last + 1))]
        assert rows == last + 1
        assert by_keys(page, figure, "Home"), "the keyboard moves nothing"
    assert page.log.console == []


def test_every_choice_and_slider_redraws_the_chart(page):
    for figure in figures(page, "cx-gantt"):
        controls = figure(CHOICES)
        assert controls
        for control in controls:
            assert control["moved"], f"{control['name']}: nothing moved"
            assert not control["odd"], control["name"]
        assert by_keys(page, figure, "Home", "End"), "the keyboard moves nothing"
    assert page.log.console == []


# As many redraws of a figure as are asked for, by all its controls in turn, as while a hand drags them; in a listener, for the
# browser does not count what a script does that was handed to it for evaluation.
REDRAWS = """([name, n]) => { const figure = document.querySelector(`figure[id="${name}"]`), redraw = () => {
    for (let k = 0; k < n;) for (const c of figure.querySelectorAll('input')) {
        if (k++ >= n || c.disabled) continue;
        if (c.type === 'range') c.value = (Number(c.value) + 1) % (1 + Number(c.max)); else c.checked = true;
        c.dispatchEvent(new Event(c.type === 'range' ? 'input' : 'change', { bubbles: true }));
        drawn();
    } };
    function play() { addEventListener('redraw', redraw, { once: true }); dispatchEvent(new Event('redraw')); }""" + ALIVE + "}"


@each_chapter
def test_a_redraw_takes_less_than_six_milliseconds(page):
    """Of the processor's time, which a busy machine stretches less than the clock's; the best of three rounds, from the start on."""
    devtools, took = page.context.new_cdp_session(page), {}
    devtools.send("Performance.setTimeDomain", {"timeDomain": "threadTicks"})
    devtools.send("Performance.enable")
    page.evaluate(RESET)
    for name in page.evaluate("[...document.querySelectorAll('figure:is(.cx-explore, .cx-gantt, .cx-stepper)[data-spec]')].map(f => f.id)"):
        rounds = []
        page.evaluate(REDRAWS, [name, 30])
        for _ in range(3):
            before, _, after = script_time(devtools), page.evaluate(REDRAWS, [name, 20]), script_time(devtools)
            rounds.append(1e3*(after - before)/20)
        took[name] = min(rounds)
    devtools.detach()
    assert all(ms < 6 for ms in took.values()), took


def script_time(devtools):
    """Seconds that the page's scripts have taken."""
    return next(m["value"] for m in devtools.send("Performance.getMetrics")["metrics"] if m["name"] == "ScriptDuration")


# --- the same page in the dark, and on a phone

# Colours fade for a while where they are changed; here they are at once what they will be.
DARK = """() => {
    document.head.insertAdjacentHTML('beforeend', '<style>*, ::before, ::after { transition: none !important; }</style>');
    document.documentElement.dataset.theme = 'dark'; }"""


def test_text_stands_out_in_the_dark(page):
    """After the figures, whose controls have been used, for the page stays dark."""
    page.evaluate(DARK)
    assert page.evaluate(FAINT, 4.5) == {}
    assert page.evaluate(BOXES) == []
    dark = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert sum(int(float(x)) for x in dark.strip("rgba()").split(",")[:3]) < 200
    unturned = page.evaluate("[...document.querySelectorAll('.cell_output img')].filter(e => !getComputedStyle(e).filter.includes('invert')).length")
    assert unturned == 0, "a figure keeps its black ink on the dark page"


WIDE = """() => {
    const w = document.documentElement.clientWidth;
    if (document.documentElement.scrollWidth <= w) return [];
    const boxes = '.math, .pst-scrollable-table-container, .output, pre, mjx-container, .bd-sidebar-secondary';
    return [...document.querySelectorAll('main *')]
        .filter(e => e.getBoundingClientRect().right > w + 1 && !e.closest(boxes)).slice(0, 8)
        .map(e => e.tagName + '.' + e.className + ': ' + e.textContent.trim().slice(0, 60));
}"""


def fits(page):
    """The page leaves the screen of a phone nowhere, and on a chapter no formula its box."""
    assert page.evaluate("document.documentElement.scrollWidth") <= 375, page.evaluate(WIDE)
    if "/chapters/" in page.url:
        assert page.evaluate("""[...document.querySelectorAll('mjx-container[display=true]')].filter(
            e => e.scrollWidth > e.clientWidth + 1).map(e => e.textContent)""") == [], "formulas that must be pushed aside"


def test_fits_a_phone(page):
    """With the figures as they have been left.  From here on the page stays narrow (and dark): a new width is a new layout of all."""
    page.set_viewport_size(PHONE)
    page.evaluate(DRAWN)
    fits(page)
    squeezed = page.evaluate("""[...document.querySelectorAll('.bd-article img')].filter(e => {
        const shown = e.width/e.height, drawn = e.naturalWidth/e.naturalHeight;
        return Math.abs(shown/drawn - 1) > .05; }).map(e => e.alt)""")
    assert squeezed == []


@of(*KINDS)
def test_nothing_is_clipped_on_a_phone(page):
    assert [box for box in wide(page, 375) if not box.startswith(SCROLLS)] == []


# Figures as a reader finds them.
RESET = """() => {
    document.querySelectorAll(':is(.cx-explore, .cx-gantt) .cx-foot > button').forEach(e => e.click());
    document.querySelectorAll('.cx-stepper fieldset > label:first-of-type > input').forEach(e => e.click());
    document.querySelectorAll('.cx-stepper').forEach(f => f.cx.go(0)); }"""


@each_chapter
def test_nothing_is_wider_than_its_box_on_a_phone(page):
    page.set_viewport_size(PHONE)
    page.evaluate(RESET)
    assert wide(page, 375) == []


# Where the one button is that has these words, in the middle of the screen, and whether a click there would meet it.
BUTTON = """words => { const [button, ...more] = [...document.querySelectorAll('button')].filter(b => b.textContent.includes(words));
    button.scrollIntoView({ block: 'center', behavior: 'instant' });
    const { x, y, width, height } = button.getBoundingClientRect(), at = [x + width/2, y + height/2];
    return [at, !more.length && button.contains(document.elementFromPoint(...at))]; }"""
SEEN = "document.querySelector('.admonition.answer').checkVisibility({ visibilityProperty: true })"
# The number, what is said with it, and where it stands and each row of the strip: left and right, top and bottom, of label and value.
ANSWER = """() => { const one = s => { const found = document.querySelectorAll(s); if (found.length !== 1) throw Error(`${found.length} of ${s}`); return found[0]; };
    const sides = e => { const { left, right, top, bottom } = e.getBoundingClientRect(); return [left, right, top, bottom]; }, number = one('.cx-answer .truth b');
    return [number.innerText, ['answer', 'remember'].map(s => one('.admonition.' + s).innerText), sides(number),
        [...document.querySelectorAll('.cx-answer .cx-strip > li')].map(li => ['span', 'b'].map(s => sides(li.querySelector(s))))]; }"""


@each_chapter
def test_the_answer_on_a_phone(page):
    """Hidden until asked for; then it stands in the screen, with the number that ends the chapter, which Remember repeats."""
    page.set_viewport_size(PHONE)
    assert not page.evaluate(SEEN)
    at, there = page.evaluate(BUTTON, "Just tell me")
    assert there
    page.mouse.click(*at)
    assert page.evaluate(SEEN)
    said, places, (left, right, *_), rows = page.evaluate(ANSWER)
    number = re.search(r"[\d.,]*\d", said)[0]
    for said in places:
        assert re.search(rf"(?<![\d.,]){re.escape(number)}(?![\d])", said) or NUMBERS.get(number, "?") in said.lower(), f"{number}: {said}"
    assert 0 <= left < right <= 375
    for label, value in rows:
        assert label[2] < value[3] and value[2] < label[3], "a number beside another's label"
    fits(page)


NUMBERS = dict(zip(map(str, range(1, 13)), "one two three four five six seven eight nine ten eleven twelve".split()))


@pytest.mark.parametrize("width", [768, "print"])
@pytest.mark.parametrize("page", CHAPTERS + FURTHER, indirect=True, scope="module")
def test_nothing_is_wider_than_its_box_on_a_tablet_or_on_paper(page, width):
    assert wide(page, width) == []


# --- on paper, on which the page stays

@of(CHAPTER)
def test_on_paper(page):
    """What is cited stands at the end of a chapter, the contents do not stand at its head, and pictures are there."""
    page.emulate_media(media="print")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    cited = page.evaluate("[...new Set([...document.querySelectorAll('.bibtex-citation a')].map(a => Number(a.textContent)))].sort((a, b) => a - b)")
    assert page.evaluate("[...document.querySelectorAll('.cx-cited li')].map(e => e.value)") == cited != []
    assert page.locator(".cx-explore .cx-picture svg:visible").count() and not page.locator(".bd-sidebar-secondary:visible, #jb-print-toc:visible").count()
    assert page.evaluate("[...document.styleSheets].some(s => [...s.cssRules].some(r => r instanceof CSSPageRule && r.cssText.includes('counter(page)')))")
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert page.locator(".cx-cited").count() == 0


@pytest.mark.parametrize("page, choices", [("chapters/16-pipeline-parallelism-separability.html", ".cx-gantt .cx-choice"),
                                           ("chapters/12-ring-and-tree-algorithms.html", ".cx-stepper .cx-choice")], indirect=["page"], scope="module")
def test_paper_says_what_is_chosen(page, choices):
    """Of each row of choices the one that is drawn."""
    page.emulate_media(media="print")
    said = page.eval_on_selector_all(choices, """es => es.map(e => [e.querySelector('legend').checkVisibility(),
        [...e.querySelectorAll('label')].filter(l => l.checkVisibility()).map(l => [l.textContent, l.firstChild.checked])])""")
    assert said and all(legend and len(shown) == 1 and shown[0][1] for legend, shown in said), said


@of("chapters/18-expert-parallelism-sparsity.html", "chapters/27-configuration-search.html")
def test_paper_shows_one_scene_and_its_name(page):
    """Of switches the scene that is chosen, and the words of the choice."""
    page.emulate_media(media="print")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    said = page.eval_on_selector_all(".cx-switches", """es => es.map(e => [e.closest('figure').querySelectorAll('.cx-scene').length,
        [...e.closest('figure').querySelectorAll('.cx-scene')].filter(s => s.checkVisibility()).length,
        [...e.querySelectorAll('fieldset')].map(f => [...f.querySelectorAll('label')].filter(l => l.checkVisibility())
            .map(l => l.querySelector('input').checked))])""")
    assert said and all(scenes > shown == 1 and rows and all(row == [True] for row in rows) for scenes, shown, rows in said), said


# --- without a server, without scripts

@pytest.mark.parametrize("kind", ["cx-stepper", "cx-gantt"])
def test_figure_is_a_table_without_scripts(kind):
    """In the file, which is what is seen without scripts."""
    assert having(kind)
    for name in having(kind):
        for figure in re.findall(rf'<figure class="{kind}".*?</figure>', (HTML/name).read_text(encoding="utf-8"), re.DOTALL):
            assert figure.partition("<tbody>")[2].count("<tr") > 2 and "<svg" not in figure, name


# --- finding one's way


def test_the_formulas_of_the_quiz_are_typeset(book):
    page = book.visit("toolkit.html?seed=7")
    assert page.locator(".cx-solved").count() > 24
    assert page.eval_on_selector_all(".cx-solved", "es => es.filter(e => !e.querySelector('mjx-container') || e.textContent.includes('\\\\(')).length") == 0
    assert "Seed 7." in page.locator(".cx-seed").inner_text() and page.locator(".cx-typed input").count() == page.locator(".cx-solved").count()


def test_captions_are_found_by_search(book):
    page, missing = book.visit("search.html?q=bandwidth"), []
    for name in CHAPTERS:
        says = next(c.says for c in (layers.read("".join(x["source"])) for x in cells(name) if x["cell_type"] == "code") if c.layer == "proof")
        words = sorted(re.findall(r"[a-z]{5,}", says), key=len)[-3:]
        found = page.evaluate("q => Search._performSearch(...Search._parseQuery(q)).map(r => r[0])", " ".join(words))
        missing += [f"{name}: {words}"]*(name.removesuffix(".html") not in found)
    assert missing == []


def test_theme_button_makes_it_dark(book):
    page = book.visit("index.html")
    for _ in range(3):
        page.locator(".theme-switch-button:visible").first.click()
        if page.evaluate("document.documentElement.dataset.theme") == "dark":
            break
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"

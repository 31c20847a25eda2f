"""The built book in a real Chromium: offline, clean, light, narrow enough, readable in the dark.

`make html` first. BOOK_HTML names another built book, BROWSER_PATH another browser.
"""
import gzip
import os
from pathlib import Path

import pytest

import browser as tools
from serve import serve

ROOT = Path(__file__).resolve().parents[1]
HTML = Path(os.environ.get("BOOK_HTML", ROOT / "_build/html"))
ASIDE = {"_static", "_sources", "_images", "_downloads", "_sphinx_design_static"}
PAGES = sorted(p.relative_to(HTML).as_posix() for p in HTML.rglob("*.html")
               if not ASIDE & set(p.relative_to(HTML).parts) and p.name != "genindex.html")
EXPLORERS, PLAYERS, CHARTS = ([p for p in PAGES if f'class="{kind}"' in (HTML / p).read_text(encoding="utf-8")]
                      for kind in ("cx-explore", "cx-stepper", "cx-gantt"))
PICTURES = {"image/png", "image/jpeg", "image/svg+xml", "image/gif"}
HARMLESS = ["theme mode"]                   # the theme says so on a first visit
LIGHT, DESK, PHONE = 1_000_000, {"width": 1280, "height": 900}, {"width": 375, "height": 812}


@pytest.fixture(scope="module")
def site():
    """(address, browser). Without a browser: skipped, or failed where CI is set. Without a book: failed."""
    if not PAGES:
        pytest.fail(f"no built book in {HTML}: make html")
    if not tools.find():
        (pytest.fail if os.environ.get("CI") else pytest.skip)(tools.MISSING)
    with serve(HTML) as address, tools.chromium() as chromium:
        yield address, chromium


def visit(site, name, **context):
    """A page, opened and settled, with its log and its responses."""
    address, chromium = site
    page = chromium.new_context(viewport=DESK, **context).new_page()
    page.log, page.responses = tools.Log(page), []
    page.on("response", lambda r: page.responses.append(r))
    page.goto(address + name, wait_until="load")
    typeset(page)
    return page


def typeset(page):
    """Wait until all mathematics is typeset, not only what is on the screen."""
    page.evaluate("""async () => {
        await window.MathJax?.startup?.promise;
        await window.MathJax?.startup?.document?.lazyTypesetAll?.();
    }""")


@pytest.fixture(scope="module", params=PAGES or ["index.html"])
def page(request, site):
    """One visit for all the tests of a page."""
    page = visit(site, request.param)
    yield page
    page.context.close()


def test_asks_no_other_host(page):
    assert page.log.external == []


def test_has_no_errors(page):
    assert page.log.failed == []
    assert [c for c in page.log.console if not any(h in c for h in HARMLESS)] == []


def test_names_no_script_or_style_of_another_host(page):
    named = page.eval_on_selector_all("script[src], link[rel=stylesheet], img, iframe",
                                      "es => es.map(e => e.src || e.href)")
    assert [n for n in named if n and not n.startswith(("http://127.0.0.1", "data:"))] == []


def test_mathematics_is_typeset(page):
    assert page.locator("mjx-merror").count() == 0
    left = page.eval_on_selector_all(
        ".math", r"es => es.map(e => e.textContent).filter(t => /\\[(\[]/.test(t))")
    assert left == [], "not typeset"


def test_is_light(page):
    """Everything but pictures, compressed as a server would, weighs less than 1 MB."""
    sizes = {r.url: len(gzip.compress(r.body())) for r in page.responses
             if r.headers.get("content-type", "").split(";")[0] not in PICTURES}
    heavy = sorted(sizes.items(), key=lambda x: -x[1])[:5]
    assert sum(sizes.values()) < LIGHT, f"{sum(sizes.values())} bytes: {heavy}"


def test_every_picture_has_words(page):
    bare = page.eval_on_selector_all(".bd-article img",
                                     "es => es.filter(e => !e.alt).map(e => e.src)")
    assert bare == []


def test_code_has_no_scroll_bar(page):
    if "/chapters/" in page.url:
        wide = page.eval_on_selector_all(
            ".cell_input pre",
            "es => es.filter(e => e.scrollWidth > e.clientWidth + 1).map(e => e.textContent)")
        assert wide == []


WIDE = """() => {
    const w = document.documentElement.clientWidth;
    if (document.documentElement.scrollWidth <= w) return [];
    const boxes = '.math, .pst-scrollable-table-container, .output, pre, mjx-container, .bd-sidebar-secondary';
    return [...document.querySelectorAll('main *')]
        .filter(e => e.getBoundingClientRect().right > w + 1 && !e.closest(boxes)).slice(0, 8)
        .map(e => e.tagName + '.' + e.className + ': ' + e.textContent.trim().slice(0, 60));
}"""


def test_fits_a_phone(page):
    page.set_viewport_size(PHONE)
    try:
        typeset(page)
        assert page.evaluate("document.documentElement.scrollWidth") <= 375, page.evaluate(WIDE)
        squeezed = page.eval_on_selector_all(".bd-article img", """es => es.filter(e => {
            const shown = e.width/e.height, drawn = e.naturalWidth/e.naturalHeight;
            return Math.abs(shown/drawn - 1) > .05; }).map(e => e.alt)""")
        assert squeezed == []
    finally:
        page.set_viewport_size(DESK)


# The contrast of every visible piece of text with what lies behind it, as WCAG counts it.
FAINT = """least => {
    const rgba = c => { const m = c.match(/[\\d.]+/g).map(Number);
        const k = c.startsWith('color(srgb') ? 255 : 1;
        return [m[0]*k, m[1]*k, m[2]*k, m[3] ?? 1]; };
    const over = (a, b) => [0, 1, 2].map(i => a[i]*a[3] + b[i]*(1 - a[3]));
    const linear = v => v <= .04045 ? v/12.92 : ((v + .055)/1.055)**2.4;
    const light = c => { const [r, g, b] = c.map(v => linear(v/255));
        return .2126*r + .7152*g + .0722*b; };
    const ground = e => { const layers = [];
        for (; e; e = e.parentElement) layers.push(rgba(getComputedStyle(e).backgroundColor));
        return layers.reverse().reduce((under, c) => over(c, under), [255, 255, 255]); };
    const bad = {};
    const walk = document.createTreeWalker(document.querySelector('.bd-main'), NodeFilter.SHOW_TEXT);
    while (walk.nextNode()) {
        const e = walk.currentNode.parentElement, s = getComputedStyle(e);
        if (!walk.currentNode.textContent.trim()) continue;
        if (!e.checkVisibility({checkVisibilityCSS: true, checkOpacity: true})) continue;
        if (e.closest('script, style, mjx-assistive-mml, .headerlink, .visually-hidden')) continue;
        if (e.closest('[aria-hidden=true]:not(mjx-container *)')) continue;
        if (e.getBoundingClientRect().width < 2) continue;
        const back = ground(e), front = over(rgba(e instanceof SVGElement ? s.fill : s.color), back);
        const [a, b] = [light(front), light(back)];
        const ratio = (Math.max(a, b) + .05)/(Math.min(a, b) + .05);
        const need = parseFloat(s.fontSize) >= 24 ? Math.min(3, least) : least;
        if (ratio < need) bad[e.tagName + '.' + (e.className.baseVal ?? e.className)] =
            ratio.toFixed(2) + ' ' + walk.currentNode.textContent.trim().slice(0, 40);
    }
    return bad;
}"""
# A picture must not lie on a light box; the theme draws one behind pictures and HTML outputs.
BOXES = """() => [...document.querySelectorAll('.cell_output img, .cell_output .text_html')].filter(e => {
    const m = getComputedStyle(e).backgroundColor.match(/[\\d.]+/g).map(Number);
    return (m[3] ?? 1) > .1 && (m[0] + m[1] + m[2])/3 > 128; }).map(e => e.outerHTML.slice(0, 120))"""


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_text_stands_out(page, theme):
    page.evaluate("t => { document.documentElement.dataset.theme = t; }", theme)
    try:
        page.wait_for_timeout(200)          # colours fade
        assert page.evaluate(FAINT, 4.5) == {}
        if theme == "dark":
            assert page.evaluate(BOXES) == []
            dark = page.evaluate("getComputedStyle(document.body).backgroundColor")
            assert sum(int(float(x)) for x in dark.strip("rgba()").split(",")[:3]) < 200
            unturned = page.eval_on_selector_all(
                ".cell_output img",
                "es => es.filter(e => !getComputedStyle(e).filter.includes('invert')).length")
            assert unturned == 0, "a figure keeps its black ink on the dark page"
    finally:
        page.evaluate("() => { document.documentElement.dataset.theme = 'light'; }")


# --- explorers

# What a figure shows: everything but its controls.
STATE = """f => { const g = f.cloneNode(true);
    g.querySelectorAll('input, select, button, output, label').forEach(e => e.remove());
    return [...g.querySelectorAll('svg')].map(s => s.outerHTML).join('') + g.textContent; }"""

DRAWN = "() => new Promise(r => requestAnimationFrame(() => requestAnimationFrame(r)))"


@pytest.mark.parametrize("name", EXPLORERS)
def test_every_slider_moves_the_picture(site, name):
    page = visit(site, name)
    figures = page.locator("figure.cx-explore").all()
    assert figures
    for figure in figures:
        sliders = figure.locator("input[type=range]").all()
        assert sliders, "a figure without a slider"
        for slider in sliders:
            label = slider.evaluate("s => s.ariaLabel || [...s.labels].map(l => l.textContent).join()")
            assert label.strip(), "a slider without a name"
            seen = {figure.evaluate(STATE)}
            slider.focus()
            for key in ("ArrowRight", "ArrowRight", "Home", "End", "ArrowLeft"):
                slider.press(key)
                page.evaluate(DRAWN)
                seen.add(figure.evaluate(STATE))
            assert len(seen) > 1, f"{label}: nothing moved"
            assert not any(w in s for s in seen for w in ("NaN", "undefined", "Infinity")), label
    assert [c for c in page.log.console if not any(h in c for h in HARMLESS)] == []
    page.context.close()


@pytest.mark.parametrize("name", EXPLORERS[:1])
def test_explorer_lives_without_a_server(site, name):
    """From file://, as after unpacking an archive."""
    page = site[1].new_page()
    page.goto((HTML / name).as_uri(), wait_until="load")
    assert page.locator("figure.cx-explore").first.locator("svg path").count() > 0
    page.close()


# --- players

@pytest.mark.parametrize("name", PLAYERS)
def test_every_step_is_drawn_and_said(site, name):
    page = visit(site, name)
    figures = page.locator("figure.cx-stepper").all()
    assert figures
    for figure in figures:
        last = int(figure.locator("input[type=range]").get_attribute("max"))
        figure.get_by_role("button", name="First").focus()
        seen, said = [], []
        for _ in range(last + 1):
            seen.append(figure.locator("svg[role=img]").evaluate("s => s.outerHTML"))
            said.append(figure.locator("[aria-live=polite]").inner_text())
            page.keyboard.press("ArrowRight")
        assert len(set(seen)) == last + 1 and not any(w in s for s in seen for w in ("NaN", "undefined"))
        assert [s.partition(":")[0] for s in said] == ["Start", *(f"Step {k} of {last}" for k in range(1, last + 1))]
        assert figure.locator("tbody tr").count() == last + 1
    assert [c for c in page.log.console if not any(h in c for h in HARMLESS)] == []
    page.context.close()


@pytest.mark.parametrize("name", PLAYERS)
def test_player_is_a_table_without_scripts(site, name):
    page = visit(site, name, java_script_enabled=False)
    assert page.locator("figure.cx-stepper tbody tr").count() > 2 and page.locator("figure.cx-stepper svg").count() == 0
    page.context.close()


# --- charts of a pipeline

@pytest.mark.parametrize("name", CHARTS)
def test_every_choice_and_slider_redraws_the_chart(site, name):
    page = visit(site, name)
    figures = page.locator("figure.cx-gantt").all()
    assert figures
    for figure in figures:
        controls = figure.locator("input[type=radio], input[type=range]")
        for i in range(controls.count()):
            control = controls.nth(i)
            radio = control.get_attribute("type") == "radio"
            if control.is_disabled() or radio and control.is_checked():
                continue
            before = figure.evaluate(STATE)
            if radio:
                control.check(force=True)
            else:
                control.press("End" if control.input_value() != control.get_attribute("max") else "Home")
            page.evaluate(DRAWN)
            after = figure.evaluate(STATE)
            assert after != before, f"control {i}: nothing moved"
            assert not any(w in after for w in ("NaN", "undefined", "Infinity"))
    assert [c for c in page.log.console if not any(h in c for h in HARMLESS)] == []
    page.context.close()


@pytest.mark.parametrize("name", CHARTS)
def test_chart_is_a_table_without_scripts(site, name):
    page = visit(site, name, java_script_enabled=False)
    assert page.locator("figure.cx-gantt tbody tr").count() > 2 and page.locator("figure.cx-gantt svg").count() == 0
    page.context.close()


# --- finding one's way

def test_search_finds_a_word(site):
    page = visit(site, "search.html?q=bandwidth")
    page.wait_for_selector("#search-results li", timeout=10_000)
    assert page.locator("#search-results li").count() > 0
    assert page.log.external == []
    page.context.close()


def test_side_bars_open_on_a_phone(site):
    page = visit(site, next((p for p in PAGES if p.startswith("chapters/")), "index.html"))
    page.set_viewport_size(PHONE)
    page.locator(".primary-toggle:visible").click()
    page.locator("dialog[open] >> text=Preface").wait_for(timeout=3000)
    page.context.close()


def test_theme_button_makes_it_dark(site):
    page = visit(site, "index.html", color_scheme="light")
    for _ in range(3):
        page.locator(".theme-switch-button:visible").first.click()
        if page.evaluate("document.documentElement.dataset.theme") == "dark":
            break
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"
    page.context.close()

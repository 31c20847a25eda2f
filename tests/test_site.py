"""The site around the chapters: what the search finds first, what a page weighs, moves and fails to tell, and that its links live.

`make html` first. One visit for each kind of page.
"""
import html
import json
import re
from contextlib import contextmanager
from itertools import product
from pathlib import Path
from urllib.parse import unquote, urldefrag, urlparse

import pytest

import built
from built import DESK, HTML, PHONE, compressed

# What people type, and the page that they should find first; written down before the search was asked. The first 32 are counted.
QUERIES = {
    "tensor parallelism": "chapters/15", "MoE": "chapters/18", "allreduce": "chapters/11", "all-reduce": "chapters/11",
    "HBM bandwidth H100": "appendices/hardware", "ZeRO": "chapters/20", "FSDP": "chapters/20", "sequence parallelism": "chapters/15",
    "expert parallelism": "chapters/18", "ring attention": "chapters/17", "data parallel": "chapters/14", "alpha-beta model": "chapters/04",
    "NVLink bandwidth": "appendices/hardware", "attention flops": "chapters/01", "overlap communication": "chapters/31-",
    "B200": "appendices/hardware", "chinchilla": "chapters/08", "zero bubble": "chapters/16", "roofline": "chapters/02",
    "pipeline bubble": "chapters/16", "critical batch size": "chapters/10", "DualPipe": "chapters/31a", "checkpoint interval": "chapters/26",
    "MFU": "chapters/01", "KV cache": "chapters/31b", "speculative decoding": "chapters/31b", "fp8": "chapters/30",
    "gradient accumulation": "chapters/14", "activation checkpointing": "chapters/21", "straggler": "chapters/29", "DiLoCo": "chapters/29",
    "PowerSGD": "chapters/28",
    "GRPO": "chapters/36a", "context parallelism": "chapters/17", "mixture of experts": "chapters/18", "flash attention": "chapters/17",
    "learning rate": "chapters/10", "batch size": "chapters/10", "pipeline": "chapters/16", "gradient checkpointing": "chapters/21",
    "NVLink": "chapters/03-", "bubble": "chapters/16", "reduce-scatter": "chapters/11", "offloading": "chapters/22",
    "gradient compression": "chapters/28", "device mesh": "chapters/23", "3D parallelism": "chapters/24", "ring all-reduce": "chapters/12",
    "Llama 3": "chapters/34", "DeepSeek-V3": "chapters/35", "Mixtral": "chapters/36-", "activation memory": "chapters/19",
    "data loading": "chapters/03a", "rematerialization": "chapters/21", "loss scaling": "chapters/30", "FLOPs per token": "chapters/01",
    "profiler": "chapters/32", "reinforcement learning": "chapters/36a", "all reduce": "chapters/11", "glossary": "appendices/glossary",
}
FIRST = 32
# Written down before the search was tuned to them: what a reader asks for by another name, or in passing.
OTHERS = {
    "router": "chapters/18", "sequence length": "chapters/17", "recursive doubling": "chapters/04", "zigzag": "chapters/17",
    "trace": "chapters/32", "memory bound": "chapters/02", "batch invariance": "chapters/14", "grokking": "chapters/09",
    "spot instances": "chapters/05", "quantization": "chapters/30", "mixed precision": "chapters/30",
    "how many GPUs do I need": "plan", "token dropping": "chapters/18", "Adafactor": "chapters/19", "perfetto": "chapters/32",
    "NCCL": "chapters/13-", "goodput": "chapters/26", "InfiniBand bandwidth": "appendices/hardware", "Megatron": "chapters/15",
    "alltoall": "chapters/11", "prefill": "chapters/31b", "loss spike": "chapters/33", "warmup": "chapters/10", "rail-optimized": "chapters/03-",
    "torus": "chapters/13a", "dataloader": "chapters/03a", "noise scale": "chapters/10", "price of a GPU hour": "chapters/05",
    "silent data corruption": "chapters/26", "load balancing": "chapters/18",
}

# A page of each kind.
PAGES = ["index.html", "chapters/04-alpha-beta-model.html", "exercises/15-tensor-parallelism-linearity.html",
         "solutions/15-tensor-parallelism-linearity.html", "appendices/formulas.html", "appendices/hardware.html", "toolkit.html", "plan.html",
         "labs/alpha-beta.html", "search.html?q=bandwidth"]
PICTURES = {".png", ".jpg", ".jpeg", ".svg", ".gif"}
LIGHT, MOVED = 600_000, .1                     # bytes as a server sends them; layout shift, of which a tenth is called good
AXE = (Path(__file__).parent/"axe/axe.min.js").read_text(encoding="utf-8") + """;{
    // A page has a dozen colours, and axe would read each thousands of times.
    const { Color } = axe.commons.color, read = Color.prototype.parseString, known = new Map();
    Color.prototype.parseString = function (text) {
        if (!known.has(text)) {
            const { r, g, b, alpha } = read.call(new Color(), text);
            known.set(text, { r, g, b, alpha });
        }
        return Object.assign(this, known.get(text));
    }; 0; }"""

SHIFTS = """window.shifts = []; new PerformanceObserver(list => { for (const e of list.getEntries()) if (!e.hadRecentInput)
    shifts.push([e.value, ...e.sources.map(s => (s.node?.outerHTML ?? s.node?.textContent ?? '?').slice(0, 80))]);
}).observe({ type: 'layout-shift', buffered: true });"""
# Most of a page are parts of formulas, and a rule asks nothing of them but what TOLD names.  So a formula becomes its text, if it is
# not told about and nothing there scrolls; before colours are judged, each does, and what is folded goes, which has none.
SIMPLE = """() => { const TOLD = /^(role|tabindex|id|href|lang|title|alt|contenteditable|on.*|aria-(?!hidden$).*)$/;
    const told = [...document.querySelectorAll('mjx-container *')].filter(e => [...e.attributes].some(a => TOLD.test(a.name) || a.value.includes('!important')));
    const scroll = [...document.body.querySelectorAll(':not(mjx-container *)')].filter(e =>
        (e.scrollWidth > e.clientWidth || e.scrollHeight > e.clientHeight) && /auto|scroll/.test(getComputedStyle(e).overflow));
    const kept = new Set([...told.map(e => e.closest('mjx-container')), ...scroll.flatMap(e => [e, ...e.querySelectorAll('mjx-container')])]);
    for (const e of document.querySelectorAll('mjx-container')) if (!kept.has(e)) {
        e.querySelector('mjx-math').remove();
        e.firstChild.replaceChildren(e.textContent);
    } }"""
COLOURS = ["color-contrast", "link-in-text-block"]
BARE = """() => { document.querySelectorAll('mjx-container').forEach(e => e.replaceChildren(e.textContent));
    document.querySelectorAll('details:not([open]) > :not(summary)').forEach(e => e.remove()); }"""
VIOLATIONS = """async rules => (await axe.run(document, { resultTypes: ['violations'], ...rules })).violations.map(
    v => [v.id, v.nodes.length, v.nodes[0].target.join(' '), v.nodes[0].html.slice(0, 120)])"""
DARK = """() => { document.head.insertAdjacentHTML('beforeend', '<style>*, ::before, ::after { transition: none !important; }</style>');
    document.documentElement.dataset.theme = 'dark'; }"""
STOPPED = """() => new Promise(done => { let before = -1;
    const look = () => { if (scrollY === before) return done(); before = scrollY; setTimeout(look, 100); }; setTimeout(look, 100); })"""
BAR, HERE = ".bd-sidebar-primary", ".bd-sidebar-primary .current.active > a, .bd-sidebar-primary a.current"


@pytest.fixture(scope="module")
def book():
    with built.opened() as book:
        book.context.add_init_script(SHIFTS)
        yield book


def shift(page):
    """The sum of what moved on a page without the reader's hand, and what did."""
    moved = page.evaluate("shifts")
    return sum(m[0] for m in moved), sorted(moved, reverse=True)[:3]


@contextmanager
def first_visit(book, name, width):
    """A page that comes to rest with nothing in the cache, its `log`, and how much it `moved`; a busy machine may have a second try."""
    for last in (False, True):
        context = book.chromium.new_context(viewport=dict(width=width, height=900))
        context.add_init_script(SHIFTS)
        page = context.new_page()
        page.log = built.browser.Log(page)
        page.goto(book.address + name, wait_until="load")
        typeset = page.evaluate(built.SOON)
        page.evaluate("document.fonts.ready")
        page.wait_for_timeout(500)
        page.moved = shift(page)
        if last or typeset and page.moved[0] < MOVED:
            break
        context.close()
    assert typeset, f"{name}: its mathematics was not typeset in a minute, nor when it was loaded again"
    yield page
    context.close()


@pytest.fixture(scope="module", params=PAGES)
def page(request, book):
    """One visit for all the tests of a page: the first."""
    with first_visit(book, request.param, DESK["width"]) as page:
        page.evaluate(built.RESTS)
        page.name = request.param
        yield page


# --- one visit of a page of each kind
def test_is_light(page):
    own = page.name.partition("?")[0].rpartition("/")[2]
    files = {HTML/unquote(urlparse(url).path.lstrip("/")) for url in page.log.local if url.startswith("http")}
    sizes = {f.name: compressed(f) for f in files if f.suffix not in PICTURES and (f.suffix != ".html" or f.name == own)}    # quoted pages aside
    assert {own, "book.css"} <= {*sizes}
    assert sum(sizes.values()) < LIGHT, f"{sum(sizes.values())} bytes: {sorted(sizes.items(), key=lambda x: -x[1])[:6]}"


def test_is_quiet(page):
    assert (page.log.external, page.log.failed, page.log.console) == ([], [], [])


def test_says_what_it_is(page):
    assert page.locator("link[rel='icon']").count() == 1 and page.title() and page.locator("html").get_attribute("lang") == "en"
    assert page.locator("meta[name=viewport]").count() == 1
    if not page.name.startswith("search"):
        assert len(page.locator("meta[name=description]").get_attribute("content")) > 20
        assert page.locator("meta[property='og:title']").count() == page.locator("meta[property='og:description']").count() == 1


def test_stands_still(page):
    total, moved = page.moved
    assert total < MOVED, moved


@pytest.mark.parametrize("width", [768, 375])
@pytest.mark.parametrize("name", PAGES)
def test_stands_still_where_it_is_narrower(book, name, width):
    with first_visit(book, name, width) as page:
        total, moved = page.moved
    assert total < MOVED, moved


def test_its_icons_are_drawn(page):
    """Each sign that a rule asks for has a glyph in the font that was cut."""
    asked = page.evaluate("""async () => { await document.fonts.ready; const paper = new OffscreenCanvas(20, 20).getContext('2d');
        return [...document.querySelectorAll('i[class*="fa-"]')].filter(i => {
            const s = getComputedStyle(i, '::before'), sign = s.content.replaceAll('"', '');
            if (sign === 'none' || sign === 'normal') return true;
            const width = (family) => { paper.font = `900 16px ${family}`; return paper.measureText(sign).width; };
            return i.checkVisibility() && width(s.fontFamily) === width('serif');
        }).map(i => i.className); }""")
    assert asked == []


def test_is_seen_in_the_side_bar(page):
    if page.name.startswith(("search", "index")):
        return
    bar, here = page.locator(BAR).bounding_box(), page.locator(HERE).first.bounding_box()
    assert bar["y"] <= here["y"] <= bar["y"] + bar["height"] - here["height"]


def test_a_picture_that_changes_has_no_other_element_looked_at(page):
    """Styles are worked out anew for the picture, not for the thousands of elements around it, as a rule with :has() could ask for."""
    figure = page.locator("figure:is(.cx-explore, .cx-stepper)").first
    if not figure.count():
        return
    figure.scroll_into_view_if_needed()
    page.evaluate(built.RESTS)
    page.context.browser.start_tracing(page=page, categories=["devtools.timeline", "blink"])
    figure.evaluate("f => f.cx.draw ? f.cx.draw() : f.cx.go(3)")
    page.evaluate(built.RESTS)
    events = json.loads(page.context.browser.stop_tracing())["traceEvents"]
    styled = [e["args"]["elementCount"] for e in events if e["name"] == "UpdateLayoutTree" and "elementCount" in e["args"]]
    drawn, all_of_them = figure.evaluate("f => [f.querySelectorAll('.cx-picture *').length, document.querySelectorAll('*').length]")
    assert 20 < drawn < max(styled) + 20 and max(styled) < 2*drawn + 50 < all_of_them/10


def broken(page, rules=None):
    """What axe finds by all rules but those of colours, or by these."""
    page.evaluate(AXE)
    page.evaluate(SIMPLE)
    return page.evaluate(VIOLATIONS, {"runOnly": rules} if rules else {"rules": {rule: {"enabled": False} for rule in COLOURS}})


def pale(page):
    """What axe finds by the rules of colours."""
    page.evaluate(BARE)
    return page.evaluate(VIOLATIONS, {"runOnly": COLOURS})


def test_axe_finds_nothing(page):
    """All rules, but on the longest page those that it has broken; in the dark, where only colours differ, those of colours."""
    page.wait_for_function("""() => [...document.querySelectorAll('mjx-container[display]')].every(
        e => e.scrollWidth <= e.clientWidth + 1 || e.tabIndex === 0)""")                  # when the page rests, form.js lets keys reach what scrolls
    if page.name == "appendices/formulas.html":
        assert broken(page, ["scrollable-region-focusable", "empty-table-header"]) == []
        return
    assert broken(page) == pale(page) == []
    page.evaluate(DARK)
    assert pale(page) == []


@pytest.mark.parametrize("name", ["questions.html", "plan.html", "toolkit.html", "chapters/18-expert-parallelism-sparsity.html"])
def test_axe_finds_nothing_on_a_phone(book, name):
    """Of the chapter its tables alone, whose rows are cards there, with heads that are formulas: the whole of it takes axe half a minute."""
    page = book.visit(name)
    page.set_viewport_size(PHONE)
    page.evaluate(built.RESTS)
    page.wait_for_timeout(500)
    if name.startswith("chapters/"):
        page.evaluate("(() => { const all = document.querySelector('.bd-article'); all.replaceChildren(...all.querySelectorAll('h1, .cx-table')); })()")
        assert page.locator(".cx-cards tbody th[scope=row] > mjx-container:only-child").count() > 0
    assert broken(page) == pale(page) == []


# --- on entering in the middle, and on a phone
ENTERED = ["chapters/16-pipeline-parallelism-separability.html#where-it-breaks", "exercises/15-tensor-parallelism-linearity.html",
           "appendices/quick-reference.html", "appendices/hardware.html#clusters"]


@pytest.mark.parametrize("name, screen", [*product(ENTERED, [DESK, PHONE]), ("appendices/formulas.html#ring-all-reduce-time", PHONE)])
def test_stands_still_where_it_is_entered(book, name, screen):
    """Entered in the middle it comes to rest there, though what lies above is typeset meanwhile; a busy machine may have a second try."""
    for _ in range(2):
        page = book.context.new_page()
        page.set_viewport_size(screen)
        page.goto(book.address + name, wait_until="load")
        page.wait_for_function("!document.querySelector('.bd-article mjx-lazy')")     # by itself, a section at a time: all at once would move
        page.evaluate(built.RESTS)
        total, moved = shift(page)
        there = page.evaluate("() => !location.hash || Math.abs(document.getElementById(location.hash.slice(1)).getBoundingClientRect().top) < innerHeight/3")
        page.close()
        if total < MOVED:
            break
    assert total < MOVED, moved
    assert there, "what the address names is out of sight"


@pytest.mark.parametrize("name", ["chapters/16-pipeline-parallelism-separability.html", "teach.html"])
def test_the_line_that_was_read_is_found_again(book, name):
    """With mathematics above it or none; loaded again, and on the way back to it."""
    page = book.visit(name)
    page.evaluate("scrollTo({ top: .6*document.documentElement.scrollHeight, behavior: 'instant' })")
    page.evaluate(built.RESTS)
    line = """k => { const all = [...document.querySelectorAll('.bd-article section > :not(section)')];
        const at = k ?? all.findIndex(e => e.getBoundingClientRect().top > 100 && e.checkVisibility());
        return [at, all[at].getBoundingClientRect().top]; }"""
    at, before = page.evaluate(line)
    for again in ("reload", "back"):
        if again == "reload":
            page.reload(wait_until="load")
        else:
            page.goto(book.address + "questions.html", wait_until="load")
            page.go_back(wait_until="load")
        page.evaluate(built.TYPESET)
        page.evaluate(built.RESTS)
        assert at > 5 and page.evaluate(line, at)[1] == pytest.approx(before, abs=2), again


def test_the_side_bar_of_a_phone_opens_where_the_reader_is(book):
    page = book.visit("appendices/hardware.html")
    page.set_viewport_size(PHONE)
    page.locator(".primary-toggle:visible").click()
    page.locator("dialog[open]").wait_for(timeout=3000)
    page.evaluate(built.RESTS)
    here = page.locator("dialog[open] .current.active > a").bounding_box()
    assert 0 <= here["y"] <= PHONE["height"] - here["height"]


def test_the_contents_follow_the_wheel(book):
    """The section that is named is the last whose heading has passed three tenths of the window."""
    page = book.visit("chapters/16-pipeline-parallelism-separability.html")
    page.mouse.move(600, 500)
    for way in [900]*6 + [9000, -4000]:
        page.mouse.wheel(0, way)
        page.evaluate(STOPPED)
        named, right = page.evaluate("""() => { const links = [...document.querySelectorAll('#pst-page-toc-nav a.nav-link')];
            const passed = links.filter(a => { const h = document.getElementById(a.hash.slice(1));
                return h.checkVisibility() && h.getBoundingClientRect().top < .3*innerHeight; });
            return [links.filter(a => a.classList.contains('active')).at(-1)?.hash, passed.at(-1)?.hash]; }""")
        assert named == right


# --- the search
@pytest.fixture(scope="module")
def first(book):
    """For each query the page that is found first."""
    page = book.visit("search.html?q=roofline")
    return page.evaluate("queries => Object.fromEntries(queries.map(q => [q, Search.rank(q)[0]?.page ?? '']))", [*QUERIES, *OTHERS])


def missed(queries, first):
    return [f"{q!r} finds {first[q]}, not {want}" for q, want in queries.items() if not first[q].startswith(want)]


def test_the_search_finds_the_right_page_first(first):
    of_first = missed({q: QUERIES[q] for q in [*QUERIES][:FIRST]}, first)
    assert len(QUERIES) >= FIRST and len(of_first) <= 2, of_first
    assert len(missed(QUERIES, first)) <= 4, missed(QUERIES, first)


def test_the_search_knows_other_names(first):
    assert len(OTHERS) == 30 and len(missed(OTHERS, first)) <= 2, missed(OTHERS, first)


def test_a_hit_leads_to_its_section_and_leaves_no_marks(book):
    """Neither on the page that it opens nor on one that is opened later."""
    page = book.visit("search.html?q=rail+of+a+node")
    page.locator("#search-results p.context mark").first.wait_for(timeout=10_000)
    page.evaluate(built.RESTS)
    page.locator("#search-results li > a[href*='#']").first.click()
    page.wait_for_url(re.compile(r"/(chapters|appendices)/.*#."))
    for name in (None, "chapters/12-ring-and-tree-algorithms.html"):
        if name:
            page.goto(book.address + name, wait_until="load")
        page.wait_for_timeout(300)
        assert page.locator(".highlighted, .highlight-link, #searchbox a").count() == 0


def test_exercises_and_their_solutions_are_one_result(book):
    page = book.visit("search.html?q=straggler")
    page.locator("#search-results li small").first.wait_for(timeout=10_000)
    found = page.eval_on_selector_all("#search-results li > a", "es => es.map(e => e.getAttribute('href').split('#')[0])")
    asked = {f[len("exercises/"):] for f in found if f.startswith("exercises/")}
    assert asked and not any(f.startswith("solutions/") and f[len("solutions/"):] in asked for f in found)
    assert page.locator("#search-results li small a[href^='solutions/']").count() > 0


def test_the_search_page_quotes_the_text(book):
    """What is asked for: the index, and no more pages than are shown."""
    page = book.visit("search.html?q=ring+all-reduce")
    page.locator("#search-results p.context mark").first.wait_for(timeout=10_000)
    shown, said = page.locator("#search-results li > a"), page.locator("#search-results p.context").first.inner_text()
    assert shown.first.get_attribute("href").startswith("chapters/12-") and shown.count() == 10
    assert "Contents" not in said and "\\" not in said and re.search("ring|all-reduce", said, re.I)
    asked = [url for url in page.log.local if re.search(r"/(chapters|exercises|solutions|appendices|labs)/[^/]*\.html", url)]
    assert len(asked) <= shown.count() and sum("searchindex.js" in url for url in page.log.local) == 1
    page.set_viewport_size({"width": 1280, "height": 3000})               # all ten are seen
    page.wait_for_function("[...document.querySelectorAll('#search-results .context')].every(p => p.firstChild)", timeout=15_000)
    inside = page.eval_on_selector_all("#search-results mark", "es => es.map(e => e.previousSibling?.textContent.at(-1) ?? ' ').filter(c => /[\\p{L}\\p{N}]/u.test(c))")
    assert inside == [], "a word is marked inside another"
    page.get_by_role("button", name="Show the other").click()
    assert shown.count() > 10
    book.visit("search.html?q=xylophone").get_by_text("No page found").wait_for(timeout=5000)


def test_everything_works_from_files(book):
    """As after unpacking an archive: search, mathematics, an explorer, nothing in the console."""
    page = book.context.new_page()
    page.log = built.browser.Log(page)
    page.goto((HTML/"search.html").as_uri() + "?q=alpha-beta+model", wait_until="load")
    link = page.locator("#search-results li > a").first
    link.wait_for(timeout=10_000)
    link.click()
    page.wait_for_url("**/chapters/04-*")
    page.evaluate(built.TYPESET)
    assert page.locator("mjx-container").count() > 20 and page.locator("figure.cx-explore svg path").count() > 0
    assert page.locator("mjx-merror").count() == 0 and page.log.console == []
    page.close()


# --- the files
FILES = sorted(p for p in HTML.rglob("*.html") if not {"_static", "_sources"} & set(p.relative_to(HTML).parts))
TEXT = {}


def read(path):
    if path not in TEXT:
        TEXT[path] = re.sub(r"<script\b.*?</script>|<!--.*?-->", "", path.read_text(encoding="utf-8"), flags=re.S)
    return TEXT[path]


def test_every_link_leads_somewhere():
    names = {path: {html.unescape(x) for x in re.findall(r'\s(?:id|name)="([^"]+)"', read(path))} for path in FILES}
    dead = set()
    for path in FILES:
        for link in set(re.findall(r'<(?:a|link|img|script|source|object|iframe)\b[^>]*?\s(?:href|src)="([^"]*)"', read(path))):
            address, anchor = urldefrag(html.unescape(link))
            if re.match(r"[a-z]+:", address):
                continue
            there = (path.parent/unquote(address.partition("?")[0])).resolve() if address else path
            if not there.is_file() or anchor and there.suffix == ".html" and unquote(anchor) not in names[there]:
                dead.add(f"{path.relative_to(HTML)}: {link}")
    assert sorted(dead) == []


def test_no_link_lies_in_a_link():
    assert [path.name for path in FILES if re.search(r"<a\b[^>]*>(?:(?!</a>).)*?<a\b", read(path), re.S)] == []


def test_next_is_the_exercises_and_then_the_next_chapter():
    toc = re.findall(r"- file: chapters/(\S+)", (built.ROOT/"_toc.yml").read_text())
    following = {name: re.search(r'<link rel="next" title="[^"]*" href="([^"]*)"', (HTML/f"{name}.html").read_text(encoding="utf-8"))[1]
                 for stem in toc[:-1] for name in (f"chapters/{stem}", f"exercises/{stem}")}
    for stem, after in zip(toc, toc[1:]):
        assert (following[f"chapters/{stem}"], following[f"exercises/{stem}"]) == (f"../exercises/{stem}.html", f"../chapters/{after}.html")


def test_each_check_leads_to_its_solution():
    for path in HTML.glob("exercises/*.html"):
        checks = re.findall(r"The check of (\S+?)</span>", read(path))
        assert re.findall(r">The solution of (\S+?)</a>", read(path)) == checks, path.name


def test_exercises_lead_to_the_quick_questions_and_say_how_to_run():
    """The questions are three, and the wheel is where its link leads."""
    for path in sorted(HTML.glob("exercises/*.html")):
        said = re.search(r'<p class="cx-screen">Warm up(.*?)</p>', read(path), re.S)[1]
        chapter, first = re.search(r'<a href="\.\./(chapters/[^"#]+)#([^"]+)-1">three quick questions</a>', said).groups()
        assert Path(chapter).stem == path.stem and all(f'id="{first}-{k}"' in read(HTML/chapter) for k in (1, 2, 3)), path.name
        assert f'id="{first}-4"' not in read(HTML/chapter) and "make study" in said
        assert (path.parent/re.search(r'<a href="([^"]+\.whl)" download', said)[1]).resolve().is_file()


def test_exercises_and_cards_lead_on():
    """Each number of a chapter's list leads to its exercise, and a formula's card to its chapter and source."""
    chapter = read(HTML/"chapters/15-tensor-parallelism-linearity.html")
    assert re.findall(r"<strong>(15\.\d+)</strong></a>", chapter) == re.findall(r"<strong>(15\.\d+)</strong>", chapter) != []
    cards = [card for path in HTML.glob("chapters/*.html") for card in re.findall(r'<div class="formula-card.*?</div>', read(path), re.S)]
    assert not any(re.search(r"source: (?!<span class=\"bibtex-citation\">\[<a [^>]*title=)", card) for card in cards), "a key of the bibliography"
    assert cards and all("derived here" in card or re.search(r'derived in <a href="[^"]*">chapter ', card) for card in cards if "derived" in card)

"""Incidents to work through: JavaScript and Python agree, buttons and keys work, bad input is refused by name."""
import json
import xml.etree.ElementTree as ET

import numpy as np
import pytest

import javascript
from capacity import on_duty
from capacity.pictures import duty
from capacity.pictures.shapes import width
from capacity.witness import sick_clusters as cl
from capacity.witness import inquiry as iq
from figures import alike, opened


@pytest.fixture(scope="module")
def game():
    sick = cl.incidents(4000, np.random.default_rng(1))
    return on_duty("night", [cl.inquiry(sick, a) for a in (0, 1)], cl.cases(20, 33), title="The \"night\" & <its>' incidents",
                   remedies=[words for words, _ in cl.REMEDIES])


def situations(game):
    """All that the autopilot meets, and one with everything seen."""
    S = game.spec()
    for k, (_, _, cause, found, auto, way) in enumerate(S["cases"]):
        left, seen, spent = list(range(7)), [None]*8, 0
        yield k, left, list(seen), spent
        for a in way:
            if a >= 0:
                seen[a], spent = found[a], spent + S["looks"][a][1]
            else:
                spent += S["remedies"][-1 - a][1]
                left = [] if -1 - a == cause else [i for i in left if i != -1 - a]
            yield k, left, list(seen), spent
        assert not left and spent == auto
        yield k, list(range(7)), found, 35


def test_javascript_is_python(game):
    S, all_ = game.spec(), list(situations(game))
    got = javascript.run("""return data.all.map(([k, left, seen, spent]) => [cx.duty.belief(data.S, data.S.cases[k][0], left, seen),
        [640, 335, 280].map((w) => cx.duty.picture(data.S, k, left, seen, spent, w)), cx.duty.told(data.S, k), cx.duty.ending(data.S, k, spent)]);""",
                         {"S": S, "all": all_})
    for (k, left, seen, spent), (b, pictures, told, ending) in zip(all_, got):
        assert b == pytest.approx(duty.belief(S, S["cases"][k][0], left, seen), abs=1e-12)
        assert told == duty.told(S, k) and ending == duty.ending(S, k, spent)
        for w, picture in zip((640, 335, 280), pictures):
            assert alike(picture, game.svg(k, left, seen, spent, w))


def test_belief_is_the_inquirys(game):
    for k, left, seen, _ in situations(game):
        kind = game.cases[k][0]
        if left:
            assert duty.belief(game.spec(), kind, left, seen) == pytest.approx(game.searches[kind].belief(left, seen), rel=1e-3, abs=1e-5)


def test_the_autopilot_is_the_best_rule(game):
    best = [iq.Exact(q) for q in game.searches]
    for (kind, _, cause, found), (spent, way) in zip(game.cases, game.ways):
        assert (spent, way) == iq.play(game.searches[kind], best[kind], cause, found)


@pytest.mark.parametrize("wide", [640, 335, 280])
def test_nothing_is_clipped(game, wide):
    for k, left, seen, spent in situations(game):
        root = ET.fromstring(game.svg(k, left, seen, spent, wide))
        height = float(root.get("height"))
        for t in root.iter("text"):
            x, w = float(t.get("x")), width(t.text)
            start = x - {"start": 0, "middle": w/2, "end": w}[t.get("text-anchor")]
            assert -1 <= start and start + w <= wide + 2 and 8 <= float(t.get("y")) <= height, t.text


def test_bundle(game):
    data = game._repr_mimebundle_()
    assert {"text/plain", "text/html", "image/png"} < set(data) and data["text/html"].count("<tr>") == 21
    assert "application/vnd.jupyter.widget-view+json" in data and json.loads(data["text/plain"].split("\n")[1])
    assert game._repr_mimebundle_()["image/png"] == data["image/png"]


def test_widget_plays(game):
    box = game.widget()
    looks, mends, shown = box.children[3].children, box.children[5].children, box.children[6]
    looks[4].click()
    assert looks[4].disabled and looks[4].description.startswith("pairs: ")
    for i, b in enumerate(mends):
        b.click()
        assert b.disabled
        if i == game.cases[0][2]:
            break
    assert "It was: " in shown.value and all(b.disabled for b in mends)
    box.children[1].value = 3
    assert not looks[4].disabled and game.cases[3][1] in shown.value


@pytest.mark.parametrize("change, said", [
    ({"name": "No Slug"}, "No Slug"), ({"title": " "}, "title"), ({"cases": []}, "0 cases"), ({"remedies": ["one"]}, "1 remedies"),
    ({"cases": [(0, "x", 7, [0]*8)]}, "is not one of these"), ({"cases": [(2, "x", 0, [0]*8)]}, "is not one of these"),
    ({"cases": [(0, "x", 0, [0]*7)]}, "is not one of these"), ({"cases": [(0, "x", 0, [2]*8)]}, "is not one of these"),
    ({"searches": [iq.Inquiry(["a"], [1.], [3]), iq.Inquiry(["b"], [1.], [3])]}, "differ")])
def test_refused_by_name(game, change, said):
    good = {"name": "night", "searches": game.searches, "cases": cl.cases(3, 1), "title": "t", "remedies": None}
    with pytest.raises(ValueError, match=said):
        on_duty(**(good | change))


@pytest.fixture(scope="module")
def page(game, tmp_path_factory):
    with opened(tmp_path_factory.mktemp("page"), [game]) as tab:
        yield tab


def test_by_keyboard(page, game):
    """Tab to a button, Enter; the minutes add up; the autopilot's come at the end."""
    figure, S = page.locator("#night"), game.spec()
    _, says, cause, found, auto, way = S["cases"][0]
    assert says in figure.locator(".cx-alarm").inner_text()
    spent = 0
    for a in way:
        button = (figure.get_by_role("group", name="Look").get_by_role("button").nth(a) if a >= 0
                  else figure.get_by_role("group", name="Mend").get_by_role("button").nth(-1 - a))
        button.focus()
        page.keyboard.press("Enter")
        spent += S["looks"][a][1] if a >= 0 else S["remedies"][-1 - a][1]
        assert f"{spent} min" in figure.locator("svg").text_content() and button.get_attribute("aria-disabled") == "true"
        page.keyboard.press("Enter")                                        # twice does not count twice
        assert button.evaluate("b => b === document.activeElement")
    assert figure.locator("[aria-live]").inner_text() == duty.ending(S, 0, spent) and spent == auto
    assert f"you {auto} minutes, the autopilot {auto}" in figure.locator(".cx-key").inner_text()
    figure.get_by_role("button", name="Next incident").press("Enter")
    assert "Incident 2 of 20" in figure.locator(".cx-alarm").inner_text() and not page.errors


def test_a_wrong_remedy_is_paid_and_ruled_out(page, game):
    figure, S = page.locator("#night"), game.spec()
    page.evaluate("document.querySelector('#night').cx.start(0)")
    wrong = (S["cases"][0][2] + 1) % 7
    figure.get_by_role("group", name="Mend").get_by_role("button").nth(wrong).click()
    assert "it was not that" in figure.locator("[aria-live]").inner_text()
    assert f"{S['remedies'][wrong][1]} min" in figure.locator("svg").text_content()


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_it_fits_a_phone(page, theme):
    page.set_viewport_size({"width": 375, "height": 812})
    page.evaluate("t => { document.documentElement.dataset.theme = t; }", theme)
    page.locator("#night svg[width='280'], #night svg").first.wait_for()
    assert page.evaluate("document.documentElement.scrollWidth") <= 375
    high = page.eval_on_selector_all(".cx-buttons button", "es => es.map(e => e.getBoundingClientRect().height)")
    assert min(high) >= 24
    page.set_viewport_size({"width": 1280, "height": 900})

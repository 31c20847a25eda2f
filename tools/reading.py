"""How the chapters depend on each other, ways through them, and how long these take: the map and the ways of the landing page.

`NEEDS` is data: the chapters that one builds on.  Hours are counted in the notebooks: words and pictures of a chapter, and the
minutes that its exercises say.
"""
import functools
import html
import json
import re
from pathlib import Path

from capacity.pictures.diagram import Sketch, drawing
from capacity.pictures.shapes import Group

ROOT = Path(__file__).resolve().parents[1]
PACE, PICTURE = 200, 0.5                # words a minute; minutes for a picture

# What a chapter builds on, by numbers; what these build on is not said again.
NEEDS = {
    "1": [], "2": ["1"], "3": ["2"], "3a": ["2"], "4": ["3"], "5": ["4"], "6": ["4"],
    "7": ["1"], "8": ["7"], "9": ["7"], "10": ["5", "7"],
    "11": ["3"], "12": ["4", "11"], "13": ["12"], "13a": ["13"],
    "14": ["13"], "15": ["6", "11"], "16": ["14"], "17": ["15"], "18": ["13a"],
    "19": ["17", "18"], "20": ["14", "19"], "21": ["19"], "22": ["21"],
    "23": ["16", "20"], "24": ["16", "20"], "25": ["23", "24"], "26": ["5"], "27": ["24"],
    "28": ["14"], "29": ["14"], "30": ["11"], "31": ["20", "22"], "31a": ["16", "17"], "31b": ["18", "31a"],
    "32": ["31"], "33": ["32"], "34": ["25", "26"], "35": ["25", "30", "31", "31a"], "36": ["27", "31b"], "36a": ["29", "31b"],
    "37": ["33", "34", "35", "36", "36a"],
}
# Links to an earlier chapter that a reader may leave alone: they point, and nothing is built on them.
ASIDE = {"9": ["3a"], "14": ["5", "10"], "15": ["13a"], "18": ["16"], "26": ["10"], "27": ["21"], "29": ["7"], "31": ["29"], "31b": ["29"],
         "32": ["26", "27", "29"], "33": ["26"], "34": ["27"], "36": ["34", "35"], "36a": ["23"],
         "37": ["7", "8", "9", "10", "28", "3a"]}

PARTS = {"I": ["1", "2", "3", "3a", "4", "5", "6"], "II": ["7", "8", "9", "10"], "III": ["11", "12", "13", "13a"],
         "IV": ["14", "15", "16", "17", "18"], "V": ["19", "20", "21", "22"], "VI": ["23", "24", "25", "26", "27"],
         "VII": ["28", "29", "30", "31", "31a", "31b"], "VIII": ["32", "33", "34", "35", "36", "36a", "37"]}
SHORT = {"1": "scale", "2": "roofline", "3": "hierarchy", "3a": "data", "4": "α-β", "5": "economics", "6": "estimates",
         "7": "loss", "8": "Chinchilla", "9": "transitions", "10": "batch size", "11": "primitives",
         "12": "ring, tree", "13": "cost", "13a": "topology", "14": "data", "15": "tensor", "16": "pipeline",
         "17": "context", "18": "experts", "19": "memory", "20": "ZeRO", "21": "recompute", "22": "offload",
         "23": "mesh", "24": "3D", "25": "4D, 5D", "26": "failures", "27": "search", "28": "compress",
         "29": "local SGD", "30": "precision", "31": "overlap", "31a": "attention", "31b": "inference",
         "32": "profiling", "33": "protocol", "34": "Llama 3", "35": "DeepSeek", "36": "Mixtral", "36a": "RL",
         "37": "conclusion"}
COLORS = dict(zip(PARTS, ["compute", "limit", "network", "compute", "memory", "network", "limit", "measured"]))


# ---- ways through the book
@functools.cache
def ground(chapter):
    """All that a chapter builds on, itself included."""
    return frozenset({chapter}).union(*map(ground, NEEDS[chapter]))


def closed(*chapters):
    """These chapters and all that they build on, in the order of the book."""
    return [c for c in NEEDS if c in frozenset().union(*map(ground, chapters))]


# What a course reads, meeting after meeting, and what is handed in at the end of one.
COURSES = {
    "week": [("What limits a job", ["1", "2"]), ("Links and machines", ["3", "4"]), ("What ranks can say", ["11", "12"]),
             ("What it costs, and the first split", ["13", "14"]), ("Estimates; split a product", ["6", "15"]),
             ("Split the layers, split the sequence", ["16", "17"]), ("Topology; split by experts", ["13a", "18"]),
             ("Every byte", ["19", "20"]), ("Recompute; three axes", ["21", "24"]), ("Prices and failures", ["5", "26"]),
             ("Weights elsewhere; search", ["22", "27"]), ("Hide a transfer, account for a step", ["31", "32"])],
    "day": [("What limits a job, and what a message costs", ["1", "2", "4"]), ("What ranks can say", ["11", "12", "6"]),
            ("Three splits", ["14", "15", "16"]), ("Every byte, and three axes", ["19", "20", "24"]),
            ("Failures and search", ["26", "27"])],
}
PROJECTS = {"week": {6: "reproduce a published number", 11: "plan and defend a run", 12: "diagnose a sick trace"},
            "day": {5: "plan and defend a run"}}
PROJECT_HOURS = {"reproduce a published number": 7, "plan and defend a run": 7.5, "diagnose a sick trace": 5}     # as teach.md counts them
LEVELS = {"week": ["easy", "medium"], "day": ["easy"]}     # of the exercises that are counted

# What you are after, the chapters, the exercises by their difficulty, and what the way gives.
PATHS = {
    "Decide": (["1", "2", "4", "6", "19", "20", "24", "26", "27"], ["easy"],
               "What fits, how long it takes and what failures cost, with the easy exercises. Takes chapters 3 and 5 and Parts III and IV "
               "on trust; the page [Plan a run](plan.md) does the search."),
    "Understand": (closed("25", "27", "31"), ["easy"],
                   "From one GPU to five axes: each split derived, priced and put to the test. With the easy exercises."),
    "Teach": (sorted((c for _, chapters in COURSES["week"] for c in chapters), key=list(NEEDS).index), LEVELS["week"],
              "Twelve weeks of two chapters, with the easy and medium exercises. The page [Teach](teach.md) has the plan, the points and "
              "three projects, and five days for a team."),
}


# ---- how long it takes
def stems():
    """The file of each chapter by its number."""
    return {path.stem.split("-")[0].lstrip("0"): path.stem for path in sorted((ROOT/"chapters").glob("*.ipynb"))}


def title(chapter):
    return "".join(cells("chapters", chapter)[0]["source"]).partition("\n")[0].removeprefix("# ")


def minutes(cells):
    """Of a chapter: its words at PACE, and its pictures."""
    text = " ".join("".join(c["source"]) for c in cells if c["cell_type"] == "markdown")
    shown = [o for c in cells if c["cell_type"] == "code" for o in c["outputs"]]
    made = [("".join(o.get("data", {}).get("text/html", "")), o) for o in shown]
    pictures = sum("<svg" in m or "<figure" in m or "image/png" in o.get("data", {}) for m, o in made)
    return len(re.findall(r"\w[\w'-]*", text))/PACE + PICTURE*pictures


def cells(folder, chapter):
    return json.loads((ROOT/folder/f"{stems()[chapter]}.ipynb").read_text(encoding="utf-8"))["cells"]


@functools.cache
def reading(chapter):
    return minutes(cells("chapters", chapter))


@functools.cache
def exercising(chapter):
    """The minutes that the exercises of a chapter say, by their difficulty; a question by hand counts with its exercise."""
    text = " ".join("".join(c["source"]) for c in cells("exercises", chapter) if c["cell_type"] == "markdown")
    took = dict.fromkeys(("easy", "medium", "hard"), 0)
    for alone, of, by_hand in re.findall(r"\*\((\d+) minutes, (\w+)\)\*|\(by hand, \d+ points?, (\d+) minutes\)", text):
        if of:
            level = next(name for name in took if name.startswith(of[0]))
        took[level] += int(alone or by_hand)
    return took


def hours(chapters, levels):
    """Of a way through the book with the exercises of these levels, as a real number."""
    return sum(reading(c) + sum(exercising(c)[level] for level in levels) for c in chapters)/60


def worth():
    """The table of points, part by part, in Markdown."""
    rows = [f"| {part} | {sum(points(c)[0] for c in row)} | {sum(points(c)[1] for c in row)} | "
            f"{sum(sum(exercising(c).values()) for c in row)/60:.0f} h |" for part, row in PARTS.items()]
    return "\n".join(["| part | points that a program gives | points by hand | time for all exercises |", "|---|---:|---:|---:|", *rows])


@functools.cache
def points(chapter):
    """Of a chapter's exercises: (checked by a program, graded by hand)."""
    marks = [c["metadata"]["nbgrader"] for c in cells("exercises", chapter) if c["metadata"].get("nbgrader", {}).get("grade")]
    return tuple(sum(m["points"] for m in marks if m["solution"] == by_hand) for by_hand in (False, True))


# ---- the page for teachers
def course(every):
    """The table of a course that meets every "week" or "day", in Markdown, and what it takes on trust."""
    def link(c):
        return f"[{c}](chapters/{stems()[c]}.ipynb)"
    rows = []
    for k, (says, chapters) in enumerate(COURSES[every], 1):
        read, work = hours(chapters, []), hours(chapters, LEVELS[every]) - hours(chapters, [])
        due = PROJECTS[every].get(k)
        says += f"; **due: {due}** ({PROJECT_HOURS[due]:g} h)" if due else ""
        rows.append(f"| {k} | {says} | {' · '.join(map(link, chapters))} | {read:.1f} h | {work:.1f} h |")
    taken = [c for _, chapters in COURSES[every] for c in chapters]
    read, both = hours(taken, []), hours(taken, LEVELS[every])
    rows.append(f"| | altogether | | {read:.1f} h | {both - read:.1f} h |")
    trusted = [c for c in closed(*taken) if c not in taken]
    said = f"\n\nOn trust: what these build on in chapters {', '.join(map(link, trusted))}." if trusted else ""
    head = f"| {every} | subject | chapters | reading | {' and '.join(LEVELS[every])} exercises |\n|---:|---|---|---:|---:|"
    return "\n".join([head, *rows]) + said


# ---- the landing page
def paths():
    """The ways, in Markdown."""
    def link(c):
        words = f"{c} {SHORT[c]}".replace(" ", "\u00a0")
        return f"[{words}](chapters/{stems()[c]}.ipynb \"{title(c)}\")"
    rows = [(name, hours(chapters, levels), says, "\u00a0· ".join(map(link, chapters))) for name, (chapters, levels, says) in PATHS.items()]
    ways = [f":::{{div}} cx-way\n**{name}** {long:.0f} hours\n\n{says}\n\n{links}\n:::" for name, long, says, links in rows]
    whole = hours(list(NEEDS), ["easy", "medium", "hard"])
    return "\n\n".join(["::::{div} cx-three", *ways, "::::", f"All chapters with all exercises take {whole:.0f} hours: 200 words a minute, "
                        "half a minute for each picture, and the minutes that the exercises state, counted in the notebooks. "
                        "Mathematics that is new to you takes longer."])


def places(W):
    """The box of each chapter: a row for each part; on a phone two where a part has more than four."""
    narrow = W < 400
    left, most, tall, gap, side = (0, 4, 34, 20, 2) if narrow else (48, 7, 40, 34, 3)
    step, y, found = (W - left)/most, 20 if narrow else 4, {}
    for part in PARTS.values():
        rows = -(-len(part)//most)
        for k in range(rows):
            row = part[-(-len(part)*k//rows):-(-len(part)*(k + 1)//rows)]
            for i, c in enumerate(row):
                found[c] = (left + step*(i + (most - len(row))/2) + side, y, step - 2*side, tall)
            y += tall + (gap if k == rows - 1 else 6)
    return found


def chart(W, box=lambda chapter, shapes: shapes):
    """The chapters, a row for each part, and lines from each to what it builds on.  box: what becomes of a chapter's shapes."""
    s, at = Sketch(W), places(W)
    for c, needs in NEEDS.items():
        x, y, w, _ = at[c]
        for n in needs:
            u, v, wide, tall = at[n]
            if v == y:                                                    # in a row: an arc below it, or the gap between neighbors
                a, b = u + wide, x
                if b - a < 8:
                    d, low = f"M{a:.1f} {v + tall/2:.1f}H{b:.1f}", v + tall/2
                else:
                    a, b, low = u + wide*0.6, x + w*0.4, v + tall + 13
                    d = f"M{a:.1f} {v + tall:.1f}C{a + 6:.1f} {low:.1f} {b - 6:.1f} {low:.1f} {b:.1f} {v + tall:.1f}"
            else:
                a, b, low = u + wide/2, x + w/2, y
                d = f"M{a:.1f} {v + tall:.1f}C{a:.1f} {v + tall + 18:.1f} {b:.1f} {y - 18:.1f} {b:.1f} {y:.1f}"
            s.line(d, weight=1.2, opacity=.4, bottom=low)
    for part, row in PARTS.items():
        y, tall = at[row[0]][1], at[row[0]][3]
        x, y, anchor = (2, y - 7, "start") if s.narrow else (44, y + tall/2 + 5, "end")
        s.text(x, y, part, anchor, bold=True, size=13, math=False)
        for c in row:
            x, y, w, tall = at[c]
            begin = len(s.shapes)
            s.rect(x, y, w, tall, "paper", "", radius=4)
            s.rect(x, y, w, tall, COLORS[part], COLORS[part], opacity=.14, radius=4)
            s.text(x + w/2, y + tall*0.43, c, bold=True, math=False)
            s.text(x + w/2, y + tall - (5 if s.narrow else 7), SHORT[c], size=13, math=False)
            s.shapes[begin:] = box(c, s.shapes[begin:])
    return s


def map_of_chapters():
    """The map as HTML: each box is a link that says its chapter and what that builds on."""
    title_of = "What each chapter builds on"
    shown = drawing("chapters", lambda W: chart(W, lambda c, shapes: [Group(shapes, name=f"to-{c}")]), title=title_of, alt=title_of)

    def link(found):
        c, shapes = found.groups()
        says = html.escape(title(c) + (f", builds on {' and '.join(NEEDS[c])}" if NEEDS[c] else ""))
        return f'<a href="chapters/{stems()[c]}.html" aria-label="{says}"><title>{says}</title>{shapes}</a>'
    return re.sub(r'<g class="to-(\w+)">(.*?)</g>', link, shown._repr_html_()).replace('role="img"', 'role="group"')

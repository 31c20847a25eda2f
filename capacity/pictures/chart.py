"""Charts of a pipeline: gantt() of one timeline, explore_schedules() with choices and sliders.

* The HTML book: choices of schedule, devices and micro-batches, sliders for F, I and W; `static/chart.js` runs the
  clock and draws; no kernel, no network.
* JupyterLab with a kernel: ipywidgets, the same SVG drawn here.
* No JavaScript: a table of all schedules.  PDF: a PNG of the first one.

    gantt(simulate(one_f_one_b(p=4, m=8)), title="A quarter of the time is idle")
    explore_schedules("two", [make(4, m) for make in (gpipe, one_f_one_b) for m in (4, 8)],
                      title="Same bubble, less memory")

The clock is capacity.simulate, here; the page has orders and a clock of its own, which a test holds against simulate.

Letters: p devices, numbered d; m micro-batches, numbered j; v chunks; s a stage; F, I, W the times of a forward, of
the input's and of the weights' gradient; S the specification, Schedules.spec(); D the numbers at one setting; W also
the width of a picture in pixels; i the number of a schedule.  A slot is a tuple of Ops, run as one.
"""
import base64
import html
import math
import re

from ..witness.schedule import simulate
from .axes import nice_step
from .explorer import Slider
from .shapes import Group, Path, Rect, Text, legend, width
from .svg import LAB, attribute, frame, short, slug

DEVICES, SCHEDULES, LONGEST = 16, 64, 4096        # the most devices, schedules and slots of a device in an explorer
ROLES = {"F": "compute", "B": "limit", "I": "limit", "W": "measured"}
NAMES = {"F": "forward", "B": "backward", "I": "input gradient", "W": "weight gradient"}
PALE = [1, .42, .3, .2]                           # opacity of the first chunk, the second, ...
HEAD = ["schedule", "p", "m", "makespan", "idle/total", "idle/ideal", "span", "peak"]


def gantt(timeline, *, title=None, ax=None):
    """A chart of a timeline: a row per device, device 0 on top, a rectangle per operation.

    timeline  what capacity.simulate returns, in numbers
    title     the finding
    ax        matplotlib's Axes to draw on, which are then returned; ax.legend() names the colours.  None: a picture
              with a legend, SVG in the page and PNG on paper
    Forward is blue, backward and the input's gradient amber, the weights' gradient pink; later chunks, or the second
    direction, are paler.  What runs overlapped lies one above the other.  A number is a micro-batch, where all
    bars have room for theirs; white is idle.
    Raises ValueError for what is no timeline, or one of symbols.
    """
    if not all(hasattr(timeline, a) for a in ("schedule", "start", "end", "makespan")):
        hint = "; simulate(it) first" if hasattr(timeline, "orders") else ""
        raise ValueError(f"timeline is {timeline!r}; allowed: what capacity.simulate returns{hint}")
    try:
        float(timeline.makespan)
    except TypeError:
        raise ValueError(f"timeline ends at {timeline.makespan}; allowed: times that are numbers") from None
    return Chart(timeline, title) if ax is None else _on_axes(timeline, title, ax)


class Chart:
    """A timeline as a picture: .svg(width), .png()."""

    def __init__(self, timeline, title):
        self.timeline, self.title = timeline, title or ""
        self.numbers, self.rows = numbers(timeline), timeline.schedule.slots
        self.tones = tones(self.rows, timeline.schedule.chunks)

    def says(self):
        """What is read out."""
        schedule = self.timeline.schedule
        key = schedule.name, len(self.rows), schedule.microbatches
        return ". ".join(filter(None, [self.title, fill(SAID[0], key, self.numbers)]))

    def picture(self, W):
        """(shapes, W, height, what is read out)."""
        return picture(self.rows, self.tones, self.numbers, W, self.says())

    def svg(self, width=640):
        """The picture as SVG text, `width` pixels wide or as wide as its slots need."""
        return frame(*self.picture(width))

    def png(self, dpi=144):
        """The picture for paper, as the bytes of a PNG 6.4 inches wide; always the same."""
        from .paper import sheet
        return sheet(self.title, "", self.picture(640)[:3], [], dpi)

    def _repr_mimebundle_(self, include=None, exclude=None):
        caption = f"<figcaption>{html.escape(self.title)}</figcaption>" if self.title else ""
        return {"text/plain": repr(self), "image/png": base64.b64encode(self.png()).decode(),
                "text/html": f'<figure class="cx-sketch">{caption}<div class="cx-wide">{self.svg(680)}</div>'
                             f'<div class="cx-narrow" style="display:none">{self.svg(336)}</div></figure>'}

    def __repr__(self):
        return f"gantt: {self.says()}"


def explore_schedules(name, schedules, *, title, F=(.2, 3, 1), I=(.2, 3, 1), W=(.2, 3, 1),     # noqa: E741
                      pair=(.5, 1, 1)):
    """Choices of schedule, p and m, and sliders of times, over a Gantt chart: the last line of a cell.

    name       slug, unique on its page: lower case, digits, hyphens
    schedules  1 to 64 of capacity's Schedules, all unlike in (name, p, m, v); the first is shown first
    title      the finding, as a sentence
    F, I, W    (lo, hi, value): the time of a micro-batch on a device, of which a chunk takes 1/v; B = I + W
    pair       (lo, hi, value): the share of F + I + W that a forward and a backward take when they overlap, that
               is simulate(..., pair=share*(F + I + W)); this slider is there if some schedule overlaps
    The reader changes one choice at a time; what does not exist beside the two others is disabled.
    Raises ValueError naming what is wrong: a schedule twice, one that no such changes lead to, one that cannot run
    or overlaps anything but a forward with a backward, more than 16 devices, a slider whose value is not between its
    ends, an empty title.
    """
    return Schedules(name, schedules, title, dict(F=F, I=I, W=W, pair=pair))


class Schedules:
    """A checked explorer: .spec() for JavaScript, .numbers(i, setting), .svg(i, setting), .table(setting), .widget().

    i is the number of a schedule in the list; a setting has a value per slider, in the order of .start.
    """

    def __init__(self, name, schedules, title, ranges):
        self.name, self.title = slug("explorer", name), title
        if not (isinstance(title, str) and title.strip()):
            raise ValueError(f"{name}: title is {title!r}; allowed: a sentence that states the finding")
        if hasattr(schedules, "orders"):
            raise ValueError(f"{name}: schedules is {schedules!r}; allowed: a list of Schedules")
        self.schedules = list(schedules)
        if not 1 <= len(self.schedules) <= SCHEDULES:
            raise ValueError(f"{name}: there are {len(self.schedules)} schedules; allowed: 1 to {SCHEDULES}")
        self.charts = [self._chart(s) for s in self.schedules]
        self._choices()
        overlap = any(map(_overlaps, self.charts))
        self.sliders = [self._slider(k, item) for k, item in ranges.items() if overlap or k != "pair"]
        self.start = [s.start for s in self.sliders]
        self._spec = self.spec()

    # ---- reading the arguments -------------------------------------------------------------
    def _chart(self, schedule):
        """What the picture needs of a schedule that runs: p, m, v, the rows of slots, their tones, the peaks."""
        if not all(hasattr(schedule, a) for a in ("name", "orders", "chunks")):
            raise ValueError(f"{self.name}: a schedule is {schedule!r}; allowed: a Schedule of capacity")
        p = len(schedule.orders)
        if not 1 <= p <= DEVICES or not all(1 <= len(order) <= LONGEST for order in schedule.orders):
            slots = ", ".join(str(len(order)) for order in schedule.orders)
            raise ValueError(f"{self.name}: {schedule.name} has {p} devices of {slots} slots; "
                             f"allowed: 1 to {DEVICES}, of 1 to {LONGEST} slots")
        try:
            timeline = simulate(schedule)
        except ValueError as reason:
            raise ValueError(f"{self.name}: {schedule.name} on {p} devices cannot run: {reason}") from None
        rows = schedule.slots
        for slot in (slot for row in rows for slot in row if len(slot) > 1):
            if sorted(op.kind for op in slot) != ["B", "F"]:
                raise ValueError(f"{self.name}: {schedule.name} overlaps {' and '.join(map(str, slot))}; "
                                 "allowed: a forward with a backward")
        return {"p": p, "m": schedule.microbatches, "v": schedule.chunks, "rows": rows,
                "tones": tones(rows, schedule.chunks), "peaks": list(map(float, timeline.peak_activations))}

    def _choices(self):
        """Names, p and m to choose from; .at[(name, p, m)] is the number of a schedule."""
        chunks = {}
        for s in self.schedules:
            chunks.setdefault(s.name, set()).add(s.chunks)
        names = [s.name + (f", v = {s.chunks}" if len(chunks[s.name]) > 1 else "") for s in self.schedules]
        self.keys = [(n, c["p"], c["m"]) for n, c in zip(names, self.charts)]
        self.at = {key: i for i, key in enumerate(self.keys)}
        if len(self.at) < len(self.keys):
            twice = next(i for i, key in enumerate(self.keys) if self.at[key] != i)
            raise ValueError(f"{self.name}: {self._called(twice)} is there twice")
        seen, new = set(), {self.keys[0]}
        while new:
            seen |= new
            new = {b for b in self.keys if b not in seen and any(sum(x != y for x, y in zip(a, b)) == 1 for a in new)}
        for i, key in enumerate(self.keys):
            if key not in seen:
                raise ValueError(f"{self.name}: {self._called(i)} cannot be reached from the first one by changing "
                                 "the schedule, p or m alone, again and again")
        first = [dict.fromkeys(column) for column in zip(*self.keys)]
        self.options = [list(first[0]), sorted(first[1]), sorted(first[2])]

    def _called(self, i):
        name, p, m = self.keys[i]
        return f"{name}, p = {p}, m = {m}"

    def _slider(self, key, values):
        texts = {"F": "F, forward", "I": "I, input gradient", "W": "W, weight gradient",
                 "pair": "overlapped: share of the sum"}
        try:
            lo, hi, value = values
        except (TypeError, ValueError):
            raise ValueError(f"{self.name}: {key} is {values!r}; allowed: (lo, hi, value)") from None
        slider = Slider(key, lo, hi, value, texts[key])
        if not (0 <= lo and hi <= 1000) or key == "F" and lo == 0:
            raise ValueError(f"{self.name}: {key} goes from {lo:g} to {hi:g}; allowed: times from 0 to 1000, F above 0")
        return slider

    # ---- numbers ---------------------------------------------------------------------------
    def timeline(self, i=0, setting=None):
        """What capacity.simulate says of schedule i at a setting."""
        F, I, W, share = (*(self.start if setting is None else setting), 1)[:4]                 # noqa: E741
        return simulate(self.schedules[i], F, I, W, pair=share*(F + I + W))

    def numbers(self, i=0, setting=None):
        """The numbers of the picture of schedule i at a setting."""
        return numbers(self.timeline(i, setting))

    # ---- the specification -----------------------------------------------------------------
    def spec(self):
        """The explorer as JSON: what chart.js draws from; see code() for a device's order."""
        keys = [tuple(kinds(c["rows"])) for c in self.charts]
        legends = list(dict.fromkeys(keys))
        return {"title": self.title,
                "sliders": [{"label": s.text, "stops": [short(v) for v in s.positions()],
                             "at": s.positions().index(s.start)} for s in self.sliders],
                "choices": CHOICES, "options": self.options, "key": KEY, "said": SAID, "legends": legends,
                "list": [{"at": at, "v": c["v"], "key": legends.index(key), "peaks": list(map(short, c["peaks"])),
                          "rows": [code(row, tone) for row, tone in zip(c["rows"], c["tones"])]}
                         for at, c, key in zip(self.keys, self.charts, keys)]}

    # ---- words -----------------------------------------------------------------------------
    def line(self, i, setting=None):
        """Schedule i in the table: a text per column of HEAD."""
        D = self.numbers(i, setting)
        return [*map(str, self.keys[i]), *says(D)]

    def table(self, setting=None):
        """All schedules at a setting, as HTML."""
        head = "".join(f'<th scope="col">{h}</th>' for h in HEAD)
        rows = [self.line(i, setting) for i in range(len(self.charts))]
        return f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(map(_tr, rows))}</tbody></table>"

    def text(self):
        """All schedules at the sliders' first values, as plain text: what a notebook compares."""
        rows = [HEAD] + [self.line(i)[:-1] + [" ".join(map(number, self.numbers(i)["peaks"]))]
                         for i in range(len(self.charts))]
        wide = [max(map(len, column)) for column in zip(*rows)]
        return "\n".join("  ".join(c.ljust(w) for c, w in zip(row, wide)).rstrip() for row in rows)

    def setting_text(self):
        return ", ".join(f"{s.name} = {number(s.start)}" for s in self.sliders)

    # ---- pictures --------------------------------------------------------------------------
    def svg(self, i=0, setting=None, width=640):
        """The chart of schedule i as SVG text, `width` pixels wide or as wide as its slots need."""
        return frame(*self.picture(i, setting, width))

    def picture(self, i, setting, W):
        """(shapes, W, height, what is read out)."""
        D, c = self.numbers(i, setting), self.charts[i]
        return picture(c["rows"], c["tones"], D, W, f"{self.title}. {fill(SAID[0], self.keys[i], D)}")

    def words(self, i=0, setting=None):
        """What is read out, as HTML paragraphs."""
        return fill(SAID[1], self.keys[i], self.numbers(i, setting))

    def to_html(self):
        """The figure of the built book; readable as a table where no script runs."""
        return (f'<figure class="cx-gantt" id="{self.name}" data-spec=\'{attribute(self._spec)}\'>\n'
                f"<figcaption>{html.escape(self.title)}</figcaption>\n<p>{self.setting_text()}</p>\n"
                f"{self.table()}\n</figure>")

    def png(self, dpi=144):
        """The first schedule for paper, as the bytes of a PNG 6.4 inches wide; always the same."""
        from .paper import sheet
        said = re.sub("</?strong>|<p>", "", self.words()).split("</p>")
        return sheet(self.title, f"{self._called(0)}; {self.setting_text()}", self.picture(0, None, 640)[:3], said, dpi)

    # ---- ipywidgets ------------------------------------------------------------------------
    def widget(self):
        """Buttons for the choices, sliders, picture, words and table, recomputed by the kernel."""
        import ipywidgets as W
        wide = W.Layout(width="100%", max_width="640px")
        controls = [W.SelectionSlider(options=[(number(v), v) for v in s["stops"]], index=s["at"], layout=wide,
                                      description=s["label"], style={"description_width": "15em"})
                    for s in self._spec["sliders"]]
        buttons = [[W.Button(description=str(o), layout=W.Layout(width="auto")) for o in options]
                   for options in self.options]
        rows = [W.HBox([W.Label(label, layout=W.Layout(width="9em")), *row], layout=W.Layout(flex_flow="row wrap"))
                for label, row in zip(CHOICES, buttons)]
        shown, table, key = W.HTML(), W.HTML(), [self.keys[0]]
        drawer = W.Accordion([table], titles=("All schedules as a table",), layout=wide)

        def redraw(_=None):
            i, setting = self.at[key[0]], [c.value for c in controls]
            for n, (row, options) in enumerate(zip(buttons, self.options)):
                for button, option in zip(row, options):
                    button.disabled = _changed(key[0], n, option) not in self.at
                    button.button_style = "info" if key[0][n] == option else ""
            if len(controls) > 3:
                controls[3].disabled = not _overlaps(self.charts[i])
            shown.value = (f'<div class="cx-lab">{self.svg(i, setting)}<div aria-live="polite">{self.words(i, setting)}'
                           f"</div><p><small>{KEY}</small></p></div>")
            if drawer.selected_index == 0:
                table.value = f'<div class="cx-lab">{self.table(setting)}</div>'

        def choose(n, option):
            key[0] = _changed(key[0], n, option)
            redraw()
        for n, (row, options) in enumerate(zip(buttons, self.options)):
            for button, option in zip(row, options):
                button.on_click(lambda _, n=n, option=option: choose(n, option))
        for c in controls:
            c.observe(redraw, "value")
        drawer.observe(redraw, "selected_index")
        redraw()
        title = W.HTML(f"{LAB}<strong>{html.escape(self.title)}</strong>")
        return W.VBox([title, *rows, *controls, shown, drawer])

    def _repr_mimebundle_(self, include=None, exclude=None):
        data = {"text/plain": f"{self!r} at {self.setting_text()}\n{self.text()}", "text/html": self.to_html(),
                "image/png": base64.b64encode(self.png()).decode()}
        self._widget = self.widget()                      # keeps its callbacks alive
        view = self._widget._repr_mimebundle_()
        return data | {k: v for k, v in view.items() if "widget-view" in k}

    def __repr__(self):
        return f"explore_schedules({self.name!r})"


CHOICES = ["schedule", "devices p", "micro-batches m"]
SAID = ["{6} on {7} devices, {8} micro-batches: makespan {0}, {1} idle, peak activations {4}",
        "<p>Makespan: <strong>{0}</strong>; the longest span of a device: <strong>{3}</strong>.</p>"
        "<p>Idle: <strong>{1}</strong> of the total time, or <strong>{2}</strong> of the ideal time.</p>"
        "<p>Peak activations by device: {5}; at most <strong>{4}</strong>.</p>"]
KEY = ("A number, where all bars have room, is a micro-batch; paler: later chunks, or the second direction; empty: "
       "idle. An activation is that of one micro-batch on one device.")


def _changed(key, n, option):
    return *key[:n], option, *key[n + 1:]


def _overlaps(chart):
    return any(len(slot) > 1 for row in chart["rows"] for slot in row)


def tones(rows, v):
    """[{stage: tone}] by device: a stage's chunk, counted on in the second direction; 3 at most."""
    doors = {j: d for d, row in enumerate(rows) for slot in row for kind, s, j in slot if kind == "F" and s == 0}
    order = sorted(set(doors.values()))
    return [{s: min(s//len(rows) + v*order.index(doors.get(j, order[0])), 3) for slot in row for _, s, j in slot}
            for row in rows]


def kinds(rows):
    """(text, role, None) for a legend of the kinds that occur; B and I have one role."""
    there, names = {op.kind for row in rows for slot in row for op in slot}, {}
    for k in "FBIW":
        if k in there:
            names.setdefault(ROLES[k], []).append(NAMES[k])
    return [(" or ".join(n), c, None) for c, n in names.items()]


# ---- an order as text ----------------------------------------------------------------------------
def code(row, tone):
    """A device's order as short text: '1/0,5/1 FF(F+B+)3BB'.

    First the stages of the device and their tones.  Then its slots: a kind, one + for its second stage, ++ for its
    third; the number of the micro-batch where it is not the next one (of F: one more than before; of B and I: the
    oldest that has had its F; of W: the oldest that has had its I).  & joins what overlaps; (...)n is said n times.
    """
    stages = list(dict.fromkeys(s for slot in row for _, s, _ in slot))
    last, held, half = ({s: -1 for s in stages}, {s: [] for s in stages}, {s: [] for s in stages})

    def letter(kind, s, j):
        if kind == "F":
            usual, last[s] = last[s] + 1, j
            held[s].append(j)
        else:
            queue = (half if kind == "W" else held)[s]
            usual = queue[0] if queue else None
            if j in queue:
                queue.remove(j)
            if kind == "I":
                half[s].append(j)
        return kind + "+"*stages.index(s) + ("" if j == usual else str(j))
    tokens = ["&".join(letter(*op) for op in slot) for slot in row]
    return ",".join(f"{s}/{tone[s]}" for s in stages) + " " + shorten(tokens)


def shorten(tokens):
    """The tokens in a row, repetitions as (...)n; greedy, the longest saving first."""
    out, i = "", 0
    while i < len(tokens):
        saved, text, end = 0, tokens[i], i + 1
        for q in range(1, (len(tokens) - i)//2 + 1):
            n = 1
            while tokens[i + n*q:i + (n + 1)*q] == tokens[i:i + q]:
                n += 1
            size = sum(map(len, tokens[i:i + q]))
            if n > 1 and (n - 1)*size - 3 > saved:
                saved, end = (n - 1)*size - 3, i + n*q
                text = (q, n)
        if saved:
            q, n = text
            text = f"({shorten(tokens[i:i + q])}){n}"
        out, i = out + text, end
    return out


# ---- numbers and words: chart.js is the same from here on, function by function ----------------------
def numbers(timeline):
    """{bars: [[(start, end, slot), ...] by device], makespan, work, span, peaks, top} of a timeline, in floats."""
    start, end = timeline.start, timeline.end
    peaks = list(map(float, timeline.peak_activations))
    bars = [[(float(start[slot[0]]), float(end[slot[0]]), slot) for slot in row] for row in timeline.schedule.slots]
    return {"bars": bars,
            "makespan": float(timeline.makespan), "work": float(sum(timeline.busy)), "span": float(max(timeline.spans)),
            "peaks": peaks, "top": max(peaks)}


def number(x):
    """At most two decimals, '4.33'; what lies between two is rounded up, though a float be a little less."""
    return f"{math.floor(100*x + .5 + 1e-9)/100:.12g}"


def percent(x):
    return f"{math.floor(1000*x + .5 + 1e-9)/10:.12g} %"


def says(D):
    """Makespan, idle of total, idle of ideal, largest span and largest peak, as texts."""
    total = len(D["bars"])*D["makespan"]
    idle = total - D["work"]
    return [number(D["makespan"]), percent(idle/total), percent(idle/D["work"]), number(D["span"]), number(D["top"])]


def fill(text, key, D):
    """A sentence of SAID with its numbers."""
    return text.format(*says(D), ", ".join(map(number, D["peaks"])), *key)


def _tr(cells):
    return (f'<tr><th scope="row">{html.escape(cells[0])}</th>'
            + "".join(f"<td>{c}</td>" for c in cells[1:]) + "</tr>")


def picture(rows, tone, D, W, label):
    """The chart of a schedule's slots, W pixels wide or as wide as they need: (shapes, W, height, label).

    tone: see tones().
    """
    p, wide, long = len(rows), W >= 520, max(map(len, rows))
    high = 30 if p <= 4 else 26 if p <= 8 else 18
    x0, side = 1.15*width(f"device {p - 1}" if wide else str(p - 1)) + 9, 124 if wide else 72
    head, y = legend(kinds(rows), W)                      # where the picture scrolls it stays
    W = max(W, math.ceil(x0 + side + 3*long))
    x1 = W - side
    scale, most = (x1 - x0)/D["makespan"], side - 18 - 1.2*width(number(D["top"]))
    y0 = y + 22
    y1 = y0 + high*p
    out, left, right = [], [], [Text(x1 + 10, y0 - 7, "peak activations" if wide else "peak", opacity=.8)]
    step, t = nice_step(0, D["makespan"], max(4, (x1 - x0)//60), ""), 0
    while t*step <= D["makespan"]*(1 + 1e-9):
        x = x0 + scale*t*step
        out += [Path(f"M{x:.1f} {y1}v5", line="other", line_opacity=.55), Text(x, y1 + 18, number(t*step), "middle")]
        t += 1
    out.append(Text((x0 + x1)/2, y1 + 36, "time", "middle", opacity=.8))
    for d, peak in enumerate(D["peaks"]):
        y, bar = y0 + high*d, most*peak/D["top"]
        out.append(Rect(x0, y + 1, x1 - x0, high - 2, line="idle", line_opacity=.5))
        left.append(Text(x0 - 8, y + high/2 + 4, f"device {d}" if wide else str(d), "end"))
        right += [Rect(x1 + 10, y + high/2 - 5, bar, 10, "memory"), Text(x1 + 14 + bar, y + high/2 + 4, number(peak))]
    paths, labels = operations(D["bars"], tone, x0, scale, y0, high)
    weight = .5 if x1 - x0 < 8*long else 1
    out.append(Group([path._replace(line="paper", weight=weight) for path in paths], name="cx-ops"))
    around = [Group(shapes, name=f"cx-{name}") for name, shapes in (("left", left), ("right", right), ("head", head))]
    return [*out, *labels, *around], W, y1 + 44, label


def operations(bars, tone, x0, scale, y0, high):
    """(a Path for each role and tone, the numbers of micro-batches if all have room); a row is `high` pixels.

    A row where some bars are numbered and others are not looks unfinished, and one counts in vain.
    """
    paths, labels, roomy = {}, [], True
    for d, done in enumerate(bars):
        for start, end, slot in done:
            x, z, h = x0 + scale*start, x0 + scale*end, (high - 2)/len(slot)
            for n, (kind, s, j) in enumerate(slot):
                y, pale = y0 + high*d + 1 + h*n, tone[d][s]
                key = ROLES[kind], pale
                paths[key] = paths.get(key, "") + f"M{x:.1f} {y:.1f}H{z:.1f}V{y + h:.1f}H{x:.1f}Z"
                if end > start:
                    roomy = roomy and h >= 12 and width(str(j)) + 2 < z - x
                    color = "other" if pale else f"on:{ROLES[kind]}"
                    labels.append(Text((x + z)/2, y + h/2 + 4, str(j), "middle", color, size=11, spoken=False))
    return [Path(d, role, opacity=PALE[pale]) for (role, pale), d in paths.items()], labels if roomy else []


# ---- on matplotlib's Axes -------------------------------------------------------------------------
def _on_axes(timeline, title, ax):
    """The rows of the chart on Axes whose x is time; Axes that share it get the longest time of all."""
    from matplotlib.patches import Rectangle
    from matplotlib.transforms import Affine2D

    from . import paper
    D, rows, p = numbers(timeline), timeline.schedule.slots, len(timeline.schedule.orders)
    ax.update_datalim([(0, 0), (D["makespan"], p)])
    together = ax.get_shared_x_axes().get_siblings(ax)
    end = max(other.dataLim.x1 for other in together)
    ax.set(xlim=(-.002*end, 1.002*end), ylim=(p - .5, -.5))
    place = ax.get_subplotspec()
    if len(together) == 1 or not place or place.is_last_row():
        ax.set_xlabel("time", loc="right")
    ax.grid(False)
    ax.spines[:].set_visible(False)
    ax.tick_params(axis="y", length=0)
    ax.set_yticks(range(p), [f"device {d}" for d in range(p)])
    box, inch = ax.get_window_extent(), .0085             # letters a little smaller than in a picture of its own
    scale, high = .93*box.width/ax.figure.dpi/inch/end, box.height/ax.figure.dpi/inch/p       # pixels of a unit
    frames = [Rect(0, high*d + 1, scale*D["makespan"], high - 2, line="idle", line_opacity=.5) for d in range(p)]
    paths, labels = operations(D["bars"], tones(rows, timeline.schedule.chunks), 0, scale, 0, high)
    paper.paint(ax, [*frames, *(path._replace(line="paper", weight=.5) for path in paths), *labels], inch=inch,
                to=Affine2D().scale(1/scale, 1/high).translate(0, -.5) + ax.transData)
    for name, role, _ in kinds(rows):
        ax.add_patch(Rectangle((0, 0), 0, 0, color=paper.ink(role), label=name))
    if title:
        ax.set_title(title, loc="left")
    return ax

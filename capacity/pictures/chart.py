"""Gantt charts of a pipeline: gantt() on paper, explore_schedules() with choices and sliders.

* The HTML book: choices of schedule, devices and micro-batches, sliders for F, I and W; `capacity/pictures/static/chart.js` runs the
  clock and draws; no kernel, no network.
* JupyterLab with a kernel: ipywidgets, the same SVG drawn here.
* No JavaScript: a table of all schedules.  PDF: a PNG of the first one.

    gantt(simulate(one_f_one_b(p=4, m=8)), title="A quarter of the time is idle")
    explore_schedules("two", [make(4, m) for make in (gpipe, one_f_one_b) for m in (4, 8)],
                      title="Same bubble, less memory")

The page has the orders and nothing else: times come from a clock, here and in gantt.js, which a test holds against
`capacity.simulate`.  A picture receives schedules and timelines; it makes none.
"""
import base64
import html
import io
import math

from . import svg as draw
from .svg import BLACK, SOFT, ink, on, width, words
from .explorer import Slider, _short

DEVICES, SCHEDULES, LONGEST = 16, 64, 4096        # the most devices, schedules and slots of a device in an explorer
COLORS = {"F": "compute", "B": "limit", "I": "limit", "W": "measured"}
NAMES = {"F": "forward", "B": "backward", "I": "input gradient", "W": "weight gradient"}
PALE = ["1", ".42", ".3", ".2"]                   # opacity of the first chunk, the second, ...
HEAD = ["schedule", "p", "m", "makespan", "idle/total", "idle/ideal", "span", "peak"]


def gantt(timeline, *, title=None, ax=None):
    """A chart of a timeline: a row per device, device 0 on top, a rectangle per operation.  -> the Axes

    timeline  what capacity.simulate returns, in numbers
    title     the finding
    ax        where to draw; None: a new figure 6.4 inches wide, with a legend below
    Forward is blue, backward and the input's gradient amber, the weights' gradient pink; later chunks, or the second
    direction, are paler.  What runs overlapped lies one above the other.  A number is a micro-batch; white is idle.
    On `ax`, ax.legend() names the colours.
    Raises ValueError for what is no timeline, or one of symbols.
    """
    if not all(hasattr(timeline, a) for a in ("schedule", "start", "end", "makespan")):
        raise ValueError(f"timeline is {timeline!r}; allowed: what capacity.simulate returns")
    try:
        start, end = ({op: float(t) for op, t in times.items()} for times in (timeline.start, timeline.end))
    except TypeError:
        raise ValueError(f"timeline ends at {timeline.makespan}; allowed: times that are numbers") from None
    rows = [_slots(order) for order in timeline.schedule.orders]
    bars = [[(start[slot[0]], end[slot[0]], slot) for slot in row] for row in rows]
    if ax is not None:
        _paint(ax, rows, tones(rows, timeline.schedule.chunks), bars, float(timeline.makespan))
    else:
        import matplotlib.pyplot as plt

        from . import plot                            # noqa: F401  (the book's style)
        _, ax = plt.subplots(figsize=(6.4, 1.1 + .3*len(rows)), layout="constrained")
        _paint(ax, rows, tones(rows, timeline.schedule.chunks), bars, float(timeline.makespan))
        _legend(ax)
    if title:
        ax.set_title(title)
    return ax


def explore_schedules(name, schedules, *, title, F=(.2, 3, 1), I=(.2, 3, 1), W=(.2, 3, 1),     # noqa: E741
                      pair=(.5, 1, 1)):
    """Choices of schedule, p and m, and sliders of times, over a Gantt chart: the last line of a cell.

    name       slug, unique on its page: lower case, digits, hyphens
    schedules  1 to 64 of capacity's Schedules, all unlike in (name, p, m, v); the first is shown first
    title      the finding, as a sentence
    F, I, W    (lo, hi, value): the time of a micro-batch on a device, of which a chunk takes 1/v; B = I + W
    pair       (lo, hi, value): the share of the sum of their times that overlapped operations take; this slider is
               there if some schedule overlaps.  Of F with B it is simulate(..., pair=share*(F + I + W)).
    The reader changes one choice at a time; what does not exist beside the two others is disabled.
    Raises ValueError naming what is wrong: a schedule twice, one that no such changes lead to, one that cannot run,
    more than 16 devices, a slider whose value is not between its ends, an empty title.
    """
    return Schedules(name, schedules, title, dict(F=F, I=I, W=W, pair=pair))


class Schedules:
    """A checked explorer: .spec() for JavaScript, .numbers(i, setting), .svg(i, setting), .table(setting), .widget().

    i is the number of a schedule in the list; a setting has a value per slider, in the order of .start.
    """

    def __init__(self, name, schedules, title, ranges):
        self.name, self.title = draw.slug("explorer", name), title
        if not (isinstance(title, str) and title.strip()):
            raise ValueError(f"{name}: title is {title!r}; allowed: a sentence that states the finding")
        self.schedules = list(schedules)
        if not 1 <= len(self.schedules) <= SCHEDULES:
            raise ValueError(f"{name}: there are {len(self.schedules)} schedules; allowed: 1 to {SCHEDULES}")
        self.charts = [self._chart(s) for s in self.schedules]
        self._choices()
        overlap = any(len(slot) > 1 for c in self.charts for row in c["rows"] for slot in row)
        self.sliders = [self._slider(k, item) for k, item in ranges.items() if overlap or k != "pair"]
        self.start = [s.start for s in self.sliders]
        for i, s in enumerate(self.schedules):
            if not self.numbers(i):
                raise ValueError(f"{name}: {self._called(i)} cannot run; capacity.simulate(it) says why")
        self._spec = self.spec()

    # ---- reading the arguments -------------------------------------------------------------
    def _chart(self, schedule):
        """What the clock and the picture need of a schedule: p, m, v and the rows of slots."""
        if not all(hasattr(schedule, a) for a in ("name", "orders", "chunks")):
            raise ValueError(f"{self.name}: a schedule is {schedule!r}; allowed: a Schedule of capacity.witness.schedule")
        try:
            rows = [_slots(order) for order in schedule.orders]
            kinds = _kinds(rows)
        except (TypeError, ValueError, IndexError):
            raise ValueError(f"{self.name}: the orders of {schedule.name} are none; capacity.simulate says why"
                             ) from None
        if not 1 <= len(rows) <= DEVICES or not all(1 <= len(row) <= LONGEST for row in rows):
            slots = ", ".join(str(len(row)) for row in rows)
            raise ValueError(f"{self.name}: {schedule.name} has {len(rows)} devices of {slots} slots; "
                             f"allowed: 1 to {DEVICES}, of 1 to {LONGEST} slots")
        m, stages = 1 + max(j for _, j in kinds), len(rows)*schedule.chunks
        if kinds.keys() != {(s, j) for s in range(stages) for j in range(m)} or not {*kinds.values()} <= {"BF", "FIW"}:
            raise ValueError(f"{self.name}: {schedule.name}, p = {len(rows)}, m = {m} lacks an operation or has one "
                             "too many; capacity.simulate says which")
        return {"p": len(rows), "m": m, "v": schedule.chunks, "rows": rows, "tones": tones(rows, schedule.chunks),
                "peaks": [_peak(row)/schedule.chunks for row in rows]}

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
    def numbers(self, i=0, setting=None):
        """The timeline of schedule i at a setting, as a dict for picture(); {} for one that cannot run."""
        return clock(self.charts[i], self.start if setting is None else setting)

    # ---- the specification -----------------------------------------------------------------
    def spec(self):
        """The explorer as JSON: what gantt.js draws from; see code() for a device's order."""
        keys = [tuple(legend(c["rows"])) for c in self.charts]
        legends = list(dict.fromkeys(keys))
        return {"title": self.title,
                "sliders": [{"label": s.text, "stops": [_short(v) for v in s.positions()],
                             "at": s.positions().index(s.start)} for s in self.sliders],
                "choices": CHOICES, "options": self.options, "key": KEY, "said": SAID, "legends": legends,
                "list": [{"at": at, "v": c["v"], "key": legends.index(key), "peaks": list(map(_short, c["peaks"])),
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
        return picture(self._spec, i, self.charts[i], self.numbers(i, setting), width)

    def words(self, i=0, setting=None):
        """What is read out, as HTML paragraphs."""
        return fill(SAID[1], self.keys[i], self.numbers(i, setting))

    def to_html(self):
        """The figure of the built book; readable as a table where no script runs."""
        return (f'<figure class="cx-gantt" id="{self.name}" data-spec=\'{draw.attribute(self._spec)}\'>\n'
                f"<figcaption>{html.escape(self.title)}</figcaption>\n<p>{self.setting_text()}</p>\n"
                f"{self.table()}\n</figure>")

    def png(self, dpi=144):
        """The first schedule for paper, as the bytes of a PNG 6.4 inches wide; always the same."""
        from matplotlib.figure import Figure              # no pyplot: nothing global, nothing to close
        D, c = self.numbers(), self.charts[0]
        fig = Figure(figsize=(6.4, 2.1 + .3*c["p"]), layout="constrained", facecolor="white")
        fig.suptitle(self.title, x=.01, ha="left", fontsize=11, fontweight="bold", parse_math=False)
        ax = fig.add_subplot()
        ax.set_title(f"{self._called(0)}; {self.setting_text()}", loc="left", fontsize=9, color="#555555")
        _paint(ax, c["rows"], c["tones"], D["bars"], D["makespan"])
        _legend(ax)
        said = self.words().replace("</p><p>", "\n")
        for tag in ("<p>", "</p>", "<strong>", "</strong>"):
            said = said.replace(tag, "")
        fig.supxlabel(said, x=.01, ha="left", fontsize=9.5)
        out = io.BytesIO()
        fig.savefig(out, format="png", dpi=dpi, metadata={"Software": None})
        return out.getvalue()

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
        title = W.HTML(f"{draw.LAB}<strong>{html.escape(self.title)}</strong>")
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
KEY = ("A number is a micro-batch; paler: later chunks, or the second direction; empty: idle. An activation is that of "
       "one micro-batch on one device.")


def _changed(key, n, option):
    return *key[:n], option, *key[n + 1:]


def _slots(order):
    """The slots of a device, each a tuple of (kind, stage, micro-batch)."""
    return [((*slot,),) if isinstance(slot[0], str) else tuple(tuple(op) for op in slot) for slot in order]


def _kinds(rows):
    """{(stage, micro-batch): its kinds, sorted: "BF" or "FIW" if all is well}."""
    kinds = {}
    for kind, s, j in (op for row in rows for slot in row for op in slot):
        kinds[s, j] = kinds.get((s, j), "") + kind
    return {key: "".join(sorted(k)) for key, k in kinds.items()}


def _overlaps(chart):
    return any(len(slot) > 1 for row in chart["rows"] for slot in row)


def _peak(row):
    """The most activations at once; in an overlapped slot the new one comes before the old one goes."""
    held = peak = 0
    for slot in row:
        held += sum(kind == "F" for kind, _, _ in slot)
        peak = max(peak, held)
        held -= sum(kind in "BW" for kind, _, _ in slot)
    return peak


def tones(rows, v):
    """[{stage: tone}] by device: a stage's chunk, counted on in the second direction; 3 at most."""
    doors = {j: d for d, row in enumerate(rows) for slot in row for kind, s, j in slot if kind == "F" and s == 0}
    order = sorted(set(doors.values()))
    return [{s: min(s//len(rows) + v*order.index(doors.get(j, order[0])), 3) for slot in row for _, s, j in slot}
            for row in rows]


def legend(rows):
    """(text, colour, None) of the kinds that occur; B and I have one colour."""
    kinds = {kind for row in rows for slot in row for kind, _, _ in slot}
    names = {}
    for k in "FBIW":
        if k in kinds:
            names.setdefault(COLORS[k], []).append(NAMES[k])
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
    return ",".join(f"{s}/{tone[s]}" for s in stages) + " " + _shorten(tokens)


def _shorten(tokens):
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
            text = f"({_shorten(tokens[i:i + q])}){n}"
        out, i = out + text, end
    return out


# ---- the clock: gantt.js is the same from here on, function by function -----------------------------
def clock(chart, setting):
    """When every slot starts and ends: {bars: [[(start, end, slot), ...] by device], makespan, work, span, peaks, top}.

    setting: F, I, W and the share of the sum that an overlapped slot takes.  {} if a slot never gets what it needs.
    """
    p, v, rows = chart["p"], chart["v"], chart["rows"]
    F, I, W, share = (*setting, 1)[:4]                                          # noqa: E741
    times, last = {"F": F/v, "I": I/v, "W": W/v, "B": (I + W)/v}, p*v - 1
    forward, backward, bars, moved = {}, {}, [[] for _ in rows], True

    def there(op):
        kind, s, j = op
        if kind == "F":
            return forward.get((s - 1, j)) if s else 0
        if kind == "W":
            return backward.get((s, j))
        return None if (s, j) not in forward else backward.get((s + 1, j)) if s < last else forward[s, j]
    while moved:
        moved = False
        for row, done in zip(rows, bars):
            while len(done) < len(row):
                slot = row[len(done)]
                needs = [there(op) for op in slot]
                if None in needs:
                    break
                start = max(done[-1][1] if done else 0, *needs)
                took = sum(times[op[0]] for op in slot)
                end = start + (took*share if len(slot) > 1 else took)
                for kind, s, j in slot:
                    if kind != "W":
                        (forward if kind == "F" else backward)[s, j] = end
                done.append((start, end, slot))
                moved = True
    if any(len(done) < len(row) for row, done in zip(rows, bars)):
        return {}
    ends = [done[-1][1] for done in bars]
    return {"bars": bars, "makespan": max(ends), "work": sum(b - a for done in bars for a, b, _ in done),
            "span": max(end - done[0][0] for end, done in zip(ends, bars)),
            "peaks": chart["peaks"], "top": max(chart["peaks"])}


def number(x):
    """At most two decimals, '4.33'."""
    return f"{math.floor(100*x + .5)/100:.12g}"


def percent(x):
    return f"{math.floor(1000*x + .5)/10:.12g} %"


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


def picture(S, i, chart, D, W):
    """The chart of schedule i as SVG text."""
    p, rows = chart["p"], chart["rows"]
    wide = W >= 520
    high = 30 if p <= 4 else 26 if p <= 8 else 18
    x0 = 1.15*width(f"device {p - 1}" if wide else str(p - 1)) + 9
    side = 124 if wide else 72
    long = max(map(len, rows))
    W = max(W, math.ceil(x0 + side + 3*long))
    x1, top = W - side, number(D["top"])
    k = (x1 - x0)/D["makespan"]
    head, y = draw.legend(legend(rows), W)
    y0 = y + 22
    y1 = y0 + high*p
    out = head + words(x1 + 10, y0 - 7, "peak activations" if wide else "peak", "start", SOFT)
    step, t = _step(D["makespan"], max(4, (x1 - x0)//60)), 0
    while t*step <= D["makespan"]*(1 + 1e-9):
        x = x0 + k*t*step
        out += draw.stroke(f"M{x:.1f} {y1}v5", "currentColor", 1, more='stroke-opacity=".55"')
        out += words(x, y1 + 18, number(t*step), "middle", BLACK)
        t += 1
    out += words((x0 + x1)/2, y1 + 36, "time", "middle", SOFT)
    paths, labels = {}, ""
    for d, bars in enumerate(D["bars"]):
        y, held = y0 + high*d, D["peaks"][d]
        out += words(x0 - 8, y + high/2 + 4, f"device {d}" if wide else str(d), "end", BLACK)
        out += (f'<rect x="{x0:.1f}" y="{y + 1:.1f}" width="{x1 - x0:.1f}" height="{high - 2:.1f}" '
                f'stroke="{ink("idle")}" stroke-opacity=".5"/>')
        text = number(held)
        bar = (side - 18 - 1.2*width(top))*held/D["top"]
        out += (f'<rect x="{x1 + 10:.1f}" y="{y + high/2 - 5:.1f}" width="{bar:.1f}" height="10" '
                f'fill="{ink("memory")}"/>' + words(x1 + 14 + bar, y + high/2 + 4, text, "start", BLACK))
        for a, b, slot in bars:
            x, z, h = x0 + k*a, x0 + k*b, (high - 2)/len(slot)
            for n, (kind, s, j) in enumerate(slot):
                u, c = y + 1 + h*n, chart["tones"][d][s]
                style = COLORS[kind], c
                paths[style] = paths.get(style, "") + f"M{x:.1f} {u:.1f}H{z:.1f}V{u + h:.1f}H{x:.1f}Z"
                if h >= 12 and width(str(j)) + 2 < z - x:
                    style = BLACK if c else f'fill="{on(COLORS[kind])}"'
                    style += ' font-size="11" aria-hidden="true"'
                    labels += words((x + z)/2, u + h/2 + 4, str(j), "middle", style)
    for (color, c), d in paths.items():
        out += (f'<path class="cx-op" d="{d}" fill="{ink(color)}" fill-opacity="{PALE[c]}" stroke="{draw.PAPER}" '
                f'stroke-width="{.5 if x1 - x0 < 8*long else 1}"/>')
    return draw.framed(S, W, y1 + 44, out + labels, fill(S["said"][0], S["list"][i]["at"], D))


def _step(hi, n):
    """The smallest 1-2-5 step that cuts 0..hi into at most n parts."""
    raw = hi/n
    ten = draw.ten(math.floor(math.log10(raw)))
    return ten*next(m for m in (1, 2, 5, 10) if raw <= m*ten*(1 + 1e-9))


# ---- paper -------------------------------------------------------------------------------------
def _paint(ax, rows, tones, bars, makespan):
    """The chart by matplotlib."""
    styles, p = {}, len(rows)
    ax.barh(range(p), [makespan]*p, height=.9, color="none", edgecolor="#999999", linewidth=.5)
    for d, done in enumerate(bars):
        for a, b, slot in done:
            for n, (kind, s, j) in enumerate(slot):
                h = .9/len(slot)
                styles.setdefault((COLORS[kind], tones[d][s]), []).append((d - .45 + h*(n + .5), h, a, b - a, j))
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
    box, dot = ax.get_window_extent(), 72/ax.figure.dpi
    across, up = .93*box.width*dot/end, box.height*dot/p                           # points
    names = {c: name for name, c, _ in legend(rows)}
    for (color, c), items in sorted(styles.items()):
        ys, hs, xs, ws, js = zip(*items)
        ax.barh(ys, ws, hs, xs, color=draw.COLORS[color], alpha=float(PALE[c]), edgecolor="white", linewidth=.4,
                label=names.pop(color, None))
        for y, h, x, w, j in items:
            size = min(8, up*h - 1, (w*across - 1)/(.62*len(str(j))))
            if size >= 5:
                ax.text(x + w/2, y, str(j), ha="center", va="center_baseline", fontsize=size,
                        color="white" if color == "compute" and c == 0 else "black")


def _legend(ax):
    """Below, beside the name of the axis."""
    ax.legend(loc="upper left", bbox_to_anchor=(0, 0), borderaxespad=1.9, ncols=4, frameon=False, fontsize=9,
              handlelength=1, handleheight=1, columnspacing=1.5, borderpad=0)

"""Drawings of chapter 5: offers as areas, a step's work and its pause, a pipeline that fills and drains."""
from ..diagram import LEAST, Sketch

WORDS = {"work": ("compute", .75), "wait": ("idle", .45), "lost": ("limit", .9), "queue": ("measured", .75), "forward": ("compute", .75),
         "backward": ("limit", .75)}


def key(s, y, **words):
    """What the colours mean: kind=words."""
    s.legend(y, [(said, *WORDS[kind]) for kind, said in words.items()])


def offers(W, rows, span=120):
    """Rectangles of days by devices: [(what is said above, devices, days, share of them that is lost), ...]."""
    s, y = Sketch(W), 0
    wide = (W - 8)/span
    for said, devices, days, lost in rows:
        s.text(0, y + 13, said, "start", size=LEAST)
        tall = devices/18
        s.rect(0, y + 20, days*(1 - lost)*wide, tall, "compute", "compute", opacity=.55, radius=0)
        if lost:
            s.rect(days*(1 - lost)*wide, y + 20, days*lost*wide, tall, "limit", "limit", opacity=.9, radius=0)
        y += tall + 32
    s.line(f"M0 {y:.1f}H{W - 8}", "other", 1, opacity=.5)
    for at in range(0, span + 1, 60 if s.narrow else 30):
        s.line(f"M{at*wide:.1f} {y:.1f}v5", "other", 1, opacity=.5)
        s.text(at*wide, y + 20, f"{at}{' days' if at == span else ''}", "end" if at == span else "middle" if at else "start",
               soft=True, size=LEAST)
    key(s, y + 32, work="kept", lost="paid and lost")
    return s


def month(W, parts, span=30):
    """A strip of so many days: {kind: days}, kinds of WORDS; what each is called stands below."""
    s = Sketch(W)
    wide, x = (W - 8)/span, 0
    for kind, days in parts.items():
        color, opacity = WORDS[kind]
        s.rect(x, 4, max(days*wide, .7), 40, color, "", opacity=opacity, radius=0)
        x += days*wide
    for at in range(0, span + 1, 10):
        s.line(f"M{at*wide:.1f} 48v5", "other", 1, opacity=.5)
        s.text(at*wide, 68, f"{at}{' days' if at == span else ''}", "end" if at == span else "middle" if at else "start",
               soft=True, size=LEAST)
    key(s, 80, work="training", wait="waiting", lost="saved, or done again", queue="in the queue, unpaid")
    return s


def step(W, devices, work=12):
    """A step on so many devices: work shared out evenly, then a pause of one unit on each."""
    s = Sketch(W)
    unit, tall = min(34, (W - 20)/(work + 1)), min(32, 156/devices - 3)
    for d in range(devices):
        y = d*(tall + 3)
        for j in range(work//devices + 1):
            color, opacity = WORDS["work" if j < work//devices else "wait"]
            s.rect(j*unit, y, unit - 2, tall, color, "", opacity=opacity, radius=1)
    key(s, 164, work="a second of work", wait="of waiting")
    return s


def pipeline(W, timeline, span):
    """Lanes of devices, one below the other; what is not drawn over is waiting; span is the length of the axis."""
    s = Sketch(W)
    tall, left = 24, 58 if W > 400 else 22
    unit = (W - left)/span
    devices = len(timeline.schedule.orders)
    for d in range(devices):
        y = d*(tall + 5)
        s.text(0, y + 17, f"stage {d}" if W > 400 else f"{d}", "start", soft=True, size=LEAST)
        s.rect(left, y, float(timeline.makespan)*unit, tall, "idle", "", opacity=.45, radius=0)
        for slot in timeline.schedule.slots[d]:
            for op in slot:
                x, w = float(timeline.start[op])*unit, float(timeline.end[op] - timeline.start[op])*unit
                color, opacity = WORDS["forward" if op.kind == "F" else "backward"]
                s.rect(left + x, y, w, tall, "paper", "", radius=0)
                s.rect(left + x + .5, y, w - 1, tall, color, "", opacity=opacity/(1 + op.stage//devices*.6), radius=0)
    key(s, devices*(tall + 5) + 6, forward="forward", backward="backward", wait="waiting")
    return s

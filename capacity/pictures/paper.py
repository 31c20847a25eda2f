"""The picture of an explorer for paper: a PNG by matplotlib, at the sliders' first positions."""
import io
import math

from . import svg as draw
from ..units import show

GREY = {"color": "#999999", "alpha": 0.3, "linewidth": 0.6}
HALO = {"boxstyle": "square,pad=0.1", "facecolor": "white", "edgecolor": "none", "alpha": 0.75}


def png(explorer, dpi=144):
    """The bytes of a PNG, 6.4 inches wide: title, setting, picture, readouts; always the same."""
    from matplotlib.figure import Figure              # no pyplot: nothing global, nothing to close
    from matplotlib.text import Text
    S, D = explorer._spec, explorer.numbers()
    tall = 3.7 if S["curves"] else 1.7 + 0.45*len(S["bars"]) if S["bars"] else 0.5
    size = 6.4, tall + 0.2*len(S["readouts"])
    fig = Figure(figsize=size, layout="constrained", facecolor="white")
    fig.suptitle(S["title"], x=0.01, ha="left", fontsize=11, fontweight="bold")
    if "y" in S:
        ax = fig.add_subplot()
        ax.spines[["top", "right", *(["left"] if S["bars"] else [])]].set_visible(False)
        ax.set_axisbelow(True)
        ax.set_title(explorer.setting_text(), loc="left", fontsize=9, color="#555555")
        (_lines if S["curves"] else _bars)(ax, S, D)
    values = [r["words"][v.index(True)]["label"] if "words" in r else show(v, r["unit"])
              for r, v in zip(S["readouts"], D["readouts"])]
    said = "\n".join(r["text"].replace("{}", v) for r, v in zip(S["readouts"], values))
    if said:
        fig.supxlabel(said, x=0.01, ha="left", fontsize=9.5)
    for text in fig.findobj(Text):
        text.set_parse_math(False)                        # "$2 an hour" is money
    out = io.BytesIO()
    fig.savefig(out, format="png", dpi=dpi, metadata={"Software": None})
    return out.getvalue()


def _color(role):
    return draw.COLORS.get(role, "#000000")


def _ticks(ax, which, values, unit):
    getattr(ax, f"set_{which}ticks")(values, [show(v, unit) for v in values], fontsize=9)
    getattr(ax, f"set_{which}ticks")([], minor=True)


def _lines(ax, S, D):
    x, y = S["x"], S["y"]
    lo, hi = draw.span([v for c in D["curves"] for v in c] + [p[1] for p in D["points"]], y, 6)
    for c, values in zip(S["curves"], D["curves"]):
        dash = tuple(float(d)/2 for d in c["dash"].split())
        ax.plot(D["xs"], [v if math.isfinite(v) else math.nan for v in values], label=c["label"],
                color=_color(c["color"]), linewidth=2, linestyle=(0, dash) if dash else "-")
    for p, (u, v) in zip(S["points"], D["points"]):
        if x["lo"] <= u <= x["hi"] and lo <= v <= hi:
            ax.plot(u, v, "o", color=_color(p["color"]), markersize=6)
            right = u**2 < x["lo"]*x["hi"] if x["scale"] == "log" else 2*u < x["lo"] + x["hi"]
            ax.annotate(p["label"], (u, v), (7 if right else -7, 4), textcoords="offset points",
                        fontsize=9, ha="left" if right else "right", bbox=HALO)
    ax.set(xscale=x["scale"], xlim=(x["lo"], x["hi"]), xlabel=x["label"],
           yscale=y["scale"], ylim=(lo, hi), ylabel=y["label"])
    ax.grid(**GREY)
    _ticks(ax, "x", draw.ticks(x, 7), x["unit"])
    _ticks(ax, "y", draw.ticks({**y, "lo": lo, "hi": hi}, 6), y["unit"])
    ax.legend(frameon=False, fontsize=9, handlelength=3)


def _bars(ax, S, D):
    unit, seen = S["y"]["unit"], set()
    for k, (b, values) in enumerate(zip(S["bars"], D["bars"])):
        at = 0
        for p, v in zip(b["parts"], values):
            ax.barh(k, v, left=at, height=0.6, color=_color(p["color"]), edgecolor="white",
                    label=p["label"] if p["label"] not in seen else None)
            seen.add(p["label"])
            at += v
        ax.text(at, k, f" {show(at, unit)}", va="center", fontsize=9, fontweight="bold")
    ends = [*map(math.fsum, D["bars"]), *([D["limit"]] if S["limit"] else [])]
    lo, hi = draw.span(ends, S["y"], 6)
    if S["limit"]:
        name = S["limit"]["label"].replace("{}", show(D["limit"], unit))
        ax.axvline(D["limit"], color=_color("limit"), linestyle="--", label=name)
    ax.set(xlim=(lo, hi), ylim=(len(S["bars"]) - 0.5, -0.5), xlabel=S["y"]["label"])
    ax.set_yticks(range(len(S["bars"])), [b["label"] for b in S["bars"]], fontsize=9)
    ax.grid(axis="x", **GREY)
    _ticks(ax, "x", draw.ticks({**S["y"], "lo": lo, "hi": hi}, 6), unit)
    ax.legend(frameon=False, fontsize=9, loc="upper left", bbox_to_anchor=(0, -0.3), ncols=4)

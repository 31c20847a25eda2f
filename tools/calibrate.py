"""Refit the constants of `estimate` to the published runs: writes capacity/specs/calibration.toml, prints the protocol.

Names, priors and devices of the constants stand in the file and stay; value, interval, rows and sources are written.
"""
import datetime
import json
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from capacity import published_runs, specs                # noqa: E402
from capacity.protocol import KINDS, Bench                # noqa: E402

FILE = specs.HERE/"calibration.toml"
HEAD = ("# Constants of `estimate`, and half-widths of its error: written by tools/calibrate.py.\n"
        "# value    fitted where there is a prior: soft-L1 of the logarithm of the time; else assumed\n"
        "# interval 16th and 84th percentile over resampled sources and configurations\n"
        "# prior, width   centre and deviation (of the logarithm) of a log-normal prior\n"
        "# devices  those to which it applies;  runs, sources   those in whose prediction it enters\n")


def rounded(x, digits=3):
    return float(f"{x:.{digits}g}")


def entries(bench, count=200):
    """The entries of the file, {name: {field: value}}."""
    found = {name: dict(entry) for name, entry in specs.read("calibration").items()}
    values, intervals = bench.fit(), bench.intervals(count)
    best = bench.solve()
    for column, name in enumerate(bench.names):
        rows = abs(bench.errors(best + 0.1*(np.arange(len(best)) == column)) - bench.errors(best)) > 1e-6
        found[name] |= dict(value=rounded(values[name]), interval=[rounded(x) for x in intervals[name]], runs=int(rows.sum()),
                            sources=sorted(set(bench.sources[rows].tolist())))
    every = np.ones(len(bench.runs), bool)
    for kind in KINDS:                                    # narrower than dense in 16 bits: few rows, that chose the terms
        spread, tail = np.maximum(bench.widths(every, kind), bench.widths(every, "dense-16"))
        rows = bench.kinds == kind
        found[f"error-{kind}"] |= dict(spread=rounded(spread, 2), tail=rounded(tail, 2), runs=int(rows.sum()),
                                       sources=sorted(set(bench.sources[rows].tolist())))
    return found


FIELDS = ("name", "value", "interval", "prior", "width", "spread", "tail", "devices", "runs", "sources", "source", "read",
          "note")


def text(found):
    """The file."""
    def lines(name, entry):
        yield f"[{name}]"
        for field in FIELDS:
            if field in entry:
                x = entry[field]
                yield f"{field} = {str(x) if isinstance(x, datetime.date) else json.dumps(x)}"
    return HEAD + "\n" + "\n\n".join("\n".join(lines(*item)) for item in found.items()) + "\n"


if __name__ == "__main__":
    bench = Bench(published_runs())
    FILE.write_text(text(entries(bench)))
    print(bench.report())

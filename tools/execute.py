"""Execute notebooks in place, so that doing it twice gives the same bytes.

    python tools/execute.py [-j 2] [--check] [notebook or folder ...]

With --check nothing is written: it fails if a file would change, or if a chapter takes over its 12 seconds.
Without paths: chapters, solutions, exercises, appendices, labs.
"""
import argparse
import os
import re
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from reproducible import ENVIRONMENT

os.environ.update(ENVIRONMENT)          # the kernels inherit it

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError

ROOT = Path(__file__).resolve().parents[1]
FOLDERS = ["chapters", "solutions", "exercises", "appendices", "labs"]
BUDGET = 12                                                     # seconds a chapter may take
METADATA = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
            "language_info": {"name": "python"}}
KEEP = {"tags", "nbgrader", "mystnb"}                           # of a cell's metadata
WIDGET = "application/vnd.jupyter.widget-view+json"             # holds a random id, useless without a kernel
SIZE = {"width", "height"}                                      # of an image's metadata: its size on the page
GROUND = "needs_background"                                     # JupyterLab puts a transparent figure on it
ADDRESS = re.compile(r"\bat 0x[0-9a-f]{6,}")
LINK = re.compile(r"\x1b\[[0-9;]*m")


class Unreproducible(Exception):
    """A cell wrote something that differs from run to run, or that no reader should see."""


def notebooks(paths=()):
    """The notebooks named by `paths` (files or folders; all of the book's if there are none), in order."""
    paths = [Path(p).resolve() for p in paths] or [ROOT / f for f in FOLDERS]
    return [n for p in paths for n in ([p] if p.suffix == ".ipynb" else sorted(p.glob("*.ipynb")))]


def clean_output(o):
    """An output without what changes from run to run; None if nothing is left."""
    if "data" in o:
        o.data.pop(WIDGET, None)
        o.metadata = nbformat.from_dict({k: {a: x for a, x in v.items() if a in SIZE} if k in o.data else v
                                         for k, v in o.metadata.items() if k in o.data or k == GROUND})
        return o if o.data else None
    if o.output_type == "error":
        o.traceback = [LINK.sub("", f"{o.ename}: {o.evalue}".rstrip(": "))]
    return o


def clean_outputs(outputs):
    """All of a cell's outputs, cleaned; neighbouring pieces of one stream become one."""
    kept = []
    for o in filter(None, map(clean_output, outputs)):
        if o.output_type == "stream" and kept and kept[-1].get("name") == o.name:
            kept[-1].text += o.text
        else:
            kept.append(o)
    for o in kept:
        if o.get("name") == "stderr":
            raise Unreproducible(f"writes to stderr: {o.text[:300]}")
        if ADDRESS.search("".join(map(str, [o.get("text", ""), *o.get("data", {}).values()]))):
            raise Unreproducible("prints a memory address")
    return kept


def normalise(nb, stem):
    """The notebook without machine, date and time; cell ids stay, missing and repeated ones are renewed."""
    nb.metadata, nb.nbformat, nb.nbformat_minor = nbformat.from_dict(METADATA), 4, 5
    seen = set()
    for i, cell in enumerate(nb.cells):
        cell.metadata = nbformat.from_dict({k: v for k, v in cell.metadata.items() if k in KEEP and v})
        if not cell.get("id") or cell.id in seen:
            cell.id = f"{stem}-{i:03d}"
        seen.add(cell.id)
        if cell.cell_type == "code":
            try:
                cell.outputs = clean_outputs(cell.outputs)
            except Unreproducible as e:
                raise Unreproducible(f"cell {i} {e}\n{cell.source}") from None
    return nb


def dumps(nb):
    return nbformat.writes(nb) + "\n"


def execute(path):
    """What the file at `path` should hold after a clean run. CellExecutionError, Unreproducible."""
    nb = nbformat.read(path, as_version=4)
    for cell in nb.cells:
        cell.setdefault("id", "")
    NotebookClient(nb, timeout=120, kernel_name="python3", record_timing=False, store_widget_state=False,
                   extra_arguments=["--HistoryManager.enabled=False", "--log-level=ERROR"],
                   resources={"metadata": {"path": str(path.parent)}}).execute()
    return dumps(normalise(nb, path.stem))


def run(path, check=False):
    """Execute one notebook: (path, 'same' or 'CHANGED' or 'FAILED', seconds, message)."""
    start = time.perf_counter()
    try:
        text = execute(path)
    except (CellExecutionError, Unreproducible) as e:
        return path, "FAILED", time.perf_counter() - start, LINK.sub("", str(e))
    took = time.perf_counter() - start
    same = text == path.read_text(encoding="utf-8")
    if not (same or check):
        path.write_text(text, encoding="utf-8")
    return path, "same" if same else "CHANGED", took, ""


def name(path):
    return path.relative_to(ROOT) if path.is_relative_to(ROOT) else path


def over_budget(path, took):
    """A chapter that was slow beside other work is timed again alone before it is blamed."""
    return path.parent.name == "chapters" and took > BUDGET and run(path, check=True)[2] > BUDGET


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("paths", nargs="*")
    parser.add_argument("-j", type=int, default=2, metavar="N", help="notebooks at a time (2)")
    parser.add_argument("--check", action="store_true", help="write nothing; fail if a file would change")
    args = parser.parse_args()

    bad, slow, total = [], [], 0
    with ThreadPoolExecutor(args.j) as pool:
        for path, state, took, message in pool.map(lambda p: run(p, args.check), notebooks(args.paths)):
            print(f"{took:6.1f} s  {state:7}  {name(path)}", flush=True)
            total += 1
            if message:
                print(message)
            if state == "FAILED" or (args.check and state == "CHANGED"):
                bad.append(path)
            if took > BUDGET:
                slow.append((path, took))
    if args.check:
        slow = [p for p, took in slow if over_budget(p, took)]
        print(f"budget: {BUDGET} s a chapter; over it: {', '.join(p.stem for p in slow) or 'none'}")
        print(f"{total - len(bad)} of {total} notebooks are what a clean run gives")
        bad += slow
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())

"""The points that the checks of these notebooks give.

    python points.py [NAME ...]          all that lie beside this file; needs nbclient, ipykernel and the wheel
"""
import sys
from pathlib import Path

import nbformat
from nbclient import NotebookClient

HERE = Path(__file__).resolve().parent
names = sys.argv[1:] or sorted(p.parent.name for p in HERE.glob("*/*.ipynb"))
lost = 0
for name in names:
    nb = nbformat.read(HERE/name/f"{name}.ipynb", as_version=4)
    NotebookClient(nb, timeout=120, allow_errors=True, resources={"metadata": {"path": HERE/name}}).execute()
    checks = [c for c in nb.cells if c.cell_type == "code" and c.metadata.get("nbgrader", {}).get("grade")]
    passed = [c for c in checks if all(o.output_type != "error" for o in c.outputs)]
    failed = [c.source.splitlines()[0].removeprefix("# check ") for c in checks if c not in passed]
    lost += len(failed)
    most, got = (sum(c.metadata["nbgrader"]["points"] for c in cells) for cells in (checks, passed))
    print(f"{name}: {got} of {most}" + (f", not yet {', '.join(failed)}" if failed else ""), flush=True)
sys.exit(lost > 0)

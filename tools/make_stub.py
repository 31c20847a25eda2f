"""Write capacity/__init__.pyi, so that editors and type checkers see the names that the package loads when asked for.

    python tools/make_stub.py            write the stub
    python tools/make_stub.py --check    fail if it is not what this would write
"""
import sys
from pathlib import Path

import capacity
from capacity.formulas import REGISTRY

STUB = Path(capacity.__file__).with_suffix(".pyi")


def text():
    """One line a name: `from .hardware import Cluster as Cluster`, which makes it public."""
    homes = {**{name: "." + capacity.__getattr__(name).__module__.removeprefix("capacity.") for name in REGISTRY},
             **{name: "." + module for name, module in capacity._MODULE_OF.items()},
             **{name: "." + _word_home(name) for name in capacity._WORDS}}
    lines = (f"from {home} import {name} as {name}" for name, home in sorted(homes.items(), key=lambda x: (x[1], x[0])))
    return "# Written by tools/make_stub.py: edit capacity/__init__.py, not this file.\n" + "\n".join(lines) + "\n"


def _word_home(name):
    from capacity import algebra
    return "algebra" if hasattr(algebra, name) else "units"


def main():
    if "--check" not in sys.argv[1:]:
        STUB.write_text(text(), encoding="utf-8")
    elif not STUB.exists() or STUB.read_text(encoding="utf-8") != text():
        sys.exit("run tools/make_stub.py: capacity/__init__.pyi is out of step")


if __name__ == "__main__":
    main()

"""What the README and the package's docstring print is what Python says."""
import ast
import re
from pathlib import Path

import pytest

import capacity

ROOT = Path(__file__).resolve().parents[1]
BLOCKS = {f"{page}-{k}": text for page in ("README.md", "CONTRIBUTING.md")
          for k, text in enumerate(re.findall(r"```python\n(.*?)```", (ROOT/page).read_text(), re.S))}
BLOCKS["capacity"] = re.sub(r"^    ", "", "\n".join(re.findall("^    .*", capacity.__doc__, re.M)), flags=re.M)


@pytest.mark.parametrize("text", BLOCKS.values(), ids=BLOCKS)
def test_examples_print_what_they_claim(text):
    """Each block runs; `expression   # value` has that value."""
    scope, claims = {}, 0
    for statement in ast.parse(text).body:
        last = text.splitlines()[statement.end_lineno - 1]
        if isinstance(statement, ast.Expr) and "  # " in last:
            code = compile(ast.Expression(statement.value), "page", "eval")
            assert repr(eval(code, scope)) == last.split("  # ")[1].strip(), last
            claims += 1
        else:
            exec(compile(ast.Module([statement], []), "page", "exec"), scope)
    assert claims, "no value is claimed"


def test_commands_exist():
    targets = re.findall(r"^([a-z]+):", (ROOT/"Makefile").read_text(), re.M)
    for page in "README.md", "CONTRIBUTING.md":
        assert set(re.findall(r"(?:`|^)make ([a-z]+)", (ROOT/page).read_text(), re.M)) <= set(targets), page

"""What the README and the package's docstring print is what Python says."""
import re
from pathlib import Path

import pytest

import capacity

ROOT = Path(__file__).resolve().parents[1]
README = re.search(r"```python\n(.*?)```", (ROOT/"README.md").read_text(), re.S)[1]


@pytest.mark.parametrize("text", [README, re.sub(r"^    ", "", capacity.__doc__, flags=re.M)], ids=["README", "capacity"])
def test_examples_print_what_they_claim(text):
    scope, lines = {}, re.findall(r"^(from \S+ import .*|.*\S\s+# .*)$", text, re.M)
    claims = [line.split("  # ") for line in lines if "  # " in line]
    assert claims
    exec("\n".join(line for line in lines if line.startswith("from ")), scope)
    for code, value in claims:
        assert repr(eval(code.strip(), scope)) == value.strip(), code


def test_commands_exist():
    targets = re.findall(r"^([a-z]+):", (ROOT/"Makefile").read_text(), re.M)
    for page in "README.md", "CONTRIBUTING.md":
        assert set(re.findall(r"(?:`|^)make ([a-z]+)", (ROOT/page).read_text(), re.M)) <= set(targets), page

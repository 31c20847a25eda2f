"""What the README and the package's docstring print is what Python says."""
import ast
import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

import capacity
from capacity import cli
from test_own import SIZES, output

ROOT = Path(__file__).resolve().parents[1]


def blocks(page, language="python"):
    return re.findall(rf"```{language}\n(.*?)```", (ROOT/page).read_text(), re.S)


README = {f"{page} {k}": text for page in ("README.md", "SKILL.md", "questions.md", "teach.md")
          for k, text in enumerate(blocks(page), 1)}
README["capacity"] = re.sub(r"^    ", "", "\n".join(re.findall("^    .*", capacity.__doc__, re.M)), flags=re.M)


def claims(text):
    """Run the statements of `text`; (value claimed, value found) of each `expression   # value`."""
    scope = {}
    for statement in ast.parse(text).body:
        last = text.splitlines()[statement.end_lineno - 1]
        if isinstance(statement, ast.Expr) and "  # " in last:
            yield last.split("  # ")[1].strip(), repr(eval(compile(ast.Expression(statement.value), "page", "eval"), scope))
        else:
            exec(compile(ast.Module([statement], []), "page", "exec"), scope)


@pytest.mark.parametrize("text", README.values(), ids=README)
def test_examples_print_what_they_claim(text):
    found = list(claims(text))
    assert found and all(claimed == value for claimed, value in found), found


LINES = [line for page in ("SKILL.md", "questions.md") for text in blocks(page, "bash")
         for line in text.replace("\\\n", " ").splitlines()]


@pytest.mark.parametrize("line", LINES)
def test_commands_print_what_they_claim(line, capsys, tmp_path, monkeypatch):
    """Those that name a file of the reader's read one that this test makes."""
    shape = next(text for text in blocks("questions.md") if "model_from_config(" in text)
    (tmp_path/"config.json").write_text(json.dumps(ast.literal_eval(re.search(r"\{.*?\}", shape, re.S)[0])))
    [cluster] = blocks("questions.md", "toml")
    (tmp_path/"mine.toml").write_text(cluster)
    (tmp_path/"all_reduce.log").write_text(output(20 + SIZES/1e5, SIZES))
    monkeypatch.chdir(tmp_path)
    command, _, claimed = line.partition("   # ")
    assert cli.main(shlex.split(command)[1:]) in (0, None)
    printed = capsys.readouterr().out
    assert printed and (not claimed or printed.strip() == claimed)


@pytest.mark.parametrize("number, said", [
    (1, lambda scope: f'{scope["used"].total/1e9:.1f} GB'), (2, lambda scope: f'{scope["found"].best.time:.2f} s'),
    (3, lambda scope: f'{scope["step"].time:.2f} s')])
def test_shell_and_python_answer_a_question_alike(number, said, capsys):
    """The first three commands print tables: what Python computes stands in them."""
    question = (ROOT/"questions.md").read_text().split("\n## ")[number]
    scope = {}
    exec(re.search(r"```python\n(.*?)```", question, re.S)[1], scope)
    cli.main(shlex.split(re.search(r"```bash\n(.*?)```", question, re.S)[1].replace("\\\n", " "))[1:])
    assert said(scope) in "".join(capsys.readouterr())


def test_what_a_newcomer_types_first_works():
    """In a process of its own: it registers a formula."""
    program = "import sys; sys.path[:0] = ['tests', 'tools']\nfrom test_readme import *\n" \
              "for text in blocks('CONTRIBUTING.md'):\n    found = list(claims(text)); assert found and all(a == b for a, b in found), found"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stderr


def test_commands_exist():
    targets = re.findall(r"^([a-z]+):", (ROOT/"Makefile").read_text(), re.M)
    for page in "README.md", "CONTRIBUTING.md":
        assert set(re.findall(r"(?:`|^)make ([a-z]+)", (ROOT/page).read_text(), re.M)) <= set(targets), page

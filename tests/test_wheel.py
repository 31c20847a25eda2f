"""The package alone: built as a wheel, unpacked elsewhere, used without this repository."""
import subprocess
import sys
import tomllib
import zipfile
from importlib.metadata import distribution
from pathlib import Path

from packaging.specifiers import SpecifierSet

ROOT = Path(__file__).resolve().parents[1]
PROGRAM = """
import capacity, sys
from capacity import Axis, Slider, Y, accelerator, explore, model, published_runs, ring_all_reduce_time
assert capacity.__file__.startswith(sys.argv[1]), capacity.__file__
assert model("llama3-70b").params == 70553706496 and accelerator("h100-sxm").peak("bf16") == 989.4e12
assert len(published_runs()) > 400
n, P = (ring_all_reduce_time.symbols[name] for name in ("n", "P"))
picture = explore("ring", title="A ring", x=Axis(n, 1e3, 1e9, "buffer", "B"), y=Y("time", "s"), sliders=[Slider(P, 2, 64, 8, label="ranks")],
                  curves={"ring": ring_all_reduce_time(n=n, P=P, alpha=2e-6, beta=450e9)})
assert picture._repr_mimebundle_()["image/png"].startswith("iVBOR")
from capacity.cli import main
sys.exit(main(["plan", "llama3-8b", "--cluster", "dgx-h100:8", "--batch", "64", "--seq", "8192", "--top", "1"]))
"""


def test_the_wheel_works_outside_the_repository(tmp_path):
    source = tmp_path/"source"
    files = subprocess.run(["git", "ls-files", "capacity", "pyproject.toml", "README.md", "LICENSE"], cwd=ROOT, capture_output=True,
                           text=True, check=True).stdout.split()
    for name in files:
        (source/name).parent.mkdir(parents=True, exist_ok=True)
        (source/name).write_bytes((ROOT/name).read_bytes())
    subprocess.run([sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation", "-w", tmp_path, source], check=True)
    [wheel] = tmp_path.glob("capacity_algebra-*.whl")
    home = tmp_path/"home"
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(home)
    assert {str(Path(name)) for name in files if name.startswith("capacity/")} <= {str(p.relative_to(home)) for p in home.rglob("*")}
    done = subprocess.run([sys.executable, "-P", "-c", PROGRAM, str(home)], cwd=tmp_path, env={"PYTHONPATH": str(home), "PATH": ""},
                          capture_output=True, text=True)
    assert done.returncode == 0 and "Llama 3 8B on 8 x NVIDIA H100" in done.stdout, done.stderr


def test_what_is_pinned_can_be_installed_on_the_oldest_python():
    """Debian 12 has 3.11.2: a pin that asks for more would stop `make book` there."""
    oldest = tomllib.loads((ROOT/"pyproject.toml").read_text())["project"]["requires-python"].removeprefix(">=")
    pins = dict(line.split("==") for line in (ROOT/"requirements.lock.txt").read_text().splitlines() if "==" in line)
    installed = {name: distribution(name) for name in pins}
    assert {name: d.version for name, d in installed.items()} == pins, "make"
    asks = {name: d.metadata["Requires-Python"] or "" for name, d in installed.items()}
    assert {name: says for name, says in asks.items() if not SpecifierSet(says).contains(oldest)} == {}

"""The command, as a user would type it."""
import csv
import io
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from capacity import GB, TFLOPS, accelerators, cluster, day, estimate, hour, Layout, memory, model, policies, ring_all_reduce_time, us
from capacity.cli import columns, main, quantity
from capacity.planner import Failures, plan
from capacity.units import Unit, byte, dollar, flop, second, show

ROOT = Path(__file__).resolve().parents[1]
JOB = "llama3-70b --cluster dgx-h100:512 --batch 512 --seq 8192"


@pytest.fixture
def say(capsys, monkeypatch):
    """say("plan ...") -> exit status, what it printed, what it complained."""
    monkeypatch.setenv("COLUMNS", "100")

    def typed(line):
        try:
            status = main(line.split())
        except SystemExit as stop:
            status = stop.code
        out, err = capsys.readouterr()
        wide = [x for x in out.splitlines() if len(x) > int(os.environ["COLUMNS"])]
        assert {"--json", "--csv", "--emit"} & {*line.split()} or not wide, wide
        assert "Traceback" not in out + err
        return status, out, err
    return typed


# --- quantities

@pytest.mark.parametrize("text, unit, value", [
    ("1GB", byte, 1e9), ("1 GiB", byte, 2**30), ("512", byte, 512), ("8b", byte, 1), ("450GB/s", byte/second, 450e9),
    ("400 Gb/s", byte/second, 50e9), ("2us", second, 2e-6), ("2 µs", second, 2e-6), ("5min", second, 300), ("30 days", second, 30*day),
    ("2h", second, 7200), ("5m", second, None), ("989.4 TFLOP/s", flop/second, 989.4e12), ("989.4TFLOPS", flop/second, 989.4e12),
    ("1,000", Unit(), 1000), ("4M", Unit(whole=True), 4e6), ("70B", Unit(whole=True), 70e9), ("15T", Unit(), 15e12), ("45%", Unit(most=1), 0.45),
    (".5GB", byte, 5e8), ("5y", second, 5*365.25*day), ("1e400", byte, None), ("2$", dollar, 2), ("2 $/h", dollar/second, 2/hour), ("1e-3", second, 1e-3), ("1/s", Unit()/second, None), ("3 1/s", Unit()/second, 3),
    ("1 kB", second, None), ("fast", byte, None), ("", byte, None), ("1 parsec", byte, None), ("4M", byte, None)])
def test_a_quantity_has_its_unit(text, unit, value):
    if value is None:
        with pytest.raises(ValueError, match="^n = .*; allowed: a number, or one with a unit such as "):
            quantity(text, unit, "n")
    else:
        assert quantity(text, unit, "n") == pytest.approx(value, rel=1e-12)


# --- plan

def test_a_plan_in_the_shell(say):
    status, out, err = say("plan llama3-70b --cluster dgx-h100:1024 --batch 4M --seq 8192")
    assert status == 0 and err == ""
    assert out.startswith("Llama 3 70B on 1,024 x NVIDIA H100 SXM5 80 GB: cp 2, dp 512; ")
    assert "a step of 512 sequences, 4,194,304 tokens, takes" in " ".join(out.split()) and "legal layouts, of which" in out and "Measure first: " in out
    splits = re.findall(r"^([tpcd]p \d.*?)(?:, chunks \d+)?   .* GB(?: |$)", out, re.M)
    assert len({re.sub(" sp|, dp.*", "", x) for x in splits}) == 10 == len(splits), "each of another tp, pp, cp or ep"
    front = say("plan llama3-70b --cluster dgx-h100:1024 --batch 4M --seq 8192 --front --top 3")[1]
    assert len(re.findall(r"^[tpcd]p \d.* GB(?: |$)", front, re.M)) == 3 and re.search("The 3 fastest of 4[0-9]{2} layouts of the front; --top prints more", front)
    assert all(len(line) <= 100 for line in out.splitlines())


@pytest.mark.parametrize("width", [30, 50, 72, 200])
def test_a_table_fits_the_terminal(say, monkeypatch, width):
    monkeypatch.setenv("COLUMNS", str(width))
    _, out, _ = say("plan llama3-70b --cluster dgx-h100:256 --batch 256 --seq 8192 --top 3")
    assert max(map(len, out.splitlines())) <= width
    assert ("devices" in out.split("\n\n")[1]) == (width >= 100)


def test_columns_go_from_the_right():
    table = columns(["name", "size", "far"], [["a", "1 GB", "x"], ["bb", "22 GB", "y"]], width=12)
    assert table.splitlines() == ["name   size", "a      1 GB", "bb    22 GB"]


def test_json_and_csv_are_the_plan(say):
    found = plan(model("llama3-70b"), cluster("dgx-h100", 512), 512, 8192)
    status, out, _ = say(f"plan {JOB} --json")
    data = json.loads(out)
    assert status == 0 and data["candidates"][0] == json.loads(json.dumps(found.best.to_dict())) and data["legal"] == found.legal
    rows = list(csv.DictReader(io.StringIO(say(f"plan {JOB} --csv --front")[1])))
    assert len(rows) == len(found.front) and float(rows[0]["time"]) == found.best.time


def test_copies_are_an_option(say):
    data = json.loads(say(f"plan {JOB} --json --copies 2,4 --zero 1 --top 50")[1])
    assert {c["shards"] and c["dp"]*c["cp"]/c["shards"] for c in data["candidates"]} <= {2, 4} and len(data["candidates"]) == 50
    step = estimate(model("llama3-70b"), cluster("dgx-h100", 512), Layout(batch=512, dp=16, tp=8, pp=4, shards=8), 8192)
    assert json.loads(say(f"estimate {JOB} --tp 8 --pp 4 --copies 2 --json")[1])["time"] == step.time
    assert "copies = 3 does not divide dp*cp = 16 replicas." in say(f"estimate {JOB} --tp 8 --pp 4 --copies 3")[2]


def test_limits_are_given_as_lists(say):
    data = json.loads(say(f"plan {JOB} --json --tp 4,8 --zero 1 --recompute 0,1 --cp 1 --sequence-parallel yes --top 50")[1])
    assert {c["tp"] for c in data["candidates"]} <= {4, 8} and {c["zero"] for c in data["candidates"]} == {1}
    assert {c["recompute"] for c in data["candidates"]} <= {0, 1} and all(c["sequence_parallel"] for c in data["candidates"])


def test_an_impossible_plan_says_what_would_be_possible(say):
    status, out, err = say("plan llama3-70b --cluster dgx-h100:8 --batch 64 --seq 8192")
    assert status == 1 and err == "" and "No layout fits: the smallest of" in out and "It works if you use 32 devices" in out
    status, out, _ = say("plan llama3-70b --cluster dgx-h100:64 --batch 7 --seq 1000 --tp 8 --pp 1")
    assert status == 1 and "A batch of 7 sequences" in out and "a batch of 8 sequences" in out
    status, out, _ = say("plan llama3-70b --cluster dgx-h100:8 --batch 64 --seq 8192 --json")
    assert status == 1 and json.loads(out)["candidates"] == []


def test_deadlines_and_failures(say):
    status, out, _ = say("plan llama3-8b --cluster dgx-h100:64 --batch 4M --seq 8192 --tokens 15T --deadline 30days")
    assert status == 1 and "a step may take 725 ms" in out and "use 1,024 devices" in out
    status, out, _ = say("plan llama3-8b --cluster dgx-h100:64 --batch 4M --seq 8192 --tokens 1T --deadline 60days")
    assert status == 0 and re.search(r"All 10¹² tokens take [\d.]+ days", " ".join(out.split()))
    status, out, _ = say("plan llama3-8b --cluster dgx-h100:64 --batch 4M --seq 8192 --devices 8,64 --objective goodput --mtbf 2h --checkpoint 2min")
    assert status == 0 and " on 8 x " in out


def test_the_time_of_a_run_counts_its_failures(say):
    """1,024 devices of which one fails in 5 days: a failure every 7 minutes. --mtbf alone asks for goodput."""
    line = "plan llama3-8b --cluster dgx-h100:1024 --batch 512 --seq 8192 --tokens 1T --top 1"
    seconds, (_, out, _) = json.loads(say(f"{line} --json")[1])["candidates"][0]["time"]*10**12/2**22, say(f"{line} --mtbf 5days")
    slow = Failures(mtbf=5*day, checkpoint=30).slowdown(1024)
    assert slow > 2 and f"All 10¹² tokens take {show(slow*seconds, 's')}. Failures and checkpoints take {1 - 1/slow:.1%} of the run." in " ".join(out.split())
    assert say(f"{line} --mtbf 5days --objective goodput")[1].split("legal layouts")[0] == out.split("legal layouts")[0]
    assert "Failures" not in say(line)[1]


def test_a_share_may_be_a_percentage(say):
    for share, fits in ("100%", True), ("1", True), ("90%", True), ("0.9", True), ("50%", False):
        status, out, _ = say(f"fits llama3-8b --cluster dgx-h100:64 --batch 512 --seq 8192 --dp 64 --zero 3 --share {share} --json")
        assert (status == 0) == fits == json.loads(out)["fits"], share


def test_an_estimate_says_that_it_does_not_fit(say):
    status, out, _ = say(f"estimate {JOB} --dp 512 --zero 0")
    assert status == 0 and out.endswith("It does not fit: 1.32 TB per device, which has 80 GB.\n")
    assert "not fit" not in say(f"estimate {JOB} --tp 8 --zero 3 --recompute 1")[1]


# --- estimate, fits, show, compute

def test_an_estimate_in_the_shell(say):
    status, out, _ = say(f"estimate {JOB} --tp 8 --pp 4")
    step = estimate(model("llama3-70b"), cluster("dgx-h100", 512), Layout(batch=512, dp=16, tp=8, pp=4), 8192)
    assert status == 0 and f"{step.mfu:.1%} of peak" in out and "matmul" in out and "altogether   80.6 GB     100.7%" in out
    data = json.loads(say(f"estimate {JOB} --tp 8 --pp 4 --json")[1])
    assert "A step of 512 sequences, 4,194,304 tokens, takes" in out and (data["batch"], data["seq_len"]) == (512, 8192)
    assert data["time"] == step.time and data["memory"] == step.memory
    assert data == json.loads(json.dumps(dict(batch=512, seq_len=8192) | step.to_dict()))


def test_whether_it_fits_is_the_exit_status(say):
    status, out, _ = say(f"fits {JOB} --tp 8 --pp 4")
    assert status == 1 and " ".join(out.split()).startswith("Does not fit: 80.6 GB per device, and 90% of 80 GB may be filled. A step is 512 sequences, 4,194,304 tokens.")
    status, out, _ = say(f"fits {JOB} --tp 8 --pp 4 --sequence-parallel yes")
    assert status == 0 and out.startswith("Fits: ")
    data = json.loads(say(f"fits {JOB} --tp 8 --pp 4 --json")[1])
    foot = memory(model("llama3-70b"), cluster("dgx-h100", 512), Layout(batch=512, dp=16, tp=8, pp=4), 8192, kernels="34 bytes")
    assert data == dict(fits=False, memory=foot.total, allowed=.9*80*GB, parts={k: v for k, v in foot.parts.items() if v})
    words = " ".join(say(f"fits {JOB} --tp 8 --pp 4")[1].split())
    assert all(f"{part} {show(size, 'B')} {size/(80*GB):.1%}" in words for part, size in data["parts"].items())


def test_a_policy_changes_the_bytes_and_not_the_seconds(say):
    given = dict(model=model("llama3-70b"), cluster=cluster("dgx-h100", 512), layout=Layout(batch=512, dp=16, tp=8, pp=4), seq_len=8192)
    job, plain = f"{JOB} --tp 8 --pp 4", json.loads(say(f"estimate {JOB} --tp 8 --pp 4 --json")[1])
    for name in policies():
        foot = memory(**given, policy=name, kernels="34 bytes")
        data = json.loads(say(f"estimate {job} --policy {name} --json")[1])
        assert data["memory"] == foot.total and data["seconds"] == plain["seconds"], name
        assert data["parts"]["optimizer"] == foot.parts["optimizer"], name
        assert json.loads(say(f"fits {job} --policy {name} --json")[1])["memory"] == foot.total, name
    assert json.loads(say(f"estimate {job} --policy mixed --json")[1]) == plain
    wide = json.loads(say(f"estimate {job} --policy megatron --json")[1])["memory"] - plain["memory"]
    params = plain["parts"]["weights"]/2
    assert wide == 2*params > 1e9                     # gradients of 4 bytes, not 2


def test_a_policy_decides_whether_anything_fits(say):
    small = "fits llama3-8b --cluster dgx-h100:1 --batch 1 --seq 64 --share 1"
    assert [say(f"{small}{more}")[0] for more in ("", " --policy adam8", " --policy mixed")] == [1, 1, 1]
    two = small.replace(":1", ":2")
    assert [say(f"{two}{more}")[0] for more in ("", " --policy adam8", " --policy fp8")] == [0, 0, 1]
    status, _, err = say(f"{small} --policy adamw")
    assert status == 2 and "invalid choice: 'adamw'" in err and "mixed" in err
    assert say(f"plan {JOB} --policy mixed")[0] == 2


def test_whether_anything_fits(say):
    status, out, _ = say(f"fits {JOB}")
    assert status == 0 and re.match(r"Fits: [\d,]+ of [\d,]+ legal layouts. The fastest: Llama 3 70B on 512 x", " ".join(out.split())) and "altogether" in out
    status, out, _ = say("fits llama3-70b --cluster dgx-h100:8 --batch 64 --seq 8192")
    assert status == 1 and "No layout fits" in out and "use 32 devices" in out
    found = plan(model("llama3-70b"), cluster("dgx-h100", 512), 512, 8192, options=dict(kernels="34 bytes"), keep=1)
    assert json.loads(say(f"fits {JOB} --json")[1]) == dict(fits=True, why=list(found.why)) | found.best.to_dict()
    none = json.loads(say("fits llama3-70b --cluster dgx-h100:8 --batch 64 --seq 8192 --json")[1])
    assert none["fits"] is False and set(none) == {"fits", "why"} and none["why"][0].startswith("No layout fits")


@pytest.mark.parametrize("name, words", [("h100-sxm", ["bf16 989.4 TFLOP/s", "memory     80 GB", "3.35 TB/s"]), ("ndr", ["alpha    2.8 µs", "50 GB/s"]),
                                         ("nvlink4", ["measured  370 GB/s"]), ("dgx-h100", ["8 by nvlink4; 256 by ndr"]),
                                         ("llama3-70b", ["params         70,553,706,496"]), ("ring_all_reduce_time", ["ring_all_reduce_time(n, P, alpha, beta)"]),
                                         ("deepseek-v3", ["experts", "latent"])])
def test_what_is_known_is_shown(say, name, words):
    status, out, _ = say(f"show {name}")
    assert status == 0 and all(w in out for w in words), out
    assert json.loads(say(f"show {name} --json")[1])["key"] == name


def test_a_long_value_goes_on_below_its_beginning(say):
    lines = say("show h100-sxm")[1].splitlines()
    width = lines[0].index("NVIDIA")
    assert lines[0][:width].strip() == "name" and all(x[width - 1] == " " != x[width] for x in lines)
    note = " ".join(x[width:] for x in lines[[x.startswith("note") for x in lines].index(True):])
    assert note.startswith(accelerators()["h100-sxm"].note) and any(x[:width].isspace() for x in lines)
    ring = json.loads(say("show ring_all_reduce_time --json")[1])
    assert (ring["arguments"], ring["unit"]) == (dict(n="B", P="count", alpha="s", beta="B/s"), "s")
    assert json.loads(say("show training_time --json")[1])["arguments"]["mfu"] == "ratio"


def test_without_a_name_everything_is_listed(say):
    status, out, _ = say("show")
    assert status == 0 and all(w in out for w in ("h100-sxm", "dgx-h100", "llama3-70b", "ndr", "ring_all_reduce_time"))


def test_a_formula_in_the_shell(say):
    assert say("compute ring_all_reduce_time n=1GB P=64 link=ndr") == (0, "39.7 ms\n", "")
    by_hand = ring_all_reduce_time(1*GB, 64, 5*us, 50*GB)
    assert json.loads(say("compute ring_all_reduce_time n=1GB P=64 alpha=5us beta=400Gb/s --json")[1])["value"] == by_hand
    assert say("compute training_time flops=6e24 P=1024 peak=989TFLOP/s mfu=40%")[0] == 0
    assert 6e24/(1024*989*TFLOPS*0.4) > day


# --- a trace of one's own

RECORDED = "capacity/specs/recorded/trace-{}-{}.json.gz"


def test_a_trace_is_accounted_for(say, monkeypatch):
    monkeypatch.chdir(ROOT)
    status, out, err = say("trace " + RECORDED.format("late", 2))
    assert status == 0 and err == "" and out.startswith("The mean of 4 steps of rank 2: 271 ms, all of it:")
    assert all(re.search(rf"^{cause} .*%$", out, re.M) for cause in ("arithmetic", "exposed", "bubble", "input", "launch", "idle"))
    assert sum(map(float, re.findall(r"([0-9.]+)%$", out, re.M))) == pytest.approx(100, abs=0.3)


def test_of_several_traces_the_slow_rank_is_named(say, monkeypatch):
    monkeypatch.chdir(ROOT)
    files = {name: " ".join(RECORDED.format(name, r) for r in range(4)) for name in ("even", "late")}
    status, out, _ = say("trace " + files["late"])
    assert status == 0 and "In these steps rank 2 is the slow one: it waits least, 32.8 ms a step" in " ".join(out.split())
    assert all(len(line) <= 100 for line in out.splitlines())
    assert "No rank stands out" in say("trace " + files["even"])[1]
    found = json.loads(say(f"trace {files['late']} --json")[1])
    assert found["straggler"] == "2" and [row["rank"] for row in found["traces"]] == [0, 1, 2, 3]
    for row in found["traces"]:
        assert sum(row["seconds"].values()) == pytest.approx(row["step"], rel=1e-12)
        assert row["waits"] == pytest.approx(row["seconds"]["exposed"] + row["seconds"]["bubble"], rel=1e-12)


def test_two_ranks_are_too_few_and_steps_may_be_unmarked(say, monkeypatch, tmp_path):
    """32.8 and 127 ms are far apart, and of two numbers none is far from the median; a file without steps is told as a whole."""
    monkeypatch.chdir(ROOT)
    assert "Of two ranks none is named: the rule needs three or more." in say(
        f"trace {RECORDED.format('late', 0)} {RECORDED.format('late', 2)}")[1]
    for rank in (0, 1):
        (tmp_path/f"{rank}.json").write_text('{"traceEvents": [{"ph": "X", "cat": "kernel", "name": "gemm", "ts": 0, "dur": 3}]}')
    both = f"{tmp_path}/0.json {tmp_path}/1.json"
    assert "No step is marked: where a file marks none" in say("trace " + both)[1]
    assert not any(row["marked"] for row in json.loads(say(f"trace {both} --json")[1])["traces"])
    assert "No step is marked" not in say("trace " + RECORDED.format("late", 0))[1]


def test_a_trace_without_communication_says_so(say, tmp_path):
    (tmp_path/"t.json").write_text('{"traceEvents": [{"ph": "X", "cat": "kernel", "name": "gemm", "ts": 0, "dur": 3}]}')
    status, out, _ = say(f"trace {tmp_path}/t.json")
    assert status == 0 and "No step is marked; the whole trace of rank t.json: 3 µs" in out and "No communication was found" in out


def test_one_marked_step_is_a_step(say, tmp_path):
    """It begins at 10 µs, lasts five, and computes three of them; of one trace no rank is slow."""
    (tmp_path/"t.json").write_text(json.dumps({"traceEvents": [
        dict(ph="X", cat="user_annotation", name="ProfilerStep#3", ts=10, dur=5), dict(ph="X", cat="kernel", name="gemm", ts=11, dur=3)]}))
    assert say(f"trace {tmp_path}/t.json")[1].startswith("A step of rank t.json: 5 µs, all of it:\n\n")
    found = json.loads(say(f"trace {tmp_path}/t.json --json")[1])
    row, = found["traces"]
    assert found["straggler"] is None and row["file"] == f"{tmp_path}/t.json" and row["marked"] and row["steps"] == 1
    assert row["step"] == pytest.approx(5e-6) and row["seconds"]["arithmetic"] == pytest.approx(3e-6)


@pytest.mark.parametrize("line, words", [
    ("trace README.md", "README.md: no JSON; allowed: what export_chrome_trace writes, plain or gzipped"),
    ("trace capacity/specs/recorded/trace.json", "no traceEvents"), ("trace nowhere.json", "nowhere.json: No such file"), ("trace", "required: FILE"),
    (f"trace {RECORDED.format('late', 2)} {RECORDED.format('late', 2)}", "2 files of ranks 2, 2; allowed: each rank once"),
    (f"trace {RECORDED.format('late', 2)} --network (", "network = '('")])
def test_what_is_no_trace(say, monkeypatch, line, words):
    monkeypatch.chdir(ROOT)
    status, out, err = say(line)
    assert status == 2 and out == "" and words in err and err.count("\n") == 1 and err.startswith("capacity"), err


# --- mistakes

@pytest.mark.parametrize("line, words", [
    ("plan lama3-70b --cluster dgx-h100:512 --batch 512 --seq 8192", "unknown model 'lama3-70b'; close matches: llama3-70b"),
    ("plan llama3-70b --cluster dgx-h10 --batch 512 --seq 8192", "unknown cluster 'dgx-h10'; close matches: dgx-h100"),
    ("plan llama3-70b --cluster dgx-h100:1020 --batch 512 --seq 8192", "devices = 1020; allowed: whole groups of 256, such as 768 or 1,024\n"),
    ("estimate llama3-70b --cluster dgx-h100:1016 --batch 512 --seq 8192", "devices = 1016; allowed: whole groups of 256, such as 768 or 1,024\n"),
    ("plan llama3-70b --cluster dgx-h100:1023 --batch 512 --seq 8192", "devices = 1023; allowed: whole groups of 256, such as 768 or 1,024\n"),
    ("plan llama3-70b --cluster dgx-h100:252 --batch 512 --seq 8192", "devices = 252; allowed: whole nodes of 8, such as 248 or 256\n"),
    (f"plan {JOB} --devices 512,1000", "devices = 1000; allowed: whole groups of 256, such as 768 or 1,024\n"),
    ("plan llama3-70b --cluster dgx-h100:x --batch 512 --seq 8192", "devices = 'x'; allowed: a whole number in digits, at least 1\n"),
    ("plan llama3-70b --cluster dgx-h100:1k --batch 512 --seq 8192", "devices = '1k'; allowed: a whole number in digits, at least 1; k may mean 1,000 or 1,024\n"),
    (f"plan {JOB} --seq 8k", "seq = '8k'; allowed: a whole number in digits, at least 1; k may mean 1,000 or 1,024\n"), (f"fits {JOB} --seq 8K", "seq = '8K'; allowed: a whole"),
    (f"estimate {JOB} --seq 8Ki", "seq = '8Ki'; allowed: a whole"), (f"plan {JOB} --devices 64,1k", "devices = '1k'; allowed: "), (f"estimate {JOB} --tp 0", "tp = '0'; allowed: a whole"),
    (f"plan {JOB} --batch 1e12", "batch = '1e12' means sequences; allowed: at most 1,000,000,000, or tokens"),
    ("plan llama3-70b --clustr dgx-h100 --batch 512 --seq 8192", "there is no option --clustr; close matches: --cluster"),
    (f"plan {JOB} --objective speed", "invalid choice: 'speed'"), (f"plan {JOB} --objective goodput", "--objective goodput needs --mtbf"),
    (f"plan {JOB} --mtbf 5parsecs", "mtbf = '5parsecs'; allowed: a number, or one with a unit such as us, ms, s, h, days"), (f"plan {JOB} --tp eight", "tp = 'eight'; allowed: a number"),
    (f"plan {JOB} --seq 1.5", "seq = '1.5'; allowed: a whole number"), (f"plan {JOB} --share 2", "share = 2; allowed: above 0"),
    (f"plan {JOB} --format fp7", "format = 'fp7'"), ("plan", "the following arguments are required: model"), ("", "required: COMMAND"),
    (f"plan {JOB} --batch 4.1M", "batch = '4.1M' is no whole number of sequences of 8,192 tokens; allowed: such as 500 sequences, 4,096,000 tokens, or 501"), ("plna", "there is no command 'plna'; close matches: plan"),
    (f"estimate {JOB} --tp 3", "64 attention heads do not divide over tp = 3"), (f"estimate {JOB} --tp 8 --dp 3", "and the cluster has 512 devices"),
    (f"estimate {JOB} --zero 7", "zero = 7; allowed: 0, 1, 2 or 3"), ("show h100", "unknown name 'h100'; close matches: h100-sxm"),
    ("compute ring_all_reduce_tim n=1", "unknown formula 'ring_all_reduce_tim'; close matches: ring_all_reduce_time"),
    ("compute ring_all_reduce_time n=1GB", "ring_all_reduce_time needs P (a count, at least 1), alpha (at least 0), beta (above 0) too"),
    ("compute ring_all_reduce_time n=1GB P=64 lnk=ndr", "unknown argument of ring_all_reduce_time 'lnk'; close matches: link"),
    ("compute ring_all_reduce_time n=1s", "n = '1s'; allowed: a number, or one with a unit such as GB"),
    ("compute ring_all_reduce_time 1GB", "'1GB'; allowed: arguments such as n=1"),
    ("compute ring_all_reduce_time n=1GB P=0 link=ndr", "P = 0; allowed: a count, at least 1"),
    ("compute ring_all_reduce_time n=1GB n=2GB P=8 link=ndr", "n = '2GB', and before it '1GB'; allowed: one value"),
    ("compute ring_all_reduce_time n=1e400 P=8 link=ndr", "n = '1e400'; allowed: a number, or one with a unit such as GB"),
    (f"plan {JOB} --tpp 8", "capacity plan: there is no option --tpp; close matches: --tp"),
    (f"plan {JOB} --json --emit megatron", "--json and --emit; allowed: one of them"),
    (f"plan {JOB} --top 0", "top = 0; allowed: at least 1"), (f"plan {JOB} --batch 0", "batch = '0'; allowed: a whole number of sequences, at least 1"),
    (f"plan {JOB} --objective cost --mtbf 5y", "--objective cost counts no failures; allowed with --mtbf: goodput"),
    (f"plan {JOB} --objective time --mtbf 5y", "--objective time counts no failures; allowed with --mtbf: goodput"),
    (f"fits {JOB} --tp 8 --share 7", "share = 7; allowed: above 0 and at most 1"), (f"fits {JOB} --share 0", "share = 0; allowed: above 0")])
def test_a_mistake_is_one_line(say, line, words):
    status, out, err = say(line)
    assert status == 2 and out == "" and words in err and err.count("\n") == 1 and err.startswith("capacity"), err


def test_the_command_is_installed_and_a_module():
    """`python -m capacity`, cut off by `head`; and the console script of pyproject.toml is its main."""
    import tomllib
    scripts = tomllib.loads((ROOT/"pyproject.toml").read_text())["project"]["scripts"]
    assert scripts == {"capacity": "capacity.cli:main"}
    line = f"{sys.executable} -m capacity show | head -1"
    done = subprocess.run(["bash", "-c", line], capture_output=True, text=True, cwd=ROOT)
    assert done.stdout.startswith("accelerators: v100") and done.stderr == ""
    done = subprocess.run([sys.executable, "-m", "capacity", "--help"], capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0 and all(word in done.stdout for word in ("plan", "estimate", "fits", "show", "compute"))

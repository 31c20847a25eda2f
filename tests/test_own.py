"""The user's own things: a model from config.json, a cluster from TOML, a link from nccl-tests."""
import io
import json
import math
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from capacity import GB, Layout, cluster, clusters_from_toml, estimate, fit_link, matmul_share, memory, model, model_from_config, ring_all_gather_time, ring_all_reduce_time, show, us
from capacity.cli import main
from capacity.fits import read_nccl_tests
from capacity.huggingface import FAMILIES

CONFIGS = json.loads((Path(__file__).parent/"configs.json").read_text())["models"]
LLAMA = CONFIGS["meta-llama/Meta-Llama-3.1-8B"]["config"]
DEEPSEEK = CONFIGS["deepseek-ai/DeepSeek-V3"]["config"]


# --- config.json

@pytest.mark.parametrize("name", CONFIGS)
def test_counts_are_the_published_ones(name):
    assert model_from_config(CONFIGS[name]["config"]).params == CONFIGS[name]["params"]


def test_every_family_is_tried():
    tried = {c.get("text_config", c)["model_type"] for c in (entry["config"] for entry in CONFIGS.values())}
    assert tried | {"deepseek_v2"} == set(FAMILIES)


@pytest.mark.parametrize("name, key", [("meta-llama/Meta-Llama-3.1-70B", "llama3-70b"), ("mistralai/Mixtral-8x7B-v0.1", "mixtral-8x7b"),
                                       ("deepseek-ai/DeepSeek-V3", "deepseek-v3")])
def test_a_config_gives_the_shape_of_the_specs(name, key):
    found, known = model_from_config(CONFIGS[name]["config"]), model(key)
    for field in "layers hidden heads kv_heads head_dim ffn vocab gated tied norm norms head_norm bias qkv_bias positions experts latent".split():
        if field != "ffn" or not known.experts or known.experts.dense:
            assert getattr(found, field) == getattr(known, field), field


def test_what_is_left_out_is_said():
    assert model_from_config(DEEPSEEK).note == "Without the layers that predict further tokens."
    assert model_from_config(CONFIGS["moonshotai/Kimi-K2.5"]["config"]).note == "Only the text model."
    assert model_from_config(LLAMA).note == ""


@pytest.mark.parametrize("change, words", [
    (dict(model_type="nemotron_h"), "unknown model_type 'nemotron_h'; known: llama"),
    (dict(model_type="llam"), "unknown model_type 'llam'; close matches: llama"),
    (dict(hidden_size=None), "hidden_size = None; allowed: a whole number"), (dict(num_hidden_layers=0), "num_hidden_layers = 0"),
    (dict(attention_bias=True), "attention_bias and mlp_bias differ"), (dict(vocab_size="128k"), "vocab_size = '128k'"),
    (dict(num_key_value_heads=7), "num_key_value_heads = 7; allowed: a divisor of num_attention_heads")])
def test_what_a_shape_cannot_say_is_refused(change, words):
    with pytest.raises(ValueError, match=words):
        model_from_config(LLAMA | change)


def test_an_unknown_family_that_lacks_nothing_lacks_nothing():
    with pytest.raises(ValueError) as error:
        model_from_config(LLAMA | dict(model_type="mamba"))
    assert "missing" not in str(error.value)
    for family in ("gemma", "gemma2", "gemma3_text"):
        with pytest.raises(ValueError, match="attention_bias = True"):
            model_from_config(LLAMA | dict(model_type=family, attention_bias=True))
    minimax = CONFIGS["MiniMaxAI/MiniMax-M2.5"]["config"]
    assert model_from_config(minimax).experts.bias == 1 and model_from_config(minimax | dict(use_routing_bias=False)).experts.bias == 0


def test_missing_fields_are_listed():
    with pytest.raises(ValueError, match="unknown model_type 'rwkv'.*; num_attention_heads, vocab_size missing"):
        model_from_config(dict(model_type="rwkv", hidden_size=8, num_hidden_layers=2, intermediate_size=32))
    with pytest.raises(ValueError, match="config: num_hidden_layers, intermediate_size missing; a llama has no shape without"):
        model_from_config({k: v for k, v in LLAMA.items() if k not in ("num_hidden_layers", "intermediate_size")})
    for name, field in (("mistralai/Mixtral-8x7B-v0.1", "num_local_experts"), ("deepseek-ai/DeepSeek-V3", "kv_lora_rank"),
                        ("Qwen/Qwen3-30B-A3B", "moe_intermediate_size"), ("openai/gpt-oss-20b", "num_experts_per_tok")):
        with pytest.raises(ValueError, match=f"{field} is missing"):
            model_from_config({k: v for k, v in CONFIGS[name]["config"].items() if k != field})


@pytest.mark.parametrize("name, change", [("deepseek-ai/DeepSeek-V3", dict(qk_nope_head_dim=192)), ("deepseek-ai/DeepSeek-V3", dict(q_lora_rank=None)),
                                          ("Qwen/Qwen3-30B-A3B", dict(mlp_only_layers=[0, 1])), ("Qwen/Qwen3-8B", dict(attention_bias=True)),
                                          ("deepseek-ai/DeepSeek-V3", dict(moe_layer_freq=2)), ("MiniMaxAI/MiniMax-M2.5", dict(use_qk_norm=False))])
def test_values_that_change_the_count_are_refused(name, change):
    field = next(iter(change))
    with pytest.raises(ValueError, match=f"config: {field} = "):
        model_from_config(CONFIGS[name]["config"] | change)


def test_a_file_a_folder_and_what_is_none(tmp_path, capsys):
    (tmp_path/"my-llama").mkdir()
    path = tmp_path/"my-llama"/"config.json"
    path.write_text(json.dumps(LLAMA))
    for where in path, str(path), path.parent:
        assert model_from_config(where).params == 8_030_261_248
    assert model_from_config(path).name == "my-llama" and model_from_config(path, name="Mine").name == "Mine"
    assert main(f"plan {path} --cluster dgx-h100:64 --batch 64 --seq 8192 --top 1".split()) == 0
    assert capsys.readouterr().out.startswith("my-llama on 64 x NVIDIA H100")
    path.rename(other := tmp_path/"shape.json")
    assert model_from_config(other).name == "shape" and model_from_config(LLAMA).name == "llama"
    path.write_text(json.dumps(LLAMA | dict(_name_or_path="meta/Llama", num_hidden_layers=1)))
    assert model_from_config(path).name == "Llama" and model_from_config(path).layers == 1
    for text, words in ("{", "no JSON: "), ("[]", "allowed: the fields of a model"):
        path.write_text(text)
        with pytest.raises(ValueError, match=f"config.json: {words}"):
            model_from_config(path)
    assert main(f"plan {tmp_path}/none.json --cluster dgx-h100:64 --batch 64 --seq 8192".split()) == 2
    assert ": No such file or directory\n" in capsys.readouterr().err


# --- a cluster

TOML = """
[mine]
device = "h100-sxm"
levels = [{ devices = 8, link = "nvlink4" }, { devices = 64, link = { alpha = "9 us", beta = "200 Gb/s" } }]

[other]
name = "Workstations"
device = { name = "card", dense = { bf16 = "100 TFLOP/s" }, measured = { bf16 = "80 TFLOP/s" }, memory = "48 GB", bandwidth = "1 TB/s" }
levels = [{ devices = 4, link = { alpha = "5 us", beta = "25 GB/s", name = "PCIe" } }]
"""


def test_a_cluster_from_toml(tmp_path, capsys):
    path = tmp_path/"mine.toml"
    path.write_text(TOML)
    found = clusters_from_toml(path)
    assert found["mine"].device == cluster("dgx-h100").device and found["mine"].outer.beta == 25*GB and found["mine"].outer.alpha == pytest.approx(9*us)
    assert found["other"].device.memory == 48*GB and found["other"].name == "Workstations" and found["other"].inner.name == "PCIe"
    job = "--batch 64 --seq 4096 --top 1"
    assert main(f"plan llama3-8b --cluster {path}:mine:32 {job}".split()) == 0
    assert "on 32 x NVIDIA H100" in capsys.readouterr().out
    assert main(f"plan llama3-8b --cluster {path}:other {job}".split()) == 0
    assert "on 4 x card" in capsys.readouterr().out
    assert main(f"plan llama3-8b --cluster {path}:minne {job}".split()) == 2
    assert "unknown cluster 'minne'; close matches: mine" in capsys.readouterr().err
    path.write_text(TOML.split("[other]")[0])
    assert main(f"plan llama3-8b --cluster {path}:16 {job}".split()) == 0
    assert "on 16 x" in capsys.readouterr().out


@pytest.mark.parametrize("old, new, words", [
    ('"9 us"', '"9us"', "mine.link.alpha = '9us'; allowed: a number and one of s, ms"), ('"h100-sxm"', '"h100"', "unknown accelerator 'h100'; close"),
    ('memory = "48 GB"', 'memry = "48 GB"', "other.device: unknown field 'memry'; close matches: memory"), ("devices = 64", "devices = 60", "a multiple of 8"),
    ('memory = "48 GB", ', "", "other.device: .*memory"), ("levels = [{ devices = 8", "level = [{ devices = 8", "a table with device and levels"), ("levels = [{ devices = 8", "levels = 8\nspare = [{ devices = 8", "mine.levels = 8; allowed: tables"),
    (TOML, "", "no cluster; allowed: tables"),
    ("[mine]", "[mine", "Expected|Invalid|at line")])
def test_what_is_wrong_in_toml_is_named(tmp_path, old, new, words):
    path = tmp_path/"mine.toml"
    path.write_text(TOML.replace(old, new, 1))
    with pytest.raises(ValueError, match=words):
        clusters_from_toml(path)


# --- a link

def output(times, sizes, ranks=8, name="all_reduce_perf", unit="us", root=True):
    """What nccl-tests print, for these times."""
    head = f"# Collective test starting: {name}\n# nThread 1 nGpus {ranks} minBytes 8 maxBytes 8589934592\n#\n# Using devices\n"
    head += "".join(f"#  Rank {r:2d} Group  0 Pid 100 on node device {r:2d} [0000:0{r}:00] NVIDIA H100 80GB HBM3\n" for r in range(ranks))
    columns = "size count type redop root time algbw busbw #wrong time algbw busbw #wrong".split()
    head += "#\n#" + " ".join(f"{c:>10}" for c in columns if root or c != "root") + f"\n#        (B)    (elements)                     ({unit})  (GB/s)  (GB/s)            ({unit})  (GB/s)  (GB/s)\n"
    rows = [f"{int(n):12d} {int(n)//4:12d} float sum {'-1 ' if root else ''}{t:10.2f} {n/t/1e3:7.2f} {n/t/1e3:7.2f} 0 {2*t:10.2f} 0.1 0.1 0" for n, t in zip(sizes, times)]
    return head + "\n".join(rows) + "\n# Out of bounds values : 0 OK\n# Avg bus bandwidth    : 200.1\n"


SIZES = 2.0**np.arange(10, 33, 2)


@pytest.mark.parametrize("root", [True, False])
@pytest.mark.parametrize("unit", ["us", "ms"])
def test_the_link_that_made_the_times_is_found(unit, root):
    seconds = ring_all_reduce_time(SIZES, 8, 6e-6, 350*GB)
    text = output(seconds/{"us": 1e-6, "ms": 1e-3}[unit]*1, SIZES, unit=unit, root=root)
    fit = fit_link(text)
    assert (fit.collective, fit.ranks, len(fit.bytes)) == ("all_reduce", 8, 12)
    if unit == "us":
        assert fit.alpha == pytest.approx(6e-6, rel=1e-2) and fit.beta == pytest.approx(350*GB, rel=1e-2) and fit.spread < 0.01
    assert np.allclose(fit.fitted, ring_all_reduce_time(SIZES, 8, fit.alpha, fit.beta), rtol=1e-12)


def test_other_collectives_and_noise():
    noise = np.exp(np.random.default_rng(1).normal(0, 0.05, len(SIZES)))
    seconds = ring_all_gather_time(SIZES, 16, 20e-6, 40*GB)*noise
    fit = fit_link(output(seconds*1e6, SIZES, 16, "all_gather_perf"))
    assert fit.collective == "all_gather" and fit.alpha == pytest.approx(20e-6, rel=0.1) and fit.beta == pytest.approx(40*GB, rel=0.1)
    assert 0.02 < fit.spread < 0.08
    sent = fit_link(output((5e-6 + SIZES/(25*GB))*1e6, SIZES, 2, "sendrecv_perf"))
    assert sent.alpha == pytest.approx(5e-6, rel=0.01) and sent.beta == pytest.approx(25*GB, rel=0.01)


def test_out_of_place_is_read_and_zero_bytes_are_not():
    name, ranks, sizes, seconds = read_nccl_tests(output([1.0, 2.5], [0, 1024]))
    assert (name, ranks, sizes.tolist(), seconds.tolist()) == ("all_reduce", 8, [1024], [pytest.approx(2.5e-6)])


@pytest.mark.parametrize("text, given, words", [
    ("hello", {}, "no row of results; allowed: the output of nccl-tests"), (output([1, 2], SIZES[:2]), {}, "2 sizes of message; allowed: at least 3"),
    (output([1, 2, 3], SIZES[:3], ranks=0), {}, "ranks = None, and the output does not say"), (output([1, 2, 3], SIZES[:3], ranks=1), {}, "ranks = 1"),
    (output([1, 2, 3], SIZES[:3], name="hypercube_perf"), {}, "collective = None, and the output does not say"),
    (output([1, 2, 3], SIZES[:3]), dict(collective="all_reduc"), "close matches: all_reduce"), (output([3, 3, 3], SIZES[:3]*0 + 8), {}, "1 sizes of message"),
    (output([30, 20, 10], SIZES[:3]), {}, "do not grow with the bytes")])
def test_output_that_says_nothing_is_refused(text, given, words):
    with pytest.raises(ValueError, match=words):
        fit_link(text, **given)


def test_a_link_in_the_shell(tmp_path, capsys, monkeypatch):
    path = tmp_path/"all_reduce.log"
    path.write_text(output(ring_all_reduce_time(SIZES, 8, 6e-6, 350*GB)*1e6, SIZES))
    assert main(["fit-link", str(path)]) == 0
    out = capsys.readouterr().out
    assert "alpha 6" in out and "beta 350 GB/s" in out and "12 sizes of all_reduce on 8 ranks, as ring_all_reduce_time" in " ".join(out.split())
    assert main(["fit-link", str(path), "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert data["beta"] == pytest.approx(350e9, rel=0.01) and (data["collective"], data["ranks"], data["bytes"]) == ("all_reduce", 8, [*map(float, SIZES)])
    rows = [f"{n:,.0f} {show(t, 's')} {show(f, 's')} {f/t - 1:+.0%}" for n, t, f in zip(data["bytes"], data["seconds"], data["fitted"])]
    assert all(row in " ".join(out.split()) for row in rows) and len(rows) == 12
    monkeypatch.setattr("sys.stdin", io.StringIO(path.read_text()))
    assert main(["fit-link", "-"]) == 0 and capsys.readouterr().out == out
    assert main(["fit-link", str(tmp_path/"none.log")]) == 2
    assert ": No such file or directory\n" in capsys.readouterr().err
    path.write_text(output(np.where(SIZES < 1e6, 20, ring_all_reduce_time(SIZES, 8, 6e-6, 350*GB)*1e6), SIZES))
    main(["fit-link", str(path)])
    assert "One alpha and one beta do not describe all sizes" in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize("share", [0.02, 0.4, 0.8, 1.0])
@pytest.mark.parametrize("shape, lay, format", [("llama3-8b", dict(dp=64, zero=3), "bf16"), ("llama3-70b", dict(tp=8, pp=4, dp=2), "fp8"),
                                                ("mixtral-8x7b", dict(ep=8, dp=64), "bf16")])
def test_the_share_that_made_a_step_is_found(shape, lay, format, share):
    job = model(shape), cluster("dgx-h100", 64), Layout(batch=512, **lay), 8192
    took = estimate(*job, format=format, matmul=share).time
    assert matmul_share(*job, took, format=format) == pytest.approx(share, rel=1e-9)
    assert matmul_share(*job, 1.1*took, format=format) < share, "all of a longer step is put on the products"


def test_a_step_that_no_products_explain_is_refused():
    job = model("llama3-8b"), cluster("dgx-h100", 64), Layout(batch=512, dp=64), 8192
    least = estimate(*job, matmul=1).time
    for seconds in (0.99*least, -1, math.inf, math.nan):
        with pytest.raises(ValueError, match=f"seconds = {seconds!r}; allowed: at least {least:.4g}"):
            matmul_share(*job, seconds)


def test_a_step_in_the_shell(capsys):
    job = "llama3-70b --cluster dgx-h100:512 --batch 512 --seq 8192 --tp 8 --pp 4 --sequence-parallel yes"
    assert main(f"fit-matmul 12s {job}".split()) == 0
    share = re.search(r"--matmul (0\.\d{4})", " ".join(capsys.readouterr().out.split()))[1]
    assert main(f"fit-matmul 12s {job} --json".split()) == 0
    assert json.loads(capsys.readouterr().out)["matmul"] == pytest.approx(float(share), abs=5e-5)
    for command in f"estimate {job} --json", f"plan {job} --dp 16 --zero 1 --recompute 0 --microbatch 1 --chunks 1 --schedule 1F1B --cheap-recompute 0 --json":
        assert main(f"{command} --matmul {share}".split()) == 0
        said = json.loads(capsys.readouterr().out)
        assert (said["time"] if "time" in said else said["candidates"][0]["time"]) == pytest.approx(12, rel=1e-3)
    assert main(f"estimate {job} --matmul 120%".split()) == 2 and "matmul = 120%; allowed" in capsys.readouterr().err


def test_own_things_work_together(tmp_path):
    """A sparse model of the user on a cluster of the user: its memory; its time when `estimate` knows experts."""
    shape = replace(model_from_config(CONFIGS["Qwen/Qwen3-30B-A3B"]["config"]), vocab=152064)
    machine = cluster("dgx-h100", 64)
    lay = Layout(batch=256, dp=64, ep=8, zero=1)
    assert lay.check(shape, machine, 4096) == () and memory(shape, machine, lay, 4096).total > 10*GB

"""Training runs that their owners measured and published, as nouns and arrays of this package."""
import csv
import functools
import re
from dataclasses import dataclass, field, replace

import numpy as np

from . import specs
from .hardware import Cluster, accelerator, cluster
from .layout import Layout
from .transformer import Transformer, model
from .units import GB, TB, MiB

# accelerator of the table -> (device, cluster whose links its nodes have)
MACHINES = {"A100-40GB": ("a100-40gb", "dgx-a100"), "A100-80GB": ("a100-80gb", "dgx-a100"),
            "H100-80GB": ("h100-sxm", "dgx-h100"), "H100-96GB-500W": ("h100-sxm", "dgx-h100"),
            "H200": ("h200", "dgx-h100"), "B200": ("b200", "dgx-b200")}
VARIANTS = {"H100-96GB-500W": dict(memory=96*GB, bandwidth=2.4*TB)}    # slower memory, and more
SOURCES = {                                         # source of the table -> key of references.bib
    "bigscience-bloom": "bloom-chronicles", "google-gpu-recipes": "gpu-recipes",
    "google-maxtext": "maxtext", "gpt-neox-2022": "black2022", "huggingface-nanotron": "nanotron",
    "internlm-internevo": "internevo2024", "korthikanti-2022": "korthikanti2022",
    "mosaicml-llm-foundry": "llm-foundry", "mt-nlg-2022": "smith2022",
    "narayanan-2021": "narayanan2021", "nvidia-megatron-lm": "megatron-lm-2020",
    "pytorch-torchtitan": "torchtitan", "stas-ml-engineering": "bekman-upgrade"}
RECOMPUTE = {"none": 0, "selective": 0, "full": 1}      # selective: which part is not in the table
MEMORY, PADDING = "simumax2026", 128                    # its source; Megatron-LM pads the vocabulary to this times tp
TEXTS = ("name", "model", "training_set", "manifest", "commit")         # of scaling_runs.csv
NIC = re.compile(r"(?:(\d+)x)?([\d.]+) ([GT])b/s.*per (node|GPU)")


@dataclass(frozen=True, kw_only=True)
class PublishedRun:
    """One published training step: what ran on what, cut how, and the seconds it took.

    key      row of specs/published_runs.csv;  row  the row itself, texts
    source   key of references.bib
    seconds  one optimizer step, derived from the quantity that the source printed
    """
    key: str
    source: str
    model: Transformer
    cluster: Cluster
    layout: Layout
    seq_len: int
    seconds: float
    row: specs.Facts = field(repr=False, hash=False)


@dataclass(frozen=True, kw_only=True)
class MemoryRun:
    """One training step whose memory its owners measured on each of eight devices.

    key        `case` of specs/memory_runs.csv;  row  the row itself, texts
    model      the shape that ran: few layers, a vocabulary padded as the library pads it
    allocated  greatest peak of allocated bytes over the devices, least  the least of their peaks
    reserved   greatest peak of bytes that the allocator took from the device
    seconds    one optimizer step
    """
    key: str
    source: str
    model: Transformer
    cluster: Cluster
    layout: Layout
    seq_len: int
    allocated: float
    least: float
    reserved: float
    seconds: float
    row: specs.Facts = field(repr=False, hash=False)


@functools.cache
def memory_runs():
    """The 43 runs of specs/memory_runs.csv as MemoryRuns (simumax2026, commit 4dcaae513b, read on 2026-11-21).

    19 layouts of Llama and DeepSeek layers on eight B200s under Megatron-LM. The source measured memory once per layout, at
    four micro-batches, and repeats it for 8 and 32: where `key == row["memory_of"]`, the memory is the run's own.
    `row["held_out"]` is "y" for the ten layouts that were added after `kernels()["megatron"]` was written.
    """
    with open(specs.HERE/"memory_runs.csv", newline="", encoding="utf-8") as file:
        return tuple(_memory_run(specs.Facts(row)) for row in csv.DictReader(file))


@functools.cache
def published_rows():
    """Every row of specs/published_runs.csv as a read-only dict of texts, in the order of the file."""
    with open(specs.HERE/"published_runs.csv", newline="", encoding="utf-8") as file:
        return tuple(map(specs.Facts, csv.DictReader(file)))


@functools.cache
def published_runs():
    """The rows that `estimate` speaks of, as PublishedRuns.

    Whole steps of dense pre-training in 16 bits on NVIDIA devices with a measured matmul ceiling,
    every predictor published, nothing offloaded to the host.
    """
    def speaks(row):
        return (row["scope"] == "e2e" and row["task"] == "pretrain" and row["complete"] == "y"
                and not row["n_experts"] and row["precision"].startswith(("bf16", "fp16"))
                and row["accelerator"] in MACHINES and row["offload"] in ("", "n"))
    return tuple(_run(row) for row in published_rows() if speaks(row))


def scaling_runs():
    """The 34 runs of specs/scaling_runs.csv, trained on C4 (gadre2024, read on 2026-11-21).

    A dict of numpy arrays, one element a run, smallest model first, then fewest tokens.  Texts:
    name, model, training_set; manifest, the bucket of the training data; commit, of the file read.
    Numbers: tokens, params, params_no_embed; chinchilla_multiplier, tokens/(20 params); global_bs,
    sequences of 2048 tokens, and lr, both as the file states them; loss on C4's validation set
    and its 95 % interval over tokens, loss_tokens_lower_95 to loss_tokens_upper_95, all three in
    nats per token.
    """
    with open(specs.HERE/"scaling_runs.csv", newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    return {name: np.array([row[name] for row in rows], str if name in TEXTS else float)
            for name in rows[0]}


def _run(row):
    def count(name, default=1):
        return int(float(row[name])) if row[name] else default
    shape = Transformer(
        name=row["model"], layers=count("n_layers"), hidden=count("hidden"), ffn=count("ffn"),
        heads=count("n_heads"), kv_heads=count("n_kv_heads"), head_dim=count("head_dim"),
        vocab=count("vocab"), gated=int(row["gated_mlp"] == "y"),
        tied=int(row["tied_embeddings"] == "y"), source=SOURCES[row["source"]])
    layout = Layout(
        batch=count("global_batch"), microbatch=count("micro_batch"), dp=count("dp"),
        tp=count("tp"), pp=count("pp"), cp=count("cp"), chunks=count("vpp"),
        zero=int(row["dp_sharding"][4]), recompute=RECOMPUTE[row["recompute"]],
        sequence_parallel=row["sequence_parallel"] == "y")
    return PublishedRun(key=row["row_id"], source=SOURCES[row["source"]], model=shape,
               cluster=_machine(row), layout=layout, seq_len=count("seq_len"),
               seconds=float(row["d_step_s"]), row=row)


def _memory_run(row):
    def count(name):
        return int(row[name])
    whole = model(row["model"])
    multiple = PADDING*count("tp")
    shape = replace(whole, name=f"{whole.name}, {row['layers']} layers", key="", source=MEMORY, published={},
                    layers=count("layers"), kv_heads=count("kv_heads"),
                    vocab=-(-(whole.vocab + 1)//multiple)*multiple,        # the tokenizer adds an end of document
                    experts=whole.experts and replace(whole.experts, dense=count("dense_layers"), bias=0))
    layout = Layout(batch=count("dp")*count("microbatch")*count("microbatches"), microbatch=count("microbatch"),
                    dp=count("dp"), tp=count("tp"), pp=count("pp"), cp=count("cp"), ep=count("ep"), zero=1,
                    sequence_parallel=count("tp") > 1)
    return MemoryRun(key=row["case"], source=MEMORY, model=shape, cluster=cluster("dgx-b200", count("devices")),
                     layout=layout, seq_len=count("seq_len"), allocated=float(row["peak_allocated_mib_max"])*MiB,
                     least=float(row["peak_allocated_mib_min"])*MiB, reserved=float(row["peak_reserved_mib_max"])*MiB,
                     seconds=float(row["step_ms"])*1e-3, row=row)


def _machine(row):
    """The reference machine of the row's accelerator, its network as the source states it."""
    device, name = MACHINES[row["accelerator"]]
    device = replace(accelerator(device), **VARIANTS.get(row["accelerator"], {}))
    machine = replace(cluster(name, int(row["num_accelerators"])), device=device)
    stated = NIC.search(row["interconnect"])
    if not stated or len(machine.levels) == 1:
        return machine
    adapters, speed, prefix, owner = stated.groups()
    bits = int(adapters or 1)*float(speed)*{"G": 1e9, "T": 1e12}[prefix]
    beta = bits/8/(machine.node if owner == "node" else 1)
    link = replace(machine.outer, name=row["interconnect"], beta=beta,
                   source=SOURCES[row["source"]])
    outer = (replace(level, link=link) for level in machine.levels[1:])
    return replace(machine, levels=(machine.levels[0], *outer))

"""Training runs that their owners measured and published, as nouns and arrays of this package."""
import csv
import functools
import re
from dataclasses import dataclass, field, replace

import numpy as np

from . import specs
from .hardware import Cluster, Level, PublishedLink, accelerator, cluster, link
from .layout import Layout
from .stack import Stack
from .transformer import Experts, Latent, Transformer, model
from .units import GB, TB, MiB

# accelerator of the table -> (device, link inside its fast domain, link out of it, axes of a torus)
MACHINES = {"V100-32GB": ("v100", "", "", 0), "A100-40GB": ("a100-40gb", "nvlink3", "hdr", 0),
            "A100-80GB": ("a100-80gb", "nvlink3", "hdr", 0), "H100-80GB": ("h100-sxm", "nvlink4", "ndr", 0),
            "H100-96GB-500W": ("h100-sxm", "nvlink4", "ndr", 0), "H200": ("h200", "nvlink4", "ndr", 0),
            "B200": ("b200", "nvlink5", "ndr", 0), "GB200": ("gb200", "nvlink5", "ndr", 0),
            "B300": ("b300", "nvlink5", "xdr", 0), "GB300": ("gb300", "nvlink5", "xdr", 0),
            "TPU-v4": ("tpu-v4", "ici-v4", "", 3), "TPU-v5e": ("tpu-v5e", "ici-v5e", "", 2),
            "TPU-v5p": ("tpu-v5p", "ici-v5p", "", 3), "TPU-v6e": ("tpu-v6e", "ici-v6e", "", 2),
            "TPU-v7x": ("tpu-v7x", "ici-v7x", "", 3)}
VARIANTS = {"H100-96GB-500W": dict(memory=96*GB, bandwidth=2.4*TB)}    # slower memory, and more
LATENT = dict(q_rank=1536, kv_rank=512, rope=64)          # of both models in the table that have it
SOURCES = {                                         # source of the table -> key of references.bib
    "bigscience-bloom": "bloom-chronicles", "google-gpu-recipes": "gpu-recipes",
    "google-maxtext": "maxtext", "google-tpu-recipes": "tpu-recipes", "gpt-neox-2022": "black2022", "huggingface-nanotron": "nanotron",
    "internlm-internevo": "internevo2024", "kempner-forge": "kempnerforge2026", "korthikanti-2022": "korthikanti2022",
    "mosaicml-llm-foundry": "llm-foundry", "mt-nlg-2022": "smith2022",
    "narayanan-2021": "narayanan2021", "nvidia-megatron-bridge": "megatron-bridge",
    "nvidia-nemo-automodel": "nemo-automodel", "nvidia-nemo-docs": "nemo", "nvidia-megatron-lm": "megatron-lm-2020",
    "nvidia-folding": "liu2025folding", "nvidia-moe-zoo": "moe-zoo",
    "pytorch-torchtitan": "torchtitan", "stas-ml-engineering": "bekman-upgrade"}
UNFUSED = "bigscience-bloom", "gpt-neox-2022", "korthikanti-2022", "mt-nlg-2022", "narayanan-2021"     # attention of 2022 and before
NVIDIA = ("nvidia-megatron-bridge", "nvidia-nemo-docs", "nvidia-nemo-automodel", "nvidia-megatron-lm", "nvidia-folding",
          "nvidia-moe-zoo")
XLA = "google-maxtext", "google-tpu-recipes", "google-gpu-recipes"
MEMORY, PADDING = "simumax2026", 128                    # its source; Megatron-LM pads the vocabulary to this times tp
TEXTS = ("name", "model", "training_set", "manifest", "commit")         # of scaling_runs.csv
NIC = re.compile(r"(?:(\d+)x)?([\d.]+) ([GT])b/s.*per (node|GPU)")


@dataclass(frozen=True, kw_only=True)
class PublishedRun:
    """One published training step: what ran on what, cut how, and the seconds it took.

    key      row of specs/published_runs.csv, or case of specs/memory_runs.csv;  row  the row itself, texts
    source   key of references.bib
    seconds  one optimizer step, derived from the quantity that the source printed
    format   of the products with weights;  stack  the software, as the row and its source describe it
    kind     "dense-16" and "dense-8" (bits, on GPUs), "experts" (on GPUs) or "tpu": the class in which it is judged

    `arguments` are those of `estimate`.
    """
    key: str
    source: str
    model: Transformer
    cluster: Cluster
    layout: Layout
    seq_len: int
    seconds: float
    format: str = "bf16"
    stack: Stack = Stack()
    row: specs.Facts = field(repr=False, hash=False)

    @property
    def kind(self):
        if self.cluster.device.key.startswith("tpu"):
            return "tpu"
        return "experts" if self.model.experts else "dense-16" if self.format in ("bf16", "fp16") else "dense-8"

    @property
    def arguments(self):
        return dict(model=self.model, cluster=self.cluster, layout=self.layout, seq_len=self.seq_len, format=self.format,
                    stack=self.stack)


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
    """Every published step whose predictors are complete, as PublishedRuns.

    Whole steps of pre-training, from specs/published_runs.csv and, of Mixtral, specs/mixtral_runs.csv; and the 43 steps of
    specs/memory_runs.csv, which are a few layers of a model on one node of eight B200s (source simumax2026). What is left
    out, `refused_rows` says.
    """
    return (*(_run(row) for row in published_rows() if not refusal(row)),
            *(run for run in mixtral_runs() if not refusal(run.row)), *map(_short_run, memory_runs()))


@functools.cache
def unseen_runs():
    """The 26 runs of specs/unseen_runs.csv as PublishedRuns (kempnerforge2026, opened on 2026-11-22).

    All dense steps in the tables of its three reports: Llama shapes of 8 to 175 billion parameters on 1 to 360 H200s, with
    FSDP and tensor ranks. Nothing was changed for their sake; the term `routing` and the constants were since, without them.
    `row["predicted_s"]` is what `estimate` said before, at commit 8bd8980.
    """
    with open(specs.HERE/"unseen_runs.csv", newline="", encoding="utf-8") as file:
        return tuple(_run(specs.Facts(row)) for row in csv.DictReader(file))


@functools.cache
def mixtral_runs():
    """The 43 runs of specs/mixtral_runs.csv as PublishedRuns: Mixtral, trained by others than its authors (read on 2026-11-23).

    What a source leaves out is assumed, and stands in `row["flags"]` and `row["notes"]`. The six of `row["complete"] == "y"`
    are among published_runs() since the term `routing` of `estimate` was changed with all 43 in sight, and m-nemo-1 was
    there before, as r0550. To the others nothing is fitted.
    """
    with open(specs.HERE/"mixtral_runs.csv", newline="", encoding="utf-8") as file:
        return tuple(_run(specs.Facts(row)) for row in csv.DictReader(file))


def refused_rows():
    """Every row of specs/published_runs.csv and specs/mixtral_runs.csv that is not among published_runs(), with the reason.

    (row, sentence) after (row, sentence).
    """
    return tuple((row, refusal(row)) for row in (*published_rows(), *(run.row for run in mixtral_runs())) if refusal(row))


def refusal(row):
    """Why a row is not among published_runs(), as a sentence; "" where it is."""
    if row["scope"] != "e2e":
        return "It times one layer, not a step."
    if row["task"] != "pretrain":
        return f"It is {row['task']}, which does not train all weights on all tokens."
    if row["arch_complete"] != "y":
        return f"The shape of {row['model']} is not in the table, or its layers are of a kind that has no formula here."
    if row["complete"] != "y":
        return "The source leaves out a predictor: layout, batch, or what is recomputed."
    if row["accelerator"] not in MACHINES:
        return f"No data of a {row['accelerator']} are in specs."
    if again := re.match(r"(r\d+) of published_runs.csv", row["notes"]):
        return f"It is {again[1]} a second time."
    if row["offload"] not in ("", "n", "y"):
        return f"Weights or optimizer state live on the host ({row['offload']})."
    return ""


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


def overtrained_runs():
    """The 47 runs of specs/overtrained_runs.csv, 10 to 10,000 tokens a parameter (sardana2024, read on 2026-11-22).

    A dict of numpy arrays, one element a run, smallest model first, then fewest tokens: model, a text; params,
    tokens; batch, as the file states it; loss, the training loss smoothed over its end, in nats per token.
    """
    with open(specs.HERE/"overtrained_runs.csv", newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    return {name: np.array([row[name] for row in rows], str if name == "model" else float) for name in rows[0]}


def _run(row):
    shape = shape_of(row)
    return PublishedRun(key=row["row_id"], source=SOURCES[row["source"]], model=shape, cluster=machine_of(row),
                        layout=layout_of(row, shape), seq_len=_count(row, "seq_len"), seconds=float(row["d_step_s"]),
                        format=format_of(row), stack=stack_of(row), row=row)


def _count(row, name, default=1):
    return int(float(row[name])) if row[name] else default


def shape_of(row):
    """The Transformer of a row. Where only every other layer has experts, the others count as dense ones."""
    layers, count = _count(row, "n_layers"), functools.partial(_count, row)
    experts = None
    if row["n_experts"]:
        sparse = (layers - count("n_dense_layers", 0))//count("moe_every")
        experts = Experts(count=count("n_experts"), active=count("topk"), ffn=count("moe_ffn"),
                          shared=count("n_shared_experts", 0), dense=layers - sparse)
    window = re.match(r"(\d+) on ([\d.]+) of layers", row["sliding_window"])
    return Transformer(
        name=row["model"], layers=layers, hidden=count("hidden"), ffn=count("ffn"), heads=count("n_heads"),
        kv_heads=count("n_kv_heads"), head_dim=count("head_dim"), vocab=count("vocab"),
        gated=int(row["gated_mlp"] == "y"), tied=int(row["tied_embeddings"] == "y"), source=SOURCES[row["source"]],
        window=int(window[1]) if window else None, windowed=round(float(window[2])*layers) if window else 0,
        further=count("mtp_layers", 0), experts=experts, latent=Latent(**LATENT) if row["attn_type"] == "mla" else None)


def format_of(row):
    """The format of a row's products with weights: "bf16/fp16" is one of 16 bits, and mxfp8 and nvfp4 are fp8 and fp4."""
    known = ("int8", "fp4", "fp8", "bf16", "fp16")
    return next(format for format in known if format in row["precision"])


def layout_of(row, shape):
    """The Layout of a row."""
    count = functools.partial(_count, row)
    again, scores = recompute_of(row, shape)
    cp = count("cp")
    microbatch = round(float(row["micro_batch"])*cp) if "." in row["micro_batch"] else count("micro_batch")
    ep = count("ep")
    if row["source"] == "nvidia-nemo-automodel" and row["model"].startswith("gpt-oss"):
        ep, microbatch = {"gpt-oss-120b": 64, "gpt-oss-20b": 8}[row["model"]], 1       # its recipes; the table has no ep
    return Layout(batch=count("global_batch"), microbatch=max(microbatch, 1), dp=count("dp"), tp=count("tp"), pp=count("pp"),
                  cp=cp, ep=ep, chunks=count("vpp"), zero=int(row["dp_sharding"][4]), shards=shards_of(row),
                  recompute=again, attention_recompute=scores, sequence_parallel=row["sequence_parallel"] == "y")


def shards_of(row):
    """Ranks that share one copy of the state, which the table says in prose; None for all. On TPUs never more than a slice."""
    stated = re.search(r"(?:fsdp=|groups? (?:of )?)(\d+)", row["dp_sharding"])
    replicas = _count(row, "dp")*_count(row, "cp")
    shards = int(stated[1]) if stated else replicas
    if row["accelerator"].startswith("TPU"):
        shards = min(shards, _count(row, "fast_domain"))
    return shards if shards < replicas else None


def recompute_of(row, shape):
    """(share of products with weights, share of attention's two products) that a row does again.

    MaxText names what it keeps, the others what they recompute.
    """
    mode, detail = row["recompute"], row["recompute_detail"]
    layer = shape.attention_matmul + shape.ffn_matmul
    ffn, out = shape.ffn_matmul/layer, shape.value_width*shape.hidden/layer
    if mode == "none":
        return 0, 0
    if some := re.search(r"full recompute of (\d+) layers", detail):
        return int(some[1])/shape.layers, int(some[1])/shape.layers
    if mode == "full":
        return 1, 1
    for words, shares in ((("attention core",), (0, 1)), (("selective op",), (1/2, 0)), (("selective layer",), (1/2, 1/2)),
                          (("mla_up_proj",), (1/10, 0)), (("layernorm", "modules: mlp"), (0, 0)),
                          (("out, q,k,v", "out,q,k,v", "except_mlp"), (ffn, 0)), (("decoder_layer_input",), (1, 1)),
                          (("remat policy minimal",), (0, 1)), (("qkv rematerialised",), (1 - ffn - out, 1)),
                          (("q,k,v", "qkv"), (ffn + out, 1)), (("context and mlp out",), (1 - out, 0))):
        if any(word in detail for word in words):
            return shares
    raise ValueError(f"{row['row_id']}: recompute_detail = {detail!r} has no meaning here")


def stack_of(row):
    """The Stack of a row, by source and year; graphs and overlapped exchanges as the row states them."""
    source, detail, year = row["source"], row["recompute_detail"], int(row["year"])
    recent = source in NVIDIA and year >= 2024
    unfused = source in UNFUSED or source in NVIDIA and not recent
    compiled = source in XLA
    new_kernels = recent or compiled or source == "stas-ml-engineering"
    overlapped = "moe a2a overlap" in detail or source == "nvidia-nemo-automodel" or compiled
    return Stack(attention="scores" if unfused else "flash3" if new_kernels else "flash2",
                 graphs="iteration" if "full_iteration" in detail else "modules" if "cuda graphs" in detail else "none",
                 tensor=1/2 if recent or compiled or "async TP" in row["source_table"] else 1,
                 exchange=1/2 if overlapped else 1, sends=0.3 if recent else 1,
                 all_reduce=source in ("bigscience-bloom", "gpt-neox-2022"), shared_adapters=source != "narayanan-2021",
                 balanced=int(source == "huggingface-nanotron"))


def _short_run(run):
    """A MemoryRun as a PublishedRun: nothing overlaps, no graphs (its launch scripts)."""
    stack = Stack(attention="flash3", graphs="none", tensor=1, exchange=1, sends=1)
    return PublishedRun(key=run.key, source=run.source, model=run.model, cluster=run.cluster, layout=run.layout,
                        seq_len=run.seq_len, seconds=run.seconds, stack=stack, row=run.row)


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


def machine_of(row):
    """The Cluster of a row: its fast domain, and its network as the source states it, else as the reference system has it."""
    key, inner, outer, axes = MACHINES[row["accelerator"]]
    device = replace(accelerator(key), **VARIANTS.get(row["accelerator"], {}))
    devices, domain = int(row["num_accelerators"]), _count(row, "fast_domain")
    domain = next(d for d in range(min(devices, domain), 0, -1) if devices % d == 0)     # racks need not be filled
    inside = link(inner) if inner else PublishedLink(
        name="NVLink 2", alpha=link("nvlink3").alpha, beta=device.scale_up, source=device.source)
    levels = [Level(domain, inside, axes=axes)]
    if domain < devices:
        levels.append(Level(devices, _network(row, device, outer)))
    return Cluster(name=row["accelerator"], device=device, levels=levels)


def _network(row, device, name):
    """The PublishedLink of a row between fast domains."""
    stated = NIC.search(row["interconnect"])
    if stated:
        adapters, speed, prefix, owner = stated.groups()
        bits = int(adapters or 1)*float(speed)*{"G": 1e9, "T": 1e12}[prefix]
        beta = bits/8/(_count(row, "acc_per_node") if owner == "node" else 1)
        return PublishedLink(name=row["interconnect"], alpha=link(name or "hdr").alpha, beta=beta, source=SOURCES[row["source"]])
    if name:
        return link(name)
    beta = device.nic or accelerator("tpu-v5p").nic                # of the v4 none is published
    return PublishedLink(name="data-centre network", alpha=link("ndr").alpha, beta=beta, source=device.source)

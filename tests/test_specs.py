"""The data: sources, dates, identities of the sheets, published counts, errors, symbols."""
import copy
import datetime
import pickle
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import sympy as sp

from capacity import specs
from capacity.hardware import (Accelerator, Cluster, Level, PublishedLink, accelerator, accelerators, cluster, clusters,
                               link, links)
from capacity.transformer import Experts, Latent, Transformer, model, models
from capacity.runs import overtrained_runs, published_rows, published_runs, scaling_runs
from capacity.units import GB, TFLOPS, GiB, us

ROOT = Path(__file__).parent.parent
BIB = re.findall(r"^@\w+\{([^,\s]+),", (ROOT/"references.bib").read_text(), re.M)
TABLES = dict(accelerators=accelerators, links=links, clusters=clusters, models=models)
ENTRIES = [(kind, key) for kind, table in TABLES.items() for key in table()]


# ---- sources ---------------------------------------------------------------------------------
@pytest.mark.parametrize("kind, key", ENTRIES)
def test_every_entry_has_source_and_date(kind, key):
    entry = TABLES[kind]()[key]
    assert entry.name and entry.key == key
    assert isinstance(entry.read, datetime.date)
    for source in [entry.source, *entry.sources.values()]:
        assert source in BIB, f"{kind}.toml: {key}: {source} is not in references.bib"
    fields = set(specs.read(kind)[key])
    for field in [*entry.sources, *entry.assumed]:
        assert field.split(".")[0] in fields, f"{kind}.toml: {key} has no {field}, but its source"


def test_bibliography_is_sorted_and_without_duplicates():
    assert BIB == sorted(set(BIB))


def test_an_entry_without_source_cannot_be_made():
    with pytest.raises(TypeError, match="source"):
        Accelerator(name="X", dense={"bf16": 1*TFLOPS}, memory=80*GB, bandwidth=GB)
    with pytest.raises(TypeError, match="source"):
        PublishedLink(alpha=1*us, beta=GB)
    with pytest.raises(TypeError, match="source"):
        PublishedLink(alpha=1*us, beta=GB, source="")


def test_a_table_entry_without_source_cannot_be_read(tmp_path, monkeypatch):
    (tmp_path/"links.toml").write_text('[wire]\nname = "a wire"\nalpha = "1 us"\nbeta = "1 GB/s"\n')
    monkeypatch.setattr(specs, "HERE", tmp_path)
    with pytest.raises(TypeError, match="wire.*source"):
        specs.read.__wrapped__("links")
    (tmp_path/"links.toml").write_text('[wire]\nname = "a wire"\nsource = "x"\nalpha = "1 us"\nbeta = "1 GB/s"\n')
    with pytest.raises(TypeError, match="wire.*read"):
        specs.read.__wrapped__("links")


# ---- units -----------------------------------------------------------------------------------
def test_quantities_are_read_in_si_units():
    read = [("989.4 TFLOP/s", "rate", 989.4e12), ("80 GB", "memory", 80e9),
            ("95 GiB", "memory", 95*2**30), ("3.35 TB/s", "bandwidth", 3.35e12),
            ("50 Gb/s", "bandwidth", 6.25e9), ("2.8 us", "time", 2.8e-6),
            ("1.83 GHz", "frequency", 1.83e9), ("393 TOP/s", "rate", 393e12),
            ("2.5 PFLOP/s", "rate", 2.5e15), ("1,200 GB/s", "bandwidth", 1.2e12)]
    for text, dimension, value in read:
        assert np.isclose(specs.quantity(text, dimension, "x.y"), value, rtol=1e-15)
    assert accelerator("tpu-v5p").memory == 95*GiB


def test_every_unit_is_its_prefix_times_its_base():
    def one(unit, dimension):
        return specs.quantity(f"1 {unit}", dimension, "x.y")

    for base, dimension in dict(B="memory", Hz="frequency", **{"B/s": "bandwidth", "FLOP/s": "rate", "OP/s": "rate"}).items():
        assert [one(prefix + base, dimension) for prefix in ("", *"kMGTP")] == [1000**k for k in range(6)], base
    assert [one(f"{prefix}iB", "memory") for prefix in "KMGT"] == [1024**k for k in range(1, 5)]
    assert [one(unit, "time") for unit in ("s", "ms", "us", "ns")] == [1, 1e-3, 1e-6, 1e-9]
    assert [8*one(f"{prefix}b/s", "bandwidth") for prefix in "GT"] == [one(f"{prefix}B/s", "bandwidth") for prefix in "GT"]


@pytest.mark.parametrize("text", ["80 gigabytes", "80GB", "80", "80 GB/s", "eighty GB", "80 GB ",
                                  "-80 GB", 80])
def test_a_bad_quantity_names_entry_and_field(text):
    with pytest.raises(ValueError, match="h100.memory"):
        specs.quantity(text, "memory", "h100.memory")


# ---- identities of the sheets ----------------------------------------------------------------
@pytest.mark.parametrize("key", accelerators())
def test_dense_is_at_most_sparse_and_measured_at_most_dense(key):
    device = accelerator(key)
    for format, rate in device.sparse.items():
        assert device.peak(format) < rate <= 2.01*device.peak(format)
    for format, rate in device.measured.items():
        assert 0.4*device.peak(format) < rate < device.peak(format)


@pytest.mark.parametrize("key", [k for k, a in accelerators().items() if a.clock])
def test_peak_follows_from_the_clock(key):
    device = accelerator(key)
    assert np.isclose(device.units*device.per_clock*device.clock, device.peak("fp16"), rtol=3e-3)


def test_h100_peak_from_its_clock():
    assert round(132*4*1024*1.83e9/1e11) == 9894 == round(accelerator("h100-sxm").peak("bf16")/1e11)


def test_half_of_what_is_quoted_for_both_directions():
    quoted = {"v100": 300, "a100-80gb": 600, "h100-sxm": 900, "h800": 400, "b200": 1800,
              "gb200": 1800, "mi300x": 896, "tpu-v5e": 400, "tpu-v5p": 1200, "tpu-v6e": 800,
              "tpu-v7x": 1200}
    for key, both in quoted.items():
        assert 2*accelerator(key).scale_up == both*GB, key


def test_links_times_rate_is_the_device():
    torus = {"tpu-v4": 6, "tpu-v5e": 4, "tpu-v5p": 6, "tpu-v6e": 4, "tpu-v7x": 6}
    for device, count in torus.items():
        assert accelerator(device).scale_up == count*link(device.replace("tpu", "ici")).beta
    for name, rate in [("pcie4", 16e9), ("pcie5", 32e9)]:
        assert np.isclose(link(name).beta, rate*16*128/130/8, rtol=1e-3)


@pytest.mark.parametrize("key", clusters())
def test_clusters_agree_with_their_devices(key):
    machine = cluster(key)
    assert machine.inner.beta*(2*machine.levels[0].axes or 1) == machine.device.scale_up
    assert len(machine.levels) == 1 or machine.outer.beta == machine.device.nic
    sizes = [level.devices for level in machine.levels]
    assert sizes == sorted(set(sizes)) and all(b % a == 0 for a, b in zip(sizes, sizes[1:]))
    assert machine.nodes*machine.node == machine.devices


def test_llama3_cluster_thins_out_above_the_pod():
    machine = cluster("llama3-24k")
    assert (machine.node, machine.levels[1].devices, machine.devices) == (8, 3072, 24576)
    assert machine.outer == machine.levels[1].link and replace(machine, levels=machine.levels[:1]).outer == machine.inner
    assert machine.oversubscription == 7 and np.isclose(machine.levels[-1].bandwidth, 50*GB/7)


def test_a_device_leaves_its_node_by_the_second_of_three_links():
    fast, middle, slow = link("nvlink4"), link("ndr"), replace(link("ndr"), beta=10*GB)
    machine = Cluster(device=accelerator("h100-sxm"), levels=[(8, fast), (64, middle), (512, slow, 3)])
    assert (machine.inner, machine.outer, machine.node, machine.nodes, machine.devices) == (fast, middle, 8, 64, 512)
    assert machine.oversubscription == 3
    assert (machine.sized(128).outer, machine.sized(64).outer) == (middle, middle)


def test_the_variant_of_a_device_has_its_own_memory():
    seen = {r.row["accelerator"]: r.cluster.device for r in published_runs() if r.source != "simumax2026"}
    assert seen["H100-96GB-500W"].memory == 96*GB and seen["H100-96GB-500W"].bandwidth == 2.4e12
    assert seen["H100-80GB"] == accelerator("h100-sxm") and seen["H100-96GB-500W"].dense == seen["H100-80GB"].dense


def test_a_rack_of_72_sends_as_much_as_nine_nodes():
    assert 72*cluster("nvl72").outer.beta == 3.6e12


# ---- published counts ------------------------------------------------------------------------
EXACT = {"llama2-7b": 6_738_415_616, "llama2-13b": 13_015_864_320, "llama2-70b": 68_976_648_192,
         "llama3-8b": 8_030_261_248, "llama3-70b": 70_553_706_496, "llama3-405b": 405_853_388_800}
COUNTED = {"gpt3-175b": (174_604_259_328, 174_604_259_328), "mixtral-8x7b": (46_702_792_704, 12_879_925_248),
           "deepseek-v3": (671_026_419_200, 37_552_297_472)}
ROUNDED = {"gpt3-175b": (174.6, None), "deepseek-v2": (236, 21), "deepseek-v3": (671.03, 37.6), "mixtral-8x7b": (46.7, 12.9),
           "mixtral-8x22b": (141, 39), "qwen2.5-7b": (7.6, None), "qwen2.5-72b": (72.7, None)}


@pytest.mark.parametrize("key", EXACT)
def test_exact_parameter_counts(key):
    assert model(key).params == EXACT[key] == model(key).published["params"]


@pytest.mark.parametrize("key", COUNTED)
def test_counted_parameters_of_all_and_of_one_token(key):
    assert (model(key).params, model(key).active_params) == COUNTED[key]
    wide = replace(model("mixtral-8x22b"), vocab=32768)
    assert (wide.params, wide.active_params) == (140_630_071_296, 39_161_468_928), "the padded vocabulary of later checkpoints"


def test_a_model_is_the_sum_of_its_tensors():
    """Every tensor of three files of weights: biases of all layers, of three, and none; latents; learned positions."""
    H, f, kv = 3584, 18944, 4*128
    qwen = 2*152064*H + H + 28*(2*H*H + H + 2*(H*kv + kv) + 3*H*f + 2*H)
    H, q, kv, expert = 7168, 1536, 512, 3*7168*2048
    attention = H*q + q + q*128*(128 + 64) + H*(kv + 64) + kv + kv*128*(128 + 128) + 128*128*H + 2*H
    deepseek = 2*129280*H + H + 61*attention + 3*3*H*18432 + 58*(257*expert + 256*H + 256)
    H = 768
    gpt2 = (50257 + 1024)*H + 2*H + 12*(2*2*H + H*3*H + 3*H + H*H + H + H*4*H + 4*H + 4*H*H + H)
    assert (qwen, deepseek, gpt2) == (7_615_616_512, 671_026_419_200, 124_439_808)
    assert (model("qwen2.5-7b").params, model("deepseek-v3").params) == (qwen, deepseek)
    shape = Transformer(layers=12, hidden=H, heads=12, kv_heads=12, head_dim=64, ffn=4*H, vocab=50257, gated=0, tied=1,
                        norm=2, bias=1, positions=1024)
    assert shape.params == gpt2 and shape.matmul_params == 12*12*H*H + 50257*H == shape.layers_matmul + 50257*H


def test_small_parameters_by_hand():
    """Norms of queries and keys are added; every layer with a bias has one for each matrix of a gated block."""
    plain = Transformer(**TINY)
    assert (plain.windowed, plain.further) == (0, 0)
    assert plain.expert_matmul == 0
    assert replace(plain, head_norm=7).params - plain.params == 7
    assert replace(plain, bias=1).params - plain.params == 3*8 + 8 + 2*32 + 8, "q, k, v, output, gate and up, down"
    assert replace(plain, bias=1, gated=0).params - replace(plain, gated=0).params == 3*8 + 8 + 32 + 8


def test_the_smallest_that_is_allowed():
    assert Transformer(**TINY, experts=Experts(count=1, active=1, ffn=1), latent=Latent(q_rank=1, kv_rank=1, rope=1)).params > 0
    for make, name in ((lambda: Experts(count=2, active=1, ffn=8, shared=-1), "shared"), (lambda: Latent(q_rank=0, kv_rank=1, rope=1), "q_rank"),
                       (lambda: Latent(q_rank=1, kv_rank=1, rope=0), "rope"), (lambda: Transformer(**TINY, head_norm=-1), "head_norm"),
                       (lambda: Transformer(**TINY, positions=-1), "positions"), (lambda: Transformer(**TINY, tied=-1), "tied")):
        with pytest.raises(ValueError, match=f"{name} = "):
            make()


@pytest.mark.parametrize("key", ROUNDED)
def test_rounded_parameter_counts(key):
    total, active = ROUNDED[key]
    decimals = lambda x: len(str(x).partition(".")[2])
    assert round(model(key).params/1e9, decimals(total)) == total
    assert active is None or round(model(key).active_params/1e9, decimals(active)) == active


@pytest.mark.parametrize("key", models())
def test_counts_are_consistent(key):
    shape = model(key)
    assert isinstance(shape.params, int)
    assert shape.matmul_params < shape.active_params + shape.tied*shape.vocab*shape.hidden
    assert (shape.active_params < shape.params) == (shape.experts is not None)
    for name, count in shape.published.items():
        computed = {"params": shape.params, "active": shape.active_params}[name]
        assert np.isclose(computed, count, rtol=0.02)


def test_the_weights_of_deepseek_without_the_embedding():
    shape = model("deepseek-v3")
    assert round((shape.active_params - shape.embedding_params)/1e9, 1) == 36.6
    assert shape.attention_width == 128*(128 + 192)/2, "scores over 192, values of 128"
    assert shape.cache_width == 576 and model("llama3-70b").cache_width == 2048


TINY = dict(layers=1, hidden=8, heads=2, kv_heads=2, head_dim=4, ffn=32, vocab=10)
LLAMA = dict(layers=32, hidden=4096, heads=32, kv_heads=8, head_dim=128, ffn=14336, vocab=128256)


# ---- errors ----------------------------------------------------------------------------------
def test_an_unknown_name_lists_the_close_ones():
    for find, name, close in [(accelerator, "h100", "h100-sxm, h100-pcie"),
                              (cluster, "dgx", "dgx-h100"), (link, "nvlnk4", "nvlink4"),
                              (model, "zzz", "gpt3-175b"),
                              (model, "llama-3-70b", "llama3-70b")]:
        with pytest.raises(ValueError, match=f"{name}.*{close}"):
            find(name)
    with pytest.raises(ValueError, match="fp4.*tf32, bf16"):
        accelerator("h100-sxm").peak("fp4")
    with pytest.raises(ValueError, match="no measured ceiling.*none"):
        accelerator("tpu-v4").ceiling()


def test_a_wrong_argument_is_named():
    with pytest.raises(TypeError, match="gamma"):
        PublishedLink(alpha=1*us, beta=GB, gamma=1, source="x")
    with pytest.raises(TypeError, match="kv_heads"):
        Transformer(layers=1, hidden=8, heads=2, head_dim=4, ffn=32, vocab=10)
    with pytest.raises(ValueError, match="beta = -1"):
        PublishedLink(alpha=1*us, beta=-1, source="x")
    with pytest.raises(ValueError, match="layers = 0"):
        Transformer(**TINY | {"layers": 0})
    with pytest.raises(ValueError, match="count = 0"):
        Experts(count=0, active=1, ffn=8)
    with pytest.raises(ValueError, match="memory = '80 GB'"):
        Accelerator(name="X", dense={}, memory="80 GB", bandwidth=GB, source="x")
    with pytest.raises(ValueError, match="units = 0"):
        Accelerator(name="X", dense={}, memory=1, bandwidth=GB, units=0, source="x")
    with pytest.raises(ValueError, match="devices = 0"):
        cluster("dgx-h100", 0)
    with pytest.raises(ValueError, match="devices = 12; allowed: whole nodes of 8"):
        cluster("dgx-h100", 12)
    with pytest.raises(ValueError, match=r"devices = array\(\[12, 16\]\); allowed: whole nodes of 8"):
        cluster("dgx-h100", np.array([12, 16]))
    with pytest.raises(ValueError, match="hidden"):
        Transformer(**TINY | {"hidden": np.array([8, -8])})
    for field in "dense", "sparse", "measured":
        with pytest.raises(ValueError, match=f"{field}.bf16 = -1"):
            Accelerator(**dict(name="X", dense={}, memory=1, bandwidth=1, source="x") | {field: {"bf16": -1}})


@pytest.mark.parametrize("beta", [True, [1.0], 1j, "1", float("nan"), sp.Integer(-1), sp.I, sp.true, sp.nan,
                                  np.array([True]), np.array([1.0, np.nan])], ids=repr)
def test_what_is_no_size_is_named(beta):
    with pytest.raises(ValueError, match="^beta = "):
        PublishedLink(alpha=1*us, beta=beta, source="x")


# ---- numbers, arrays, symbols ----------------------------------------------------------------
def test_shapes_of_arrays_and_symbols():
    L, H, S = sp.symbols("L H S", positive=True, integer=True)
    shape = Transformer(**LLAMA | {"layers": L, "hidden": H})
    assert shape.params.subs({L: 32, H: 4096}) == model("llama3-8b").params
    shape = Transformer(**LLAMA | {"layers": np.array([16, 32])})
    assert shape.params[1] == model("llama3-8b").params
    tied, untied = (Transformer(**TINY | {"hidden": H}, tied=t) for t in (1, 0))
    assert tied.matmul_params == untied.matmul_params and sp.expand(untied.params - tied.params - 10*H) == 0
    biased = Transformer(**TINY | {"layers": L}, experts=Experts(count=S, active=2, ffn=32, dense=1, bias=1))
    plain = Transformer(**TINY | {"layers": L}, experts=Experts(count=S, active=2, ffn=32, dense=1))
    assert sp.expand(biased.params - plain.params - (L - 1)*S) == 0
    sparse = Transformer(**TINY | {"hidden": H}, experts=Experts(count=S, active=2, ffn=32))
    assert sp.expand(sparse.params - sparse.active_params - (S - 2)*3*32*H) == 0


def test_links_and_clusters_of_symbols_and_arrays():
    alpha, beta, P = sp.symbols("alpha beta P", positive=True)
    wire = PublishedLink(alpha=alpha, beta=beta, source="x")
    assert dict(wire) == dict(alpha=alpha, beta=beta)
    machine = Cluster(device=accelerator("h100-sxm"),
                      levels=[(8, link("nvlink4")), Level(P, wire, 2)])
    assert machine.devices == P and machine.levels[1].bandwidth == beta/2
    assert cluster("dgx-h100", np.array([512, 2048])).nodes.tolist() == [64, 256]
    assert [x.devices for x in cluster("dgx-h100", 16).levels] == [8, 16]
    assert [x.devices for x in cluster("llama3-24k", 3072).levels] == [8, 3072]
    assert [x.devices for x in cluster("dgx-h100", 8).levels] == [8]
    assert cluster("dgx-h100", 16).outer == link("ndr")


def test_levels_hold_whole_groups():
    wire, device = link("nvlink4"), accelerator("h100-sxm")
    for levels, words in (([(8, wire), (4, wire)], "4 devices around groups of 8"),
                          ([(8, wire), (64, wire), (96, wire)], "96 devices around groups of 64; allowed: a multiple of 64"),
                          ([(8, wire), (np.array([4, 16]), wire)], "devices around groups of 8"),
                          ([(np.array([2, 4]), wire), (6, wire)], "6 devices around groups of")):
        with pytest.raises(ValueError, match=words):
            Cluster(device=device, levels=levels)
    assert Cluster(device=device, levels=[(8, wire), (8, wire)]).nodes == 1
    with pytest.raises(ValueError, match="devices = 6152; allowed: whole groups of 3072, such as 6,144 or 9,216"):
        cluster("llama3-24k", 6152)


def test_what_was_read_cannot_be_changed():
    entries = [accelerator("h100-sxm").dense, accelerator("h100-sxm").measured, accelerator("h100-sxm").sources,
               model("llama3-8b").published, accelerators(), links(), clusters(), models(), published_rows()[0]]
    for facts in entries:
        before, key = dict(facts), next(iter(facts))
        for change in (lambda: facts.__setitem__(key, 1), lambda: facts.__delitem__(key), facts.clear, facts.popitem,
                       lambda: facts.pop(key), lambda: facts.update({key: 1}), lambda: facts.setdefault("new", 1),
                       lambda: facts.__ior__({key: 1})):
            with pytest.raises(TypeError, match="a fact cannot be changed"):
                change()
        assert facts == before
    mine = Accelerator(name="X", dense=(rates := {"bf16": 1.0}), memory=1, bandwidth=1, source="x")
    rates["bf16"] = 2.0
    assert mine.dense == {"bf16": 1.0} and replace(mine, dense=rates).peak() == 2.0
    for entry in accelerator("h100-sxm"), model("deepseek-v3"), cluster("nvl72"):
        assert pickle.loads(pickle.dumps(entry)) == entry == copy.deepcopy(entry)


def test_entries_can_be_keys():
    assert len({accelerator("h100-sxm"), link("ndr"), cluster("nvl72"), model("deepseek-v3")}) == 4


# ---- training runs ---------------------------------------------------------------------------
def test_scaling_runs_are_complete():
    runs = scaling_runs()
    assert {len(column) for column in runs.values()} == {34} == {len(set(runs["name"]))}
    sizes = dict(zip(*np.unique(runs["params"], return_counts=True)))
    assert sizes == {10569312: 8, 78914048: 8, 153677376: 8, 411616256: 7, 1439795200: 2, 6889410560: 1}
    assert (runs["tokens"] == 20*runs["chinchilla_multiplier"]*runs["params"]).all()
    assert (runs["params_no_embed"] < runs["params"]).all()
    for name, *parts in zip(*(runs[k] for k in ("name", "training_set", "model", "chinchilla_multiplier"))):
        assert name == "-".join(map(str, parts))
    assert "gadre2024" in BIB


def test_overtrained_runs_are_complete():
    runs = overtrained_runs()
    assert {len(column) for column in runs.values()} == {47}
    sizes = dict(zip(*np.unique(runs["params"], return_counts=True)))
    assert sizes == {151e6: 12, 367e6: 10, 749e6: 9, 1.26e9: 8, 2.46e9: 7, 6.05e9: 1}
    each = runs["tokens"]/runs["params"]
    assert (each == each.round()).all() and each.min() == 10 and each.max() == 10_000
    for size in sizes:
        own = runs["params"] == size
        assert (np.diff(runs["tokens"][own]) > 0).all() and (np.diff(runs["loss"][own]) < 0).all()
    assert "sardana2024" in BIB


def test_scaling_runs_improve_with_tokens():
    runs = scaling_runs()
    loss, low, high = (runs[k] for k in ("loss", "loss_tokens_lower_95", "loss_tokens_upper_95"))
    assert (low < loss).all() and (loss < high).all()
    np.testing.assert_allclose((low + high)/2, loss, atol=4e-4)

    def rises(mask):                # a run with more tokens and no smaller loss than the one before
        rows = np.flatnonzero(mask)
        return [str(runs["name"][j]) for i, j in zip(rows, rows[1:])
                if runs["model"][i] == runs["model"][j] and loss[j] >= loss[i]]
    assert rises(loss > 0) == ["c4_original-d=576_l=24_h=8-32.0", "c4_original-d=1024_l=24_h=8-8.0"]
    assert not rises(runs["manifest"] == "laion-west") and not rises(runs["manifest"] == "tri-ml-datasets")

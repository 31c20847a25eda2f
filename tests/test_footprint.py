"""The memory of a step: laws of its parts, and the peaks that others measured."""
import copy
import csv
import math
import pickle
from dataclasses import replace
from itertools import accumulate

import numpy as np
import pytest
import sympy as sp

from capacity import (Buffers, Footprint, GiB, Kernels, Layout, MiB, Policy, Saved, Transformer, accelerator,
                      activation_bytes_per_layer, activation_table, attention_saved_bytes, buffers, cluster, estimate,
                      gated_saved_bytes, gathered_bytes, in_flight_chunks, interleaved, kernels,
                      latent_saved_bytes, logit_bytes, memory, memory_runs, model, model_state_bytes, one_f_one_b, one_f_one_b_activations,
                      padded_copies, policies, published_rows, routed_saved_bytes, routed_working_bytes, specs)
from capacity.footprint import PARTS
from capacity.transformer import models
from capacity.witness import recompute, spmd, tiny
from capacity.witness.schedule import simulate, zb_h1, zb_h2, zb_v
from capacity.witness.splits import data, zero as sharding

LLAMA, DEEPSEEK = model("llama3-70b"), model("deepseek-v3")
MACHINE = cluster("dgx-h100", 512)
LAYOUT = Layout(batch=512, dp=16, tp=8, pp=4, zero=1, sequence_parallel=True)
SPARSE = Layout(batch=512, dp=128, pp=4, ep=64)


def foot(layout=LAYOUT, shape=LLAMA, seq_len=8192, machine=MACHINE, **kw):
    return memory(shape, machine, layout, seq_len, **kw)


def per_token(shape, **kw):
    return sum(saved.bytes for saved in activation_table(shape, **kw))


# --- what a layer keeps

@pytest.mark.parametrize("key", models())
def test_the_table_sums_to_the_formulas(key):
    m, e = model(key), model(key).experts
    for lay in Layout(batch=1), Layout(batch=1, tp=4), Layout(batch=1, tp=4, sequence_parallel=True):
        ranks = lay.tp, lay.seq_ranks
        kept = {sparse: sum(s.on(lay) for s in activation_table(m, sparse=sparse)) for sparse in ((False, True) if e else (False,))}
        if m.latent:
            attention = latent_saved_bytes(m.hidden, m.latent.q_rank, m.latent.kv_rank, m.query_width, m.value_width, m.heads, *ranks)
        else:
            attention = attention_saved_bytes(m.hidden, m.query_width, m.kv_width, m.heads, *ranks)
        if m.gated:
            assert kept[False] == attention + gated_saved_bytes(m.hidden, m.ffn, *ranks)
        if e:
            assert kept[True] == attention + routed_saved_bytes(m.hidden, e.ffn, e.active, e.count, e.shared*e.ffn, *ranks)
    assert per_token(m) == per_token(m, sparse=bool(e)) and (not e or per_token(m) > per_token(m, sparse=False))


def test_twelve_hidden_four_rho_six_ffn():
    h, rho, f, a = sp.symbols("h rho f a", positive=True)
    shape = Transformer(layers=1, hidden=h, heads=a, kv_heads=rho*a, head_dim=h/a, ffn=f, vocab=1)
    assert sp.expand(per_token(shape) - (12*h + 4*rho*h + 6*f + 4*a + 8)) == 0
    assert sp.expand(per_token(shape, kernels="eager") - per_token(shape) - 2*f) == 0


@pytest.mark.parametrize("key, digits", [("llama3-8b", 34.03), ("llama2-7b", 32.16), ("llama2-70b", 33.53), ("llama3-405b", 31.78)])
def test_a_modern_layer_keeps_about_34_bytes_too(key, digits):
    assert round(per_token(model(key))/model(key).hidden, 2) == digits
    assert round(per_token(model("llama3-8b"), kernels="eager")/4096, 1) == 41.0


def test_34_bytes_of_a_layer_with_dropout():
    """Korthikanti's 34 are the tensors of 16 bits and the masks; the statistics are counted here besides."""
    m = model("gpt3-175b")
    assert per_token(m, kernels="dropout") == 34*m.hidden + 2*2*4 + 4*m.heads
    table = activation_table(m, kernels="dropout")
    for seq, replicated in ((False, 10), (True, 10/8)):
        lay = replace(LAYOUT, sequence_parallel=seq)
        big = sum(s.on(lay) for s in table if "statistics" not in s.name and s.name != "log-sum-exp")
        assert big == m.hidden*(replicated + 24/8) == activation_bytes_per_layer(1, m.hidden, 8, 8 if seq else 1)


def test_eight_numbers_of_the_table_to_every_digit():
    """Four models of korthikanti2022, layers of the first stage: tensor parallel, and sequence parallel without scores."""
    shapes = (("22B", 48, 6144, 64, 4, 1, 1), ("175B", 96, 12288, 96, 1, 8, 3), ("530B", 105, 20480, 128, 1, 35, 3),
              ("1T", 128, 25600, 160, 1, 64, 1))
    numbers = []
    for name, layers, hidden, heads, b, pp, chunks in shapes:
        shape = Transformer(name=name, layers=layers, hidden=hidden, heads=heads, kv_heads=heads, head_dim=hidden//heads,
                            ffn=4*hidden, vocab=51200, gated=0)
        for seq, scores in (False, 1), (True, 0):
            lay = Layout(batch=b*4*pp, microbatch=b, tp=8, pp=pp, chunks=chunks, sequence_parallel=seq, scores=scores)
            got = memory(shape, cluster("dgx-a100", 8*pp), lay, 2048, kernels="34 bytes")
            first = next(instant for instant in got.instants if instant.stage == 0)
            numbers.append(first.parts["activations"]/GiB)
    assert numbers[::2] == [59.25, 66.84375, 114.0234375, 131.25]
    assert numbers[1::2] == [9.5625, 12.3515625, 23.076171875, 26.5625]


def test_rows_by_hand():
    """DeepSeek-V3, a layer with experts: the widths of its configuration."""
    table = {(s.block, s.name): (s.bytes, s.shared) for s in activation_table(DEEPSEEK, kernels="megatron", copies=9)}
    assert table["attention", "queries"] == table["attention", "keys"] == (2*128*192, "tensor")
    assert table["attention", "values"] == table["attention", "head outputs"] == (2*128*128, "tensor")
    assert table["attention", "query bottleneck"] == table["attention", "query bottleneck, normed"] == (2*1536, "sequence")
    assert table["attention", "key-value bottleneck"] == (2*512, "sequence")
    assert table["attention", "bottlenecks' norm statistics"] == (8, "sequence") and table["attention", "log-sum-exp"] == (512, "tensor")
    assert table["feed-forward", "copies"] == (2*9*7168, "sequence")
    assert table["feed-forward", "copies, into the non-linearity"] == (4*9*2048, "sequence")
    assert table["feed-forward", "copies, out of the non-linearity"] == (2*9*2048, "sequence")
    assert table["feed-forward", "shared experts, into the non-linearity"] == (4*2048, "tensor")
    assert table["feed-forward", "router"] == (20*256, "sequence")
    assert table["attention", "layer input"] == table["feed-forward", "block input"] == (2*7168, "sequence")
    other = {s.name: s.bytes for s in activation_table(replace(DEEPSEEK, kv_heads=1, norm=2))}
    assert other["values"] == 2*128*128 and other["bottlenecks' norm statistics"] == 16, "a latent has no key-value heads"
    gpt = {(s.block, s.name): s.bytes for s in activation_table(model("gpt3-175b"), kernels="dropout")}
    assert gpt["feed-forward", "into the non-linearity"] == gpt["feed-forward", "out of the non-linearity"] == 2*4*12288
    assert gpt["attention", "dropout mask"] == gpt["feed-forward", "dropout mask"] == 12288
    eager = {s.name: s.bytes for s in activation_table(replace(LLAMA, gated=0), kernels="eager")}
    assert eager["gate behind its function"] == 0, "no gate"


def test_exchanged_heads_are_kept_twice():
    plain, several = (per_token(LLAMA, kernels="megatron", cp=cp) for cp in (1, 2))
    assert several - plain == 2*8192 and per_token(LLAMA, cp=2) == per_token(LLAMA)


# --- instants, stages, parts

@pytest.mark.parametrize("name", kernels())
@pytest.mark.parametrize("layout, shape", [(LAYOUT, LLAMA), (SPARSE, DEEPSEEK), (replace(LAYOUT, zero=3, recompute=0.5), LLAMA)])
def test_parts_sum_to_the_greatest_total(name, layout, shape):
    f = foot(layout, shape, kernels=name)
    assert isinstance(f, Footprint) and tuple(f.parts) == PARTS
    assert sum(f.parts.values()) == pytest.approx(f.total) and f.total == f.worst.total == max(f.stages.values())
    assert f.parts == f.worst.parts and f.worst.total >= max(i.total for i in f.instants)
    assert f.weights == f.parts["weights"] and list(f.stages) == list(range(4))
    assert all(nbytes >= 0 for instant in f.instants for nbytes in instant.parts.values())
    with pytest.raises(AttributeError, match="no 'experts'; parts: weights, grads"):
        print(f.experts)
    assert pickle.loads(pickle.dumps(f)).total == copy.deepcopy(f).total == f.total


def test_the_head_of_a_long_vocabulary_or_the_first_stage():
    short, long = (foot(shape=replace(LLAMA, vocab=v)) for v in (8192, 2**21))
    assert (short.worst.stage, short.worst.name) == (0, "the last layer") and short.head == 0
    assert (long.worst.stage, long.worst.name) == (3, "the head") and long.activations < short.activations


def test_one_device_by_hand():
    """Llama 3 8B in sequences of 8,192 on one device: 16 bytes a parameter, 36.5 GB of activations, ten bytes a logit."""
    m = model("llama3-8b")
    f = memory(m, cluster("dgx-h100", 8).sized(1), Layout(batch=1, zero=0), 8192)
    assert (f.weights, f.grads, f.optimizer) == (2*m.params, 2*m.params, 12*m.params)
    assert f.activations == 32*8192*per_token(m) == pytest.approx(36.54e9, rel=1e-3)
    assert f.head == 10*8192*128256 + 8192*(4*4096 + 4) and (f.gathered, f.working, f.workspace) == (0, 0, 0)
    just = replace(accelerator("h200"), memory=f.total)
    assert f.fits(just) and not f.fits(replace(just, memory=f.total - 1)) and not f.fits(accelerator("h200")), "141 GB, once"
    assert not f.fits(accelerator("h100-sxm")) and f.fits(accelerator("gb300")) and not f.fits(accelerator("gb300"), share=0.5)


@pytest.mark.parametrize("key", models())
def test_the_stages_together_hold_the_model(key):
    m = model(key)
    for pp in (1, 2):
        if m.layers % pp:
            m = replace(m, layers=m.layers + 1)
        f = memory(m, cluster("dgx-h100", 8).sized(pp), Layout(batch=4, pp=pp, zero=0), 128)
        weights = {i.stage: i.parts["weights"] for i in f.instants}
        assert sum(weights.values()) == 2*(m.params + (pp > 1)*m.tied*m.vocab*m.hidden), "a tied matrix is at both ends"


def test_tensor_ranks_hold_whole_heads_norms_and_bottlenecks():
    m = replace(model("gpt3-175b"), vocab=51200)
    for shape, twice in ((LLAMA, 0), (m, 0), (DEEPSEEK, 7168*(1536 + 576)*61)):
        one, two = (memory(shape, cluster("dgx-h100", 8).sized(tp), Layout(batch=1, tp=tp, zero=0), 128).weights/2 for tp in (1, 2))
        small = shape.layers*shape.layer_small + shape.norm*shape.hidden + shape.positions*shape.hidden
        if shape.experts:
            small += 58*(shape.hidden*256 + 256 + 256*shape.expert_matmul)          # experts are whole: ep = 1 copies them
        assert 2*two - one == small + twice
    sixteen, eight = (foot(Layout(batch=512, dp=512//tp, tp=tp, zero=0)).weights/2 for tp in (16, 8))
    pair = 80*2*8192*8*128
    assert eight - pair/8 == pytest.approx(2*(sixteen - pair/8), rel=1e-3), "sixteen ranks, eight key-value heads"


def test_zero_is_a_chain():
    for layout, shape in ((LAYOUT, LLAMA), (SPARSE, DEEPSEEK)):
        steps = [foot(replace(layout, zero=z), shape) for z in range(4)]
        state = [f.weights + f.grads + f.optimizer for f in steps]
        assert state[0] > state[1] > state[2] > state[3]
        assert [f.activations for f in steps] == [steps[0].activations]*4
        assert [f.gathered > 0 for f in steps] == [False, False, True, True]
    shared = {z: foot(replace(LAYOUT, zero=z)) for z in range(4)}
    assert shared[0].optimizer == pytest.approx(16*shared[1].optimizer) and shared[0].grads == shared[1].grads
    assert shared[1].grads == pytest.approx(16*shared[2].grads) and shared[2].weights == pytest.approx(16*shared[3].weights)


def test_experts_are_shared_by_fewer():
    """Of 128 ranks 64 hold different experts, so two hold the same and share their optimizer state; all share the rest."""
    f = {z: foot(replace(SPARSE, zero=z), DEEPSEEK).instants[2].parts for z in range(4)}
    layers = math.ceil(61/4)
    own = layers*(DEEPSEEK.attention_matmul + DEEPSEEK.expert_matmul + 256*7168 + 256 + DEEPSEEK.layer_small)
    theirs = layers*256*DEEPSEEK.expert_matmul/64
    assert f[0]["optimizer"] == pytest.approx(12*(own + theirs))
    assert f[1]["optimizer"] == pytest.approx(12*(own/128 + theirs/2))
    assert f[2]["grads"] == pytest.approx(2*(own/128 + theirs/2)) and f[3]["weights"] == pytest.approx(f[2]["grads"])
    wide = foot(Layout(batch=512, dp=32, tp=4, pp=4, ep=64, sequence_parallel=True), DEEPSEEK).instants[2].parts
    assert Layout(batch=512, dp=32, tp=4, pp=4, ep=64).expert_replicas == 2
    less = (DEEPSEEK.attention_matmul - 7168*(1536 + 576) + DEEPSEEK.expert_matmul)*layers
    assert wide["optimizer"] == pytest.approx(12*((own - less*3/4)/32 + theirs/2))


@pytest.mark.parametrize("dp, tp, ep", [(16, 1, 1), (16, 1, 4), (8, 2, 8), (4, 4, 2), (4, 4, 16), (12, 1, 3)])
def test_a_copy_shares_its_own_experts(dp, tp, ep):
    """Every rank counted: those of its copy that hold the same experts share them, and all copies have as many."""
    ranks = range(dp*tp)
    for copies in (k for k in range(1, dp + 1) if dp % k == 0):
        lay = Layout(batch=dp, dp=dp, tp=tp, ep=ep, shards=dp//copies)
        copy, held = (lambda r: r//(tp*dp//copies)), (lambda r: r % ep)
        share = {sum(copy(a) == copy(b) and held(a) == held(b) for b in ranks) for a in ranks}
        if dp*tp % (copies*ep) == 0:
            assert share == {lay.expert_shard_ranks}, copies
        else:
            assert share <= {0, 1} or len(share) > 1, "no number says it: a search leaves these out"
    assert Layout(batch=dp, dp=dp, tp=tp, ep=ep).expert_shard_ranks == dp*tp/ep == Layout(batch=dp, dp=dp, tp=tp, ep=ep).expert_replicas


def test_copies_of_experts_by_hand():
    """DeepSeek-V3 on 128 replicas, experts over 16: eight ranks hold the same, four of them in each of two copies."""
    parts = {z: foot(replace(SPARSE, ep=16, shards=64, zero=z), DEEPSEEK).instants[2].parts for z in range(4)}
    layers = math.ceil(61/4)
    own = layers*(DEEPSEEK.attention_matmul + DEEPSEEK.expert_matmul + 256*7168 + 256 + DEEPSEEK.layer_small)
    theirs = layers*256*DEEPSEEK.expert_matmul/16
    assert parts[0]["optimizer"] == pytest.approx(12*(own + theirs)) and parts[1]["optimizer"] == pytest.approx(12*(own/64 + theirs/4))
    assert parts[2]["grads"] == pytest.approx(2*(own/64 + theirs/4)) == pytest.approx(parts[3]["weights"])
    assert parts[1]["weights"] == pytest.approx(2*(own + theirs))


def test_more_copies_never_need_less():
    for shape, ep in (DEEPSEEK, 8), (model("mixtral-8x7b"), 4), (LLAMA, 1):
        for zero in 1, 2, 3:
            totals = [memory(shape, MACHINE, Layout(batch=512, dp=512, ep=ep, zero=zero, shards=512//copies), 4096).total
                      for copies in (1, 2, 4, 8, 16, 32, 64)]
            assert totals == sorted(totals) and totals[0] < totals[-1]
            whole = memory(shape, MACHINE, Layout(batch=512, dp=512, ep=ep, zero=zero), 4096)
            assert totals[0] == whole.total


@pytest.mark.parametrize("stage, replicas", [(1, 1), (2, 1), (3, 1), (3, 2), (3, 4)])
def test_ranks_that_keep_copies_hold_what_the_equation_says(stage, replicas):
    """Eight simulated ranks in copies, after an update: masters and moments, and weights, of the small model to the byte."""
    w, P = tiny.weights(), 8
    units, S = sharding.units(w), P//replicas
    batch = tiny.data(sequences=24, length=4)
    plan = sharding.step(stage, units, 3)
    parts, samples = [sharding.shard(w, r % S, S) for r in range(P)], [data.shard(batch, r, P) for r in range(P)]
    did = spmd.run(lambda comm, part, mine: sharding.train(comm, part, units, mine, plan, 2, replicas=replicas, weight=np.float16, grad=np.float32),
              parts, spmd.Each(samples), link=spmd.Link())
    psi = sum(sharding.length(shapes) for shapes in units.values())
    held = [h for _, event, h in did.results[1]["trace"] if event.what == "update"][-1]
    lay = Layout(batch=24, dp=P, zero=stage, shards=S)
    assert sum(held.values()) == model_state_bytes(psi, 2, 0, 24, lay.weight_ranks, lay.grad_ranks, lay.optimizer_ranks)


def test_which_axis_divides_what():
    base = foot(LAYOUT)
    half = foot(replace(LAYOUT, dp=8, cp=2))
    assert half.activations == pytest.approx(base.activations/2) and half.optimizer == pytest.approx(base.optimizer)
    assert foot(replace(LAYOUT, dp=32, tp=4)).activations == pytest.approx(2*base.activations)
    assert foot(replace(LAYOUT, sequence_parallel=False)).activations > base.activations
    assert foot(replace(LAYOUT, microbatch=2)).activations == pytest.approx(2*base.activations)
    assert foot(replace(LAYOUT, dp=8, pp=8)).activations == pytest.approx(base.activations), "a pipeline does not divide it"
    assert foot(replace(LAYOUT, batch=16*2)).activations == pytest.approx(base.activations/2), "two micro-batches, not four"
    assert foot(replace(LAYOUT, recompute=1)).activations < base.activations/10


@pytest.mark.parametrize("p", [1, 2, 3, 4, 8])
@pytest.mark.parametrize("v", [1, 2, 3, 4])
def test_in_flight_is_what_the_schedule_has_in_flight(p, v):
    for m in (p, 2*p, 4*p):
        if v > 1 and p == 1:
            continue
        schedule = one_f_one_b(p, m) if v == 1 else interleaved(p, m, v)
        for device, order in enumerate(schedule.slots):
            steps = [{"F": 1, "B": -1}[op.kind] for slot in order for op in slot]
            most = max(accumulate(steps))
            first = steps.index(-1)
            assert sum(steps[:first]) == most, "when the first backward pass begins"
            assert most == (one_f_one_b_activations(p, m, device) if v == 1 else in_flight_chunks(m, p, v, device))


@pytest.mark.parametrize("schedule, make, chunks", [(1, zb_h1, 1), (2, zb_h2, 1), (3, zb_v, 2)])
def test_where_weight_gradients_wait_activations_do(schedule, make, chunks):
    """On every stage as many as the clock counts; recomputing layers frees nothing on the last, and cheap outputs are freed as ever."""
    for p, m in ((2, 8), (4, 7), (8, 32)):
        lay = Layout(batch=m*512//8//p, dp=512//8//p, tp=8, pp=p, chunks=chunks, schedule=schedule)
        f = foot(lay)
        one = 80//p*per_token(LLAMA)*8192
        held = simulate(make(p, m)).peak_activations
        each = {i.stage: i.parts["activations"] for i in f.instants}
        alone = foot(replace(lay, pp=1, dp=lay.dp*p, schedule=0, chunks=1, batch=lay.dp*p)).activations/80*(80//p)
        assert [each[s] for s in range(p)] == pytest.approx([h*alone for h in held], rel=1e-12) and alone < one
        assert foot(replace(lay, recompute=1)).activations >= f.activations > foot(replace(lay, cheap_recompute=1)).activations
        pending = [max(accumulate({"I": 1, "W": -1}.get(op.kind, 0) for slot in order for op in slot))/chunks for order in make(p, m).slots]
        assert max(held) - max(pending) <= 1/2, "on some device nearly all of them wait for W"


def test_a_folded_pipeline_ends_where_it_began():
    lay, llama = replace(LAYOUT, chunks=2), model("llama3-8b")
    looped, folded = (foot(replace(lay, schedule=k), llama) for k in (0, 3))
    ends = {k: {i.stage for i in f.instants if i.parts["head"]} for k, f in ((0, looped), (3, folded))}
    assert ends == {0: {3}, 3: {0}}
    weights = [{i.stage: i.parts["weights"] for i in f.instants} for f in (looped, folded)]
    norm = 2*llama.hidden
    end = 2*llama.vocab*llama.hidden/8
    assert weights[0][0] - weights[0][1] == pytest.approx(end) == weights[0][3] - weights[0][1] - norm
    assert weights[1][0] - weights[1][1] == pytest.approx(2*end + norm) and weights[1][1] == weights[1][3] == weights[0][1]
    tied = [foot(replace(lay, schedule=k), replace(llama, tied=1)).instants for k in (0, 3)]
    assert [i.parts["weights"] for i in tied[1] if i.stage == 0][0] - weights[1][1] == pytest.approx(end + norm), "one matrix, not two"
    assert folded.worst.stage == 0 and folded.worst.name == "the head"


def test_a_recomputed_layer_and_the_logits_do_not_meet():
    m, lay = model("llama3-8b"), Layout(batch=8, dp=8, zero=3, recompute=1)
    f = foot(lay, m, machine=cluster("dgx-h100", 8))
    layer, head = f.instants
    inputs = 32*2*8192*4096
    assert head.parts["activations"] == inputs and layer.parts["head"] == 0
    assert layer.parts["activations"] == inputs + 8192*per_token(m)
    half = foot(replace(lay, recompute=0.5), m, machine=cluster("dgx-h100", 8)).instants[0].parts["activations"]
    assert half == pytest.approx(inputs/2 + 32*8192*per_token(m)/2 + 8192*per_token(m)/2)
    kept = foot(replace(lay, recompute=0), m, machine=cluster("dgx-h100", 8))
    assert [i.name for i in kept.instants] == ["the head"], "nothing else can be more"


def test_whole_weights_by_hand():
    """FSDP: two layers in 16 bits, one end, and the larger gradient, on top of a shard of everything."""
    m = LLAMA
    f = foot(Layout(batch=64, dp=64, zero=3), policy="fsdp", machine=cluster("dgx-h100", 64))
    layer, end = m.attention_matmul + m.ffn_matmul + m.layer_small, m.vocab*m.hidden
    assert f.gathered == 2*(2*layer + end) + 4*max(layer, end) == gathered_bytes(layer, end, 2, 4)
    assert f.weights + f.grads + f.optimizer == pytest.approx(16*m.params/64)
    assert foot(Layout(batch=64, dp=64, zero=3), policy="fsdp", machine=cluster("dgx-h100", 64), units=3).gathered - f.gathered == 2*layer
    assert foot(Layout(batch=64, dp=64, zero=2), policy="fsdp", machine=cluster("dgx-h100", 64)).gathered == 4*max(layer, end)
    e = DEEPSEEK.experts
    sparse = foot(Layout(batch=512, dp=512, ep=64, zero=3), DEEPSEEK).gathered
    layer = DEEPSEEK.attention_matmul + DEEPSEEK.layer_small + e.count*(7168 + 1) + (1 + 256/64)*DEEPSEEK.expert_matmul
    assert sparse == pytest.approx(2*(2*layer + 129280*7168) + 2*max(layer, 129280*7168))


def test_buffers_by_hand():
    """DDP keeps 2 bytes of each gradient at every instant; a unit's copies are those of the larger of a layer and an end."""
    one, alone, shape = cluster("dgx-h100", 8), Layout(batch=8, dp=8, zero=0), model("llama3-8b")
    plain, ddp = (foot(alone, shape, machine=one, buffers=b) for b in ("none", "ddp"))
    assert plain.buffers == 0 and ddp.buffers == 2*shape.params == ddp.total - plain.total
    assert [i.parts["buffers"] for i in ddp.instants] == [2*shape.params]
    passing = foot(alone, shape, machine=one, buffers="passing")
    end, layer = shape.vocab*shape.hidden, shape.attention_matmul + shape.ffn_matmul + shape.layer_small
    assert passing.total == plain.total and passing.worst.name == "the head" and end > layer
    assert {i.name: i.parts["buffers"] for i in passing.instants} == {"the last layer": 2*end, "the head": 0}
    shards = foot(Layout(batch=8, dp=8, zero=3), shape, machine=one, policy="fsdp", buffers="fsdp")
    assert {i.name: i.parts["buffers"] for i in shards.instants} == {"the last layer": 6*end, "the head": 2*end}
    wide = replace(shape, vocab=1000)
    got = foot(Layout(batch=8, dp=8, zero=3), wide, machine=one, policy="fsdp", buffers="fsdp")
    assert got.instants[0].parts["buffers"] == 6*layer and got.worst.name == "the last layer"
    own = Buffers(name="own", kept=3, gather=5, scatter=7)
    both = foot(Layout(batch=8, dp=4, tp=2, zero=2), shape, machine=one, buffers=own)
    kept = foot(Layout(batch=8, dp=4, tp=2, zero=2), shape, machine=one, policy=Policy(name="g", weight=0, grad=1, optimizer=0)).grads
    assert {i.name: i.parts["buffers"] for i in both.instants} == {"the last layer": 3*kept + 12*end/2, "the head": 3*kept + 5*end/2}
    e = DEEPSEEK.experts
    unit = DEEPSEEK.attention_matmul + DEEPSEEK.layer_small + e.count*(7168 + 1) + (1 + 256/64)*DEEPSEEK.expert_matmul
    sparse = foot(Layout(batch=512, dp=512, ep=64, zero=3), replace(DEEPSEEK, vocab=1000), buffers="fsdp")
    assert sparse.instants[-1].parts["buffers"] == pytest.approx(2*unit)
    with pytest.raises(ValueError, match="unknown buffers 'dpd'"):
        foot(buffers="dpd")
    with pytest.raises(ValueError, match="kept = -1; allowed: at least 0"):
        Buffers(name="less", kept=-1)
    assert set(buffers()) == {"none", "ddp", "passing", "fsdp"}


def test_kernels_of_the_ledger():
    rows = {r.name: r.bytes for r in activation_table(model("llama3-8b"), kernels="ledger")}
    assert rows["norm statistics"] == 2 and rows["log-sum-exp"] == 4*32
    alone = cluster("dgx-h100", 1), Layout(batch=1, zero=0)
    heads = [memory(model("llama3-8b"), *alone, 8192, kernels=k).head for k in ("textbook", "ledger")]
    assert heads[1] - heads[0] == 8192*(20 - 2)
    latent = {r.name: r.bytes for r in activation_table(DEEPSEEK, kernels="ledger")}
    assert latent["bottlenecks' norm statistics"] == 4


def test_scores_and_bytes_per_element():
    plain = foot(kernels="34 bytes")
    assert plain.activations == pytest.approx(80*8192*8192*34/8) and plain.head == 0
    assert foot(replace(LAYOUT, scores=1), kernels="34 bytes").activations - plain.activations == pytest.approx(80*5*8192*8192*64/8)
    assert foot(replace(LAYOUT, scores=1)).activations - foot().activations == pytest.approx(80*5*8192*8192*64/8)
    only = foot(Layout(batch=512, dp=512), kernels="34 bytes")
    assert only.head == logit_bytes(8192, 128256, per_logit=6) == 6*8192*128256
    assert logit_bytes(8192, 128256, 8) == 10*8192*128256/8


def test_a_stage_of_dense_layers_among_experts():
    """DeepSeek-V3 on 32 stages of two layers: the first has no experts, the second one layer with them, the third two."""
    lay = Layout(batch=64, dp=2, tp=8, pp=32, ep=16, sequence_parallel=True)
    f = foot(lay, DEEPSEEK, kernels="megatron")
    h, y = 7168, 8192
    parts = {i.stage: i.parts for i in f.instants if i.name == "the last layer"}
    copies = padded_copies(y/8, 8, 256)
    assert copies == 8 and parts[0]["working"] == y*2*(h/8 + 2*18432/8)
    assert parts[1]["working"] == parts[2]["working"] == y*2*h*(4*8 + 2)/8
    attention = 7168*(1536 + 576) + (1536*128*192 + 512*128*256 + 128*128*7168)/8
    dense, expert = 3*h*18432/8, 3*h*2048
    assert parts[0]["placeholders"] == 2*(attention + dense)
    assert parts[1]["placeholders"] == 2*(attention + dense + expert*(1 + 1/8)), "an eighth of the shared expert is a shape of its own"
    assert parts[2]["placeholders"] == 2*(attention + expert*(1 + 1/8))
    assert [parts[i]["workspace"]/MiB for i in (0, 1, 2)] == [32, 160, 160]
    keeps = {sparse: y*sum(s.on(lay) for s in activation_table(DEEPSEEK, kernels="megatron", sparse=sparse)) for sparse in (False, True)}
    for i, (dense, sparse) in enumerate([(2, 0), (1, 1), (0, 2)]):
        assert parts[i]["activations"] == pytest.approx((32 - i)*(dense*keeps[False] + sparse*keeps[True]))
    short = foot(replace(lay, batch=2*30), DEEPSEEK, seq_len=328, kernels="megatron")
    assert padded_copies(41, 8, 256) == 2*256/41 and short.working == 328*2*h*(4*512/41 + 2)/8, "41 tokens a rank, two to an expert"


def test_interleaved_pieces_with_experts():
    """Two stages of two pieces of two layers, the first layer dense."""
    shape = replace(DEEPSEEK, layers=8, experts=replace(DEEPSEEK.experts, dense=1))
    f = memory(shape, cluster("dgx-h100", 8).sized(2), Layout(batch=4, pp=2, chunks=2), 128)
    parts = {i.stage: i.parts for i in f.instants}
    token = {sparse: per_token(shape, sparse=sparse) for sparse in (False, True)}
    assert parts[0]["activations"] == pytest.approx(5/2*128*(token[False] + 3*token[True])), "five of four pieces a micro-batch"
    assert parts[1]["activations"] == pytest.approx(3/2*128*4*token[True])
    assert parts[0]["weights"] + parts[1]["weights"] == 2*shape.params


# --- what is made again

def instants(layout=LAYOUT, shape=LLAMA, **kw):
    """{(stage, instant): bytes of activations}."""
    return {(i.stage, i.name): i.parts["activations"] for i in foot(layout, shape, **kw).instants}


@pytest.mark.parametrize("name", kernels())
def test_scores_are_kept_where_attention_is_not_done_again(name):
    """Four micro-batches in flight on twenty layers; of what is made again, one layer's scores live at a time."""
    scores, first, head = 5*8192*8192*64/8, (0, "the last layer"), (3, "the head")
    fused = instants(kernels=name)
    for again in 0, 0.25, 1:
        got = instants(replace(LAYOUT, scores=1, attention_recompute=again), kernels=name)
        assert got[first] - fused[first] == pytest.approx((4*20*(1 - again) + again)*scores)
        assert got[head] - fused[head] == pytest.approx(20*(1 - again)*scores)
    half = instants(replace(LAYOUT, scores=0.5, attention_recompute=0.5), kernels=name)
    assert half[first] - fused[first] == pytest.approx((4*20 + 1)*scores/4)
    whole = replace(LAYOUT, scores=1, recompute=1)
    assert instants(whole, kernels=name) == instants(replace(whole, attention_recompute=1), kernels=name)


@pytest.mark.parametrize("name", kernels())
@pytest.mark.parametrize("layout, shape", [(LAYOUT, LLAMA), (replace(LAYOUT, recompute=0.5, cheap_recompute=0.5), LLAMA), (SPARSE, DEEPSEEK)])
def test_a_fused_kernel_that_runs_again_frees_nothing(name, layout, shape):
    """Its output is the next product's input, and is kept all the same."""
    plain = foot(layout, shape, kernels=name)
    for again in 0.5, 0.75, 1:
        got = foot(replace(layout, attention_recompute=again), shape, kernels=name)
        assert got.parts == plain.parts and got.stages == plain.stages


def test_a_layer_without_its_attention_keeps_the_outputs_of_the_heads():
    first, head = (0, "the last layer"), (3, "the head")
    for name, outputs in ("textbook", 2*8192 + 4*64), ("34 bytes", 2*8192):
        whole = replace(LAYOUT, recompute=1)
        plain, kept = instants(whole, kernels=name), instants(replace(whole, attention_recompute=0.25), kernels=name)
        assert kept[head] - plain[head] == pytest.approx(20*0.75*8192*outputs/8), name
        assert kept[first] - plain[first] == pytest.approx((4*20 - 1)*0.75*8192*outputs/8), "not made again in the last layer"
    stored = replace(LAYOUT, recompute=1, scores=1)
    more = instants(replace(stored, attention_recompute=0))[head] - instants(stored)[head]
    assert more == pytest.approx(20*8192*(2*8192 + 4*64 + 5*8192*64)/8), "and the scores"
    cut = replace(LAYOUT, dp=8, cp=2, recompute=1)
    more = instants(replace(cut, attention_recompute=0), kernels="megatron")[head] - instants(cut, kernels="megatron")[head]
    assert more == pytest.approx(20*4096*(4*8192 + 4*64)/8), "exchanged heads twice"


def test_which_tensors_are_cheap_to_make_again():
    cheap = lambda shape, **kw: [(s.name, s.bytes, s.shared) for s in activation_table(shape, **kw) if s.cheap]
    norm, f = ("norm output", 2*8192, "sequence"), 28672
    assert cheap(LLAMA) == [norm, norm, ("out of the non-linearity", 2*f, "tensor")] == cheap(LLAMA, kernels="ledger")
    assert cheap(LLAMA, kernels="eager") == [norm, norm, ("gate behind its function", 2*f, "tensor"), ("out of the non-linearity", 2*f, "tensor")]
    assert cheap(DEEPSEEK, sparse=True) == [
        ("norm output", 2*7168, "sequence"), ("query bottleneck, normed", 2*1536, "sequence"),
        ("key-value bottleneck, normed", 2*512, "sequence"), ("norm output", 2*7168, "sequence"),
        ("copies, out of the non-linearity", 2*8*2048, "sequence"), ("shared experts, out of the non-linearity", 2*2048, "tensor")]
    for key, share in ("llama3-8b", 11/34.03), ("llama3-70b", 11/33.53), ("llama3-405b", 0.33):
        assert sum(b for _, b, _ in cheap(model(key)))/per_token(model(key)) == pytest.approx(share, rel=0.01)


def test_twelve_of_34_bytes_are_cheap():
    """Of the layer with dropout two norms' outputs, which are not cut, and the GeLU's, which is; and the heads' outputs."""
    table = activation_table(model("gpt3-175b"), kernels="dropout")
    known = kernels()["34 bytes"]
    for lay in LAYOUT, replace(LAYOUT, sequence_parallel=False):
        for (replicated, sharded), mine in ((known.cheap, lambda s: s.cheap), (known.outputs, lambda s: s.name == "head outputs")):
            assert sum(s.on(lay) for s in table if mine(s)) == activation_bytes_per_layer(
                1, 12288, 8, lay.seq_ranks, replicated=replicated, sharded=sharded) > 0
    assert sum(known.cheap) == 12 and sum(known.per_element) == 34
    own, lay = Kernels(name="own", per_element=(3, 5)), replace(LAYOUT, recompute=0.5)
    assert foot(replace(lay, cheap_recompute=1, attention_recompute=0), kernels=own).parts == foot(lay, kernels=own).parts, "none named"


@pytest.mark.parametrize("name", kernels())
def test_cheap_tensors_by_hand(name):
    first, head = (0, "the last layer"), (3, "the head")
    token = {"34 bytes": 12*8192, "eager": 4*8192 + 4*28672}.get(name, 4*8192 + 2*28672)
    plain = instants(kernels=name)
    for cheap in 0.25, 1:
        got = instants(replace(LAYOUT, cheap_recompute=cheap), kernels=name)
        assert plain[head] - got[head] == pytest.approx(20*cheap*8192*token/8)
        assert plain[first] - got[first] == pytest.approx((4*20 - 1)*cheap*8192*token/8), "one layer has them back"
    some = [instants(replace(LAYOUT, recompute=0.25, cheap_recompute=c), kernels=name) for c in (0, 1)]
    assert some[0][head] - some[1][head] == pytest.approx(20*0.75*8192*token/8), "of the layers that are not run again"
    all_ = [instants(replace(LAYOUT, recompute=1, cheap_recompute=c), kernels=name) for c in (0, 1)]
    assert all_[0] == all_[1]


def test_cheap_tensors_of_experts_by_hand():
    """DeepSeek-V3 on pairs: copies' products and the norms' outputs are cut by the sequence, the shared expert by tensor ranks."""
    lay = Layout(batch=512, dp=64, tp=2, pp=4, ep=64, sequence_parallel=True)
    shape = replace(DEEPSEEK, ffn=16384)
    plain, light = (instants(replace(lay, cheap_recompute=c), shape) for c in (0, 1))
    token, sparse, dense = 2*(2*7168 + 1536 + 512)/2, 2*(8*2048 + 2048)/2, 2*16384/2
    assert plain[2, "the last layer"] - light[2, "the last layer"] == pytest.approx((2*16 - 1)*8192*(token + sparse))
    assert plain[0, "the last layer"] - light[0, "the last layer"] == pytest.approx(
        8192*(4*(16*token + 3*dense + 13*sparse) - token - sparse)), "the layer with experts has more to make again"


@pytest.mark.parametrize("shape, lay", [(LLAMA, LAYOUT), (DEEPSEEK, SPARSE)])
@pytest.mark.parametrize("name", kernels())
def test_what_is_kept_and_what_is_made_again_are_all_there_is(shape, lay, name):
    """One layer on one stage, one micro-batch: at the last layer everything is there, and the inputs of layers that run again."""
    rng, one = np.random.default_rng(0), replace(shape, layers=1)
    if shape.experts:
        one = replace(one, ffn=2048, experts=replace(shape.experts, dense=0))
    lay = replace(lay, pp=1, dp=lay.dp*lay.pp, ep=min(lay.ep, 8), batch=lay.dp*lay.pp, scores=0.5)
    whole = {i.name: i.parts["activations"] for i in foot(replace(lay, recompute=0), one, kernels=name).instants}["the head"]
    for _ in range(10):
        share, core, cheap = rng.random(3)
        got = {i.name: i.parts["activations"] for i in foot(
            replace(lay, recompute=share, attention_recompute=core, cheap_recompute=cheap), one, kernels=name).instants}
        stored = 2*8192*one.hidden/lay.seq_ranks
        assert got["the last layer"] == pytest.approx(whole + share*stored)
        assert got["the head"] < whole + share*stored
    lean = [foot(replace(lay, cheap_recompute=c), one, kernels=name).instants[-1].parts["activations"] for c in (0, 0.5, 1)]
    assert lean[0] > lean[1] > lean[2] > foot(replace(lay, recompute=1), one, kernels=name).instants[-1].parts["activations"]


def test_a_block_that_drops_what_is_cheap_holds_what_the_table_says():
    """Blocks of the small transformer in 64 bits, executed: outputs of both norms and of the product, and no byte else."""
    layers, x, dy, _ = recompute.chain(1)
    w = tiny.block_weights(tiny.weights(8), 0)
    at = np.arange(x.shape[1])
    known = [*w.values(), at]
    held = [recompute.held(recompute.block(x, w, at, drop)[1], known=known) for drop in ((), ("norms", "product"))]
    hidden, ffn = x.shape[-1], w["up"].shape[-1]
    shape = Transformer(layers=1, hidden=hidden, heads=4, kv_heads=2, head_dim=hidden//4, ffn=ffn, vocab=8)
    cheap = sum(s.bytes for s in activation_table(shape) if s.cheap)
    assert held[0] - held[1] == x.size//hidden*cheap*8/2


# --- numbers, arrays, symbols

@pytest.mark.parametrize("dense, pp, worst", [(10, 4, 1), (17, 4, 1), (3, 32, 2), (1, 64, 1), (64, 8, 0)])
def test_the_stage_where_dense_layers_end_counts_in_arrays_too(dense, pp, worst):
    """Layers with experts keep more, earlier stages more of them: the greatest stage is the first with experts, or nearly."""
    shape = replace(DEEPSEEK, layers=64, experts=replace(DEEPSEEK.experts, dense=dense))
    lay = Layout(batch=1024, dp=512//pp, pp=pp, ep=4)
    one, same = foot(lay, shape), foot(replace(lay, pp=float(pp)), shape)
    many = foot(replace(lay, pp=np.array([pp, pp])), shape)
    assert one.total == same.total and one.worst.stage == worst and len(many.instants) <= 5 < len(one.instants) + 2
    for name in ("total", *PARTS):
        assert list(np.broadcast_to(getattr(many, name), 2)) == pytest.approx([getattr(one, name)]*2, rel=1e-12), name


CHOICES = [dict(kernels=k, zero=z) for k in ("textbook", "megatron", "34 bytes") for z in (1, 3)]


@pytest.mark.parametrize("choice", CHOICES)
@pytest.mark.parametrize("shape", [LLAMA, DEEPSEEK], ids=["dense", "sparse"])
def test_arrays_and_symbols_equal_numbers(choice, shape):
    choice = dict(choice)
    zero = choice.pop("zero")
    names = "batch", "microbatch", "dp", "tp", "pp", "cp", "ep", "chunks", "recompute", "cheap_recompute", "attention_recompute", "scores"
    points = [(512, 1, 16, 8, 4, 1, 8, 1, 0, 0, 0, 0), (512, 2, 128, 4, 1, 1, 64, 1, 0.5, 0.5, 0.25, 0), (64, 1, 2, 4, 32, 2, 1, 1, 1, 1, 0, 1),
              (512, 1, 16, 8, 4, 1, 2, 5, 0, 1, 1, 0.5), (16, 1, 8, 2, 32, 1, 4, 1, 0, 0.5, 0.5, 1)]
    if not shape.experts:
        points = [(*p[:6], 1, *p[7:]) for p in points[:-1]]
    every = foot(Layout(**dict(zip(names, np.array(points, dtype=float).T)), zero=zero, sequence_parallel=True), shape, **choice)
    symbols = sp.symbols(names, positive=True)
    algebra = foot(Layout(**dict(zip(names, symbols)), zero=zero, sequence_parallel=True), shape, **choice)
    f = sp.lambdify(symbols, [algebra.total, *algebra.parts.values()], "math", cse=True)
    for i, point in enumerate(points):
        one = foot(Layout(**dict(zip(names, point)), zero=zero, sequence_parallel=True), shape, **choice)
        for name, want, symbol in zip(("total", *PARTS), (one.total, *one.parts.values()), f(*point)):
            assert np.broadcast_to(getattr(every, name), len(points))[i] == pytest.approx(want, rel=1e-12), name
            assert symbol == pytest.approx(want, rel=1e-11), name


def test_shapes_of_symbols():
    """The whole equation in letters: a dense model on one pipeline stage."""
    L, a, f, V, S = sp.symbols("L a f V S", positive=True, integer=True)
    h = 128*a
    shape = Transformer(layers=L, hidden=h, heads=a, kv_heads=a, head_dim=128, ffn=f, vocab=V)
    got = memory(shape, cluster("dgx-h100", 8).sized(1), Layout(batch=1, zero=0), S).total
    want = 16*(L*(4*h*h + 3*h*f + 2*h) + 2*V*h + h) + L*S*(16*h + 6*f + 4*a + 8) + 10*S*V + S*(4*h + 4)
    assert sp.expand(got - want) == 0


# --- policies, names, errors

def test_policies_by_name():
    assert {name: p.total for name, p in policies().items()} == {
        "fp32": 16, "mixed": 16, "megatron": 18, "separate": 20, "fsdp": 16, "fp8": 20, "adam8": 10, "momentum": 14}
    assert {name: (p.weight, p.grad, p.optimizer, p.copy) for name, p in policies().items() if name in ("mixed", "megatron", "fsdp", "fp32")} == {
        "mixed": (2, 2, 12, 2), "megatron": (2, 4, 12, 2), "fsdp": (4, 4, 8, 2), "fp32": (4, 4, 8, 4)}
    f = foot(replace(LAYOUT, zero=0), policy=Policy(name="mine", weight=1, grad=3, optimizer=5))
    assert (f.grads, f.optimizer) == (3*f.weights, 5*f.weights)
    assert f.weights + f.grads + f.optimizer == pytest.approx(model_state_bytes(f.weights, 1, 3, 5))
    gib = 1/GiB
    korthikanti = 18*12*96*12288**2/64*gib
    assert korthikanti == 45.5625, "the parameters and optimizer state of its figure, GPT-3 on 64 devices"


def test_the_estimate_and_the_footprint_are_one():
    for kw in (dict(), dict(weight=2, grad=4, optimizer=12), dict(kernels="megatron")):
        policy = Policy(name="the same", weight=kw.get("weight", 2), grad=kw.get("grad", 2), optimizer=kw.get("optimizer", 12))
        step = estimate(LLAMA, MACHINE, LAYOUT, 8192, **kw)
        f = foot(policy=policy, kernels=kw.get("kernels", "34 bytes"))
        assert step.memory == f.total and step.footprint.parts == f.parts
        assert step.bytes == {part: n for part, n in f.parts.items() if n}


def test_errors_name_what_is_wrong():
    for arguments, word in ((("llama3-70b", MACHINE, LAYOUT, 8192), r'model = .*a Transformer, such as model\("llama3-70b"\)'),
                            ((LLAMA, "dgx-h100", LAYOUT, 8192), "cluster = 'dgx-h100'; allowed: a Cluster, such as cluster"),
                            ((LLAMA, MACHINE, 512, 8192), "layout = 512; allowed: a Layout, such as Layout")):
        with pytest.raises(TypeError, match=word):
            memory(*arguments)
    with pytest.raises(TypeError, match="device = 80; allowed: an Accelerator, such as accelerator"):
        foot().fits(80)
    for share in (0, -1, 90, float("nan")):
        with pytest.raises(ValueError, match="share = .*allowed: above 0 and at most 1"):
            foot().fits(accelerator("h100-sxm"), share)
    with pytest.raises(ValueError, match="unknown policy 'adam'; close matches: adam8"):
        foot(policy="adam")
    with pytest.raises(ValueError, match="unknown kernels 'megatro'; close matches: megatron"):
        foot(kernels="megatro")
    with pytest.raises(ValueError, match="seq_len = 0.5; allowed: at least 1"):
        foot(seq_len=0.5)
    assert foot(seq_len=1).activations > 0
    with pytest.raises(ValueError, match="is 256, and the cluster has 512 devices"):
        foot(replace(LAYOUT, dp=8))
    with pytest.raises(ValueError, match="sparse = True, and Llama 3 70B has no experts"):
        activation_table(LLAMA, sparse=True)
    with pytest.raises(ValueError, match="kernels = '34 bytes' are bytes per element"):
        activation_table(LLAMA, kernels="34 bytes")
    with pytest.raises(TypeError, match="model = 'llama3-8b'"):
        activation_table("llama3-8b")
    with pytest.raises(ValueError, match="grad = -1"):
        Policy(name="no", weight=2, grad=-1, optimizer=0)
    for facts in policies(), kernels(), foot().parts, foot().worst.parts:
        with pytest.raises(TypeError, match="a fact cannot be changed"):
            facts["weights"] = 0
    assert Policy(name="nothing", weight=0, grad=0, optimizer=0, copy=0).total == 0
    plain = foot(SPARSE, DEEPSEEK, kernels=Kernels(name="mine", workspace=5))
    assert plain.workspace == 5 and foot(kernels=Kernels(name="mine")).workspace == 0, "no streams, no other workspaces, unless named"
    assert all(i.parts["workspace"] == 5 for i in plain.instants)
    assert type(activation_table(LLAMA)) is tuple and per_token(LLAMA, kernels="megatron") == per_token(LLAMA, kernels="megatron", cp=1)
    assert isinstance(activation_table(LLAMA)[0], Saved) and foot(kernels=Kernels(name="mine", per_logit=0)).head == 0


# --- the world: 19 peaks that others measured

RUNS = tuple(run for run in memory_runs() if run.key == run.row["memory_of"])
HELD_OUT = np.array([run.row["held_out"] == "y" for run in RUNS])


def predict(run, **changes):
    return memory(run.model, run.cluster, run.layout, run.seq_len, policy="megatron",
                  kernels=replace(kernels()["megatron"], **changes))


def errors(prediction):
    return np.array([prediction(run)/run.allocated - 1 for run in RUNS])


def test_the_runs_are_what_their_table_says():
    every, measured = memory_runs(), {r.key: r for r in RUNS}
    assert (len(every), len(RUNS), HELD_OUT.sum()) == (43, 19, 10)
    for r in every:
        of = measured[r.row["memory_of"]]
        assert (r.allocated, r.least, r.reserved, r.model) == (of.allocated, of.least, of.reserved, of.model), "copied"
        assert (r.row["held_out"], r.row["simumax_mib"]) == (of.row["held_out"], of.row["simumax_mib"])
        assert of.layout.microbatches == 4 <= r.layout.microbatches and r.row["held_out"] in "yn"
    assert sum(r.row["held_out"] == "n" for r in every) == 21
    for r in every:
        assert r.layout.check(r.model, r.cluster) == () and r.least <= r.allocated < r.reserved < r.cluster.device.memory*1.01
        assert r.model.vocab % (128*r.layout.tp) == 0 and r.layout.microbatches == int(r.row["microbatches"])
        assert r.layout.devices == r.cluster.devices == 8 and r.source == "simumax2026"
        assert r.allocated == float(r.row["peak_allocated_mib_max"])*MiB and r.seconds == pytest.approx(float(r.row["step_ms"])/1000)
    big = next(r for r in RUNS if "405b" in r.key and r.layout.tp == 2).model
    assert (big.kv_heads, model("llama3-405b").kv_heads) == (16, 8), "the launch script's, not the model's"
    assert big.layers == 4 and big.vocab == 128512 and next(r for r in RUNS if "v3" in r.key).model.experts.dense == 1


def test_every_peak_is_within_three_percent_and_all_within_one_on_average():
    """The bounds were stated before; what came out is far inside them, on the ten that nobody had looked at too."""
    error = errors(lambda run: predict(run).total)
    assert abs(error).mean() < 0.01 and abs(error).max() < 0.03
    seen, held_out = abs(error[~HELD_OUT]), abs(error[HELD_OUT])
    assert seen.mean() < 0.0006 and seen.max() < 0.0025
    assert held_out.mean() < 0.0013 and held_out.max() < 0.005
    assert (error < 0).all(), "a little is missing everywhere"


def test_the_simulator_of_the_source_is_farther_away():
    theirs = abs(errors(lambda run: float(run.row["simumax_mib"])*MiB))
    ours = abs(errors(lambda run: predict(run).total))
    assert theirs.mean() > 0.004 > 4*ours.mean() and theirs.max() > 0.013 and theirs.max() < 0.03


def test_the_other_stage_is_right_too():
    """Of two stages the table prints the greater peak and the smaller: one for each, to half a percent."""
    for run in RUNS:
        stages = predict(run).stages
        if run.layout.pp == 2:
            assert min(stages.values()) == pytest.approx(run.least, rel=0.005)
            assert (max(stages, key=stages.get) == 0) == ("70b" in run.key), "the first of Llama, the last of DeepSeek"


def test_rivals_fail():
    """Who says less is wrong by more: four rivals that a band of 3 % refuses."""
    def naive(run):                                              # 18 bytes a parameter, and 34 bytes per element of a layer
        lay, m = run.layout, run.model
        y = run.seq_len/lay.cp
        return m.params/(lay.tp*lay.pp)*(6 + 12/lay.replicas) + m.layers*activation_bytes_per_layer(y, m.hidden, lay.tp, lay.seq_ranks)

    def state(run):
        f = predict(run)
        return f.weights + f.grads + f.optimizer

    ratio = np.array([run.allocated/state(run) for run in RUNS])
    rivals = {"18 bytes and 34": errors(naive), "a constant times the state": np.median(ratio)/ratio - 1,
              "textbook": errors(lambda r: memory(r.model, r.cluster, r.layout, r.seq_len, policy="megatron").total),
              "16 bytes": errors(lambda r: memory(r.model, r.cluster, r.layout, r.seq_len, kernels="megatron").total)}
    for name, error in rivals.items():
        assert abs(error).max() > 0.03 and abs(error).mean() > 0.01, (name, error)


@pytest.mark.parametrize("change, least", [(dict(placeholders=False), 0.05), (dict(working=False), 0.005), (dict(workspace=0, streams=0), 0.002),
                                           (dict(exchange=False), 0.015), (dict(per_logit=6), 0.02)])
def test_every_term_is_needed(change, least):
    """Without it some row is wrong by more than with it."""
    whole, without = (abs(errors(lambda run: predict(run, **c).total)) for c in ({}, change))
    assert without.max() > max(least, 1.5*whole.max())


SMALL = dict(working=False), dict(workspace=0, streams=0, head_workspace=0), dict(exchange=False), dict(router=4), dict(capacity=None)


@pytest.mark.parametrize("change, inside", [*((c, True) for c in SMALL), ({k: v for c in SMALL for k, v in c.items()}, False),
                                            (dict(placeholders=False), False), (dict(per_logit=4), False), (dict(per_logit=10), False)])
def test_what_the_band_tests(change, inside):
    """Placeholders and bytes a logit it tests one by one, the five small terms only together."""
    error = abs(errors(lambda run: predict(run, **change).total))
    assert (error.mean() < 0.01 and error.max() < 0.03) == inside


def test_every_mebibyte_of_one_row():
    """12 layers of Llama 3 70B on two stages, worked out on paper: bytes of rank 0."""
    f = predict(RUNS[0])
    h, f_, y, V = 8192, 28672, 4096, 128384
    layer = h*(8192 + 2*1024) + 8192*h + 3*h*f_
    params = 6*(layer + 2*h) + V*h
    token = 2*h + 2*h + 4 + 2*8192 + 2*2*1024 + 2*8192 + 4*64 + 2*h + 2*h + 4 + 2*2*f_ + 2*f_
    assert f.worst.stage == 0 and f.worst.name == "the last layer"
    assert f.parts == dict(weights=2*params, grads=4*params, optimizer=12*params/4, gathered=0, activations=2*6*y*token, head=0,
                           working=y*(2*h + 4*f_), placeholders=2*layer, workspace=32*MiB, buffers=0)
    assert f.total/MiB == pytest.approx(68149.2, rel=2e-4)


def test_what_a_library_adds_by_hand():
    """DeepSeek-V2 on two stages, the last: experts' buffers, tensors for gradients, workspaces."""
    run = next(r for r in RUNS if "v2" in r.key and r.layout.pp == 2)
    f = predict(run)
    assert f.worst.stage == 1 and f.worst.name == "the last layer"
    copies = padded_copies(4096, 6, 160)
    assert copies == 154*160/4096
    h, attention = 5120, 5120*(1536 + 576) + 1536*128*192 + 512*128*256 + 128*128*5120
    assert f.working == 4096*2*h*(4*copies + 2)
    assert f.placeholders == 2*(attention + 3*h*1536 + 3*h*3072 + 102528*h)
    assert f.workspace == 5*32*MiB + 2*(8*MiB + 128*1024)
    assert routed_working_bytes(4096, h, 6, seq_ranks=4) == 1024*2*h*26
    v3 = predict(next(r for r in RUNS if "v3" in r.key))
    h, attention = 7168, 7168*(1536 + 576) + 1536*128*192 + 512*128*256 + 128*128*7168
    assert v3.placeholders == 2*(attention + 3*h*18432 + 3*h*2048 + 129408*h), "one shared expert has the shape of a routed one"
    shared = predict(next(r for r in RUNS if "405b" in r.key and "tp8" in r.key))
    assert shared.worst.name == "the head" and shared.workspace == 32*MiB + 2*(8*MiB + 128*1024) + 2*4096*16384
    assert shared.working == 2*4096*16384, "the gradient of the head's input, of the whole sequence"


# --- torchtitan's readings: reserved bytes, which bound the equation from above

TITAN = list(csv.DictReader((specs.HERE/"torchtitan_memory.csv").read_text().splitlines()))
PREDICTED = [r for r in TITAN if r["model"] and r["recomputation"]]


def titan(r, amended=True, **kw):
    """The Footprint of a row; amended: compiled blocks and losses keep only what a derivative reads."""
    m, (devices, dp, tp, pp, cp, seq_len, batch) = model(r["model"]), (
        int(r[k]) for k in ("devices", "dp", "tp", "pp", "cp", "seq_len", "local_batch"))
    compiled = amended and r["compile"] == "y"
    h, q, kv, f, whole = m.hidden, m.query_width, m.kv_width, m.ffn, per_token(m)
    kept = 2*(h + q + kv + f + q + (not compiled)*h) + 4*m.heads
    lay = Layout(batch=batch*dp, microbatch=batch//pp, dp=dp, tp=tp, pp=pp, cp=cp, zero=3, sequence_parallel=tp > 1,
                 chunks=1 + r["schedule"].startswith("Interleaved"),
                 recompute=1 if r["recomputation"] == "full" else (whole - kept)/(whole - 2*h))
    fsdp = policies()["fsdp"]
    kw = dict(policy=replace(fsdp, copy=6) if pp > 1 else fsdp, units=-(-m.layers//pp) if pp > 1 else 2,
              kernels=replace(kernels()["textbook"], per_logit=4) if compiled and r["accelerator"] == "h200" else "textbook") | kw
    return memory(m, cluster("dgx-h100", devices), lay, seq_len, **kw)


def test_torchtitan_rows_are_whole():
    pages = [r["doc"].rsplit("/", 1)[-1].split("_")[0].split(".")[0] for r in TITAN]
    assert {p: pages.count(p) for p in pages} == {"llama3": 18, "llama3-8b": 2, "mxfp8": 4, "nvfp4": 6}
    assert len({r["row"] for r in TITAN}) == 30 and len(PREDICTED) == 20
    for r in PREDICTED:
        assert int(r["dp"])*int(r["tp"])*int(r["pp"])*int(r["cp"]) == int(r["devices"]) and r["quantity"] == "max_reserved", r["row"]


def test_torchtitan_readings_bound_the_equation():
    """As first stated it exceeds the two whose loss is compiled; amended it is below all, and what makes it so is needed."""
    read = np.array([float(r["reading"])*GiB for r in PREDICTED])
    over = lambda **kw: [r["row"] for r, x in zip(PREDICTED, read) if titan(r, **kw).total > x]
    assert over(amended=False) == ["t19", "t20"] == over(kernels="textbook") and over() == []
    assert len(over(kernels="eager", policy="fp32", units=100)) > 5, "the bound can fail"


def test_torchtitan_beside_null_models():
    """Each row by the best constant of the others; and 8 against 128 devices without any constant."""
    read = np.array([float(r["reading"])*GiB for r in PREDICTED])
    feet = [titan(r) for r in PREDICTED]

    def left_out(x):
        ratio = np.log(read/x)
        return np.mean([abs(np.exp(np.delete(ratio, i).mean() - ratio[i]) - 1) for i in range(len(x))])

    total, state = (np.array(x) for x in ([f.total for f in feet], [f.weights + f.grads + f.optimizer for f in feet]))
    assert left_out(total) < 0.08 < 0.14 < left_out(read**0) < 0.16 and left_out(state) > 0.7
    for i in range(3):
        assert (total[i] - total[i + 7])/GiB == pytest.approx(14.02, abs=0.01) and 14.9 < (read[i] - read[i + 7])/GiB < 15.5


def test_readings_of_nanotron_and_bloom_are_whole():
    nano, bloom = ([*csv.DictReader((specs.HERE/f"{n}_memory.csv").open(encoding="utf-8"))] for n in ("nanotron", "bloom"))
    runs = {r["row_id"]: r for r in published_rows()}
    assert len(nano) == len({r["row"] for r in nano}) == 26 and len(bloom) == len({r["row_id"] for r in bloom}) == 46
    for r in nano:
        assert int(r["dp"])*int(r["tp"])*int(r["pp"]) == int(r["devices"]), r["row"]
        assert int(r["dp"])*int(r["microbatch"])*int(r["microbatches"]) == 256, "a million tokens"
    assert all(runs[r["row_id"]]["source"] == "bigscience-bloom" for r in bloom)
    noted = {(r["p_mfu_pct"], r["notes"].rpartition(" ")[2]) for r in runs.values() if "peak memory" in r["notes"]}
    assert noted <= {(f"{float(r['mfu_pct']):g}", f"{r['memory_gb']}GB") for r in nano} and len(noted) == 16

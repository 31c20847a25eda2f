"""Every row of the quick reference is computed a second time, by a program or a search that knows no formula."""
import itertools
import math

import numpy as np
import pytest
import quick_reference as quick
from scipy.optimize import brentq

from capacity import (accelerator, dualpipe_idle, fsdp_egress, link, optimal_recompute_interval, pipeline_bubble, pipeline_egress,
                      pipeline_idle_of_ideal, recompute_overhead, ridge_point, run, sharded_egress, split_backward_time, tensor_parallel_bytes)
from capacity.grammar import REGISTRY
from capacity.witness import asynchrony, failures, schedule, streams
from capacity.witness.collectives import (halving_doubling_all_reduce, hierarchical_all_reduce, pairwise_all_to_all, ring_all_gather,
                                          ring_all_reduce, ring_reduce_scatter)
from capacity.witness.spmd import Link, two_level

WITNESS = {}


def witness(name):
    """Enters a second way to compute a formula; its relative tolerance is that of the way, not of the number."""
    def enter(function):
        WITNESS[name] = function
        return function
    return enter


def least(f, low, high, rounds=6, points=400):
    """Where f is least between low and high: a grid, refined."""
    for _ in range(rounds):
        x = np.geomspace(low, high, points)
        k = int(np.argmin([f(v) for v in x]))
        low, high = x[max(k - 1, 0)], x[min(k + 1, points - 1)]
    return (low + high)/2


def turning(holds, low, high):
    """Where a condition that is false at low and true at high begins to hold, by halving."""
    for _ in range(200):
        middle = math.sqrt(low*high)
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high


# ---- work, time, price
@witness("train_flops")
def products(params, tokens, rows=3, inner=4, outer=5):
    """y = x w, dx = dy w', dw = x' dy: each operation is one step of a loop."""
    shapes = [(rows, inner, outer), (rows, outer, inner), (inner, rows, outer)]
    done = sum(2 for a, b, c in shapes for _ in itertools.product(range(a), range(b), range(c)))
    return done/(inner*outer*rows)*params*tokens


@witness("training_time")
def worked_off(flops, P, peak, mfu):
    day, left, days = 86_400, flops, 0
    while left > P*[peak*mfu*day][0]:
        left, days = left - sum([peak*mfu*day]*P), days + 1
    return days*day + day*left/sum([peak*mfu*day]*P)


@witness("model_flops_utilization")
def rate_of_a_device(flops, P, peak, duration):
    return np.mean(np.full(P, flops/P)/duration)/peak


@witness("devices_for_memory")
def added(params, bytes_per_param, memory):
    return next(P for P in itertools.count(1) if sum([memory]*P) >= params*bytes_per_param)


@witness("training_cost")
def rented(flops, peak, mfu, price):
    bills = [P*worked_off(flops, P, peak, mfu)*price for P in (512, 1024)]
    assert bills[0] == pytest.approx(bills[1])
    return bills[0]


@witness("optimal_params")
def best_size(flops, size_coefficient, data_coefficient, size_exponent, data_exponent):
    return least(lambda n: size_coefficient*n**-size_exponent + data_coefficient*(flops/6/n)**-data_exponent, 1e8, 1e13)


@witness("steps_to_loss")
def on_the_hyperbola(batch, least_steps, critical_batch):
    """(S/S_min - 1)(E/E_min - 1) = 1 with E = S B and E_min = S_min B_crit, solved by halving."""
    def beyond(steps):
        return (steps/least_steps - 1)*(steps*batch/(least_steps*critical_batch) - 1) >= 1
    return turning(beyond, least_steps*max(1, critical_batch/batch), 1e3*least_steps*max(1, critical_batch/batch))


# ---- memory
@witness("model_state_bytes")
def arrays(params, weight, grad, optimizer, weight_ranks=1, grad_ranks=1, optimizer_ranks=1, small=6400):
    assert optimizer == 12
    whole = {"w": np.zeros(small, f"f{weight}"), "g": np.zeros(small, f"f{grad}"), "o": np.zeros((small, 3), np.float32)}
    ranks = {"w": weight_ranks, "g": grad_ranks, "o": optimizer_ranks}
    return sum(np.array_split(x, ranks[k])[0].nbytes for k, x in whole.items())/small*params


@witness("activation_bytes_per_layer")
def tensors(microbatch_tokens, hidden, tp, seq_ranks):
    """What a GeLU layer keeps in 16 bits, tensor by tensor: width in units of the hidden one, bytes, who shares it."""
    kept = [("norm in", 1, 2, seq_ranks), ("product in", 1, 2, seq_ranks), ("q", 1, 2, tp), ("k", 1, 2, tp), ("v", 1, 2, tp),
            ("attention out", 1, 2, tp), ("mask", 1, 1, seq_ranks), ("norm in", 1, 2, seq_ranks), ("product in", 1, 2, seq_ranks),
            ("gelu in", 4, 2, tp), ("gelu out", 4, 2, tp), ("mask", 1, 1, seq_ranks)]
    return sum(microbatch_tokens*hidden*width*nbytes/ranks for _, width, nbytes, ranks in kept)


@witness("optimal_recompute_interval")
def best_interval(layers, checkpoint_bytes, layer_bytes):
    return least(lambda k: layers/k*checkpoint_bytes + k*layer_bytes, 0.1, layers)


@witness("recompute_overhead")
def passes(recompute, attention_share):
    """Forward y = x w and two products with scores; backward two for each w, five for the two with scores."""
    w, a = 1 - attention_share, attention_share/2
    forward, backward = [w, a, a], [w, w, *[a]*5]
    return (sum(forward*recompute + forward + backward) - sum(forward + backward))/sum(forward + backward)


@witness("logit_bytes")
def logits(microbatch_tokens, vocab, tp=1):
    few, words = 16, 501
    made = [np.zeros((few, words), t) for t in (np.float32, np.float32, np.float16)]
    return sum(x.nbytes for x in made)/(few*words)*microbatch_tokens*(vocab/tp)


@witness("kv_token_bytes")
def cache(layers, kv_width, element_bytes):
    return sum(np.zeros(kv_width, f"f{element_bytes}").nbytes for _ in range(layers) for _ in "kv")


# ---- the network
def programmed(program, n, P, alpha, beta, *shared, link=None):
    """The run of a program on P ranks that hold P blocks each, as if all of them together were n bytes."""
    small = 8*P
    wires = link or Link(alpha, beta*small/n)
    return run(program, [[np.ones(1)]*P for _ in range(P)], *shared, link=wires), n/small


@witness("half_bandwidth_size")
def between_two(alpha, beta):
    def rate(n):
        def program(comm, x):
            comm.send(x, 1) if comm.rank == 0 else comm.recv(0)
        return n/run(program, [np.ones(1)]*2, link=Link(alpha, beta*8/n)).time
    return turning(lambda n: rate(n) >= beta/2, 1, 1e9)


@witness("ring_all_reduce_time")
def ring(n, P, alpha, beta):
    return programmed(ring_all_reduce, n, P, alpha, beta)[0].time


@witness("halving_doubling_all_reduce_time")
def halving(n, P, alpha, beta):
    return programmed(halving_doubling_all_reduce, n, P, alpha, beta)[0].time


@witness("two_level_all_reduce_time")
def nodes_first(n, node_size, nodes, alpha1, beta1, alpha2, beta2):
    P = node_size*nodes
    wires = two_level(node_size, Link(alpha1, beta1*8*P/n, name="in"), Link(alpha2, beta2*8*P/n, name="out"))
    return programmed(hierarchical_all_reduce, n, P, 0, 1, node_size, link=wires)[0].time


@witness("all_reduce_bus_bandwidth")
def sent_in_a_ring(n, P, duration):
    done, scale = programmed(ring_all_reduce, n, P, 0, 1)
    assert len(set(done.sent())) == 1
    return done.sent()[0]*scale/duration


@witness("fsdp_egress")
def two_gathers_and_a_scatter(n, P):
    gather, scale = programmed(lambda comm, blocks: ring_all_gather(comm, blocks[0]), n, P, 0, 1)
    scatter, _ = programmed(ring_reduce_scatter, n, P, 0, 1)
    return (2*gather.sent().max() + scatter.sent().max())*scale


@witness("tensor_parallel_bytes")
def four_all_reduces(microbatch_tokens, hidden, tp, element_bytes, all_reduces):
    def layer(comm, blocks):
        for _ in range(all_reduces):
            ring_all_reduce(comm, blocks)
    done, scale = programmed(layer, microbatch_tokens*hidden*element_bytes, tp, 0, 1)
    return done.sent().max()*scale


@witness("pipeline_egress")
def operations(microbatches, chunks, microbatch_tokens, hidden, element_bytes, p=4):
    plan = schedule.one_f_one_b(p, microbatches) if chunks == 1 else schedule.interleaved(p, microbatches, chunks)
    sends = sum(1 for slot in plan.orders[1] for op in schedule_ops(slot) if op.kind in "FB")
    return sends*microbatch_tokens*hidden*element_bytes


def schedule_ops(slot):
    return [slot] if isinstance(slot, schedule.Op) else list(slot)


@witness("ring_attention_bytes")
def going_round(seq_len, kv_width, P, element_bytes):
    def program(comm, _):
        block = np.zeros((2, 4, 3))                                       # keys and values of 4 tokens, 3 numbers
        for _ in range(comm.size - 1):
            block = comm.sendrecv(block, (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size, like=block)
    sent = run(program, [0]*P).sent().max()
    return sent/(8*4*3)*(seq_len/P)*kv_width*element_bytes


@witness("dispatch_bytes")
def sent_to_experts(routed_tokens, active, hidden, element_bytes, P):
    copies = 2                                                            # for each rank, of one number
    done = run(lambda comm, _: pairwise_all_to_all(comm, [np.zeros(copies)]*comm.size), [0]*P)
    return done.sent().max()/8/(copies*P)*routed_tokens*active*hidden*element_bytes


@witness("tokens_to_hide_all_reduce")
def as_long_as_the_work(P, peak, beta, grad, window, params=1e9):
    small = 16                                                            # the bytes of a ring, for 16 ranks and for 32
    last = [programmed(ring_all_reduce, params*grad, r, 0, beta)[0].time for r in (small, 2*small)]
    rest = (last[1] - last[0])/(1/small - 1/(2*small))                    # its time is linear in 1/P
    comm = last[0] + rest*(1/small - 1/P)
    return turning(lambda tokens: window*params*tokens/peak >= comm, 1, 1e9)


@witness("ridge_point")
def peak_is_reached(peak, bandwidth):
    return turning(lambda intensity: min(peak, bandwidth*intensity) >= peak, 1e-3, 1e9)


@witness("gather_break_even")
def gathered_or_summed(n, P, alpha, beta, encode):
    whole = ring(n, P, alpha, beta)

    def lost(share):
        return run(ring_all_gather, [np.ones(1)]*P, link=Link(alpha, beta*8/(share*n))).time + encode - whole
    return brentq(lost, 1e-4, 1, xtol=1e-12)


@witness("exposed_time")
def two_streams(comm, cover):
    spans = streams.simulate([streams.Task("work", "compute", cover), streams.Task("send", "network", comm)])
    return max(span.stop for span in spans.values()) - spans["work"].stop


# ---- pipelines
@witness("pipeline_bubble")
def idle_slots(pp, microbatches):
    return schedule.simulate(schedule.one_f_one_b(pp, microbatches)).idle("total")


@witness("pipeline_idle_of_ideal")
def idle_of_work(pp, microbatches, chunks):
    return schedule.simulate(schedule.interleaved(pp, microbatches, chunks)).idle("ideal")


@witness("split_backward_time")
def split(pp, microbatches, forward, input_grad, weight_grad, lag):
    plan = {1: schedule.zb_h1, 2: schedule.zb_h2}[lag]
    return schedule.simulate(plan(pp, microbatches), F=forward, I=input_grad, W=weight_grad).makespan


@witness("one_f_one_b_activations")
def held(pp, microbatches, stage):
    return schedule.simulate(schedule.one_f_one_b(pp, microbatches)).peak_activations[stage]


# ---- failures
@witness("job_failure_rate")
def first_to_fail(P, device_rate, nodes, node_rate, lives=400):
    rng = np.random.default_rng(1)
    first = [min(rng.exponential(1/device_rate, P).min(), rng.exponential(1/node_rate, nodes).min()) for _ in range(lives)]
    return 1/np.mean(first)


@witness("optimal_interval")
def best_save(checkpoint, mtbf):
    """Time per second of work that stays: segments are tried until one ends before a failure."""
    def paid(interval):
        whole = interval + checkpoint
        won = math.exp(-whole/mtbf)
        lost = mtbf - whole*won/(1 - won)                                 # mean time of a try that fails
        return (whole + (1/won - 1)*lost)/interval
    return least(paid, 10, 1e5)


@witness("training_goodput")
def many_jobs(interval, checkpoint, restart, mtbf):
    gaps = np.random.default_rng(2).exponential(mtbf, (400, 400))
    return failures.jobs(gaps, interval, checkpoint, restart).mean()


# ---- inference
@witness("decode_step_time")
def reads_and_products(params, weight, decoded, cached, kv_token, tp, bandwidth, peak):
    reading = params*weight/tp/bandwidth
    working = sum(2*params/tp/peak for _ in range(decoded))
    return max(reading, working) + sum(cached*kv_token/tp/bandwidth for _ in range(decoded))


@witness("speculative_tokens")
def outcomes(acceptance, draft):
    total = 0
    for kept in itertools.product([True, False], repeat=draft):
        first = next((k for k, good in enumerate(kept) if not good), draft)
        total += math.prod(acceptance if good else 1 - acceptance for good in kept)*(first + 1)      # one more comes from the judge
    return total


# ---- late and local
@witness("delay_limit")
def tried(bend, delay):
    return asynchrony.limit(delay)/bend


@witness("best_local_steps")
def searched(local_time, sync_time, step_penalty):
    return least(lambda h: (local_time + sync_time/h)*(1 + step_penalty*(h - 1)), 1, 1e4)


# ---- the rows
# Further arguments, where those of the page leave a letter without weight: no rank cut, all parts equally long, one side of a maximum.
FURTHER = {
    "devices_for_memory": [dict(params=70e9, bytes_per_param=16, memory=80e9), dict(params=8e9, bytes_per_param=20, memory=141e9)],
    "model_state_bytes": [dict(params=1e9, weight=2, grad=4, optimizer=12, weight_ranks=2, grad_ranks=8, optimizer_ranks=64)],
    "activation_bytes_per_layer": [dict(microbatch_tokens=4096, hidden=8192, tp=4, seq_ranks=1)],
    "recompute_overhead": [dict(recompute=1, attention_share=0.2)],
    "logit_bytes": [dict(microbatch_tokens=4096, vocab=32_000, tp=8)],
    "kv_token_bytes": [dict(layers=3, kv_width=5, element_bytes=4)],
    "pipeline_egress": [dict(microbatches=8, chunks=2, microbatch_tokens=64, hidden=32, element_bytes=4)],
    "gather_break_even": [dict(n=1e8, P=8, alpha=2e-5, beta=50e9, encode=2e-4)],
    "exposed_time": [dict(comm=0.02, cover=0.03)],
    "split_backward_time": [dict(pp=4, microbatches=9, forward=2.0, input_grad=3.0, weight_grad=1.0, lag=lag) for lag in (1, 2)],
    "one_f_one_b_activations": [dict(pp=8, microbatches=32, stage=3), dict(pp=8, microbatches=4, stage=0)],
    "job_failure_rate": [dict(P=100, device_rate=1e-7, nodes=50, node_rate=4e-7)],
    "training_goodput": [dict(interval=7200, checkpoint=900, restart=300, mtbf=9000)],
    "decode_step_time": [dict(params=7e9, weight=2, decoded=512, cached=100, kv_token=131_072, tp=2, bandwidth=2e12, peak=3e14)],
    "speculative_tokens": [dict(acceptance=1, draft=3)],
    "delay_limit": [dict(bend=2, delay=1)],
}
LOOSE = {"job_failure_rate": 0.15, "training_goodput": 0.01, "delay_limit": 0.002}      # drawn, or tried on a grid
RIVALS = {"job_failure_rate": 2, "training_goodput": 1.05}


def test_every_row_has_a_witness_and_every_witness_a_row():
    assert set(WITNESS) == {row.formula for row in quick.rows()}


@pytest.mark.parametrize("name, args", [(name, args) for name, cases in FURTHER.items() for args in cases])
def test_further_arguments(name, args):
    assert REGISTRY[name](**args) == pytest.approx(WITNESS[name](**args), rel=LOOSE.get(name, 1e-6), abs=1e-12)


@pytest.mark.parametrize("name", sorted(WITNESS))
def test_every_letter_counts_somewhere(name):
    """Four times an argument, or a little more where so much is refused, changes the answer of one of the cases at least."""
    f = REGISTRY[name]
    cases = [row.args for row in quick.rows() if row.formula == name] + FURTHER.get(name, [])

    def changed(args, letter):
        for factor in (4, 1.2):
            try:
                return abs(f(**{**args, letter: args[letter]*factor}) - f(**args))/max(f(**args), 1e-12)
            except ValueError:
                pass
        return 0
    for letter in f.units:
        told = [changed(args, letter) for args in cases if args.get(letter)]
        assert max(told, default=0) > 2*LOOSE.get(name, 1e-6), letter


@pytest.mark.parametrize("row", quick.rows(), ids=lambda row: f"{row.formula}: {row.question}")
def test_row(row):
    second, near = WITNESS[row.formula](**row.args), LOOSE.get(row.formula, 1e-6)
    assert row.value() == pytest.approx(second, rel=near)
    assert row.value() != pytest.approx(second*RIVALS.get(row.formula, 1.1), rel=near), "a tolerance that holds for anything"


def test_the_page_shows_the_number_of_the_formula():
    import make_appendices
    page = make_appendices.quick_reference()
    for row in quick.rows():
        assert f"**{row.shown()}**" in page and REGISTRY[row.formula].narrow in page


# ---- what is corrected, in the order of quick.CORRECTED
def zero_three():
    n, P = 140e9, 64
    done, scale = programmed(ring_all_reduce, n, P, 0, 1)
    assert fsdp_egress(n, P)/(done.sent().max()*scale) == pytest.approx(3/2)
    assert two_gathers_and_a_scatter(n, P) == pytest.approx(3/2*done.sent().max()*scale)
    assert sharded_egress(n/2, P, 1, 1, 2, 2) == pytest.approx(done.sent().max()*scale), "stages 1 and 2 gather once and scatter once"


def tensor_wire():
    t, tensor = 8, 8192*8192*2
    assert tensor_parallel_bytes(8192, 8192, t, 2, 4)/(4*tensor) == pytest.approx(2*(t - 1)/t)


def pipeline_both_ways():
    once = 8192*8192*2
    for v in (1, 2, 4):
        assert operations(32, v, 8192, 8192, 2) == pytest.approx(2*32*v*once) == pipeline_egress(32, v, 8192, 8192, 2)


def zero_bubble():
    p, m = 8, 32
    work = 3*m
    idle = schedule.simulate(schedule.one_f_one_b(p, m)).makespan - work
    assert split_backward_time(p, m, 1, 1, 1, 1) - work == pytest.approx(idle/3) and idle > 0


def both_ends():
    line = schedule.simulate(schedule.dualpipe(16, 32), F=1, I=1, W=1, pair=3)
    idle = schedule.simulate(schedule.one_f_one_b(16, 32)).makespan - 32*3
    assert {line.makespan - busy for busy in line.busy} == {14} and idle == 45 and 14 < 45/3
    assert dualpipe_idle(16, 3, 2, 1) == 14


def square_root():
    layers = 80
    assert best_interval(layers, 1, 1) == pytest.approx(math.sqrt(layers), rel=1e-6)
    assert optimal_recompute_interval(layers, 2, 34) == pytest.approx(math.sqrt(layers/17)) and math.sqrt(layers/17) < 0.25*math.sqrt(layers)


def two_bubbles():
    p, m = 16, 64
    line = schedule.simulate(schedule.one_f_one_b(p, m))
    assert line.idle("total") == pytest.approx(15/79) == pipeline_bubble(p, m)
    assert line.idle("ideal") == pytest.approx(15/64) == pipeline_idle_of_ideal(p, m, 1)


def one_direction():
    nvlink, peak = link("nvlink4").beta, accelerator("h100-sxm").peak("bf16")
    assert nvlink == 450e9 == accelerator("h100-sxm").scale_up
    assert int(ridge_point(peak, nvlink)) == 2198 and round(ridge_point(peak, nvlink)) == 2199 and int(peak/900e9) == 1099


def a_third():
    """Products take w forward and 2 w backward, attention a and 5/2 a: five products of scores for two."""
    shares = []
    for w, a in ((1, 0), (0.8, 0.2), (0.5, 0.5)):
        shares.append((w + a)/(w + a + 2*w + 5/2*a))
        assert recompute_overhead(1, a/(w + a)) == pytest.approx(shares[-1])
    assert shares[0] == pytest.approx(1/3) and shares == sorted(shares, reverse=True) and shares[2] < 0.31


CORRECTED = [zero_three, tensor_wire, pipeline_both_ways, zero_bubble, both_ends, square_root, two_bubbles, one_direction, a_third]


@pytest.mark.parametrize("check", CORRECTED, ids=lambda f: f.__name__)
def test_corrected(check):
    check()


def test_every_correction_is_asserted():
    assert len(CORRECTED) == len(quick.CORRECTED)

"""A decoder with a cache, a sampler that guesses ahead, slots, servers and pages: by hand, against each other, and the formulas."""
from collections import Counter

import numpy as np
import pytest

from capacity import (accelerator, decode_ceiling, decode_context_limit, decode_step_time, decode_tp_optimum, dispatch_bytes,
                      experts_touched, half_ceiling_batch, kv_token_bytes, memory_clock, model, owner_ranks, owner_tokens, page_waste,
                      prefill_servers, refilled_steps, speculative_speedup, speculative_tokens, stationary_bytes,
                      stationary_width_ranks)
from capacity.witness import attention, decoder, decoding, serving
from capacity.witness.serving import Full, Pages, Request, Row
from capacity.witness.spmd import run

SHAPES = [dict(), dict(layers=3, heads=6, kv_heads=3, head=2), dict(heads=4, kv_heads=1), dict(heads=2, kv_heads=2, layers=1)]


# ---- the decoder
@pytest.mark.parametrize("shape", SHAPES)
def test_a_cache_changes_no_token_and_no_logit(shape):
    w = decoder.weights(np.random.default_rng(3), **shape)
    prompt = [3, 1, 4, 1, 5]
    anew = decoder.write(w, prompt, 12)
    for chunk in (1, 2, 3, None):
        kept = decoder.write(w, prompt, 12, keep=True, chunk=chunk)
        assert kept[0] == anew[0]
        assert decoder.nbytes(kept[2]) == 16*kv_token_bytes(len(w["layers"]), w["layers"][0]["k"][0].size, 8)
    whole, cache = decoder.logits(w, prompt + anew[0])
    back, _ = decoder.logits(w, (prompt + anew[0])[9:], decoder.cut(cache, 9))
    assert np.allclose(back, whole[9:], atol=1e-12), "a cache that was cut back goes on as if nothing had followed"


def test_work_is_counted():
    w = decoder.weights(np.random.default_rng(0), words=5, width=4, heads=2, kv_heads=1, head=2, inner=3, layers=1)
    work = decoder.Work()
    decoder.logits(w, [0, 1, 2], None, work)
    weights = 4*4 + 4*2 + 4*2 + 4*4 + 3*12 + 4*5                  # q, k, v, o, three of the feed-forward layer, the head
    assert (work.tokens, work.weights, work.attention) == (3, 3*weights, 2*4*(1 + 2 + 3))


def test_places_matter():
    """Keys are rotated by their place: the same tokens elsewhere are another prefix."""
    w = decoder.weights(np.random.default_rng(1))
    assert not np.allclose(decoder.logits(w, [1, 2, 3])[0][-1], decoder.logits(w, [2, 1, 3])[0][-1])


# ---- drafts
def exact(w, prompt, n):
    laws = {(): 1.0}
    for _ in range(n):
        laws = {(*k, i): v*x for k, v in laws.items() for i, x in enumerate(decoder.law(decoder.logits(w, [*prompt, *k])[0][-1]))}
    return laws


@pytest.mark.parametrize("ahead", [2])
def test_guessing_ahead_keeps_the_law_and_the_wrong_program_does_not(ahead):
    shape = dict(words=3, width=8, heads=2, kv_heads=1, head=4, inner=8)
    target, draft = (decoder.weights(np.random.default_rng(s), **shape) for s in (8, 2))
    laws, N = exact(target, [0, 1], 2), 400
    chi = []
    for mend in (True, False):
        rng = np.random.default_rng(5)
        seen = Counter(tuple(decoder.guess_ahead(target, draft, [0, 1], 2, ahead, rng, mend)[0]) for _ in range(N))
        chi.append(sum((seen[k] - N*v)**2/(N*v) for k, v in laws.items()))
    assert chi[0] < 26.1 < 60 < chi[1]                             # 99.9 % for 8 degrees


def test_a_draft_like_its_target_is_never_refused():
    w = decoder.weights(np.random.default_rng(4))
    tokens, rounds = decoder.guess_ahead(w, w, [1, 2], 12, 3, np.random.default_rng(0))
    assert len(tokens) == 12 and rounds == 3                       # four tokens a round


@pytest.mark.parametrize("ahead", [1, 2, 5])
def test_rounds_yield_what_the_formula_says(ahead):
    rng = np.random.default_rng(ahead)
    p, q = rng.dirichlet(np.ones(16)), rng.dirichlet(np.ones(16))
    out, mean = decoder.rounds(p, q, ahead, 40_000, rng)
    a = np.minimum(p, q).sum()
    assert mean == pytest.approx(speculative_tokens(a, ahead), rel=.01)
    assert speculative_speedup(a, ahead, .1, 1.2) == pytest.approx(speculative_tokens(a, ahead)/(.1*ahead + 1.2))
    assert np.abs(np.bincount(out, minlength=16)/len(out) - p).max() < .01


# ---- slots
def test_slots_by_hand():
    lengths = [5, 2, 3, 9, 2, 4, 3, 2]
    assert [serving.steps(serving.occupy(lengths, 4, refill)) for refill in (False, True)] == [13, 9]
    spans = serving.occupy(lengths, 4, True)
    assert sum(s.stop - s.start for s in spans) == sum(lengths)
    for a in spans:
        for b in spans:
            assert a == b or a.slot != b.slot or a.stop <= b.start or b.stop <= a.start


def test_refilled_slots_stay_within_grahams_bound_and_reach_it():
    rng = np.random.default_rng(0)
    for _ in range(200):
        lengths, slots = rng.integers(1, 60, int(rng.integers(1, 80))).tolist(), int(rng.integers(1, 10))
        got = serving.steps(serving.occupy(lengths, slots, True))
        assert max(max(lengths), sum(lengths)/slots) <= got <= refilled_steps(sum(lengths), max(lengths), slots) + 1e-9
    worst = [1]*(4*3) + [4]                                        # short ones fill all slots, the long one comes last
    assert serving.steps(serving.occupy(worst, 4, True)) == refilled_steps(16, 4, 4) == 7


@pytest.mark.parametrize("bad", [([1], 0), ([0, 2], 2)])
def test_what_no_slot_can_write_is_named(bad):
    with pytest.raises(ValueError, match="allowed are"):
        serving.occupy(*bad, True)


# ---- servers
def step(n, cached, prompt):
    return max(1.0*(n > 0), prompt/100) + cached/1000


@pytest.mark.parametrize("how, first, last", [("whole", 3.0, 5.605), ("chunks", 3.0, 5.605), ("apart", 3.0, 5.605)])
def test_one_request_by_hand(how, first, last):
    """A prompt of 300 tokens is read in 3 s; two more tokens take a second each and 301 and 302 thousandths."""
    got, = serving.serve([Request(0.0, 300, 3)], 2, step, how, chunk=100)
    assert (got.first, got.last) == pytest.approx((first, last - .002))


def test_everybody_is_served_and_a_whole_prompt_stops_the_writers():
    come = serving.requests(np.random.default_rng(0), 60, .05, 500, 10)
    for how in ("whole", "chunks", "apart"):
        done = serving.serve(come, 4, step, how, chunk=50)
        assert sorted(s.at for s in done) == [r.at for r in come] and all(s.first > s.at for s in done)
    gaps = [serving.waits(serving.serve(come, 4, step, how, chunk=50))[2].max() for how in ("whole", "chunks", "apart")]
    assert gaps[0] > 5 > gaps[1] and gaps[2] < gaps[0]
    with pytest.raises(ValueError, match="whole, chunks, apart"):
        serving.serve(come, 4, step, "both")


@pytest.mark.parametrize("readers, writers", [(1, 1), (2, 1), (1, 3), (4, 1)])
def test_two_queues_in_a_row_do_what_the_slower_allows(readers, writers):
    answers = np.random.default_rng(1).geometric(1/50, 3000).tolist()
    got = serving.tandem(readers, writers, 1.0, 8, .1, answers)
    assert got == pytest.approx(min(readers, writers*8/(50*.1)), rel=.05)
    assert prefill_servers(1.0, 8, 50, .1) == pytest.approx(8/5)


# ---- pages
def test_shared_pages_are_copied_before_they_are_written():
    cache = Pages(40, 4)
    for _ in range(9):
        cache.append("A")
    cache.fork("A", "B")
    assert cache.given == 12 and cache.held == 9
    cache.append("A")
    assert cache.copied == [(2, 3)] and cache.table == {"A": [0, 1, 3], "B": [0, 1, 2]}
    cache.append("B")
    assert len(cache.copied) == 1 and cache.held == 8 + 2 + 2      # alone on its page, B writes into it
    cache.drop("A")
    assert cache.given == 12 and 3 in cache.free
    cache.drop("B")
    assert cache.given == 0 and sorted(cache.free) == list(range(10))
    for _ in range(40):
        cache.append("C")
    with pytest.raises(Full):
        cache.append("C")


def test_pages_hold_a_decoders_cache():
    """Keys laid into pages through the table, and read back through it, write the same tokens; a fork shares the prompt."""
    w = decoder.weights(np.random.default_rng(4))
    prompt = [3, 1, 4, 1, 5]
    want = decoder.write(w, prompt, 6)[0]
    pages, heap = Pages(64, 4), {}

    def put(name, cache, first):
        for place in range(first, len(cache[0][0])):
            page, at = pages.append(name)
            for a, b in pages.copied[put.copies:]:
                heap.update({(b, k): heap[a, k] for k in range(pages.page) if (a, k) in heap})
            put.copies = len(pages.copied)
            heap[page, at] = [(k[place], v[place]) for k, v in cache]

    def get(name):
        rows = [heap[pages.table[name][i//4], i % 4] for i in range(pages.length[name])]
        return [tuple(np.array([row[layer][m] for row in rows]) for m in (0, 1)) for layer in range(len(w["layers"]))]
    put.copies = 0
    said, cache = decoder.logits(w, prompt)
    put("A", cache, 0)
    pages.fork("A", "B")
    for name in "AB":                                              # the second writes after the first, from the same prompt
        tokens, now = [], said
        for n in range(6):
            tokens.append(int(now[-1].argmax()))
            now, cache = decoder.logits(w, tokens[-1:], get(name))
            put(name, cache, 5 + n)
        assert tokens == want
    assert set(pages.table["A"]) & set(pages.table["B"]) == {pages.table["A"][0]}


def test_first_fit_joins_holes():
    row = Row(10)
    for name in "abc":
        row.start(name, 3)
    row.drop("a"), row.drop("b")
    row.start("d", 6)
    assert row.at["d"] == (0, 6)
    with pytest.raises(Full):
        row.start("e", 2)


def test_what_is_empty():
    lengths = np.clip(np.random.default_rng(2).geometric(1/200, 400), 1, 1000).tolist()
    for page in (8, 32):
        got = serving.store(lengths, 10_000, page=page)
        assert 1 - got.held/got.given == pytest.approx(page_waste(page, got.held/got.sequences), rel=.1)
    whole = serving.store(lengths, 10_000, reserve=1000)
    assert whole.sequences == 10 and whole.held/whole.given < .3
    with pytest.raises(ValueError, match="one of them"):
        serving.store(lengths, 100, page=4, reserve=5)
    with pytest.raises(ValueError, match="a page of one token or more"):
        Pages(3, 4)


# ---- what the formulas say to each other
def test_the_formulas_of_a_step():
    model = dict(params=70e9, weight=2, kv_token=3e5)
    for B in (1, 10, 100):
        T = decode_step_time(**model, decoded=B, cached=8000, tp=8, bandwidth=3e12, peak=1e15)
        assert T == pytest.approx(2*70e9/(8*3e12) + B*8000*3e5/(8*3e12))
        x = B/T/8/decode_ceiling(3e12, 8000, 3e5)
        assert 1 - x == pytest.approx(2*70e9/(8*3e12)/T)
    half = half_ceiling_batch(**model, cached=8000)
    assert half == pytest.approx(140/2.4)
    S = decode_context_limit(70e9, 3e12, 1e15, 3e5)
    T = decode_step_time(**model, decoded=1e6, cached=S, tp=8, bandwidth=3e12, peak=1e15)
    assert T == pytest.approx(2*2*70e9*1e6/(8*1e15))
    assert memory_clock(80e9, 4e12) == .02
    t = decode_tp_optimum(70e9, 2, 80, 2e-6, 3e12)
    cost = lambda t: 2*70e9/(t*3e12) + 2*80*2*(t - 1)*2e-6          # noqa: E731
    assert cost(t) < min(cost(.98*t), cost(1.02*t))
    rng = np.random.default_rng(0)
    seen = np.mean([(rng.random((64, 40)) < .05).any(1).sum() for _ in range(400)])
    assert experts_touched(64, .05, 40) == pytest.approx(seen, rel=.01)


def test_llama_3_70b_in_numbers():
    """Eight bits for weights alone at capacity; tokens whose cache is as large as the weights; where causal attention is as
    much arithmetic as the products."""
    llm, H100 = model("llama3-70b"), accelerator("h100-sxm")
    q = kv_token_bytes(llm.layers, llm.kv_width, 2)
    fit = int((.9*8*H100.memory - llm.params)/(8192*q))
    step = decode_step_time(llm.params, 1, fit, 8192, q, 8, H100.bandwidth, 2*H100.peak("bf16"))
    assert fit == 188 and round(fit/step/8) == 1095
    assert round(2*llm.params/q) == 430_626
    assert round(llm.params/llm.layers/llm.hidden) == 107_656


# ---- cuts of a layer that writes
@pytest.mark.parametrize("gates", [1, 2])
@pytest.mark.parametrize("ranks, width_ranks", [(1, 1), (6, 1), (6, 2), (6, 3), (6, 6), (12, 3)])
def test_a_grid_gives_the_layer_of_one_device_and_sends_what_is_counted(gates, ranks, width_ranks):
    rng = np.random.default_rng(ranks)
    x, down = rng.normal(size=(2, 12)), rng.normal(size=(24, 12))
    ups = [rng.normal(size=(12, 24)) for _ in range(gates)]
    went = run(decoding.stationary, decoding.cut(x, ups, down, ranks, width_ranks), width_ranks)
    assert np.allclose(np.concatenate(went.results, 1), decoding.feed(x, ups, down))
    assert set(went.sent()) == {stationary_bytes(2, 12, 24, gates + 1, ranks, width_ranks, 8)}
    assert went.rounds == 2*(ranks//width_ranks - 1) + (gates + 1)*(width_ranks - 1)


def test_the_best_grid_by_trying_all():
    """The real number lies between the two neighbours of the best divisor; twice as many ranks each way are worse."""
    for ranks in (12, 60, 360, 720):
        cost = {x: stationary_bytes(5, 24, 96, 2, ranks, x, 2) for x in range(1, ranks + 1) if ranks % x == 0}
        best, star = min(cost, key=cost.get), stationary_width_ranks(24, 96, 2, ranks)
        order = sorted(cost)
        near = order[max(0, order.index(best) - 1)], order[min(len(order) - 1, order.index(best) + 1)]
        assert near[0] <= star <= near[1]
        better = [x for x in order[1:] if cost[x] < cost[1]*(1 - 1e-12)]
        assert better == [x for x in order[1:] if x < round(star**2, 9)]
    assert stationary_width_ranks(24, 96, 2, 16) == 2 and stationary_bytes(1, 24, 96, 2, 8, 2, 1) == stationary_bytes(
        1, 24, 96, 2, 8, 1, 1)                               # a first tie, at four times two


def layer(rng, sequences, heads=4, width=8, experts=8, per_rank=1, ranks=4):
    """Sequences of different lengths, and so many experts on each rank for every row."""
    block = experts//ranks
    chosen = np.array([[r*block + e for r in range(ranks) for e in rng.choice(block, per_rank, replace=False)]
                       for _ in range(sequences)])
    return decoding.Layer([attention.latents(1, 3 + b, heads=heads, seed=b) for b in range(sequences)],
                          rng.normal(size=(heads, 4, width)), rng.normal(size=(experts, width, width)), chosen)


@pytest.mark.parametrize("ranks, per_rank", [(2, 1), (2, 3), (4, 1), (4, 2)])
def test_heads_shared_out_or_sequences_owned(ranks, per_rank):
    made = layer(np.random.default_rng(ranks), 8, per_rank=per_rank, ranks=ranks)
    want, cached = decoding.whole(made), sum(3 + b for b in range(8))*(6 + 2)
    heads, owner = run(decoding.by_heads, [made]*ranks), run(decoding.by_owner, [made]*ranks)
    assert all(np.allclose(rows, want) for rows, _ in heads.results)
    assert np.allclose(np.concatenate([rows for rows, _ in owner.results]), want)
    assert {held for _, held in heads.results} == {cached} and sum(held for _, held in owner.results) == cached
    k = per_rank*ranks
    assert set(heads.sent()) == {4*(ranks - 1)*8*8*8//ranks}
    assert set(owner.sent()) == {2*dispatch_bytes(8/ranks, k, 8, 8, ranks)}
    assert np.sign(heads.sent()[0] - owner.sent()[0]) == np.sign(ranks - owner_ranks(k, 8, 8, 8))


def test_owning_pays_from_so_many_tokens_on_whatever_the_ranks():
    tokens = owner_tokens(1000, 2, 10, 4)
    for ranks in (2, 3, 64):
        for more in (.9, 1.1):
            heads, owner = 1000*2/ranks + more*tokens*40, 1000*2 + more*tokens*40/ranks
            assert (owner < heads) == (more > 1)

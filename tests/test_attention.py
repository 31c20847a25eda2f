"""Attention of other shapes: equal where it must be, unequal where it must not, and what is counted."""
import numpy as np
import pytest

from capacity import kv_token_bytes, model
from capacity.witness import attention as att
from capacity.witness import tiny
from capacity.witness.spmd import run


def qkv(s, heads=4, kv_heads=2, d=3, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(s, heads, d)), *rng.normal(size=(2, s, kv_heads, d))


def whole(q, k, v, **mask):
    at = np.arange(len(q))
    return att.attend(att.Tally(), q, k, v, att.causal(at, at, **mask))


@pytest.mark.parametrize("g", [1, 2, 4])
def test_grouped_heads_are_the_small_models(g):
    q, k, v = qkv(6, kv_heads=g)
    at = np.arange(6)
    want, _ = tiny.attention(q[None], k[None], v[None], at, at)
    assert np.allclose(whole(q, k, v), want[0])
    assert np.allclose(whole(q, k, v), whole(q, att.tied(k, 4), att.tied(v, 4)))


def test_products_are_counted():
    tally = att.Tally()
    tally.product("ij,jk->ik", np.ones((2, 3)), np.ones((3, 5)))
    assert tally.flop == 2*2*3*5
    assert len(tally.hold(np.ones(4), np.ones((2, 3)))) == 2 and tally.held == 10


@pytest.mark.parametrize("s, t", [(1, 9), (4, 9), (9, 9)])
def test_a_latent_need_not_be_expanded(s, t):
    x = att.latents(s, t)
    want = att.expanded(att.Tally(), x)
    for other in (att.absorbed, att.one_head):
        assert np.allclose(other(att.Tally(), x), want)


def test_a_rotation_between_two_products_stops_absorption():
    x = att.latents(3, 7)
    at = np.arange(7)
    k = np.einsum("tr,rad->tad", x.cache, x.up_k)
    plain = np.einsum("sad,tad->sat", x.q, k)
    turned = np.einsum("sad,tad->sat", att.rotate(x.q, at[4:]), att.rotate(k, at))
    absorbed = np.einsum("sar,tr->sat", np.einsum("sad,rad->sar", att.rotate(x.q, at[4:]), x.up_k), x.cache)
    assert np.allclose(np.einsum("sar,tr->sat", np.einsum("sad,rad->sar", x.q, x.up_k), x.cache), plain)
    assert not np.allclose(absorbed, turned)


def test_rotated_products_depend_on_the_distance():
    rng = np.random.default_rng(0)
    q, k = rng.normal(size=(2, 1, 6))
    dots = [float((att.rotate(q, np.array([i + 3])) @ att.rotate(k, np.array([i])).T)[0, 0]) for i in (0, 5, 90)]
    assert np.allclose(dots, dots[0])


@pytest.mark.parametrize("P, held", [(1, 4), (2, 2), (4, 1), (8, 1)])
def test_grouped_heads_cut_until_each_rank_has_one(P, held):
    q, k, v = qkv(5, heads=8, kv_heads=4)
    seen = att.causal(np.arange(5), np.arange(5))
    parts = run(att.grouped_by_heads, [(q, k, v, seen)]*P).results
    assert np.allclose(np.concatenate([y for y, _ in parts], 1), whole(q, k, v))
    assert [n for _, n in parts] == [2*5*3*held]*P


@pytest.mark.parametrize("P", [1, 2, 4])
def test_latents_on_ranks(P):
    x = att.latents(2, 8)
    want = att.expanded(att.Tally(), x)
    by_heads = run(att.latent_by_heads, [x]*P).results
    assert np.allclose(np.concatenate([y for y, _ in by_heads], 1), want)
    assert [n for _, n in by_heads] == [8*(6 + 2)]*P
    by_tokens = run(att.latent_by_tokens, [x]*P).results
    assert all(np.allclose(y, want) for y, _ in by_tokens)
    assert [n for _, n in by_tokens] == [8*(6 + 2)/P]*P


@pytest.mark.parametrize("window, sinks", [(1, 0), (3, 0), (3, 2), (20, 0), (4, 1), (20, 3)])
def test_a_rolling_buffer_is_a_masked_window(window, sinks):
    q, k, v = qkv(11)
    got, slots = att.rolling(q, k, v, window, sinks)
    assert np.allclose(got, whole(q, k, v, window=window, sinks=sinks)) and slots == window + sinks
    if window < 10:
        assert not np.allclose(got, whole(q, k, v, window=window + 1, sinks=sinks))


@pytest.mark.parametrize("layers, window", [(1, 4), (3, 4), (5, 2)])
def test_reach_grows_with_the_layers(layers, window):
    at = np.arange(30)
    assert att.reach(layers, att.causal(at, at, window))[-1].sum() == layers*(window - 1) + 1


@pytest.mark.parametrize("P, window", [(1, 3), (2, 1), (4, 2), (4, 4), (4, 5), (4, 8), (4, 99)])
def test_a_halo_is_enough(P, window):
    q, k, v = qkv(12)
    want = whole(q, k, v, window=window)
    parts = list(zip(*(np.split(x, P) for x in (q, k, v))))
    halo = run(att.halo_attention, parts, window)
    all_of_it = run(att.gathered_attention, parts, window)
    for got in (halo, all_of_it):
        assert np.allclose(np.concatenate(got.results), want)
    if P > 1 and window - 1 <= 12//P:
        token = 2*2*3*8
        assert list(halo.sent()) == [(window - 1)*token]*(P - 1) + [0] or window == 1
        assert set(all_of_it.sent()) == {12//P*(P - 1)*token}


# ---- numbers worth knowing
def test_parameters_and_bytes_of_three_models():
    v3, llama, small = model("deepseek-v3"), model("llama3-405b"), model("llama3-8b")
    down = 7168*1536 + 7168*(512 + 64)                          # to the latents of queries, and of keys and values
    up = 1536*128*(128 + 64) + 512*128*(128 + 128)
    assert v3.attention_matmul == down + up + 128*128*7168 == 187_105_280
    assert 2*llama.hidden**2*(1 - llama.kv_heads/llama.heads) == 503_316_480
    assert 4096*kv_token_bytes(small.layers, small.kv_width, 2) == 536_870_912         # Mistral 7B has the same shape

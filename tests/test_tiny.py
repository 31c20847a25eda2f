"""The small transformer: its gradients are slopes, its attention is causal, its loss counts what it says."""
import numpy as np
import pytest

from capacity.witness import tiny

W = tiny.weights()
TOKENS, TARGETS = tiny.data()


@pytest.mark.parametrize("name", list(W))
def test_gradient_is_the_slope(name):
    targets = np.where(np.arange(8) < 5, TARGETS, -1)
    along, h = np.random.default_rng(7).normal(size=W[name].shape), 1e-5
    up, down = (tiny.loss(W | {name: W[name] + d*along}, TOKENS, targets)[0] for d in (h, -h))
    gradient = tiny.loss(W, TOKENS, targets)[1]()[name]
    assert gradient.shape == W[name].shape
    assert (up - down)/(2*h) == pytest.approx((gradient*along).sum(), rel=1e-6)


def test_loss_and_gradient_add_over_sequences():
    total, back = tiny.loss(W, TOKENS, TARGETS)
    parts = [tiny.loss(W, TOKENS[i:i + 1], TARGETS[i:i + 1]) for i in range(len(TOKENS))]
    assert total == pytest.approx(sum(part for part, _ in parts), rel=1e-13)
    for name, value in back().items():
        np.testing.assert_allclose(value, sum(b()[name] for _, b in parts), atol=1e-12)
        np.testing.assert_allclose(back(3.0)[name], 3*value, atol=1e-12)


def test_a_token_sees_no_later_one():
    later = TOKENS.copy()
    later[:, 5:] = (later[:, 5:] + 1) % 16
    first = np.where(np.arange(8) < 5, TARGETS, -1)
    assert tiny.loss(W, TOKENS, first)[0] == tiny.loss(W, later, first)[0]
    assert tiny.loss(W, TOKENS, TARGETS)[0] != tiny.loss(W, later, TARGETS)[0]


def test_untrained_loss_of_zero_weights_is_the_log_of_the_vocabulary():
    w = W | {"head": np.zeros_like(W["head"])}
    assert tiny.loss(w, TOKENS, TARGETS)[0] == pytest.approx(TARGETS.size*np.log(16))


def test_the_norm_of_almost_nothing_is_almost_nothing():
    """x over the root of its mean square plus 10^-6: numbers of 10^-3 become 1/sqrt(2), and zero stays zero."""
    gain = np.arange(1.0, 5)
    np.testing.assert_allclose(tiny.rms_norm(np.full(4, 1e-3), gain)[0], gain/np.sqrt(2), rtol=1e-12)
    assert not tiny.rms_norm(np.zeros(4), gain)[0].any()


@pytest.mark.parametrize("d", [1, 4, 9])
def test_attention_is_the_mean_of_the_values_by_scaled_products(d):
    rng = np.random.default_rng(d)
    q, k, v = rng.normal(size=(3, 1, 5, 1, d))
    out, _ = tiny.attention(q, k, v, np.arange(5), np.arange(5))
    for t in range(5):
        weight = np.exp(k[0, :t + 1, 0] @ q[0, t, 0]/np.sqrt(d))
        np.testing.assert_allclose(out[0, t, 0], weight/weight.sum() @ v[0, :t + 1, 0], atol=1e-14)


def test_stages_are_the_model_wherever_it_is_cut():
    """Embedding, block 0, block 1, norm and head: any stages in a row, each with the gradients of what it has."""
    want, back = tiny.loss(W, TOKENS, TARGETS)
    groups = [["embed"], *([name for name in W if name.startswith(f"{i}.")] for i in (0, 1)), ["norm", "head"]]
    for cuts in [(1, 2, 3), (2,), (1, 3), (3,), ()]:
        x, backs, dy, grads = TOKENS, [], 1.0, {}
        parts = [{name: W[name] for group in groups[a:b] for name in group} for a, b in zip((0, *cuts), (*cuts, 4))]
        for part in parts:
            x, one = tiny.stage(part, x, TARGETS if "head" in part else None)
            backs.append(one)
        for part, one in zip(parts[::-1], backs[::-1]):
            dy, dw = one(dy)
            assert dw().keys() == part.keys()
            grads |= dw()
        assert dy is None and x == want
        assert all((grads[name] == value).all() for name, value in back().items())


def test_tied_weights_have_the_sum_of_both_gradients():
    tied = {name: value for name, value in W.items() if name != "head"}
    want, back = tiny.loss(tied | {"head": W["embed"].T}, TOKENS, TARGETS)
    got, tied_back = tiny.loss(tied, TOKENS, TARGETS)
    assert got == want
    np.testing.assert_allclose(tied_back()["embed"], back()["embed"] + back()["head"].T, atol=1e-13)


def test_sums_by_name():
    x, y = {"a": 1, "b": 2}, {"b": 3, "c": 4}
    assert tiny.add(x, y) == {"a": 1, "b": 5, "c": 4} and x == {"a": 1, "b": 2}


def test_grouped_query_attention_is_attention_with_copied_heads():
    rng = np.random.default_rng(0)
    q, k, v = (rng.normal(size=(2, 6, heads, 3)) for heads in (4, 2, 2))
    at, do = np.arange(6), rng.normal(size=(2, 6, 4, 3))
    out, back = tiny.attention(q, k, v, at, at)
    wide, wide_back = tiny.attention(q, k.repeat(2, 2), v.repeat(2, 2), at, at)
    np.testing.assert_allclose(out, wide, atol=1e-14)
    for narrow, copied in zip(back(do)[1:], wide_back(do)[1:]):
        np.testing.assert_allclose(narrow, copied.reshape(2, 6, 2, 2, 3).sum(3), atol=1e-13)


@pytest.mark.parametrize("name", list(W))
def test_hooks_and_their_pullbacks(name):
    """enter before both layers of a block and before the head, leave after both layers; back in the other order."""
    seen = []

    def hook(word, factor):
        def call(x):
            seen.append(word)
            return factor*x, lambda dy: (seen.append("-" + word), factor*dy)[1]
        return call

    def loss(w):
        return tiny.loss(w, TOKENS, TARGETS, enter=hook("enter", 1.5), leave=hook("leave", 0.5))

    gradient = loss(W)[1]()[name]
    forward = ["enter", "leave"]*4 + ["enter"]
    assert seen == forward + ["-" + word for word in forward[::-1]]
    along, h = np.random.default_rng(7).normal(size=W[name].shape), 1e-5
    up, down = (loss(W | {name: W[name] + d*along})[0] for d in (h, -h))
    assert (up - down)/(2*h) == pytest.approx((gradient*along).sum(), rel=1e-6, abs=1e-9)

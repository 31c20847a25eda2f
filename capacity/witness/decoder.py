"""A small decoder that writes, with keys and values kept or computed again, and a draft that guesses ahead.

    w = weights(np.random.default_rng(0))
    write(w, [3, 1, 4], 5)                  # (tokens, Work): everything computed again for each token
    write(w, [3, 1, 4], 5, keep=True)       # the same tokens; keys and values of the past are read

Two layers of grouped-query attention with rotated positions and a gated feed-forward layer, in NumPy.  `logits` takes any
number of new tokens behind a cache, so a prompt can be read whole, in chunks or token by token.  `Work` counts what was
done: multiply-adds with weights, multiply-adds with keys and values, and bytes kept.

A witness: it knows arrays and draws, and no formula.
"""
from dataclasses import dataclass

import numpy as np

SHAPE = dict(words=13, width=16, heads=4, kv_heads=2, head=4, inner=24, layers=2)


@dataclass
class Work:
    """What was done so far: products of a token with weights and with keys or values, and positions that went through."""
    weights: int = 0
    attention: int = 0
    tokens: int = 0


def weights(rng, words=13, width=16, heads=4, kv_heads=2, head=4, inner=24, layers=2):
    """Random weights: {"embed": ..., "out": ..., "layers": [{"q": ..., ...}, ...]}."""
    def made(*shape):
        return rng.normal(size=shape)/np.sqrt(shape[0])
    block = dict(q=(width, heads, head), k=(width, kv_heads, head), v=(width, kv_heads, head), o=(heads*head, width),
                 gate=(width, inner), up=(width, inner), down=(inner, width))
    return {"embed": rng.normal(size=(words, width)), "out": made(width, words),
            "layers": [{name: made(*shape) for name, shape in block.items()} for _ in range(layers)]}


def norm(x):
    """Rows scaled to a mean square of one."""
    return x/np.sqrt((x*x).mean(-1, keepdims=True) + 1e-6)


def rotated(x, places):
    """Queries or keys turned by an angle that grows with their place, so that scores know distances."""
    half = x.shape[-1]//2
    angle = np.multiply.outer(places, 10.0**-np.arange(half))[:, None, :]
    a, b = x[..., :half], x[..., half:]
    return np.concatenate([a*np.cos(angle) - b*np.sin(angle), a*np.sin(angle) + b*np.cos(angle)], -1)


def empty(w):
    """A cache with nothing in it: keys and values of each layer."""
    _, kv, head = w["layers"][0]["k"].shape
    return [(np.zeros((0, kv, head)), np.zeros((0, kv, head))) for _ in w["layers"]]


def nbytes(cache):
    """Bytes of all keys and values."""
    return sum(k.nbytes + v.nbytes for k, v in cache)


def cut(cache, tokens):
    """The cache as it was after so many tokens."""
    return [(k[:tokens], v[:tokens]) for k, v in cache]


def logits(w, tokens, cache=None, work=None):
    """(logits of each new token, the longer cache): new tokens attend to the cache, to those before them, to themselves."""
    work = work if work is not None else Work()
    cache = cache if cache is not None else empty(w)
    n, past = len(tokens), len(cache[0][0])
    places, grown = past + np.arange(n), []
    x = w["embed"][list(tokens)]
    work.tokens += n
    for layer, (old_k, old_v) in zip(w["layers"], cache):
        h = norm(x)
        q, k, v = (np.tensordot(h, layer[name], 1) for name in "qkv")
        k, v = np.concatenate([old_k, rotated(k, places)]), np.concatenate([old_v, v])
        grown.append((k, v))
        share = q.shape[1]//k.shape[1]                            # query heads that read the same keys
        q = rotated(q, places).reshape(n, k.shape[1], share, -1)
        scores = q @ k.transpose(1, 2, 0)/np.sqrt(q.shape[-1])   # (new, groups, share, all)
        if n > 1:
            scores = np.where(np.arange(len(k)) > places[:, None, None, None], -np.inf, scores)
        p = np.exp(scores - scores.max(-1, keepdims=True))
        p /= p.sum(-1, keepdims=True)
        x = x + (p @ v.transpose(1, 0, 2)).reshape(n, -1) @ layer["o"]
        h = norm(x)
        gate = h @ layer["gate"]
        x = x + (gate/(1 + np.exp(-gate))*(h @ layer["up"])) @ layer["down"]
        work.weights += n*sum(m.size for m in layer.values())
        work.attention += 2*q[0].size*int((places + 1).sum())     # scores and sums of values, seen keys alone
    work.weights += n*w["out"].size
    return norm(x) @ w["out"], grown


def write(w, prompt, answer, keep=False, chunk=None):
    """(tokens of the answer, Work, cache or None): the likeliest token, so many times; the prompt is read `chunk` by chunk."""
    work, tokens, cache = Work(), list(prompt), None
    if keep:
        chunk = chunk or len(prompt)
        for at in range(0, len(prompt), chunk):
            said, cache = logits(w, prompt[at:at + chunk], cache, work)
    for _ in range(answer):
        if not keep:
            said, _ = logits(w, tokens, None, work)
        tokens.append(int(said[-1].argmax()))
        if keep and len(tokens) < len(prompt) + answer:
            said, cache = logits(w, tokens[-1:], cache, work)
    return tokens[len(prompt):], work, cache


# ---- drafts
def law(said):
    """Probabilities of the next token."""
    p = np.exp(said - said.max(-1, keepdims=True))
    return p/p.sum(-1, keepdims=True)


def keep_or_replace(p, q, token, rng):
    """(token, kept): a token drawn from q becomes one drawn from p.

    It stays with probability min(1, p/q); else one is drawn from what q leaves of p, where p is larger.
    """
    if rng.random()*q[token] < p[token]:
        return token, True
    rest = np.maximum(p - q, 0)
    return int(rng.choice(len(p), p=rest/rest.sum())), False


def guess_ahead(target, draft, prompt, answer, ahead, rng, mend=True):
    """(tokens, rounds): sampled from `target`, with `ahead` tokens of `draft` checked in one pass of the target.

    target, draft: weights with the same words.  A round's pass sees all drafted tokens at once; what comes after the first
    refused one is cut from both caches.  mend=False, a wrong program: a refused token is replaced by a draw from p itself.
    """
    tokens, rounds = list(prompt), 0
    _, kept = logits(target, tokens[:-1]) if len(tokens) > 1 else (None, empty(target))
    _, near = logits(draft, tokens[:-1]) if len(tokens) > 1 else (None, empty(draft))
    while len(tokens) < len(prompt) + answer:
        rounds, start = rounds + 1, len(tokens)
        drafted, qs = [], []
        for _ in range(ahead):
            said, near = logits(draft, (tokens + drafted)[len(near[0][0]):], near)
            qs.append(law(said[-1]))
            drafted.append(int(rng.choice(len(qs[-1]), p=qs[-1])))
        said, kept = logits(target, (tokens + drafted)[len(kept[0][0]):], kept)
        ps = law(said[-ahead - 1:])
        for i, token in enumerate(drafted):
            token, same = keep_or_replace(ps[i], qs[i], token, rng)
            if not same and not mend:
                token = int(rng.choice(len(ps[i]), p=ps[i]))
            tokens.append(token)
            if not same:
                break
        else:
            tokens.append(int(rng.choice(len(ps[-1]), p=ps[-1])))     # all stayed: one more for nothing
        known = min(len(tokens) - 1, start + ahead)
        kept, near = cut(kept, known), cut(near, min(known, start + ahead - 1))
    return tokens[len(prompt):len(prompt) + answer], rounds


def rounds(p, q, ahead, count, rng):
    """(tokens of all rounds, tokens a round): many rounds at once of a draft and a target that do not look back."""
    p, q = np.asarray(p, float), np.asarray(q, float)
    drafted = rng.choice(len(p), size=(count, ahead), p=q)
    stays = rng.random((count, ahead))*q[drafted] < p[drafted]
    kept = np.where(stays.all(1), ahead, stays.argmin(1))             # how many stay before the first that does not
    rest = np.maximum(p - q, 0)
    last = np.where(kept == ahead, rng.choice(len(p), size=count, p=p),
                    rng.choice(len(p), size=count, p=rest/rest.sum() if rest.sum() else p))
    out = np.concatenate([drafted[np.arange(ahead) < kept[:, None]], last])
    return out, len(out)/count

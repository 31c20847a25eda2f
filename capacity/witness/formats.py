"""Formats of few bits as lists of all their values, rounding onto a list, scales of blocks, and narrow sums.

    e4m3 = FORMATS["e4m3"]
    values(e4m3)                      # the value of every code, 0 to 255
    nearest(x, e4m3), at_random(x, e4m3, rng)
    scaled(x, e4m3, 32, "e8m0")       # a scale for each block of 32: MXFP8

A witness: it decodes one code after the other from its bits, and knows no formula for a largest value or an error.
Everything is a float64, which holds each value and each product of two of them exactly.
"""
from functools import lru_cache, partial
from typing import NamedTuple

import numpy as np

from . import tiny

RULES = "ieee", "one nan", "no nan", "integer"


class Format(NamedTuple):
    """A sign, `exponent` bits, `mantissa` bits; an exponent of e bits e means 2**(e - bias).

    rule: what the codes of the highest exponent mean.  "ieee": infinity and NaN; "one nan": only the last code is NaN,
    the others are numbers; "no nan": all are numbers; "integer": two's complement, times 2**-bias.
    """
    name: str
    exponent: int
    mantissa: int
    bias: int
    rule: str

    @property
    def bits(self):
        return 1 + self.exponent + self.mantissa


FORMATS = {f.name: f for f in (
    Format("fp16", 5, 10, 15, "ieee"), Format("bf16", 8, 7, 127, "ieee"),
    Format("e5m2", 5, 2, 15, "ieee"), Format("e4m3", 4, 3, 7, "one nan"),
    Format("e3m2", 3, 2, 3, "no nan"), Format("e2m3", 2, 3, 1, "no nan"),
    Format("e2m1", 2, 1, 1, "no nan"), Format("int8", 0, 7, 6, "integer"))}


def value(code, f):
    """What one code of format f means: its bits are sign, exponent, mantissa."""
    if not 0 <= code < 2**f.bits:
        raise ValueError(f"code is {code!r}; allowed: 0 to {2**f.bits - 1} in {f.name}")
    if f.rule == "integer":
        return (code - 2**f.bits*(code >> f.mantissa))*2.0**-f.bias
    sign = -1.0 if code >> (f.exponent + f.mantissa) else 1.0
    e, m = code >> f.mantissa & 2**f.exponent - 1, code & 2**f.mantissa - 1
    top = e == 2**f.exponent - 1
    if f.rule == "ieee" and top:
        return sign*float("inf") if m == 0 else float("nan")
    if f.rule == "one nan" and top and m == 2**f.mantissa - 1:
        return float("nan")
    if e == 0:                                              # no leading one: the steps next to zero
        return sign*m*2.0**(1 - f.bias - f.mantissa)
    return sign*(2**f.mantissa + m)*2.0**(e - f.bias - f.mantissa)


@lru_cache(None)
def values(f):
    """The values of all codes of f, in the order of the codes."""
    return np.array([value(code, f) for code in range(2**f.bits)])


@lru_cache(None)
def marks(f):
    """The finite values of f that are not negative, from zero upwards: mark i is code i."""
    v = values(f)[:2**(f.bits - 1)]
    return v[np.isfinite(v)]


@lru_cache(None)
def turns(f):
    """Sizes above which the next mark is taken: midway, and a hair less where a tie must go up, to an even code."""
    v = marks(f)
    v = np.append(v, 2*v[-1] - v[-2])
    middle = (v[1:] + v[:-1])/2
    return np.where(np.arange(len(middle)) % 2, np.nextafter(middle, 0), middle)


@lru_cache(None)
def below(f):
    """How many turns lie below a size, looked up by the bits of its float64 that decide it.

    They are its exponent, one bit more behind the point than f has, and whether a further bit is set: a turn lies on a
    size without further bits or next to it.
    """
    low = (np.arange((2047 << f.mantissa + 1) + 1) << 51 - f.mantissa).view(float)      # the last is infinity
    return np.searchsorted(turns(f), np.stack([low, np.nextafter(low, np.inf)], 1)).ravel()


@lru_cache(None)
def reached(f, over):
    """The marks and what comes behind the last one: infinity where f has one and over allows it, else the last again."""
    if over not in ("infinity", "last"):
        raise ValueError(f"over is {over!r}; allowed: infinity, last")
    v = marks(f)
    return np.append(v, np.inf if over == "infinity" and f.rule == "ieee" else v[-1])


def nearest(x, f, over="infinity"):
    """x on the nearest mark of f, a tie to the even code; NaN stays.  over: "infinity", or "last" for the last mark.

    Formats without an infinity stop at their last mark either way.
    """
    x = np.asarray(x, float)
    bits, rest = np.fmin(np.abs(x), np.inf).view(np.int64), 51 - f.mantissa
    at = below(f)[2*(bits >> rest) + (bits & (1 << rest) - 1 > 0)]
    return np.where(x == x, np.copysign(reached(f, over)[at], x), np.nan)


def at_random(x, f, rng):
    """x on one of the two marks around it, the upper one as often as x is near to it: right on average.

    Beyond the last mark x stops there; NaN stays.
    """
    x, v = np.asarray(x, float), marks(f)
    size = np.minimum(np.abs(x), v[-1])
    at = np.minimum(np.searchsorted(v, size, side="right"), len(v) - 1)     # the next mark above
    low, high = v[at - 1], v[at]
    y = np.where(rng.random(x.shape)*(high - low) < size - low, high, low)
    return np.where(x == x, np.copysign(y, x), np.nan)


# ---- scales
SCALES = "float", "e8m0", "e8m0 up", "nvfp4"


def scaled(x, f, block=None, scale="float", rng=None):
    """x (..., n) in format f with one scale for each `block` numbers of the last axis (None: one for all), as floats.

    scale: "float": largest size over the last mark, not rounded.  "e8m0": a power of two as the MX specification takes
    it, the exponent of the largest size less that of the last mark; "e8m0 up": the next power of two that overflows
    nothing.  "nvfp4": the float, rounded to e4m3 behind one float for the whole tensor.  rng: rounds at random.
    """
    if scale not in SCALES:
        raise ValueError(f"scale is {scale!r}; allowed: {', '.join(SCALES)}")
    x = np.asarray(x, float)
    if block and x.shape[-1] % block:
        raise ValueError(f"block is {block}; allowed: a divisor of the last axis, {x.shape[-1]}")
    parts = x.reshape(-1, block or x.size)
    top, last = np.abs(parts).max(1, keepdims=True), marks(f)[-1]
    top = np.where(top == 0, last, top)
    if scale == "float":
        s = top/last
    elif scale == "e8m0":
        s = 2.0**(np.floor(np.log2(top)) - np.floor(np.log2(last)))
    elif scale == "e8m0 up":
        s = 2.0**np.ceil(np.log2(top/last))
    else:
        whole = top.max()/(last*marks(FORMATS["e4m3"])[-1])
        s = whole*nearest(top/last/whole, FORMATS["e4m3"])
        s = np.where(s == 0, whole*marks(FORMATS["e4m3"])[1], s)
    y = nearest(parts/s, f, "last") if rng is None else at_random(parts/s, f, rng)
    return (y*s).reshape(x.shape)


def hadamard(n):
    """The n by n matrix of entries +-n**-.5 whose rows are orthogonal: n is a power of two."""
    if n < 1 or n & n - 1:
        raise ValueError(f"n is {n!r}; allowed: a power of two")
    h = np.ones((1, 1))
    while len(h) < n:
        h = np.block([[h, h], [h, -h]])
    return h/np.sqrt(n)


def rotated(x, n, rng):
    """x (..., k n) with each n numbers turned by a Hadamard matrix of random signs, and the matrix: y @ matrix.T turns back."""
    turn = rng.choice([-1.0, 1.0], n)[:, None]*hadamard(n)
    return (np.asarray(x, float).reshape(-1, n) @ turn).reshape(np.shape(x)), turn


# ---- sums
def kept(x, bits, how="nearest"):
    """x with `bits` significant bits, the leading one counted; how: "nearest" or "cut", which drops the others."""
    m, e = np.frexp(x)
    m = np.ldexp(m, bits)
    return np.ldexp(np.rint(m) if how == "nearest" else np.trunc(m), e - bits)


def chain_sum(terms, bits, how="nearest"):
    """Terms (n, ...) added one by one to an accumulator of so many significant bits."""
    total = np.zeros(terms.shape[1:])
    for t in terms:
        total = kept(total + t, bits, how)
    return total


def tree_sum(terms, bits):
    """Terms (n, ...) added in pairs, the pairs in pairs, every sum rounded; n is a power of two."""
    while len(terms) > 1:
        terms = kept(terms[::2] + terms[1::2], bits)
    return terms[0]


def tensor_core(products, fraction=13, group=32, promote=None):
    """A sum as a Hopper tensor core is said to make it: `group` products (k, ...) and the sum so far, shifted to their
    largest exponent, cut to `fraction` bits behind the point, and added; the sum is cut to `fraction` bits, too.

    promote: after so many terms the sum goes to an fp32 accumulator and starts at zero.
    """
    total, out = np.zeros(products.shape[1:]), np.zeros(products.shape[1:])
    for start in range(0, len(products), group):
        part = products[start:start + group]
        top = np.maximum(np.abs(part).max(0), np.abs(total))
        step = 2.0**(np.frexp(np.where(top == 0, 1, top))[1] - 1 - fraction)
        total = kept((np.trunc(part/step).sum(0) + np.trunc(total/step))*step, fraction + 1, "cut")
        if promote and (start + group) % promote == 0:
            out, total = (out + total).astype(np.float32).astype(float), np.zeros_like(total)
    return out + total


# ---- a transformer in few bits
def rounded_linear(inputs=None, weights=None, gradients=None, turn=None):
    """`tiny.linear` whose three products see their matrices through these functions.

    A function gets a matrix whose last axis is summed over, and returns it rounded:
        forward  inputs(x) weights(w)     backward  gradients(dy) weights(w)     of the weights  inputs(x) gradients(dy)
    turn: an orthogonal matrix that turns each so many tokens of x and dy before the product of the weights.
    """
    of_x, of_w, of_dy = (f or (lambda x: x) for f in (inputs, weights, gradients))

    def turned(x):
        return x if turn is None else (x.reshape(-1, len(turn)) @ turn).reshape(x.shape)

    def linear(x, w, axes=1):
        rows = x.reshape(-1, int(np.prod(w.shape[:axes])))
        matrix = w.reshape(rows.shape[1], -1)

        def back(dy):
            d = dy.reshape(len(rows), -1)
            dx = of_dy(d) @ of_w(matrix).T
            return dx.reshape(x.shape), lambda: (of_x(turned(rows.T)) @ of_dy(turned(d.T)).T).reshape(w.shape)
        return (of_x(rows) @ of_w(matrix.T).T).reshape(*x.shape[:x.ndim - axes], *w.shape[axes:]), back
    return linear


def rounded_loss(w, tokens, targets, **products):
    """`tiny.loss` with the products of `rounded_linear`."""
    linear = rounded_linear(**products)
    return tiny.loss(w, tokens, targets, linear=linear, feed=partial(tiny.swiglu, linear=linear))


class Walks:
    """Random walks on tokens: each token has three successors, with shares 1/2, 1/3 and 1/6."""

    def __init__(self, vocab=32, seed=0):
        self.after = np.array([np.random.default_rng(seed + t).permutation(vocab)[:3] for t in range(vocab)])
        self.share = np.array([3, 2, 1])/6
        self.entropy = float(-(self.share*np.log(self.share)).sum())        # the least loss per token, nats

    def sample(self, rng, sequences, length):
        """Tokens and targets of so many walks."""
        walk, ends = [rng.integers(len(self.after), size=sequences)], np.cumsum(self.share)
        for which in np.searchsorted(ends/ends[-1], rng.random((length, sequences)), side="right"):
            walk.append(self.after[walk[-1], which])
        walk = np.stack(walk, 1)
        return walk[:, :-1], walk[:, 1:]


SIZE = dict(layers=1, hidden=32, heads=4, kv_heads=4, head_dim=8, ffn=64, vocab=32)


def train(steps=300, store=None, *, rate=1e-2, decay=1.0, sequences=4, length=16, seed=0, **products):
    """Adam on random walks, and the loss of the weights on 4,096 further tokens over the walks' entropy, in nats.

    store(w): how a weight is kept from step to step (None: in 64 bits); the moments are always wide.  products: as in
    `rounded_linear`.  The rate falls with the cosine from `rate` to zero over the last share `decay` of the steps.
    """
    keep, walks, rng = store or (lambda x: x), Walks(SIZE["vocab"]), np.random.default_rng(seed)
    w = {k: keep(v) for k, v in tiny.weights(seed=seed, **SIZE).items()}
    m, v = ({k: np.zeros_like(x) for k, x in w.items()} for _ in range(2))
    for i in range(1, steps + 1):
        tokens, targets = walks.sample(rng, sequences, length)
        grads = rounded_loss(w, tokens, targets, **products)[1](1/targets.size)
        left = min(1.0, (steps - i + 1)/(decay*steps))
        now = rate*(1 - np.cos(np.pi*left))/2
        for k, g in grads.items():
            m[k] = .9*m[k] + .1*g
            v[k] = .99*v[k] + .01*g*g
            w[k] = keep(w[k] - now*m[k]/(1 - .9**i)/(np.sqrt(v[k]/(1 - .99**i)) + 1e-8))
    tokens, targets = walks.sample(np.random.default_rng(999), 128, 32)
    loss = rounded_loss(w, tokens, targets, **products)[0]/targets.size
    return float(loss - walks.entropy), w

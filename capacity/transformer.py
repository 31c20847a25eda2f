"""Shapes of decoder-only models, and the exact counts that follow from them."""
import functools
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from . import specs


@dataclass(frozen=True, kw_only=True)
class Experts:
    """The sparse part of a Transformer: how many experts, how many per token, how wide.

    count   experts of a layer;  active  experts that each token visits;  ffn  width of one expert
    shared  experts of the same width that every token visits besides
    dense   leading layers that keep the dense feed-forward block of the Transformer
    bias    1 where the router carries one number per expert besides its matrix

    Fields may be numbers, arrays or symbols. A value that is too small raises ValueError naming it.
    """
    count: Any
    active: Any
    ffn: Any
    shared: Any = 0
    dense: Any = 0
    bias: Any = 0

    def __post_init__(self):
        specs.at_least(1, count=self.count, active=self.active, ffn=self.ffn)
        specs.at_least(0, shared=self.shared, dense=self.dense, bias=self.bias)


@dataclass(frozen=True, kw_only=True)
class Latent:
    """Multi-head latent attention: keys and values are read from one short vector per token.

    q_rank   width of the query bottleneck
    kv_rank  width of the key-value bottleneck
    rope     width of the rotated part of each query, and of the rotated key that all heads share

    The unrotated part of queries and keys, and the values, have the Transformer's head_dim.
    """
    q_rank: Any
    kv_rank: Any
    rope: Any

    def __post_init__(self):
        specs.at_least(1, q_rank=self.q_rank, kv_rank=self.kv_rank, rope=self.rope)


@dataclass(frozen=True, kw_only=True)
class Transformer(specs.Entry):
    """The shape of a decoder-only model: everything its parameter, FLOP and byte counts depend on.

    layers, hidden, heads, kv_heads, head_dim, ffn, vocab   the usual counts and widths
    gated      1 for a feed-forward block of three matrices (SwiGLU), 0 for two
    tied       1 where the output head is the embedding matrix
    norm       numbers per channel in a norm: 1 (RMSNorm), or 2 (LayerNorm: scale and shift)
    norms      norms over the hidden width in a layer
    head_norm  numbers in a layer's norms of queries and keys, 0 where there are none
    bias       1 where every linear layer has a bias
    qkv_bias   1 where only queries, keys and values have one
    positions  learned position vectors, 0 where positions are rotated into queries and keys
    window     keys that a query sees in layers with a sliding window;  windowed  how many layers have one
    further    layers that predict further tokens, each with the output head once more; not among the parameters
    experts    Experts of a sparse model;  latent  Latent where attention is multi-head latent
    context    tokens in a training sequence;  published  counts as the model's owner gives them

    Fields may be numbers, arrays or symbols. A value that is too small raises ValueError naming it.
    """
    layers: Any
    hidden: Any
    heads: Any
    kv_heads: Any
    head_dim: Any
    ffn: Any
    vocab: Any
    gated: Any = 1
    tied: Any = 0
    norm: Any = 1
    norms: Any = 2
    head_norm: Any = 0
    bias: Any = 0
    qkv_bias: Any = 0
    positions: Any = 0
    window: Any = None
    windowed: Any = 0
    further: Any = 0
    experts: Experts | None = None
    latent: Latent | None = None
    context: Any = field(default=None, repr=False)
    published: Mapping = field(default_factory=dict, repr=False, hash=False)

    def __post_init__(self):
        super().__post_init__()
        specs.at_least(1, layers=self.layers, hidden=self.hidden, heads=self.heads,
                       kv_heads=self.kv_heads, head_dim=self.head_dim, ffn=self.ffn,
                       vocab=self.vocab, norm=self.norm, context=self.context, window=self.window)
        specs.at_least(0, gated=self.gated, tied=self.tied, norms=self.norms, bias=self.bias,
                       head_norm=self.head_norm, qkv_bias=self.qkv_bias, positions=self.positions,
                       windowed=self.windowed, further=self.further)

    # ---- widths ------------------------------------------------------------------------------
    @property
    def query_width(self):
        """Numbers in the queries of one token over all heads: what the scores are summed over."""
        return self.heads*(self.head_dim + (self.latent.rope if self.latent else 0))

    @property
    def value_width(self):
        """Numbers in the outputs of one token's heads, which the output projection reads."""
        return self.heads*self.head_dim

    @property
    def attention_width(self):
        """Heads times head dimension: the mean width of attention's two products."""
        return self.heads*(self.head_dim + (self.latent.rope/2 if self.latent else 0))

    @property
    def kv_width(self):
        """Key-value heads times head dimension."""
        return self.kv_heads*self.head_dim

    @property
    def cache_width(self):
        """Numbers a cache keeps per token and layer: keys and values, or latent and rotated key."""
        return self.latent.kv_rank + self.latent.rope if self.latent else 2*self.kv_width

    # ---- one layer ---------------------------------------------------------------------------
    @property
    def attention_matmul(self):
        """Weights of the attention projections of one layer."""
        output = self.value_width*self.hidden
        if self.latent:
            queries = self.latent.q_rank*(self.hidden + self.query_width)
            keys_values = self.hidden*self.cache_width + self.latent.kv_rank*2*self.value_width
            return queries + keys_values + output
        return self.hidden*(self.query_width + 2*self.kv_width) + output

    @property
    def ffn_matmul(self):
        """Weights of one dense feed-forward block."""
        return (2 + self.gated)*self.hidden*self.ffn

    @property
    def expert_matmul(self):
        """Weights of one expert, 0 for a dense model."""
        return (2 + self.gated)*self.hidden*self.experts.ffn if self.experts else 0

    @property
    def layer_small(self):
        """Norms and biases of one layer."""
        qkv = self.query_width + 2*self.kv_width
        ranks = self.latent.q_rank + self.latent.kv_rank if self.latent else 0
        biases = qkv + self.hidden + (1 + self.gated)*self.ffn + self.hidden
        return (self.norms*self.norm*self.hidden + self.head_norm + ranks
                + self.bias*biases + self.qkv_bias*qkv)

    # ---- the model ---------------------------------------------------------------------------
    @property
    def embedding_params(self):
        """Parameters looked up rather than multiplied: vectors of tokens and learned positions."""
        return (self.vocab + self.positions)*self.hidden

    @property
    def params(self):
        """All parameters, exactly."""
        return self._layers(self.experts and self.experts.count) + self._rest()

    @property
    def active_params(self):
        """Parameters that one token uses, embedding included; all of them in a dense model."""
        return self._layers(self.experts and self.experts.active) + self._rest()

    @property
    def matmul_params(self):
        """Weights that multiply a token: active matrices and output head, no embedding lookup."""
        return self.layers_matmul + self.vocab*self.hidden

    @property
    def layers_matmul(self):
        """Weights of the layers that multiply a token: `matmul_params` without the output head."""
        return self._layers(self.experts and self.experts.active)

    def _layers(self, experts):
        """Matrices of all layers, this many routed experts counted in each sparse one."""
        if not self.experts:
            return self.layers*(self.attention_matmul + self.ffn_matmul)
        router = self.hidden*self.experts.count
        sparse = (experts + self.experts.shared)*self.expert_matmul + router
        return (self.layers*self.attention_matmul + self.experts.dense*self.ffn_matmul
                + (self.layers - self.experts.dense)*sparse)

    def _rest(self):
        """Everything but the matrices of the layers."""
        head = (1 - self.tied)*self.vocab*self.hidden
        small = self.layers*self.layer_small + self.norm*self.hidden
        if self.experts:
            small = small + (self.layers - self.experts.dense)*self.experts.count*self.experts.bias
        return self.embedding_params + head + small


def model(name):
    """The Transformer of this name, "llama3-70b"; ValueError with close ones if there is none."""
    return specs.pick(models(), name, "model")


@functools.cache
def models():
    """Every Transformer of specs/models.toml by its name."""
    def build(key, experts=None, latent=None, **shape):
        return Transformer(key=key, experts=experts and Experts(**experts),
                           latent=latent and Latent(**latent), **shape)
    return specs.Facts({key: build(key, **entry) for key, entry in specs.read("models").items()})

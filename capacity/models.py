"""Shapes of decoder-only models, and the exact counts that follow from them."""
import datetime
import functools
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from . import specs


@dataclass(frozen=True)
class Experts:
    """The sparse part of a Transformer: how many experts, how many per token, how wide.

    count   experts of a layer;  active  experts that each token visits;  ffn  width of one expert
    shared  experts of the same width that every token visits besides
    dense   leading layers that keep the dense feed-forward block of the Transformer
    bias    1 where the router carries one number per expert besides its matrix
    Raises ValueError for a count below its least value; fields may be numbers, arrays or symbols."""
    count: Any
    active: Any
    ffn: Any
    shared: Any = 0
    dense: Any = 0
    bias: Any = 0

    def __post_init__(self):
        specs.at_least(1, count=self.count, active=self.active, ffn=self.ffn)
        specs.at_least(0, shared=self.shared, dense=self.dense, bias=self.bias)


@dataclass(frozen=True)
class Latent:
    """Multi-head latent attention: keys and values are read from one short vector per token.

    q_rank   width of the query bottleneck;  kv_rank  width of the key-value bottleneck, what a cache keeps
    rope     width of the rotated part of a query and of the one rotated key all heads share
    Heads have `head_dim` for the unrotated part of queries and keys, and for values."""
    q_rank: Any
    kv_rank: Any
    rope: Any

    def __post_init__(self):
        specs.at_least(1, q_rank=self.q_rank, kv_rank=self.kv_rank, rope=self.rope)


@dataclass(frozen=True, kw_only=True)
class Transformer:
    """The shape of a decoder-only model: everything its parameter, FLOP and byte counts depend on.

    layers, hidden, heads, kv_heads, head_dim, ffn, vocab   the usual widths and counts
    gated       1 for a three-matrix feed-forward block (SwiGLU), 0 for two matrices
    tied        1 where the output head is the embedding matrix
    norm        numbers per channel in a norm: 1 (RMSNorm) or 2 (LayerNorm, scale and shift)
    norms       norms over the hidden width in a layer
    head_norm   numbers in the norms of queries and keys of a layer: 0, or 2*head_dim where heads are normed
    bias        1 where every linear layer has a bias;  qkv_bias  1 where only queries, keys and values have
    positions   learned position vectors, 0 where positions are rotated into queries and keys
    experts     Experts of a sparse model;  latent  Latent where attention is multi-head latent
    Fields may be numbers, arrays or symbols. A count below 1 raises ValueError naming it."""
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
    experts: Experts | None = None
    latent: Latent | None = None
    name: str = ""
    context: Any = field(default=None, repr=False)
    published: Mapping = field(default_factory=dict, repr=False)
    source: str = field(default="", repr=False)
    sources: Mapping = field(default_factory=dict, repr=False)
    read: datetime.date | None = field(default=None, repr=False)
    note: str = field(default="", repr=False)
    key: str = field(default="", repr=False)

    def __post_init__(self):
        specs.at_least(1, layers=self.layers, hidden=self.hidden, heads=self.heads, kv_heads=self.kv_heads,
                       head_dim=self.head_dim, ffn=self.ffn, vocab=self.vocab, norm=self.norm)
        specs.at_least(0, gated=self.gated, tied=self.tied, norms=self.norms, head_norm=self.head_norm, bias=self.bias,
                       qkv_bias=self.qkv_bias, positions=self.positions, context=self.context)

    # ---- widths ------------------------------------------------------------------------------
    @property
    def query_width(self):
        """Numbers of one token's queries over all heads; what a score is summed over."""
        return self.heads*(self.head_dim + (self.latent.rope if self.latent else 0))

    @property
    def value_width(self):
        """Numbers of one token's values over all query heads: the width that the output projection reads."""
        return self.heads*self.head_dim

    @property
    def attention_width(self):
        """Heads times head dimension: the mean width of the two products of attention, scores and weighted values."""
        return self.heads*(self.head_dim + (self.latent.rope/2 if self.latent else 0))

    @property
    def kv_width(self):
        """Key-value heads times head dimension."""
        return self.kv_heads*self.head_dim

    @property
    def cache_width(self):
        """Numbers that a cache keeps per token and layer: keys and values, or the latent vector and the rotated key."""
        return self.latent.kv_rank + self.latent.rope if self.latent else 2*self.kv_width

    # ---- parameters of one layer -------------------------------------------------------------
    @property
    def attention_matmul(self):
        """Weights of one layer's attention projections."""
        if self.latent:
            queries = self.latent.q_rank*(self.hidden + self.query_width)
            keys_values = self.hidden*self.cache_width + self.latent.kv_rank*2*self.heads*self.head_dim
            return queries + keys_values + self.value_width*self.hidden
        return self.hidden*(2*self.attention_width + 2*self.kv_width)

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
        """One layer's parameters that multiply no matrix: norms and biases (the biases of a dense feed-forward block)."""
        norms = self.norms*self.norm*self.hidden + self.head_norm
        norms = norms + (self.latent.q_rank + self.latent.kv_rank if self.latent else 0)
        qkv = self.query_width + 2*self.kv_width
        biases = self.bias*(qkv + self.hidden + (1 + self.gated)*self.ffn + self.hidden) + self.qkv_bias*qkv
        return norms + biases

    # ---- parameters of the model -------------------------------------------------------------
    @property
    def embedding_params(self):
        """Parameters looked up rather than multiplied: token and learned position vectors."""
        return (self.vocab + self.positions)*self.hidden

    def _layers_matmul(self, experts):
        """Weights of all layers when `experts` routed experts of each sparse layer count."""
        if not self.experts:
            return self.layers*(self.attention_matmul + self.ffn_matmul)
        router = self.hidden*self.experts.count
        sparse = (experts + self.experts.shared)*self.expert_matmul + router
        return (self.layers*self.attention_matmul + self.experts.dense*self.ffn_matmul
                + (self.layers - self.experts.dense)*sparse)

    def _rest(self):
        """Everything but the layers' matrices: embeddings, head, norms, biases."""
        router = (self.layers - self.experts.dense)*self.experts.count*self.experts.bias if self.experts else 0
        return (self.embedding_params + (1 - self.tied)*self.vocab*self.hidden + self.norm*self.hidden
                + self.layers*self.layer_small + router)

    @property
    def params(self):
        """All parameters, exactly."""
        return self._layers_matmul(self.experts and self.experts.count) + self._rest()

    @property
    def active_params(self):
        """Parameters that one token's forward pass uses, embedding included: all of them in a dense model."""
        return self._layers_matmul(self.experts and self.experts.active) + self._rest()

    @property
    def matmul_params(self):
        """Weights that multiply each token: active matrices and the output head, without the embedding lookup, norms and biases."""
        return self._layers_matmul(self.experts and self.experts.active) + self.vocab*self.hidden


def model(name):
    """The Transformer with this key, such as "llama3-70b"; an unknown key raises ValueError with the close ones."""
    return specs.pick(models(), name, "model")


@functools.cache
def models():
    """Every Transformer of specs/models.toml by its key."""
    def build(key, experts=None, latent=None, **entry):
        return Transformer(key=key, experts=experts and Experts(**experts), latent=latent and Latent(**latent), **entry)
    return {key: build(key, **entry) for key, entry in specs.read("models").items()}

"""The memory of one training step: bytes by named part, on the device and at the instant that need most.

Which tensors a layer keeps is a table (`activation_table`); what a parameter costs is a `Policy`; what a library keeps
beyond what the derivatives read is a `Kernels`. Formulas are those of `capacity.formulas`; this file only says which.
"""
import functools
from dataclasses import dataclass, field
from numbers import Real
from typing import Any

import numpy as np

from . import specs
from .algebra import ceil, floor, is_symbolic, maximum, minimum, where
from .formulas import (activation_bytes_per_layer, gathered_bytes, in_flight, in_flight_chunks, logit_bytes,
                       model_state_bytes, recompute_bytes, score_bytes_per_layer)
from .hardware import Accelerator, Cluster
from .layout import Layout
from .transformer import Transformer

PARTS = "weights", "grads", "optimizer", "gathered", "activations", "head", "working", "library"


@dataclass(frozen=True, kw_only=True)
class Policy:
    """Bytes of model state per parameter, and what they are.

    weight, grad, optimizer   bytes per parameter; the optimizer's include a master copy where there is one
    copy   bytes per parameter of the weights that a device computes with while it shards its own (zero 3)
    """
    name: str
    weight: Any
    grad: Any
    optimizer: Any
    copy: Any = 2
    note: str = ""

    def __post_init__(self):
        specs.at_least(0, weight=self.weight, grad=self.grad, optimizer=self.optimizer, copy=self.copy)

    @property
    def total(self):
        """Bytes per parameter of a model that nobody shares."""
        return self.weight + self.grad + self.optimizer


def policies():
    """The policies of the book by name, {name: Policy}."""
    return {p.name: p for p in (
        Policy(name="fp32", weight=4, grad=4, optimizer=8, copy=4, note="Adam in single precision: two moments"),
        Policy(name="mixed", weight=2, grad=2, optimizer=12, note="16-bit weights and gradients, fp32 master and moments"),
        Policy(name="megatron", weight=2, grad=4, optimizer=12, note="gradients accumulated in fp32, and nowhere else"),
        Policy(name="separate", weight=2, grad=6, optimizer=12, note="16-bit gradients and an fp32 sum of them"),
        Policy(name="fsdp", weight=4, grad=4, optimizer=8, note="fp32 shards that are the master; 16-bit copies of a layer at a time"),
        Policy(name="adam8", weight=2, grad=2, optimizer=6, note="fp32 master, moments of one byte"),
        Policy(name="momentum", weight=2, grad=4, optimizer=8, note="one fp32 moment, as Muon keeps; fp32 master"))}


@dataclass(frozen=True, kw_only=True)
class Kernels:
    """What a library keeps: the choices that the shape of a model leaves open.

    masks       True for dropout as in GPT-2: masks of one byte, and what they cover
    eager       True where SwiGLU runs as two operations, each of which keeps its output
    per_logit   bytes per logit when the backward pass begins
    per_element   (replicated, sharded) bytes per element of the residual stream instead of a table of tensors, or None
    working     True to count what the backward pass itself holds at the instant of the peak
    workspace   bytes that the library allocates once
    """
    name: str
    masks: bool = False
    eager: bool = False
    per_logit: Any = 10
    per_element: tuple | None = None
    working: bool = False
    workspace: Any = 0
    source: str = ""


def kernels():
    """The named Kernels, {name: Kernels}."""
    return {k.name: k for k in (
        Kernels(name="textbook"),
        Kernels(name="eager", eager=True),
        Kernels(name="34 bytes", per_element=(10, 24), per_logit=6, source="korthikanti2022"),
        Kernels(name="megatron", per_logit=2, working=True, workspace=64*2**20))}


@dataclass(frozen=True)
class Saved:
    """One tensor that a layer keeps for the backward pass.

    bytes    per token of a micro-batch, on a device that shares nothing
    shared   "sequence" where the tensor-parallel ranks share it if the layout is sequence-parallel, "tensor" where they
             always do
    """
    block: str
    name: str
    bytes: Any
    shared: str

    def on(self, layout):
        """Bytes per token on a device of the layout."""
        return self.bytes/(layout.tp if self.shared == "tensor" else layout.seq_ranks)


def activation_table(model, *, kernels="textbook", sparse=None, cp=1):
    """What one layer of the model keeps for the backward pass, tensor by tensor: a tuple of Saved.

    sparse   True for a layer with experts, False for one with the dense block; by default the kind that most layers are
    cp       context-parallel ranks; above 1 Megatron's kernels exchange heads for positions and keep more
    Bytes are per token; numbers and symbols go through alike.
    """
    kernels = _named(kernels, globals()["kernels"](), Kernels, "kernels")
    if not isinstance(model, Transformer):
        raise TypeError(f'model = {model!r}; allowed: a Transformer, such as model("llama3-70b")')
    sparse = bool(model.experts) if sparse is None else sparse
    if sparse and not model.experts:
        raise ValueError(f"{model.name} has no experts, and sparse = True asks for a layer with them")
    h, out, single = model.hidden, [], 4*model.norm

    def keep(block, name, nbytes, shared):
        out.append(Saved(block, name, nbytes, shared))

    keep("attention", "layer input", 2*h, "sequence")
    keep("attention", "norm output", 2*h, "sequence")
    keep("attention", "norm statistics", single, "sequence")
    if latent := model.latent:
        keep("attention", "query latent", 2*latent.q_rank, "sequence")
        keep("attention", "query latent, normed", 2*latent.q_rank, "sequence")
        keep("attention", "key-value latent", 2*latent.kv_rank, "sequence")
        keep("attention", "key-value latent, normed", 2*latent.kv_rank, "sequence")
        keep("attention", "latent norms' statistics", 2*single, "sequence")
        keep("attention", "queries", 2*model.query_width, "tensor")
        keep("attention", "keys", 2*model.query_width, "tensor")
        keep("attention", "values", 2*model.value_width, "tensor")
    else:
        keep("attention", "queries", 2*model.query_width, "tensor")
        keep("attention", "keys", 2*model.kv_width, "tensor")
        keep("attention", "values", 2*model.kv_width, "tensor")
    keep("attention", "head outputs", 2*model.value_width, "tensor")
    keep("attention", "log-sum-exp", 4*model.heads, "tensor")
    if kernels.masks:
        keep("attention", "dropout mask", h, "sequence")

    keep("feed-forward", "block input", 2*h, "sequence")
    keep("feed-forward", "norm output", 2*h, "sequence")
    keep("feed-forward", "norm statistics", single, "sequence")
    per = 1 + model.gated                                       # matrices before the non-linearity
    if sparse:
        e = model.experts
        keep("feed-forward", "router input", 4*h, "sequence")
        keep("feed-forward", "router probabilities", 4*e.count, "sequence")
        keep("feed-forward", "routed copies", 2*e.active*h, "sequence")
        keep("feed-forward", "experts: into the non-linearity", 2*per*e.active*e.ffn, "sequence")
        keep("feed-forward", "experts: out of it", 2*e.active*e.ffn, "sequence")
        if e.shared:
            keep("feed-forward", "shared experts: into the non-linearity", 2*per*e.shared*e.ffn, "tensor")
            keep("feed-forward", "shared experts: out of it", 2*e.shared*e.ffn, "tensor")
    else:
        keep("feed-forward", "into the non-linearity", 2*per*model.ffn, "tensor")
        if kernels.eager and model.gated:
            keep("feed-forward", "gate after its function", 2*model.ffn, "tensor")
        keep("feed-forward", "out of the non-linearity", 2*model.ffn, "tensor")
    if kernels.masks:
        keep("feed-forward", "dropout mask", h, "sequence")
    return tuple(out)


@dataclass(frozen=True)
class Instant:
    """Bytes by part on one stage at one instant, {part: bytes}."""
    stage: Any
    name: str
    parts: dict

    @property
    def total(self):
        """Bytes altogether."""
        return sum(self.parts.values())


@dataclass(frozen=True)
class Footprint:
    """Bytes of one training step on the device that needs most.

    weights, grads, optimizer   the model state, as shared as the layout says
    gathered      whole layers on a device that shards its weights, and the gradient that leaves
    activations   what the layers keep for the backward pass, all micro-batches in flight
    head          the last norm and the logits
    working       what the backward pass holds besides, where the kernels say that it is counted
    library       workspaces and buffers that stay

    `instants` are all that were compared: each stage that may need most, when its first backward pass begins.
    """
    instants: tuple = field(repr=False)

    def __getattr__(self, name):
        if name in PARTS:
            return self.parts[name]
        raise AttributeError(name)

    @property
    def total(self):
        """Bytes of the greatest instant."""
        return functools.reduce(maximum, [instant.total for instant in self.instants])

    @functools.cached_property
    def parts(self):
        """Bytes by part at the greatest instant, {part: bytes}."""
        best, *others = self.instants
        parts, top = best.parts, best.total
        for other in others:
            higher = other.total > top
            parts = {name: where(higher, other.parts[name], parts[name]) for name in PARTS}
            top = maximum(top, other.total)
        return parts

    @property
    def worst(self):
        """The greatest Instant; of numbers, not of arrays and symbols."""
        return max(self.instants, key=lambda instant: instant.total)

    @property
    def stages(self):
        """Bytes of each stage at its greatest instant, {stage: bytes}; of numbers."""
        out = {}
        for instant in self.instants:
            out[instant.stage] = max(out.get(instant.stage, 0), instant.total)
        return out

    def fits(self, device, share=1):
        """Whether it fits into this share of a device's memory: True or False, an array, or a condition."""
        if not isinstance(device, Accelerator):
            raise TypeError(f'device = {device!r}; allowed: an Accelerator, such as accelerator("h100-sxm")')
        return self.total <= share*device.memory


def memory(model, cluster, layout, seq_len, *, policy="mixed", kernels="textbook", units=2):
    """The Footprint of a training step: model on cluster under layout, in sequences of seq_len tokens.

    policy    name or Policy: bytes of state per parameter
    kernels   name or Kernels: which tensors a layer keeps, and what the library adds
    units     whole layers that a device with sharded weights holds at a time

    Stages hold consecutive layers; where they do not divide, the stage with one layer more is taken to be the one that
    needs most. Experts are whole on a device (`ep` ranks share them) and routing is balanced.
    Numbers, arrays and symbols go through alike. TypeError for a model, cluster or layout that is none; ValueError for an
    unknown name, a sequence below one token, and an illegal layout, with the sentences of `Layout.check`.
    """
    for name, value, kind, example in (("model", model, Transformer, 'model("llama3-70b")'),
                                       ("cluster", cluster, Cluster, 'cluster("dgx-h100", 512)'),
                                       ("layout", layout, Layout, "Layout(batch=512, dp=64, tp=8)")):
        if not isinstance(value, kind):
            raise TypeError(f"{name} = {value!r}; allowed: a {kind.__name__}, such as {example}")
    specs.at_least(1, seq_len=seq_len)
    layout.demand_legal(model, cluster)
    policy = _named(policy, policies(), Policy, "policy")
    kernels = _named(kernels, globals()["kernels"](), Kernels, "kernels")
    lay, e = layout, model.experts
    y = lay.microbatch*seq_len/lay.cp                           # tokens of a micro-batch on one device
    pieces = lay.pp*lay.chunks
    piece = ceil(model.layers/pieces)                           # layers of the fullest piece
    fullest = piece*lay.chunks
    dense_layers = e.dense if e else model.layers
    end = model.vocab*model.hidden/lay.tp                             # one matrix of the vocabulary
    ranks = dict(weight_ranks=lay.weight_ranks, grad_ranks=lay.grad_ranks, optimizer_ranks=lay.optimizer_ranks)
    expert_ranks = {name: lay.expert_replicas if lay.zero >= least else 1 for name, least in
                    (("weight_ranks", 3), ("grad_ranks", 2), ("optimizer_ranks", 1))}
    shared, routed = _layer_params(model, lay)
    stored = 2*y*model.hidden/lay.seq_ranks                     # the input of a layer
    layer = {sparse: _layer(model, kernels, lay, y, seq_len, sparse) for sparse in ((False, True) if e else (False,))}

    def kept(nbytes):
        return lay.recompute*stored + (1 - lay.recompute)*nbytes

    def instant(stage):
        first, last = _is(stage, 0), _is(stage, lay.pp - 1)
        if e:
            before = minimum(maximum(dense_layers - stage*piece, 0), piece)
            dense, sparse = before, fullest - before
        else:
            dense, sparse = fullest, 0
        ends = first*end + last*(1 - model.tied*first)*end + first*model.positions*model.hidden
        own = dense*shared[False] + (sparse*shared[True] if e else 0) + ends + last*model.norm*model.hidden
        theirs = sparse*routed if e else 0

        def state(weight=0, grad=0, optimizer=0):
            mine = model_state_bytes(own, weight, grad, optimizer, **ranks)
            return mine + model_state_bytes(theirs, weight, grad, optimizer, **expert_ranks) if e else mine

        one = in_flight(lay.microbatches, lay.pp, stage)
        several = in_flight_chunks(lay.microbatches, lay.pp, lay.chunks, stage)/lay.chunks
        copies = where(lay.chunks > 1, several, one)
        keeps = dense*kept(layer[False]) + (sparse*kept(layer[True]) if e else 0)
        again = lay.recompute*functools.reduce(maximum, layer.values())
        gathered = 0
        if lay.zero >= 2:
            unit = (shared[True] + routed if e else shared[False])
            gathered = gathered_bytes(unit, policy.copy if lay.zero == 3 else 0, policy.grad, units=units)
        loss = last*(logit_bytes(y, model.vocab, lay.tp, per_logit=kernels.per_logit)
                     + (0 if kernels.per_element else 2*stored + 4*model.norm*y/lay.seq_ranks))
        return Instant(stage, "the backward pass begins", dict(
            weights=state(weight=policy.weight), grads=state(grad=policy.grad), optimizer=state(optimizer=policy.optimizer),
            gathered=gathered, activations=recompute_bytes(copies, 1, keeps, again), head=loss, working=0*y,
            library=kernels.workspace + 0*y))

    return Footprint(tuple(instant(stage) for stage in _stages(lay, dense_layers if e else 0, piece)))


def _named(value, known, kind, what):
    return value if isinstance(value, kind) else specs.pick(known, value, what)


def _is(stage, which):
    """1 where the two are the same, else 0."""
    if not is_symbolic(stage) and not is_symbolic(which):
        return np.where(np.equal(stage, which), 1, 0) if isinstance(which, np.ndarray) or isinstance(stage, np.ndarray) \
            else int(stage == which)
    return where((which - stage > 0) | (stage - which > 0), 0, 1)


def _stages(layout, dense, piece):
    """The stages that may need most: all of a pipeline of numbers; else the first, the last, and those where dense layers end."""
    if isinstance(layout.pp, Real) and isinstance(layout.chunks, Real):
        return range(int(layout.pp))
    last = layout.pp - 1
    turn = [minimum(floor(dense/piece), last), minimum(ceil(dense/piece), last)] if dense else []
    return [0, *turn, last]


def _layer_params(model, lay):
    """Parameters of a layer on one tensor rank, {sparse: without its routed experts}, and those of the routed experts."""
    h, e = model.hidden, model.experts
    if latent := model.latent:
        down = h*(latent.q_rank + model.cache_width)            # every rank has the bottlenecks
        attention = down + (model.attention_matmul - down)/lay.tp
    else:
        keys_values = 2*h*model.kv_width
        attention = ((model.attention_matmul - keys_values)/lay.tp + keys_values/minimum(lay.tp, model.kv_heads))
    shared = {False: attention + model.ffn_matmul/lay.tp + model.layer_small}
    if not e:
        return shared, 0
    shared[True] = (attention + e.shared*model.expert_matmul/lay.tp + h*e.count + e.count*e.bias + model.layer_small)
    return shared, e.count*model.expert_matmul/lay.ep


def _layer(model, kernels, lay, y, seq_len, sparse):
    """Bytes that one layer keeps on one device."""
    scores = lay.scores*score_bytes_per_layer(y, seq_len, model.heads, lay.tp)
    if kernels.per_element:
        replicated, sharded = kernels.per_element
        return scores + activation_bytes_per_layer(y, model.hidden, lay.tp, lay.seq_ranks, replicated=replicated, sharded=sharded)
    return scores + y*sum(saved.on(lay) for saved in activation_table(model, kernels=kernels, sparse=sparse, cp=lay.cp))

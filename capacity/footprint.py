"""The memory of one training step: bytes by named part, on the device and at the instant that need most.

Which tensors a layer keeps is a table (`activation_table`); what a parameter costs is a `Policy`; what a library keeps
beyond what the derivatives read is a `Kernels`. Formulas are those of `capacity.formulas`; this file only says which.
"""
import csv
import functools
import io
from dataclasses import dataclass, field
from numbers import Real
from typing import Any

from . import specs
from .algebra import ceil, floor, larger, maximum, minimum, where
from .formulas import (activation_bytes_per_layer, gated_working_bytes, gathered_bytes, in_flight_chunks,
                       logit_bytes, model_state_bytes, padded_copies, recompute_bytes, routed_working_bytes,
                       score_bytes_per_layer, split_backward_activations, traffic_buffer_bytes)
from .hardware import Accelerator, Cluster
from .layout import Layout
from .transformer import Transformer
from .units import show

HEADS = "head outputs", "head outputs, exchanged", "log-sum-exp"          # what attention hands on to its backward pass
PARTS = "weights", "grads", "optimizer", "gathered", "activations", "head", "working", "placeholders", "workspace", "buffers"


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


@functools.cache
def policies():
    """The policies of the book by name, {name: Policy}."""
    return specs.Facts({p.name: p for p in (
        Policy(name="fp32", weight=4, grad=4, optimizer=8, copy=4, note="Adam in single precision: two moments"),
        Policy(name="mixed", weight=2, grad=2, optimizer=12, note="16-bit weights and gradients, fp32 master and two moments"),
        Policy(name="megatron", weight=2, grad=4, optimizer=12, note="gradients summed in fp32, and kept nowhere else"),
        Policy(name="separate", weight=2, grad=6, optimizer=12, note="16-bit gradients, and an fp32 sum of them"),
        Policy(name="fsdp", weight=4, grad=4, optimizer=8, note="fp32 shards that are the master; 16-bit copies of a layer at a time"),
        Policy(name="fp8", weight=4, grad=4, optimizer=12, note="Transformer Engine on Hopper: 16-bit weights, and kept over the "
               "micro-batches in eight bits each twice, along rows and along columns; gradients summed in fp32"),
        Policy(name="adam8", weight=2, grad=2, optimizer=6, note="fp32 master, two moments of one byte"),
        Policy(name="momentum", weight=2, grad=4, optimizer=8, note="fp32 master and one moment, as Muon keeps"))})


@dataclass(frozen=True, kw_only=True)
class Kernels:
    """What a library keeps: the choices that the shape of a model leaves open.

    masks        True for dropout as in GPT-2: two masks of one byte per element
    eager        True where SwiGLU runs as two operations, each of which keeps what it reads
    per_logit    bytes per logit when the backward pass begins
    root         bytes of the number that a norm keeps of a token
    per_token    bytes a token that live from the first layer to the loss: numbers of tokens and targets, a loss's log-sum
    per_element  (replicated, sharded) bytes per element of the residual stream instead of a table of tensors, or None
    cheap, outputs   of these, the outputs of norms and of the non-linearity, and the outputs of attention's heads
    capacity     what an expert takes over its even share, rounded up to whole tokens; None for an even share, unpadded
    router       bytes per token and expert that the router keeps
    exchange     True where context-parallel ranks exchange heads for positions, and keep the heads' outputs twice
    working      True to count what the passes hold at the instant of the peak besides what was saved
    placeholders   True where gradients of weights are summed in place, and a 16-bit tensor of each different shape of
                 weight, allocated once, is handed back instead of them
    workspace    bytes of one workspace of matrix products; streams, as many of them for experts' grouped products
    head_workspace   bytes of the framework's own workspaces, which the output head uses
    """
    name: str
    masks: bool = False
    eager: bool = False
    per_logit: Any = 10
    root: Any = 4
    per_token: Any = 0
    per_element: tuple | None = None
    cheap: tuple = (0, 0)
    outputs: tuple = (0, 0)
    capacity: Any = None
    router: Any = 4
    exchange: bool = False
    working: bool = False
    placeholders: bool = False
    workspace: Any = 0
    streams: Any = 0
    head_workspace: Any = 0
    source: str = "derived"
    note: str = ""


@functools.cache
def kernels():
    """The named Kernels of the book, {name: Kernels}.

    textbook  an operation saves what its derivative reads, and nobody holds anything else; fused attention and SwiGLU
    eager     the same with SwiGLU in two operations
    dropout   the same with dropout masks
    34 bytes  of each element of the residual stream, whatever the model: chapter 6's estimate. Two outputs of norms are
              4 of the 10 that are not cut, the GeLU's output is 8 of the 24 that are, and that of the heads 2
    ledger    the small transformer of `witness.allocator` with fused kernels: roots in 16 bits, two numbers of a token in 64
    megatron  Megatron-LM 23e00ed096 with Transformer Engine 2.11 and PyTorch 2.10, without recomputation
    """
    return specs.Facts({k.name: k for k in (
        Kernels(name="textbook"), Kernels(name="eager", eager=True), Kernels(name="dropout", masks=True),
        Kernels(name="34 bytes", per_element=(10, 24), cheap=(4, 8), outputs=(0, 2), per_logit=6, source="korthikanti2022"),
        Kernels(name="ledger", root=2, per_token=8 + 8 + 4),
        Kernels(name="megatron", per_logit=2, capacity=1, router=20, exchange=True, working=True, placeholders=True,
                workspace=32*2**20, streams=4, head_workspace=2*(2*2**22 + 16*2**13), source="simumax2026",
                note="The fused cross-entropy writes the logits' gradient over the logits. Router: two fp32 softmaxes, 16-bit "
                     "probabilities, two masks, a map of 32-bit rows there and back. Workspaces: 32 MiB of Transformer "
                     "Engine from Hopper on; PyTorch's default, 2 of 4 MiB and 16 of 8 KiB, in each of two threads."))})


@dataclass(frozen=True, kw_only=True)
class Buffers:
    """Where weights and gradients are while they travel, in bytes per parameter.

    kept      of all gradients of a device, in buckets that live as long as the gradients do
    gather    of a whole unit, a layer or one end of the model: what an all-gather fills before it is copied to the weights
    scatter   of a whole unit: what a reduce-scatter is given, a copy of the gradient; there is none while the head runs
    """
    name: str
    kept: Any = 0
    gather: Any = 0
    scatter: Any = 0
    note: str = ""

    def __post_init__(self):
        specs.at_least(0, kept=self.kept, gather=self.gather, scatter=self.scatter)


@functools.cache
def buffers():
    """The named Buffers of the book, {name: Buffers}."""
    return specs.Facts({b.name: b for b in (
        Buffers(name="none", note="gradients and weights travel from where they are"),
        Buffers(name="ddp", kept=2, note="DistributedDataParallel with 16-bit gradients; 0 with gradient_as_bucket_view"),
        Buffers(name="passing", scatter=2, note="a unit's 16-bit gradient is copied, sent, and gone before the next"),
        Buffers(name="fsdp", gather=2, scatter=4, note="fully_shard, 16-bit weights, reduce_dtype in 32"))})


@dataclass(frozen=True)
class Saved:
    """One tensor that a layer keeps for the backward pass.

    bytes    per token of a micro-batch, on a device that shares nothing
    shared   "tensor" where the tensor-parallel ranks share it, "sequence" where they do so only if the layout is
             sequence-parallel
    cheap    True where it can be made again, element by element, from what else is kept
    """
    block: str
    name: str
    bytes: Any
    shared: str
    cheap: bool = False

    def on(self, layout):
        """Bytes per token on a device of the layout."""
        return self.bytes/(layout.tp if self.shared == "tensor" else layout.seq_ranks)


def activation_table(model, *, kernels="textbook", sparse=None, copies=None, cp=1):
    """What one layer of the model keeps for the backward pass, tensor by tensor: a tuple of Saved.

    sparse   True for a layer with experts, False for one with the dense block; by default the kind that most layers are
    copies   of a token that experts take, by default as many as the token visits
    cp       context-parallel ranks, of which some kernels keep more
    Bytes are per token. Numbers and symbols go through alike.
    """
    kernels = _named(kernels, globals()["kernels"](), Kernels, "kernels")
    _demand(Transformer, model=model)
    sparse = bool(model.experts) if sparse is None else sparse
    if sparse and not model.experts:
        raise ValueError(f"sparse = {sparse!r}, and {model.name or 'the model'} has no experts; allowed: False")
    if kernels.per_element:
        raise ValueError(f"kernels = {kernels.name!r} are bytes per element; allowed: kernels that name tensors")
    attention = [*_norm(model, kernels, "layer input"), *_heads(model, kernels, cp)]
    block = [*_norm(model, kernels, "block input"), *(_experts(model, kernels, copies) if sparse else _dense(model, kernels))]
    mask = [("dropout mask", model.hidden, "sequence")] if kernels.masks else []
    return tuple([Saved("attention", *row) for row in attention + mask]
                 + [Saved("feed-forward", *row) for row in block + mask])


def _norm(model, kernels, name):
    return ((name, 2*model.hidden, "sequence"), ("norm output", 2*model.hidden, "sequence", True),
            ("norm statistics", kernels.root*model.norm, "sequence"))


def _heads(model, kernels, cp):
    """Rows of what lies between the norm and the output projection."""
    key_width = model.kv_width
    if latent := model.latent:
        key_width = model.query_width                           # expanded: every head has its own, rotated part and all
        for name, rank in (("query bottleneck", latent.q_rank), ("key-value bottleneck", latent.kv_rank)):
            yield name, 2*rank, "sequence"
            yield f"{name}, normed", 2*rank, "sequence", True
        yield "bottlenecks' norm statistics", 2*kernels.root*model.norm, "sequence"
    yield "queries", 2*model.query_width, "tensor"
    yield "keys", 2*key_width, "tensor"
    yield "values", 2*(model.value_width if latent else model.kv_width), "tensor"
    yield "head outputs", 2*model.value_width, "tensor"
    if kernels.exchange:
        yield "head outputs, exchanged", minimum(cp - 1, 1)*2*model.value_width, "tensor"
    yield "log-sum-exp", 4*model.heads, "tensor"


def _dense(model, kernels):
    """Rows of a dense feed-forward block behind its norm."""
    yield "into the non-linearity", 2*(1 + model.gated)*model.ffn, "tensor"
    if kernels.eager:
        yield "gate behind its function", 2*model.gated*model.ffn, "tensor", True
    yield "out of the non-linearity", 2*model.ffn, "tensor", True


def _experts(model, kernels, copies):
    """Rows of router, routed and shared experts behind their norm."""
    e = model.experts
    copies = e.active if copies is None else copies
    yield "router", kernels.router*e.count, "sequence"
    yield "copies", 2*copies*model.hidden, "sequence"
    yield "copies, into the non-linearity", 2*(1 + model.gated)*copies*e.ffn, "sequence"
    yield "copies, out of the non-linearity", 2*copies*e.ffn, "sequence", True
    yield "shared experts, into the non-linearity", 2*(1 + model.gated)*e.shared*e.ffn, "tensor"
    yield "shared experts, out of the non-linearity", 2*e.shared*e.ffn, "tensor", True


@dataclass(frozen=True)
class Instant:
    """Bytes by part on one stage at one instant; what is not there is 0.

    name   "the last layer": the last layer of the stage runs, and what all layers of all micro-batches in flight saved
           is there;  "the head": the backward pass begins at the logits
    """
    stage: Any
    name: str
    parts: specs.Facts

    @property
    def total(self):
        """Bytes altogether."""
        return sum(self.parts.values())


@dataclass(frozen=True)
class Footprint:
    """Bytes of one training step on the device that needs most, at the instant at which it does.

    parts         {part: bytes}, with these parts, each an attribute too:
    weights, grads, optimizer   the model state, as shared as the layout says
    gathered      whole weights on a device that shards them, and a gradient before it is scattered
    activations   what the layers keep for the backward pass, all micro-batches in flight
    head          input and output of the last norm, logits
    working       what the passes hold besides, where the kernels say that it is counted
    placeholders  tensors that stand for gradients of weights, where the library has them
    workspace     workspaces that stay
    buffers       in which weights and gradients travel, where the caller says that there are any
    instants      all that were compared: each stage that may need most, at each Instant that may be the greatest
    """
    instants: tuple = field(repr=False)

    def __getattr__(self, name):
        if name in PARTS:
            return self.parts[name]
        raise AttributeError(f"a Footprint has no {name!r}; parts: {', '.join(PARTS)}")

    @functools.cached_property
    def total(self):
        """Bytes of the greatest instant."""
        return functools.reduce(larger, [instant.total for instant in self.instants])

    @functools.cached_property
    def parts(self):
        """Bytes by part at the greatest instant, {part: bytes}."""
        best, *others = self.instants
        parts, top = best.parts, best.total
        for other in others:
            higher = other.total > top
            parts = {name: parts[name] if parts[name] is other.parts[name] else where(higher, other.parts[name], parts[name])
                     for name in PARTS}
            top = larger(top, other.total)
        return specs.Facts(parts)

    @property
    def worst(self):
        """The greatest Instant; of numbers, not of arrays and symbols."""
        return max(self.instants, key=lambda instant: instant.total)

    @property
    def stages(self):
        """Bytes of each stage at its greatest instant, {stage: bytes}; of numbers."""
        return {stage: max(instant.total for instant in self.instants if instant.stage == stage)
                for stage in sorted({instant.stage for instant in self.instants})}

    def to_dict(self):
        """Its bytes as plain numbers: total, parts, and each stage's at its greatest instant; of numbers."""
        return dict(memory=float(self.total), instant=self.worst.name, parts=floats(self.parts),
                    stages={int(stage): float(nbytes) for stage, nbytes in self.stages.items()})

    def to_csv(self):
        """The parts as the text of a CSV file, a row each; of numbers."""
        return csv_text(("part", "bytes"), floats(self.parts))

    def _repr_html_(self):
        return shown("part", "B", self.parts, self.total)

    def fits(self, device, share=1):
        """Whether it fits into this share of a device's memory: True or False, an array, or a condition on symbols.

        ValueError for a share that is a number, and not above 0 and at most 1.
        """
        _demand(Accelerator, device=device)
        if isinstance(share, Real) and not 0 < share <= 1:
            raise ValueError(f"share = {share!r}; allowed: above 0 and at most 1")
        return self.total <= share*device.memory


def floats(values):
    """The entries that are not 0, as plain numbers."""
    return {name: float(value) for name, value in values.items() if value}


def csv_text(head, entries):
    """A dict as the text of a CSV file."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([head, *entries.items()])
    return text.getvalue()


def shown(name, unit, entries, total, title=""):
    """HTML of the entries that are not 0, greatest first, with their shares; None, so that text is shown, where they are no numbers."""
    if not all(isinstance(value, Real) for value in (*entries.values(), total)):
        return None
    from .pictures.tables import table
    rows = [[key, show(value, unit), f"{value/total:.1%}"] for key, value in sorted(floats(entries).items(), key=lambda x: -x[1])]
    return table([name, "size" if unit == "B" else "time", "share"], [*rows, ["altogether", show(total, unit), "100.0%"]],
                 title=title)._repr_html_()


def memory(model, cluster, layout, seq_len, *, policy="mixed", kernels="textbook", buffers="none", units=2):
    """The Footprint of a training step: model on cluster under layout, in sequences of seq_len tokens.

    policy    name or Policy: bytes of state per parameter, see `policies`
    kernels   name or Kernels: which tensors a layer keeps, and what a library adds, see `kernels`
    buffers   name or Buffers: copies of what travels, see `buffers`; none by default, since they are a library's habit
              and not the layout's: Megatron-LM sends its fp32 gradients from where they are, DDP keeps buckets
    units     whole layers that a device with sharded weights holds at a time

    Stages hold consecutive layers; where these do not divide, the stage that needs most has one more than its share.
    Experts are whole on a device (`ep` ranks share them), and routing is balanced; where `shards` says that there are
    copies, the ranks of a copy that hold the same experts share these. What one layer makes again counts, all
    of it at once, at the last layer, not at the head.
    Of a share `recompute` of the layers the input is kept; of the others the table, in a share `cheap_recompute` of them
    without its cheap rows. Stored scores are kept where attention is not done again, by `attention_recompute`; where the
    layer is and attention is not, so are the outputs of its heads.
    Numbers, arrays and symbols go through alike. TypeError for a model, cluster or layout that is none; ValueError for an
    unknown name, a sequence below one token, and an illegal layout, with the sentences of `Layout.check`.
    """
    _demand(Transformer, model=model)
    _demand(Cluster, cluster=cluster)
    _demand(Layout, layout=layout)
    specs.at_least(1, seq_len=seq_len)
    layout.demand_legal(model, cluster)
    policy = _named(policy, policies(), Policy, "policy")
    kernels = _named(kernels, globals()["kernels"](), Kernels, "kernels")
    buffers = _named(buffers, globals()["buffers"](), Buffers, "buffers")
    *stages, last = (_Stage(model, layout, seq_len, policy, kernels, buffers, units, stage) for stage in _stages(model, layout))
    ends = () if _is(layout.schedule, 0) else stages[:1]           # of a folded pipeline, the head is on the first
    return Footprint((*(stage.last_layer() for stage in stages[len(ends):]),
                      *(instant for stage in (*ends, last) for instant in stage.instants())))


def _piece(model, layout):
    """Layers of the fullest piece of a pipeline."""
    return ceil(model.layers/(layout.pp*layout.chunks))


def _stages(model, layout):
    """The stages that may need most: all of a pipeline of numbers, else the first, the last and where dense layers end."""
    if isinstance(layout.pp, Real):
        return range(int(layout.pp))
    last = layout.pp - 1
    dense = model.experts.dense/_piece(model, layout) if model.experts else 0
    return [0, minimum(floor(dense), last), minimum(ceil(dense), last), last] if model.experts else [0, last]


class _Stage:
    """What one stage of a pipeline holds. The arguments are those of `memory`; dense, sparse: its layers of each kind."""

    def __init__(self, model, lay, seq_len, policy, kernels, buffers, units, stage):
        self.model, self.lay, self.seq_len, self.policy, self.kernels = model, lay, seq_len, policy, kernels
        self.buffers, self.units, self.stage = buffers, units, stage
        self.first, self.last = 1 - minimum(stage, 1), 1 - minimum(lay.pp - 1 - stage, 1)       # 1 where it is, else 0
        if not _is(lay.schedule, 0):
            self.last = where(lay.schedule > 2, self.first, self.last)
        self.tokens = lay.microbatch*seq_len/lay.cp             # of a micro-batch, on one device
        self.stored = 2*self.tokens*model.hidden/lay.seq_ranks  # the input of a layer, 16 bits
        self.end = model.vocab*model.hidden/lay.tp              # the matrix at one end of the model
        piece, e = _piece(model, lay), model.experts
        self.dense = minimum(maximum(e.dense - stage*piece, 0), piece) if e else piece*lay.chunks
        self.sparse = piece*lay.chunks - self.dense
        self.copies = e and e.active
        if e and kernels.capacity is not None:
            self.copies = padded_copies(self.tokens/lay.seq_ranks, e.active, e.count, factor=kernels.capacity)

    def last_layer(self):
        """The Instant at which all layers have saved what they save."""
        return Instant(self.stage, "the last layer", self.parts(layer=1))

    def instants(self):
        """Of the last stage: the head, and where it may need more, the last layer."""
        lay = self.lay
        if self.kernels.working or not all(_is(x, 0) for x in (
                lay.recompute, lay.cheap_recompute, lay.scores*lay.attention_again, self.buffers.scatter)):
            yield self.last_layer()
        yield Instant(self.stage, "the head", self.parts(layer=0))

    def parts(self, layer):
        """Bytes by part, with the last layer's own needs or with the head's."""
        k = self.kernels
        return specs.Facts(
            **self.held, activations=self.activations(layer), head=0 if layer else self.head(),
            working=(self.working() if layer else self.last*2*self.tokens*self.model.hidden) if k.working else 0,
            placeholders=self.placeholders() if k.placeholders else 0, workspace=self.workspace() if k.workspace else 0,
            buffers=self.traffic(layer))

    # ---- state -------------------------------------------------------------------------------
    @functools.cached_property
    def held(self):
        """Bytes by part of what is there all the time."""
        p = self.policy
        return dict(weights=self.state(weight=p.weight), grads=self.state(grad=p.grad), optimizer=self.state(optimizer=p.optimizer),
                    gathered=self.gathered())

    def state(self, **nbytes):
        """Bytes of one kind of state."""
        model, lay = self.model, self.lay
        ends = self.first + self.last - self.first*self.last*model.tied
        own = (self.dense*self.layer_params(False) + self.sparse*self.layer_params(True) + ends*self.end
               + self.first*model.positions*model.hidden + self.last*model.norm*model.hidden)
        nbytes = dict(weight=0, grad=0, optimizer=0) | nbytes
        ranks = dict(weight_ranks=lay.weight_ranks, grad_ranks=lay.grad_ranks, optimizer_ranks=lay.optimizer_ranks)
        mine = model_state_bytes(own, **nbytes, **ranks)
        if not model.experts:
            return mine
        theirs = dict(weight_ranks=3, grad_ranks=2, optimizer_ranks=1)          # the stage of ZeRO that shares them
        theirs = {name: lay.expert_shard_ranks if lay.zero >= zero else 1 for name, zero in theirs.items()}
        return mine + self.sparse*model_state_bytes(self.expert_params, **nbytes, **theirs)

    def layer_params(self, sparse):
        """Parameters of a layer on one tensor rank, without its routed experts."""
        model, lay, e = self.model, self.lay, self.model.experts
        if sparse and not e:
            return 0
        if latent := model.latent:
            whole = model.hidden*(latent.q_rank + model.cache_width)            # every rank has the bottlenecks
            attention = whole + (model.attention_matmul - whole)/lay.tp
        else:
            pair = 2*model.hidden*model.kv_width                                # a key-value head is whole on a rank
            attention = (model.attention_matmul - pair)/lay.tp + pair/minimum(lay.tp, model.kv_heads)
        router = e.count*(model.hidden + e.bias) if sparse else 0
        return attention + router + model.layer_small + (e.shared*model.expert_matmul if sparse else model.ffn_matmul)/lay.tp

    @property
    def expert_params(self):
        """Parameters of the routed experts of a layer on one device."""
        return self.model.experts.count*self.model.expert_matmul/self.lay.ep

    def gathered(self):
        """Bytes of whole weights and gradients that are not kept."""
        if self.lay.zero < 2:
            return 0
        weight = self.policy.copy if self.lay.zero == 3 else 0
        return gathered_bytes(self.unit_params, self.end, weight, self.policy.grad, units=self.units)

    @property
    def unit_params(self):
        """Parameters of a whole layer on one device, of the kind that has more."""
        return self.layer_params(True) + self.expert_params if self.model.experts else self.layer_params(False)

    def traffic(self, layer):
        """Bytes of copies of what travels: while the last layer runs with its gradient's, at the head without."""
        b = self.buffers
        if all(_is(n, 0) for n in (b.kept, b.gather, b.scatter)):
            return 0
        return traffic_buffer_bytes(self.state(grad=1), maximum(self.unit_params, self.end), b.kept, b.gather, layer*b.scatter)

    # ---- activations -------------------------------------------------------------------------
    def activations(self, layer):
        """Bytes that the layers keep for all micro-batches in flight, and what the last one has made again."""
        lay = self.lay
        dense, sparse = self.layer_bytes(False), self.layer_bytes(True)
        kept = self.dense*dense[0] + self.sparse*sparse[0]
        copies = in_flight_chunks(lay.microbatches, lay.pp, lay.chunks, self.stage)/lay.chunks
        if not _is(lay.schedule, 0):
            late = split_backward_activations(lay.pp, lay.microbatches, where(lay.schedule > 2, 1, lay.schedule))
            copies = where(lay.schedule > 0, late, copies)
        return recompute_bytes(copies, 1, kept, layer*maximum(dense[1], sparse[1]))

    def layer_bytes(self, sparse):
        """(what one layer keeps of one micro-batch, what the backward pass makes again of it) in bytes.

        Where weight gradients wait, what a layer that is run again makes waits too: as much is kept as if it were not.
        """
        model, lay = self.model, self.lay
        if sparse and not model.experts:
            return 0, 0
        share, core, cheap = lay.recompute, lay.attention_again, lay.cheap_recompute
        if not _is(lay.schedule, 0):
            share = where(lay.schedule > 0, 0, share)
        scores = lay.scores*score_bytes_per_layer(self.tokens, self.seq_len, model.heads, lay.tp)
        whole, light, outputs = self.tensors(sparse)
        light, outputs = cheap*light, maximum(share - core, 0)*outputs
        return (share*self.stored + (1 - share)*(whole - light) + (1 - core)*scores + outputs,
                share*whole + (1 - share)*light + core*scores - outputs)

    def tensors(self, sparse):
        """Bytes of all tensors of a layer and micro-batch, scores left out; of the cheap ones; of the heads' outputs."""
        model, lay, k = self.model, self.lay, self.kernels
        if k.per_element:
            return [activation_bytes_per_layer(self.tokens, model.hidden, lay.tp, lay.seq_ranks, replicated=replicated,
                                               sharded=sharded) for replicated, sharded in (k.per_element, k.cheap, k.outputs)]
        rows = activation_table(model, kernels=k, sparse=sparse, copies=self.copies, cp=lay.cp)
        return [self.tokens*sum(row.on(lay) for row in rows if chosen(row)) for chosen in (
            lambda row: True, lambda row: row.cheap, lambda row: row.name in HEADS)]

    def head(self):
        """Bytes of the last norm's input, output and statistics, and of the logits."""
        model, lay, k = self.model, self.lay, self.kernels
        norm = 0 if k.per_element else sum(row[1] for row in _norm(model, k, ""))*self.tokens/lay.seq_ranks
        return self.last*(norm + k.per_token*self.tokens + logit_bytes(self.tokens, model.vocab, lay.tp, per_logit=k.per_logit))

    # ---- what a library adds -----------------------------------------------------------------
    def working(self):
        """Bytes above what was saved while the last layer runs: forward with experts, backward without."""
        model, lay = self.model, self.lay
        dense = gated_working_bytes(self.tokens, model.hidden, model.ffn, lay.tp, lay.seq_ranks)
        if not model.experts:
            return dense
        sparse = minimum(self.sparse, 1)
        return sparse*routed_working_bytes(self.tokens, model.hidden, self.copies, lay.seq_ranks) + (1 - sparse)*dense

    def placeholders(self):
        """Bytes of one 16-bit tensor for each shape of weight on the stage, head included, embedding and router not."""
        model, lay, e = self.model, self.lay, self.model.experts
        attention = self.layer_params(False) - model.ffn_matmul/lay.tp - model.layer_small
        n = attention + minimum(self.dense, 1)*model.ffn_matmul/lay.tp + self.last*self.end
        if e:
            other = minimum(lay.tp - 1, 1) if e.shared == 1 else e.shared       # a whole shared expert has a routed one's shape
            n = n + minimum(self.sparse, 1)*(1 + other/lay.tp)*model.expert_matmul
        return 2*n

    def workspace(self):
        """Bytes of the workspaces of matrix products, and of the whole sequence's head input where ranks share it."""
        lay, k = self.lay, self.kernels
        whole = minimum(lay.seq_ranks - 1, 1)*2*self.tokens*self.model.hidden
        return k.workspace*(1 + minimum(self.sparse, 1)*k.streams) + self.last*(k.head_workspace + whole)


def _is(value, number):
    """Whether a value is a number, and this one; False for arrays and symbols."""
    return isinstance(value, Real) and value == number


def _demand(kind, **values):
    """Raise TypeError, naming it, for a value that is not of this kind."""
    example = {Transformer: 'model("llama3-70b")', Cluster: 'cluster("dgx-h100", 512)', Accelerator: 'accelerator("h100-sxm")',
               Layout: "Layout(batch=512, dp=64, tp=8)"}
    for name, value in values.items():
        if not isinstance(value, kind):
            raise TypeError(f"{name} = {value!r}; allowed: {'an' if kind is Accelerator else 'a'} {kind.__name__}, "
                            f"such as {example[kind]}")


def _named(value, known, kind, what):
    """The entry that a name or an entry means."""
    return value if isinstance(value, kind) else specs.pick(known, value, what)

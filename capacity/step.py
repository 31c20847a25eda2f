"""One training step, predicted: seconds by cause, bytes by kind, and how far to trust them.

Nothing here is a formula of its own. Each term calls one of `capacity.formulas`; this file only
says which, over which ranks, and what hides behind what.
"""
import functools
import math
from dataclasses import dataclass, field
from numbers import Real
from types import SimpleNamespace
from typing import Any

from . import specs
from .algebra import maximum, minimum, where
from .footprint import Footprint, Policy, csv_text, floats, memory, shown
from .formulas import (bounded_pipeline_time, cast_bytes, exchange_time, exposed_time, folded_backward_time, interval_factor,
                       logit_traffic, model_flops_utilization, model_state_bytes, nonlinear_bytes, norm_again_bytes, roofline_time,
                       sliding_context, split_backward_time, stage_bound, stage_message_time, stored_score_traffic, streamed_bytes,
                       train_flops_per_token, trained_attention_flops, trained_product_bytes, trained_product_flops,
                       two_level_gather_time, uneven_factor)
from .hardware import Cluster
from .layout import Layout
from .stack import NARROW, SLOW_HEADS, Stack, calibration, constants as fitted, rates
from .transformer import Transformer
from .units import show

CAUSES = ("matmul", "experts", "attention", "pointwise", "head", "update", "fixed", "tensor", "context", "all_to_all",
          "routing", "pipeline", "bubble", "data")
MESSAGES = "tensor", "context", "all_to_all", "pipeline", "data"
OPERAND = {"fp8": 1, "int8": 1, "fp4": 1/2}             # bytes of a factor's element; of the others 2
EXCHANGE_LATENCY = 20e-6                                   # assumed: of one dispatch or combine
CURRENT = Stack(name="current")


@dataclass(frozen=True)
class Step:
    """What one optimizer step costs: seconds by cause, bytes by part.

    Seconds on the critical path of one device:
    matmul      products with weights, recomputed ones included, without those of routed experts and output head; each
                takes as long as its arithmetic, or as its three matrices need to pass through the memory if that is longer
    experts     the routed experts' products
    attention   queries times keys and scores times values, recomputed ones included
    pointwise   what lies between the products, at the bandwidth of the memory; casts to narrow formats
    head        the output head, and layers that predict further tokens
    update      the optimizer reads and writes the model state
    fixed       what a step takes besides, however small it is
    tensor      gathers and scatters inside the layers
    context     keys and values gathered from the ranks that hold other parts of the sequence
    all_to_all  tokens sent to their experts and back
    routing     the host waits for the counts of tokens, then starts the experts: what their products do not cover
    pipeline    activations and their gradients sent to the neighbouring stages
    bubble      waiting for the first and the last micro-batch, and for a stage that has more to do
    data        the part of gradient and weight traffic that no arithmetic hides

    Bytes on the device that needs most: `footprint`, see `capacity.memory`;
    `remember()` works it out.
    `flops` is the model's own work on one device, `peak` its dense rate, `tokens` those of the
    whole step; two predictions in three lie within `spread` of the measured time, as a logarithm,
    and nineteen in twenty within `tail`.
    """
    matmul: Any
    experts: Any
    attention: Any
    pointwise: Any
    head: Any
    update: Any
    fixed: Any
    tensor: Any
    context: Any
    all_to_all: Any
    routing: Any
    pipeline: Any
    bubble: Any
    data: Any
    flops: Any
    peak: Any
    tokens: Any
    spread: Any
    tail: Any
    remember: Any = field(repr=False, compare=False)

    @functools.cached_property
    def footprint(self) -> Footprint:
        """Its bytes, worked out when they are first asked for."""
        return self.remember()

    @property
    def seconds(self):
        """Seconds by cause, {cause: seconds}."""
        return {cause: getattr(self, cause) for cause in CAUSES}

    @property
    def bytes(self):
        """Bytes by part, {part: bytes}, of the parts that are there."""
        return {part: nbytes for part, nbytes in self.footprint.parts.items() if not (type(nbytes) is int and nbytes == 0)}

    @property
    def time(self):
        """Seconds of the whole step."""
        return sum(self.seconds.values())

    @property
    def memory(self):
        """Bytes on the device that needs most."""
        return self.footprint.total

    @property
    def mfu(self):
        """Model FLOP over what the device could have done at dense peak."""
        return model_flops_utilization(self.flops, 1, self.peak, self.time)

    @property
    def token_rate(self):
        """Tokens per second of the whole cluster."""
        return self.tokens/self.time

    def interval(self, deviations=1.0):
        """(low, high) seconds: the time divided and multiplied by its error factor.

        One deviation is `spread` and two are `tail`; between and beyond them the logarithm goes straight.
        """
        width = self.spread*min(deviations, 1) + (self.tail - self.spread)*max(deviations - 1, 0)
        factor = interval_factor(width, 1)
        return self.time/factor, self.time*factor

    def to_dict(self):
        """Everything as plain numbers and dicts, seconds and bytes by part; of numbers, not of arrays and symbols."""
        low, high = self.interval()
        return floats(dict(time=self.time, low=low, high=high, mfu=self.mfu, tokens_per_second=self.token_rate)) | dict(
            seconds=floats(self.seconds), **self.footprint.to_dict())

    def to_csv(self):
        """The seconds by cause as the text of a CSV file, a row each; of numbers. The bytes: `footprint.to_csv()`."""
        return csv_text(("cause", "seconds"), floats(self.seconds))

    def _repr_html_(self):
        if not isinstance(self.time, Real):
            return None
        low, high = self.interval()
        title = (f"A step of {show(self.time, 's')} ({show(low, 's')} to {show(high, 's')}): {self.mfu:.1%} of peak, "
                 f"{show(self.memory, 'B')} per device.")
        return shown("cause", "s", self.seconds, self.time, title) + self.footprint._repr_html_()


def estimate(model, cluster, layout, seq_len, *, format="bf16", stack=CURRENT, constants=None, matmul=None, attention=None,
             network=None, adapters=None, spread=None, weight=2, grad=2, optimizer=12, kernels="34 bytes", policy=None):
    """The Step that a model takes on a cluster under a layout, in sequences of seq_len tokens.

    Dense models and mixtures of experts. Overlap, by name: gradient and weight traffic of the data-parallel ranks hides
    behind arithmetic (zero 0 and 1: behind the backward pass of the last micro-batch; zero 2: behind those of all; zero 3:
    behind the whole step, whose micro-batches gather the weights twice each; copies of what is sharded sum each part of a
    gradient when it has been scattered, as PyTorch's fully_shard does unless it is told to wait: with zero 2 and 3 for every
    micro-batch, and behind backward passes alone); of the other messages the stack says which
    share is waited for; the host's time for experts hides behind their products. A node shares its adapters
    in every collective, ranks lie in the order tensor, context, data, pipeline, and experts on neighbouring ranks. With
    sequence_parallel a rank keeps its part of the input of each half of a layer and gathers it again for the gradients of the
    weights, as Megatron-LM does: ten messages a layer, of which programs that keep the whole input send eight. Attention
    is causal, and in 16 bits where `format` is narrower, as is all that lies between products. What is
    recomputed are the layers, never the output head. Routing is even.

    format      of the products with weights; `peak` and MFU are those of it
    stack       the Stack: kernels, graphs, overlap; by default a current one
    constants   {name: value} instead of the fitted ones of specs/calibration.toml
    matmul, attention   shares of the device's matmul ceiling, instead of the fitted ones
    network, adapters   shares of the bandwidth inside a domain and out of it, instead of those
    spread      (68 %, 95 %) half-widths of the logarithm of the time, instead of those of the run's class
    weight, grad, optimizer   bytes per parameter
    kernels     what a layer keeps, see `memory`
    policy      of the bytes alone, see `memory`; by default weight, grad and optimizer, which the seconds keep in any case

    Left out: oversubscription and what lies above the second level of the network. In the seconds, layers are the mean
    layer, parameters spread evenly over the stages.

    Numbers, arrays (all layouts at once) and sympy symbols go through alike. Raises TypeError for a
    model, cluster or layout that is none; ValueError for a sequence below one token, for a device without a published
    matmul ceiling, and for a layout that is illegal, with the sentences of `Layout.check`. Of arrays, whose other illegal
    layouts a search leaves out by itself, only devices and whole micro-batches are checked; of symbols nothing.
    """
    for name, value, kind, example in (("model", model, Transformer, 'model("llama3-70b")'),
                                       ("cluster", cluster, Cluster, 'cluster("dgx-h100", 512)'),
                                       ("layout", layout, Layout, "Layout(batch=512, dp=64, tp=8)"),
                                       ("stack", stack, Stack, "Stack()")):
        if not isinstance(value, kind):
            raise TypeError(f"{name} = {value!r}; allowed: a {kind.__name__}, such as {example}")
    specs.at_least(1, seq_len=seq_len)
    layout.demand_legal(model, cluster)
    device = cluster.device
    job = work(model, cluster, layout, seq_len, format, stack, weight=weight, grad=grad, optimizer=optimizer)
    rate = _values(rates(device, format, stack), fitted() if constants is None else fitted() | constants)
    if matmul is not None:
        rate.product, rate.expert = (matmul*rates(device, format, stack)[role][0] for role in ("product", "expert"))
        rate.wide = matmul*rates(device, format, stack)["wide"][0]
    if attention is not None:
        rate.attention = attention*rates(device, format, stack)["attention"][0]
    rate.links = rate.links if network is None else network
    rate.adapters = rate.adapters if adapters is None else adapters
    narrow, tail = error(kind_of(model, device, format)) if spread is None else spread
    return assembled(model, cluster, layout, seq_len, job, rate, device.peak(format), (narrow, tail), kernels=kernels,
                     weight=weight, grad=grad, optimizer=optimizer, policy=policy)


def matmul_share(model, cluster, layout, seq_len, seconds, **options):
    """The share of the device's matmul ceiling with which `estimate` says a measured step of these seconds.

    estimate(..., matmul=share) takes it: other layouts, lengths and numbers of devices are then priced with your products.
    All of the difference is put on them, so check first that the step has no other trouble.  options: those of `estimate`.

    ValueError for seconds that products at the ceiling itself do not explain, and for layouts that `estimate` refuses.
    """
    from scipy.optimize import brentq

    def time(share):
        return estimate(model, cluster, layout, seq_len, **options | {"matmul": share}).time
    if not time(1.0) <= seconds < math.inf:
        raise ValueError(f"seconds = {seconds!r}; allowed: at least {time(1.0):.4g}, with products at the ceiling itself")
    low = 0.5
    while time(low) < seconds:
        low /= 2
    return brentq(lambda share: time(share)/seconds - 1, low, 1, xtol=1e-12)


def assembled(model, cluster, layout, seq_len, job, rate, peak, error, *, weight=2, grad=2, optimizer=12, kernels="34 bytes",
              policy=None):
    """The Step of this work at these rates, the dense peak and (68 %, 95 %) half-widths of the logarithm of the time."""
    each = train_flops_per_token(model.matmul_params, model.layers, model.attention_width, job.context)
    remember = functools.partial(memory, model, cluster, layout, seq_len, kernels=kernels,
                                 policy=policy or Policy(name="as given", weight=weight, grad=grad, optimizer=optimizer))
    tokens = layout.batch*seq_len
    return Step(**price(job, rate), remember=remember, flops=tokens*each/layout.devices, peak=peak, tokens=tokens,
                spread=error[0], tail=error[1])


def kind_of(model, device, format="bf16"):
    """The class in which a run is judged: "tpu", "experts", "dense-8" or "dense-16"."""
    if device.key.startswith("tpu"):
        return "tpu"
    return "experts" if model.experts else "dense-8" if format in NARROW else "dense-16"


def error(kind):
    """(68 %, 95 %) half-widths of the logarithm of the time, of a source left out of the fit."""
    entry = calibration()[f"error-{kind}"]
    return entry["spread"], entry["tail"]


def _values(roles, known):
    """The numbers of `rates` with these constants."""
    values = {}
    for role, (value, names) in roles.items():
        for name in names:
            value = value*known[name]
        values[role] = value
    return SimpleNamespace(**values)


def work(model, cluster, layout, seq_len, format="bf16", stack=CURRENT, *, weight=2, grad=2, optimizer=12):
    """What a step has to do, as numbers that no constant enters: the arguments of `price`.

    Choices have become 0 and 1, so that runs of different kinds can be stacked to arrays.
    """
    lay, e, latent = layout, model.experts, model.latent
    narrow = format in NARROW
    # what leads into attention: one product, or two out of bottlenecks, into which a third leads that each rank has whole
    if latent:
        bottlenecks, inner_first, keys = latent.q_rank + model.cache_width, latent.q_rank, 0
        inner_second, cols_second = latent.kv_rank, 2*model.value_width
    else:
        bottlenecks, inner_first, keys = model.hidden, model.hidden, 2*model.kv_width
        inner_second = cols_second = model.hidden
    sparse = model.layers - e.dense if e else 0
    m, shards = lay.microbatches, lay.shard_ranks if lay.zero else lay.replicas
    scatters = (2, 1 + stack.all_reduce, m, m)[lay.zero]
    gathers = (0, 1, 1, 2*m)[lay.zero]
    routed = sparse*e.count*model.expert_matmul if e else 0
    params, replicas = model.params - routed, lay.expert_replicas if e else 1
    expert_shards = (lay.expert_shard_ranks if lay.zero else replicas) if e else 1
    seen = model.layers*(seq_len/2) if model.window is None else (
        model.windowed*sliding_context(seq_len, model.window) + (model.layers - model.windowed)*(seq_len/2))
    state = model_state_bytes(params/(lay.tp*lay.pp), weight, grad, optimizer, lay.weight_ranks, lay.grad_ranks,
                              lay.optimizer_ranks)
    if e:
        ranks = [expert_shards if lay.zero >= stage else 1 for stage in (3, 2, 1)]
        state = state + model_state_bytes(routed/(lay.ep*lay.pp), weight, grad, optimizer, *ranks)
    inner, outer, axes = cluster.inner, cluster.outer, cluster.levels[0].axes
    return SimpleNamespace(
        experts=bool(e), hybrid=lay.shards is not None, layers=model.layers, sparse=sparse,
        hidden=model.hidden, heads=model.heads, seq_len=seq_len,
        value_width=model.value_width, query_width=model.query_width, kv_width=model.query_width if latent else model.kv_width,
        inner_first=inner_first, inner_second=inner_second, cols_second=cols_second, keys=keys, bottlenecks=bottlenecks,
        narrowed=latent.q_rank + latent.kv_rank if latent else 0, latent=int(latent is not None), attention_width=model.attention_width,
        kv_heads=model.kv_heads, head_kv=model.kv_width,
        context=seen/model.layers, ffn=model.ffn, matrices=2 + model.gated, vocab=model.vocab, further=model.further,
        expert_ffn=e.ffn if e else model.ffn, active=e.active if e else 1, count=e.count if e else 1, common=e.shared if e else 0,
        y=lay.microbatch*seq_len/lay.cp, m=m, tp=lay.tp, pp=lay.pp, cp=lay.cp, ep=lay.ep, chunks=lay.chunks, schedule=lay.schedule,
        seq_ranks=lay.seq_ranks, sequence=int(lay.sequence_parallel), replicas=lay.replicas, shards=shards,
        recompute=lay.recompute, again=lay.attention_again, cheap=lay.cheap_recompute,
        traffic=params/(lay.tp*lay.pp)*(scatters*grad + gathers*weight), gradient=grad*params/(lay.tp*lay.pp),
        expert_traffic=routed/(lay.ep*lay.pp)*(scatters*grad + gathers*weight), expert_gradient=grad*routed/(lay.ep*lay.pp),
        expert_replicas=replicas, expert_shards=expert_shards, sums=(1, 1, m, m)[lay.zero], state=state,
        last_only=int(lay.zero < 2), forward_too=int(lay.zero == 3), stored=1 if stack.attention == "scores" else lay.scores,
        slow_heads=1 + (SLOW_HEADS - 1)*(stack.attention == "scores" and model.head_dim % 8 != 0),
        casts=int(narrow), operand=OPERAND.get(format, 2), tensor=stack.tensor, exchange=stack.exchange, sends=stack.sends,
        balanced=stack.balanced, idle=stack.idle, sharing=int(stack.shared_adapters), node=cluster.node,
        alpha1=inner.alpha, beta1=inner.beta*(2*axes or 1), ring=inner.beta*(2 if axes else 1),
        alpha2=outer.alpha, beta2=outer.beta)


def _absent(x):
    return type(x) is int and x == 0


def price(job, rate):
    """{cause: seconds} of the work at these rates; both as `work` and `rates` give them, numbers or arrays."""
    q, y, m, tp = job, job.y, job.m, job.tp
    dense, sparse = q.layers - q.sparse, q.sparse
    again = q.recompute
    extra = (1 - again)*q.cheap                             # share of the layers that make again what is cheap alone
    twice = again + extra
    beta1, ring, beta2 = rate.links*q.beta1, rate.links*q.ring, rate.adapters*q.beta2
    head_factor, ffn_factor = uneven_factor(q.value_width/tp), uneven_factor(q.ffn/tp)

    def product(rows, inner, cols, factor=1, peak=rate.product, operand=q.operand, grouped=1):
        """Three passes, and what is done again, of a product of this local shape."""
        return (3 + again)/3*roofline_time(factor*trained_product_flops(rows, inner*cols, 0),
                                           trained_product_bytes(rows, inner, cols, grouped, operand), peak, rate.memory)

    def block(rows, ffn, factor=1, **how):
        """Into a feed-forward block of this local width, one product, and out of it."""
        return product(rows, q.hidden, (q.matrices - 1)*ffn, factor, **how) + product(rows, ffn, q.hidden, factor, **how)

    def gather(n, ranks, stride, bandwidth, sharing=1):
        """Ranks `stride` apart, as many of a group in a node as fit."""
        inside = minimum(ranks, maximum(q.node/stride, 1))
        return two_level_gather_time(n, inside, ranks/inside, 1 + sharing*(inside - 1), q.alpha1, bandwidth, q.alpha2, beta2)

    # one micro-batch through all layers of the model, on one of the tensor ranks
    attention = product(y, q.inner_first, q.query_width/tp + q.keys/minimum(tp, q.kv_heads), head_factor) + product(
        y, q.value_width/tp, q.hidden, head_factor)
    if not _absent(q.latent):
        attention = attention + q.latent*(product(y, q.hidden, q.bottlenecks, head_factor)
                                          + product(y, q.inner_second, q.cols_second/tp, head_factor))
    matmul = q.layers*attention + dense*block(y, q.ffn/tp, ffn_factor)
    scores = (q.layers*(1 + q.stored)*q.slow_heads
              * trained_attention_flops(y, q.context, q.attention_width/tp, q.again)/rate.attention)
    streams = (q.layers*streamed_bytes(y, q.hidden, q.value_width, q.kv_width, again, tp, q.seq_ranks)
               + dense*nonlinear_bytes(y, q.ffn/tp, q.matrices, twice))
    if not _absent(q.cheap):
        streams = streams + q.layers*norm_again_bytes(y, 2*q.hidden + q.narrowed, extra, q.seq_ranks)
    recast = again + extra/2                                # its narrow copies, one for each reader, are written once: half a cast
    if not _absent(q.casts):
        streams = streams + q.casts*(
            q.layers*(cast_bytes(y, q.hidden + q.narrowed/tp, (q.query_width + 2*q.kv_width)/tp, recast)
                      + cast_bytes(y, q.value_width/tp, q.hidden, again))
            + dense*cast_bytes(y, q.hidden + q.ffn/tp, q.hidden + (q.matrices - 1)*q.ffn/tp, recast))
    if not _absent(q.stored):
        streams = streams + q.stored*q.layers*stored_score_traffic(y, q.seq_len, q.heads, tp, q.again)
    experts = exchange = routing = 0
    tensor_layers = q.layers
    if q.experts:
        rows = y/tp*q.active
        alone = block(rows, q.expert_ffn, peak=rate.expert, grouped=q.count/q.ep)
        experts = sparse*alone
        if not _absent(q.common):
            matmul = matmul + sparse*minimum(q.common, 1)*block(y, maximum(q.common, 1)*q.expert_ffn/tp)
        shared, wide = y*q.common/tp, (q.matrices - 1)*q.expert_ffn
        streams = streams + sparse*(nonlinear_bytes(rows + shared, q.expert_ffn, q.matrices, twice) + q.casts*(
            cast_bytes(rows + shared, q.expert_ffn, q.hidden, recast) + cast_bytes(shared, q.hidden, wide, recast)
            + cast_bytes(rows, q.hidden, wide, again)))     # copies were kept
        inside = minimum(q.ep, q.node)
        exchange = sparse*q.exchange*(4 + 2*again)*exchange_time(
            y/tp, q.active, q.hidden, 2, inside, q.ep/inside, EXCHANGE_LATENCY, beta1, beta2)*minimum(q.ep - 1, 1)
        # having waited for the counts, the host is not ahead: what it does next, products cover; messages do not, for
        # they begin when the last rank's host is there
        routing = sparse*exposed_time(rate.routing, alone)
        tensor_layers = q.layers - sparse/2                 # experts are whole on a rank: no gather around them
    pointwise = streams/rate.memory
    # each half of a layer gathers and scatters forward and backward, and where its forward pass is repeated; of a sequence that
    # is shared a rank kept its part of the input alone, and gathers it again for the gradients of the weights
    tensor = q.tensor*tensor_layers*(8 + 4*again + 2*q.sequence)*gather(2*y*q.hidden, tp, 1, ring)
    context = q.layers*(3 + q.again)*gather(4*y*q.cp*q.head_kv/minimum(tp, q.kv_heads), q.cp, tp, beta1)
    layers = matmul + scores + experts + pointwise + tensor + context + exchange + routing
    head = (1 + q.further)*(3/(3 + again)*product(y, q.hidden, q.vocab/tp, peak=rate.wide, operand=2)
                            + logit_traffic(y, q.vocab, tp)/rate.memory) + q.further*layers/q.layers

    # stages
    slowest = stage_bound(q.layers, q.pp, q.chunks, layers/q.layers, head, q.balanced)
    mean = (layers + head)/q.pp
    bubble, at_home = bounded_pipeline_time(q.pp, m, q.chunks, slowest, mean, q.idle) - m*mean, 1
    if not _absent(q.schedule):
        # a forward is a third, as in what hides messages; the head's weight gradients do not wait
        forward, late = mean/(3 + again), (matmul + experts)/((3 + again)*q.pp)
        times = q.pp, m, forward, mean - forward - late, late
        folded = q.schedule > 2
        split = where(folded, folded_backward_time(*times), split_backward_time(*times, q.schedule))
        bubble = where(q.schedule > 0, m*(slowest - mean) + split - m*mean, bubble)
        at_home = where(folded, 2, 1)                       # at the fold a message stays
    send = stage_message_time(2*y*q.hidden/tp, q.replicas*tp, q.node, q.alpha1, beta1, q.alpha2, beta2)
    pipeline = q.sends*2*m*(q.chunks - at_home/q.pp)*send

    # replicas
    def window(forward_too):
        """Arithmetic of a step, or of its backward passes alone; of the last micro-batch where it does not begin before."""
        return m*mean*(1 - (1 - forward_too)*(2/(6 + 2*again)))*(1 - q.last_only*(1 - 1/m))

    traffic = gather(q.traffic, q.shards, tp, beta1, q.sharing)
    if q.experts:
        traffic = traffic + gather(q.expert_traffic, q.expert_shards, q.ep, beta1, q.sharing)
    exposed = exposed_time(traffic, window(q.forward_too))
    if q.hybrid:                                            # each copy's part is summed when it has been scattered
        between = gather(q.gradient/q.shards, q.replicas/q.shards, tp*q.shards, beta1)
        if q.experts:
            between = between + gather(q.expert_gradient/q.expert_shards, q.expert_replicas/q.expert_shards,
                                       q.ep*q.expert_shards, beta1)
        between = 2*q.sums*between
        exposed = maximum(exposed_time(traffic + between, window(q.forward_too)), exposed_time(between, window(0)))
    share = m/q.pp
    return dict(matmul=share*matmul, experts=share*experts, attention=share*scores,
                pointwise=share*pointwise, head=share*head, update=2*q.state/rate.memory, fixed=rate.step,
                tensor=share*tensor, context=share*context, all_to_all=share*exchange, routing=share*routing,
                pipeline=pipeline, bubble=bubble, data=exposed)

"""One training step, predicted: seconds by cause, bytes by kind, and how far to trust them.

Nothing here is a formula of its own. Each term calls one of `capacity.formulas`; this file only
says which, over which ranks, and what hides behind what.
"""
import functools
from dataclasses import dataclass, field
from typing import Any

from . import specs
from .algebra import ceil, maximum, minimum
from .footprint import Footprint, Policy, memory
from .formulas import (activation_bytes_per_layer, activation_traffic, combined_spread,
                       interval_factor, message_time, model_flops_utilization, model_state_bytes,
                       overlapped_step_time, pipeline_bubble, roofline_time, score_bytes_per_layer,
                       train_flops_per_token, training_time, two_level_all_reduce_time)
from .hardware import Cluster
from .layout import Layout
from .transformer import Transformer

CAUSES = ("matmul", "attention", "pointwise", "update", "tensor", "context", "pipeline", "bubble",
          "data")
NARROW = "fp8", "fp4", "int8"                             # formats in which attention is not computed

# Fitted in chapter 6 to one library's published runs, A100s and H100s pooled, and judged there on
# the others'. H100s alone reach less.
MATMUL = 0.75             # share of the measured matmul ceiling that products with weights reach
ATTENTION = 0.25          # the same for attention's two products, masked pairs not counted
COMPUTE_SPREAD = 0.16     # a spread is the standard deviation of a logarithm
# Not fitted.
NETWORK = 0.82            # 370 of 450 GB/s, a large ring on NVLink 4; assumed of every link
NETWORK_SPREAD = 0.40     # assumed: right within a factor of 1.5
LIBRARY_SPREAD = 0.15     # assumed, other libraries' runs in sight: one is better all the time


@dataclass(frozen=True)
class Step:
    """What one optimizer step costs: seconds by cause, bytes by part.

    Seconds on the critical path of one device:
    matmul     products with weights, recomputed ones included
    attention  queries times keys and scores times values, recomputed ones included
    pointwise  what lies between the products, at the bandwidth of the memory
    update     the optimizer reads and writes the model state
    tensor     all-reduces inside the layers
    context    keys and values gathered from the ranks that hold other parts of the sequence
    pipeline   activations and their gradients sent to the neighbouring stages
    bubble     waiting for the first and the last micro-batch, and for a stage with more layers
    data       the part of gradient and weight traffic that no arithmetic hides

    Bytes on the device that needs most: `footprint`, see `capacity.memory`;
    `remember()` works it out.
    `flops` is the model's own work on one device, `peak` its dense rate, `tokens` those of the
    whole step; `spread` is the standard deviation of the logarithm of the time.
    """
    matmul: Any
    attention: Any
    pointwise: Any
    update: Any
    tensor: Any
    context: Any
    pipeline: Any
    bubble: Any
    data: Any
    flops: Any
    peak: Any
    tokens: Any
    spread: Any
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
        """(low, high) seconds: the time divided and multiplied by its error factor."""
        factor = interval_factor(self.spread, deviations)
        return self.time/factor, self.time*factor


def estimate(model, cluster, layout, seq_len, *, format="bf16", matmul=MATMUL, attention=ATTENTION,
             network=NETWORK, compute_spread=COMPUTE_SPREAD, network_spread=NETWORK_SPREAD,
             library_spread=LIBRARY_SPREAD, weight=2, grad=2, optimizer=12, kernels="34 bytes"):
    """The Step a dense model takes on a cluster under a layout, in sequences of seq_len tokens.

    Overlap, by name: gradient and weight traffic of the data-parallel ranks hides behind arithmetic
    (zero 0 and 1: behind the backward pass of the last micro-batch; zero 2: behind that of each
    micro-batch, whose gradients it scatters; zero 3: behind each whole micro-batch, whose weights
    it gathers twice besides); every other message is waited for. A node shares its adapters in
    every collective; a pipeline's messages all go through them (`cluster.outer`). Attention is
    causal, and in 16 bits where `format` is narrower. What is recomputed are the layers, never the
    output head.

    Left out: oversubscription and what lies above the second level of the network. In the seconds,
    parameters are spread evenly over the stages, and over the tensor-parallel ranks even where two
    of these hold the same key-value head, and a sender in mid-pipeline counts as the mean one. The
    bytes are those of `memory`: of the stage that needs most.

    format              of the products with weights, "bf16" or "fp8"; `peak` and MFU are those of it

    matmul, attention   shares of the device's measured matmul ceiling, above 0 and at most 1
    network             share of a link's bandwidth, above 0 and at most 1
    ..._spread          standard deviation of the logarithm of the time of arithmetic, of messages,
                        and of everything
    weight, grad, optimizer   bytes per parameter
    kernels             what a layer keeps, see `memory`; the seconds between the products are always those of 34 bytes

    Numbers, arrays (all layouts at once) and sympy symbols go through alike. Raises TypeError for a
    model, cluster or layout that is none; ValueError for a sequence below one token, for a model with
    experts, for a device without a measured ceiling in this format, and for a layout that is illegal,
    with the sentences of `Layout.check`. Of arrays, whose other illegal layouts a search leaves out by
    itself, only devices and whole micro-batches are checked; of symbols nothing. The context term is
    not confronted with published runs: no dense 16-bit row of the table has one.
    """
    for name, value, kind, example in (("model", model, Transformer, 'model("llama3-70b")'),
                                       ("cluster", cluster, Cluster, 'cluster("dgx-h100", 512)'),
                                       ("layout", layout, Layout, "Layout(batch=512, dp=64, tp=8)")):
        if not isinstance(value, kind):
            raise TypeError(f"{name} = {value!r}; allowed: a {kind.__name__}, such as {example}")
    specs.at_least(1, seq_len=seq_len)
    if model.experts:
        raise ValueError(f"{model.name} has experts: this estimate knows dense models only")
    layout.demand_legal(model, cluster)
    device, lay = cluster.device, layout
    ceiling = device.ceiling(format)
    m, layers = lay.microbatches, model.layers/lay.pp
    tokens = lay.batch*seq_len
    y = lay.microbatch*seq_len/lay.cp                     # tokens of a micro-batch on one device
    residual = 2*y*model.hidden                           # bytes of the residual stream, 16 bits
    params = model.params/(lay.tp*lay.pp)

    def flops(weights, per_weight, per_pair):
        return tokens*train_flops_per_token(
            weights, model.layers, model.attention_width, seq_len/2,
            per_weight=per_weight, per_pair=per_pair)

    def stream(nbytes):
        return roofline_time(0, nbytes, ceiling, device.bandwidth)

    def all_reduce(n, ranks, stride):
        """Ranks `stride` apart, as many of a group in a node as fit."""
        inside = minimum(ranks, maximum(cluster.node/stride, 1))
        return two_level_all_reduce_time(
            n, inside, ranks/inside, cluster.inner.alpha, network*cluster.inner.beta,
            cluster.outer.alpha, network*cluster.outer.beta)

    layer = (activation_bytes_per_layer(y, model.hidden, lay.tp, lay.seq_ranks)
             + lay.scores*score_bytes_per_layer(y, seq_len, model.heads, lay.tp))
    products = training_time(flops(model.matmul_params, 6, 0) + flops(model.layers_matmul, 2*lay.recompute, 0),
                             lay.devices, ceiling, matmul)
    scores = training_time(flops(model.layers_matmul, 0, 12 + 4*lay.recompute), lay.devices,
                           device.ceiling("bf16" if format in NARROW else format), attention)
    pointwise = m*layers*stream(activation_traffic(layer, lay.recompute))
    tensor = m*layers*(4 + 2*lay.recompute)*all_reduce(residual, lay.tp, 1)
    keys_values = 4*y*lay.cp*model.kv_width/minimum(lay.tp, model.kv_heads)     # bytes of the whole sequence's
    context = m*layers*(3 + lay.recompute)/2*all_reduce(keys_values, lay.cp, lay.tp)
    send = message_time(residual/lay.seq_ranks, cluster.outer.alpha,
                        network*cluster.outer.beta)
    pipeline = 2*m*(lay.chunks - 1/lay.pp)*send

    busy = products + scores + pointwise + tensor + context + pipeline
    pieces = lay.pp*lay.chunks
    fullest = ceil(model.layers/pieces)*lay.chunks        # layers of the stage that has most
    bubble = busy*(fullest/layers/(1 - pipeline_bubble(lay.pp, m*lay.chunks)) - 1)

    passes = {0: 2*grad, 1: grad + weight, 2: grad + weight/m, 3: grad + 2*weight}[lay.zero]
    traffic = all_reduce(params*passes/2, lay.replicas, lay.tp)
    times = m if lay.zero >= 2 else 1
    share = 1 if lay.zero == 3 else (4 + 2*lay.recompute)/(6 + 2*lay.recompute)
    window = share*busy/m
    data = times*(overlapped_step_time(0, window, traffic, layers) - window)

    update = stream(2*model_state_bytes(params, weight, grad, optimizer, lay.weight_ranks, lay.grad_ranks,
                                        lay.optimizer_ranks))

    seconds = dict(matmul=products, attention=scores, pointwise=pointwise, update=update,
                   tensor=tensor, context=context, pipeline=pipeline, bubble=bubble, data=data)
    remember = functools.partial(memory, model, cluster, layout, seq_len, kernels=kernels,
                                 policy=Policy(name="as given", weight=weight, grad=grad, optimizer=optimizer))
    return Step(**seconds, remember=remember,
                flops=flops(model.matmul_params, 6, 12)/lay.devices, peak=device.peak(format), tokens=tokens,
                spread=_spread(seconds, compute_spread, network_spread, library_spread))


def _spread(seconds, compute_spread, network_spread, library_spread):
    """A factor's spread counts by its share of the time; the library's stretches all of it."""
    total = sum(seconds.values())
    talk = sum(seconds[cause] for cause in ("tensor", "context", "pipeline", "data"))
    parts = (total - talk)/total*compute_spread, talk/total*network_spread, library_spread
    return functools.reduce(combined_spread, parts)

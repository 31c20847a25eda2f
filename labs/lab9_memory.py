"""Lab 9. PyTorch's own account of a step's memory, against the memory equation, without a GPU and without the memory.

    python labs/lab9_memory.py

A Llama of 1B and one of 8B, FSDP2 on eight ranks, Adam: the real modules run on fake tensors, which have shapes and no
numbers, and PyTorch's FSDPMemTracker counts what lives. Three ways to run a layer: with the kernels of the chapter
("fused"), as plain modules ("eager"), and as plain modules with selective checkpointing ("selective").
The prediction is `capacity.memory` for state and a table of arrays, below, for the layers.

Bands, fixed before the first run: sharded parameters, gradients and Adam's state to 0.1 %, what layers and head keep at the
turn to 1 %, the peak to 5 %. The bare union missed them: what PyTorch keeps besides was listed after a first count, and is named
at the end. And what weights and gradients travel in, watched at every allocation with the embedding, and norm and head, as units
of their own: 1 %, fixed when 1B had been seen and 8B had not.

Before you look (chapter 19): Llama 3 8B, fused kernels, FSDP over eight ranks, 8192 tokens a rank, Adam, gradients and states in
fp32. How many gigabytes (1e9 bytes) is the peak of a rank?

Break it: the modules that the account calls fused are plain ones, `set_fused(net, False)`.
"""
import os
import warnings

warnings.simplefilter("ignore")
os.environ.setdefault("TORCH_CPP_LOG_LEVEL", "ERROR")

import logging

logging.disable(logging.WARNING)

import torch
import torch.distributed as dist
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.distributed._tools.fsdp2_mem_tracker import FSDPMemTracker
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from torch.nn import functional as F
from torch.testing._internal.distributed.fake_pg import FakeStore
from torch.utils.checkpoint import CheckpointPolicy, checkpoint, create_selective_checkpoint_contexts

import asking
from asking import answer, broken
from capacity import Layout, activation_table, Transformer, cluster, gathered_bytes, memory, model, traffic_buffer_bytes

RANKS, TOKENS = 8, 8192
SMALL = Transformer(name="1B", layers=16, hidden=2048, heads=32, kv_heads=8, head_dim=64, ffn=8192, vocab=128256, source="derived")
aten = torch.ops.aten


class FusedNorm(torch.autograd.Function):
    """RMSNorm that keeps its input and one number a token."""

    @staticmethod
    def forward(ctx, x, gain):
        root = x.float().square().mean(-1, keepdim=True).add(1e-6).rsqrt()
        ctx.save_for_backward(x, root, gain)
        return (x.float()*root).to(x.dtype)*gain

    @staticmethod
    def backward(ctx, dy):
        x, root, gain = ctx.saved_tensors
        unit, g = x.float()*root, dy.float()*gain
        return (root*(g - unit*(g*unit).mean(-1, keepdim=True))).to(x.dtype), (dy*unit).sum((0, 1)).to(gain.dtype)


class FusedGate(torch.autograd.Function):
    """silu(gate) up, which keeps gate and up."""

    @staticmethod
    def forward(ctx, gate, up):
        ctx.save_for_backward(gate, up)
        return F.silu(gate)*up

    @staticmethod
    def backward(ctx, dy):
        gate, up = ctx.saved_tensors
        share = torch.sigmoid(gate)
        return dy*up*share*(1 + gate*(1 - share)), dy*F.silu(gate)


class Norm(nn.RMSNorm):
    fused = False

    def forward(self, x):
        return FusedNorm.apply(x, self.weight) if self.fused else super().forward(x)


class Attention(nn.Module):
    def __init__(self, m):
        super().__init__()
        self.d = m.head_dim
        self.q, self.k, self.v = (nn.Linear(m.hidden, n*m.head_dim, bias=False) for n in (m.heads, m.kv_heads, m.kv_heads))
        self.o = nn.Linear(m.heads*m.head_dim, m.hidden, bias=False)

    def forward(self, x, rope):
        q, k, v = (f(x).unflatten(-1, (-1, self.d)).transpose(1, 2) for f in (self.q, self.k, self.v))
        y = F.scaled_dot_product_attention(rotate(q, rope), rotate(k, rope), v, is_causal=True, enable_gqa=True)
        return self.o(y.transpose(1, 2).flatten(-2))


def rotate(x, rope):
    cos, sin = rope
    left, right = x.chunk(2, -1)
    return torch.cat((left*cos - right*sin, right*cos + left*sin), -1)


class Block(nn.Module):
    fused = False

    def __init__(self, m):
        super().__init__()
        self.attention_norm, self.ffn_norm, self.attention = Norm(m.hidden), Norm(m.hidden), Attention(m)
        self.gate, self.up = (nn.Linear(m.hidden, m.ffn, bias=False) for _ in range(2))
        self.down = nn.Linear(m.ffn, m.hidden, bias=False)

    def forward(self, x, rope):
        x = x + self.attention(self.attention_norm(x), rope)
        h = self.ffn_norm(x)
        gate, up = self.gate(h), self.up(h)
        return x + self.down(FusedGate.apply(gate, up) if self.fused else F.silu(gate)*up)


class Llama(nn.Module):
    def __init__(self, m, selective=False):
        super().__init__()
        self.selective = selective
        self.embed = nn.Embedding(m.vocab, m.hidden)
        self.blocks = nn.ModuleList([Block(m) for _ in range(m.layers)])
        self.norm, self.head = Norm(m.hidden), nn.Linear(m.hidden, m.vocab, bias=False)

    def forward(self, tokens, targets, rope):
        x = self.embed(tokens)
        for block in self.blocks:
            x = checkpoint(block, x, rope, use_reentrant=False, context_fn=chosen) if self.selective else block(x, rope)
        logits = self.head(self.norm(x))
        return F.cross_entropy(logits.float().flatten(0, 1), targets.flatten())


def chosen():
    """Keep what products and attention give, do the rest again."""
    kept = (aten.mm.default, aten._scaled_dot_product_flash_attention_for_cpu.default)
    return create_selective_checkpoint_contexts(
        lambda ctx, op, *args, **kwargs: CheckpointPolicy.MUST_SAVE if op in kept else CheckpointPolicy.PREFER_RECOMPUTE)


def set_fused(net, on):
    for module in net.modules():
        if isinstance(module, (Block, Norm)):
            module.fused = on
    return net


def predicted_layer(m, way):
    """Bytes a token that a layer keeps: the union of the chapter, and what plain modules keep besides."""
    union = sum(t.bytes for t in activation_table(m))
    H, Ha, Hkv, Hf, a = m.hidden, m.value_width, m.kv_width, m.ffn, m.heads
    if way == "fused":
        return union + 2*Ha                          # the heads' output once more, as rows for the product behind it
    eager = (union + 2*Ha
             + 2*(4 + 4 - 2)*H                       # a norm keeps its input and its result in fp32, not its input in bf16
             + 2*Hf)                                 # silu of the gate
    if way == "eager":
        return eager
    return 2*H + 2*(Ha + 2*Hkv) + 2*Ha + 4*a + 2*H + 4*Hf + 2*H      # input, products' results, attention's two


def travelling(m):
    """Bytes of what travels on a rank, {what: bytes}: greatest of its kind in the step, in a layer's backward pass, at the peak."""
    block, end = m.attention_matmul + m.ffn_matmul + 2*m.hidden, m.vocab*m.hidden
    return {"whole weights": 2*end,
            "a gather's buffer": 2*(end + block),        # forward it stays until the next gather has its own
            "a scatter's buffer": 4*end,
            "in a layer's backward pass": gathered_bytes(block, block, 2, 2, units=1) + traffic_buffer_bytes(block, block, 0, 0, 4),
            "at the peak": 2*end}


def predicted(m, way):
    """(bytes that layers and head keep at the turn, bytes on a rank at the peak): the equation, term by term."""
    H, V = m.hidden, m.vocab
    last_norm = 4*H + 4 if way == "fused" else 10*H + 4      # input and output; as a plain module an fp32 copy of both
    turn = TOKENS*(m.layers*predicted_layer(m, way) + last_norm + 4*V)       # the loss keeps its log-softmax, in fp32
    ends = 2*(2*V*H + H)                                     # embedding, norm and head are one unit, which stays gathered
    block = 2*(m.attention_matmul + m.ffn_matmul + 2*H)      # the next block's weights are on their way
    loss = 8*TOKENS*V                                        # gradients of log-softmax and of the logits, in fp32
    return turn, (4 + 8)*m.params/RANKS + turn + ends + block + loss


class Watch(FSDPMemTracker):
    """The tracker, asked after each of its updates: the most of each kind of bytes that travel, and of their sum."""
    KINDS = {"Unsharded Param": "whole weights", "Unsharded Grad": "whole gradients", "All Gather": "a gather's buffer",
             "Reduce Scatter": "a scatter's buffer"}
    watched, highest = False, 0

    def __init__(self, net, adam):
        super().__init__(net, adam)
        self.most = dict.fromkeys([*self.KINDS.values(), "in a layer's backward pass", "at the peak", "ever, together"], 0)

    def _update_snap(self, *args, **kwargs):
        super()._update_snap(*args, **kwargs)
        now = {str(getattr(kind, "value", kind)): n for kind, n in self._curr_mem_snap.get(torch.device("cpu"), {}).items()}
        bytes_of = {what: now.get(kind, 0) for kind, what in self.KINDS.items()}
        together = sum(bytes_of.values())
        bytes_of["ever, together"] = together
        if self.watched:
            bytes_of["in a layer's backward pass"] = together
        for what, n in bytes_of.items():
            self.most[what] = max(self.most[what], n)
        if now.get("Total", 0) > self.highest:
            self.highest, self.most["at the peak"] = now["Total"], together

    def watch(self, on):
        self.watched = on


def fake_step(m, way, apart=False):
    """Bytes by kind on rank 0 of eight, {"turn": ..., "end": ..., "peak": ...}, in one step after Adam's state was made.

    apart: the ends of the model are units of their own, and {what travels: most bytes} comes along as "most".
    """
    mesh = init_device_mesh("cpu", (RANKS,))
    with FakeTensorMode(allow_non_fake_inputs=True):
        net = set_fused(Llama(m, way == "selective"), way == "fused" and not broken())
        policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
        for unit in [net.embed, *net.blocks] if apart else net.blocks:
            fully_shard(unit, mesh=mesh, mp_policy=policy)
        if apart:
            fully_shard([net.norm, net.head], mesh=mesh, mp_policy=policy, reshard_after_forward=False)
        fully_shard(net, mesh=mesh, mp_policy=policy)
        adam = torch.optim.AdamW(net.parameters(), foreach=False, fused=False)
        for p in net.parameters():
            p.grad = torch.zeros_like(p)
        adam.step()
        adam.zero_grad()
        tokens, targets = (torch.zeros(1, TOKENS, dtype=torch.int64) for _ in range(2))
        rope = tuple(torch.zeros(TOKENS, m.head_dim//2, dtype=torch.bfloat16) for _ in range(2))
        tracker = Watch(net, adam)
        tracker.track_inputs((tokens, targets, *rope))
        for block, on in zip(net.blocks[m.layers//2 - 1:], (False, True)):          # from its output's gradient to its input's
            block.register_forward_hook(lambda _, given, out, on=on: out.register_hook(lambda _: tracker.watch(on)) and None)
        with tracker:
            loss = net(tokens, targets, rope)
            snaps = {"turn": tracker.get_tracker_snapshot()}
            loss.backward()
            snaps["end"] = tracker.get_tracker_snapshot()
        snaps["peak"] = tracker.get_tracker_snapshot("peak")
    return {when: {str(getattr(kind, "value", kind)): n for kind, n in snap[torch.device("cpu")].items()}
            for when, snap in snaps.items()} | {"most": tracker.most}


def check(text, ok):
    assert ok, text
    print(f"ok  {text}", flush=True)


def within(m, way, what, want, got, band):
    check(f"{m.name}, {way}: {what} {want/1e9:.3f} GB predicted, {got/1e9:.3f} counted", abs(want/got - 1) <= band)


def main():
    asking.begin()
    dist.init_process_group("fake", rank=0, world_size=RANKS, store=FakeStore())
    for m, ways in ((SMALL, ("fused", "eager", "selective")), (model("llama3-8b"), ("fused", "selective"))):
        share = memory(m, cluster("dgx-h100", RANKS), Layout(batch=RANKS, dp=RANKS, zero=3), TOKENS, policy="fsdp").parts
        for way in ways:
            seen = fake_step(m, way)
            turn, peak = predicted(m, way)
            for kind, what, when in (("Sharded Param", "weights", "turn"), ("Sharded Grad", "grads", "end"),
                                     ("OptState", "optimizer", "turn")):
                within(m, way, f"{what} of a rank", share[what], seen[when][kind], .001)
            within(m, way, "layers and head at the turn", turn, seen["turn"]["Activation"], .01)
            within(m, way, "peak", peak, seen["peak"]["Total"], .05)
            if m is not SMALL and way == "fused":
                answer(seen["peak"]["Total"]/1e9, "GB")
            union = TOKENS*m.layers*sum(t.bytes for t in activation_table(m))
            if way == "eager":
                check(f"{m.name}, {way}: the bare union, {union/1e9:.3f} GB, is far from what plain modules keep",
                      union < .8*seen["turn"]["Activation"])
    m = model("llama3-8b")
    most = fake_step(m, "fused", apart=True)["most"]
    for what, want in travelling(m).items():
        within(m, "fused", what, want, most[what], .01)
    foot = memory(m, cluster("dgx-h100", RANKS), Layout(batch=RANKS, dp=RANKS, zero=3), TOKENS, policy="fsdp", buffers="fsdp")
    bound = foot.gathered + foot.buffers
    check(f"{m.name}, fused: what travels is never more than the {bound/1e9:.3f} GB that the equation counts at its peak with "
          f"buffers=\"fsdp\": {most['ever, together']/1e9:.3f} at most, {most['at the peak']/1e9:.3f} at the peak",
          most["ever, together"] <= bound)
    print("""
What the bare equation of chapter 19 does not have, and PyTorch does:
- The heads' output is kept twice: as attention gives it, and as rows for the product behind it, which is a copy.
- Plain modules on a CPU keep fp32 copies of a norm's input and result, and silu of the gate: 55 bytes a token and
  unit of width for Llama 3 8B, and not 34.
- The loss keeps 4 bytes a logit and makes two gradients of 4 more: 12 at the peak, and not 10.
- FSDP2 keeps embedding, norm and head gathered through the step, if they are no units of their own; gradients are not
  there yet at the peak.
And what it has, and PyTorch does not:
- At the peak, in the loss, nothing travels: the last gather's buffer is gone, the layer before it is cut again, and only
  the head is whole. Ten bytes a parameter of a layer travel in its backward pass, when logits are gone: its weights and
  its gradient, 2 and 2, the next layer's weights in the buffer of their gather, 2, the gradient before in 32 bits, 4.""")
    dist.destroy_process_group()
    asking.end()


if __name__ == "__main__":
    main()

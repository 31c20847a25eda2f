"""Recomputation in PyTorch: segments of given lengths, or a choice of tensors; gradients and FLOP are checked.

    torchrun --standalone --nproc-per-node=4 labs/recipes/21_recompute.py
"""
from fractions import Fraction

import torch
from torch import nn
from torch.nn.functional import scaled_dot_product_attention
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.checkpoint import checkpoint, create_selective_checkpoint_contexts
from torch.utils.flop_counter import FlopCounterMode
aten = torch.ops.aten
SAVED = ("mm", "addmm", "_scaled_dot_product_flash_attention", "_scaled_dot_product_efficient_attention",
            "_scaled_dot_product_cudnn_attention", "_scaled_dot_product_flash_attention_for_cpu")
# the library
def in_segments(net, x, lengths, **how):
    for n in lengths:                      # keep the input of n layers
        part, net = net[:n], net[n:]
        x = checkpoint(part, x, use_reentrant=False, **how)
    return x

dear = [getattr(aten, op).default for op in SAVED]    # kept
selective = lambda: create_selective_checkpoint_contexts(dear)
# end

class Attentions(TorchDispatchMode):                # FLOP of attention on a CPU are not counted: its runs are
    runs = 0

    def __torch_dispatch__(self, op, types, args=(), kwargs=None):
        self.runs += op is aten._scaled_dot_product_flash_attention_for_cpu.default
        return op(*args, **(kwargs or {}))


def step(net, run):
    torch.manual_seed(21)                           # the same input and the same masks
    net.zero_grad()
    with FlopCounterMode(display=False) as count, Attentions() as attentions:
        run(net, torch.randn(4, 32, 64, requires_grad=True)).square().sum().backward()
    return [p.grad for p in net.parameters()], count.get_total_flops(), attentions.runs


class Attention(nn.Module):
    def forward(self, x):
        return scaled_dot_product_attention(*x.unflatten(-1, (3, 4, 16)).permute(2, 0, 3, 1, 4), is_causal=True).transpose(1, 2).flatten(2)


block = lambda: nn.Sequential(nn.LayerNorm(64), nn.Linear(64, 192), Attention(), nn.Linear(64, 256), nn.GELU(), nn.Dropout(.1),
                              nn.Linear(256, 64))
net = nn.Sequential(*(block() for _ in range(8)))
want, flops, runs = step(net, lambda net, x: net(x))
assert runs == 8
for how, cost, attended, equal in (
        (dict(lengths=[3, 2, 2, 1], early_stop=False), Fraction(4, 3), 16, True),
        (dict(lengths=[1]*8), Fraction(40, 33), 16, True),                       # the last product is not repeated
        (dict(lengths=[1]*8, context_fn=selective), 1, 8, True),                 # no product and no attention is
        (dict(lengths=[8], preserve_rng_state=False), Fraction(4, 3) - Fraction(1, 66), 16, False)):   # masks drawn anew
    grads, done, runs = step(net, lambda net, x: in_segments(net, x, **how))
    assert Fraction(done, flops) == cost and runs == attended and all(map(torch.equal, grads, want)) == equal, (how, done/flops, runs)
print("gradients, FLOP and runs of attention as foretold; with other masks the gradients are wrong")

"""Recomputation in PyTorch: segments of given lengths, or a choice of tensors; gradients and FLOP are checked.

    torchrun --standalone --nproc-per-node=4 labs/recipes/21_recompute.py
"""
import torch
from torch import nn
from torch.utils.checkpoint import CheckpointPolicy as Policy, checkpoint, create_selective_checkpoint_contexts
from torch.utils.flop_counter import FlopCounterMode
# the library
def in_segments(net, x, lengths, **how):
    for n in lengths:                      # keep the input of n layers
        part, net = net[:n], net[n:]
        x = checkpoint(part, x, use_reentrant=False, **how)
    return x

def products(ctx, op, *args, **kwargs):    # keep them, redo the rest
    linear = (torch.ops.aten.mm.default, torch.ops.aten.addmm.default)
    return (Policy.MUST_SAVE if op in linear
            else Policy.PREFER_RECOMPUTE)

selective = lambda: create_selective_checkpoint_contexts(products)
# end

def step(net, run):
    torch.manual_seed(21)                  # the same input and the same masks
    net.zero_grad()
    with FlopCounterMode(display=False) as count:
        run(net, torch.randn(4, 32, 64, requires_grad=True)).square().sum().backward()
    return [p.grad for p in net.parameters()], count.get_total_flops()

block = lambda: nn.Sequential(nn.LayerNorm(64), nn.Linear(64, 256), nn.GELU(), nn.Dropout(.1), nn.Linear(256, 64))
net = nn.Sequential(*(block() for _ in range(8)))
want, flops = step(net, lambda net, x: net(x))
for how, cost, equal in ((dict(lengths=[3, 2, 2, 1], early_stop=False), 4/3, True),
                         (dict(lengths=[1]*8), 7/6, True),                     # the last product is not repeated
                         (dict(lengths=[1]*8, context_fn=selective), 1, True),
                         (dict(lengths=[8], preserve_rng_state=False), 4/3 - 1/48, False)):     # masks drawn anew
    grads, done = step(net, lambda net, x: in_segments(net, x, **how))
    assert done/flops == cost and all(map(torch.equal, grads, want)) == equal, (how, done/flops)
print("gradients and FLOP as foretold; with other masks the gradients are wrong")

"""Count the FLOP of a layer that was never allocated, and find two slips that cancel; each rank counts another length.

    torchrun --standalone --nproc-per-node=4 labs/recipes/06_count_flop.py
"""
import os

import torch
from torch import nn
from torch.utils.flop_counter import FlopCounterMode


def count(tokens, needs=True):
    """FLOP of a forward and a backward pass, over six for each parameter and token."""
    # the library
    with torch.device("meta"):
        layer = nn.TransformerEncoderLayer(
            4096, 32, 11008, batch_first=True, bias=False)
        x = torch.empty(1, tokens, 4096, requires_grad=needs)
    with FlopCounterMode(display=False) as counter:
        layer(x).sum().backward()
    params = sum(p.numel() for p in layer.parameters())
    ratio = counter.get_total_flops()/(6*params*tokens)
    # end
    return ratio


def counted(tokens, causal=False, skip=False, H=4096, ffn=11008):
    """The same by hand: causal attention, or without the input gradients of the first products."""
    products, scores = 4*H*H + 2*H*ffn, 12*tokens*tokens*H
    return (6*products*tokens + scores/(1 + causal) - skip*6*tokens*H*H)/(6*tokens*(products + 2*H))


def main():
    rank = int(os.environ.get("RANK", 0))
    tokens = 2048*(rank + 1)
    full, skipped = count(tokens), count(tokens, needs=False)
    assert abs(full/counted(tokens) - 1) < 1e-12, full
    assert abs(skipped/counted(tokens, skip=True) - 1) < 1e-12, skipped
    agrees = abs(skipped/counted(tokens, causal=True) - 1) < 1e-12
    assert agrees == (tokens == 4096)
    print(f"{tokens} tokens: {full:.3f} of 6 FLOP, {skipped:.3f} where x needs no gradient, "
          f"{counted(tokens, causal=True):.3f} causal")


if __name__ == "__main__":
    main()

"""PyTorch counts the FLOP of a step of a small decoder: each rank its own tokens; the counts add up to the formula's.

    torchrun --standalone --nproc-per-node=4 labs/recipes/01_flops.py
"""
import os
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn import functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

L, H, HEADS, FFN, V, S, B = 2, 64, 4, 160, 100, 48, 2          # of one rank: B sequences of S tokens


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv, self.out = nn.Linear(H, 3*H, bias=False), nn.Linear(H, H, bias=False)
        self.gate, self.up, self.down = (nn.Linear(*size, bias=False) for size in ((H, FFN), (H, FFN), (FFN, H)))

    def forward(self, x):
        q, k, v = (y.view(B, S, HEADS, -1).transpose(1, 2) for y in self.qkv(x).chunk(3, -1))
        x = x + self.out(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(B, S, H))
        return x + self.down(F.silu(self.gate(x))*self.up(x))


def counted(step, peak, backend=SDPBackend.MATH):
    """FLOP that PyTorch sees in a step, and the share of the peak that they are."""
    # the library
    with FlopCounterMode(display=False) as seen, sdpa_kernel(backend):
        step()                          # forward and backward
    start = time.perf_counter()
    step()                              # once more: counting is slow
    # on a GPU: torch.cuda.synchronize(), before both clocks
    took = time.perf_counter() - start
    flop = seen.get_total_flops()
    return flop, flop/(took*peak)       # peak of one device, dense
    # end


dist.init_process_group("gloo")
torch.manual_seed(dist.get_rank())
net = nn.Sequential(nn.Embedding(V, H), *[Layer() for _ in range(L)], nn.Linear(H, V, bias=False))
tokens = torch.randint(V, (B, S))
step = lambda: F.cross_entropy(net(tokens).flatten(0, 1), tokens.flatten()).backward()
weights = sum(p.numel() for p in net.parameters()) - V*H        # the embedding is a lookup
flop, share = counted(step, 1e12)
fused, _ = counted(step, 1e12, SDPBackend.FLASH_ATTENTION)
total = torch.tensor([flop, fused])
dist.all_reduce(total)
total = total.tolist()
all_tokens = B*S*dist.get_world_size()
assert total[0] == all_tokens*(6*weights + 12*L*H*S)            # full attention, although it is causal
assert total[1] == all_tokens*6*weights                         # the CPU's fused kernel: attention is not counted
assert share > 0
if dist.get_rank() == 0:
    print(f"{all_tokens} tokens: {total[0]:,} FLOP, 6 for each weight and token and full attention")
dist.destroy_process_group()
os._exit(0)                                        # at once: gloo's threads may outlive Python, and abort

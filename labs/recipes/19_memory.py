"""What one layer keeps for its backward pass, counted by PyTorch: each storage once.

    torchrun --standalone --nproc-per-node=1 labs/recipes/19_memory.py
"""
import torch
from torch import nn


def kept(layer, x):
    """Bytes that the forward pass of a layer keeps, without its parameters."""
    # the library
    seen = {}

    def pack(tensor):
        storage = tensor.untyped_storage()
        seen[storage.data_ptr()] = storage.nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda t: t):
        layer(x)
    # end
    for p in layer.parameters():             # they live anyway
        seen.pop(p.untyped_storage().data_ptr(), None)
    return sum(seen.values())


def main():
    torch.manual_seed(19)
    S, H, heads = 1024, 512, 8
    layer = nn.TransformerEncoderLayer(H, heads, 4*H, dropout=0.0, activation="gelu", batch_first=True, norm_first=True)
    got = kept(layer, torch.randn(1, S, H, requires_grad=True))
    print(got/(S*H), "bytes an element of x")
    assert got == S*(2*32*H + 4*heads + 4*4), got   # fp32: 2 x 32 (34 without two masks), log-sums, two norms' mean and root


if __name__ == "__main__":
    main()

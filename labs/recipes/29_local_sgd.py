"""DiLoCo from two optimizers of PyTorch: steps alone, then an outer step on the mean change of the weights.

    torchrun --standalone --nproc-per-node=4 labs/recipes/29_local_sgd.py
"""
import os

import torch
import torch.distributed as dist

torch.set_num_threads(1)
dist.init_process_group("gloo")
rank, P = dist.get_rank(), dist.get_world_size()


def train(H, rounds, outer_rate, momentum):
    """The weights of the last average, and the largest difference between ranks."""
    torch.manual_seed(29)                                     # the same weights everywhere
    net = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.Tanh(), torch.nn.Linear(16, 1)).double()
    data = torch.Generator().manual_seed(100 + rank)          # other points on each rank
    inner = torch.optim.SGD(net.parameters(), lr=.1)
    shared = [p.detach().clone() for p in net.parameters()]
    outer = torch.optim.SGD(shared, lr=outer_rate, momentum=momentum, nesterov=momentum > 0)
    for _ in range(rounds):
        for _ in range(H):
            x = torch.randn(16, 8, generator=data, dtype=torch.float64)
            inner.zero_grad()
            (net(x) - x.sum(1, keepdim=True).sin()).square().mean().backward()
            inner.step()
        # the library
        for w, p in zip(shared, net.parameters()):
            w.grad = w - p.detach()            # what a round changed
            dist.all_reduce(w.grad)
            w.grad /= dist.get_world_size()
        outer.step()                           # SGD, .7, Nesterov .9
        with torch.no_grad():
            for w, p in zip(shared, net.parameters()):
                p.copy_(w)
        # end
    flat = torch.cat([w.flatten() for w in shared])
    other = flat.clone()
    dist.broadcast(other, 0)
    return flat, float((flat - other).abs().max())


def reference(steps):
    """Data parallelism by hand: all ranks' points in one mean, a step at a time."""
    torch.manual_seed(29)
    net = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.Tanh(), torch.nn.Linear(16, 1)).double()
    draws = [torch.Generator().manual_seed(100 + r) for r in range(P)]
    sgd = torch.optim.SGD(net.parameters(), lr=.1)
    for _ in range(steps):
        x = torch.cat([torch.randn(16, 8, generator=g, dtype=torch.float64) for g in draws])
        sgd.zero_grad()
        (net(x) - x.sum(1, keepdim=True).sin()).square().mean().backward()
        sgd.step()
    return torch.cat([p.detach().flatten() for p in net.parameters()])


each, apart = train(H=1, rounds=40, outer_rate=1., momentum=0.)
want = reference(40)
assert apart == 0 and (each - want).abs().max() < 1e-12*want.abs().max()
rare, apart = train(H=8, rounds=5, outer_rate=.7, momentum=.9)
assert apart == 0 and (P == 1 or (rare - want).abs().max() > 1e-6)
if rank == 0:
    print(f"{P} ranks: with H = 1 and outer rate 1 the weights of data parallelism; all ranks agree after rounds of 8")
dist.destroy_process_group()
os._exit(0)                                        # at once: gloo's threads may outlive Python, and abort

"""An all-reduce in two levels, by hand, and the bandwidth of each cut apart: inside the boxes, and card by card across them.

    torchrun --standalone --nproc-per-node=4 labs/recipes/03_two_levels.py

It runs on gloo, as two boxes of two; on NCCL, with a GPU for every process, a box is a node.  Chapter 3 explains the groups.
"""
import os
import time
import warnings

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh

warnings.simplefilter("ignore", FutureWarning)          # PyTorch 2.13 calls the two below *_single; older ones do not
local = int(os.environ["LOCAL_WORLD_SIZE"])
gpus = torch.cuda.device_count() >= local
kind = "cuda" if gpus else "cpu"
if gpus:
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
dist.init_process_group("nccl" if gpus else "gloo")
G = local if gpus and dist.get_world_size() > local else local//2
N = dist.get_world_size()//G

# shown in the chapter
mesh = init_device_mesh(kind, (N, G), mesh_dim_names=("rail", "box"))
box, rail = mesh["box"].get_group(), mesh["rail"].get_group()

def two_levels(x):
    part = x.new_empty(x.numel()//G)
    dist.reduce_scatter_tensor(part, x, group=box)
    dist.all_reduce(part, group=rail)
    dist.all_gather_into_tensor(x, part, group=box)
# end


def seconds(program, x, calls=5):
    """Time of program(x), the mean of `calls` after 2 that are not timed."""
    for k in range(calls + 2):
        if k == 2:
            dist.barrier()
            if gpus:
                torch.cuda.synchronize()
            start = time.perf_counter()
        program(x)
    if gpus:
        torch.cuda.synchronize()
    return (time.perf_counter() - start)/calls


ones = torch.ones(4*G, device=kind)
two_levels(ones)
assert torch.equal(ones, torch.full_like(ones, N*G)), ones
x = torch.zeros((2**28 if gpus else 2**22)//G*G, device=kind)
nbytes = x.numel()*x.element_size()
rows = {"inside each box": (lambda x: dist.all_reduce(x, group=box), G),
        "card by card": (lambda x: dist.all_reduce(x, group=rail), N),
        "all, the library's": (dist.all_reduce, N*G), "all, two levels": (two_levels, N*G)}
times = {name: seconds(program, x) for name, (program, P) in rows.items()}
if dist.get_rank() == 0:
    print(f"{N} boxes of {G}, {dist.get_backend()}, PyTorch {torch.__version__}, {nbytes/1e6:.0f} MB: the sums agree")
    for name, (_, P) in rows.items():
        print(f"{name:20} {times[name]*1e3:8.2f} ms {2*nbytes*(P - 1)/P/times[name]/1e9:8.2f} GB/s of bus bandwidth")
dist.barrier()
ones = x = rows = mesh = box = rail = None               # nothing of a collective is held at exit
dist.destroy_process_group()
os._exit(0)                                        # at once: gloo's threads may outlive Python, and abort

"""What PyTorch sends: its collectives and messages, how often, over how many ranks, and a rank's bytes in them."""
from collections import Counter
from fractions import Fraction

import torch
import torch.distributed as dist
from torch.distributed.distributed_c10d import _resolve_process_group
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

NAMES = {"c10d::_allgather_base_": "all_gather", "c10d::_reduce_scatter_base_": "reduce_scatter",
         "c10d::allreduce_": "all_reduce", "_c10d_functional::all_reduce": "all_reduce",
         "_c10d_functional::all_gather_into_tensor": "all_gather",
         "_c10d_functional::reduce_scatter_tensor": "reduce_scatter", "c10d::send": "send"}
FREE = {"_c10d_functional::wait_tensor", "_c10d_functional::_wrap_tensor_autograd", "c10d::recv_"}


class Count(TorchDispatchMode):
    """Calls and bytes of all collectives inside it, both by (collective, ranks); a message is a "send".

    The bytes are those a rank sends by a ring: (k - 1)/k of the whole tensor, twice that for an all-reduce.
    """

    def __init__(self):
        super().__init__()
        self.calls, self.nbytes = Counter(), Counter()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        name = func._schema.name
        if name.startswith(("c10d::", "_c10d_functional::")) and name not in FREE:
            leaves = tree_leaves((args, kwargs))
            whole, k = max(t.nbytes for t in leaves if isinstance(t, torch.Tensor)), ranks(leaves)
            if name == "_c10d_functional::all_gather_into_tensor":       # its argument is this rank's part
                whole *= k
            name = NAMES[name]
            self.calls[name, k] += 1
            self.nbytes[name, k] += whole if name == "send" else Fraction(whole*(k - 1)*(1 + (name == "all_reduce")), k)
        return func(*args, **(kwargs or {}))


def ranks(arguments):
    """Size of the group that a collective was called for."""
    for x in arguments:
        if isinstance(x, torch.ScriptObject) and "ProcessGroup" in str(x._type()):
            return dist.ProcessGroup.unbox(x).size()
    return next(_resolve_process_group(x).size() for x in arguments if isinstance(x, str) and x not in ("sum", "avg"))

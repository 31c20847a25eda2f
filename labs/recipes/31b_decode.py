"""Writing with a cache in PyTorch: keys and values kept, heads split over four processes, against one full pass.

    torchrun --standalone --nproc-per-node=4 labs/recipes/31b_decode.py

A layer of grouped-query attention reads a prompt in two chunks and then token by token.  The outputs are those of one causal
pass over everything, which has no cache; with `is_causal=True` behind a cache they are not.
"""
import os

import torch
import torch.distributed as dist
from torch.nn.attention.bias import causal_lower_right
from torch.nn.functional import linear, scaled_dot_product_attention as sdpa

# the library
def attend(x, wq, wk, wv, kept, at):     # x: what is new
    end = at + x.shape[1]                # at: tokens before
    q, k, v = (heads(x, w) for w in (wq, wk, wv))
    kept[0][:, :, at:end], kept[1][:, :, at:end] = k, v
    k, v = (m[:, :, :end] for m in kept)
    mask = causal_lower_right(end - at, end)
    return sdpa(q, k, v, attn_mask=mask, enable_gqa=True)
# end

def heads(x, w):
    return linear(x, w).unflatten(-1, (-1, HEAD)).transpose(1, 2)


def merged(y, wo):
    """The output of all heads from those of this process: a term, summed over the processes."""
    y = linear(y.transpose(1, 2).flatten(2), wo)
    dist.all_reduce(y)
    return y


HEAD, QUERY, KEY, WIDTH, TOKENS = 8, 16, 4, 32, 14
dist.init_process_group("gloo")
rank, ranks = dist.get_rank(), dist.get_world_size()
assert KEY % ranks == 0, f"{KEY} key-value heads on {ranks} processes: torchrun --nproc-per-node=4"
torch.manual_seed(31)                              # the same weights and tokens on every rank
torch.set_default_dtype(torch.float64)
x = torch.randn(2, TOKENS, WIDTH)
wq, wk, wv, wo = (torch.randn(*s)/6 for s in ((QUERY*HEAD, WIDTH), (KEY*HEAD, WIDTH), (KEY*HEAD, WIDTH), (WIDTH, QUERY*HEAD)))
whole = sdpa(*(heads(x, w) for w in (wq, wk, wv)), is_causal=True, enable_gqa=True)
want = linear(whole.transpose(1, 2).flatten(2), wo)

mine = [w.chunk(ranks)[rank] for w in (wq, wk, wv)]              # whole heads: rows
kept = torch.zeros(2, 2, KEY//ranks, TOKENS, HEAD)               # keys, values
at, got = 0, []
for new in (5, 3, *[1]*(TOKENS - 8)):                            # two chunks of the prompt, then token by token
    got.append(merged(attend(x[:, at:at + new], *mine, kept, at), wo.chunk(ranks, 1)[rank]))
    at += new
assert torch.allclose(torch.cat(got, 1), want), "the outputs of one causal pass"
q, k, v = (heads(x[:, 8:], wq), *(heads(x, w) for w in (wk, wv)))
wrong = sdpa(q, k, v, is_causal=True, enable_gqa=True)           # upper left: the first new token sees the first token alone
assert not torch.allclose(wrong, whole[:, :, 8:]), "is_causal behind a cache is another mask"
assert torch.allclose(wrong[:, :, :1], v[:, :, :1].repeat_interleave(QUERY//KEY, 1))
assert kept.numel()*ranks == 2*2*KEY*HEAD*TOKENS, "each process keeps its heads' share"
print(f"rank {rank} of {ranks}: {TOKENS} tokens in {len(got)} pieces agree with one pass; {kept.nbytes} bytes kept here")
dist.destroy_process_group()
os._exit(0)                                        # at once: gloo's threads may outlive Python, and abort

"""How a training step is cut over the devices of a cluster."""
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np

from . import legality, specs
from .algebra import maximum, minimum
from .legality import SCHEDULES


@dataclass(frozen=True, kw_only=True)
class Layout:
    """How many ranks each parallelism uses, what is sharded and recomputed, how the batch is cut.

    batch      sequences in one optimizer step
    microbatch sequences that one data-parallel rank handles at a time
    dp, tp, pp, cp   data-, tensor-, pipeline-, context-parallel ranks; their product is the devices
    ep         expert-parallel ranks, a part of dp*cp*tp and no factor of its own
    chunks     model chunks of a pipeline rank; above 1 the schedule is interleaved
    zero       0 replicates the model state over the data-parallel ranks, 1 shards the optimizer
               state, 2 the gradients too, 3 the weights too
    recompute  share of each layer's forward pass that is done again in the backward pass
    sequence_parallel   True where the tensor-parallel ranks also share what lies between matmuls
    scores     share of the attention scores kept for the backward pass; 0 for a fused kernel
    shards     ranks that share one copy where zero shards anything, copies being all-reduced; None for all replicas
    attention_recompute   share of attention's own two products that is done again; None for `recompute`
    schedule   order of a pipeline: 0 is 1F1B, interleaved where chunks are above 1; in the others weight
               gradients wait: 1 is ZB-H1, 2 ZB-H2, 3 ZB-V, whose two chunks are folded
    cheap_recompute   share of the layers that are not run again which keep no output of a norm or of the feed-forward
               block's non-linearity, and make it again, element by element, from what they keep

    Numbers may be arrays or symbols; `zero` and `sequence_parallel` are choices, and choices are
    Python. Raises ValueError, naming the field, for a count below 1, a share outside 0 to 1 or an
    unknown stage.
    """
    batch: Any
    microbatch: Any = 1
    dp: Any = 1
    tp: Any = 1
    pp: Any = 1
    cp: Any = 1
    ep: Any = 1
    chunks: Any = 1
    zero: int = 1
    recompute: Any = 0
    sequence_parallel: bool = False
    scores: Any = 0
    shards: Any = None
    attention_recompute: Any = None
    schedule: Any = 0
    cheap_recompute: Any = 0

    def __post_init__(self):
        specs.at_least(1, batch=self.batch, microbatch=self.microbatch, dp=self.dp, tp=self.tp,
                       pp=self.pp, cp=self.cp, ep=self.ep, chunks=self.chunks, shards=self.shards)
        shares = {name: getattr(self, name) for name in ("recompute", "scores", "attention_recompute", "cheap_recompute")}
        specs.at_least(0, **shares)
        for name, share in shares.items():
            if share > 1 if isinstance(share, Real) else isinstance(share, np.ndarray) and np.any(share > 1):
                raise ValueError(f"{name} = {share!r}; allowed: a share from 0 to 1")
        if type(self.zero) is not int or not 0 <= self.zero <= 3:
            raise ValueError(f"zero = {self.zero!r}; allowed: 0, 1, 2 or 3")
        orders = np.unique(self.schedule) if isinstance(self.schedule, np.ndarray) else (self.schedule,)
        if _are_known(self.schedule) and not all(k in range(len(SCHEDULES)) for k in orders):
            raise ValueError(f"schedule = {self.schedule!r}; allowed: {', '.join(f'{k} ({s})' for k, s in enumerate(SCHEDULES))}")
        if type(self.sequence_parallel) is not bool:
            raise ValueError(f"sequence_parallel = {self.sequence_parallel!r}; allowed: True, False")

    @property
    def devices(self):
        """Devices of the whole layout."""
        return self.dp*self.cp*self.tp*self.pp

    @property
    def microbatches(self):
        """Micro-batches that each data-parallel rank handles in one step."""
        return self.batch/(self.dp*self.microbatch)

    @property
    def replicas(self):
        """Ranks that hold the same part of the model before anything is sharded."""
        return self.dp*self.cp

    @property
    def expert_replicas(self):
        """Ranks that hold the same experts before anything is sharded; tensor ranks hold whole experts."""
        return self.dp*self.cp*self.tp/self.ep

    @property
    def shard_ranks(self):
        """Ranks that share one copy of what `zero` shards."""
        return self.replicas if self.shards is None else self.shards

    @property
    def expert_shard_ranks(self):
        """Ranks that share one copy of the same experts where `zero` shards them: those that hold them of the ranks of a copy."""
        if self.shards is None:
            return self.expert_replicas
        return minimum(maximum(self.shards*self.tp/self.ep, 1), self.expert_replicas)

    @property
    def copies(self):
        """Copies of what `zero` shards."""
        return self.replicas/self.shard_ranks

    @property
    def weight_ranks(self):
        """Ranks that share one part's weights."""
        return self.shard_ranks if self.zero >= 3 else 1

    @property
    def grad_ranks(self):
        """Ranks that share one part's gradients."""
        return self.shard_ranks if self.zero >= 2 else 1

    @property
    def optimizer_ranks(self):
        """Ranks that share one part's optimizer state."""
        return self.shard_ranks if self.zero >= 1 else 1

    @property
    def attention_again(self):
        """Share of attention's own two products that is done again."""
        return self.recompute if self.attention_recompute is None else self.attention_recompute

    @property
    def seq_ranks(self):
        """Ranks that share the activations between matmuls."""
        return self.tp if self.sequence_parallel else 1

    def check(self, model, cluster, seq_len=None):
        """The reasons this layout is illegal for model and cluster, as sentences; () if none.

        With a length, the rules that need one are asked too; all of them stand in `capacity.legality`.
        For a layout, a model and a cluster of numbers; raises TypeError for arrays and symbols.
        """
        if not self._is_of_numbers(model, cluster):
            raise TypeError("check() judges one layout of numbers, not arrays or symbols")
        more = {"shards": self.shard_ranks} | ({} if seq_len is None else {"seq_len": seq_len})
        return legality.broken(legality.letters(model, devices=cluster.devices, **vars(self) | more))

    def demand_legal(self, model, cluster):
        """Raise ValueError with the sentences of `check` if this layout is illegal.

        Where the layout holds arrays, only its devices and micro-batches are checked, for each element;
        the layouts of a sweep may be illegal in other ways. Symbols pass.
        """
        if self._is_of_numbers(model, cluster):
            if wrong := self.check(model, cluster):
                raise ValueError(" ".join(wrong))
            return
        if _are_known(self.devices, cluster.devices) and np.any(self.devices != cluster.devices):
            raise ValueError(f"dp*cp*tp*pp = {self.devices!r}, and the cluster has {cluster.devices!r} devices.")
        if _are_known(self.microbatches) and np.any(self.microbatches % 1 != 0):
            raise ValueError(f"batch/(dp*microbatch) = {self.microbatches!r}; allowed: whole micro-batches.")

    def _is_of_numbers(self, model, cluster):
        kinds = {type(x) for x in (self.batch, self.microbatch, self.dp, self.tp, self.pp, self.cp, self.ep, self.chunks,
                                   model.layers, model.heads, model.kv_heads, model.ffn, model.vocab, cluster.devices)}
        return kinds == {int} or all(issubclass(kind, Real) for kind in kinds)


def _are_known(*values):
    return all(isinstance(x, (Real, np.ndarray)) for x in values)

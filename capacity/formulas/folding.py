"""Two meshes over the same ranks: copies, gradients, memory and traffic of mixtures of experts."""
from __future__ import annotations

from ..grammar import formula
from ..units import Bytes, Count, Ratio

CHAPTER = "25-4d-5d-parallelism"


@formula(chapter=CHAPTER, source="derived")
def expert_replicas(tp: Count, cp: Count, dp: Count, expert_tp: Count, ep: Count) -> Ratio:
    """Ranks of a pipeline stage that hold the same part of the same experts; a fold is legal where it is whole."""
    return tp*cp*dp/(expert_tp*ep)


@formula(chapter=CHAPTER, source="derived")
def gradient_ranks(dp: Count, cp: Count, seq_ranks: Count) -> Ratio:
    """Ranks over which the gradient of a weight outside of the experts is a sum of terms.

    `seq_ranks`: tensor-parallel ranks for what they apply to different tokens, the router and, under sequence
    parallelism, the norms; 1 for the matrices that they share.
    """
    return dp*cp*seq_ranks


@formula(chapter=CHAPTER, source="derived")
def mixture_state_bytes(dense_params: Count, expert_params: Count, tp: Count, cp: Count, dp: Count, pp: Count,
                        expert_tp: Count, ep: Count, weight: Bytes, grad: Bytes, optimizer: Bytes) -> Bytes:
    """Bytes of model state that a rank holds, with the optimizer's state cut over the copies (ZeRO-1).

    An average over the pipeline's stages; norms and routers, which tensor-parallel ranks do not share, as if they did.
    """
    return ((weight + grad)*(dense_params/(tp*pp) + expert_params/(ep*expert_tp*pp))
            + optimizer*(dense_params + expert_params)/(tp*cp*dp*pp))


@formula(chapter=CHAPTER, source="derived")
def expert_dispatch_bytes(routed_tokens: Ratio, active: Count, hidden: Count, element_bytes: Bytes, ep: Count,
                          expert_tp: Count) -> Bytes:
    """Bytes that a rank sends in one dispatch, a copy per expert and rank that shares it; a combine sends as many.

    `routed_tokens`: different ones on every rank.  An average over routers that choose all experts equally often.
    """
    return routed_tokens*active*hidden*element_bytes*(expert_tp - 1/ep)


@formula(chapter=CHAPTER, source="derived")
def expert_rows(routed_tokens: Ratio, active: Count, experts: Count, ep: Count, expert_tp: Count) -> Ratio:
    """Tokens that an expert receives at a time, on average: rows of its products."""
    return routed_tokens*active*ep*expert_tp/experts

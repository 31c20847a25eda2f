"""Parameters, traffic and load of mixtures of experts."""
from __future__ import annotations

from ..algebra import log, sqrt
from ..grammar import formula
from ..units import Bytes, BytesPerSecond, Count, Flops, FlopsPerSecond, Share, Ratio


# traffic
@formula(chapter="18-expert-parallelism-sparsity", source="derived")
def dispatch_bytes(routed_tokens: Ratio, active: Count, hidden: Count, element_bytes: Bytes, P: Count) -> Bytes:
    """Bytes that each of P ranks sends in one dispatch, a copy per expert; a combine sends as many.

    An average over routers that send a copy to every rank equally often, the rank itself included.
    """
    return routed_tokens*active*hidden*element_bytes*(P - 1)/P


@formula(chapter="18-expert-parallelism-sparsity", source="derived")
def distinct_nodes(active: Count, nodes: Count) -> Ratio:
    """Different nodes that a token's experts are on, on average, if they are drawn from very many, evenly spread."""
    return nodes*(1 - (1 - 1/nodes)**active)


@formula(chapter="18-expert-parallelism-sparsity", source="deepseek2024")
def balanced_experts(node_limit: Ratio, beta1: BytesPerSecond, beta2: BytesPerSecond) -> Ratio:
    """Experts per token up to which copying inside the nodes is no slower than reaching the nodes.

    A token crosses the network once per node and NVLink once per expert, both networks work at once, and a copy is as
    likely to stay on its device as on its node: there are as many nodes as devices in a node.
    """
    return node_limit*beta1/beta2


@formula(chapter="18-expert-parallelism-sparsity", source="derived")
def expert_overlap(ffn: Count, active: Count, copies: Ratio, matrices: Count, element_bytes: Bytes,
                   peak: FlopsPerSecond, beta: BytesPerSecond, *, multiply_add: Flops = 2) -> Ratio:
    """Time of the experts' arithmetic at peak over the time of one dispatch and one combine.

    `copies`: of a token, over the link of bandwidth `beta`, each way.
    """
    return multiply_add*matrices*active*ffn*beta/(2*copies*element_bytes*peak)


# thresholds
@formula(chapter="18-expert-parallelism-sparsity", source="derived")
def tokens_to_read_experts(experts: Count, active: Count, weight: Bytes, peak: FlopsPerSecond,
                           bandwidth: BytesPerSecond, *, multiply_add: Flops = 2) -> Ratio:
    """Tokens at which the arithmetic of all experts together takes as long as reading their weights once."""
    return experts*weight*peak/(active*multiply_add*bandwidth)


# load
@formula(chapter="18-expert-parallelism-sparsity", source="derived")
def expected_max_load(mean_load: Ratio, visit: Share, experts: Count) -> Ratio:
    """Upper estimate of the average load of the busiest expert, if routing is uniform and loads are Gaussian."""
    return mean_load + sqrt(2*mean_load*(1 - visit)*log(experts))

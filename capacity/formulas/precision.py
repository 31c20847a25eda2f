"""Rounding of sums that ranks add up one after the other or in pairs."""
from __future__ import annotations

from ..algebra import ceil, log2
from ..grammar import formula
from ..units import Count, Ratio


@formula(chapter="11-collective-primitives", source="higham2002")
def chain_sum_error(P: Count, roundoff: Ratio) -> Ratio:
    """Bound on the error of a sum of P terms added one by one, over the sum of their sizes, to first order."""
    return (P - 1)*roundoff


@formula(chapter="11-collective-primitives", source="higham2002")
def tree_sum_error(P: Count, roundoff: Ratio) -> Ratio:
    """Bound on the error of a sum of P terms added in a balanced tree, over the sum of their sizes, to first order."""
    return ceil(log2(P))*roundoff

"""What a user requests to be measured of chains."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

SIZES = {"pairs": 2, "triples": 3}
"""Names of chain lengths from which orders are drawn."""
COUNT = 20
"""Orders of each length that are drawn unless the user gives another number."""


@dataclass(frozen=True, slots=True)
class ChainRequest:
    """What to measure.

    Parameters
    ----------
    chains
        Chains as users write them (`profiles.chain_text`).
    drawn
        Lengths of which orders are drawn: `pairs`, `triples`.
    count
        Orders that are drawn of each length.
    nfs
        The NFs of drawn orders; all of the testbed when empty.
    most_cores
        The most cores of a chain; None for all of the NIC.
    shares
        The share of its time that each core spends on the chain, every combination.
    """

    chains: Sequence[str] = ()
    drawn: Sequence[str] = ()
    count: int = COUNT
    nfs: Sequence[str] = ()
    most_cores: int | None = None
    shares: Sequence[float] = (1.0,)

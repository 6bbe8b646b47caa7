"""In which order numbers of cores are tried for an instance with a rate.

The fewest cores that carry its rate with little to spare are a bad choice where there is much contention: what is
spared there is lost by its neighbours.
"""

from __future__ import annotations

from collections.abc import Sequence

from placer.model.nic_kind import NicKind, choices_on
from placer.model.oracle import Oracle
from profiles import Workload

USUAL_ROOM = 1.1
"""What an NF must be able to carry alone on the cores that it gets first, relative to what is offered to it."""


def order_choices(
    kinds: Sequence[NicKind], oracles: Sequence[Oracle], workload: Workload, room: float = USUAL_ROOM
) -> list[Workload]:
    """The workload on each number of cores that it may be given, in the order in which they are tried.

    First come those on which it could carry `room` times its rate alone, the fewest first; then the others, the most
    first. As it is where its number is fixed.
    """
    choices = choices_on(kinds, workload)
    if len(choices) == 1:
        return choices
    tight = [choice for choice in choices if _carried_alone(kinds, oracles, choice) < room * workload.rate_kpps]
    return [choice for choice in choices if choice not in tight] + tight[::-1]


def _carried_alone(kinds: Sequence[NicKind], oracles: Sequence[Oracle], workload: Workload) -> float:
    """The most that a NIC of some kind carries of the workload alone, kpps; a GPU's part does not depend on cores."""
    # the truth of a testbed is never above the rate: what it could carry is what it carries of more
    asked = workload if workload.promises_latency else workload.saturated
    carried = (oracles[kind.index].solo(asked) for kind in kinds if not kind.paced and kind.hosts(workload))
    return max(carried, default=0.0)

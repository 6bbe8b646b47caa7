"""Strategies that place chains on a rack: from chains, a rack and a time limit to a plan; and how one is run.

Each file registers one function under its own name. Another package adds its own by an entry point of the group
`placer.chain_strategies`. `optimal` searches all plans and proves the best; the others are those that Lemur is compared
with (section 5.1).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol, TypeVar

from profiles.registry import Registry

if TYPE_CHECKING:
    from placer.rack.chain import Chain
    from placer.rack.plan import RackPlan
    from placer.rack.rack import Rack


EQUAL_MARGINALS = 1e-9  # relative: a marginal throughput this near its bound is optimal
Notify = Callable[[str], None]  # called with messages on progress


class ChainStrategy(Protocol):
    """A way to place chains."""

    def __call__(self, chains: Sequence[Chain], rack: Rack, *, time_limit: float, notify: Notify) -> RackPlan:
        """A plan; of status `unknown`, with a note why, where the strategy finds none."""


S = TypeVar("S", bound=ChainStrategy)

CHAIN_STRATEGIES: Registry[ChainStrategy] = Registry(
    "strategy for chains",
    room="placer.rack.strategies",
    group="placer.chain_strategies",
    option="--strategy",
    first=("optimal",),
)
"""Every strategy by name."""


def register(name: str) -> Callable[[S], S]:
    """A decorator that makes a strategy known."""

    def decorate(strategy: S) -> S:
        CHAIN_STRATEGIES.register(name)(strategy)
        return strategy

    return decorate


def run_strategy(
    name: str, chains: Sequence[Chain], rack: Rack, *, time_limit: float = 60.0, notify: Notify = lambda message: None
) -> RackPlan:
    """The plan of a strategy, with a bound; `seconds` are those of the strategy alone.

    `name`: of the strategy. Where it gives no bound, that of `optimal` is taken. `time_limit`: seconds for the
    strategy, and again for the bound. Raises InputError when there is no such strategy, or it cannot plan the rack.
    """
    from placer.rack.plan import Status

    strategy = CHAIN_STRATEGIES.find(name)
    if name != "optimal":
        rack.refuse_for(f"the strategy {name}", "--strategy optimal")
    begin = time.perf_counter()
    plan = strategy(chains, rack, time_limit=time_limit, notify=notify)
    plan = replace(plan, seconds=time.perf_counter() - begin)
    if plan.bound_mbps is not None or plan.status is Status.INFEASIBLE:
        return plan
    best = CHAIN_STRATEGIES["optimal"](chains, rack, time_limit=time_limit, notify=notify)
    if not plan.chains:
        status = Status.INFEASIBLE if best.status is Status.INFEASIBLE else Status.UNKNOWN
        return replace(plan, status=status, bound_mbps=best.bound_mbps)
    if best.bound_mbps is None:
        return plan
    bound = max(best.bound_mbps, plan.marginal_mbps)
    proven = bound <= plan.marginal_mbps + EQUAL_MARGINALS * max(plan.marginal_mbps, 1.0)
    return replace(plan, bound_mbps=bound, status=Status.OPTIMAL if proven else Status.FEASIBLE)

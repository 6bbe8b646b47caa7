"""Strategies on the instances of figure 2: sets of chains, each at several least rates."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from experiments.lemur.methodology.paper_rack import CHAIN_SETS, RATE_DELTAS, chains, rack
from experiments.registry import Setting
from placer.rack.plan import RackPlan, Status
from placer.rack.strategies import CHAIN_STRATEGIES

TIME_LIMIT_S = 60.0
RIVAL_STRATEGIES = ("hardware-preferred", "greedy", "software-preferred", "minimum-bounce")  # those of section 5.1
TOGGLED_STRATEGIES = ("no-profiling", "no-core-allocation")  # those of section 5.3
ALL_STRATEGIES = ("optimal", "lemur", *RIVAL_STRATEGIES, *TOGGLED_STRATEGIES)
SAME_THROUGHPUT = 1e-3  # relative: marginal throughputs this near are the same, 0.1 %


@dataclass(frozen=True, order=True)
class Instance:
    """Chains and their least rates."""

    numbers: tuple[int, ...]  # of the chains
    delta: float  # the least rates as multiples of the base rates

    @property
    def name(self) -> str:
        return "".join(map(str, self.numbers))


Plans = Mapping[str, Mapping[Instance, RackPlan]]  # by strategy and instance


def figure_instances(setting: Setting) -> list[Instance]:
    """The paper's 40; at a smaller scale the first least rates of each set."""
    return [
        Instance(numbers, delta)
        for numbers in CHAIN_SETS
        for delta in RATE_DELTAS[: setting.count(len(RATE_DELTAS), 2)]
    ]


def plans_of(instances: Sequence[Instance], **changes: Any) -> Plans:
    """Each strategy's plan for each instance. `changes`: of the rack."""
    on = rack(**changes)
    return {
        name: {
            instance: CHAIN_STRATEGIES[name](
                chains(instance.numbers, instance.delta), on, time_limit=TIME_LIMIT_S, notify=_quiet
            )
            for instance in instances
        }
        for name in ALL_STRATEGIES
    }


def _quiet(message: str) -> None:
    """Progress of single plans, which take tenths of a second."""


def aggregate_gbps(plan: RackPlan) -> float:
    """The sum of rates; NaN without a plan."""
    return sum(chain.rate_mbps for chain in plan.chains) / 1000 if plan.chains else float("nan")


def marginal_gbps(plan: RackPlan) -> float:
    """The sum of rates beyond the least ones; NaN without a plan."""
    return plan.marginal_mbps / 1000 if plan.chains else float("nan")


def is_best(plan: RackPlan, best: RackPlan) -> bool:
    """Whether a plan gives as much as the proven optimum."""
    proven = best.status is Status.OPTIMAL
    return proven and bool(plan.chains) and plan.marginal_mbps >= best.marginal_mbps * (1 - SAME_THROUGHPUT)

"""Section 5.2: plans that are made with wrong cycles, and what they carry with the true ones."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from experiments.lemur import BY_CYCLES, NOT_PRINTED, PAPER
from experiments.lemur.methodology.compared import SAME_THROUGHPUT, TIME_LIMIT_S, Instance, figure_instances
from experiments.lemur.methodology.paper_rack import NF_CYCLES, chains, rack
from experiments.methodology.accuracy import verdict_on
from experiments.registry import Result, Setting, experiment
from placer.rack.heuristics.fixed_layouts import CoreAllocation, plan_of
from placer.rack.plan import Layout, RackPlan
from placer.rack.rack import CoreCost, Rack
from placer.rack.strategies import CHAIN_STRATEGIES

ERROR_PERCENTAGES = (1, 2, 4, 8, 10)
COMPARED_STRATEGIES = ("optimal", "lemur")
ALL_TOO_LOW, EACH_OFF = "all too low", "each off"
PUBLISHED_SAME_PCT = 8
"""Up to here, with all cycles too low, the paper's heuristic gives the same aggregate marginal throughput."""


@experiment(PAPER, "lemur-errors", "Plans made with wrong cycles, judged by the true ones")
def run(setting: Setting) -> Result:
    """Cycles are all too low by a share, or each is off by at most this share, at random."""
    instances = figure_instances(setting)
    on = rack()
    true = {name: _plans(name, instances, on) for name in COMPARED_STRATEGIES}
    rng = setting.rng("lemur-errors")
    rows = []
    for pct in ERROR_PERCENTAGES:
        setting.say(
            f"errors of {pct} %: {len(COMPARED_STRATEGIES)} strategies, {len(instances)} instances, two kinds of errors"
        )
        low = dict.fromkeys(NF_CYCLES, 1 - pct / 100)
        drawn = {nf: 1 + float(rng.uniform(-pct, pct)) / 100 for nf in NF_CYCLES}
        for kind, factors in ((ALL_TOO_LOW, low), (EACH_OFF, drawn)):
            wrong = _with_cycles(on, factors)
            for name in COMPARED_STRATEGIES:
                plans = {one: _judge(plan, on) for one, plan in _plans(name, instances, wrong).items()}
                rows.append(_row(pct, kind, name, plans, true[name]))
    table = pd.DataFrame(rows)
    return Result(
        table,
        (BY_CYCLES,),
        lambda figure: _draw(figure, table),
        (
            "Of the instances of figure 2 that the strategy places with true cycles, same counts those where the plan "
            "with wrong ones gives the same marginal throughput within 0.1 %, violated those where the true cycles "
            "break an SLO or where no plan was found. marginal_pct is the mean over the others, of what the plan with "
            "true cycles gives.",
            "Layouts and cores are those of the plan with wrong cycles; rates are the best that true cycles and NICs "
            f"allow. '{EACH_OFF}' draws the cycles of each NF once for each share.",
            "Published: the same marginal throughput up to errors of 8 %, cycles too low; of which sets of chains is "
            "not printed.",
        ),
    )


def _plans(strategy: str, instances: Sequence[Instance], on: Rack) -> dict[Instance, RackPlan]:
    place = CHAIN_STRATEGIES[strategy]
    return {
        instance: place(chains(instance.numbers, instance.delta), on, time_limit=TIME_LIMIT_S, notify=_quiet)
        for instance in instances
    }


def _quiet(message: str) -> None:
    """Progress of single plans, which take tenths of a second."""


def _with_cycles(on: Rack, factors: Mapping[str, float]) -> Rack:
    """The rack with the cycles on servers multiplied."""

    def changed(nf: str, cost: CoreCost | None) -> CoreCost | None:
        return cost and replace(cost, cycles=cost.cycles * Fraction(factors[nf]))

    return replace(on, costs={nf: replace(one, server=changed(nf, one.server)) for nf, one in on.costs.items()})


def _judge(plan: RackPlan, on: Rack) -> RackPlan:
    """The layouts and cores of a plan on a rack with other cycles."""
    if not plan.chains:
        return plan
    allocation = CoreAllocation(on, [Layout(chain.chain, on, chain.layout.sites) for chain in plan.chains])
    for number, one in enumerate(plan.chains):
        allocation.give(number, [int(cores) for cores in one.cores])
    return plan_of(allocation)


def _row(
    pct: int, kind: str, strategy: str, plans: Mapping[Instance, RackPlan], true: Mapping[Instance, RackPlan]
) -> dict[str, object]:
    placed = [one for one, plan in true.items() if plan.chains]
    kept = [name for name in placed if plans[name].chains]
    shares = [_share(plans[name], true[name]) for name in kept]
    same = sum(share >= 1 - SAME_THROUGHPUT for share in shares)
    published = len(placed) if (kind, strategy) == (ALL_TOO_LOW, "lemur") and pct <= PUBLISHED_SAME_PCT else None
    return {
        "error_pct": pct,
        "cycles": kind,
        "strategy": strategy,
        "placed": len(placed),
        "same": same,
        "violated": len(placed) - len(kept),
        "marginal_pct": 100 * float(np.mean(shares)) if shares else float("nan"),
        "published_same": NOT_PRINTED if published is None else "all",
        "verdict": verdict_on(["same"] if published is not None and same < published else []),
    }


def _share(plan: RackPlan, true: RackPlan) -> float:
    """What a plan gives of another's marginal throughput; 1 where both give next to nothing."""
    return plan.marginal_mbps / true.marginal_mbps if true.marginal_mbps > 1 else 1.0


def _draw(figure: Figure, table: pd.DataFrame) -> None:
    both = figure.subplots(1, 2, sharex=True)
    columns = (("same", "same marginal throughput (% of plans)"), ("violated", "SLO violated or no plan (%)"))
    for axes, (column, label) in zip(both, columns, strict=True):
        for (kind, strategy), rows in table.groupby(["cycles", "strategy"], sort=False):
            axes.plot(rows["error_pct"], 100 * rows[column] / rows["placed"], marker="o", label=f"{strategy}, {kind}")
        axes.set(xlabel="error of the cycles (%)", ylabel=label, ylim=(-3, 103))
    both[0].legend(frameon=False)

"""Contention in the loop: how many plans by cycles alone violate SLOs that plans with contention in the loop keep."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from experiments.lemur import PAPER
from experiments.lemur.methodology.contention_instances import (
    FLOWS,
    MTBR,
    RECORDED,
    ContentionInstance,
    lemur_sets,
    random_mixes,
    simulated_rack,
)
from experiments.registry import Result, Setting, experiment
from placer.inputs.models import open_models
from placer.rack.contention.loop import ContendedPlan
from placer.rack.contention.measured_rates import Capacity, capacities, measure_rates
from placer.rack.contention.modelled_growth import ModelledGrowth
from placer.rack.contention.run_contended import run_contended
from placer.rack.plan import RackPlan
from profiler.simulated import SimulatedServer
from profiler.simulated.server import SERVER
from profiler.testbed import Testbed

NOISE_PCT = 0.6
"""By so much below t_min may be due to the rack's cycles: two standard errors of means of 12 runs of 1 % noise."""
MIXES = 60
PATHS = 64
"""Cores by which the testbed counts: the paths of a branched subgroup share a core, but count as one each."""
SECONDS = 10.0
NONE = float("nan")


@dataclass(frozen=True)
class Truth:
    """What the testbed measures of a plan.

    Parameters
    ----------
    shortfall_pct
        By how much the worst chain misses its t_min, negative where none does; NaN without a plan.
    alone_pct
        The same where each subgroup has the server to itself: what cycles, not contention, have wrong.
    error_pct
        By how much planned rates are above measured ones, mean over chains.
    """

    shortfall_pct: float
    alone_pct: float
    error_pct: float

    @property
    def violated(self) -> bool:
        """Whether a chain misses its t_min beyond noise."""
        return self.shortfall_pct > NOISE_PCT


@experiment(PAPER, "lemur-contention", "SLO violations of plans by cycles alone, and with contention in the loop")
def run(setting: Setting) -> Result:
    """Both plans of each instance, run on the simulated server."""
    rack = simulated_rack()
    growth = ModelledGrowth(rack, open_models(None, setting.say, RECORDED))
    server = SimulatedServer(card=replace(SERVER, cores=PATHS))
    instances = [*lemur_sets(), *random_mixes(setting.count(MIXES), setting.rng("mixes"))]
    rows = []
    for number, one in enumerate(instances):
        setting.say(f"{one.group}, {one.name}: {number + 1} of {len(instances)}")
        found = run_contended("optimal", one.chains, rack, growth, time_limit=SECONDS)
        rows.append(_row(one, found, server))
    plans = pd.DataFrame(rows)
    table = pd.DataFrame([_counts(str(group), of) for group, of in plans.groupby("group", sort=False)])
    return Result(
        table,
        (f"{server.describe().name}: all runs, simulated and free of noise; nothing was measured on hardware.",),
        lambda figure: _draw(figure, plans),
        (
            f"A plan violates its SLOs where the testbed measures a chain more than {NOISE_PCT:g} % below its t_min: "
            "two standard errors of the rack's cycles. violated_alone counts those that would do so with every "
            "subgroup alone on the server: there, cycles are wrong, not contention.",
            f"The rack has the cycles that `placer profile` measured on the simulated server, and its source as "
            f"overhead of each subgroup; traffic has {FLOWS:,} flows and {MTBR} matches/MB. t_min is delta times what "
            "one core gives the slowest function of the chain.",
            "Lemur's sets are its five sets of chains at eight deltas; random mixes are four chains of one to three "
            "functions. Each subgroup is measured at what it can beside neighbours that run at the rates of the plan.",
            "worst: by how much the worst chain of all plans is below its t_min; negative where all are above. "
            "above_measured: by how much planned rates are above measured ones, mean over chains.",
            "With contention in the loop, rates are those that Tomur, trained on the recorded profile, expects at most "
            "5 % of functions to fall below. none_found: no plan keeps every SLO by prediction. gap_pct is against the "
            "bound of the program by cycles alone.",
        ),
        {"plans": plans},
    )


def _row(one: ContentionInstance, found: ContendedPlan, server: Testbed) -> dict[str, object]:
    alone, beside = _truth(found.by_cycles, server), _truth(found.plan, server)
    return {
        "group": one.group,
        "instance": one.name,
        "by_cycles_mbps": _aggregate(found.by_cycles),
        "mbps": _aggregate(found.plan),
        "shortfall_by_cycles_pct": round(alone.shortfall_pct, 3),
        "shortfall_alone_pct": round(alone.alone_pct, 3),
        "shortfall_pct": round(beside.shortfall_pct, 3),
        "violated_by_cycles": alone.violated,
        "violated_alone": alone.alone_pct > NOISE_PCT,
        "violated": beside.violated,
        "error_by_cycles_pct": round(alone.error_pct, 3),
        "error_pct": round(beside.error_pct, 3),
        "gap_pct": NONE if found.plan.gap is None else round(100 * found.plan.gap, 3),
        "rounds": found.rounds,
        "agreed": found.agreed,
    }


def _aggregate(plan: RackPlan) -> float:
    return round(sum(chain.rate_mbps for chain in plan.chains), 1) if plan.chains else NONE


def _truth(plan: RackPlan, server: Testbed) -> Truth:
    if not plan.chains:
        return Truth(NONE, NONE, NONE)
    found = capacities(plan, server)
    alone = [replace(one, mbps=one.alone_mbps) for one in found]
    return Truth(_shortfall(plan, found), _shortfall(plan, alone), _error(plan, found))


def _shortfall(plan: RackPlan, found: list[Capacity]) -> float:
    rates = measure_rates(plan, found)
    least = [float(chain.chain.slo.t_min_mbps) for chain in plan.chains]
    return max(100 * (1 - rate / need) for rate, need in zip(rates, least, strict=True) if need)


def _error(plan: RackPlan, found: list[Capacity]) -> float:
    rates = measure_rates(plan, found)
    return float(np.mean([100 * (one.rate_mbps / rate - 1) for one, rate in zip(plan.chains, rates, strict=True)]))


def _counts(group: str, plans: pd.DataFrame) -> dict[str, object]:
    planned = plans[plans["by_cycles_mbps"].notna()]
    kept = planned[planned["mbps"].notna()]
    violated = planned["violated_by_cycles"]
    return {
        "group": group,
        "instances": len(plans),
        "planned": len(planned),
        "violated_by_cycles": int(violated.sum()),
        "violated_alone": int(planned["violated_alone"].sum()),
        "violated": int(kept["violated"].sum()),
        "of_these_kept": int((violated & planned["mbps"].notna() & ~planned["violated"]).sum()),
        "none_found": len(planned) - len(kept),
        "worst_by_cycles_pct": planned["shortfall_by_cycles_pct"].max(),
        "worst_pct": kept["shortfall_pct"].max(),
        "above_measured_by_cycles_pct": round(float(planned["error_by_cycles_pct"].mean()), 2),
        "above_measured_pct": round(float(kept["error_pct"].mean()), 2),
        "gap_pct": round(float(kept["gap_pct"].mean()), 2),
        "most_rounds": int(kept["rounds"].max()),
        "verdict": "",
    }


def _draw(figure: Figure, plans: pd.DataFrame) -> None:
    axes = figure.subplots()
    for group, of in plans.groupby("group", sort=False):
        axes.plot(of["shortfall_by_cycles_pct"], of["shortfall_pct"], "o", label=str(group))
    axes.axhline(NOISE_PCT, color="gray", linewidth=0.8)
    axes.axvline(NOISE_PCT, color="gray", linewidth=0.8)
    axes.set_xlabel("worst chain below its t_min, plan by cycles alone (%)")
    axes.set_ylabel("the same with contention in the loop (%)")
    axes.legend(frameon=False)

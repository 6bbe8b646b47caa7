"""Contention in the loop: how many plans by cycles alone violate SLOs that plans with contention in the loop keep."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from experiments.lemur import PAPER
from experiments.lemur.methodology.measured_rates import Capacity, capacities, measure_rates
from experiments.lemur.methodology.paper_rack import CHAIN_SETS, NF_CYCLES, RATE_DELTAS, server
from experiments.registry import Result, Setting, experiment
from placer.inputs.models import open_models
from placer.rack.chain import Chain
from placer.rack.contention.loop import ContendedPlan, run_contended
from placer.rack.contention.modelled_growth import ModelledGrowth
from placer.rack.files.chains_file import chains_of_text
from placer.rack.files.json_twins import rack_of
from placer.rack.plan import RackPlan
from placer.rack.rack import Rack
from profiler.simulated import SimulatedServer
from profiler.simulated.server import SERVER_CARD
from profiler.testbed import Testbed

RECORDED_PROFILE = "server-simulated"
ON_SWITCH = tuple(name for name, (_, _, where) in NF_CYCLES.items() if "P" in where)
"""What the programmable switch runs, too (Lemur, table 3); IPv4Fwd runs there only."""
WORST_FLOWS, WORST_MTBR = 100_000, 600
"""The traffic at which functions take most cycles: that for which a rack has its numbers."""
CHAIN_TEXTS = {
    1: "Match -> [1/2 ACL -> Limiter -> Match -> [1/2 UrlFilter | 1/2 -] | 1/2 -] -> Detunnel -> Encrypt -> IPv4Fwd",
    2: "Encrypt -> LB -> 3 x 1/3 NAT -> IPv4Fwd",
    3: "Dedup -> ACL -> Limiter -> LB -> IPv4Fwd",
    4: "Dedup -> first=ACL -> Monitor -> Tunnel -> Match -> 3 x 1/3 (LB -> Limiter -> ACL) -> IPv4Fwd",
}
"""As `.chains` writes them; t_min is a delta times what one core gives the slowest function of the chain."""
MIXED_NFS = ("ACL", "Decrypt", "Dedup", "Encrypt", "FastEncrypt", "LB", "Match", "Monitor", "NAT", "UrlFilter")
SOFTWARE_NFS = ("Decrypt", "Dedup", "Encrypt", "FastEncrypt", "UrlFilter")
"""Those that servers alone run; a chain of a random mix has one at least."""
MIXED_DELTAS = (1.0, 1.5, 2.0)
CHAINS_PER_MIX, FURTHER_NFS = 4, (0, 1, 2)  # of a random mix: how many chains, and of how many further functions each


@dataclass(frozen=True)
class ContentionInstance:
    """Chains to place."""

    group: str  # what it is counted with
    name: str  # of the instance in its group
    chains: tuple[Chain, ...]


@cache
def build_simulated_rack() -> Rack:
    """A server as the simulated one, with the cycles that were measured on it, and a switch without a bound."""
    measured = json.loads((files("traces") / RECORDED_PROFILE / "cycles.json").read_text(encoding="utf-8"))
    nfs: dict[str, Any] = {"IPv4Fwd": {"switch": {"blocks": 1}}}
    for name, costs in measured["nfs"].items():
        if name not in nfs:
            own = costs["server"]
            nfs[name] = {"server": {"cycles": own["cycles"], "replicable": own["replicable"]}}
            nfs[name] |= {"switch": {"blocks": 1}} if name in ON_SWITCH else {}
    return rack_of(
        {
            "switch": {"stages": None},
            "crossing_us": 6,
            "servers": [server() | {"clock_mhz": measured["clock_mhz"]}],
            "nfs": nfs,
            "overheads": {"subgroup_cycles": measured["source_cycles"]},
            "testbed": {"spec": "simulated:server", "flows": WORST_FLOWS, "mtbr": WORST_MTBR},
        },
        "rack",
    )


def lemur_sets() -> Iterator[ContentionInstance]:
    """The sets of chains 1 to 4 at each delta."""
    for chosen in CHAIN_SETS:
        name = "".join(map(str, chosen))
        for delta in RATE_DELTAS:
            graphs = {f"chain{number}": (CHAIN_TEXTS[number], delta) for number in chosen}
            yield ContentionInstance("Lemur's sets", f"{name} at delta {delta:g}", _chains(graphs))


def chosen_sets(setting: Setting) -> list[ContentionInstance]:
    """As many of these as the scale says, at any deltas."""
    sets = list(lemur_sets())
    drawn = setting.rng("sets").permutation(len(sets))[: setting.count(len(sets))]
    return [sets[at] for at in np.sort(drawn)]


def random_mixes(count: int, random: np.random.Generator) -> Iterator[ContentionInstance]:
    """Chains of random functions, each with a random delta."""
    for number in range(count):
        graphs = {}
        for at in range(CHAINS_PER_MIX):
            first = str(random.choice(SOFTWARE_NFS))
            others = random.choice(
                [nf for nf in MIXED_NFS if nf != first], size=random.choice(FURTHER_NFS), replace=False
            )
            nfs = random.permutation([first, *others])
            graphs[f"c{at}"] = (" -> ".join([*nfs, "IPv4Fwd"]), float(random.choice(MIXED_DELTAS)))
        yield ContentionInstance("random mixes", f"mix {number}", _chains(graphs))


def _chains(graphs: dict[str, tuple[str, float]]) -> tuple[Chain, ...]:
    lines = ["packets: 1500 B"]
    for name, (graph, delta) in graphs.items():
        # What one core gives the slowest function of a chain that runs on servers only.
        rack = build_simulated_rack()
        names = graph.replace("first=", "").split()
        software = [cost for nf in names if nf in rack.costs and (cost := rack.costs[nf].server)]
        cycles = max(cost.cycles for cost in software) + rack.overheads.subgroup_cycles
        least = float((rack.servers[0].clock_mhz * 8 * 1500 / cycles) * Fraction(delta))
        lines += [f"slo {name}: {least:.6f} Mbps to 100 Gbps", f"chain {name}: {graph}"]
    return chains_of_text("\n".join(lines) + "\n", "chains").chains


NOISE_PCT = 0.6
"""By so much below t_min may be due to the rack's cycles: two standard errors of means of 12 runs of 1 % noise."""
MIX_COUNT = 60
PATH_CORES = 64
"""Cores by which the testbed counts: the paths of a branched subgroup share a core, but count as one each."""
SEARCH_SECONDS = 10.0
NO_VALUE = float("nan")


@dataclass(frozen=True)
class Truth:
    """What the testbed measures of a plan."""

    shortfall_pct: float  # by how much the worst chain misses its t_min, negative where none does; NaN without a plan
    alone_pct: float  # the same where each subgroup has the server to itself: what cycles, not contention, have wrong
    error_pct: float  # by how much planned rates are above measured ones, mean over chains

    @property
    def violated(self) -> bool:
        """Whether a chain misses its t_min beyond noise."""
        return self.shortfall_pct > NOISE_PCT


@experiment(PAPER, "lemur-contention", "SLO violations of plans by cycles alone, and with contention in the loop")
def run(setting: Setting) -> Result:
    """Both plans of each instance, run on the simulated server."""
    rack = build_simulated_rack()
    growth = ModelledGrowth(rack, open_models(None, setting.say, RECORDED_PROFILE))
    server = SimulatedServer(card=replace(SERVER_CARD, cores=PATH_CORES))
    instances = [*chosen_sets(setting), *random_mixes(setting.count(MIX_COUNT), setting.rng("mixes"))]
    rows = []
    for number, one in enumerate(instances):
        setting.say(f"{one.group}, {one.name}: {number + 1} of {len(instances)}")
        found = run_contended("optimal", one.chains, rack, growth, time_limit=SEARCH_SECONDS)
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
            "The rack has the cycles that `placer profile` measured on the simulated server, and its source as "
            f"overhead of each subgroup; traffic has {WORST_FLOWS:,} flows and {WORST_MTBR} matches/MB. t_min is delta "
            "times what one core gives the slowest function of the chain.",
            "Lemur's sets are its five sets of chains at eight deltas, at a scale below 1 some of them, by the seed; "
            "random mixes are four chains of one to three functions. Each subgroup is measured at what it can beside "
            "neighbours that run at the rates of the plan.",
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
        "gap_pct": NO_VALUE if found.plan.gap is None else round(100 * found.plan.gap, 3),
        "rounds": found.rounds,
        "agreed": found.agreed,
    }


def _aggregate(plan: RackPlan) -> float:
    return round(sum(chain.rate_mbps for chain in plan.chains), 1) if plan.chains else NO_VALUE


def _truth(plan: RackPlan, server: Testbed) -> Truth:
    if not plan.chains:
        return Truth(NO_VALUE, NO_VALUE, NO_VALUE)
    found = capacities(plan, server)
    alone = [replace(chain, mbps=chain.alone_mbps) for chain in found]
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
    axes.set(
        xlabel="worst chain below its t_min, plan by cycles alone (%)",
        ylabel="the same with contention in the loop (%)",
    )
    axes.legend(frameon=False)

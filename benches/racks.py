"""Placing Lemur's chains on more and more servers, and replanning; on one, beside Lemur's brute force."""

import resource
from collections.abc import Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Annotated

import pandas as pd
import typer

from benches.bench import register
from experiments.lemur.methodology.brute_force import BruteForce, BruteForced
from placer.rack.chain import Chain
from placer.rack.files.chains_file import read_chains_file
from placer.rack.files.rack_file import read_rack_file
from placer.rack.plan import RackPlan
from placer.rack.rack import Rack
from placer.rack.replanning.moves import PlacedNf
from placer.rack.replanning.replan import replan
from placer.rack.strategies.optimal import best_plan

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"
SETS = ("123", "134", "234", "124", "1234")
SERVERS = (25, 50, 100, 200)
CHANGES = {"t_min x 1.5": Fraction(3, 2), "t_min x 3": Fraction(3)}
"""Of a chain 3: half more of its least rate it reaches where it is, three times only by a move."""

Brute = Annotated[float, typer.Option(min=0.0, help="Seconds for each brute force; beyond them it is extrapolated.")]
Largest = Annotated[int, typer.Option(min=1, help="The most servers; each has four chains.")]
Limit = Annotated[float, typer.Option(min=1.0, help="Seconds for each plan.")]


@register("racks")
def run(largest: Largest = 200, brute: Brute = 30.0, time_limit: Limit = 60.0) -> pd.DataFrame:
    """Per case: chains, servers, gap (%), seconds, memory of the process (MB); of replans the moves. Of the brute force
    the seconds, extrapolated where only some of the patterns were tried, and the ratio to ours."""
    chains = read_chains_file(EXAMPLES / "edge.chains").chains
    rack = read_rack_file(EXAMPLES / "rack.toml")
    rows = [row for names in SETS for row in _on_one(_some(chains, names), rack, names, brute)]
    for servers in (one for one in SERVERS if one <= largest):
        rows += _on_many(chains, rack, servers, time_limit)
    columns = dict.fromkeys(column for row in rows for column in row)
    return pd.DataFrame([{column: row.get(column, "") for column in columns} for row in rows])


def _some(chains: Sequence[Chain], names: str) -> list[Chain]:
    return [chain for chain in chains if chain.name[-1] in names]


def _on_one(chains: Sequence[Chain], rack: Rack, names: str, seconds: float) -> Iterator[dict[str, object]]:
    """One server: the optimum, and two brute forces."""
    plan = best_plan(chains, rack)
    yield _row(f"chains {names}", chains, rack, plan)
    if not seconds:
        return
    force = BruteForce(chains, rack)
    for method, found in (("brute force, vectorised", force.fast(seconds)), ("brute force", force.published(seconds))):
        complete = found.tried >= found.patterns and method != "brute force"
        same = found.marginal is not None and abs(found.marginal - plan.marginal_mbps) <= 1e-6 * plan.marginal_mbps
        yield {
            "case": f"chains {names}",
            "method": method,
            "chains": len(chains),
            "servers": 1,
            "seconds": round(found.all_seconds, 1),
            "times_ours": round(found.all_seconds / plan.seconds),
            "measured": "all" if complete else _extrapolated(found),
            "same_optimum": ("yes" if same else "no") if complete else "",
        }


def _extrapolated(found: BruteForced) -> str:
    drawn = f"{found.tried:,} of {found.patterns:,} patterns"
    return f"{drawn}, extrapolated ± {100 * found.error:.0f} %"


def _on_many(chains: Sequence[Chain], rack: Rack, servers: int, limit: float) -> Iterator[dict[str, object]]:
    """Four chains for each server; then one of them with a larger least rate."""
    each = [replace(chain, name=f"{chain.name}_{at}") for chain in chains for at in range(servers)]
    large = replace(rack, servers=tuple(replace(rack.servers[0], name=f"s{at}") for at in range(servers)))
    case = f"{len(each)} chains"
    plan = best_plan(each, large, time_limit=limit)
    yield _row(case, each, large, plan)
    old = {
        one.chain.name: {nf.id: PlacedNf(nf.nf, one.site_name(at)) for at, nf in enumerate(one.chain.nfs)}
        for one in plan.chains
    }
    for name, factor in CHANGES.items():
        number = next(at for at, chain in enumerate(each) if chain.name.startswith("chain3"))
        slo = each[number].slo
        faster = replace(each[number], slo=replace(slo, t_min_mbps=slo.t_min_mbps * factor))
        found = replan([*each[:number], faster, *each[number + 1 :]], large, old, time_limit=limit)
        yield _row(f"{case}, {name} of one", each, large, found.plan) | {
            "method": "replan",
            "moves": len(found.moves),
            "fewest": found.fewest_proven,
        }


def _row(case: str, chains: Sequence[Chain], rack: Rack, plan: RackPlan) -> dict[str, object]:
    return {
        "case": case,
        "method": "placer",
        "chains": len(chains),
        "nfs": sum(len(chain.nfs) for chain in chains),
        "servers": len(rack.servers),
        "status": plan.status.value,
        "gap_pct": "" if plan.gap is None else round(100 * plan.gap, 4),
        "seconds": round(plan.seconds, 3),
        "peak_mb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024),
    }

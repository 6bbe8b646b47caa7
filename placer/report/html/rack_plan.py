"""The page of `placer chain place`: the rack and its use, and each chain as a path through devices."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pandas as pd

from placer.chains.plan import RackPlan, Status
from placer.chains.reasons.bottlenecks import bottlenecks, rack_use
from placer.chains.stages.stage_oracles import stage_oracle
from placer.report.html import charts
from placer.report.html.chain_drawing import chain_drawing
from placer.report.html.page import Figure, Page, Picture, Section, Tile
from placer.report.html.rack_drawing import colour_of, drawn_servers, rack_drawing
from placer.report.text.rack import rack_report

MOST_CHAINS = 24
"""That are drawn."""
CYCLES = "Rates follow from the cycles of the rack; contention is not part of them. Nothing was measured."
CONTENTION = (
    "Rates are predicted for subgroups that slow one another down; what limits a chain is said by cycles alone, and so "
    "is the bound. Nothing was measured."
)


def page_of_rack_plan(plan: RackPlan, strategy: str, chains: str, *, predicted: bool = False) -> Page:
    """The page of a plan.

    Parameters
    ----------
    strategy
        That made it.
    chains
        Name of the file of chains.
    predicted
        Whether rates are predicted with contention, not by cycles alone.
    """
    if not plan.chains:
        summary = tuple(rack_report(plan, strategy, "table").splitlines())
        return Page(f"Chains on a rack: {chains}", summary, (), ())
    aggregate = sum(one.rate_mbps for one in plan.chains) / 1000
    proven = plan.status is Status.OPTIMAL
    tiles = (
        Tile(f"{aggregate:,.2f} Gbps", "all chains together"),
        Tile(f"{plan.marginal_mbps / 1000:,.2f} Gbps", "beyond the least rates"),
        Tile("proven" if proven else _gap(plan), "optimal" if proven else "gap to the bound"),
        Tile(f"{len(plan.chains):,}", "chains"),
        Tile(f"{sum(rack_use(plan).cores):,} of {sum(one.cores for one in plan.rack.devices):,}", "cores in use"),
    )  # fmt: skip
    return Page(
        f"Chains on a rack: {chains}",
        (*_verdict(plan, strategy, aggregate), CONTENTION if predicted else CYCLES, *plan.notes),
        tiles,
        (_rack(plan), _use(plan), _chains(plan), *_paths(plan)),
    )


def _gap(plan: RackPlan) -> str:
    return "unknown" if plan.gap is None else f"{100 * plan.gap:.2f} %"


def _verdict(plan: RackPlan, strategy: str, aggregate: float) -> Iterator[str]:
    marginal = plan.marginal_mbps / 1000
    yield f"{strategy} places {len(plan.chains):,} chains, which carry {aggregate:,.2f} Gbps and keep their SLOs."
    if plan.status is Status.OPTIMAL:
        yield f"{marginal:,.2f} Gbps are beyond the least rates. No plan gives more, which is proven."
    elif plan.bound_mbps is not None:
        yield (
            f"{marginal:,.2f} Gbps are beyond the least rates; no plan gives more than {plan.bound_mbps / 1000:,.2f} "
            f"Gbps. The gap is {_gap(plan)}."
        )
    else:
        yield f"{marginal:,.2f} Gbps are beyond the least rates. How much more is possible is not known."


def _rack(plan: RackPlan) -> Section:
    drawn, servers = len(drawn_servers(plan)), len(plan.rack.servers)
    text = "Cores and links in the colour of the chain that uses them; grey cores are reserved, empty ones idle."
    if drawn < servers:
        text += f" The {drawn} of {servers} servers with most cores in use are drawn; the table below has all."
    picture = Picture("rack", "The switch, and below it each server with its link and its cores.",
                      rack_drawing(plan, _stages(plan)))  # fmt: skip
    return Section("rack", "The rack", text, (picture,))


def _stages(plan: RackPlan) -> str:
    """What the NFs on the switch need of its stages, in words; a compiler, which may be slow, is not asked again."""
    usable = plan.rack.switch.usable_stages
    if usable is None:
        return "its stages are without a bound"
    if plan.rack.stage_oracle.startswith("exec:"):
        return f"they fit its {usable} stages"
    return f"they need {least_stages(plan)} of its {usable} stages"


def least_stages(plan: RackPlan) -> int:
    """The fewest stages that the NFs on the switch fit, with those for encapsulation."""
    rack = plan.rack
    tables = frozenset((chain, nf) for chain, one in enumerate(plan.chains) for nf in one.layout.on_switch)
    usable = rack.switch.usable_stages or 0
    for stages in range(usable):
        fewer = replace(rack, switch=replace(rack.switch, stages=stages, reserved_stages=0))
        if stage_oracle(fewer, [one.chain for one in plan.chains]).fits(tables):
            return stages
    return usable


def _use(plan: RackPlan) -> Section:
    table = use_table(plan)
    bars = table.rename(columns={"used, %": "pct"})[["resource", "pct"]].head(3 * MOST_CHAINS)
    chart = charts.percentages(bars, "in use, %", "resource")
    text = "Cores, links in each direction, and stages of the switch."
    return Section("use", "Utilisation", text, (Figure("use", "What is in use of each resource.", chart),), table)


def use_table(plan: RackPlan) -> pd.DataFrame:
    """A row per resource: what it has, what is used, and the share of it."""
    rack, use = plan.rack, rack_use(plan)
    rows: list[tuple[str, float, float, str]] = [
        (f"{device.name}: cores", float(used), float(device.cores), "cores")
        for device, used in zip(rack.devices, use.cores, strict=True)
    ]
    for number, server in enumerate(rack.servers):
        rows.append((f"{server.name}: link in", use.nic_in[number] / 1000, float(server.nic_mbps) / 1000, "Gbps"))
        rows.append((f"{server.name}: link out", use.nic_out[number] / 1000, float(server.nic_mbps) / 1000, "Gbps"))
    if (stages := rack.switch.usable_stages) and not rack.stage_oracle.startswith("exec:"):
        rows.append(("switch: stages", float(least_stages(plan)), float(stages), "stages"))
    table = pd.DataFrame(rows, columns=["resource", "used", "of", "unit"])
    return table.assign(**{"used, %": (100 * table["used"] / table["of"]).where(table["of"] > 0, 0.0)})


def _chains(plan: RackPlan) -> Section:
    use = rack_use(plan)
    rows = []
    for one in plan.chains:
        slo, latency = one.chain.slo, float(one.layout.latency_us)
        rows.append(
            {
                "chain": one.chain.name,
                "rate, Mbps": one.rate_mbps,
                "t_min, Mbps": float(slo.t_min_mbps),
                "t_max, Mbps": float(slo.t_max_mbps),
                "latency, us": latency,
                "slack, us": None if slo.d_max_us is None else float(slo.d_max_us) - latency,
                "cores": sum(one.cores),
                "limited by": "; ".join(bottlenecks(one, use)) or "–",
            }
        )
    table = pd.DataFrame(rows)
    return Section(
        "chains", "Chains", "Rates, latencies, and what keeps each chain from more.", (), table, expanded=True
    )


def _paths(plan: RackPlan) -> Iterator[Section]:
    left_out = len(plan.chains) - MOST_CHAINS
    pictures = []
    for number, one in enumerate(plan.chains[:MOST_CHAINS]):
        visits = ", ".join(f"{nf.id} on {one.site_name(at)}" for at, nf in enumerate(one.chain.nfs))
        caption = f"{one.chain.name}: {one.rate_mbps:,.1f} Mbps, {float(one.layout.latency_us):.2f} us. {visits}."
        pictures.append(Picture(f"path-{number}", caption, chain_drawing(one, colour_of(number))))
    text = "Packets go from left to right. Filled NFs run on cores; thick lines join those that share them."
    if left_out > 0:
        text += f" {left_out:,} more chains are not drawn."
    yield Section("paths", "Paths", text, tuple(pictures))

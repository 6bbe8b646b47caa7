"""Plans of chains on a rack as text tables and JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import groupby
from math import ceil, floor

from placer.chains.layout import SWITCH
from placer.chains.plan import ChainPlan, LimitChange, RackPlan, Status, answer
from placer.chains.reasons.bottlenecks import RackUse, bottlenecks, rack_use
from placer.report.text.table import text_table

CHAIN_HEADINGS = ["chain", "rate Mbps", "t_min", "t_max", "latency us", "slack us", "cores"]
LIMITS = {"cores": "cores", "nic_mbps": "NIC", "blocks": "blocks per stage"}
"""Limits in words, by kind; others are named as they are."""
RACK_HEADINGS = ["device", "cores", "used", "NIC Mbps", "in", "out"]


def rack_report(plan: RackPlan, strategy: str, form: str, *, other: str = "plan") -> str:
    """A plan for people (`table`) or programs (`json`, CONTRACTS 9).

    Parameters
    ----------
    other
        Which plans its bound is about, in words.
    """
    if form == "json":
        return json.dumps(answer(plan)) + "\n"
    if not plan.chains:
        return _without_plan(plan, strategy)
    use = rack_use(plan)
    parts = [_chains(plan), _limits(plan, use), _paths(plan), _rack(plan, use), _verdict(plan, other)]
    return "\n".join(parts)


def _chains(plan: RackPlan) -> str:
    return text_table(CHAIN_HEADINGS, [_chain(one) for one in plan.chains], words=1)


def _chain(one: ChainPlan) -> list[str]:
    slo, latency = one.chain.slo, float(one.layout.latency_us)
    slack = "-" if slo.d_max_us is None else f"{float(slo.d_max_us) - latency:.2f}"
    rates = [_mbps(rate) for rate in (one.rate_mbps, float(slo.t_min_mbps), float(slo.t_max_mbps))]
    return [one.chain.name, *rates, f"{latency:.2f}", slack, str(sum(one.cores))]


def _limits(plan: RackPlan, use: RackUse) -> str:
    rows = [[one.chain.name, "; ".join(bottlenecks(one, use)) or "-"] for one in plan.chains]
    return text_table(["chain", "limited by"], rows)


def _paths(plan: RackPlan) -> str:
    lines = ["Paths, with the cores of each subgroup:"]
    for one in plan.chains:
        lines += [f"  {one.chain.name}", *(f"    {visit}" for visit in _visits(one))]
    return "\n".join(lines) + "\n"


def _visits(one: ChainPlan) -> Iterator[str]:
    """In the order of packets, the devices that they pass, and which NFs run there."""
    group_of = {nf: number for number, (group, _) in enumerate(one.subgroups) for nf in group.nfs}
    shown: set[int] = set()
    for site, nfs in groupby(one.chain.order, key=lambda at: one.layout.sites[at]):
        parts = []
        by_group: dict[int, list[int]] = {}
        for nf in nfs:
            by_group.setdefault(group_of.get(nf, SWITCH), []).append(nf)
        for group, these in by_group.items():
            names = " ".join(one.chain.nfs[at].id for at in these)
            first = group != SWITCH and group not in shown
            parts.append(f"{names} ({_cores(one.cores[group])})" if first else names)
            shown.add(group)
        name = "switch" if site == SWITCH else one.layout.rack.devices[site].name
        yield f"{name}: {', '.join(parts)}"


def _cores(number: int) -> str:
    return f"{number} core" if number == 1 else f"{number} cores"


def _rack(plan: RackPlan, use: RackUse) -> str:
    rack, rows = plan.rack, []
    for number, device in enumerate(rack.devices):
        server = rack.servers[device.server]
        nic = (
            ["", "", ""]
            if device.is_smartnic
            else [_mbps(float(server.nic_mbps)), _mbps(use.nic_in[device.server]), _mbps(use.nic_out[device.server])]
        )
        rows.append([device.name, str(device.cores), str(use.cores[number]), *nic])
    on_switch = sum(len(one.layout.on_switch) for one in plan.chains)
    stages = rack.switch.usable_stages
    bound = "its stages are without a bound" if stages is None else f"they fit its {stages} stages"
    return text_table(RACK_HEADINGS, rows, words=1) + f"switch: {on_switch} NFs; {bound}\n"


def _verdict(plan: RackPlan, other: str) -> str:
    aggregate = sum(one.rate_mbps for one in plan.chains)
    lines = [f"Aggregate {_mbps(aggregate)} Mbps, of which {_mbps(plan.marginal_mbps)} Mbps beyond the least rates."]
    if plan.status is Status.OPTIMAL:
        lines.append(f"Optimal, proven: no {other} gives more. Solved in {plan.seconds:.2f} s.")
    elif plan.bound_mbps is None or plan.gap is None:
        lines.append(f"Not proven optimal, without a bound. Found in {plan.seconds:.2f} s.")
    else:
        bound = f"No {other} gives more than {_mbps(plan.bound_mbps)} Mbps beyond the least rates"
        lines.append(f"{bound}: the gap is {100 * plan.gap:.2f} %. Found in {plan.seconds:.2f} s.")
    return "\n".join([*lines, *plan.notes]) + "\n"


def _without_plan(plan: RackPlan, strategy: str) -> str:
    why = [f"{strategy}: {note}." for note in plan.notes]
    if plan.status is Status.INFEASIBLE:
        sentence = "Infeasible, proven: no plan keeps the SLOs of all chains on this rack."
    elif plan.notes:
        sentence = f"{strategy} finds no plan. Another strategy may find one."
    else:
        sentence = "No plan was found within the time limit. That there is none is not proven."
    return "\n".join([sentence, *why, *_conflict(plan), *_changes(plan), f"Ended after {plan.seconds:.2f} s."]) + "\n"


def _conflict(plan: RackPlan) -> list[str]:
    if not plan.conflict:
        return []
    # the stages of an oracle that does not count blocks
    names = LIMITS if plan.rack.stage_oracle == "blocks" else LIMITS | {"blocks": "stages"}
    limits = ", ".join(f"{names.get(one.kind, one.kind)} of {one.of}" for one in plan.conflict)
    return [f"These limits cannot be kept together: {limits}."]


def _changes(plan: RackPlan) -> list[str]:
    if not plan.changes:
        return []
    return ["Each of these changes is enough alone:", *(f"  {_change(one)}" for one in plan.changes)]


def _change(change: LimitChange) -> str:
    """A change in words, rounded to the side that is enough."""
    kind, of, to = change.limit.kind, change.limit.of, change.to
    words = {
        "t_min": f"t_min at most {floor(100 * to) / 100:,.2f} Mbps",
        "d_max": f"d_max at least {ceil(100 * to) / 100:,.2f} us",
        "cores": f"{to:g} cores",
        "nic_mbps": f"a NIC of {ceil(100 * to) / 100:,.2f} Mbps",
        "blocks": f"{to:g} blocks per stage",
    }
    return f"{of}: {words.get(kind, f'{kind} {to:g}')}"


def _mbps(rate: float) -> str:
    return f"{rate:,.1f}"

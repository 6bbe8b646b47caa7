"""Plans of chains on a rack as text tables and JSON."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import groupby
from math import ceil, floor
from typing import Any

from placer.rack.chain import Chain
from placer.rack.contention.loop import ContendedPlan
from placer.rack.plan import SWITCH_SITE, ChainPlan, LimitChange, RackPlan, Status, answer
from placer.rack.replanning.replan import Replanned
from placer.report.text.table import count_noun, text_table

CHAIN_HEADINGS = ["chain", "rate Mbps", "t_min", "t_max", "latency us", "slack us", "cores"]
LIMIT_NAMES = {"cores": "cores", "nic_mbps": "NIC", "blocks": "blocks per stage"}
"""Limits in words, by kind; others are named as they are."""
RACK_HEADINGS = ["device", "cores", "used", "NIC Mbps", "in", "out"]


def rack_report(plan: RackPlan, strategy: str, form: str, *, other: str = "plan") -> str:
    """A plan for people (`table`) or programs (`json`, CONTRACTS 9). `other`: the plans that its bound is about."""
    if form == "json":
        return json.dumps(answer(plan)) + "\n"
    if not plan.chains:
        return _without_plan(plan, strategy)
    use = rack_use(plan)
    parts = [_chains(plan), _limits(plan, use), _paths(plan), _rack(plan, use), _verdict(plan, other)]
    return "\n".join(parts)


def _chains(plan: RackPlan) -> str:
    return text_table(CHAIN_HEADINGS, [_chain(chain) for chain in plan.chains], words=1)


def _chain(one: ChainPlan) -> list[str]:
    slo, latency = one.chain.slo, float(one.layout.latency_us)
    slack = "-" if slo.d_max_us is None else f"{float(slo.d_max_us) - latency:.2f}"
    rates = [_mbps(rate) for rate in (one.rate_mbps, float(slo.t_min_mbps), float(slo.t_max_mbps))]
    return [one.chain.name, *rates, f"{latency:.2f}", slack, str(sum(one.cores))]


def _limits(plan: RackPlan, use: "RackUse") -> str:
    rows = [[chain.chain.name, "; ".join(bottlenecks(chain, use)) or "-"] for chain in plan.chains]
    return text_table(["chain", "limited by"], rows)


def _paths(plan: RackPlan) -> str:
    lines = ["Paths, with the cores of each subgroup:"]
    for chain in plan.chains:
        lines += [f"  {chain.chain.name}", *(f"    {visit}" for visit in _visits(chain))]
    return "\n".join(lines) + "\n"


def _visits(one: ChainPlan) -> Iterator[str]:
    """In the order of packets, the devices that they pass, and which NFs run there."""
    group_of = {nf: number for number, (group, _) in enumerate(one.subgroups) for nf in group.nfs}
    shown: set[int] = set()
    for site, nfs in groupby(one.chain.order, key=lambda at: one.layout.sites[at]):
        parts = []
        by_group: dict[int, list[int]] = {}
        for nf in nfs:
            by_group.setdefault(group_of.get(nf, SWITCH_SITE), []).append(nf)
        for group, these in by_group.items():
            names = " ".join(one.chain.nfs[at].id for at in these)
            first = group != SWITCH_SITE and group not in shown
            parts.append(f"{names} ({_cores(one.cores[group])})" if first else names)
            shown.add(group)
        name = "switch" if site == SWITCH_SITE else one.layout.rack.devices[site].label
        yield f"{name}: {', '.join(parts)}"


def _cores(number: int | Fraction) -> str:
    return f"{number} core" if number <= 1 else f"{number} cores"


def _rack(plan: RackPlan, use: "RackUse") -> str:
    rack, rows = plan.rack, []
    carried = zip(rack.nics, use.nic_in, use.nic_out, strict=True)
    nics = {nic.name: [_mbps(mbps) for mbps in (float(nic.mbps), *used)] for nic, *used in carried}
    for pool, used in zip(rack.pools, use.cores, strict=True):
        nic = nics.pop(pool.name, ["", "", ""])
        rows.append([pool.name, str(pool.cores), str(used), *nic])
    rows += [[name, "", "", *nic] for name, nic in nics.items()]
    on_switch = sum(len(chain.layout.on_switch) for chain in plan.chains)
    stages = rack.switch.usable_stages
    bound = "its stages are without a bound" if stages is None else f"they fit its {stages} stages"
    return text_table(RACK_HEADINGS, rows, words=1) + f"switch: {on_switch} NFs; {bound}\n"


def _verdict(plan: RackPlan, other: str) -> str:
    aggregate = sum(chain.rate_mbps for chain in plan.chains)
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
    names = LIMIT_NAMES if plan.rack.stage_oracle == "blocks" else LIMIT_NAMES | {"blocks": "stages"}
    limits = ", ".join(f"{names.get(limit.kind, limit.kind)} of {limit.of}" for limit in plan.conflict)
    return [f"These limits cannot be kept together: {limits}."]


def _changes(plan: RackPlan) -> list[str]:
    if not plan.changes:
        return []
    return ["Each of these changes is enough alone:", *(f"  {_change(change)}" for change in plan.changes)]


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


# Plans with contention in the loop as text tables and JSON: what is predicted beside what cycles alone say.


CONTENDED_HEADINGS = ["chain", "Mbps", "these cores by cycles", "plan by cycles", "t_min", "cycles grow by"]


def format_contended(found: ContendedPlan, strategy: str, form: str) -> str:
    """The plan for people (`table`) or programs (`json`, CONTRACTS 9 with further keys)."""
    if form == "json":
        return json.dumps(build_contended(found)) + "\n"
    report = rack_report(found.predicted, strategy, form)
    return "\n".join([report, _contention(found)]) if found.by_cycles.chains else report


def build_contended(found: ContendedPlan) -> Mapping[str, object]:
    """As `answer`, with what is predicted: `gap`, `contention`, and per chain and subgroup by what cycles grow."""
    written: dict[str, Any] = dict(answer(found.plan))
    written["gap"] = found.plan.gap
    written["contention"] = {
        "rounds": found.rounds,
        "agreed": found.agreed,
        "marginal_by_cycles_mbps": found.by_cycles.marginal_mbps if found.by_cycles.chains else None,
        "notes": list(found.plan.notes),
    }
    for number, chain in enumerate(written["chains"]):
        of = dict(zip(chain["placement"], found.factors[number], strict=True))
        chain["rate_by_cycles_mbps"] = found.by_cycles.chains[number].rate_mbps
        chain["predicted_latency_us"] = float(found.predicted.chains[number].layout.latency_us)
        for group in chain["subgroups"]:
            group["cycles_grow_by"] = [of[nf] for nf in group["nfs"]]
    return written


def _contention(found: ContendedPlan) -> str:
    lines = [] if not found.plan.chains else [_format_predicted_chains(found), ""]
    alone = f"The plan by cycles alone has {_mbps(_aggregate(found.by_cycles))} Mbps, which contention only lessens"
    agreed = "plan and prediction agree" if found.agreed else "the best plan on the way is shown"
    if not found.plan.chains:
        agreed = "none of these plans keeps every SLO by prediction"
    return "\n".join([*lines, f"{alone}.\nContention: {count_noun(found.rounds, 'round')}; {agreed}."]) + "\n"


def _format_predicted_chains(found: ContendedPlan) -> str:
    rows = [
        [
            one.chain.name,
            *map(_mbps, (one.rate_mbps, float(one.most_mbps), alone.rate_mbps, float(one.chain.slo.t_min_mbps))),
            f"{100 * (max(factors) - 1):.1f} %",
        ]
        for one, alone, factors in zip(found.plan.chains, found.by_cycles.chains, found.factors, strict=True)
    ]
    return text_table(CONTENDED_HEADINGS, rows, words=1).rstrip("\n")


def _aggregate(plan: RackPlan) -> float:
    return sum(chain.rate_mbps for chain in plan.chains)


# Replanned chains as text tables and JSON: the plan, and which NFs move.


def replan_report(
    found: Replanned, before: Sequence[Chain], after: Sequence[Chain], form: str, contended: ContendedPlan | None = None
) -> str:
    """A plan after a change for people (`table`) or programs (`json`, docs/formats/rack-plan.md).

    `contended`: what is predicted of it; None where cycles alone count.
    """
    if form == "json":
        written = answer(found.plan) if contended is None else build_contended(contended)
        return json.dumps({**written, **_moves_json(found)}) + "\n"
    old, new = ({chain.name: chain for chain in chains} for chains in (before, after))
    lines = [_replan_change(old[name], new[name]) for name in new if name in old and new[name] != old[name]]
    lines += [f"{name}: new" for name in new if name not in old]
    lines += [f"{name}: removed" for name in old if name not in new]
    parts = [("\n".join(lines or ["No chain changed."]) + "\n")]
    if found.plan.chains:
        other = f"plan with {_nfs(len(found.moves), 'moved')}" if found.moves else "plan without moves"
        shown = found.plan if contended is None else contended.predicted
        parts = [rack_report(shown, "replan", form, other=other), *parts, _moves(found)]
        return "\n".join(parts if contended is None else [*parts, _contention(contended)])
    return "\n".join([*parts, _without_replan(found)])


def _moves_json(found: Replanned) -> dict[str, object]:
    return {
        "moves": [{"chain": move.chain, "nf": move.nf, "from": move.source, "to": move.target} for move in found.moves],
        "least_moves": found.least_moves if found.plan.chains or found.enough_moves is not None else None,
        "enough_moves": found.enough_moves,
    }


def _replan_change(old: Chain, new: Chain) -> str:
    words = []
    for name in ("t_min_mbps", "t_max_mbps", "d_max_us"):
        one, other = getattr(old.slo, name), getattr(new.slo, name)
        if one != other:
            kind, unit = name.rsplit("_", 1)
            words.append(f"{kind} {_number(one)} -> {_number(other)} {'Mbps' if unit == 'mbps' else 'us'}")
    if (old.nfs, old.edges) != (new.nfs, new.edges):
        words.append("other NFs or edges")
    if old.packet_size != new.packet_size:
        words.append(f"packets {old.packet_size} -> {new.packet_size} B")
    return f"{new.name}: {', '.join(words) or 'other aggregates'}"


def _number(value: object) -> str:
    return "-" if value is None else f"{float(value):,.1f}"  # type: ignore[arg-type]


def _moves(found: Replanned) -> str:
    number = len(found.moves)
    if not number:
        return "No NF moves.\n"
    proof = "no plan that keeps all SLOs moves fewer" if found.fewest_proven else f"at least {found.least_moves} must"
    moving = f"{_nfs(number, '')}{'moves' if number == 1 else 'move'}"
    return text_table(["chain", "moves", "from", "to"], _rows(found)) + f"{moving}; {proof}.\n"


def _nfs(number: int, verb: str) -> str:
    return f"{number} {'NF' if number == 1 else 'NFs'} {verb}"


def _rows(found: Replanned) -> Iterator[list[str]]:
    """NFs of a chain that go the same way on one line."""
    together: dict[tuple[str, str, str], list[str]] = {}
    for move in found.moves:
        together.setdefault((move.chain, move.source, move.target), []).append(move.nf)
    for (chain, source, target), nfs in together.items():
        yield [chain, " ".join(nfs), source, target]


def _without_replan(found: Replanned) -> str:
    plan: RackPlan = found.plan
    if found.enough_moves is None:
        return rack_report(plan, "replan", "table")
    proven = plan.status is Status.INFEASIBLE
    sentence = (
        f"Infeasible, proven: at least {_nfs(found.least_moves, 'must')} move to keep all SLOs."
        if proven
        else "No plan with so few moves was found. That there is none is not proven."
    )
    return f"{sentence}\nThere is a plan with {_nfs(found.enough_moves, 'moved')}.\nEnded after {plan.seconds:.2f} s.\n"


# What a plan uses of the rack, and what limits the rate of each chain.


NEAR_LIMIT = 1e-6  # relative: how near its limit something is used up


@dataclass(frozen=True)
class RackUse:
    """What a plan uses. `cores`: per pool. `nic_in`, `nic_out`: per NIC, what it carries from the switch and to it,
    Mbps."""

    cores: tuple[int | Fraction, ...]
    nic_in: tuple[float, ...]
    nic_out: tuple[float, ...]


def rack_use(plan: RackPlan) -> RackUse:
    """What the chains of a plan use together."""
    rack = plan.rack
    cores: list[int | Fraction] = [0] * len(rack.pools)
    carried = {"in": [0.0] * len(rack.nics), "out": [0.0] * len(rack.nics)}
    for chain in plan.chains:
        for group, given in chain.subgroups:
            cores[rack.devices[group.device].pool] += given
        for (nic, direction), share in chain.layout.nic_shares.items():
            carried[direction][nic] += chain.rate_mbps * float(share)
    return RackUse(tuple(cores), tuple(carried["in"]), tuple(carried["out"]))


def bottlenecks(one: ChainPlan, use: RackUse) -> list[str]:
    """What keeps a chain from a higher rate, in words: subgroups, NICs, its t_max."""
    rack, rate = one.layout.rack, one.rate_mbps
    found = ["t_max"] if rate >= float(one.chain.slo.t_max_mbps) * (1 - NEAR_LIMIT) else []
    for group, cores in one.subgroups:
        device = rack.devices[group.device]
        most = group.rate(cores, device, one.chain.packet_bits)
        if most is not None and rate >= float(most) * (1 - NEAR_LIMIT):
            nfs = " ".join(one.chain.nfs[at].id for at in group.nfs)
            found.append(f"{nfs} on {device.name}")
    for nic, direction in sorted(one.layout.nic_shares):
        carried = (use.nic_in if direction == "in" else use.nic_out)[nic]
        if one.layout.nic_shares[nic, direction] and carried >= float(rack.nics[nic].mbps) * (1 - NEAR_LIMIT):
            found.append(f"NIC of {rack.nics[nic].name}, {direction}")
    return found

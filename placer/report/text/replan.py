"""Replanned chains as text tables and JSON: the plan, and which NFs move."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

from placer.chains.chain import Chain
from placer.chains.plan import RackPlan, Status, answer
from placer.chains.replanning.replan import Replanned
from placer.report.text.rack import rack_report
from placer.report.text.table import text_table


def replan_report(found: Replanned, before: Sequence[Chain], after: Sequence[Chain], form: str) -> str:
    """A plan after a change for people (`table`) or programs (`json`, docs/formats.md)."""
    if form == "json":
        return json.dumps({**answer(found.plan), **_moves_json(found)}) + "\n"
    parts = [_changes(before, after)]
    if found.plan.chains:
        other = f"plan with {_nfs(len(found.moves), 'moved')}" if found.moves else "plan without moves"
        return "\n".join([rack_report(found.plan, "replan", form, other=other), *parts, _moves(found)])
    return "\n".join([*parts, _without_plan(found)])


def _moves_json(found: Replanned) -> dict[str, object]:
    return {
        "moves": [{"chain": move.chain, "nf": move.nf, "from": move.source, "to": move.target} for move in found.moves],
        "least_moves": found.least_moves if found.plan.chains or found.enough_moves is not None else None,
        "enough_moves": found.enough_moves,
    }


def _changes(before: Sequence[Chain], after: Sequence[Chain]) -> str:
    old, new = ({chain.name: chain for chain in chains} for chains in (before, after))
    lines = [_change(old[name], new[name]) for name in new if name in old and new[name] != old[name]]
    lines += [f"{name}: new" for name in new if name not in old]
    lines += [f"{name}: removed" for name in old if name not in new]
    return "\n".join(lines or ["No chain changed."]) + "\n"


def _change(old: Chain, new: Chain) -> str:
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


def _without_plan(found: Replanned) -> str:
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

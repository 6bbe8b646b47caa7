"""Explanations and waste as tables for people and as JSON for programs (docs/formats/explanations.md)."""

import json
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from placer.explain.candidates import CoLocatedNf, Explanation, Verdict
from placer.explain.waste import Waste
from placer.model.oracle import CONTENTION_BOTTLENECK
from placer.policy.preemption import Preemption
from placer.policy.rejection import Cause
from placer.report.text.table import count_nics, count_noun, text_table
from profiles import Workload

NICS_PER_LINE = 3  # names of NICs per line
INSTANCES_PER_LINE = 3  # ids of a group per line

CAUSE_TEXTS: dict[str, str] = {
    Cause.NOT_HOSTED: "the NF does not run on this model",
    Cause.CORES: "too few free cores",
    Cause.LINE_RATE: "the port is too slow for the packets of all",
    Cause.RATE: "the offered rate is more than the NF carries alone",
    Cause.ARRIVAL_SLA: "the SLA of the arrival would be violated",
    Cause.TENANT_SLA: "the SLA of a tenant would be violated",
    Cause.SAMPLED_SLA: "an SLA would be violated on the NICs that were checked",
    Cause.OUT_OF_SERVICE: "failed or drained",
    Cause.SLA_ALONE: "the SLA of the arrival is not met even alone",
    Cause.NONE_LEFT: "no NIC of this kind is left",
    Cause.TIGHT_SLA: "SLA too tight to share a NIC",
    Cause.ORDER: "order of arrival: another arrival of the trace would fit",
    Cause.SPREAD: "the NIC has another instance of its group (spread)",
    Cause.APART: "the domain has another instance of its group (apart)",
    Cause.TOGETHER: "its group is on another NIC (together)",
    Cause.POOL: "the NIC is in another pool",
    Cause.MOST_PER_NIC: "the NIC has as many of its group as it may (most_per_nic)",
    Cause.MOST_PER_DOMAIN: "the domain has as many of its group as it may (most_per_domain)",
    Cause.CONSTRAINT: "a constraint",
    Cause.EXCLUSIVE: "the NIC is for one owner alone (exclusive)",
    Cause.PRIORITY: "instances of lower priority came first",
}


def cause_text(cause: str) -> str:
    """A cause of unused capacity in words; a contended resource is named."""
    return CAUSE_TEXTS.get(cause) or (cause if cause == CONTENTION_BOTTLENECK else f"contention for {cause}")


def explanation_json(explanation: Explanation) -> str:
    """One JSON object, on one line."""
    shown: dict[str, Any] = {
        "id": explanation.arrival.id,
        "nic": explanation.nic,
        "verdicts": [_verdict_json(verdict) for verdict in explanation.verdicts],
    }
    if found := explanation.preemption:
        shown["preemption"] = {"nic": found.nic, "nic_model": found.kind.model, "ids": list(found.ids)}
    return json.dumps(shown) + "\n"


def explanation_table(explanation: Explanation, *, everything: bool = False) -> str:
    """Where the arrival went, then a line per verdict, or with `everything` a line per NIC."""
    arrival, verdicts = explanation.arrival, explanation.verdicts
    if arrival.nic is not None:
        return f"{arrival.id} ({_workload_text(arrival.workload)}) already runs on {arrival.nic}, and stays there.\n"
    fitting = sum(len(verdict.nics) for verdict in verdicts if verdict.fits)
    in_use = sum(len(verdict.nics) for verdict in verdicts)
    where = f"went to {explanation.nic}" if explanation.nic else "was rejected"
    if everything:
        verdicts = tuple(part for verdict in verdicts for part in _by_nic(verdict, explanation.nic))
    groups: dict[tuple[object, ...], list[Verdict]] = defaultdict(list)
    for number, verdict in enumerate(verdicts):
        apart = everything or verdict.chosen or (verdict.nfs and not verdict.nics)
        new = "" if verdict.nics else verdict.kind.model
        groups[_verdict_text(verdict), new, number if apart else None].append(verdict)
    rows = [_row(group) for group in sorted(groups.values(), key=_order)]
    subject = f"{arrival.id} ({_workload_text(arrival.workload)})"
    without = _preemption_text(explanation.preemption) if explanation.preemption else ""
    head = f"{subject} {where}; it fits on {fitting:,} of {count_nics(in_use)} in use.{without}\n\n"
    figures = "kpps predicted / required" + ", headroom" * (not arrival.workload.is_saturated)
    return head + text_table(["", "NICs", "names", "free cores", "verdict", figures], rows)


def waste_json(waste: Waste) -> str:
    """One JSON object."""
    idle = {cause: round(nics, 4) for cause, nics in waste.idle.items()}
    return json.dumps({"nics": waste.nics, "filled": round(waste.filled, 4), "idle": idle}) + "\n"


def waste_table(waste: Waste) -> str:
    """A row per cause of unused capacity."""
    if not waste.idle:
        return f"{count_nics(waste.nics)} in use at the peak; every core is used.\n"
    rows = [(cause_text(cause), f"{nics:.2f}", f"{100 * nics / waste.nics:.1f}") for cause, nics in waste.idle.items()]
    head = f"{count_nics(waste.nics)} in use at the peak; the used cores amount to {waste.filled:,.2f} NICs.\n\n"
    return head + text_table(["why capacity is unused", "NICs", "% of all"], rows)


def _verdict_json(verdict: Verdict) -> dict[str, Any]:
    return {
        "nic_model": verdict.kind.model,
        "nics": list(verdict.nics),
        "free_cores": verdict.free_cores,
        "fits": verdict.fits,
        "cause": verdict.resource or verdict.cause,
        "breaks": verdict.violated.nf if verdict.violated else None,
        "chosen": verdict.chosen,
        **({"with": list(verdict.met)} if verdict.met else {}),
        "company": [
            {
                "nf": nf.workload.nf,
                "traffic": nf.workload.traffic.as_dict(),
                "predicted_kpps": float(f"{min(nf.kpps, nf.workload.rate_kpps):.6g}"),
                "solo_kpps": float(f"{nf.solo_kpps:.6g}"),
                "required_kpps": float(f"{nf.required_kpps:.6g}"),
                **_load_json(nf),
            }
            for nf in verdict.nfs
        ],
    }


def _load_json(nf: CoLocatedNf) -> dict[str, float]:
    """The load of an NF and what it could carry; empty for one without an offered rate."""
    if nf.headroom_pct is None:
        return {}
    return {
        "rate_kpps": nf.workload.rate_kpps,
        "cores": nf.workload.cores,
        "capacity_kpps": float(f"{nf.kpps:.6g}"),
        "headroom_pct": round(nf.headroom_pct, 2),
    }


def _order(group: Sequence[Verdict]) -> tuple[object, ...]:
    """The chosen class first, then those that fit, then the others, the largest first."""
    first = group[0]
    return not first.chosen, not first.fits, _verdict_text(first), -sum(len(verdict.nics) for verdict in group)


def _by_nic(verdict: Verdict, chosen: str | None) -> list[Verdict]:
    """The verdict on each NIC of the class by itself."""
    if not verdict.nics:
        return [verdict]
    return [replace(verdict, nics=(nic,), chosen=nic == chosen) for nic in verdict.nics]


def _row(group: Sequence[Verdict]) -> tuple[str, ...]:
    first = group[0]
    names = sorted((name for verdict in group for name in verdict.nics), key=lambda name: (len(name), name))
    more = f" +{len(names) - NICS_PER_LINE:,}" if len(names) > NICS_PER_LINE else ""
    free = sorted({verdict.free_cores for verdict in group})
    return (
        "*" if first.chosen else "",
        f"{len(names):,}" if names else "-",
        ", ".join(names[:NICS_PER_LINE]) + more if names else f"a new {first.kind.model}",
        f"{free[0]}" if len(free) == 1 else f"{free[0]} to {free[-1]}",
        _verdict_text(first),
        ", ".join(_nf_text(nf) for nf in first.nfs)
        if len(group) == 1 or not first.nfs
        else f"{len(group):,} co-locations",
    )


def _verdict_text(verdict: Verdict) -> str:
    if verdict.cause is None:
        return "fits"
    if verdict.violated is None:
        return CAUSE_TEXTS[verdict.cause] + _met_text(verdict.met)
    return f"{verdict.violated.nf} would violate its SLA ({verdict.resource})"


def _preemption_text(found: Preemption) -> str:
    which = "" if found.lower else ", not all of lower priority"
    return f" It would fit on {found.nic or f'a new {found.kind.model}'} without{_met_text(found.ids)[1:]}{which}."


def _met_text(ids: Sequence[str]) -> str:
    more = f" +{len(ids) - INSTANCES_PER_LINE:,}" if len(ids) > INSTANCES_PER_LINE else ""
    return f": {', '.join(ids[:INSTANCES_PER_LINE])}{more}" if ids else ""


def _nf_text(nf: CoLocatedNf) -> str:
    headroom = "" if nf.headroom_pct is None else f" {nf.headroom_pct:+.0f} %"
    return f"{nf.workload.nf}{_cores_text(nf.workload)} {nf.kpps:.0f}/{nf.required_kpps:.0f}{headroom}"


def _cores_text(workload: Workload) -> str:
    return f" on {count_noun(workload.cores, 'core')}" if workload.cores else ""


def _workload_text(workload: Workload) -> str:
    traffic = ", ".join(f"{name} {value:g}" for name, value in workload.traffic.as_dict().items())
    rate = "" if workload.is_saturated else f", {workload.rate_kpps:g} kpps"
    return f"{workload.nf}{_cores_text(workload)}, {traffic}{rate}"

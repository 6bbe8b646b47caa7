"""Plans with contention in the loop as text tables and JSON: what is predicted beside what cycles alone say."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from placer.chains.contention.loop import ContendedPlan
from placer.chains.plan import ChainPlan, RackPlan, answer
from placer.report.text.counts import counted
from placer.report.text.rack import rack_report
from placer.report.text.table import text_table

HEADINGS = ["chain", "Mbps", "these cores by cycles", "plan by cycles", "t_min", "cycles grow by"]


def contended_report(found: ContendedPlan, strategy: str, form: str) -> str:
    """The plan for people (`table`) or programs (`json`, CONTRACTS 9 with further keys)."""
    if form == "json":
        return json.dumps(contended_answer(found)) + "\n"
    report = rack_report(found.predicted, strategy, form)
    return "\n".join([report, _contention(found)]) if found.by_cycles.chains else report


def contended_answer(found: ContendedPlan) -> Mapping[str, object]:
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
    lines = [] if not found.plan.chains else [_chains(found), ""]
    return "\n".join([*lines, _verdict(found)]) + "\n"


def _chains(found: ContendedPlan) -> str:
    rows = [
        [
            one.chain.name,
            *map(_mbps, (one.rate_mbps, _most(one), alone.rate_mbps, float(one.chain.slo.t_min_mbps))),
            f"{100 * (max(factors) - 1):.1f} %",
        ]
        for one, alone, factors in zip(found.plan.chains, found.by_cycles.chains, found.factors, strict=True)
    ]
    return text_table(HEADINGS, rows, words=1).rstrip("\n")


def _most(one: ChainPlan) -> float:
    """What cores and t_max of a chain would allow by cycles alone."""
    devices, bits = one.layout.rack.devices, one.chain.packet_bits
    rates = [group.rate(cores, devices[group.device], bits) for group, cores in one.subgroups]
    return float(min([one.chain.slo.t_max_mbps, *(rate for rate in rates if rate is not None)]))


def _verdict(found: ContendedPlan) -> str:
    alone = f"The plan by cycles alone has {_mbps(_aggregate(found.by_cycles))} Mbps, which contention only lessens"
    agreed = "plan and prediction agree" if found.agreed else "the best plan on the way is shown"
    if not found.plan.chains:
        agreed = "none of these plans keeps every SLO by prediction"
    return f"{alone}.\nContention: {counted(found.rounds, 'round')}; {agreed}."


def _aggregate(plan: RackPlan) -> float:
    return sum(one.rate_mbps for one in plan.chains)


def _mbps(rate: float) -> str:
    return f"{rate:,.1f}"

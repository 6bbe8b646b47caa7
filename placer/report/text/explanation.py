"""Tells explanations and waste, to people as tables and to programs as JSON (docs/formats.md)."""

from __future__ import annotations

import json
from typing import Any

from placer.explain.candidates import Explanation, Slot, Verdict
from placer.explain.waste import Waste
from placer.report.text.table import text_table
from profiles import Workload

NEW = "a new one"
SHOWN = 3
"""Names of NICs of a class that a table shows."""


def explanation_json(explanation: Explanation) -> str:
    """One JSON object, on one line."""
    told = {
        "id": explanation.arrival.id,
        "nic": explanation.nic,
        "verdicts": [_verdict(verdict) for verdict in explanation.verdicts],
    }
    return json.dumps(told) + "\n"


def explanation_table(explanation: Explanation) -> str:
    """Where the arrival went, then a row per class of NICs: those that fit, then the others."""
    arrival, verdicts = explanation.arrival, explanation.verdicts
    fitting = sum(len(verdict.nics) for verdict in verdicts if verdict.fits)
    in_use = sum(len(verdict.nics) for verdict in verdicts)
    where = f"went to {explanation.nic}" if explanation.nic else "was rejected"
    rows = [
        ("*" if verdict.chosen else "", str(len(verdict.nics) or "-"), _names(verdict), str(verdict.free_cores),
         _told(verdict), ", ".join(_seat(seat) for seat in verdict.seats))
        for verdict in sorted(verdicts, key=lambda one: (not one.chosen, not one.fits, one.cause, -len(one.nics)))
    ]  # fmt: skip
    head = f"{arrival.id} ({_named(arrival.workload)}) {where}; it fits {fitting} of {in_use} NICs in use.\n\n"
    return head + text_table(["", "NICs", "names", "free cores", "verdict", "kpps with it, of what the SLA asks"], rows)


def waste_json(waste: Waste) -> str:
    """One JSON object."""
    idle = {cause: round(nics, 4) for cause, nics in waste.idle.items()}
    return json.dumps({"nics": waste.nics, "filled": round(waste.filled, 4), "idle": idle}) + "\n"


def waste_table(waste: Waste) -> str:
    """A row per cause."""
    rows = [(cause, f"{nics:.2f}", f"{100 * nics / waste.nics:.1f}") for cause, nics in waste.idle.items()]
    head = f"{waste.nics:,} NICs at the fullest moment; their tenants' cores would fill {waste.filled:,.2f}.\n\n"
    return head + text_table(["room idles for", "in NICs", "% of all"], rows)


def _verdict(verdict: Verdict) -> dict[str, Any]:
    return {
        "nic_model": verdict.kind.model,
        "nics": list(verdict.nics),
        "free_cores": verdict.free_cores,
        "fits": verdict.fits,
        "cause": verdict.cause or None,
        "breaks": verdict.breaks.nf if verdict.breaks else None,
        "chosen": verdict.chosen,
        "company": [
            {
                "nf": seat.workload.nf,
                "traffic": seat.workload.traffic.as_dict(),
                "predicted_kpps": float(f"{seat.kpps:.6g}"),
                "solo_kpps": float(f"{seat.solo_kpps:.6g}"),
                "required_kpps": float(f"{seat.required_kpps:.6g}"),
            }
            for seat in verdict.seats
        ],
    }


def _told(verdict: Verdict) -> str:
    if verdict.breaks is None:
        return verdict.cause or "fits"
    return f"{verdict.breaks.nf} breaks on {verdict.cause}"


def _names(verdict: Verdict) -> str:
    if not verdict.nics:
        return f"{NEW} ({verdict.kind.model})"
    more = len(verdict.nics) - SHOWN
    return ", ".join(verdict.nics[:SHOWN]) + (f" +{more}" if more > 0 else "")


def _seat(seat: Slot) -> str:
    return f"{seat.workload.nf} {seat.kpps:.0f}/{seat.required_kpps:.0f}"


def _named(workload: Workload) -> str:
    return f"{workload.nf}, " + ", ".join(f"{name} {value:g}" for name, value in workload.traffic.as_dict().items())

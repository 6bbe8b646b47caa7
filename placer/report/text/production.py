"""A simulated production as a table for people, and as JSON and CSV for programs (docs/formats/production.md)."""

import json
from collections.abc import Callable, Iterator
from dataclasses import asdict
from typing import Any

from placer.fleet.simulated.monitor import TrueDrift
from placer.fleet.simulated.outcome import LATE_AFTER, WITH_FEEDBACK, FleetOutcome, Production
from placer.report.text.table import count_noun, csv_text, text_table


def as_table(production: Production) -> str:
    """A row per fleet, then what changed and how it was measured."""
    drifts = bool(production.drifts)
    headings = [
        "fleet", "NICs", "SLA violations", *(["after drift"] if drifts else []), "rejected",
        *(["drift found after"] if drifts else []), "false alarms", "moves", "model",
    ]  # fmt: skip
    rows = [_row(production, fleet) for fleet in production.fleets]
    return text_table(headings, rows, words=1) + "\n" + "".join(f"{line}\n" for line in notes(production))


def as_json(production: Production) -> str:
    """One JSON object."""
    return json.dumps(_summary(production), indent=2) + "\n"


def as_csv(production: Production) -> str:
    """One row per fleet and point in time."""
    nfs = sorted({nf for fleet in production.fleets for point in fleet.points for nf in point.believed})
    figures = ("event", "time", "nics", "tenants", "violating", "model")
    rows = [
        [
            fleet.name,
            *(getattr(point, name) for name in figures),
            *(round(point.believed.get(nf, 1.0), 4) for nf in nfs),
        ]
        for fleet in production.fleets
        for point in fleet.points
    ]
    return csv_text(["fleet", *figures, *(f"drift_{nf}" for nf in nfs)], rows)


PRODUCTION_FORMATS: dict[str, Callable[[Production], str]] = {"table": as_table, "json": as_json, "csv": as_csv}
"""Renderers by the name of their format."""


def notes(production: Production) -> list[str]:
    """Sentences: what drifted, what was measured, and where the ground truth comes from."""
    simulated = production.truth == "simulated"
    where = "the simulated card, not on hardware" if simulated else f"the testbed {production.truth}"
    return [
        *(_drift_sentence(drift) for drift in production.drifts),
        *([f"After drift: arrivals at least {LATE_AFTER} events after the first."] if production.drifts else []),
        *_measure(production),
        f"{count_noun(production.arrivals, 'arrival')}, placed by {production.predictor} and {production.rule}. "
        f"SLA violations are those on {where}.",
    ]


def format_found_drift(fleet: FleetOutcome, drift: TrueDrift) -> str:
    """After how many readings of its NF a drift was found, for people."""
    if fleet.name != WITH_FEEDBACK:
        return "-"
    found = fleet.count_until_found(drift)
    return "not found" if found is None else count_noun(found, "reading")


def _row(production: Production, fleet: FleetOutcome) -> list[str]:
    late = fleet.late_violations_pct
    drifts = production.drifts
    return [
        fleet.name,
        f"{fleet.nics:,}",
        f"{fleet.violations_pct:.2f} %",
        *(["-" if late is None else f"{late:.2f} %"] if drifts else []),
        f"{fleet.rejected:,}",
        *([", ".join(dict.fromkeys(format_found_drift(fleet, drift) for drift in drifts))] if drifts else []),
        f"{fleet.false_alarms:,}" if fleet.name == WITH_FEEDBACK else "-",
        f"{fleet.moves:,}",
        f"{fleet.model}",
    ]


def _drift_sentence(drift: TrueDrift) -> str:
    until = "" if drift.end is None else f", up to event {drift.end:,}"
    return f"{drift.nf} has {drift.factor:g} times its throughput from event {drift.start:,} on{until}."


def _measure(production: Production) -> Iterator[str]:
    for fleet in production.fleets:
        if fleet.measurements:
            yield f"{count_noun(fleet.measurements, 'measurement')} with {count_noun(fleet.readings, 'reading')}."
            yield (
                "A co-location that was measured below an SLA violated it again on "
                f"{count_noun(fleet.repeated, 'further NIC')} at most."
            )


def _summary(production: Production) -> dict[str, Any]:
    names = ("arrivals", "events", "seed", "truth", "predictor", "rule", "risk")
    return {
        **{name: getattr(production, name) for name in names},
        "sla": production.file.tables.sla,
        "drift": [
            {"nf": drift.nf, "event": drift.start, "until": drift.end, "factor": drift.factor}
            for drift in production.drifts
        ],
        "fleets": [_fleet(production, fleet) for fleet in production.fleets],
    }


def _fleet(production: Production, fleet: FleetOutcome) -> dict[str, Any]:
    def figures(*names: str) -> dict[str, Any]:
        return {name: getattr(fleet, name) for name in names}

    late, learns = fleet.late_violations_pct, fleet.name == WITH_FEEDBACK
    return {
        "fleet": fleet.name,
        **figures("nics", "placed", "rejected", "violated"),
        "sla_violations_pct": round(fleet.violations_pct, 4),
        **figures("late_placed", "late_violated"),
        "late_violations_pct": None if late is None else round(late, 4),
        **figures("measurements", "readings", "moves", "repeated", "model"),
        "found_after": [fleet.count_until_found(drift) for drift in production.drifts] if learns else None,
        "false_alarms": fleet.false_alarms,
        "alarms": [{**asdict(alarm), "factor": round(alarm.factor, 4)} for alarm in fleet.alarms],
    }

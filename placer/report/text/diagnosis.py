"""Tells a diagnosis: to people as tables, to programs as JSON and CSV (docs/formats.md)."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterator
from typing import Any

from placer.explain.bottleneck import Diagnosis, Reading
from placer.report.text.table import text_table
from profiles import ATTRIBUTES, Workload


def as_table(diagnosis: Diagnosis) -> str:
    """What binds here, where that changes, and a table per attribute."""
    here = diagnosis.here
    co_location = ", ".join(named(other) for other in diagnosis.beside) or "nobody"
    lines = [
        f"{named(diagnosis.workload)} beside {co_location}: bound by {here.bottleneck}.",
        f"Predicted {here.predicted_kpps:,.0f} of {here.solo_kpps:,.0f} kpps alone; contention for "
        + ", ".join(f"{resource} alone would cost {_pct(drop, here)} %" for resource, drop in here.drops.items())
        + ".",
    ]
    if here.true_bottleneck is not None:
        lines.append(f"The card's own account: {here.true_kpps:,.0f} kpps, bound by {here.true_bottleneck}.")
    lines.append("")
    lines += [
        f"Along {shift.attribute} it shifts from {shift.before} to {shift.after} at {shift.at:,.0f}."
        for shift in diagnosis.shifts
    ] or ["It does not shift."]
    tables = [f"\n{_readings(attribute, readings)}" for attribute, readings in diagnosis.along.items()]
    return "\n".join(lines) + "\n" + "".join(tables)


def as_json(diagnosis: Diagnosis) -> str:
    """One object."""
    told = {
        "nf": diagnosis.workload.nf,
        "beside": [{"nf": one.nf, "traffic": one.traffic.as_dict()} for one in diagnosis.beside],
        **_reading(diagnosis.here),
        "shifts": [
            {"attribute": one.attribute, "at": round(one.at, 2), "before": one.before, "after": one.after}
            for one in diagnosis.shifts
        ],
        "along": {name: [_reading(one) for one in readings] for name, readings in diagnosis.along.items()},
    }
    return json.dumps(told, indent=2) + "\n"


def as_csv(diagnosis: Diagnosis) -> str:
    """A row per reading; `along` is empty for the traffic that was asked for."""
    text = io.StringIO()
    rows = [{"along": name, **_flat(one)} for name, readings in _all(diagnosis) for one in readings]
    writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


FORMATS: dict[str, Callable[[Diagnosis], str]] = {"table": as_table, "json": as_json, "csv": as_csv}
"""Renderers by the name of their format."""


def named(workload: Workload) -> str:
    """An NF with its traffic."""
    return f"{workload.nf} ({', '.join(f'{name} {value:g}' for name, value in workload.traffic.as_dict().items())})"


def _readings(attribute: str, readings: tuple[Reading, ...]) -> str:
    resources = list(readings[0].drops)
    accounted = readings[0].true_bottleneck is not None
    headings = [attribute, "bound by", *(["by the card"] if accounted else []), "kpps",
                *(["true kpps"] if accounted else []), "alone", *(f"{name} costs %" for name in resources)]  # fmt: skip
    rows = [
        [
            f"{one.traffic.as_dict()[attribute]:,.0f}",
            one.bottleneck,
            *([str(one.true_bottleneck)] if accounted else []),
            f"{one.predicted_kpps:,.0f}",
            *([f"{one.true_kpps:,.0f}"] if accounted else []),
            f"{one.solo_kpps:,.0f}",
            *(_pct(one.drops[name], one) for name in resources),
        ]
        for one in readings
    ]
    return text_table(headings, rows, words=3 if accounted else 2)


def _pct(drop: float, reading: Reading) -> str:
    return f"{100 * drop / reading.solo_kpps:.1f}"


def _all(diagnosis: Diagnosis) -> Iterator[tuple[str, tuple[Reading, ...]]]:
    yield "", (diagnosis.here,)
    yield from diagnosis.along.items()


def _reading(one: Reading) -> dict[str, Any]:
    return {
        "traffic": one.traffic.as_dict(),
        "predicted_kpps": _kpps(one.predicted_kpps),
        "solo_kpps": _kpps(one.solo_kpps),
        "drops_kpps": {name: _kpps(drop) for name, drop in one.drops.items()},
        "bottleneck": one.bottleneck,
        "true_kpps": _kpps(one.true_kpps),
        "true_bottleneck": one.true_bottleneck,
    }


def _flat(one: Reading) -> dict[str, Any]:
    told = _reading(one)
    drops = {f"{name}_drop_kpps": drop for name, drop in told.pop("drops_kpps").items()}
    traffic = told.pop("traffic")
    return {**{name: traffic[name] for name in ATTRIBUTES}, **told, **drops}


def _kpps(value: float | None) -> float | None:
    return None if value is None else float(f"{value:.6g}")

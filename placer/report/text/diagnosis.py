"""A diagnosis as tables for people, and as JSON and CSV for programs (docs/formats/diagnoses.md)."""

import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from placer.explain.bottleneck import CoreNeed, Diagnosis, Reading, Shift
from placer.report.text.solo_formula import formula_json, formula_sentences
from placer.report.text.table import count_noun, csv_text, text_table
from profiles import ATTRIBUTES, Workload


def as_table(diagnosis: Diagnosis) -> str:
    """The bottleneck, where it changes, and a table per attribute."""
    reading = diagnosis.reading
    drops = [f"{resource} {_pct(drop, reading)} %" for resource, drop in reading.drops.items()]
    lines = [
        f"{workload_text(diagnosis.workload)}, {co_located_with(diagnosis)}: the bottleneck is {reading.bottleneck}.",
        f"Predicted throughput {reading.predicted_kpps:,.0f} kpps, {reading.solo_kpps:,.0f} kpps alone. "
        f"Throughput drop if only one resource were contended: {', '.join(drops) or 'none'}.",
        *load_sentences(diagnosis),
    ]
    if reading.true_bottleneck is not None:
        true = reading.true_capacity_kpps
        of = "" if true is None else f" of a capacity of {true:,.0f} kpps"
        lines.append(f"On the simulated card: {reading.true_kpps:,.0f} kpps{of}, bottleneck {reading.true_bottleneck}.")
    lines += ["", *(list(map(shift_sentence, diagnosis.shifts)) or ["The bottleneck does not change."])]
    if diagnosis.solo:
        lines += ["", *formula_sentences(diagnosis.solo)]
    tables = [f"\n{_table_of(attribute, readings)}" for attribute, readings in diagnosis.along.items() if readings]
    return "\n".join(lines) + "\n" + "".join(tables)


def as_json(diagnosis: Diagnosis) -> str:
    """One object."""
    document = {
        "nf": diagnosis.workload.nf,
        "beside": list(map(_neighbour, diagnosis.neighbours)),
        **_reading(diagnosis.reading),
        **_load_json(diagnosis),
        "shifts": [
            {"attribute": shift.attribute, "at": round(shift.at, 2), "before": shift.before, "after": shift.after}
            for shift in diagnosis.shifts
        ],
        "solo": formula_json(diagnosis.solo) if diagnosis.solo else None,
        "along": {name: [_reading(reading) for reading in readings] for name, readings in diagnosis.along.items()},
    }
    return json.dumps(document, indent=2) + "\n"


def _neighbour(workload: Workload) -> dict[str, object]:
    rate = {} if workload.is_saturated else {"rate_kpps": workload.rate_kpps}
    cores = {"cores": workload.cores} if workload.cores else {}
    return {"nf": workload.nf, "traffic": workload.traffic.as_dict(), **rate, **cores}


def as_csv(diagnosis: Diagnosis) -> str:
    """A row per reading; `along` is empty for the traffic of the request."""
    rows = [{"along": name, **_flat(reading)} for name, readings in _all(diagnosis) for reading in readings]
    return csv_text(list(rows[0]), [list(row.values()) for row in rows])


DIAGNOSIS_FORMATS: dict[str, Callable[[Diagnosis], str]] = {"table": as_table, "json": as_json, "csv": as_csv}
"""Renderers by the name of their format."""


def workload_text(workload: Workload) -> str:
    """An NF with its traffic, its rate and its cores, where they are given."""
    parts = [f"{name} {value:g}" for name, value in workload.traffic.as_dict().items()]
    parts += [] if workload.is_saturated else [f"{workload.rate_kpps:g} kpps"]
    parts += [count_noun(workload.cores, "core")] if workload.cores else []
    return f"{workload.nf} ({', '.join(parts)})"


def load_sentences(diagnosis: Diagnosis) -> Iterator[str]:
    """Whether an NF carries its load, and at which share of it other numbers of cores would do."""
    if not diagnosis.needs:
        return
    workload = diagnosis.workload
    here = next((need for need in diagnosis.needs if need.cores == workload.cores), diagnosis.needs[0])
    rate, cores = f"{workload.rate_kpps:,.6g} kpps", count_noun(here.cores, "core")
    if here.share >= 1.0:
        yield f"It carries its load of {rate} on {cores}: its capacity there is {_capacity(here)}."
    else:
        yield f"It does not carry its load of {rate} on {cores}: at most {_percent(here)} of it."
    for need in reversed(diagnosis.needs):
        named = count_noun(need.cores, "core")
        if need.share < 1.0 and need.cores != here.cores:
            yield f"At {_percent(need)} of its load it could do with {named}."
        elif need.share >= 1.0 and need.cores > here.cores and here.share < 1.0:
            free = "" if need.fits else ", which the NIC does not have beside the others"
            yield f"On {named}{free}, its capacity would be {_capacity(need)}."
        elif need.share >= 1.0 and need.cores < here.cores:
            yield f"It could do with {named}: its capacity there is {_capacity(need)}."


def _percent(need: CoreNeed) -> str:
    return f"{int(100 * need.share)} %"  # rounded down, as at more it could not


def _capacity(need: CoreNeed) -> str:
    return f"{need.capacity_kpps:,.0f} kpps, {100 * (need.share - 1):.0f} % more"


def _load_json(diagnosis: Diagnosis) -> dict[str, Any]:
    """The load of an NF, and what it could carry on each number of cores; empty without an offered rate."""
    if not diagnosis.needs:
        return {}
    needs = [
        {
            "cores": need.cores,
            "capacity_kpps": _kpps(need.capacity_kpps),
            "share_of_load": round(need.share, 4),
            "fits": need.fits,
        }
        for need in diagnosis.needs
    ]
    return {"rate_kpps": diagnosis.workload.rate_kpps, "cores": diagnosis.workload.cores, "by_cores": needs}


def co_located_with(diagnosis: Diagnosis) -> str:
    """The NFs that share the NIC."""
    neighbours = ", ".join(map(workload_text, diagnosis.neighbours))
    return f"co-located with {neighbours}" if neighbours else "alone on its NIC"


def shift_sentence(shift: Shift) -> str:
    """Where the bottleneck changes, in a sentence."""
    return f"Along {shift.attribute} the bottleneck changes from {shift.before} to {shift.after} at {shift.at:,.0f}."


def _table_of(attribute: str, readings: Sequence[Reading]) -> str:
    resources = list(readings[0].drops)
    true, loaded = readings[0].true_bottleneck is not None, readings[0].capacity_kpps is not None
    headings = [attribute, "bottleneck", *["true bottleneck"] * true, "kpps", *["true kpps"] * true,
                *["capacity kpps"] * loaded, *["true capacity kpps"] * (loaded and true), "kpps alone",
                *(f"{name} drop %" for name in resources)]  # fmt: skip
    rows = [
        [
            f"{reading.traffic.as_dict()[attribute]:,.0f}",
            reading.bottleneck,
            *([str(reading.true_bottleneck)] if true else []),
            f"{reading.predicted_kpps:,.0f}",
            *([f"{reading.true_kpps:,.0f}"] if true else []),
            *(f"{kpps:,.0f}" for kpps in (reading.capacity_kpps, reading.true_capacity_kpps) if kpps is not None),
            f"{reading.solo_kpps:,.0f}",
            *(_pct(reading.drops[name], reading) for name in resources),
        ]
        for reading in readings
    ]
    return text_table(headings, rows, words=3 if true else 2)


def _pct(drop: float, reading: Reading) -> str:
    return f"{100 * drop / reading.solo_kpps:.1f}"


def _all(diagnosis: Diagnosis) -> Iterator[tuple[str, Sequence[Reading]]]:
    yield "", (diagnosis.reading,)
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
        **(
            {}
            if one.capacity_kpps is None
            else {"capacity_kpps": _kpps(one.capacity_kpps), "true_capacity_kpps": _kpps(one.true_capacity_kpps)}
        ),
    }


def _flat(one: Reading) -> dict[str, Any]:
    row = _reading(one)
    drops = {f"{name}_drop_kpps": drop for name, drop in row.pop("drops_kpps").items()}
    traffic = row.pop("traffic")
    return {**{name: traffic[name] for name in ATTRIBUTES}, **row, **drops}


def _kpps(value: float | None) -> float | None:
    return None if value is None else float(f"{value:.6g}")

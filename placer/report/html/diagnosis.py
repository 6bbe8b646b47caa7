"""The page of a diagnosis: what binds, and a curve along every attribute."""

from __future__ import annotations

import pandas as pd

from placer.explain.bottleneck import Diagnosis, Reading
from placer.report.html import Figure, Page, Section, Tile, charts
from placer.report.text.diagnosis import named

CARD = "the card"


def page_of_diagnosis(diagnosis: Diagnosis) -> Page:
    """What was read off, on a page."""
    here, nf = diagnosis.here, diagnosis.workload.nf
    co_location = ", ".join(named(other) for other in diagnosis.beside) or "nobody"
    shifts = [
        f"Along {one.attribute} it shifts from {one.before} to {one.after} at {one.at:,.0f}."
        for one in diagnosis.shifts
    ]
    sections = [_section(name, readings, diagnosis) for name, readings in diagnosis.along.items()]
    return Page(
        title=f"What binds {nf}",
        summary=(
            f"{named(diagnosis.workload)} is bound by {here.bottleneck}.",
            f"Beside it: {co_location}.",
            " ".join(shifts) or "The bottleneck does not shift.",
        ),
        tiles=(
            Tile(here.bottleneck, "binds, as predicted"),
            *([Tile(here.true_bottleneck, "binds by the card's own account")] if here.true_bottleneck else []),
            Tile(f"{here.predicted_kpps:,.0f}", "kpps in this company"),
            Tile(f"{here.solo_kpps:,.0f}", "kpps alone"),
        ),
        sections=tuple(sections),
    )


def _section(attribute: str, readings: tuple[Reading, ...], diagnosis: Diagnosis) -> Section:
    told = [_row(attribute, one, "predicted", one.predicted_kpps, one.bottleneck) for one in readings]
    told += [_row(attribute, one, CARD, one.true_kpps, one.true_bottleneck) for one in readings if one.true_bottleneck]
    table = pd.DataFrame(told)
    caption = "Throughput in this company; colours tell what binds."
    at = diagnosis.workload.traffic.as_dict()[attribute]
    return Section(
        f"along-{attribute.replace('_', '-')}",
        f"Along {attribute}",
        f"The rest of the traffic as it is. In the summary {attribute} is {at:,.0f}.",
        (
            Figure(
                f"bottleneck-by-{attribute.replace('_', '-')}",
                caption,
                charts.bound(table, attribute, _resources(diagnosis)),
            ),
        ),
        table,
    )


def _resources(diagnosis: Diagnosis) -> list[str]:
    """Every resource that binds anywhere, so that each has one colour on the whole page."""
    readings = [one for along in diagnosis.along.values() for one in along]
    return sorted({name for one in readings for name in (one.bottleneck, one.true_bottleneck) if name})


def _row(attribute: str, reading: Reading, told: str, kpps: float | None, bottleneck: str | None) -> dict[str, object]:
    value = reading.traffic.as_dict()[attribute]
    return {attribute: value, "told": told, "kpps": kpps, "bottleneck": bottleneck}

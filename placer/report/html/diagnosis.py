"""The page of a diagnosis: the bottleneck of an NF, and throughput along every traffic attribute."""

from collections.abc import Sequence

import pandas as pd

from placer.explain.bottleneck import Diagnosis, Reading
from placer.report.html import Figure, Page, Section, Tile, charts
from placer.report.text.diagnosis import co_located_with, load_sentences, shift_sentence, workload_text
from placer.report.text.solo_formula import formula_sentences

PREDICTED_SERIES, TRUE_SERIES = "predicted", "simulated card"


def page_of_diagnosis(diagnosis: Diagnosis) -> Page:
    """The page of a diagnosis."""
    reading = diagnosis.reading
    true = [Tile(reading.true_bottleneck, "bottleneck on the simulated card")] if reading.true_bottleneck else []
    return Page(
        title=f"Bottleneck of {diagnosis.workload.nf}",
        summary=(
            f"The bottleneck of {workload_text(diagnosis.workload)} is {reading.bottleneck}.",
            f"It is {co_located_with(diagnosis)}.",
            *([" ".join(load_sentences(diagnosis))] if diagnosis.needs else []),
            " ".join(map(shift_sentence, diagnosis.shifts)) or "The bottleneck does not change.",
            *([" ".join(map(str.strip, formula_sentences(diagnosis.solo)))] if diagnosis.solo else []),
        ),
        tiles=(
            Tile(reading.bottleneck, "bottleneck, as predicted"),
            *true,
            Tile(f"{reading.predicted_kpps:,.0f}", "kpps, predicted in this co-location"),
            Tile(f"{reading.solo_kpps:,.0f}", "kpps alone"),
        ),
        sections=tuple(attribute_section(name, readings, diagnosis) for name, readings in diagnosis.along.items()),
    )


def attribute_section(attribute: str, readings: Sequence[Reading], diagnosis: Diagnosis) -> Section:
    """Throughput and bottleneck along an attribute."""
    rows = [
        _row(attribute, reading, PREDICTED_SERIES, reading.predicted_kpps, reading.bottleneck) for reading in readings
    ]
    rows += [
        _row(attribute, reading, TRUE_SERIES, reading.true_kpps, reading.true_bottleneck)
        for reading in readings
        if reading.true_bottleneck
    ]
    table = pd.DataFrame(rows, columns=[attribute, "source", "kpps", "bottleneck"])
    name = attribute.replace("_", "-")
    value = diagnosis.workload.traffic.as_dict()[attribute]
    caption = "Throughput in this co-location; colours show the bottleneck."
    figure = Figure(f"bottleneck-by-{name}", caption, charts.bottlenecks(table, attribute, _resources(diagnosis)))
    return Section(
        f"along-{name}",
        f"Along {attribute}",
        f"The rest of the traffic is unchanged. In the summary {attribute} is {value:,.0f}.",
        (figure,) if rows else (),
        table,
    )


def _resources(diagnosis: Diagnosis) -> list[str]:
    """Every bottleneck of the page, so that each has one colour in all charts."""
    readings = [reading for along in diagnosis.along.values() for reading in along]
    return sorted({name for reading in readings for name in (reading.bottleneck, reading.true_bottleneck) if name})


def _row(
    attribute: str, reading: Reading, source: str, kpps: float | None, bottleneck: str | None
) -> tuple[object, ...]:
    return reading.traffic.as_dict()[attribute], source, kpps, bottleneck

"""Readings in a state file, so that a restart knows what was learnt."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import Any

from placer.feedback.reading import ProductionReading
from placer.model.oracle import co_location_of
from placer.online.protocol import Check
from placer.online.tables import Tables
from profiles import CoLocation, Fault, InputError, TrafficProfile, Workload

READING_COLUMNS = "event, nic_model, co_location, place, tenant, throughput_kpps, offered_kpps, below_sla"

REMEMBERED = 100_000
"""Different co-locations whose text is remembered while readings are read."""


def write_readings(file: sqlite3.Connection, readings: Sequence[ProductionReading]) -> None:
    """Add readings, within the transaction of their event."""
    marks = ", ".join("?" for _ in READING_COLUMNS.split(","))
    file.executemany(f"INSERT INTO readings ({READING_COLUMNS}) VALUES ({marks})", map(reading_row, readings))  # noqa: S608


def read_readings(file: Tables, name: str, check: Check) -> Iterator[ProductionReading]:
    """Every reading, in order; `check` lists what is wrong with a workload.

    Raises
    ------
    InputError
        With the first row that makes no sense.
    """
    co_location_in = lru_cache(REMEMBERED)(_co_location_in)
    for row in file.execute(f"SELECT {READING_COLUMNS} FROM readings ORDER BY number"):  # noqa: S608
        event = row[0]
        try:
            reading = reading_of(row, co_location_in)
            wrong = [message for one in reading.co_location for _, message in check(one)]
            texts = isinstance(reading.tenant, str) and isinstance(reading.nic_model, str)
            if wrong or not (texts and event > 0 and reading.kpps >= 0):
                raise ValueError(wrong[0] if wrong else "a value is not of its kind")
        except (ValueError, TypeError, IndexError, KeyError) as error:
            hint = "restore a backup, or give the --models that the state was made with"
            raise InputError([Fault(name, None, f"readings {event!r}", str(error), hint)]) from error
        yield reading


def reading_of(row: Sequence[Any], co_location_in: Callable[[str], CoLocation] | None = None) -> ProductionReading:
    """The reading of a row, as `reading_row` made it."""
    event, nic_model, text, place, tenant, kpps, offered, below = row
    co_location = (co_location_in or _co_location_in)(text)
    return ProductionReading(nic_model, co_location, co_location[place], tenant, kpps, offered, event, bool(below))


def co_location_text(co_location: CoLocation) -> str:
    """A co-location as JSON."""
    return json.dumps([[one.nf, *one.traffic.as_tuple()] for one in co_location])


def _co_location_in(text: str) -> CoLocation:
    return co_location_of(Workload(nf, TrafficProfile(*map(float, traffic))) for nf, *traffic in json.loads(text))


def reading_row(reading: ProductionReading) -> tuple[object, ...]:
    """A reading as `READING_COLUMNS` have it."""
    place = reading.co_location.index(reading.workload)
    text = co_location_text(reading.co_location)
    values = reading.tenant, reading.kpps, reading.offered_kpps, int(reading.below_sla)
    return reading.event, reading.nic_model, text, place, *values

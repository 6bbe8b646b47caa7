"""Readings in a state file, so that a restart knows what was learnt."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Sequence
from functools import lru_cache

from placer.feedback.reading import ProductionReading
from placer.model.oracle import co_location_of
from placer.online.protocol import Check
from profiles import CoLocation, Fault, InputError, TrafficProfile, Workload

READING_COLUMNS = "event, nic_model, co_location, place, tenant, throughput_kpps, offered_kpps, below_sla"

REMEMBERED = 100_000
"""Different co-locations whose text is remembered while readings are read."""


def write_readings(file: sqlite3.Connection, readings: Sequence[ProductionReading]) -> None:
    """Add readings, within the transaction of their event."""
    file.executemany(f"INSERT INTO readings ({READING_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?)", map(_row, readings))  # nosec B608


def read_readings(file: sqlite3.Connection, name: str, check: Check) -> Iterator[ProductionReading]:
    """Every reading, in order; `check` lists what is wrong with a workload.

    Raises
    ------
    InputError
        With the first row that makes no sense.
    """
    co_location_in = lru_cache(REMEMBERED)(_co_location_in)
    for row in file.execute(f"SELECT {READING_COLUMNS} FROM readings ORDER BY number"):  # nosec B608
        event, nic_model, text, place, tenant, kpps, offered, below = row
        try:
            co_location = co_location_in(text)
            workload = co_location[place]
            wrong = [message for one in co_location for _, message in check(one)]
            if wrong or not (isinstance(tenant, str) and isinstance(nic_model, str) and event > 0 and kpps >= 0):
                raise ValueError(wrong[0] if wrong else "a value is not of its kind")
        except (ValueError, TypeError, IndexError, KeyError) as error:
            hint = "restore a backup, or give the --models that the state was made with"
            raise InputError([Fault(name, None, f"readings {event!r}", str(error), hint)]) from error
        yield ProductionReading(nic_model, co_location, workload, tenant, kpps, offered, event, bool(below))


def co_location_text(co_location: CoLocation) -> str:
    """A co-location as JSON."""
    return json.dumps([[one.nf, *one.traffic.as_tuple()] for one in co_location])


def _co_location_in(text: str) -> CoLocation:
    return co_location_of(Workload(nf, TrafficProfile(*map(float, traffic))) for nf, *traffic in json.loads(text))


def _row(reading: ProductionReading) -> tuple[object, ...]:
    place = reading.co_location.index(reading.workload)
    text = co_location_text(reading.co_location)
    values = reading.tenant, reading.kpps, reading.offered_kpps, int(reading.below_sla)
    return reading.event, reading.nic_model, text, place, *values

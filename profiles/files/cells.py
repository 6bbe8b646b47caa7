"""Cells of tables that people write: numbers with thousands marks, percentages, times (docs/formats/arrivals.md)."""

import re
from dataclasses import dataclass
from datetime import datetime

from profiles import Fault
from profiles.text import number_of

THOUSANDS_MARKS = re.compile(r"[1-9]\d{0,2}(,\d{3})+(\.\d+)?", re.ASCII)
"""A number whose commas can only be thousands marks where no decimal commas are written: 16,000 but not 0,100."""

DIGITS_AND_MARKS = re.compile(r"[-+]?[\d.,]+ ?%?", re.ASCII)
DECIMAL_POINT = "write decimals with a point: 0.1"
WITHOUT_MARKS = "a comma has two meanings here: write 1,500 as 1500 or as 1.5"

TIME_OF_DAY = re.compile(r"\d{1,2}:\d\d(:\d\d([.,]\d+)?)?", re.ASCII)
INSTANT_FORM = re.compile(
    r"(?P<year>\d{4})(?P<dash>-?)(?P<month>\d\d)(?P=dash)(?P<day>\d\d)"
    r"([Tt ](?P<hour>\d\d)(?P<colon>:?)(?P<minute>\d\d)((?P=colon)(?P<second>\d\d)([.,](?P<fraction>\d{1,9}))?)?"
    r" ?(?P<zone>[Zz]|[+-]\d\d(:?\d\d)?)?)?",
    re.ASCII,
)
NS_PER_SECOND = 1_000_000_000

SECONDS_KIND = "a number of seconds"
DAY_KIND = "a date without a time of day"
LOCAL_TIME_KIND = "a time without zone"
ZONED_TIME_KIND = "a time with zone"
ONE_FORM = (
    "write all times and departures in one form: as seconds, or as in 2026-03-01T08:30:00, all with or all without zone"
)
TIME_FORMS = "a time is a number of seconds, or as in 2026-03-01T08:30:00 or 2026-03-01T08:30:00+01:00"
WITH_DATE = "write the date, too, as in 2026-03-01T08:30:00: without one, the day of a time is not known"


def parse_marked_number(text: str) -> float | None:
    """The number that a text is, with or without thousands marks: 16,000; None for all else."""
    return number_of(text.replace(",", "") if THOUSANDS_MARKS.fullmatch(text) else text)


def share_of(text: str) -> float | None:
    """The share that a text is, a fraction or percent: 0.1 and `10 %` are the same; None for all else."""
    return number_of(f"{text[:-1].rstrip()}e-2" if text.endswith("%") else text)


def comma_hint(text: str) -> str | None:
    """What to do about the commas in a text that would be a number without them; None for all else."""
    if "," not in text or not DIGITS_AND_MARKS.fullmatch(text):
        return None
    return WITHOUT_MARKS if THOUSANDS_MARKS.fullmatch(text) else DECIMAL_POINT


@dataclass(frozen=True)
class Instant:
    """A point in time by ISO 8601."""

    ns: int  # nanoseconds, in UTC if the zone is known
    form: str  # `DAY_KIND`, `LOCAL_TIME_KIND` or `ZONED_TIME_KIND`


def instant_of(text: str) -> Instant | None:
    """The point in time that a text is; None for all else. A date is its midnight."""
    found = INSTANT_FORM.fullmatch(text)
    if found is None:
        return None
    year, month, day, hour, minute, second, fraction, zone = found.group(
        "year", "month", "day", "hour", "minute", "second", "fraction", "zone"
    )
    if hour is None and not found["dash"]:  # 20260301 is a number
        return None
    try:
        at = datetime(int(year), int(month), int(day), int(hour or 0), int(minute or 0), int(second or 0))
        ahead = _minutes_ahead(zone) if zone else 0
    except ValueError:
        return None
    seconds = 86_400 * at.toordinal() + 3600 * at.hour + 60 * (at.minute - ahead) + at.second
    form = ZONED_TIME_KIND if zone else LOCAL_TIME_KIND if hour else DAY_KIND
    return Instant(seconds * NS_PER_SECOND + int(fraction.ljust(9, "0") if fraction else 0), form)


def _minutes_ahead(zone: str) -> int:
    """By how much a zone is ahead of UTC; ValueError where there is none such."""
    if zone in "Zz":
        return 0
    hours, minutes = int(zone[1:3]), int(zone[3:].lstrip(":") or 0)
    if hours > 23 or minutes > 59:
        raise ValueError(zone)
    return (60 * hours + minutes) * (-1 if zone[0] == "-" else 1)


class TimeCells:
    """The times of a file: all are seconds, or all are dates and become seconds from the first one. `file`: for
    messages. `faults`: what is wrong in the cells is added to them."""

    def __init__(self, file: str, faults: list[Fault]) -> None:
        self.in_seconds = False  # whether the file is known to have seconds: then a number is the time that it says
        self._file = file
        self._faults = faults
        self._forms: dict[str, tuple[str, int]] = {}
        self._first: int | None = None

    def seconds_of(self, column: str, cell: str, line: int) -> float | None:
        """The time in a cell; None with a fault."""
        instant = instant_of(cell)
        number = number_of(cell) if instant is None else None
        form = SECONDS_KIND if instant is None else instant.form
        if number is None and instant is None:
            self._faults.append(self._not_understood(column, cell, line))
            return None
        if (other := self._other_form(column, form)) is not None:
            message = f"{cell} is {form}, but line {other[1]} has {other[0]}"
            self._faults.append(Fault(self._file, line, column, message, ONE_FORM))
            return None
        self._forms.setdefault(column, (form, line))
        if instant is None:
            self.in_seconds = True
            return number
        if self._first is None:
            self._first = instant.ns
        return (instant.ns - self._first) / NS_PER_SECOND

    def _other_form(self, column: str, form: str) -> tuple[str, int] | None:
        """A form that was read before, and its line, if the file cannot have both."""
        for name, read in self._forms.items():
            # pandas writes a column of midnights as dates, even beside a column of times without zone
            agrees = form == read[0] or (name != column and {form, read[0]} == {DAY_KIND, LOCAL_TIME_KIND})
            if not agrees:
                return read
        return None

    def _not_understood(self, column: str, cell: str, line: int) -> Fault:
        if TIME_OF_DAY.fullmatch(cell):
            return Fault(self._file, line, column, f"'{cell}' is a time of day without its date", WITH_DATE)
        if self.in_seconds or (not self._forms and not _resembles_date(cell)):
            return Fault(self._file, line, column, f"'{cell}' is not a number", comma_hint(cell) or TIME_FORMS)
        return Fault(self._file, line, column, f"'{cell}' is not understood as a time", TIME_FORMS)


def _resembles_date(cell: str) -> bool:
    return any(mark in cell for mark in ":/") or max(cell.count("-"), cell.count(".")) > 1

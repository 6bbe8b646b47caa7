"""The forms in which people write arrivals: what each is read as, and which have no single meaning and are refused."""

import gzip
import io
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from placer.inputs.arrivals import TraceOptions, read_arrivals
from placer.model.arrival import Arrival
from placer.model.sla import Sla
from profiles import InputError, TrafficProfile, Workload

DEFAULT = TrafficProfile(16000, 1500, 600)
STAYS = "id,time,nf,sla_drop,departure"
PLAIN = "id,time,nf,sla_drop\na,0,NAT,0.1\nb,1.5,ACL,0\n"
EXPECTED = [
    Arrival("a", 0.0, Workload("NAT", DEFAULT), Sla(max_drop=0.1)),
    Arrival("b", 1.5, Workload("ACL", DEFAULT), Sla(max_drop=0.0)),
]


def read(text: str, options: TraceOptions | None = None) -> list[Arrival]:
    """The arrivals in a text."""
    return read_arrivals(io.StringIO(text), DEFAULT, lambda workload: (), options or TraceOptions())


def refusal(text: str, options: TraceOptions | None = None) -> list[str]:
    """The lines of what a text is refused with."""
    with pytest.raises(InputError) as refused:
        read(text, options)
    return str(refused.value).replace("<text>", "t.csv").splitlines()


@pytest.mark.parametrize(
    ("first", "second", "seconds"),
    [
        ("2026-03-01T08:30:00", "2026-03-01T08:31:30", 90.0),
        ("2026-03-01 08:30:00", "2026-03-01 08:31:30", 90.0),  # as pandas and spreadsheets write
        ("2026-03-01T08:30", "2026-03-01T08:31:30.25", 90.25),  # the parts that are 0 may be left out
        ("2026-03-01 08:30:00", '"2026-03-01 08:30:00,5"', 0.5),  # a decimal comma is ISO 8601, too
        ("2026-03-01T08:30:00", "2026-03-01T08:30:00.123456789", 0.123456789),  # nanoseconds
        ("20260301T083000", "20260301T083130", 90.0),  # the basic format
        ("2026-02-28T23:59:59", "2026-03-01T00:00:00", 1.0),
        ("2028-02-28T12:00", "2028-03-01T12:00", 2 * 86400.0),  # a leap year
        ("2026-03-01", "2026-03-03", 2 * 86400.0),  # a date is its midnight
        ("2026-03-01T08:30:00Z", "2026-03-01T08:31:30z", 90.0),
        ("2026-03-29T00:30:00+01:00", "2026-03-29T03:30:00+02:00", 7200.0),  # summer time begins
        ("2026-03-01 08:30:00+0530", "2026-03-01 03:00:01 +00", 1.0),
        ("2026-03-01T00:30:00-01:30", "2026-03-01T02:00:01Z", 1.0),
        ("0", "90", 90.0),
        ("5", "20260301", 20260301.0),  # no date
        ("5", "9e1", 90.0),  # seconds are not counted from the first
    ],
)
def test_times_are_seconds_or_dates(first: str, second: str, seconds: float) -> None:
    """Dates count from the first; a departure is read as a time is."""
    one, other = read(f"{STAYS}\na,{first},NAT,0.1,{second}\nb,{second},NAT,0.1,\n")
    assert (one.time, one.departure, other.time) == (5.0 if first == "5" else 0.0, seconds, seconds)


def test_a_column_of_midnights_may_stand_beside_times_of_day() -> None:
    """As pandas writes them: each column by itself."""
    (stay,) = read(f"{STAYS}\na,2026-03-01 18:00:00,NAT,0.1,2026-03-02\n")
    assert stay.departure == 6 * 3600


@pytest.mark.parametrize(
    ("column", "cell", "value"),
    [
        ("flows", '"16,000"', 16000), ("flows", '"1,234,567"', 1234567), ("flows", '"16,000.0"', 16000),
        ("packet_size", '" 1,500 "', 1500), ("packet_size", "1500", 1500), ("sla_drop", "10 %", 0.1),
        ("sla_drop", "12.3%", 0.123), ("sla_drop", "10.00%", 0.1), ("sla_drop", "0 %", 0.0),
        ("sla_drop", "7\N{NO-BREAK SPACE}%", 0.07), ("sla_drop", "0.07", 0.07),
    ],
)  # fmt: skip
def test_numbers_have_thousands_marks_or_are_percent(column: str, cell: str, value: float) -> None:
    """In the columns where that has one meaning; the value is exactly that of the plain number."""
    sla = "" if column == "sla_drop" else ",sla_min_kpps"
    (arrival,) = read(f"id,time,nf,{column}{sla}\na,0,NAT,{cell}{',5' if sla else ''}\n")
    found = arrival.sla.max_drop if column == "sla_drop" else arrival.workload.traffic.as_dict()[column]
    assert found == value


@pytest.mark.parametrize(
    "text",
    [
        "ID, Time ,NF,SLA_Drop\na,0,NAT,0.1\nb,1.5,ACL,0\n",
        ",id,time,nf,sla_drop\n0,a,0,NAT,0.1\n1,b,1.5,ACL,0\n",  # the index of pandas
        PLAIN + ",,,\n" * 3,
        PLAIN + ", ,,\n\n,,,,,\n\n",
        PLAIN.replace("\n", "\r\n") + ",,,\r\n",
        "sla_drop,nf,time,id\n0.1,NAT,0,a\n0,ACL,1.5,b\n",
        'id , time,nf,sla_drop\n"a", 0 ,NAT,0.1\n\nb,1.5,ACL,0',  # no last line end
    ],
)
def test_headers_and_rows_that_programs_write_change_nothing(text: str) -> None:
    """Case, order and blanks of a header, an index without name, empty rows at the end of the file, blanks in a row."""
    assert read(text) == EXPECTED


def test_a_table_of_pandas_is_read(tmp_path: Path) -> None:
    """With its index, times with zone, departures that are missing, and numbers that became decimals."""
    frame = pd.DataFrame(
        {
            "id": ["a", "b"],
            "time": [pd.Timestamp("2026-03-01 08:00Z"), pd.Timestamp("2026-03-01 08:00:01.5Z")],
            "nf": ["NAT", "ACL"],
            "flows": [500, None],
            "sla_drop": [0.1, 0.0],
            "departure": [pd.NaT, pd.Timestamp("2026-03-02", tz="UTC")],
        }
    )
    frame.to_csv(tmp_path / "a.csv")
    first, second = read_arrivals(str(tmp_path / "a.csv"), DEFAULT, lambda workload: ())
    assert first.workload == Workload("NAT", replace(DEFAULT, flows=500))
    assert (replace(second, departure=None), second.departure) == (EXPECTED[1], 16 * 3600)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be"])
@pytest.mark.parametrize("packed", [False, True])
def test_utf_16_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, encoding: str, packed: bool) -> None:
    """With its byte order mark, plain, gzipped and from standard input; ids keep their letters."""
    mark = "\ufeff" if encoding[-2:] in ("le", "be") else ""
    content = (mark + PLAIN.replace("a,", "Zürich-\N{GRINNING FACE},").replace("\n", "\r\n")).encode(encoding)
    content = gzip.compress(content, mtime=0) if packed else content
    (tmp_path / "a.csv").write_bytes(content)
    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=io.BytesIO(content)))
    for source in (str(tmp_path / "a.csv"), "-"):
        found = read_arrivals(source, DEFAULT, lambda workload: ())
        assert found == [replace(EXPECTED[0], id="Zürich-\N{GRINNING FACE}"), EXPECTED[1]]


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        (PLAIN.encode("utf-16-le"), ":1: holds a NUL byte: it is not text\nhint: save the file as UTF-8, or as UTF-16"),
        (PLAIN.encode("utf-32"), ":1: holds a NUL byte: it is not text\nhint: save the file as UTF-8"),
        (PLAIN.encode("utf-16")[:-1], ": is not UTF-16 text\nhint: save the file as UTF-8"),
        (("\ufeff" + "x" * 70_000).encode("utf-16-le"), ":1: the line is longer than 65,536 bytes"),
        (PLAIN.replace(",", "\t").encode("utf-16"), ":1: values are separated by '\\t', not by commas"),
    ],
)
def test_utf_16_that_is_broken_is_refused(tmp_path: Path, content: bytes, fault: str) -> None:
    """So is UTF-16 that does not say so, and what Excel calls Unicode text, whose values are separated by tabs."""
    path = tmp_path / "a.csv"
    path.write_bytes(content)
    with pytest.raises(InputError) as refused:
        read_arrivals(str(path), DEFAULT, lambda workload: ())
    assert f"{path}{fault}" in str(refused.value)


TIME_FORMS = "a time is a number of seconds, or as in 2026-03-01T08:30:00 or 2026-03-01T08:30:00+01:00"
ONE_FORM = (
    "write all times and departures in one form: as seconds, or as in 2026-03-01T08:30:00, all with or all without zone"
)
WITH_DATE = "write the date, too, as in 2026-03-01T08:30:00: without one, the day of a time is not known"
DECIMALS = "write decimals with a point: 0.1"
TWO_MEANINGS = "a comma has two meanings here: write 1,500 as 1500 or as 1.5"
GROUPS = f"{DECIMALS}; a comma may separate groups of three digits only: 16,000"
IN_QUOTES = f'{DECIMALS}, and a thousands mark in quotes: "16,000"'
SHARE = "0.1 allows a drop of 10 %"
LOCAL = "2026-03-01T08:30"


@pytest.mark.parametrize(
    ("row", "fault", "hint"),
    [
        # a time of day does not say its day
        ("a,08:30,NAT,0.1,,,", "time: '08:30' is a time of day without its date", WITH_DATE),
        ("a,0,NAT,0.1,9:30:00,,", "departure: '9:30:00' is a time of day without its date", WITH_DATE),
        # the order of day and month is not known
        ("a,01/03/2026 08:30,NAT,0.1,,,", "time: '01/03/2026 08:30' is not understood as a time", TIME_FORMS),
        ("a,1.3.2026,NAT,0.1,,,", "time: '1.3.2026' is not understood as a time", TIME_FORMS),
        # a date or a time of day that does not exist
        ("a,2026-02-29T00:00,NAT,0.1,,,", "time: '2026-02-29T00:00' is not understood as a time", TIME_FORMS),
        ("a,2026-03-01T24:00,NAT,0.1,,,", "time: '2026-03-01T24:00' is not understood as a time", TIME_FORMS),
        ("a,2026-03-01T08:30+99,NAT,0.1,,,", "time: '2026-03-01T08:30+99' is not understood as a time", TIME_FORMS),
        # other forms, one of them with a comma that is no decimal
        ("a,2026-03-01T08:30 CET,NAT,0.1,,,", "time: '2026-03-01T08:30 CET' is not understood as a time", TIME_FORMS),
        ('a,"Mar 1, 2026",NAT,0.1,,,', "time: 'Mar 1, 2026' is not a number", TIME_FORMS),
        ("a,soon,NAT,0.1,,,", "time: 'soon' is not a number", TIME_FORMS),
        # two forms in one row
        (f"a,5,NAT,0.1,{LOCAL},,", f"departure: {LOCAL} is a time without zone, but line 2 has a number of seconds",
            ONE_FORM),
        (f"a,{LOCAL}Z,NAT,0.1,7,,", "departure: 7 is a number of seconds, but line 2 has a time with zone", ONE_FORM),
        (f"a,{LOCAL}Z,NAT,0.1,2026-03-02,,",
            "departure: 2026-03-02 is a date without a time of day, but line 2 has a time with zone", ONE_FORM),
        # a departure that is none; the option is named only where it helps
        (f"a,{LOCAL},NAT,0.1,{LOCAL}:00,,", f"departure: {LOCAL}:00 is not after the arrival at {LOCAL}",
            "--skip-empty-stays skips instances that depart at the time of their arrival"),
        ("a,5,NAT,0.1,4,,", "departure: 4 is not after the arrival at 5", None),
        # a comma is no decimal point, and in most columns no thousands mark
        ('a,0,NAT,"0,1",,,', "sla_drop: '0,1' is not a number", DECIMALS),
        ('a,0,NAT,"12,5 %",,,', "sla_drop: '12,5 %' is not a number", DECIMALS),
        ('a,0,NAT,,,,"1,500"', "sla_min_kpps: '1,500' is not a number", TWO_MEANINGS),
        ('a,"1,500",NAT,0.1,,,', "time: '1,500' is not a number", TWO_MEANINGS),
        ('a,0,NAT,0.1,,"16,00",', "flows: '16,00' is not a number", GROUPS),
        ('a,0,NAT,0.1,,"0,500",', "flows: '0,500' is not a number", GROUPS),
        ('a,0,NAT,0.1,,"1,6000",', "flows: '1,6000' is not a number", GROUPS),
        ("a,0,NAT,0.1,,16,000,", "has 8 values, the header has 7", IN_QUOTES),
        # percent is for shares, and below all of it
        ("a,0,NAT,,,10 %,5", "flows: '10 %' is not a number", None),
        ("a,0,NAT,%,,,", "sla_drop: '%' is not a number", None),
        ("a,0,NAT,100 %,,,", "sla_drop: 100 % is not in [0, 1)", SHARE),
        ("a,0,NAT,-5 %,,,", "sla_drop: -5 % is not in [0, 1)", SHARE),
    ],
)  # fmt: skip
def test_a_cell_without_one_meaning_is_refused_with_what_to_write(row: str, fault: str, hint: str | None) -> None:
    """One fault, and the hint that is of use for it."""
    text = f"{STAYS},flows,sla_min_kpps\n{row}\n"
    assert refusal(text) == [f"t.csv:2: {fault}", *([f"hint: {hint}"] if hint else [])]


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        (  # several forms
            f"{STAYS}\na,{LOCAL},NAT,0.1,\nb,5,NAT,0.1,\nc,{LOCAL}Z,NAT,0.1,\nd,2026-03-02,NAT,0.1,6\ne,x,NAT,0.1,\n",
            [
                "t.csv:3: time: 5 is a number of seconds, but line 2 has a time without zone",
                f"t.csv:4: time: {LOCAL}Z is a time with zone, but line 2 has a time without zone",
                "t.csv:5: time: 2026-03-02 is a date without a time of day, but line 2 has a time without zone",
                "t.csv:5: departure: 6 is a number of seconds, but line 2 has a time without zone",
                "t.csv:6: time: 'x' is not understood as a time",
                f"hint: {ONE_FORM}",
                f"hint: {TIME_FORMS}",
            ],
        ),
        (  # no order
            f"{STAYS}\na,{LOCAL},NAT,0.1,\nb,2026-03-01T08:29,NAT,0.1,\nc,2026-02-28T08:30,NAT,0.1,\n",
            [
                f"t.csv:3: time: 2026-03-01T08:29 is before {LOCAL} of the row above",
                f"t.csv:4: time: 2026-02-28T08:30 is before {LOCAL} of the row above",
                "hint: sort the file by time",
            ],
        ),
        (  # empty rows that are not at the end
            "id,time,nf,sla_drop\na,0,NAT,0.1\n,,,\n,\nb,x,NAT,0.1\n,,,\n",
            [
                "t.csv:3: is empty, and other rows follow",
                "t.csv:4: is empty, and other rows follow",
                "t.csv:5: time: 'x' is not a number",
                "hint: rows may be empty only at the end of the file",
                f"hint: {TIME_FORMS}",
            ],
        ),
        # nothing else
        ("id,time,nf,sla_drop\n,,,\n", ["t.csv: has a header but no arrivals"]),
        # a row that has only an index
        (",id,time,nf,sla_drop\n0,a,0,NAT,0.1\n1,,,,\n", [*(f"t.csv:3: {fault}" for fault in ("id: is empty",
            "time: is empty", "sla_drop: no SLA", "nf: is empty")), "hint: fill sla_drop, or sla_min_kpps"]),
        # two names that differ in case only
        ("id,time,nf,SLA_Drop,sla_drop\na,0,NAT,0.1,0.1\n", ["t.csv:1: sla_drop: column named twice"]),
    ],
)  # fmt: skip
def test_every_line_that_is_refused_is_named(text: str, lines: list[str]) -> None:
    """In order of lines, and each hint stands once."""
    assert refusal(text) == lines


def test_unknown_columns_are_ignored_where_that_is_asked_for() -> None:
    """A column without a name as well, unless it is the index; without the option, the hint names it."""
    text = ",id,Owner,time,nf,sla_drop,,owner\n0,a,x,0,NAT,0.1,7,\n1,b,y,1.5,ACL,0,,z\n"
    said: list[str] = []
    assert read(text, TraceOptions(ignore_columns=True, say=said.append)) == EXPECTED
    assert said == ["<text>: ignored columns: Owner, column 7, owner"]
    *faults, hint = refusal(text)
    assert faults == [
        "t.csv:1: Owner: unknown column",
        "t.csv:1: column 7 has no name",
        "t.csv:1: owner: unknown column",
    ]
    assert hint.startswith("hint: columns are id, time, nf, ") and hint.endswith("; --ignore-columns ignores others")
    assert read(PLAIN, TraceOptions(ignore_columns=True, say=said.append)) == EXPECTED and len(said) == 1


def test_columns_that_are_needed_are_missed_even_where_others_are_ignored() -> None:
    """The ignored ones are named all the same: one may be a misspelling."""
    said: list[str] = []
    options = TraceOptions(ignore_columns=True, say=said.append)
    assert refusal("id,time,nf,sla-drop\na,0,NAT,0.1\n", options)[0] == (
        "t.csv:1: sla_drop: column is missing, and so is sla_min_kpps"
    )
    assert said == ["<text>: ignored columns: sla-drop"]


def test_empty_stays_are_skipped_where_that_is_asked_for() -> None:
    """Their number is said; rows with a fault or with a departure before the arrival are refused as ever."""
    said: list[str] = []
    options = TraceOptions(skip_empty_stays=True, say=said.append)
    text = f"{STAYS}\nx,0,NAT,0.1,0\na,1,NAT,0.1,\ny,1,NAT,0.1,1.0\nb,1,NAT,0.1,2\n"
    assert [arrival.id for arrival in read(text, options)] == ["a", "b"]
    assert said == ["<text>: skipped arrivals that depart at the time of their arrival: 2"]
    assert refusal(f"{STAYS}\nx,5,NAT,0.1,4\ny,6,NAT,2,6\n", options)[:2] == [
        "t.csv:2: departure: 4 is not after the arrival at 5",
        "t.csv:3: sla_drop: 2 is not in [0, 1)",
    ]
    assert refusal(f"{STAYS}\nx,5,NAT,0.1,5\n", options) == [
        "t.csv: holds only arrivals that depart at the time of their arrival, which are skipped: 1"
    ]
    assert len(said) == 1


START = datetime(2026, 3, 28, 22, 0, tzinfo=UTC)


@st.composite
def drawn_arrivals(draw: st.DrawFn) -> list[Arrival]:
    """Arrivals from 0 on, by microseconds, over some days; drops by tenths of a percent."""
    arrivals, time = [], 0
    for number in range(draw(st.integers(1, 6))):
        stay = draw(st.none() | st.integers(1, 10**12))
        flows, size = draw(st.integers(1, 500_000)), draw(st.integers(64, 9000))
        arrivals.append(
            Arrival(
                f"i{number}",
                time / 1e6,
                Workload("NAT", TrafficProfile(flows, size, 600)),
                Sla(max_drop=draw(st.integers(0, 999)) / 1000),
                None if stay is None else (time + stay) / 1e6,
            )
        )
        time += draw(st.integers(0, 10**11))
    return arrivals


@st.composite
def written_forms(draw: st.DrawFn, arrivals: Sequence[Arrival]) -> bytes:
    """The arrivals in forms that are drawn: of the file, and of each cell where several have one meaning."""
    times = draw(st.sampled_from(["seconds", "local", "zoned"]))

    def moment(seconds: float | None) -> str:
        if seconds is None or times == "seconds":
            return "" if seconds is None else repr(seconds)
        at = START + timedelta(microseconds=round(seconds * 1e6))
        ahead = draw(st.integers(-14 * 60, 14 * 60)) if times == "zoned" else 0
        at = at.astimezone(timezone(timedelta(minutes=ahead)))
        text = (at if times == "zoned" else at.replace(tzinfo=None)).isoformat(draw(st.sampled_from(["T", " "])))
        return text.replace("+00:00", draw(st.sampled_from(["+00:00", "Z"])))

    def amount(value: float) -> str:
        return draw(st.sampled_from([f"{value:.0f}", f'"{value:,.0f}"', repr(value), f'" {value:,.1f}"']))

    def share(value: float) -> str:
        return draw(st.sampled_from([repr(value), f"{1000 * value / 10:.1f}%", f"{1000 * value / 10:.1f} %"]))

    columns = draw(st.permutations(["id", "time", "nf", "flows", "packet_size", "sla_drop", "departure"]))
    index = draw(st.booleans())
    header = [draw(st.sampled_from([one, one.upper(), f" {one.title()} "])) for one in columns]
    lines = [",".join(["", *header] if index else header)]
    for number, one in enumerate(arrivals):
        traffic = one.workload.traffic
        cells = {
            "id": one.id, "time": moment(one.time), "nf": "NAT", "flows": amount(traffic.flows),
            "packet_size": amount(traffic.packet_size), "sla_drop": share(one.sla.max_drop or 0.0),
            "departure": moment(one.departure),
        }  # fmt: skip
        lines.append(",".join([*([str(number)] if index else []), *(cells[column] for column in columns)]))
    lines += ["," * (len(columns) - 1 + index)] * draw(st.integers(0, 2))
    text = draw(st.sampled_from(["\n", "\r\n"])).join([*lines, ""])
    return text.encode(draw(st.sampled_from(["utf-8", "utf-8-sig", "utf-16"])))


@given(st.data(), drawn_arrivals())
def test_a_trace_reads_the_same_in_every_form(data: st.DataObject, arrivals: list[Arrival]) -> None:
    """Whatever the forms of times, numbers, header, rows and encoding: the arrivals are equal to the last bit."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "a.csv"
        path.write_bytes(data.draw(written_forms(arrivals)))
        assert read_arrivals(str(path), DEFAULT, lambda workload: ()) == arrivals

"""Arrival files: what is read, what is refused, and how faults are reported."""

import gzip
import io
from pathlib import Path
from types import SimpleNamespace

import pytest

from placer.inputs.arrivals import read_arrivals
from placer.model.arrival import Arrival
from placer.model.fleet import NicKind
from placer.model.sla import Sla
from profiles import InputError, TrafficProfile, Workload

DEFAULT = TrafficProfile(16000, 1500, 600)
KIND = NicKind(0, "bluefield-2", 5, {"NAT": 2, "ACL": 2}, count=2)
RANGES = {"flows": (1, 500000), "packet_size": (64, 1500), "mtbr": (0, 1100)}


def profiled(workload: Workload) -> list[tuple[str, str]]:
    """A catalogue that knows NAT and ACL, within `RANGES`."""
    if workload.nf not in ("NAT", "ACL"):
        return [("nf", f"'{workload.nf}' is not profiled")]
    values = workload.traffic.as_dict()
    return [(c, f"{values[c]:g} is outside") for c, (low, high) in RANGES.items() if not low <= values[c] <= high]


def read(path: Path) -> list[Arrival]:
    """The arrivals of a file by these rules."""
    return read_arrivals(str(path), DEFAULT, profiled)


def written(folder: Path, text: str | bytes, name: str = "a.csv") -> Path:
    """A file with this content."""
    path = folder / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


PLAIN = "id,time,nf,sla_drop\na,0,NAT,0.1\nb,1.5,ACL,0\n"
EXPECTED = [
    Arrival("a", 0.0, Workload("NAT", DEFAULT), Sla(max_drop=0.1)),
    Arrival("b", 1.5, Workload("ACL", DEFAULT), Sla(max_drop=0.0)),
]


@pytest.mark.parametrize(
    ("content", "name"),
    [
        (PLAIN.encode(), "a.csv"),
        (b"\xef\xbb\xbf" + PLAIN.encode(), "bom.csv"),
        (PLAIN.replace("\n", "\r\n").encode(), "crlf.csv"),
        (gzip.compress(PLAIN.encode(), mtime=0), "a.csv.gz"),
        (b"sla_drop,nf,time,id\n0.1,NAT,0,a\n0,ACL,1.5,b\n", "order.csv"),
        (b'id , time,nf,sla_drop\n"a", 0 ,NAT,0.1\n\nb,1.5,ACL,0', "spaces.csv"),
    ],
)
def test_equal_files_read_equal(tmp_path: Path, content: bytes, name: str) -> None:
    """Byte order mark, CRLF, gzip, column order, blanks and a missing last line end change nothing."""
    assert read(written(tmp_path, content, name)) == EXPECTED


def test_stdin_reads_like_a_file(monkeypatch: pytest.MonkeyPatch) -> None:
    """`-` reads standard input."""
    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=io.BytesIO(PLAIN.encode())))
    assert read_arrivals("-", DEFAULT, profiled) == EXPECTED


def test_empty_traffic_cells_mean_the_default(tmp_path: Path) -> None:
    """Traffic in the file is used, empty cells are the default; both SLA kinds and departures are read."""
    text = "id,time,nf,flows,mtbr,sla_drop,sla_min_kpps,departure\na,0,NAT,500,,0.1,,\nb,0,ACL,,7,,250,60\n"
    first, second = read(written(tmp_path, text))
    assert first.workload.traffic == TrafficProfile(500, 1500, 600) and first.departure is None
    assert second == Arrival("b", 0.0, Workload("ACL", TrafficProfile(16000, 1500, 7)), Sla(min_kpps=250.0), 60.0)


def test_a_rate_and_a_promised_latency_are_part_of_the_workload(tmp_path: Path) -> None:
    """Of an offered rate nothing may be lost unless the row has another SLA; both may be empty."""
    text = "id,time,nf,sla_drop,rate_kpps,sla_latency_us\na,0,NAT,,400,90\nb,0,NAT,0.1,400,90\nc,0,NAT,0.1,400,\n"
    read_all = read(written(tmp_path, text + "d,0,NAT,0.1,,\n"))
    promised = Workload("NAT", DEFAULT, 400.0, latency_us=90.0)
    assert [one.workload for one in read_all[:2]] == [promised, promised]
    assert read_all[0].workload is read_all[1].workload
    assert [one.sla for one in read_all[:2]] == [Sla(max_drop=0.0), Sla(max_drop=0.1)]
    assert read_all[2].workload == Workload("NAT", DEFAULT, 400.0)
    assert read_all[3].workload == Workload("NAT", DEFAULT)


def test_a_mean_latency_is_promised_instead_of_the_p99(tmp_path: Path) -> None:
    """Not both in a row."""
    text = "id,time,nf,rate_kpps,sla_latency_us,sla_mean_latency_us\na,0,NAT,400,,30\nb,0,NAT,400,30,\n"
    (mean, p99) = read(written(tmp_path, text))
    assert mean.workload == Workload("NAT", DEFAULT, 400.0, latency_us=30.0, latency_statistic="mean")
    assert p99.workload == Workload("NAT", DEFAULT, 400.0, latency_us=30.0)
    with pytest.raises(InputError, match=r"b\.csv:4: sla_mean_latency_us: two latency SLAs"):
        read(written(tmp_path, text + "c,0,NAT,400,30,30\n", "b.csv"))


def test_an_sla_above_the_rate_is_refused_after_a_row_that_is_as_it_should_be(tmp_path: Path) -> None:
    """Rows of one workload are checked each."""
    path = written(tmp_path, "id,time,nf,rate_kpps,sla_min_kpps\na,0,NAT,100,50\nb,0,NAT,100,200\n")
    with pytest.raises(InputError, match=":3: sla_min_kpps: 200 is above the rate"):
        read(path)


LATENCY_HEADER = "sla_drop,rate_kpps,sla_latency_us"
RATE_HEADER = "rate_kpps,rate_gbps,cores,sla_min_kpps"


@pytest.mark.parametrize(
    ("header", "row", "fault"),
    [
        # a latency depends on the rate
        (LATENCY_HEADER, "0.1,,90", "rate_kpps: is missing: latency depends on the rate that is offered"),
        # neither is 0, negative, tiny or beyond any clock
        (LATENCY_HEADER, "0.1,0,90", "rate_kpps: 0 is not above 0"),
        (LATENCY_HEADER, ",-5,90", "rate_kpps: -5 is not above 0"),
        (LATENCY_HEADER, "0.1,5,0", "sla_latency_us: 0 is not above 0"),
        (LATENCY_HEADER, "0.1,5,1e-9", "sla_latency_us: 1e-9 is out of range"),
        (LATENCY_HEADER, "0.1,1e300,9", "rate_kpps: 1e300 is out of range"),
        (LATENCY_HEADER, "0.1,many,9", "rate_kpps: 'many' is not a number"),
        # nothing contradicts a rate
        (RATE_HEADER, "5,1,,", "rate_gbps: two rates"),
        (RATE_HEADER, "5,,1.5,", "cores: 1.5 is not a number of cores"),
        (RATE_HEADER, "5,,0,", "cores: 0 is not a number of cores"),
        (RATE_HEADER, "5,,,6", "sla_min_kpps: 6 is above the rate that is offered, 5 kpps"),
        (RATE_HEADER, ",-1,,", "rate_gbps: -1 is not above 0"),
    ],
)
def test_bad_rates_and_latencies_are_refused(tmp_path: Path, header: str, row: str, fault: str) -> None:
    """The fault names the line and the column."""
    path = written(tmp_path, f"id,time,nf,{header}\na,0,NAT,{row}\n")
    with pytest.raises(InputError) as refused:
        read(path)
    assert [str(one) for one in refused.value.faults] == [f"{path}:2: {fault}"]


def test_a_rate_may_be_given_in_gbps_and_needs_no_sla(tmp_path: Path) -> None:
    """Packets of 1,230 bytes take 1,250 on the wire: 1 Gb/s are 100 kpps. The cores may be fixed."""
    text = "id,time,nf,packet_size,rate_gbps,cores\na,0,NAT,1230,1,\nb,0,NAT,1230,,\n"
    with pytest.raises(InputError, match=r"b\.csv:3: sla_drop: no SLA"):
        read(written(tmp_path, text, "b.csv"))
    (rated, fixed) = read(written(tmp_path, text.replace("b,0,NAT,1230,,", "b,0,NAT,1230,2,4")))
    assert rated.workload.rate_kpps == pytest.approx(100.0)
    assert (rated.sla, rated.workload.cores) == (Sla(max_drop=0.0), 0)
    assert fixed.workload.rate_kpps == pytest.approx(200.0) and fixed.workload.cores == 4


def test_instances_that_already_run_name_their_nic(tmp_path: Path) -> None:
    """An empty cell is an arrival; a fleet of one kind without names takes any."""
    path = written(tmp_path, "id,time,nf,sla_drop,nic\na,0,NAT,0.1, rack 7 \nb,1,NAT,0.1,\nc,2,NAT,0.1,nic-7\n")
    assert [one.nic for one in read_arrivals(str(path), DEFAULT, profiled, kinds=[KIND])] == ["rack 7", None, "nic-7"]
    with pytest.raises(InputError, match="2: nic: instances that already run are not understood here"):
        read(path)


@pytest.mark.parametrize(
    ("rows", "fault"),
    [
        # the line of each instance that takes too many cores together is named
        (
            "a,0,NAT,0.1,x\nb,1,ACL,0.1,x\nc,2,NAT,0.1,x",
            "4: nic: 'x' has 5 cores, and 6 are taken together with line 2, line 3",
        ),
        ("a,0,NAT,0.1,x\nb,1,ACL,0.1,y\nc,1,ACL,0.1,z", "4: nic: 'z' would be one NIC more than the 2 of the fleet"),
        ('a,0,NAT,0.1,"x\ty"', "2: nic: 'x\\ty' has a line break or another control character"),
    ],
)
def test_bad_nics_are_refused(tmp_path: Path, rows: str, fault: str) -> None:
    """NICs of a trace are checked by the fleet, with the line."""
    path = written(tmp_path, f"id,time,nf,sla_drop,nic\n{rows}\n")
    with pytest.raises(InputError) as refused:
        read_arrivals(str(path), DEFAULT, profiled, kinds=[KIND])
    assert [str(one) for one in refused.value.faults] == [f"{path}:{fault}"]


HEADER = "id,time,nf,flows,sla_drop,sla_min_kpps,departure\n"


@pytest.mark.parametrize(
    ("text", "faults"),
    [
        ("id,time,nf,sla_drop,pool\na,0,NAT,0.1,p1|\n", ["2: pool: 'p1|' has no name on one side of '|'"]),
        # a number that is none, also what Python alone would take for one
        (HEADER + "a,zero,NAT,,0.1,,\n", ["2: time: 'zero' is not a number"]),
        (HEADER + "a,0,NAT,1_000,0.1,,\n", ["2: flows: '1_000' is not a number"]),
        (HEADER + "a,nan,NAT,,0.1,,\n", ["2: time: 'nan' is not a number"]),
        (HEADER + "a,0,NAT,,inf,,\n", ["2: sla_drop: 'inf' is not a number"]),
        # NFs and traffic that are not profiled
        (HEADER + "a,0,NTA,,0.1,,\n", ["2: nf: 'NTA' is not profiled"]),
        (HEADER + "a,0,NAT,0,0.1,,\n", ["2: flows: 0 is outside"]),
        # identity and order
        (HEADER + "a,0,NAT,,0.1,,\na,1,NAT,,0.1,,\n", ["3: id: 'a' is already on line 2"]),
        (HEADER + ",0,NAT,,0.1,,\n", ["2: id: is empty"]),
        (HEADER + "a,5,NAT,,0.1,,\nb,4,NAT,,0.1,,\n", ["3: time: 4 is before 5 of the row above"]),
        (HEADER + "a,-1,NAT,,0.1,,\n", ["2: time: -1 is below 0"]),
        (HEADER + "a,,NAT,,0.1,,\n", ["2: time: is empty"]),
        (HEADER + "a,0,,,0.1,,\n", ["2: nf: is empty"]),
        # service level agreements
        (HEADER + "a,0,NAT,,1,,\n", ["2: sla_drop: 1 is not in [0, 1)"]),
        (HEADER + "a,0,NAT,,-0.1,,\n", ["2: sla_drop: -0.1 is not in [0, 1)"]),
        (HEADER + "a,0,NAT,,,0,\n", ["2: sla_min_kpps: 0 is not above 0"]),
        (HEADER + "a,0,NAT,,,,\n", ["2: sla_drop: no SLA"]),
        (HEADER + "a,0,NAT,,0.1,100,\n", ["2: sla_min_kpps: two SLAs"]),
        # departures
        (HEADER + "a,5,NAT,,0.1,,5\n", ["2: departure: 5 is not after the arrival at 5"]),
        # shape
        (HEADER + "a,0,NAT\n", ["2: has 3 values, the header has 7"]),
        ("id,time,sla_drop\na,0,0.1\n", ["1: nf: column is missing"]),
        ("id,time,nf\na,0,NAT\n", ["1: sla_drop: column is missing, and so is sla_min_kpps"]),
        ("id,time,nf,sla_drop,colour\na,0,NAT,0.1,red\n", ["1: colour: unknown column"]),
        ("id,time,nf,sla_drop,id\na,0,NAT,0.1,b\n", ["1: id: column named twice"]),
        (HEADER, ["has a header but no arrivals"]),
        ("", ["is empty: not even a header"]),
        # several at once, in order of lines
        (HEADER + "a,x,NTA,,2,,\nb,0,NAT,,0.1,,\nb,1,NAT,,0.1,,0.5\n", ["2: time: 'x' is not a number",
            "2: sla_drop: 2 is not in [0, 1)", "2: nf: 'NTA' is not profiled", "4: id: 'b' is already on line 3",
            "4: departure: 0.5 is not after the arrival at 1"]),
    ],
)  # fmt: skip
def test_bad_files_are_refused_with_every_fault(tmp_path: Path, text: str, faults: list[str]) -> None:
    """Each fault is reported as FILE:LINE: column: what is wrong; all of a file at once."""
    path = written(tmp_path, text)
    with pytest.raises(InputError) as refused:
        read(path)
    expected = [f"{path}:{fault}" if fault[0].isdigit() else f"{path}: {fault}" for fault in faults]
    assert [str(fault) for fault in refused.value.faults] == expected


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        (b"id,time,nf,sla_drop\nx\xff,0,NAT,0.1\n", ":2: is not UTF-8 text"),
        (gzip.compress(PLAIN.encode() * 50, mtime=0)[:-12], "is not a whole gzip file"),
        (b"id,time,nf,sla_drop\na\x00,0,NAT,0.1\n", ":2: holds a NUL byte"),
    ],
)
def test_what_is_no_text_is_refused(tmp_path: Path, content: bytes, fault: str) -> None:
    """Broken encodings and broken archives are faults of the file, not crashes."""
    with pytest.raises(InputError, match=fault):
        read(written(tmp_path, content))


def test_a_missing_file_is_a_fault() -> None:
    """A path that leads nowhere is refused like bad content."""
    with pytest.raises(InputError, match=r"nowhere\.csv: No such file"):
        read(Path("nowhere.csv"))


def test_twenty_faults_are_shown_then_counted(tmp_path: Path) -> None:
    """The message ends after twenty faults with how many more there are, and each hint once."""
    path = written(tmp_path, HEADER + "".join(f"n{i},0,NAT,,2,,\n" for i in range(30)))
    with pytest.raises(InputError) as refused:
        read(path)
    lines = str(refused.value).splitlines()
    assert len(lines) == 22 and lines[20:] == ["... and 10 more", "hint: 0.1 allows a drop of 10 %"]


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        ("id;time;nf;sla_drop\na;0;NAT;0,1\n", ":1: values are separated by ';', not by commas"),
        ("id\ttime\tnf\n", ":1: values are separated by '\\t', not by commas"),
        ('id,time,nf,sla_drop\na,0,NAT,"0,1"\n', ":2: sla_drop: '0,1' is not a number"),
        ("id,time,nf,sla_drop\na,0,NAT,0,1\n", ":2: has 5 values, the header has 4"),
    ],
)
def test_other_separators_and_decimal_commas_get_one_fault_and_a_hint(tmp_path: Path, content: str, fault: str) -> None:
    with pytest.raises(InputError) as refused:
        read(written(tmp_path, content))
    assert fault in str(refused.value) and len(refused.value.faults) == 1
    assert "0.1" in str(refused.value.faults[0].hint)


@pytest.mark.parametrize(
    ("row", "fault"),
    [
        ("a,\u0661,NAT,0.1", "time: '\u0661' is not a number"),
        ("a,1_0,NAT,0.1", "time: '1_0' is not a number"),
        ("a,1e999,NAT,0.1", "time: '1e999' is not a number"),
        ('"a\nb",0,NAT,0.1', "id: 'a\\nb' has a line break or another control character"),
        ("a\x1b[31m,0,NAT,0.1", "id: 'a\\x1b[31m' has a line break"),
        ("a,0,NAT,\ufeff0.1", ":2: holds a byte order mark inside the file"),
    ],
)
def test_values_that_only_look_right_are_refused(tmp_path: Path, row: str, fault: str) -> None:
    """Digits of other scripts, digit groups, overflow, control characters, and a byte order mark inside the file."""
    with pytest.raises(InputError) as refused:
        read(written(tmp_path, f"id,time,nf,sla_drop\n{row}\n"))
    assert fault in str(refused.value)


def test_an_endless_line_in_a_small_archive_is_refused(tmp_path: Path) -> None:
    """50 MB of one character compress to 50 kB; reading stops at the limit of a line."""
    bomb = gzip.compress(PLAIN.encode() + b"x" * 50_000_000, mtime=0)
    with pytest.raises(InputError, match=r":4: the line is longer than 65,536 bytes"):
        read(written(tmp_path, bomb, "bomb.csv.gz"))


def test_too_many_arrivals_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("placer.inputs.arrivals.MOST_ARRIVALS", 1)
    with pytest.raises(InputError, match="holds more than 1 arrivals"):
        read(written(tmp_path, PLAIN))


def test_reading_stops_at_many_faults(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("placer.inputs.arrivals.MOST_FAULTS", 30)
    with pytest.raises(InputError) as refused:
        read(written(tmp_path, "id,time,nf,sla_drop\n" + ",0,NAT,0.1\n" * 100))
    assert len(refused.value.faults) == 30


def test_equal_workloads_and_slas_are_one_object(tmp_path: Path) -> None:
    """So that millions of arrivals of few workloads need little memory."""
    first, second = read(written(tmp_path, "id,time,nf,sla_drop\na,0,NAT,0.1\nb,1,NAT,0.1\n"))
    assert first.workload is second.workload and first.sla is second.sla


def test_an_open_text_file_is_read() -> None:
    assert read_arrivals(io.StringIO(PLAIN), DEFAULT, profiled) == EXPECTED

"""Arrival files: what is read, what is refused, and how faults are reported."""

import gzip
import io
from pathlib import Path
from types import SimpleNamespace

import pytest

from placer.inputs.arrivals import read_arrivals
from placer.model.arrival import Arrival
from placer.model.nic_kind import NicKind
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


def test_streams_read_like_a_file(monkeypatch: pytest.MonkeyPatch) -> None:
    """`-` is standard input; an open text file is read, too."""
    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=io.BytesIO(PLAIN.encode())))
    assert read_arrivals("-", DEFAULT, profiled) == read_arrivals(io.StringIO(PLAIN), DEFAULT, profiled) == EXPECTED


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


def test_a_rate_may_be_given_in_gbps_and_needs_no_sla(tmp_path: Path) -> None:
    """Packets of 1,230 bytes take 1,250 on the wire: 1 Gb/s are 100 kpps. The cores may be fixed."""
    text = "id,time,nf,packet_size,rate_gbps,cores\na,0,NAT,1230,1,\nb,0,NAT,1230,,\n"
    with pytest.raises(InputError, match=r"b\.csv:3: sla_drop: no SLA"):
        read(written(tmp_path, text, "b.csv"))
    (rated, fixed) = read(written(tmp_path, text.replace("b,0,NAT,1230,,", "b,0,NAT,1230,2,4")))
    assert rated.workload.rate_kpps == pytest.approx(100.0)
    assert (rated.sla, rated.workload.cores) == (Sla(max_drop=0.0), 0)
    assert fixed.workload.rate_kpps == pytest.approx(200.0) and fixed.workload.cores == 4
    with pytest.raises(InputError, match=r"b\.csv:2: rate_gbps: too much"):
        read_arrivals(str(tmp_path / "b.csv"), DEFAULT, lambda _: [("rate_kpps", "too much")])


def test_instances_that_already_run_name_their_nic(tmp_path: Path) -> None:
    """An empty cell is an arrival; a fleet of one kind without names takes any."""
    path = written(tmp_path, "id,time,nf,sla_drop,nic\na,0,NAT,0.1, rack 7 \nb,1,NAT,0.1,\nc,2,NAT,0.1,nic-7\n")
    assert [one.nic for one in read_arrivals(str(path), DEFAULT, profiled, kinds=[KIND])] == ["rack 7", None, "nic-7"]
    with pytest.raises(InputError, match="2: nic: instances that already run are not understood here"):
        read(path)


HEADER = "id,time,nf,flows,sla_drop,sla_min_kpps,departure\n"
LATENCY_ROW = "id,time,nf,sla_drop,rate_kpps,sla_latency_us\na,0,NAT,"
RATE_ROW = "id,time,nf,rate_kpps,rate_gbps,cores,sla_min_kpps\na,0,NAT,"
NICS = "id,time,nf,sla_drop,nic\n"


@pytest.mark.parametrize(
    ("text", "faults"),
    [
        # a latency depends on the rate
        (LATENCY_ROW + "0.1,,90\n", ["2: rate_kpps: is missing: latency depends on the rate that is offered"]),
        # neither is 0, negative, tiny or beyond any clock
        (LATENCY_ROW + "0.1,0,90\n", ["2: rate_kpps: 0 is not above 0"]),
        (LATENCY_ROW + ",-5,90\n", ["2: rate_kpps: -5 is not above 0"]),
        (LATENCY_ROW + "0.1,5,0\n", ["2: sla_latency_us: 0 is not above 0"]),
        (LATENCY_ROW + "0.1,5,1e-9\n", ["2: sla_latency_us: 1e-9 is out of range"]),
        (LATENCY_ROW + "0.1,1e300,9\n", ["2: rate_kpps: 1e300 is out of range"]),
        (LATENCY_ROW + "0.1,many,9\n", ["2: rate_kpps: 'many' is not a number"]),
        # nothing contradicts a rate, of any row of a workload
        (RATE_ROW + "5,1,,\n", ["2: rate_gbps: two rates"]),
        (RATE_ROW + "5,,1.5,\n", ["2: cores: 1.5 is not a number of cores"]),
        (RATE_ROW + "5,,0,\n", ["2: cores: 0 is not a number of cores"]),
        (RATE_ROW + "5,,,6\n", ["2: sla_min_kpps: 6 is above the rate that is offered, 5 kpps"]),
        (RATE_ROW + "5,,,4\nb,0,NAT,5,,,6\n", ["3: sla_min_kpps: 6 is above the rate that is offered, 5 kpps"]),
        (RATE_ROW + ",-1,,\n", ["2: rate_gbps: -1 is not above 0"]),
        # NICs of a trace are checked by the fleet; each line that takes too many cores together is named
        (NICS + "a,0,NAT,0.1,x\nb,1,ACL,0.1,x\nc,2,NAT,0.1,x\n",
            ["4: nic: 'x' has 5 cores, and 6 are taken together with line 2, line 3"]),
        (NICS + "a,0,NAT,0.1,x\nb,1,ACL,0.1,y\nc,1,ACL,0.1,z\n",
            ["4: nic: 'z' would be one NIC more than the 2 of the fleet"]),
        (NICS + 'a,0,NAT,0.1,"x\ty"\n', ["2: nic: 'x\\ty' has a line break or another control character"]),
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
        read_arrivals(str(path), DEFAULT, profiled, kinds=[KIND])
    expected = [f"{path}:{fault}" if fault[0].isdigit() else f"{path}: {fault}" for fault in faults]
    assert [str(fault) for fault in refused.value.faults] == expected


SHORT = "id,time,nf,sla_drop\n"


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        # broken encodings and archives, and 50 MB of one character that compress to 50 kB
        (b"id,time,nf,sla_drop\nx\xff,0,NAT,0.1\n", ":2: is not UTF-8 text"),
        (gzip.compress(PLAIN.encode() * 50, mtime=0)[:-12], "is not a whole gzip file"),
        (gzip.compress(PLAIN.encode() + b"x" * 50_000_000, mtime=0), ":4: the line is longer than 65,536 bytes"),
        (b"id,time,nf,sla_drop\na\x00,0,NAT,0.1\n", ":2: holds a NUL byte"),
        # digits of other scripts, digit groups, overflow, control characters, a byte order mark inside the file
        (SHORT + "a,\u0661,NAT,0.1\n", "time: '\u0661' is not a number"),
        (SHORT + "a,1_0,NAT,0.1\n", "time: '1_0' is not a number"),
        (SHORT + "a,1e999,NAT,0.1\n", "time: '1e999' is not a number"),
        (SHORT + '"a\nb",0,NAT,0.1\n', "id: 'a\\nb' has a line break or another control character"),
        (SHORT + "a\x1b[31m,0,NAT,0.1\n", "id: 'a\\x1b[31m' has a line break"),
        (SHORT + "a,0,NAT,\ufeff0.1\n", ":2: holds a byte order mark inside the file"),
    ],
    ids=["encoding", "archive", "endless line", "NUL", "script", "groups", "overflow", "line break", "escape", "mark"],
)
def test_what_is_no_text_or_only_looks_right_is_refused(tmp_path: Path, content: bytes | str, fault: str) -> None:
    """These are faults of the file, not crashes; reading stops at the limit of a line."""
    with pytest.raises(InputError) as refused:
        read(written(tmp_path, content, "a.csv.gz" if content[:2] == b"\x1f\x8b" else "a.csv"))
    assert fault in str(refused.value)


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

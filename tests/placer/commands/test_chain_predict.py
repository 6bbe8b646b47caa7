"""`placer chain predict`: what it prints, and what it refuses."""

import gzip
import json
from pathlib import Path

import pytest

from tests.placer.commands.conftest import Placer, refuse, rows

MOST = {"nx": 100.0, "sc": 40.0, "sq": 60.0}  # throughput of each NF with all of a CPU, with packets of 64 bytes
SHARES = (0.1, 0.25, 0.5, 0.75, 1.0)
SIZES = (64, 512)


def reached(nf: str, cpu: float, size: float) -> float:
    """The law of an NF alone."""
    return MOST[nf] * min(cpu, 0.8) * (1.0 if size == 64 else 0.7)


def chained(cpu: tuple[float, float, float], size: float) -> float:
    """The law of the chain: 80 % of its weakest link."""
    return 0.8 * min(reached(nf, share, size) for nf, share in zip(MOST, cpu, strict=True))


@pytest.fixture
def lab(tmp_path: Path) -> Path:
    """Profiles with three repeats, eight measured runs, and three rows to predict."""
    for nf in MOST:
        rows = [
            f"{cpu},{size},{reached(nf, cpu, size) * (0.98 + 0.02 * again)}"
            for cpu in SHARES for size in SIZES for again in range(3)
        ]  # fmt: skip
        (tmp_path / f"{nf}.csv").write_text("\n".join(["cpu,packet_size,kpps", *rows]) + "\n")
    header = "nx.cpu,sc.cpu,sq.cpu,packet_size"
    settings = [
        ((0.25, 1.0, 0.5), 64), ((1.0, 0.25, 0.5), 512), ((0.5, 0.75, 0.1), 64), ((1.0, 1.0, 1.0), 512),
        ((0.1, 0.5, 1.0), 64), ((0.75, 0.1, 0.25), 64), ((0.5, 0.5, 0.25), 512), ((0.25, 0.25, 1.0), 64),
    ]  # fmt: skip
    measured = [f"{','.join(map(str, cpu))},{size},{chained(cpu, size)}" for cpu, size in settings]
    (tmp_path / "K.csv").write_text("\n".join([f"{header},kpps", *measured]) + "\n")
    (tmp_path / "Q.csv").write_text(f"note,{header}\nfirst,0.5,0.5,0.5,64\n,1,0.75,0.25,512\n,0.1,1,1,64\n")
    return tmp_path


def options(lab: Path, *more: object) -> list[object]:
    """The command for the files of a lab; `smooth` because comparing all regressors takes seconds."""
    profiles = [one for nf in MOST for one in ("--profile", f"{nf}={lab / nf}.csv")]
    fixed = ["--order", "nx,sc,sq", "--y", "kpps", "--at", lab / "Q.csv", "--regressor", "smooth"]
    return ["chain", "predict", *profiles, *fixed, *more]


def test_the_weakest_link_is_predicted_from_profiles(placer: Placer, lab: Path) -> None:
    """Q comes back with four columns more, other columns unchanged."""
    ended = placer(*options(lab))
    assert ended.status == 0
    first, second, third = rows(ended.stdout)
    assert list(first) == ["note", "nx.cpu", "sc.cpu", "sq.cpu", "packet_size", "predicted", "low", "high", "weakest"]
    assert first["note"] == "first" and [row["weakest"] for row in (first, second, third)] == ["sc", "sq", "nx"]
    assert [float(row["predicted"]) for row in (first, second, third)] == pytest.approx([20, 10.5, 10], rel=0.05)
    for row in (first, second, third):
        assert float(row["low"]) < float(row["predicted"]) < float(row["high"])
    assert "composition: the weakest link" in ended.stderr and "nx: 10 settings, noise" in ended.stderr


@pytest.mark.long
def test_measured_runs_correct_the_prediction(placer: Placer, lab: Path) -> None:
    """The chain reaches 80 % of its weakest link; intervals become narrower."""
    alone, corrected = (rows(placer(*options(lab, *more)).stdout) for more in ((), ("--measured", lab / "K.csv")))
    for before, after in zip(alone, corrected, strict=True):
        assert float(after["predicted"]) == pytest.approx(0.8 * float(before["predicted"]), rel=0.06)
        assert float(after["high"]) / float(after["low"]) < float(before["high"]) / float(before["low"])
    assert "corrected by 8 of 8 measured settings" in placer(*options(lab, "--measured", lab / "K.csv")).stderr


def test_response_times_are_those_of_the_slowest(placer: Placer, tmp_path: Path) -> None:
    for nf, most in (("a", 10), ("b", 30)):
        (tmp_path / f"{nf}.csv").write_text("cpu,ms\n" + "".join(f"{cpu},{most / cpu}\n" for cpu in SHARES))
    (tmp_path / "Q.csv").write_text("a.cpu,b.cpu\n0.5,0.5\n0.1,1\n")
    ended = placer(
        "chain", "predict", "--profile", f"a={tmp_path}/a.csv", "--profile", f"b={tmp_path}/b.csv", "--order", "a,b",
        "--y", "ms", "--lower-is-better", "--at", tmp_path / "Q.csv", "--regressor", "smooth",
    )  # fmt: skip
    assert [(row["weakest"], float(row["predicted"])) for row in rows(ended.stdout)] == [
        ("b", pytest.approx(60, rel=0.03)), ("a", pytest.approx(100, rel=0.03)),
    ]  # fmt: skip


@pytest.mark.long
def test_json_says_what_was_found(placer: Placer, lab: Path) -> None:
    found = json.loads(placer(*options(lab, "--measured", lab / "K.csv", "--format", "json")).stdout)
    assert (found["y"], found["corrected"], found["measured"]) == ("kpps", True, 8)
    assert found["profiles"]["nx"]["regressor"] == "smooth" and found["rule"]
    assert found["rows"][0]["note"] == "first" and found["rows"][0]["predicted"] > found["rows"][0]["low"]


def test_a_table_for_people(placer: Placer, lab: Path) -> None:
    shown = placer(*options(lab, "--format", "table", "--quiet"))
    assert shown.stdout.splitlines()[0].split()[-4:] == ["predicted", "low", "high", "weakest"]
    assert shown.stderr == ""


def test_outside_of_the_profiles_is_predicted_marked_and_reported(placer: Placer, lab: Path) -> None:
    (lab / "Q.csv").write_text("nx.cpu,sc.cpu,sq.cpu,packet_size\n0.5,0.5,0.5,64\n2,0.5,0.5,64\n")
    ended = placer(*options(lab))
    assert [row["extrapolated"] for row in rows(ended.stdout)] == ["false", "true"]
    assert "1 of 2 rows are outside what was profiled" in ended.stderr


@pytest.mark.long
@pytest.mark.parametrize(
    "written",
    [
        lambda text: b"\xef\xbb\xbf" + text.encode(),
        lambda text: text.replace("\n", "\r\n").encode(),
        lambda text: gzip.compress(text.encode(), mtime=0),
    ],
)
def test_equal_files_predict_equal(placer: Placer, lab: Path, written: object) -> None:
    """With a byte order mark, CRLF, or gzipped."""
    plain = placer(*options(lab)).stdout
    for name in ("nx.csv", "Q.csv"):
        text = (lab / name).read_text()
        (lab / name).write_bytes(written(text))  # type: ignore[operator]
    assert placer(*options(lab)).stdout == plain


def test_what_to_predict_is_read_from_standard_input(placer: Placer, lab: Path) -> None:
    plain = placer(*options(lab)).stdout
    assert placer(*options(lab, "--at", "-"), stdin=(lab / "Q.csv").read_bytes()).stdout == plain


def test_rows_without_a_measure_are_left_out_and_counted(placer: Placer, lab: Path) -> None:
    """Runs that failed: empty, or zero."""
    with (lab / "nx.csv").open("a") as file:
        file.write("0.5,64,\n0.5,64,0\n")
    ended = placer(*options(lab))
    assert ended.status == 0 and "nx.csv: 1 of 32 rows have no kpps: left out" in ended.stderr
    assert "nx.csv: 1 of 32 rows have kpps 0: left out" in ended.stderr


def test_columns_that_are_no_inputs_are_named(placer: Placer, lab: Path) -> None:
    """Notes, the number of the run, and another measure; Q has none of them."""
    lines = (lab / "nx.csv").read_text().splitlines()
    more = [f"{line},{at % 3},note,{float(line.split(',')[2]) * 1.7}" for at, line in enumerate(lines[1:])]
    (lab / "nx.csv").write_text("\n".join([f"{lines[0]},run,remark,mbps", *more]) + "\n")
    plain = placer(*options(lab))
    assert plain.status == 0
    assert "column run is not used" in plain.stderr and "column mbps is not used" in plain.stderr


def test_a_chain_profiled_as_a_whole_is_a_chain_of_one(placer: Placer, lab: Path) -> None:
    """Its columns keep their names."""
    (lab / "whole.csv").write_text("".join((lab / "K.csv").read_text()))
    ended = placer(
        "chain", "predict", "--profile", f"all={lab}/whole.csv", "--order", "all", "--y", "kpps", "--at", lab / "K.csv",
        "--measured", lab / "K.csv", "--regressor", "smooth",
    )  # fmt: skip
    assert ended.status == 0 and "no correction: 8 measured settings of the chain show no need" in ended.stderr
    for row in rows(ended.stdout):
        assert float(row["predicted"]) == pytest.approx(float(row["kpps"]), rel=0.25)


def test_cores_dropped_packets_and_source_are_composed(placer: Placer, tmp_path: Path) -> None:
    """1/T = t0 + (1/500 - t0) + 0.5 (1/250 - t0), with t0 = 1/1000: 1/T = 0.0035."""
    for nf, kpps in (("null", 1000), ("acl", 500), ("nat", 250)):
        (tmp_path / f"{nf}.csv").write_text("packet_size,kpps\n" + f"64,{kpps}\n64,{kpps}\n512,{kpps}\n512,{kpps}\n")
    (tmp_path / "Q.csv").write_text("packet_size\n64\n")
    profiles = [one for nf in ("null", "acl", "nat") for one in ("--profile", f"{nf}={tmp_path}/{nf}.csv")]
    command = [
        "chain", "predict", *profiles,
        "--order", "acl,nat", "--y", "kpps", "--at", tmp_path / "Q.csv", "--source", "null", "--cores", "acl+nat",
        "--passes", "acl=0.5",
    ]  # fmt: skip
    (row,) = rows(placer(*command).stdout)
    assert float(row["predicted"]) == pytest.approx(1 / 0.0035, rel=0.01)


@pytest.mark.long
def test_regressors_are_compared(placer: Placer, lab: Path) -> None:
    """Every one for every profile; one of each profile is chosen."""
    printed = rows(placer(*options(lab, "--compare")).stdout)
    assert {row["profile"] for row in printed} == set(MOST)
    assert {"smooth", "monotone", "interpolation", "lasso-3", "neural-network"} <= {row["regressor"] for row in printed}
    assert sum(row["chosen"] == "yes" for row in printed) == 3


@pytest.mark.parametrize(
    ("more", "fault"),
    [
        (("--order", "nx,sx"), "--order: 'sx' has no profile\nhint: --profile sx=FILE, or one of nx, sc, sq"),
        (("--profile", "nx=other.csv"), "--profile: 'nx' is given twice"),
        (("--profile", "other.csv"), "--profile: 'other.csv' is not of the form NF=FILE"),
        (("--y", "mbps"), "nx.csv:1: mbps: column is missing\n"),
        (("--regressor", "lasso"), "--regressor: 'lasso' is not a regressor\nhint: did you mean lasso-"),
        (("--cores", "nx+sc"), "--cores: no core runs sq"),
        (("--cores", "nx+sc,sq+sz"), "--cores: 'sz' is not in --order"),
        (("--passes", "nx=2"), "--passes: nx=2: is not above 0 and at most 1"),
        (("--resizes", "nx=50"), "--resizes: nx=50: is not understood\nhint: nx=+50 adds"),
        (("--source", "null"), "--source: 'null' has no profile"),
        (("--format", "xml"), "--format: 'xml' is not understood"),
        (("--at", "nowhere.csv"), "nowhere.csv: No such file or directory"),
    ],
)
def test_options_that_cannot_be_followed_are_refused(lab: Path, more: tuple[str, ...], fault: str) -> None:
    assert fault in refuse(*options(lab, *more))


def test_nothing_to_predict_is_refused(lab: Path) -> None:
    assert "--at: is missing\nhint: --at FILE.csv lists what to predict" in refuse(
        "chain", "predict", "--profile", f"nx={lab}/nx.csv", "--y", "kpps"
    )


def test_bad_files_are_refused_whole_with_every_fault(placer: Placer, lab: Path) -> None:
    """In a profile, among measured runs and in what to predict, all at once."""
    with (lab / "nx.csv").open("a") as file:
        file.write("half,64,10\n0.5,64,-3\n0.5,64\n")
    (lab / "K.csv").write_text("nx.cpu,sc.cpu,sq.cpu,packet_size,kpps\n0.5,0.5,,64,10\n")
    (lab / "Q.csv").write_text("nx.cpu,sc.cpu,sq.cpu,packet_size\n0.5,1_0,0.5,64\n")
    ended = placer(*options(lab, "--measured", lab / "K.csv"))
    assert (ended.status, ended.stdout) == (2, "") and "nx.csv:34: has 2 values, the header has 3" in ended.stderr
    with (lab / "nx.csv").open() as file:
        whole = [line for line in file if line.count(",") == 2]
    (lab / "nx.csv").write_text("".join(whole))
    ended = placer(*options(lab, "--measured", lab / "K.csv"))
    for fault in (
        "nx.csv:32: cpu: 'half' is not a number", "nx.csv:33: kpps: -3 is negative", "K.csv:2: sq.cpu: is empty",
        "Q.csv:2: sc.cpu: '1_0' is not a number",
    ):  # fmt: skip
        assert fault in ended.stderr


@pytest.mark.parametrize(
    ("header", "missing"),
    [("nx.cpu,sc.cpu,packet_size", "sq.cpu"), ("nx.cpu,sc.cpu,sq.cpu", "nx.packet_size"), ("x,y,z", "nx.cpu")],
)
def test_columns_that_are_inputs_must_be_there(lab: Path, header: str, missing: str) -> None:
    """A configuration that other NFs have, and a workload on which the measure depends."""
    (lab / "Q.csv").write_text(f"{header}\n" + ",".join(["0.5"] * (header.count(",") + 1)) + "\n")
    printed = refuse(*options(lab))
    assert f"Q.csv:1: {missing}: column is missing" in printed and "hint: " in printed


def test_an_input_can_be_ignored(placer: Placer, lab: Path) -> None:
    (lab / "Q.csv").write_text("nx.cpu,sc.cpu,sq.cpu\n0.5,0.5,0.5\n")
    assert placer(*options(lab, "--ignore", "packet_size")).status == 0


def test_standard_input_is_one_file(lab: Path) -> None:
    assert "<stdin>: is named for several files" in refuse(*options(lab, "--at", "-", "--measured", "-"))


@pytest.mark.long
def test_a_latency_goes_in_steps_of_its_throughput(placer: Placer, lab: Path) -> None:
    """Above 18 kpps, requests are answered within 5 ms, below they wait for the next period, 40 ms: no NF alone shows
    where the step is. Settings on either side; rows of one measure only are left out."""

    def ms(kpps: float) -> float:
        return 5.0 if kpps > 18 else 40.0

    for name in (*MOST, "K"):
        header, *lines = (lab / f"{name}.csv").read_text().splitlines()
        chained = [f"{line},{ms(float(line.rsplit(',', 1)[1]))}" for line in lines]
        (lab / f"{name}.csv").write_text("\n".join([f"{header},ms", *chained]) + "\n")
    with (lab / "K.csv").open("a") as file:
        file.write("1,1,0.9,64,,5\n1,0.9,1,64,32,\n1,0.9,0.9,64,32,5\n")
    (lab / "Q.csv").write_text("nx.cpu,sc.cpu,sq.cpu,packet_size\n0.9,0.75,1,64\n0.3,0.3,0.5,64\n1,0.1,1,512\n")
    latency = ("--y", "ms", "--lower-is-better", "--measured", lab / "K.csv", "--throughput", "kpps")
    ended = placer(*options(lab, *latency))
    fast, slow, slowest = rows(ended.stdout)
    assert (fast["extrapolated"], slow["extrapolated"], slowest["extrapolated"]) == ("false", "false", "true")
    assert "1 of 3 rows are outside what was profiled, or beyond the throughput of all runs" in ended.stderr
    _, blurred, alone = rows(placer(*options(lab, *latency[:-2])).stdout)
    assert "extrapolated" not in alone and slowest["predicted"] == alone["predicted"]
    assert float(fast["predicted"]) == pytest.approx(5, rel=0.1)
    assert abs(float(slow["predicted"]) - 40) < 0.7 * abs(float(blurred["predicted"]) - 40)
    assert float(slow["low"]) < float(slow["predicted"]) < float(slow["high"])
    printed = refuse(*options(lab, "--throughput", "ms"))
    assert "--throughput: needs measured runs of a latency\nhint: --measured FILE.csv has both" in printed
    assert "--throughput: ms is the latency of --y\nhint: it names" in refuse(*options(lab, *latency[:-1], "ms"))
    assert "--throughput: is of no use with --compare" in refuse(*options(lab, *latency, "--compare"))
    printed = refuse(*options(lab, *latency[:-1], "kpp"))
    assert "K.csv:1: kpp: column is missing\nhint: --throughput names the measure; did you mean kpps?" in printed
    assert "--throughput: reads files twice" in refuse(*options(lab, *latency, "--at", "-"))
    (lab / "K.csv").write_text("nx.cpu,sc.cpu,sq.cpu,packet_size,kpps,ms\n1,1,1,64,,5\n1,1,0.5,64,32,\n")
    assert "K.csv: no row has both ms and kpps" in refuse(*options(lab, *latency))

"""The command line as a whole: exit status, stdout and stderr."""

from __future__ import annotations

import csv
import io
import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from placer.cli import main
from traces.arrivals import Recipe, generate

REPO = Path(__file__).parents[3]


@dataclass(frozen=True)
class Ended:
    """How a command ended."""

    status: int
    stdout: str
    stderr: str


Placer = Callable[..., Ended]


@pytest.fixture
def placer(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Placer:
    """Runs `placer` with arguments, in this process."""

    def run(*arguments: object) -> Ended:
        monkeypatch.setattr(sys, "argv", ["placer", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            main()
        told = capsys.readouterr()
        code = ended.value.code
        return Ended(code if isinstance(code, int) else 0 if code is None else 1, told.out, told.err)

    return run


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    """Sixty arrivals of the nine NFs at default traffic."""
    path = tmp_path / "arrivals.csv"
    path.write_text("".join(generate(Recipe(count=60, seed=5))), encoding="utf-8")
    return path


def test_run_compares_all_strategies(placer: Placer, trace: Path, tmp_path: Path) -> None:
    """JSON has the fixed keys, a proven optimum, every strategy, and figures that agree with one another."""
    plan = tmp_path / "plans" / "plan.csv"
    ended = placer("run", trace, "--format", "json", "--plan", plan, "--seed", 3)
    assert ended.status == 0
    told = json.loads(ended.stdout)
    assert (told["arrivals"], told["seed"], told["truth"]) == (60, 3, "simulated")
    optimal = told["optimal"]
    assert optimal["proven"]
    assert optimal["nics"] == optimal["lower_bound"]
    assert [(row["strategy"], row["predictor"]) for row in told["strategies"]] == [
        ("monopolization", None),
        ("greedy", None),
        ("contention-aware", "tomur"),
        ("contention-aware", "slomo"),
        ("optimal", None),
    ]
    for row in told["strategies"]:
        assert row["wastage_pct"] == pytest.approx(100 * (row["nics"] / optimal["nics"] - 1), abs=1e-3)
        assert row["sla_violations_pct"] == pytest.approx(100 * row["violated"] / 60, abs=1e-3)
        assert row["rejected"] == 0
    assert told["strategies"][0]["nics"] == 60
    assert told["strategies"][0]["violated"] == told["strategies"][-1]["violated"] == 0
    rows = list(csv.DictReader(plan.open(encoding="utf-8")))
    assert len(rows) == 5 * 60
    for row in told["strategies"]:
        mine = [r for r in rows if (r["strategy"], r["predictor"]) == (row["strategy"], row["predictor"] or "")]
        assert len({r["nic"] for r in mine}) == row["nics"]
        assert sum(r["sla_met"] == "false" for r in mine) == row["violated"]


def test_the_same_seed_gives_the_same_bytes(placer: Placer, trace: Path, tmp_path: Path) -> None:
    """Two runs write the same plan file to the byte."""
    plans = [tmp_path / "1.csv", tmp_path / "2.csv"]
    for plan in plans:
        assert placer("run", trace, "--plan", plan).status == 0
    assert plans[0].read_bytes() == plans[1].read_bytes()


def test_run_narrows_and_renders(placer: Placer, trace: Path) -> None:
    """--strategy and --predictor narrow; CSV has a row per strategy; the table names the judge."""
    ended = placer(
        "run",
        trace,
        "--strategy",
        "greedy",
        "--strategy",
        "contention-aware",
        "--predictor",
        "tomur",
        "--format",
        "csv",
    )
    rows = list(csv.DictReader(io.StringIO(ended.stdout)))
    assert [(row["strategy"], row["predictor"]) for row in rows] == [("greedy", ""), ("contention-aware", "tomur")]
    assert all(row["optimal_proven"] == "True" for row in rows)
    table = placer("run", trace, "--strategy", "monopolization")
    assert "monopolization" in table.stdout
    assert "simulated card, not on hardware" in table.stdout


def test_without_a_testbed_nobody_knows_violations(placer: Placer, trace: Path) -> None:
    """`--testbed none` makes the optimum a predicted one and violations null."""
    told = json.loads(placer("run", trace, "--testbed", "none", "--format", "json").stdout)
    assert told["truth"] == "predicted"
    assert {row["sla_violations_pct"] for row in told["strategies"]} == {None}
    tomur = next(row for row in told["strategies"] if row["predictor"] == "tomur")
    assert tomur["nics"] >= told["optimal"]["nics"]


def test_a_bad_trace_places_nothing(placer: Placer, trace: Path, tmp_path: Path) -> None:
    """Every fault on stderr, nothing on stdout, exit 2, no plan file."""
    trace.write_text(trace.read_text() + "x,1e9,NTA,0.1\nnf-01,1e9,NAT,7\n", encoding="utf-8")
    ended = placer("run", trace, "--plan", tmp_path / "plan.csv")
    assert (ended.status, ended.stdout) == (2, "")
    lines = ended.stderr.splitlines()
    assert lines[0].startswith(f"{trace}:62: nf: 'NTA' is not profiled, one of ACL, ")
    assert lines[1] == f"{trace}:63: id: 'nf-01' is already on line 2"
    assert lines[2] == f"{trace}:63: sla_drop: 7 is not in [0, 1)"
    assert lines[3:] == ["hint: ids must be unique", "hint: 0.1 allows a drop of 10 %"]
    assert not (tmp_path / "plan.csv").exists()


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--strategy", "luck"], "--strategy: unknown: luck"),
        (["--predictor", "oracle"], "--predictor: not in the models: oracle"),
        (["--format", "xml"], "--format: 'xml' is not understood"),
        (["--models", "nowhere"], "nowhere: is not a models directory"),
        (["--testbed", "dice"], "--testbed: 'dice' is not a testbed"),
        (["--fleet", "nowhere.toml"], "nowhere.toml: No such file"),
    ],
)
def test_bad_options_are_refused_with_a_hint(placer: Placer, trace: Path, arguments: list[str], told: str) -> None:
    """What is not understood is named, nothing is printed to stdout, exit 2."""
    ended = placer("run", trace, *arguments)
    assert (ended.status, ended.stdout) == (2, "")
    assert told in ended.stderr


def test_a_limited_fleet_rejects_and_says_so(placer: Placer, trace: Path, tmp_path: Path) -> None:
    """With five NICs, every strategy uses at most five and rejects others; owned NICs come first."""
    fleet = tmp_path / "fleet.toml"
    fleet.write_text('[[nic]]\nmodel = "bluefield-2"\ncount = 5\n', encoding="utf-8")
    told = json.loads(placer("run", trace, "--fleet", fleet, "--format", "json").stdout)
    assert all(row["nics"] <= 5 for row in told["strategies"])
    assert told["strategies"][0]["rejected"] == 55
    assert all(row["rejected"] >= told["optimal"]["rejected"] > 0 for row in told["strategies"] if row["violated"] == 0)


def test_another_card_is_never_the_judge(placer: Placer, trace: Path, tmp_path: Path) -> None:
    """A testbed of another NIC model than the models were trained on is refused."""
    foreign = REPO / "tests" / "data" / "foreign_testbed.py"
    ended = placer("run", trace, "--testbed", f"exec:{sys.executable} {foreign}")
    assert ended.status == 2
    assert "the models were trained on a bluefield-2" in ended.stderr


def test_predict_scenarios(placer: Placer, tmp_path: Path) -> None:
    """One answer a line, aligned with the workloads; alone, an NF has its solo throughput."""
    scenarios = tmp_path / "s.jsonl"
    nat = {"kind": "nf", "name": "NAT", "traffic": {"flows": 16000, "packet_size": 1500, "mtbr": 600}}
    monitor = {**nat, "name": "FlowMonitor"}
    lines = [{"workloads": [nat]}, {"workloads": [monitor, nat, monitor]}]
    scenarios.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    ended = placer("predict", "--scenarios", scenarios)
    alone, together = map(json.loads, ended.stdout.splitlines())
    assert alone["throughput_kpps"] == alone["solo_kpps"]
    assert together["bottleneck"][0] == "regex"
    assert together["throughput_kpps"][0] == together["throughput_kpps"][2] < together["solo_kpps"][0]
    assert together["solo_kpps"][1] == alone["solo_kpps"][0]
    assert "FlowMonitor" in placer("predict", "--scenarios", scenarios, "--format", "table").stdout


def test_a_prediction_can_be_taken_apart(placer: Placer, tmp_path: Path) -> None:
    """Solo, drop per resource and interval agree: the interval holds the prediction, drops are of what contends.

    Like company was measured in the profile, and it is said that it corrected the prediction.
    """
    scenarios = tmp_path / "s.jsonl"
    scenarios.write_text(
        '{"workloads": [{"name": "FlowMonitor"}, {"name": "NIDS"}, {"name": "NAT"}]}\n', encoding="utf-8"
    )
    told = json.loads(placer("predict", "--scenarios", scenarios).stdout)
    for low, got, high in zip(told["low_kpps"], told["throughput_kpps"], told["high_kpps"], strict=True):
        assert low <= got <= high
    assert set(told["drop_kpps"][0]) == {"memory", "regex"}
    assert told["drop_kpps"][0]["regex"] > told["drop_kpps"][0]["memory"] > 0
    assert told["drop_kpps"][2].get("regex", 0) == 0
    assert told["calibrated"] == [True, True, True]


def test_traffic_out_of_range_is_answered_on_request(placer: Placer, tmp_path: Path) -> None:
    """Refused with the range and a hint; with --extrapolate answered, marked, and told on stderr."""
    scenarios = tmp_path / "s.jsonl"
    scenarios.write_text('{"workloads": [{"name": "NAT", "traffic": {"flows": 600000}}]}\n', encoding="utf-8")
    refused = placer("predict", "--scenarios", scenarios)
    assert refused.status == 2
    assert "flows: 600000 is outside the profiled range 1 to 500000" in refused.stderr
    assert "hint: --extrapolate" in refused.stderr
    answered = placer("predict", "--scenarios", scenarios, "--extrapolate")
    assert json.loads(answered.stdout)["extrapolated"] == [True]
    assert "outside what was measured" in answered.stderr


def test_less_risk_breaks_fewer_slas_on_more_nics(placer: Placer, trace: Path) -> None:
    """A risk of 1 % is not cheaper than one of 30 %, and breaks no more SLAs."""
    bold, shy = (
        json.loads(placer("run", trace, "--risk", risk, "--predictor", "tomur", "--format", "json").stdout)[
            "strategies"
        ][2]
        for risk in (0.3, 0.01)
    )
    assert shy["nics"] >= bold["nics"]
    assert shy["violated"] <= bold["violated"]


def test_who_takes_no_notice_of_a_risk_is_told(placer: Placer, trace: Path) -> None:
    """Where a risk is asked for, the table says that it is nothing to SLOMO; without one there is nothing to say."""
    arguments = ("run", trace, "--strategy", "contention-aware", "--quiet")
    assert placer(*arguments, "--risk", "0.05").stdout.splitlines()[-1].startswith("slomo knows no errors of its own")
    assert "slomo knows" not in placer(*arguments, "--risk", "0.05", "--predictor", "tomur").stdout
    assert "slomo knows" not in placer(*arguments).stdout


def test_bad_scenarios_are_refused_whole(placer: Placer, tmp_path: Path) -> None:
    """Unknown NFs, traffic out of range and lines that are no scenario are told at once, with their lines."""
    scenarios = tmp_path / "s.jsonl"
    scenarios.write_text(
        '{"workloads": [{"name": "NTA"}]}\n{"workloads": [{"name": "NAT", "traffic": {"flows": 9e9}}]}\nnonsense\n'
        '{"workloads": []}\n',
        encoding="utf-8",
    )
    ended = placer("predict", "--scenarios", scenarios)
    assert (ended.status, ended.stdout) == (2, "")
    for line, told in (
        (1, "nf: 'NTA' is not profiled"),
        (2, "flows: 9e+09 is outside"),
        (3, "Invalid JSON"),
        (4, "workloads: "),
    ):
        assert any(fault.startswith(f"{scenarios}:{line}: ") and told in fault for fault in ended.stderr.splitlines())


def test_generate_writes_what_run_reads(placer: Placer, tmp_path: Path) -> None:
    """A generated trace is the same on stdout and in a file, and is read without a fault."""
    out = tmp_path / "t.csv"
    options = [
        "generate",
        "--count",
        12,
        "--traffic",
        "mixed",
        "--departures",
        40,
        "--sla",
        "0.1-0.2",
        "--nfs",
        "NAT,ACL",
    ]
    assert placer(*options, "--out", out).status == 0
    assert placer(*options).stdout == out.read_text(encoding="utf-8")
    told = json.loads(placer("run", out, "--format", "json").stdout)
    assert told["arrivals"] == 12


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--sla", "0.2-0.1"], "--sla: '0.2-0.1' is not a range"),
        (["--nfs", ","], "--nfs: names no NF"),
        (["--traffic", "heavy"], "--traffic: 'heavy' is not understood"),
    ],
)
def test_bad_recipes_are_refused(placer: Placer, arguments: list[str], told: str) -> None:
    """Options of generate that make no trace are refused."""
    ended = placer("generate", *arguments)
    assert (ended.status, ended.stdout) == (2, "")
    assert told in ended.stderr


def test_the_installed_command_pipes(trace: Path) -> None:
    """As a process of its own: arrivals on stdin, JSON on stdout; a reader that leaves early is no failure."""
    done = subprocess.run(
        [sys.executable, "-m", "placer", "run", "-", "--strategy", "monopolization", "--format", "json"],
        input=trace.read_bytes(), capture_output=True, check=True, cwd=REPO,
    )  # fmt: skip
    assert json.loads(done.stdout)["strategies"][0]["nics"] == 60


def test_help_names_the_commands() -> None:
    """`placer --help` lists every command."""
    done = subprocess.run(
        [sys.executable, "-m", "placer", "--help"], capture_output=True, text=True, check=True, cwd=REPO
    )
    for command in ("run", "generate", "profile", "train", "predict", "pack", "reproduce", "testbed"):
        assert command in done.stdout


def test_predictions_beside_measured_contention_can_be_taken_apart(placer: Placer, tmp_path: Path) -> None:
    """Rows with `predicted_kpps` by default; with --format json interval, drops, bottleneck, and what co-runs did."""
    rows = tmp_path / "c.csv"
    rows.write_text(
        "note,flows,packet_size,mtbr,ipc,irt,l2crd,l2cwr,memrd,memwr,wss,competitor_service_ms\n"
        "mine,16000,1500,600,1.2,3e9,4e7,2e7,1.2e9,5e8,8,0.0008\n",
        encoding="utf-8",
    )
    asked = ("predict", "--nf", "FlowMonitor", "--contention", rows)
    (plain,) = csv.DictReader(io.StringIO(placer(*asked).stdout))
    assert plain["note"] == "mine" and set(plain) >= {"flows", "predicted_kpps"}
    ended = placer(*asked, "--format", "json", "--coverage", "0.8")
    told, wider = json.loads(ended.stdout), json.loads(placer(*asked, "--format", "json").stdout)
    assert told["throughput_kpps"] == [float(plain["predicted_kpps"])]
    assert wider["low_kpps"][0] < told["low_kpps"][0] < told["throughput_kpps"][0] < told["high_kpps"][0]
    assert told["bottleneck"] == ["regex"] and told["drop_kpps"][0]["regex"] > told["drop_kpps"][0]["memory"]
    assert told["calibrated"] == [True] and "measured co-runs corrected 1 of 1 predictions" in ended.stderr
    shown = placer(*asked, "--format", "table").stdout
    assert "regex" in shown and "calibrated" in shown

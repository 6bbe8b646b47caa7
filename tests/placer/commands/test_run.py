"""`placer run`: exit status, stdout and stderr."""

from __future__ import annotations

import csv
import io
import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.placer.commands.conftest import Placer
from traces.arrivals import Recipe, generate

REPO = Path(__file__).parents[3]


@pytest.fixture
def short(tmp_path: Path) -> Path:
    """Twenty arrivals."""
    path = tmp_path / "short.csv"
    path.write_text("".join(generate(Recipe(count=20, seed=5))), encoding="utf-8")
    return path


def test_run_compares_all_strategies(placer: Placer, trace: Path, tmp_path: Path) -> None:
    """JSON has the fixed keys, a proven optimum, every strategy, and figures that agree with one another."""
    plan = tmp_path / "plans" / "plan.csv"
    ended = placer("run", trace, "--format", "json", "--plan", plan, "--seed", 3)
    assert ended.status == 0
    printed = json.loads(ended.stdout)
    assert (printed["arrivals"], printed["seed"], printed["truth"]) == (60, 3, "simulated")
    optimal = printed["optimal"]
    assert optimal["proven"]
    assert optimal["nics"] == optimal["lower_bound"]
    assert [(row["strategy"], row["predictor"]) for row in printed["strategies"]] == [
        ("monopolization", None),
        ("greedy", None),
        ("contention-aware", "tomur"),
        ("contention-aware", "slomo"),
        ("optimal", None),
    ]
    for row in printed["strategies"]:
        assert row["wastage_pct"] == pytest.approx(100 * (row["nics"] / optimal["nics"] - 1), abs=1e-3)
        assert row["sla_violations_pct"] == pytest.approx(100 * row["violated"] / 60, abs=1e-3)
        assert row["rejected"] == 0
    assert printed["strategies"][0]["nics"] == 60
    assert printed["strategies"][0]["violated"] == printed["strategies"][-1]["violated"] == 0
    rows = list(csv.DictReader(plan.open(encoding="utf-8")))
    assert len(rows) == 5 * 60
    for row in printed["strategies"]:
        mine = [r for r in rows if (r["strategy"], r["predictor"]) == (row["strategy"], row["predictor"] or "")]
        assert len({r["nic"] for r in mine}) == row["nics"]
        assert sum(r["sla_met"] == "false" for r in mine) == row["violated"]


def test_the_same_seed_gives_the_same_bytes(placer: Placer, short: Path, tmp_path: Path) -> None:
    """Two runs write the same plan file to the byte."""
    plans = [tmp_path / "1.csv", tmp_path / "2.csv"]
    for plan in plans:
        assert placer("run", short, "--plan", plan).status == 0
    assert plans[0].read_bytes() == plans[1].read_bytes()


def test_options_narrow_the_run_and_choose_the_format(placer: Placer, trace: Path) -> None:
    """--strategy and --predictor narrow; CSV has a row per strategy; the table names the ground truth."""
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


def test_without_a_testbed_violations_are_unknown(placer: Placer, short: Path) -> None:
    """`--testbed none` makes the optimum a predicted one and violations null."""
    printed = json.loads(placer("run", short, "--testbed", "none", "--format", "json").stdout)
    assert printed["truth"] == "predicted"
    assert {row["sla_violations_pct"] for row in printed["strategies"]} == {None}
    tomur = next(row for row in printed["strategies"] if row["predictor"] == "tomur")
    assert tomur["nics"] >= printed["optimal"]["nics"]


def test_a_bad_trace_places_nothing(placer: Placer, trace: Path, tmp_path: Path) -> None:
    """Every fault on stderr, nothing on stdout, exit 2, no plan file."""
    trace.write_text(trace.read_text() + "x,1e9,NTA,0.1\nnf-01,1e9,NAT,7\n", encoding="utf-8")
    ended = placer("run", trace, "--plan", tmp_path / "plan.csv")
    assert (ended.status, ended.stdout) == (2, "")
    lines = ended.stderr.splitlines()
    assert lines[0].startswith(f"{trace}:62: nf: 'NTA' is not profiled (did you mean NAT?)")
    assert lines[1] == f"{trace}:63: id: 'nf-01' is already on line 2"
    assert lines[2] == f"{trace}:63: sla_drop: 7 is not in [0, 1)"
    assert lines[3:] == ["hint: ids must be unique", "hint: 0.1 allows a drop of 10 %"]
    assert not (tmp_path / "plan.csv").exists()


@pytest.mark.parametrize(
    ("arguments", "printed"),
    [
        (["--strategy", "luck"], "--strategy: 'luck' is not a strategy"),
        (["--strategy", "optmal"], "did you mean optimal?"),
        (["--predictor", "oracle"], "--predictor: not in the models: oracle"),
        (["--format", "xml"], "--format: 'xml' is not understood"),
        (["--models", "nowhere"], "nowhere: is not a models directory"),
        (["--testbed", "dice"], "--testbed: 'dice' is not a testbed"),
        (["--fleet", "nowhere.toml"], "nowhere.toml: No such file"),
    ],
)
def test_bad_options_are_refused_with_a_hint(placer: Placer, trace: Path, arguments: list[str], printed: str) -> None:
    """The bad value is named, nothing is printed to stdout, exit 2."""
    ended = placer("run", trace, *arguments)
    assert (ended.status, ended.stdout) == (2, "")
    assert printed in ended.stderr


def test_a_limited_fleet_rejects_arrivals(placer: Placer, trace: Path, tmp_path: Path) -> None:
    """With five NICs, every strategy uses at most five and rejects other arrivals."""
    fleet = tmp_path / "fleet.toml"
    fleet.write_text('[[nic]]\nmodel = "bluefield-2"\ncount = 5\n', encoding="utf-8")
    printed = json.loads(placer("run", trace, "--fleet", fleet, "--format", "json").stdout)
    assert all(row["nics"] <= 5 for row in printed["strategies"])
    assert printed["strategies"][0]["rejected"] == 55
    assert all(
        row["rejected"] >= printed["optimal"]["rejected"] > 0 for row in printed["strategies"] if row["violated"] == 0
    )


def test_a_testbed_of_another_card_is_refused(placer: Placer, trace: Path, tmp_path: Path) -> None:
    """A testbed of another NIC model than the models were trained on is refused."""
    foreign = REPO / "tests" / "data" / "foreign_testbed.py"
    ended = placer("run", trace, "--testbed", f"exec:{sys.executable} {foreign}")
    assert ended.status == 2
    assert "the models were trained on a bluefield-2" in ended.stderr


def test_less_risk_violates_fewer_slas_on_more_nics(placer: Placer, trace: Path) -> None:
    """A risk of 1 % violates no more SLAs than one of 30 %, and is not cheaper.

    By one NIC it may be: placing one by one, fewer choices can happen to be better ones.
    """
    higher, lower = (
        json.loads(placer("run", trace, "--risk", risk, "--predictor", "tomur", "--format", "json").stdout)[
            "strategies"
        ][2]
        for risk in (0.3, 0.01)
    )
    assert lower["nics"] >= higher["nics"] - 1
    assert lower["violated"] <= higher["violated"]


def test_a_plan_is_made_for_the_budget(placer: Placer, short: Path) -> None:
    """Every strategy has the budget, what is expected and whether it was kept; only plans for it have a risk."""
    ended = placer("run", short, "--budget", 5, "--format", "json")
    assert ended.status == 0
    rows = json.loads(ended.stdout)["strategies"]
    for row in rows:
        assert row["budget_pct"] == 5
        assert row["keeps_budget"] is (row["sla_violations_pct"] <= 5)
        assert (row["expected_violations_pct"] is None) is (row["predictor"] == "slomo")
        assert (row["risk"] is not None) is (row["predictor"] == "tomur")


def test_a_risk_replaces_the_budget(placer: Placer, short: Path) -> None:
    """The budget is null, and so is whether it was kept; the default is 2."""
    only = ("--strategy", "contention-aware", "--predictor", "tomur", "--format", "json")
    (row,) = json.loads(placer("run", short, "--risk", 0.3, *only).stdout)["strategies"]
    assert (row["budget_pct"], row["keeps_budget"], row["risk"]) == (None, None, 0.3)
    (row,) = json.loads(placer("run", short, "--testbed", "none", *only).stdout)["strategies"]
    assert (row["budget_pct"], row["keeps_budget"]) == (2, None)


def test_csv_and_table_have_the_expected_violations(placer: Placer, short: Path) -> None:
    only = ("run", short, "--strategy", "greedy", "--budget", "3")
    (row,) = csv.DictReader(io.StringIO(placer(*only, "--format", "csv").stdout))
    assert row["budget_pct"] == "3.0" and float(row["expected_violations_pct"]) >= 0
    heading, _, *others = placer(*only).stdout.splitlines()
    assert "SLA violations  expected  rejected" in heading and len(heading) <= 100
    assert others[1].startswith("Recommended: greedy, ")


@pytest.mark.parametrize(
    ("arguments", "printed"),
    [
        (["--budget", "0"], "--budget: 0 is not above 0 and at most 100\nhint: "),
        (["--budget", "101"], "--budget: 101 is not above 0 and at most 100\nhint: "),
        (["--budget", "nan"], "--budget: nan is not above 0 and at most 100\nhint: "),
        (["--budget", "2", "--risk", "0.1"], "--budget: is given together with --risk\nhint: "),
    ],
)
@pytest.mark.parametrize("command", ["run", "explain"])
def test_a_bad_budget_is_refused(placer: Placer, short: Path, command: str, arguments: list[str], printed: str) -> None:
    ended = placer(command, short, *arguments)
    assert (ended.status, ended.stdout) == (2, "")
    assert printed in ended.stderr


def test_the_installed_command_pipes(trace: Path) -> None:
    """As a process of its own: arrivals on stdin, JSON on stdout; a reader that closes early is no failure."""
    done = subprocess.run(
        [sys.executable, "-m", "placer", "run", "-", "--strategy", "monopolization", "--format", "json"],
        input=trace.read_bytes(), capture_output=True, check=True, cwd=REPO,
    )  # fmt: skip
    assert json.loads(done.stdout)["strategies"][0]["nics"] == 60


def test_the_table_names_predictors_on_which_a_risk_has_no_effect(placer: Placer, short: Path) -> None:
    """Only where --risk is given and such a predictor is used."""
    arguments = ("run", short, "--strategy", "contention-aware", "--quiet")
    last = placer(*arguments, "--risk", "0.05").stdout.splitlines()[-1]
    assert last.startswith("slomo does not model its prediction error")
    assert "slomo does" not in placer(*arguments, "--risk", "0.05", "--predictor", "tomur").stdout
    assert "slomo does" not in placer(*arguments).stdout


def test_a_risk_below_the_measured_errors_is_placed_with_a_warning(placer: Placer, trace: Path) -> None:
    """NFs still share NICs, and stderr says that errors were extrapolated."""
    arguments = ("run", trace, "--predictor", "tomur", "--strategy", "contention-aware", "--format", "json")
    ended = placer(*arguments, "--risk", "0.001")
    assert json.loads(ended.stdout)["strategies"][0]["nics"] < 60
    assert "tomur: risk 0.001 is below" in ended.stderr
    assert "below" not in placer(*arguments, "--risk", "0.05").stderr


@pytest.mark.parametrize("option", ["--plan", "--certificate", "--report"])
def test_no_output_may_replace_the_trace(placer: Placer, trace: Path, option: str) -> None:
    before = trace.read_bytes()
    ended = placer("run", trace, option, trace)
    assert (ended.status, ended.stdout) == (2, "")
    assert f"{option}: {trace} is the file of ARRIVALS, too" in ended.stderr
    assert trace.read_bytes() == before


def test_two_outputs_may_not_be_one_file(placer: Placer, trace: Path, tmp_path: Path) -> None:
    ended = placer("run", trace, "--plan", tmp_path / "a", "--report", tmp_path / "a")
    assert ended.status == 2
    assert "--report: " in ended.stderr and "is the file of --plan, too" in ended.stderr


def test_if_one_output_cannot_be_written_none_is(placer: Placer, trace: Path, tmp_path: Path) -> None:
    """Neither certificate nor plan stays where charts were to go into a folder that is a file."""
    certificate, plan, plots = tmp_path / "c.json", tmp_path / "plan.csv", tmp_path / "plots"
    plots.write_text("a file")
    outputs = ("--certificate", certificate, "--plan", plan, "--plots", plots)
    ended = placer("run", trace, "--strategy", "optimal", *outputs)
    assert (ended.status, ended.stdout) == (2, "")
    assert ended.stderr == f"--plots: {plots} is a file\nhint: name a folder; it is created when it does not exist\n"
    assert not certificate.exists()
    assert not plan.exists()

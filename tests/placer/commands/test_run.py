"""`placer run`: exit status, stdout and stderr."""

import csv
import io
import json
from pathlib import Path

import pytest

from tests.placer.commands.conftest import Placer, refuse
from traces.arrivals import Recipe, generate

REPO = Path(__file__).parents[3]


@pytest.fixture
def short(tmp_path: Path) -> Path:
    """Twelve arrivals."""
    path = tmp_path / "short.csv"
    path.write_text("".join(generate(Recipe(count=12, seed=5))), encoding="utf-8")
    return path


def test_run_compares_all_strategies(placer: Placer, trace: Path, tmp_path: Path) -> None:
    """JSON has the fixed keys, a proven optimum, every strategy, and figures that agree with one another."""
    plan = tmp_path / "plans" / "plan.csv"
    ended = placer("run", trace, "--format", "json", "--plan", plan, "--seed", 3)
    assert ended.status == 0
    printed = json.loads(ended.stdout)
    assert (printed["arrivals"], printed["seed"], printed["truth"]) == (30, 3, "simulated")
    optimal = printed["optimal"]
    assert optimal["proven"] and optimal["nics"] == optimal["lower_bound"]
    assert [(row["strategy"], row["predictor"]) for row in printed["strategies"]] == [
        ("monopolization", None), ("greedy", None), ("contention-aware", "tomur"), ("contention-aware", "slomo"),
        ("planned", "tomur"), ("optimal", None),
    ]  # fmt: skip
    for row in printed["strategies"]:
        assert row["wastage_pct"] == pytest.approx(100 * (row["nics"] / optimal["nics"] - 1), abs=1e-3)
        assert row["sla_violations_pct"] == pytest.approx(100 * row["violated"] / 30, abs=1e-3)
        assert row["rejected"] == 0
    assert printed["strategies"][0]["nics"] == 30
    assert printed["strategies"][0]["violated"] == printed["strategies"][-1]["violated"] == 0
    rows = list(csv.DictReader(plan.open(encoding="utf-8")))
    assert len(rows) == 6 * 30
    for row in printed["strategies"]:
        mine = [r for r in rows if (r["strategy"], r["predictor"]) == (row["strategy"], row["predictor"] or "")]
        assert len({r["nic"] for r in mine}) == row["nics"]
        assert sum(r["sla_met"] == "false" for r in mine) == row["violated"]


def test_named_and_owned_nics(placer: Placer, short: Path, tmp_path: Path) -> None:
    """Plans use the names first, and what is not owned is to be bought; cells of CSV hold no such table."""
    fleet, plan = tmp_path / "fleet.toml", tmp_path / "plan.csv"
    fleet.write_text('[[nic]]\nmodel = "bluefield-2"\nnames = ["east", "west"]\nowned = 4\n', encoding="utf-8")
    given = ("run", short, "--fleet", fleet, "--strategy", "greedy", "--strategy", "optimal")
    for row in json.loads(placer(*given, "--format", "json", "--plan", plan).stdout)["strategies"]:
        assert row["to_buy"] == {"bluefield-2": max(row["nics"] - 4, 0)}
        used = {one["nic"] for one in csv.DictReader(plan.open(encoding="utf-8")) if one["strategy"] == row["strategy"]}
        assert used == {"east", "west", *(f"nic-{number}" for number in range(3, row["nics"] + 1))}
    assert "to_buy" not in placer(*given, "--format", "csv").stdout


@pytest.mark.long
def test_spare_nics_are_in_the_cost_and_in_the_plan_file(placer: Placer, short: Path, tmp_path: Path) -> None:
    """Not in the wastage; and a plan without NICs for a failure comes last."""
    fleet, plan = tmp_path / "fleet.toml", tmp_path / "plan.csv"
    fleet.write_text('[[nic]]\nmodel = "bluefield-2"\ncost = 2\nowned = 2\n', encoding="utf-8")
    given = ("run", short, "--fleet", fleet, "--range", 0)
    before = json.loads(placer(*given, "--format", "json").stdout)
    after = json.loads(placer(*given, "--format", "json", "--spare", 1, "--plan", plan).stdout)
    assert all("spare_nics" not in row for row in before["strategies"])
    rows = [row for row in csv.DictReader(plan.open(encoding="utf-8")) if not row["id"]]
    for old, new in zip(before["strategies"], after["strategies"], strict=True):
        spare = new["spare_nics"]
        assert spare in (0, 1) and new["spare_by_model"] == ({"bluefield-2": 1} if spare else {})
        assert (new["nics"], new["wastage_pct"]) == (old["nics"], old["wastage_pct"])
        assert (new["cost"], new["cost_wastage_pct"]) == (old["cost"] + 2 * spare, old["cost_wastage_pct"])
        assert new["to_buy"]["bluefield-2"] == old["to_buy"]["bluefield-2"] + spare
        mine = [
            row for row in rows if (row["strategy"], row["predictor"] or None) == (new["strategy"], new["predictor"])
        ]
        assert [(row["nic"], row["reason"]) for row in mine] == [(f"nic-{new['nics'] + 1}", "spare")] * spare
    needed = {row["strategy"]: row["nics"] for row in before["strategies"]}
    fleet.write_text(f'[[nic]]\nmodel = "bluefield-2"\ncount = {needed["greedy"]}\n', encoding="utf-8")
    table = placer(*given, "--spare", 1, "--strategy", "greedy").stdout
    assert "none left" in table
    assert (
        "The fleet lacks the spare NICs with which any NIC may fail: no place was found for the instances of" in table
    )
    assert f"--spare: {needed['greedy']} fail, and the fleet has {needed['greedy']} NICs" in refuse(
        *given, "--spare", needed["greedy"]
    )
    assert "--measure: plans that are made by measuring have no spare NICs" in refuse(
        *given, "--spare", 1, "--measure", 9
    )


@pytest.mark.long
def test_what_already_runs_stays_in_every_plan(placer: Placer, short: Path, tmp_path: Path) -> None:
    """The rows of the first four name their NICs; every strategy keeps them there, and a certificate is refused."""
    lines = short.read_text(encoding="utf-8").splitlines()
    homes = dict(zip((line.split(",")[0] for line in lines[1:5]), ("nic-7", "nic-7", "b", "c"), strict=True))
    rows = [f"{lines[0]},nic", *(f"{line},{homes.get(line.split(',')[0], '')}" for line in lines[1:])]
    running, plan = tmp_path / "running.csv", tmp_path / "plan.csv"
    running.write_text("\n".join(rows) + "\n", encoding="utf-8")
    ended = placer("run", running, "--format", "json", "--plan", plan)
    assert ended.status == 0 and json.loads(ended.stdout)["optimal"]["proven"]
    placed = [row for row in csv.DictReader(plan.open(encoding="utf-8")) if row["id"] in homes]
    assert len(placed) == 4 * len(json.loads(ended.stdout)["strategies"])
    assert all(row["nic"] == homes[row["id"]] for row in placed)
    refused = placer("run", running, "--certificate", tmp_path / "c.json")
    assert (refused.status, "--certificate: instances of the trace already run" in refused.stderr) == (2, True)


@pytest.mark.long
def test_the_same_seed_gives_the_same_bytes(placer: Placer, short: Path, tmp_path: Path) -> None:
    """Two runs write the same plan file to the byte."""
    plans = [tmp_path / "1.csv", tmp_path / "2.csv"]
    for plan in plans:
        assert placer("run", short, "--plan", plan).status == 0
    assert plans[0].read_bytes() == plans[1].read_bytes()


@pytest.mark.long
def test_options_narrow_the_run_and_choose_the_format(placer: Placer, trace: Path) -> None:
    """--strategy and --predictor narrow; CSV has a row per strategy; the table names the ground truth."""
    ended = placer(
        "run", trace, "--strategy", "greedy", "--strategy", "contention-aware", "--predictor", "tomur",
        "--format", "csv",
    )  # fmt: skip
    rows = list(csv.DictReader(io.StringIO(ended.stdout)))
    assert [(row["strategy"], row["predictor"]) for row in rows] == [("greedy", ""), ("contention-aware", "tomur")]
    assert all(row["optimal_proven"] == "True" for row in rows)
    table = placer("run", trace, "--strategy", "monopolization")
    assert "monopolization" in table.stdout and "simulated card, not on hardware" in table.stdout


@pytest.mark.long
def test_without_a_testbed_violations_are_unknown(placer: Placer, short: Path) -> None:
    """`--testbed none` makes the optimum a predicted one and violations null."""
    printed = json.loads(placer("run", short, "--testbed", "none", "--format", "json").stdout)
    assert printed["truth"] == "predicted"
    assert {row["sla_violations_pct"] for row in printed["strategies"]} == {None}
    tomur = next(row for row in printed["strategies"] if row["predictor"] == "tomur")
    assert tomur["nics"] >= printed["optimal"]["nics"]


def test_a_bad_trace_places_nothing(trace: Path, tmp_path: Path) -> None:
    """Every fault on stderr, nothing on stdout, exit 2, no plan file."""
    trace.write_text(trace.read_text() + "x,1e9,NTA,0.1\nnf-01,1e9,NAT,7\n", encoding="utf-8")
    lines = refuse("run", trace, "--plan", tmp_path / "plan.csv").splitlines()
    assert lines[0].startswith(f"{trace}:32: nf: 'NTA' is not profiled (did you mean NAT?)")
    assert lines[1] == f"{trace}:33: id: 'nf-01' is already on line 2"
    assert lines[2] == f"{trace}:33: sla_drop: 7 is not in [0, 1)"
    assert lines[3:] == ["hint: ids must be unique", "hint: 0.1 allows a drop of 10 %"]
    assert not (tmp_path / "plan.csv").exists()


@pytest.mark.long
def test_a_limited_fleet_rejects_arrivals(placer: Placer, trace: Path, tmp_path: Path) -> None:
    """With five NICs, every strategy uses at most five; the one within the budget that rejects least is recommended."""
    fleet = tmp_path / "fleet.toml"
    fleet.write_text('[[nic]]\nmodel = "bluefield-2"\ncount = 5\n', encoding="utf-8")
    printed = json.loads(placer("run", trace, "--fleet", fleet, "--format", "json", "--range", "0").stdout)
    kept = [row for row in printed["strategies"] if row["keeps_budget"] and row["strategy"] != "optimal"]
    least = min((row["rejected"], row["cost"]) for row in kept)
    assert (printed["recommended"]["rejected"], printed["recommended"]["cost"]) == least
    assert printed["recommended"]["keeps_budget"] and len(printed["recommended"]["left_out"]) == least[0]
    assert all(row["nics"] <= 5 for row in printed["strategies"]) and printed["strategies"][0]["rejected"] == 25
    assert all(
        row["rejected"] >= printed["optimal"]["rejected"] > 0 for row in printed["strategies"] if row["violated"] == 0
    )


@pytest.mark.long
def test_less_risk_violates_fewer_slas_on_more_nics(placer: Placer, trace: Path) -> None:
    """A risk of 1 % violates no more SLAs than one of 30 %, and is not cheaper. By one NIC it may be: placing one by
    one, fewer choices can happen to be better ones."""
    higher, lower = (
        json.loads(placer("run", trace, "--risk", risk, "--predictor", "tomur", "--format", "json").stdout)[
            "strategies"
        ][2]
        for risk in (0.3, 0.01)
    )
    assert lower["nics"] >= higher["nics"] - 1 and lower["violated"] <= higher["violated"]


@pytest.mark.long
def test_a_plan_is_made_for_the_budget(placer: Placer, short: Path) -> None:
    """Every strategy has the budget, what is expected and whether it was kept; only plans for it have a risk."""
    ended = placer("run", short, "--budget", 5, "--format", "json")
    assert ended.status == 0
    rows = json.loads(ended.stdout)["strategies"]
    for row in rows:
        assert row["budget_pct"] == 5 and row["keeps_budget"] is (row["sla_violations_pct"] <= 5)
        assert (row["expected_violations_pct"] is None) is (row["predictor"] == "slomo")
        assert (row["risk"] is not None) is ((row["strategy"], row["predictor"]) == ("contention-aware", "tomur"))
        if row["strategy"] == "planned":
            assert row["expected_violations_pct"] + row["reserve_pct"] <= 5
            assert row["bound_nics"] <= row["nics"] and row["lower_bound"] <= row["cost"]


@pytest.mark.long
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
    assert others[1].startswith("greedy (no other strategy was compared): ")


@pytest.mark.long
def test_a_range_is_given_by_default_and_switched_off(placer: Placer, short: Path) -> None:
    """Three traces, or none, or as many as asked for, of 20 instances each; the same seed gives the same range."""
    only = ("run", short, "--strategy", "contention-aware", "--predictor", "tomur")
    ranges = [
        json.loads(placer(*only, *options, "--format", "json").stdout)["recommended"]["range"]
        for options in ((), ("--seed", "0"), ("--range", "1"), ("--range", "0"))
    ]
    assert ranges[0] == ranges[1] and ranges[0]["draws"] == 3
    assert ranges[0]["nics"][0] <= ranges[2]["nics"][0] == ranges[2]["nics"][1] <= ranges[0]["nics"][1]
    assert all(violations % 5 == 0 for violations in ranges[0]["sla_violations_pct"])
    assert (ranges[2]["draws"], ranges[3]) == (1, None)
    low, high = ranges[0]["nics"]
    nics = f"{low} to {high} NICs" if low < high else f"{low} NICs"
    assert f"On 3 other traces drawn from its arrivals: {nics}, " in placer(*only).stdout
    assert "other traces" not in placer(*only, "--range", "0").stdout


@pytest.mark.long
def test_what_fits_best_on_a_fixed_number_of_nics(placer: Placer, trace: Path, tmp_path: Path) -> None:
    """How many fit, what is left out, what places all; JSON agrees."""
    fleet = tmp_path / "fleet.toml"
    fleet.write_text('[[nic]]\nmodel = "bluefield-2"\ncount = 6\n', encoding="utf-8")
    asked = ("run", trace, "--fleet", fleet, "--strategy", "greedy", "--strategy", "contention-aware", "--range", "0")
    recommended = json.loads(placer(*asked, "--format", "json").stdout)["recommended"]
    lines = placer(*asked).stdout.splitlines()
    sentence = next(line for line in lines if line.startswith("Recommended: "))
    placed = 30 - recommended["rejected"]
    assert 0 < placed < 30 and recommended["strategy"] == "contention-aware"
    assert sentence.endswith(f"It places {placed} of 30 arrivals on 6 NICs, the most of all plans within the budget.")
    left_out = ", ".join(recommended["left_out"])
    assert any(line.endswith(f": {left_out}.") and line.startswith("It rejects ") for line in lines)
    more = recommended["nics_to_add"]["bluefield-2"]
    assert more > 0 and f"With {more} more bluefield-2, the same strategy places all arrivals." in lines
    rest = trace.read_text(encoding="utf-8").splitlines()
    assert set(recommended["left_out"]) < {line.partition(",")[0] for line in rest[1:]}


def test_the_departures_of_a_trace_leave_the_optimum_unproven(placer: Placer, tmp_path: Path) -> None:
    """Its row has a mark of its own where it is above its bound."""
    trace = tmp_path / "departures.csv"
    trace.write_text("".join(generate(Recipe(count=100, mean_stay_s=300, seed=3))), encoding="utf-8")
    ended = placer("run", trace, "--strategy", "optimal", "--strategy", "greedy", "--time-limit", "1", "--range", "0")
    best = next(line for line in ended.stdout.splitlines() if line.startswith("optimal "))
    assert (" ** " in best) is ("not proven optimal" in ended.stdout) is ("(lower bound)" in ended.stdout)


def test_arrivals_are_read_from_standard_input(placer: Placer, trace: Path) -> None:
    """And JSON is written to standard output."""
    ended = placer("run", "-", "--strategy", "monopolization", "--format", "json", stdin=trace.read_text("utf-8"))
    assert json.loads(ended.stdout)["strategies"][0]["nics"] == 30


@pytest.mark.long
def test_the_table_names_predictors_on_which_a_risk_has_no_effect(placer: Placer, short: Path) -> None:
    """Only where --risk is given and such a predictor is used."""
    arguments = ("run", short, "--strategy", "contention-aware", "--quiet")
    last = placer(*arguments, "--risk", "0.05").stdout.splitlines()[-1]
    assert last.startswith("slomo does not model its prediction error")
    assert "slomo does" not in placer(*arguments, "--risk", "0.05", "--predictor", "tomur").stdout
    assert "slomo does" not in placer(*arguments).stdout


@pytest.mark.long
def test_a_risk_below_the_measured_errors_is_placed_with_a_warning(placer: Placer, trace: Path) -> None:
    """NFs still share NICs, and stderr says that errors were extrapolated."""
    arguments = ("run", trace, "--predictor", "tomur", "--strategy", "contention-aware", "--format", "json")
    ended = placer(*arguments, "--risk", "0.001")
    assert json.loads(ended.stdout)["strategies"][0]["nics"] < 30 and "tomur: risk 0.001 is below" in ended.stderr
    assert "below" not in placer(*arguments, "--risk", "0.05").stderr


TRACE, FLEET = REPO / "examples" / "mixed.csv", REPO / "examples" / "mixed-fleet.toml"
DEVICE = REPO / "examples" / "gpu.json"


def fleet_of(folder: Path, *lines: str) -> Path:
    """A fleet of one kind, whose table has these lines."""
    path = folder / "fleet.toml"
    path.write_text("\n".join(["[[nic]]", 'model = "titan-xp"', *lines]) + "\n", encoding="utf-8")
    return path


def trace_of(folder: Path, *rows: str) -> Path:
    path = folder / "trace.csv"
    path.write_text("id,time,nf,sla_drop,rate_kpps,sla_latency_us\n" + "\n".join(rows) + "\n", encoding="utf-8")
    return path


@pytest.mark.long
def test_every_strategy_and_the_optimum_place_a_mixed_fleet(placer: Placer, tmp_path: Path) -> None:
    """What is promised a latency is on GPUs and keeps it as predicted, the rest is on SmartNICs; costs count."""
    plan = tmp_path / "plan.csv"
    ended = placer("run", TRACE, "--fleet", FLEET, "--format", "json", "--plan", plan)
    assert ended.status == 0
    found = json.loads(ended.stdout)
    assert found["truth"] == "predicted" and found["optimal"]["proven"]
    assert (found["optimal"]["cost"], found["optimal"]["rejected"]) == (2.6, 0)
    rows = {(one["strategy"], one["predictor"]): one for one in found["strategies"]}
    # slomo knows no offered rates
    assert len(rows) == 5 and "slomo is left out" in ended.stderr
    assert rows["planned", "tomur"]["rejected"] == 0
    assert {one["sla_violations_pct"] for one in rows.values()} == {None}
    assert rows["contention-aware", "tomur"]["cost"] >= 2.6
    assert rows["monopolization", None]["rejected"] == 3 and rows["greedy", None]["rejected"] == 0
    promised = {row["id"]: row["sla_latency_us"] for row in csv.DictReader(TRACE.open(encoding="utf-8"))}
    for row in csv.DictReader(plan.open(encoding="utf-8")):
        if row["nic"]:
            assert row["nic_model"] == ("titan-xp" if promised[row["id"]] else "bluefield-2")
        if row["predicted_latency_us"]:
            assert float(row["predicted_latency_us"]) <= float(promised[row["id"]])


def test_a_fleet_of_gpus_needs_no_models(placer: Placer, tmp_path: Path) -> None:
    """Its admission test is the predictor; what keeps no promise even alone is rejected."""
    fleet = fleet_of(tmp_path, f'device = "{DEVICE}"')
    trace = trace_of(tmp_path, "a,0,ACL,,600,400", "b,1,ACL,,600,400", "c,2,IPSec,,250,20")
    found = json.loads(placer("run", trace, "--fleet", fleet, "--format", "json").stdout)
    assert [(one["strategy"], one["predictor"]) for one in found["strategies"]] == [
        ("monopolization", None),
        ("greedy", None),
        ("contention-aware", "admission"),
        ("planned", "admission"),
        ("optimal", None),
    ]
    assert {(one["nics"], one["rejected"]) for one in found["strategies"]} == {(2, 1), (1, 1)}
    assert found["optimal"]["shortfall"]["hopeless"] == ["c"]

"""Sizing: the options, recommendations checked by hand, and the command. Growth of a trace: drawn from itself, inside
the profiled range."""

import io
import json
import random
import re
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from placer.inputs.arrivals import TraceOptions, read_arrivals
from placer.model.arrival import Arrival
from placer.model.nic_kind import NicKind
from placer.model.sla import Sla
from placer.report.text.sizing import as_table, curves_of, further_lines, recommendation_line
from placer.studies import sizing as sizing_study
from placer.studies.growth import Growth, arrivals_csv, grow, loads_by_name
from profiles import InputError, TrafficProfile, Workload
from tests.placer.commands.conftest import refuse, run_placer
from tests.placer.commands.test_compare import placer
from traces.arrivals import Recipe, generate

SIZING = sizing_study.Sizing("now.csv", next_year=2.0, growth=(1.0, 2.0), draws=2, budget_pct=2.0)


def results(*options: tuple[str, int, tuple[int, int], float, int]) -> pd.DataFrame:
    """Rows of a sizing: per strategy NICs today, NICs in two draws of next year, SLA violations (%), and rejected."""
    rows = []
    for strategy, today, nics, violations, rejected in options:
        fixed = {"fleet": "unlimited", "strategy": strategy, "predictor": None, "risk": None, "wastage_pct": 0.0,
                "violations_pct": violations, "rejected": rejected, "truth": "simulated"}  # fmt: skip
        rows.append({**fixed, "axis": "today", "factor": 1.0, "draw": 0, "nics": today, "cost": float(today)})
        rows += [
            {**fixed, "axis": "arrivals", "factor": 2.0, "draw": draw, "nics": count, "cost": float(count)}
            for draw, count in enumerate(nics)
        ]
    return pd.DataFrame(rows)


def at_budget(rows: pd.DataFrame, budget: float | None) -> pd.DataFrame:
    """The same rows for tomur, asked to keep that budget; None: by the median prediction."""
    return rows.assign(predictor="tomur", budget_pct=budget, risk=0.1 if budget else 0.5)


def test_the_cheapest_within_the_budget_is_bought() -> None:
    """Ten NICs violate too many SLAs, twelve reject an arrival, so it is 20: the most that a draw needs."""
    recommendation = sizing_study.recommendation_of(
        results(("rash", 5, (10, 10), 3.0, 0), ("small", 5, (12, 12), 0.0, 1), ("safe", 9, (18, 20), 1.0, 0)), SIZING
    )
    assert (recommendation.option["strategy"], recommendation.today, recommendation.nics, recommendation.more) == (
        "safe",
        9,
        20,
        11,
    )
    assert recommendation_line(recommendation, SIZING) == (
        "Buy 11 more NICs for 2 times the arrivals: 20 instead of 9 (18 to 20 in 2 draws), placed by safe; "
        "1.0 % SLA violations, budget 2 %."
    )


def test_what_is_owned_is_not_bought() -> None:
    """Up to 20 NICs are used, 4 of them and 9 of the other model to be bought in the draws that need most."""
    rows = results(("safe", 9, (18, 20), 1.0, 0), ("other", 9, (30, 30), 1.0, 0))
    rows = rows.assign(**{"to_buy x": [0, 4, 3, 50, 50, 50], "to_buy y": [0, 8, 9, 50, 50, 50]})
    recommendation = sizing_study.recommendation_of(rows, SIZING)
    assert (recommendation.to_buy, recommendation.more) == ({"x": 4, "y": 9}, 13)
    assert recommendation_line(recommendation, SIZING).startswith(
        "Buy 13 more NICs for 2 times the arrivals: 20 are used at most, 9 today (18 to 20 in 2 draws), placed by safe;"
    )


def test_an_option_without_spare_nics_is_none() -> None:
    """The dearer one is bought, which has them in every draw; without such a one, the line says so."""
    rows = results(("lacks", 5, (10, 10), 1.0, 0), ("has", 9, (18, 20), 1.0, 0))
    rows = rows.assign(spare_nics=[1.0, 1.0, None, 1.0, 1.0, 2.0])
    sizing = replace(SIZING, spare=2)
    found = sizing_study.recommendation_of(rows, sizing)
    assert (found.option["strategy"], found.spare, found.within_budget) == ("has", 2, True)
    assert "Of these, at most 2 are spare: any 2 NICs may fail." in list(further_lines(found, sizing))
    found = sizing_study.recommendation_of(rows[rows["strategy"] == "lacks"], sizing)
    assert (found.spare, found.within_budget) == (None, False)
    line = recommendation_line(found, sizing)
    assert line.startswith(
        "No option has the spare NICs with which any 2 NICs may fail; the closest one: Buy 5 more NICs"
    )


@pytest.mark.long
def test_spare_nics_are_among_the_nics_to_buy(tmp_path: Path, trace: Path) -> None:
    """Monopolization needs one more of equal NICs, today and next year."""
    given = ["size", str(trace), "--strategy", "monopolization", "--draws", "1", "--growth", "1", "--format", "json"]
    answers = [
        json.loads(run_placer(*given, "--out", tmp_path / f"out{spare}", "--spare", spare).stdout)["answer"]
        for spare in "01"
    ]
    before, after = answers
    assert (after["today_nics"], after["nics"]) == (before["today_nics"] + 1, before["nics"] + 1)
    assert after["spare_nics"] == 1 and "spare_nics" not in before and after["more_nics"] == before["more_nics"]


@pytest.mark.long
def test_a_fleet_that_is_large_enough_needs_no_more(tmp_path: Path, trace: Path) -> None:
    """Of 56 owned NICs sixty arrivals need fewer, today and next year: nothing is bought."""
    fleet = tmp_path / "fleet.toml"
    fleet.write_text('[[nic]]\nmodel = "bluefield-2"\nowned = 56\n', encoding="utf-8")
    given = ["size", trace, "--fleet", fleet, "--strategy", "greedy", "--draws", 1, "--growth", 1]
    answer = json.loads(placer(*given, "--out", tmp_path / "out", "--format", "json"))["answer"]
    assert (answer["more_nics"], answer["to_buy"]) == (0, {"bluefield-2": 0})
    assert answer["nics_high"] > answer["today_nics"]


@pytest.mark.parametrize(
    ("options", "strategy", "begins", "ends"),
    [
        ([("rash", 5, (10, 10), 9.0, 0), ("bold", 6, (12, 12), 3.0, 0)], "bold",
            "No option keeps the budget; the closest one: Buy 6 more NICs", ""),
        ([("small", 5, (5, 5), 0.0, 7)], "small",
            "No option places every arrival within the budget; the one that rejects fewest: Buy no NICs",
            "0.0 % SLA violations, budget 2 %; 7 arrivals rejected."),
        (  # the budget comes before rejections
            [("rash", 5, (5, 5), 9.0, 0), ("small", 5, (5, 5), 0.0, 7), ("safe", 5, (6, 6), 1.0, 1)],
            "safe", "", "budget 2 %; 1 arrival rejected.",
        ),
        (  # without a ground truth
            [("one", 5, (4, 5), float("nan"), 0), ("two", 6, (12, 12), float("nan"), 0)],
            "one", "No option is known to keep the budget: Buy no NICs for 2 times the arrivals: 5 instead of 5",
            "SLA violations unknown.",
        ),
    ],
)  # fmt: skip
def test_without_an_option_within_the_budget_the_line_says_what_the_closest_one_breaks(
    options: list[tuple[str, int, tuple[int, int], float, int]], strategy: str, begins: str, ends: str
) -> None:
    recommendation = sizing_study.recommendation_of(results(*options), SIZING)
    line = recommendation_line(recommendation, SIZING)
    assert (recommendation.option["strategy"], line.startswith(begins), line.endswith(ends)) == (strategy, True, True)


def test_the_number_of_the_sentence_stands_in_the_table() -> None:
    """20 are enough for both draws, 18 are the smaller; too many violations and the missing margin are explained."""
    aware = [
        at_budget(results(("aware", 9, (18, 20), 1.0, 0)), 2.0),
        at_budget(results(("aware", 5, (17, 17), 2.2, 0)), None),
    ]
    lines = as_table(pd.concat(aware), SIZING).splitlines()
    assert lines[0].startswith("Buy 11 more NICs for 2 times the arrivals: 20 instead of 9 (18 to 20 in 2 draws)")
    assert re.split(r" {2,}", lines[4])[3:5] == ["NICs needed", "median"]
    assert [re.split(r" {2,}", line)[2:] for line in lines[5:7]] == [
        ["aware, tomur at budget 2 %", "20", "20", "18 to 20", "1.0", "0"],
        ["aware, tomur without a safety margin", "17", "17", "17 to 17", "2.2 *", "0"],
    ]
    assert lines[7:] == [
        "",
        "* more than the budget of 2 %.",
        "without a safety margin: by the median prediction; it shows what the budget costs, and is no option.",
        "Throughput is measured on the simulated card, not on hardware.",
    ]


def test_next_year_is_a_point_of_the_curve() -> None:
    """For any factors; the other axes are at next year's arrivals."""
    points = sizing_study.points_of(replace(SIZING, next_year=1.3, sla=(0.5,)))
    assert [(axis, factor) for axis, factor, _ in points] == [
        ("arrivals", 1.0), ("arrivals", 1.3), ("arrivals", 2.0), ("sla", 0.5),
    ]  # fmt: skip
    assert (points[-1][2].arrivals, points[-1][2].sla) == (1.3, 0.5)


def test_curves_use_the_best_budget() -> None:
    """The curve of a strategy uses what keeps the budget; where nothing does, what has fewest violations."""
    rows = pd.concat(
        [
            at_budget(results(("one", 5, (10, 10), 3.0, 0), ("two", 5, (9, 9), 7.0, 0)), 2.0),
            at_budget(results(("one", 5, (12, 12), 1.0, 0), ("two", 5, (9, 9), 6.0, 0)), 1.0),
            at_budget(results(("one", 5, (14, 14), 0.0, 0), ("two", 5, (9, 9), 8.0, 0)), 0.5),
        ]
    )
    kept = sizing_study.best_budgets(sizing_study.options_of(rows, SIZING))
    assert kept[["strategy", "budget_pct"]].to_numpy().tolist() == [["one", 1.0], ["two", 1.0]]
    assert set(curves_of(rows, SIZING)["option"]) == {"one, tomur at budget 1 %", "two, tomur at budget 1 %"}


def test_a_smaller_budget_is_recommended_before_a_dearer_strategy() -> None:
    """Greedy keeps the budget with 30 NICs; asked to keep 1 %, the other strategy does with 13, without margin 10."""
    aware = [
        at_budget(results(("aware", 5, (11, 11), 4.0, 0)), 2.0),
        at_budget(results(("aware", 6, (13, 13), 1.5, 0)), 1.0),
        at_budget(results(("aware", 5, (10, 10), 1.0, 0)), None),
    ]
    rows = pd.concat([results(("greedy", 20, (30, 30), 0.0, 0)), *aware])
    assert sizing_study.misses_budget(sizing_study.options_of(rows, SIZING))
    recommendation = sizing_study.recommendation_of(rows, SIZING)
    assert (recommendation.option["budget_pct"], recommendation.high, recommendation.without_margin) == (1.0, 13, 10)
    assert "placed by aware, tomur at budget 1 %; 1.5 % SLA violations" in recommendation_line(recommendation, SIZING)
    assert list(further_lines(recommendation, SIZING)) == [
        "13 NICs are enough for all of 2 traces drawn from today's arrivals; 13 for half of them.",
        "Keeping violations below 2 % takes 3 extra NICs next year: 10 without a safety margin.",
    ]
    assert not sizing_study.misses_budget(sizing_study.options_of(pd.concat([rows[:3], *aware[1:]]), SIZING))


def test_only_what_misses_the_budget_is_asked_to_be_more_careful(trace: Path, tmp_path: Path) -> None:
    """First every option for the budget, and contention-aware without a margin; then the smaller budgets only."""
    sizing = replace(SIZING, arrivals=str(trace), draws=1)
    first, smaller = sizing_study.option_tasks(sizing, print), sizing_study.option_tasks(sizing, print, [1.0, 0.5])
    assert [(task.cards.budget_pct, task.cards.risk, task.strategies) for task in first[:2]] == [
        (2.0, None, ("greedy", "contention-aware")), (None, 0.5, ("contention-aware",)),
    ]  # fmt: skip
    assert [(task.cards.budget_pct, task.strategies) for task in smaller[:2]] == [
        (1.0, ("contention-aware",)), (0.5, ("contention-aware",)),
    ]  # fmt: skip


def test_fleets_of_the_same_name_are_refused() -> None:
    """Two files of the same name in two folders would be one option in the results."""
    sizing = replace(SIZING, arrivals="any.csv", fleets=(Path("a/few.toml"), Path("b/few.toml")))
    with pytest.raises(InputError, match="--fleet: two fleets are called few"):
        sizing_study.option_tasks(sizing, print)


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    path = tmp_path / "now.csv"
    path.write_text("".join(generate(Recipe(count=20, seed=3))), encoding="utf-8")
    return path


@pytest.mark.slow
def test_size_prints_the_recommendation_in_its_first_line(trace: Path, tmp_path: Path) -> None:
    """Line, JSON and page agree; NICs with fewer cores are no fewer."""
    small = tmp_path / "four-cores.toml"
    small.write_text('[[nic]]\nmodel = "bluefield-2"\ncores = 4\n', encoding="utf-8")
    common = ["size", trace, "--growth", "1", "--draws", "2", "--budgets", "2", "--strategy", "contention-aware",
              "--out", tmp_path / "out", "--jobs", 1, "--quiet"]  # fmt: skip
    page = tmp_path / "page.html"
    line = placer(*common, "--report", page).splitlines()[0]
    answer = json.loads(placer(*common, "--format", "json"))["answer"]
    assert line.startswith(f"Buy {answer['more_nics']} more NICs for 1.5 times the arrivals")
    html = page.read_text(encoding="utf-8").replace("&#39;", "'")
    assert line in html
    assert f"size {trace} --growth 1 --strategy contention-aware --budgets 2 --draws 2 --report FILE.html" in html
    narrow = json.loads(placer(*common, "--fleet", small, "--format", "json"))["answer"]
    assert narrow["fleet"] == "four-cores" and narrow["nics"] >= answer["nics"]
    assert (answer["budget_pct"], answer["asked_budget_pct"]) == (2, 2) and 0 < answer["risk"] <= 0.5
    assert answer["keeps_budget"] is (answer["sla_violations_pct"] <= 2)
    assert answer["expected_violations_pct"] >= 0 and answer["nics_without_margin"] <= answer["nics_high"]


TRAFFIC = TrafficProfile(1000, 1000, 600)
RANGE = {"flows": (1.0, 4000.0), "packet_size": (64.0, 1500.0), "mtbr": (0.0, 1100.0)}
TRACE = [
    Arrival("a", 0.0, Workload("NAT", TRAFFIC), Sla(max_drop=0.1)),
    Arrival("b", 5.0, Workload("ACL", TRAFFIC), Sla(min_kpps=100.0), departure=50.0),
    Arrival("c", 7.5, Workload("NIDS", TRAFFIC), Sla(max_drop=0.6)),
]


def drawn(growth: Growth, seed: int = 0) -> list[Arrival]:
    return grow(TRACE, growth, RANGE, random.Random(seed))


@given(st.floats(0.5, 20), st.floats(0.5, 20), st.integers(0, 99))
def test_a_larger_growth_begins_with_the_smaller(small: float, large: float, seed: int) -> None:
    """The requested number of arrivals, in order of time, with unique ids; a smaller growth is part of a larger one."""
    small, large = sorted((small, large))
    few, many = drawn(Growth(arrivals=small), seed), drawn(Growth(arrivals=large), seed)
    assert len(few) == round(3 * small) and len({arrival.id for arrival in many}) == len(many)
    assert [arrival.time for arrival in many] == sorted(arrival.time for arrival in many)
    for nf in ("NAT", "ACL", "NIDS"):
        assert sum(arrival.workload.nf == nf for arrival in few) <= sum(arrival.workload.nf == nf for arrival in many)


def test_slas_tighten_and_traffic_grows_within_the_profiled_range() -> None:
    """The drop is halved, ten times the flows end at the profiled maximum; kpps, match rate and stay do not change."""
    by_nf = {one.workload.nf: one for one in drawn(Growth(arrivals=9, sla=0.5, flows=10, packet_size=1.2))}
    assert by_nf["NAT"].sla == Sla(max_drop=0.05) and by_nf["ACL"].sla == Sla(min_kpps=100.0)
    assert by_nf["ACL"].departure == 50.0
    assert by_nf["NIDS"].workload.traffic == TrafficProfile(4000, 1200, 600)


def test_an_allowed_drop_stays_below_1() -> None:
    """Twice an allowed drop of 60 % is not 120 %."""
    assert all((one.sla.max_drop or 0.0) < 1 for one in drawn(Growth(arrivals=9, sla=2)))


@pytest.mark.parametrize("growth", [Growth(), Growth(arrivals=3, sla=0.3, flows=1.7)])
def test_grown_arrivals_survive_a_csv_file(growth: Growth, tmp_path: Path) -> None:
    """Written and read again, a grown trace is the same to the last digit."""
    arrivals = drawn(growth)
    path = tmp_path / "grown.csv"
    path.write_text(arrivals_csv(arrivals), encoding="utf-8")
    assert read_arrivals(str(path), TRAFFIC, lambda workload: ()) == arrivals


def test_rates_and_promised_latencies_survive_a_csv_file(tmp_path: Path) -> None:
    """They grow with nothing; traces without them have no such columns."""
    promised = [Workload("NAT", TRAFFIC, 400.0, latency_us=latency) for latency in (90.0, float("inf"))]
    promised.append(Workload("NAT", TRAFFIC, 400.0, latency_us=30.0, latency_statistic="mean"))
    trace = [
        Arrival(str(n), float(n), one, Sla(min_kpps=400.0)) for n, one in enumerate([*promised, TRACE[0].workload])
    ]
    path = tmp_path / "grown.csv"
    path.write_text(arrivals_csv(grow(trace, Growth(), RANGE, random.Random(1))), encoding="utf-8")
    read = read_arrivals(str(path), TRAFFIC, lambda workload: [])
    assert {arrival.workload for arrival in read} <= {arrival.workload for arrival in trace}
    assert any(not arrival.workload.is_saturated for arrival in read) and "rate_kpps" not in arrivals_csv(TRACE)


def test_loads_over_the_day_survive_a_csv_file() -> None:
    """Two of three instances have one; instances that are drawn with twice the load have the same shares."""
    offers = Workload("NAT", TRAFFIC, 300.0)
    trace = [replace(TRACE[n], workload=offers, day=day) for n, day in enumerate([(0.1, 1.0), (), (1.0, 0.25)])]
    grown = grow(trace, Growth(load=2), RANGE, random.Random(0))
    options = TraceOptions(loads=loads_by_name(grown))
    days = [arrival.day for arrival in grown]
    assert any(days) and set(days) <= {arrival.day for arrival in trace}
    assert read_arrivals(io.StringIO(arrivals_csv(grown)), TRAFFIC, lambda workload: (), options) == grown


@pytest.mark.long
def test_knowing_the_hours_saves_nics_next_year(tmp_path: Path) -> None:
    """Instances that are busy in different halves of the day share NICs: fewer than those that are busy all day."""
    trace, loads = tmp_path / "loads.csv", tmp_path / "day.csv"
    rows = [f"{n},{n},FlowMonitor,200,1,{load}" for n, load in enumerate(["am", "pm"] * 4)]
    trace.write_text("\n".join(["id,time,nf,rate_kpps,cores,load", *rows]) + "\n", encoding="utf-8")
    common = ["size", trace, "--strategy", "planned", "--next-year", 1, "--growth", "1", "--sla", "1", "--flows", "1",
              "--packet-size", 1, "--draws", 1, "--budgets", 2, "--jobs", 1, "--quiet", "--format", "json"]  # fmt: skip
    needed: list[int] = []
    for shares in ("am,1,0\npm,0,1", "am,1,1\npm,1,1"):
        loads.write_text(f"name,1,2\n{shares}\n", encoding="utf-8")
        found = json.loads(placer(*common, "--loads", loads, "--out", tmp_path / f"out{len(needed)}"))
        needed.append(found["answer"]["today_nics"])
    assert needed == [2, 3]


def test_a_load_grows_with_its_sla_and_becomes_several_instances_where_one_cannot_carry_it() -> None:
    """Four times 300 kpps, where an NF carries 1,000 with a tenth to spare: two of 600; the others are as they were."""
    loads = [Workload("NAT", TRAFFIC, 300.0), Workload("ACL", TRAFFIC, 100.0, cores=2), TRACE[2].workload]
    slas = [Sla(min_kpps=200.0), Sla(max_drop=0.1), TRACE[2].sla]
    trace = [replace(TRACE[n], workload=load, sla=sla) for n, (load, sla) in enumerate(zip(loads, slas, strict=True))]
    trace[0] = replace(trace[0], nic="x")
    grown = grow(trace, Growth(load=4), RANGE, random.Random(0), lambda workload: workload.rate_kpps <= 1000)
    of_nat = [one for one in grown if one.nic == "x" or one.id.startswith("a~1")]
    assert [(one.id, one.workload.rate_kpps, one.sla.min_kpps, one.nic) for one in of_nat] == [
        ("a~1.1", 600.0, 400.0, "x"), ("a~1.2", 600.0, 400.0, None)
    ]  # fmt: skip
    assert {one.workload for one in grown if one.workload.nf == "ACL"} <= {Workload("ACL", TRAFFIC, 400.0, cores=2)}
    assert {one.workload for one in grown if one.workload.nf == "NIDS"} <= {TRACE[2].workload}
    assert len({one.id for one in grown}) == len(grown)
    text = arrivals_csv([one for one in grown if one.nic is None])
    assert read_arrivals(io.StringIO(text), TRAFFIC, lambda workload: ()) == [one for one in grown if one.nic is None]


@pytest.mark.long
def test_the_growth_of_a_load_is_sized(tmp_path: Path) -> None:
    """Twice the load of twelve instances takes more NICs; a trace without loads is refused."""
    trace = tmp_path / "loads.csv"
    rows = [f"{n},{n},{nf},600" for n, nf in enumerate(["NAT", "ACL", "IPRouter"] * 4)]
    trace.write_text("\n".join(["id,time,nf,rate_kpps", *rows]) + "\n", encoding="utf-8")
    common = ["--growth-of", "load", "--next-year", "2", "--growth", "1", "--draws", "1", "--budgets", "2",
              "--strategy", "contention-aware", "--jobs", 1, "--quiet"]  # fmt: skip
    answer = json.loads(placer("size", trace, *common, "--out", tmp_path / "out", "--format", "json"))
    assert answer["answer"]["growth_of"] == "load"
    assert answer["answer"]["nics"] > answer["answer"]["today_nics"]
    assert {point["axis"] for point in answer["curves"]} == {"today", "load"}
    assert "for 2 times the load" in placer("size", trace, *common, "--out", tmp_path / "out").splitlines()[0]
    plain = tmp_path / "plain.csv"
    plain.write_text("id,time,nf,sla_drop\na,0,NAT,0.1\n", encoding="utf-8")
    assert "--growth-of: no arrival of" in refuse("size", plain, "--growth-of", "load", "--out", tmp_path / "o")


def test_what_already_runs_is_there_once() -> None:
    """Twice three arrivals: the one that runs stays on its NIC, and five are drawn and are to be placed."""
    trace = [TRACE[0], replace(TRACE[1], nic="x"), TRACE[2]]
    grown = grow(trace, Growth(arrivals=2.0, sla=0.5), RANGE, random.Random(0))
    assert len(grown) == len({one.id for one in grown}) == 6
    assert [one.id.split("~")[0] for one in grown if one.nic == "x"] == ["b"]
    assert [one.nic for one in grown].count(None) == 5
    assert [one.time for one in grown] == sorted(one.time for one in grown)
    assert [one.nic for one in grow(trace, Growth(arrivals=0.1), RANGE, random.Random(0))] == ["x"]
    kinds = [NicKind(0, "nic", 8, {"NAT": 1, "ACL": 1, "NIDS": 1})]
    assert read_arrivals(io.StringIO(arrivals_csv(grown)), TRAFFIC, lambda workload: (), kinds=kinds) == grown

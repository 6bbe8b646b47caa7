"""How plans are evaluated, on cases worked by hand: SLA violations to expect, wastage against the optimum or its bound,
in NICs and in cost, and the columns of a comparison."""

import json
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from placer.evaluate.checks import slas_kept
from placer.evaluate.columns import RESULT_COLUMNS, spare_cores_pct
from placer.evaluate.evaluation import Evaluation, Stay, evaluate, to_buy
from placer.evaluate.expected_violations import expected_violations
from placer.evaluate.wastage import is_marked, wastage_notes
from placer.inputs.catalogue import Cards
from placer.model.arrival import Arrival
from placer.model.catalogue import Catalogue
from placer.model.nic_kind import NicKind
from placer.model.plan import Placement, Plan
from placer.model.sla import Sla
from placer.optimal.bounded_plan import BoundedPlan
from placer.progress import Progress
from placer.report.html.run import strategies_table
from placer.report.text.run import as_csv, as_json, as_table
from placer.run import Comparison, RunRequest, run
from placer.testing.strategies import CORES_BY_NF, SOLO_KPPS, ToyOracle, arrival, catalogue
from profiles import TrafficProfile, Workload

KIND = NicKind(0, "toy", 8, CORES_BY_NF)


def evaluated(*placements: Placement) -> Evaluation:
    """A plan's evaluation by the toy oracle."""
    return evaluate(Plan("by hand", None, placements, 0.0), [KIND], [ToyOracle()])


def test_the_lowest_throughput_of_the_stay_counts() -> None:
    """c loses 2 x 0.05 while b is there, from 1 to 2 s: 360 of 400 kpps."""
    c, b = arrival("c", 0, "c", 0.05), arrival("b", 1, "b", 0.5, departure=2)
    stays = evaluated(Placement(c, "n", KIND), Placement(b, "n", KIND)).stays
    assert stays is not None and round(stays["c"].throughput_kpps, 9) == 360.0
    assert not stays["c"].sla_met


def test_a_co_location_counts_only_after_its_moment() -> None:
    """One tenant leaves at the moment another arrives: they never shared the NIC, by evaluation and checker."""
    c, b, later = arrival("c", 0, "c", 0.1), arrival("b", 0, "b", 0.5, departure=1), arrival("b2", 1, "b", 0.5)
    placements = (Placement(c, "n", KIND), Placement(b, "n", KIND), Placement(later, "n", KIND))
    evaluation = evaluated(*placements)
    assert evaluation.violated == 0 and list(slas_kept(evaluation.plan, [ToyOracle()])) == []


def test_a_neighbour_that_arrives_at_the_same_time_counts_from_the_start() -> None:
    """An oracle by which a runs faster next to b: both arrive at 0 s, so a never runs alone."""

    class Helping(ToyOracle):
        def _query(self, co_locations):  # type: ignore[no-untyped-def]
            return [[50.0 if w.nf == "a" and len(co_location) == 1 else 100.0 for w in co_location]
                    for co_location in co_locations]  # fmt: skip

    a, b = arrival("a", 0, "a", 0.0), arrival("b", 0, "b", 0.5)
    plan = Plan("by hand", None, (Placement(a, "n", KIND), Placement(b, "n", KIND)), 0.0)
    stays = evaluate(plan, [KIND], [Helping()]).stays
    assert stays is not None and stays["a"].throughput_kpps == 100.0


def test_what_is_owned_need_not_be_bought() -> None:
    """At the peak two of the first kind, of which one is owned, and one of two other kinds of one model, both owned."""
    kinds = [
        NicKind(i, model, 8, CORES_BY_NF, owned=owned)
        for i, (model, owned) in enumerate([("x", 1), ("y", 3), ("y", None)])
    ]
    trace = [arrival(str(number), number, "d", departure=9 if number else 1) for number in range(5)]
    homes = [("a", 0), ("b", 0), ("c", 0), ("e", 1), ("f", 2)]
    placements = tuple(Placement(one, nic, kinds[kind]) for one, (nic, kind) in zip(trace, homes, strict=True))
    assert to_buy(Plan("by hand", None, placements, 0.0), kinds) == {"x": 1, "y": 1}


class Tenths:
    """A predictor by which every instance falls short with a tenth per instance on its NIC beyond the first."""

    def solo(self, workloads: Sequence[Workload]) -> np.ndarray:
        return np.array([SOLO_KPPS[workload.nf] for workload in workloads])

    def shortfall(self, co_locations: Sequence[Sequence[Workload]], required: Any) -> list[np.ndarray]:
        return [np.full(len(members), 0.1 * (len(members) - 1)) for members in co_locations]


def _catalogue() -> Catalogue:
    models = cast("Any", SimpleNamespace(predictors={"toy": Tenths()}))
    return Catalogue(catalogue().kinds, (models,), (None,))


def _plan(*placed: tuple[Arrival, str | None]) -> Plan:
    kind = catalogue().kinds[0]
    return Plan("toy", "toy", tuple(Placement(one, nic, kind if nic else None) for one, nic in placed), 0.0)


def test_three_on_one_nic_and_one_alone() -> None:
    """Three at two tenths and one at none: 0.6 of four, 15 %. Rejected arrivals do not count."""
    plan = _plan(
        (arrival("1", 0, "a"), "x"), (arrival("2", 1, "b"), "x"), (arrival("3", 2, "c"), "x"),
        (arrival("4", 3, "d"), "y"), (arrival("5", 4, "d"), None),
    )  # fmt: skip
    assert expected_violations(plan, _catalogue(), "toy").mean_pct == pytest.approx(15.0)


def test_the_worst_moment_of_a_stay_counts() -> None:
    """Two share a NIC until one leaves: both were at a tenth, whatever comes afterwards."""
    plan = _plan((arrival("1", 0, "a", departure=5), "x"), (arrival("2", 1, "b"), "x"), (arrival("3", 6, "c"), "y"))
    assert expected_violations(plan, _catalogue(), "toy").mean_pct == pytest.approx(100 * 0.2 / 3)


def test_repeated_co_locations_spread_more() -> None:
    """Four NICs with the same pair fail together; four different pairs do not. The expectation is the same."""
    same = [(arrival(f"{nic}{nf}", 0, nf), f"nic-{nic}") for nic in range(4) for nf in "ab"]
    pairs = ("aa", "bb", "cc", "dd")
    different = [
        (arrival(f"{nic}{at}", 0, nf), f"nic-{nic}") for nic, pair in enumerate(pairs) for at, nf in enumerate(pair)
    ]
    alike, apart = (expected_violations(_plan(*one), _catalogue(), "toy") for one in (same, different))
    assert alike.mean_pct == pytest.approx(apart.mean_pct)
    assert alike.spread_pct == pytest.approx(2**0.5 * apart.spread_pct)


def test_an_empty_plan_violates_nothing() -> None:
    """Zero of zero."""
    assert expected_violations(_plan(), _catalogue(), "toy").mean_pct == 0.0


SHARED_KIND = NicKind(0, "small", 4, {"NAT": 1, "IDS": 2})


def test_spare_cores_are_counted_when_most_nics_are_in_use() -> None:
    """Two NICs of four cores with IDS, IDS and NAT, before NAT leaves: three of eight cores are spare."""
    arrivals = [
        Arrival(name, float(number), Workload(nf, TrafficProfile(1, 1, 1)), Sla(max_drop=0.1), departure)
        for number, (name, nf, departure) in enumerate((("a", "IDS", None), ("b", "NAT", 9.0), ("c", "IDS", None)))
    ]
    nics = ("nic-1", "nic-1", "nic-2")
    placements = tuple(Placement(arrival, nic, SHARED_KIND) for arrival, nic in zip(arrivals, nics, strict=True))
    assert spare_cores_pct([SHARED_KIND], evaluate(Plan("toy", None, placements, 0.1), [SHARED_KIND], None)) == 37.5
    assert spare_cores_pct([SHARED_KIND], evaluate(Plan("toy", None, (), 0.1), [SHARED_KIND], None)) is None


def test_keys_and_headings_are_different() -> None:
    for names in (
        [c.key for c in RESULT_COLUMNS],
        [c.heading for c in RESULT_COLUMNS],
        [c.page for c in RESULT_COLUMNS],
    ):
        given = [name for name in names if name]
        assert len(given) == len(set(given))


def test_the_page_of_the_output_has_a_row_for_each_key() -> None:
    page = (Path(__file__).parents[3] / "docs" / "formats" / "run.md").read_text(encoding="utf-8")
    rows = [line.split("|")[1] for line in page.splitlines() if line.startswith("| `")]
    assert [
        column.key for column in RESULT_COLUMNS if column.key and not any(f"`{column.key}`" in row for row in rows)
    ] == []


KINDS = (NicKind(0, "small", 4, {"NAT": 2}), NicKind(1, "large", 8, {"NAT": 2}, cost=3.0))
TRACE = [Arrival(f"n{i}", float(i), Workload("NAT", TrafficProfile(1, 1, 1)), Sla(max_drop=0.1)) for i in range(100)]


def evaluation(name: str, nics: int, cost: float, violated: int, rejected: int = 0) -> Evaluation:
    """A plan of 100 arrivals with so many NICs, violations and rejections."""
    placements = [Placement(one) if i < rejected else Placement(one, "nic-1", KINDS[0]) for i, one in enumerate(TRACE)]
    stays = {one.id: Stay(1.0, 1.0, sla_met=i >= violated + rejected) for i, one in enumerate(TRACE) if i >= rejected}
    return Evaluation(Plan(name, None, tuple(placements), 0.1), nics, cost, stays, None)


def comparison(
    *evaluations: Evaluation, optimum: Evaluation | None = None, proven: bool = True, budget_pct: float | None = 2.0
) -> Comparison:
    """Plans against an optimum of 10 NICs and cost 20, or a lower bound of 8 NICs and cost 16."""
    best = optimum or evaluation("optimal", 10, 20.0, 0)
    bound, nics_bound = (best.cost, best.nics) if proven else (16.0, 8)
    bounded = BoundedPlan(best.plan, best.nics, best.cost, bound, nics_bound, proven, 0.1, 0.2, "all arrivals at once")
    return Comparison(
        tuple(TRACE), "simulated", evaluations, Catalogue(KINDS, (), (), budget_pct=budget_pct), 0, "simulated", bounded
    )


def test_wastage_is_relative_to_the_optimum() -> None:
    """Twelve NICs instead of 10 are 20 %; a cost of 30 instead of 20 is 50 %."""
    one = evaluation("greedy", 12, 30.0, 0)
    assert comparison(one).wastage_pct(one) == pytest.approx(20.0)
    assert comparison(one).cost_wastage_pct(one) == pytest.approx(50.0)


def test_without_proof_wastage_is_relative_to_the_lower_bound() -> None:
    """Twelve NICs against a bound of 8 are 50 %; a cost of 24 against 16, too."""
    one = evaluation("greedy", 12, 24.0, 0)
    unproven = comparison(one, proven=False)
    assert unproven.wastage_pct(one) == pytest.approx(50.0)
    assert unproven.cost_wastage_pct(one) == pytest.approx(50.0)
    assert "between 8 (lower bound) and 10 NICs" in as_table(unproven)


@pytest.mark.parametrize(
    ("violated", "nics", "cost", "rejected", "marked"),
    [
        (0, 12, 20.0, 0, False),
        (2, 12, 20.0, 0, False),  # within the budget of 2 %
        (3, 12, 20.0, 0, True),
        (1, 9, 20.0, 0, True),  # fewer NICs than the optimum, and one violation
        (1, 10, 19.0, 0, True),  # cheaper than the optimum, and one violation
        (0, 10, 20.0, 1, True),  # the optimum places every arrival
    ],
)
def test_a_plan_that_looks_better_than_it_is_is_marked(
    violated: int, nics: int, cost: float, rejected: int, marked: bool
) -> None:
    """Marked are too many violations, violations that save NICs or cost, and more rejections than in the optimum."""
    one = evaluation("greedy", nics, cost, violated, rejected)
    assert is_marked(comparison(one), one) is marked
    (row,) = json.loads(as_json(comparison(one)))["strategies"]
    assert row["comparable"] is not marked and row["keeps_budget"] is (violated <= 2)
    assert ("*" in as_table(comparison(one))) is marked


def test_the_budget_of_the_request_marks() -> None:
    """Of 100 instances, five violations keep a budget of 5 % and not one of 4 %; with a risk the default of 2 marks."""
    one = evaluation("greedy", 12, 20.0, 5)
    for budget, keeps, marked in ((5.0, True, False), (4.0, False, True), (None, None, True)):
        (row,) = json.loads(as_json(comparison(one, budget_pct=budget)))["strategies"]
        assert (row["budget_pct"], row["keeps_budget"], row["comparable"]) == (budget, keeps, not marked)
    assert "more than 4 % SLA violations" in as_table(comparison(one, budget_pct=4.0))
    assert "more than 2 % SLA violations" in as_table(comparison(one, budget_pct=None))


def test_expected_violations_stand_next_to_the_measured_ones() -> None:
    """Where no plan has any, there is no column."""
    one = replace(evaluation("greedy", 12, 20.0, 5), expected_violations_pct=1.25)
    heading, row = as_table(comparison(one, evaluation("random", 12, 20.0, 0))).splitlines()[:2]
    assert re.split(r" {2,}", heading)[6:8] == ["SLA violations", "expected"]
    assert re.split(r" {2,}", row)[6:8] == ["5.0 %", "1.2 %"]
    assert "expected" not in as_table(comparison(evaluation("greedy", 12, 20.0, 5)))
    assert json.loads(as_json(comparison(one)))["strategies"][0]["expected_violations_pct"] == 1.25


def test_the_table_marks_wastage_and_explains_the_mark() -> None:
    """`-20.0 % *` and a line below the table; the same in CSV as a column."""
    compared = comparison(evaluation("greedy", 8, 20.0, 30), evaluation("first-fit", 12, 24.0, 0))
    table = as_table(compared)
    rash, sound = table.splitlines()[1:3]
    assert "-20.0 % *" in rash and "*" not in sound
    assert "* not comparable with the optimum: more than 2 % SLA violations." in table
    assert "comparable" in as_csv(compared).splitlines()[0]


def test_an_optimum_that_is_not_proven_has_a_mark_of_its_own() -> None:
    """Its wastage is relative to the bound of 8 NICs; a proven one has no mark."""
    found = evaluation("optimal", 10, 20.0, 0)
    compared = comparison(evaluation("greedy", 12, 24.0, 0), evaluation("rash", 9, 24.0, 30), found, proven=False)
    table = as_table(compared)
    greedy, rash, best = table.splitlines()[1:4]
    assert ("+50.0 %   " in greedy, "+12.5 % * " in rash, "+25.0 % **" in best) == (True, True, True)
    assert "** not proven optimal: the best plan found, above the lower bound of 8 NICs.\n" in table
    assert strategies_table(compared)["note"].dropna().tolist() == ["* not comparable", "** not proven"]
    assert all(row["comparable"] is (row["strategy"] != "rash") for row in json.loads(as_json(compared))["strategies"])
    assert "**" not in as_table(comparison(evaluation("greedy", 12, 24.0, 0), found))


def test_cost_is_shown_where_nics_cost_different_amounts() -> None:
    """Cost and its wastage have columns; NICs stay the wastage of JSON."""
    one = evaluation("greedy", 12, 30.0, 0)
    heading, row = as_table(comparison(one)).splitlines()[:2]
    assert re.split(r" {2,}", heading) == [
        "strategy", "predictor", "NICs", "cost", "wastage", "cost wastage", "SLA violations", "rejected", "decisions/s",
    ]  # fmt: skip
    assert re.split(r" {2,}", row)[2:6] == ["12", "30", "+20.0 %", "+50.0 %"]
    assert "10 NICs, cost 20, proven" in as_table(comparison(one))
    (figures,) = json.loads(as_json(comparison(one)))["strategies"]
    assert (figures["wastage_pct"], figures["cost_wastage_pct"]) == (20.0, 50.0)


def test_an_optimum_of_no_nics_has_a_sentence_instead_of_wastage() -> None:
    """Where every arrival is rejected, wastage is `-` and null, and a note says why."""
    one = evaluation("greedy", 0, 0.0, 0, rejected=100)
    compared = comparison(one, optimum=evaluation("optimal", 0, 0.0, 0, rejected=100))
    assert compared.wastage_pct(one) is None
    assert wastage_notes(compared, [one]) == [
        "Wastage is undefined: the optimum uses no NIC and rejects all 100 arrivals."
    ]
    assert "+0.0 %" not in as_table(compared)
    assert json.loads(as_json(compared))["strategies"][0]["wastage_pct"] is None


def test_a_fleet_of_different_costs_as_a_whole(tmp_path: Path) -> None:
    """Two owned NICs and others to buy: the table has a column of cost that agrees with JSON."""
    trace, fleet = tmp_path / "t.csv", tmp_path / "fleet.toml"
    trace.write_text("id,time,nf,sla_drop\n" + "".join(f"n{i},{i},NAT,0.1\n" for i in range(12)), encoding="utf-8")
    fleet.write_text(
        '[[nic]]\nmodel = "bluefield-2"\ncount = 2\ncost = 0.5\n\n[[nic]]\nmodel = "bluefield-2"\ncost = 2.5\n',
        encoding="utf-8",
    )
    request = RunRequest(str(trace), ("monopolization", "greedy"), cards=Cards(fleet=fleet))
    compared = run(request, Progress(quiet=True))
    mono = next(row for row in json.loads(as_json(compared))["strategies"] if row["strategy"] == "monopolization")
    assert mono["cost"] == 2 * 0.5 + 10 * 2.5
    line = next(line for line in as_table(compared).splitlines() if line.startswith("monopolization"))
    assert line.split()[2:4] == ["12", "26"]

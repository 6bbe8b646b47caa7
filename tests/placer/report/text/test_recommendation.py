"""Which plan of a run is recommended, and what the sentences say: a table from evaluations to sentences."""

import json
from dataclasses import replace

import pytest

from placer.evaluate.evaluation import Evaluation, Stay
from placer.model.catalogue import Catalogue
from placer.model.plan import Placement
from placer.placing import BudgetVariation
from placer.report.text.recommendation import choose_plan, recommendation_lines
from placer.report.text.run import as_json, note_measurements
from placer.run import Comparison
from tests.placer.evaluate.test_evaluation import KINDS, TRACE, comparison, evaluation


def plan(
    name: str,
    nics: int,
    violated: int | None,
    *,
    rejected: int = 0,
    expected: float | None = None,
    predictor: str | None = None,
    risk: float | None = None,
) -> Evaluation:
    """A plan of 100 arrivals that costs its NICs; None violated: without a ground truth."""
    one = evaluation(name, nics, float(nics), violated or 0, rejected)
    one = replace(one, plan=replace(one.plan, predictor=predictor, risk=risk), expected_violations_pct=expected)
    return one if violated is not None else replace(one, stays=None)


def aware(nics: int, violated: int | None, name: str = "contention-aware", **options: float | None) -> Evaluation:
    """A plan of contention-aware, tomur; as many violations expected as there are."""
    of = {"expected": 1.0 if violated is None else float(violated), "risk": 0.1} | options
    return plan(name, nics, violated, predictor="tomur", **of)  # type: ignore[arg-type]


def planned(nics: int, violated: int | None, name: str = "planned", **options: float | None) -> Evaluation:
    """A plan for which all arrivals are known."""
    return aware(nics, violated, name, **{"risk": None} | options)


def slomo(nics: int, violated: int | None, rejected: int = 0) -> Evaluation:
    """A plan by a predictor that does not estimate its errors."""
    return plan("contention-aware", nics, violated, rejected=rejected, predictor="slomo")


MEASURE = (
    "With exact throughputs and all arrivals known, {}. `--measure N` measures up to N co-locations, of which this "
    "plan has 99, and places again."
)


@pytest.mark.parametrize(
    ("plans", "sentences"),
    [
        pytest.param([plan("greedy", 20, 0), aware(12, 2), slomo(9, 13)],
            ["Recommended: contention-aware, tomur, 12 NICs.",
            "On this very trace, 2 of 100 instances (2.0 %) violate their SLA; the budget is 2 %.",
            MEASURE.format("10 NICs would be enough")],
            id="the cheapest within the budget, although another is cheaper"),
        pytest.param([plan("monopolization", 12, 0, rejected=80), aware(12, 1, rejected=5), slomo(12, 11, rejected=1)],
            ["Recommended: contention-aware, tomur. It places 95 of 100 arrivals on 12 NICs, the most of all "
            "plans within the budget.", "It rejects 5 arrivals: n0, n1, n2, n3, n4.",
            "On this very trace, 1 of 95 instances (1.1 %) violates its SLA; the budget is 2 %.",
            MEASURE.format("all arrivals would fit").replace("99", "94")], id="the budget comes before rejections"),
        pytest.param([plan("greedy", 20, 0, rejected=9), aware(12, 3, rejected=5)],
            ["Recommended: greedy. It places 91 of 100 arrivals on 20 NICs, the most of all plans within the "
            "budget.", "It rejects 9 arrivals: n0, n1, n2, n3, n4, n5, n6, n7, n8.",
            "On this very trace, no instance violates its SLA.",
            "contention-aware, tomur places 95 of 100 arrivals on 12 NICs, but 3.2 % of its instances violate "
            "their SLA, more than the budget of 2 %; a lower --budget reduces violations."],
            id="a plan that rejects less misses the budget"),
        pytest.param([plan("greedy", 20, 9), plan("rash", 9, 30)],
            ["No plan keeps the budget of 2 % SLA violations; the closest one: greedy, 20 NICs.",
            "On this very trace, 9 of 100 instances (9.0 %) violate their SLA, more than the budget of 2 %."],
            id="no plan keeps the budget"),
        pytest.param([plan("greedy", 20, 9), plan("rash", 20, 8, rejected=3)],
            ["No plan keeps the budget of 2 % SLA violations; the closest one: rash, 97 of 100 arrivals on 20 NICs.",
            "It rejects 3 arrivals: n0, n1, n2.",
            "On this very trace, 8 of 97 instances (8.2 %) violate their SLA, more than the budget of 2 %."],
            id="the closest is the one with fewest violations, with its rejections"),
        pytest.param([aware(10, None, expected=3.0), aware(11, None, "sound", expected=1.0)],
            ["Recommended: sound, tomur, 11 NICs.",
            "1.0 % of the instances are expected to violate their SLA; the budget is 2 %.",
            "contention-aware, tomur uses 10 NICs, but 3.0 % of its instances are expected to violate their "
            "SLA, more than the budget of 2 %; a lower --budget reduces violations.",
            "No violation was measured. `--testbed SPEC --measure N` measures up to N co-locations, of which "
            "this plan has 99 on a NIC, and places again."], id="without a ground truth the expected violations count"),
        pytest.param([plan("monopolization", 100, None, expected=0.0), slomo(10, None)],
            ["Recommended: monopolization, 100 NICs.", "No instance is expected to violate its SLA."],
            id="no violation expected"),
        pytest.param([plan("monopolization", 100, None, expected=0.04), slomo(10, None)],
            ["Recommended: monopolization, 100 NICs.",
            "Less than 0.1 % of the instances are expected to violate their SLA; the budget is 2 %."],
            id="hardly any violation expected"),
        pytest.param([slomo(10, None), aware(11, None)], ["Recommended: contention-aware, tomur, 11 NICs.",
            "1.0 % of the instances are expected to violate their SLA; the budget is 2 %.",
            "No violation was measured. `--testbed SPEC --measure N` measures up to N co-locations, of which "
            "this plan has 99 on a NIC, and places again."], id="a plan of which nothing is known keeps no budget"),
        pytest.param([slomo(10, None), replace(slomo(11, None), nics=11)],
            ["No plan is known to keep the budget of 2 % SLA violations: there is no ground truth, and the "
            "predictor does not estimate its errors. The cheapest: contention-aware, slomo, 10 NICs.",
            "How many SLAs it violates is unknown."], id="nothing is known of any plan"),
        pytest.param([aware(12, 1)], ["contention-aware, tomur (no other strategy was compared): 12 NICs.",
            "On this very trace, 1 of 100 instances (1.0 %) violates its SLA; the budget is 2 %.",
            MEASURE.format("10 NICs would be enough")], id="a choice of one is no recommendation"),
        pytest.param([aware(9, 9), plan("optimal", 10, 0)],
            ["contention-aware, tomur (no other strategy was compared): 9 NICs.",
            "On this very trace, 9 of 100 instances (9.0 %) violate their SLA, more than the budget of 2 %.",
            "`--measure N` measures up to N co-locations, of which this plan has 99, and places again without "
            "those that violate an SLA."], id="the optimum is no other choice"),
        pytest.param([plan("greedy", 20, 0), aware(12, 2, expected=0.6)],
            ["Recommended: contention-aware, tomur, 12 NICs.",
            "On this very trace, 2 of 100 instances (2.0 %) violate their SLA; the budget is 2 %.",
            "The predictor expected 0.6 %. Optimistic predictions are so on every NIC with the same NFs, and "
            "such NICs are chosen more often.", MEASURE.format("10 NICs would be enough")],
            id="far more violations than expected"),
        pytest.param([plan("optimal", 10, 0)], [], id="the optimum alone"),
        pytest.param([plan("greedy", 20, 0), aware(12, 2), planned(10, 1)], ["Recommended: planned, tomur, 10 NICs.",
            "On this very trace, 1 of 100 instances (1.0 %) violates its SLA; the budget is 2 %.",
            "All arrivals must be known in advance for this plan. If they come one by one, take contention-"
            "aware, tomur, 12 NICs, 2.0 % SLA violations.",
            "`--measure N` measures up to N co-locations, of which this plan has 99, and places again without "
            "those that violate an SLA."], id="planned, and what to take without knowing all arrivals"),
        pytest.param([plan("greedy", 20, 0), aware(12, 3), planned(11, 0)], ["Recommended: planned, tomur, 11 NICs.",
            "On this very trace, no instance violates its SLA.",
            "All arrivals must be known in advance for this plan. If they come one by one, take greedy, 20 "
            "NICs, 0.0 % SLA violations.",
            "With exact throughputs, 10 NICs would be enough. `--measure N` measures up to N co-locations, of "
            "which this plan has 99, and places again."],
            id="planned, and no online rule by a predictor keeps the budget"),
        pytest.param([aware(12, 3), planned(11, 1)], ["Recommended: planned, tomur, 11 NICs.",
            "On this very trace, 1 of 100 instances (1.0 %) violates its SLA; the budget is 2 %.",
            "All arrivals must be known in advance for this plan. If they come one by one, no plan keeps the "
            "budget; the closest one: contention-aware, tomur, 12 NICs, 3.0 % SLA violations.",
            "With exact throughputs, 10 NICs would be enough. `--measure N` measures up to N co-locations, of "
            "which this plan has 99, and places again."], id="planned, and no other plan keeps the budget"),
        pytest.param([aware(12, 2), planned(11, 3)], ["Recommended: contention-aware, tomur, 12 NICs.",
            "On this very trace, 2 of 100 instances (2.0 %) violate their SLA; the budget is 2 %.",
            "planned, tomur uses 11 NICs, but 3.0 % of its instances violate their SLA, more than the budget of"
            " 2 %; a lower --budget reduces violations.", MEASURE.format("10 NICs would be enough")],
            id="planned misses the budget"),
        pytest.param([aware(12, 1), planned(12, 2)], ["Recommended: contention-aware, tomur, 12 NICs.",
            "On this very trace, 1 of 100 instances (1.0 %) violates its SLA; the budget is 2 %.",
            "Knowing all arrivals in advance saves nothing here: planned, tomur has 12 NICs, 2.0 % SLA violations.",
            MEASURE.format("10 NICs would be enough")], id="planned needs as many"),
        pytest.param([planned(12, 2)], ["planned, tomur (no other strategy was compared): 12 NICs.",
            "On this very trace, 2 of 100 instances (2.0 %) violate their SLA; the budget is 2 %.",
            "All arrivals must be known in advance for this plan.",
            "With exact throughputs, 10 NICs would be enough. `--measure N` measures up to N co-locations, of "
            "which this plan has 99, and places again."], id="planned alone"),
        pytest.param([aware(12, 2), replace(planned(11, 0, "planned measured"), measured_runs=60, measured_pct=100.0)],
            ["Recommended: planned measured, tomur, 11 NICs.", "On this very trace, no instance violates its SLA.",
            "All arrivals must be known in advance for this plan. If they come one by one, take contention-"
            "aware, tomur, 12 NICs, 2.0 % SLA violations."], id="what was measured needs no hint to measure"),
    ],
)  # fmt: skip
def test_sentences(plans: list[Evaluation], sentences: list[str]) -> None:
    """Against an optimum of 10 NICs, at a budget of 2 %."""
    compared = comparison(*plans)
    if plans[0].stays is None:
        compared = replace(compared, truth="predicted")
    assert list(recommendation_lines(compared)) == sentences


def varied(asked_violated: int, careful: tuple[tuple[float, int, int], ...]) -> Comparison:
    """Greedy with 20 NICs and contention-aware with 12; `careful`: budget, NICs, violations."""
    asked = aware(12, asked_violated, expected=None)
    more = tuple(
        (budget, aware(nics, violated, f"contention-aware at budget {budget:g} %", expected=None))
        for budget, nics, violated in careful
    )
    variation = BudgetVariation(asked, more, aware(11, 9, "contention-aware without margin", expected=None))
    return replace(comparison(plan("greedy", 20, 0), asked), variations=(variation,))


def test_what_the_budget_costs_is_said_in_nics() -> None:
    """Against the plan by the median prediction."""
    assert list(recommendation_lines(varied(2, ())))[2:] == [
        "Keeping violations below 2 % takes 1 extra NIC: without a safety margin, 11 NICs, 9.0 % SLA violations."
    ]


def test_a_more_careful_plan_is_recommended_before_another_strategy() -> None:
    """Where the asked plan misses the budget by the truth, with the option that gives the more careful plan."""
    compared = varied(3, ((1.0, 13, 3), (0.5, 14, 1)))
    lines = list(recommendation_lines(compared))
    assert lines == [
        "Recommended: contention-aware at budget 0.5 %, tomur (--budget 0.5), 14 NICs.",
        "On this very trace, 1 of 100 instances (1.0 %) violates its SLA; the budget is 2 %.",
        "contention-aware, tomur uses 12 NICs, but 3.0 % of its instances violate their SLA, more than the budget of "
        "2 %.",
        "Keeping violations below 2 % takes 3 extra NICs: without a safety margin, 11 NICs, 9.0 % SLA violations.",
    ]
    printed = json.loads(as_json(compared))
    assert [row["strategy"] for row in printed["strategies"]] == ["greedy", "contention-aware"]
    recommended = printed["recommended"]
    assert recommended["strategy"] == "contention-aware"
    assert (recommended["asked_budget_pct"], recommended["budget_pct"], recommended["keeps_budget"]) == (0.5, 2.0, True)
    assert (recommended["nics"], recommended["nics_without_margin"], recommended["risk"]) == (14, 11, 0.1)


def test_another_strategy_is_recommended_where_no_careful_plan_keeps_the_budget() -> None:
    compared = varied(9, ((1.0, 13, 8),))
    assert choose_plan(compared).plan.strategy == "greedy"
    assert list(recommendation_lines(compared))[2:] == [
        "contention-aware, tomur uses 12 NICs, but 9.0 % of its instances violate their SLA, more than the budget of "
        "2 %, and so do those of its plans for smaller budgets, down to 1 %."
    ]


def test_the_worst_violation_is_in_the_sentence() -> None:
    """SLAs require 0.9 kpps; 0.891 is 1 % less, and 0.8999 is less than 0.1 %."""
    for kpps, said in ((0.891, "by at most 1.0 %"), (0.8999, "by less than 0.1 %")):
        one = aware(12, 2)
        short = Stay(kpps, 1.0, sla_met=False, required_kpps=0.9)
        stays = {id: stay if stay.sla_met else short for id, stay in (one.stays or {}).items()}
        compared = comparison(plan("greedy", 20, 0), replace(one, stays=stays))
        assert f"2 of 100 instances (2.0 %) violate their SLA, {said}; the" in list(recommendation_lines(compared))[1]
        (row,) = json.loads(as_json(compared))["strategies"][1:]
        assert row["short_by_pct"] == pytest.approx(100 * (1 - kpps / 0.9), abs=1e-3)


def test_a_missed_latency_is_short_of_no_throughput() -> None:
    """A throughput of 0 stands for it, and is not 100 % too little."""
    one = aware(12, 1)
    stays = {id: stay if stay.sla_met else Stay(0.0, 1.0, sla_met=False) for id, stay in (one.stays or {}).items()}
    assert replace(one, stays=stays).short_by_pct is None and aware(12, 0).short_by_pct is None


def test_what_was_not_measured_is_named() -> None:
    """Five co-locations at most, and how many more; nothing where all were measured."""
    pairs = tuple(("NAT", f"NF{number}") for number in range(7))
    for unmeasured, said in (
        ((), "."),
        (pairs[:1], "; not measured: NAT + NF0."),
        (pairs, "; not measured: NAT + NF0, NAT + NF1, NAT + NF2, NAT + NF3, NAT + NF4 and 2 more."),
    ):
        one = replace(aware(12, 0), measured_runs=9, measured_pct=80.0, unmeasured=unmeasured)
        assert note_measurements(comparison(one)) == [
            "contention-aware, tomur: 9 runs measured; 80 % of the instances are on NICs whose co-locations were "
            f"measured{said}"
        ]


def test_other_traces_show_how_far_the_figures_carry() -> None:
    """From the smallest to the largest; how many miss the budget; JSON has the same ends."""
    similar = (aware(11, 1), aware(13, 3, rejected=2), aware(12, 0))
    compared = replace(comparison(plan("greedy", 20, 0), aware(12, 2)), similar=similar)
    assert list(recommendation_lines(compared))[2] == (
        "On 3 other traces drawn from its arrivals: 11 to 13 NICs, 0 to 2 arrivals rejected, 0.0 to 3.1 % SLA "
        "violations, over the budget on 1 of them."
    )
    assert json.loads(as_json(compared))["recommended"]["range"] == {
        "draws": 3,
        "nics": [11, 13],
        "sla_violations_pct": [0.0, 3.0612],
        "expected_violations_pct": [0.0, 3.0],
        "rejected": [0, 2],
    }


def test_other_traces_without_a_ground_truth() -> None:
    """What is expected varies; violations are null."""
    similar = (aware(12, None, expected=0.5), aware(12, None, expected=1.5))
    one = replace(comparison(aware(12, None), plan("greedy", 20, None)), truth="predicted", similar=similar)
    assert list(recommendation_lines(one))[2] == (
        "On 2 other traces drawn from its arrivals: 12 NICs, 0.5 to 1.5 % SLA violations expected."
    )
    printed = json.loads(as_json(one))["recommended"]["range"]
    assert (printed["sla_violations_pct"], printed["expected_violations_pct"]) == (None, [0.5, 1.5])


def test_no_trace_was_drawn() -> None:
    """JSON says null."""
    assert json.loads(as_json(comparison(aware(12, 2))))["recommended"]["range"] is None


def test_a_fixed_number_of_nics_has_an_answer() -> None:
    """What fits, what is left out, and what places all: 3 + 1 more NICs than there are."""
    kinds = (replace(KINDS[0], count=10), replace(KINDS[1], count=1))
    free = aware(15, 2)
    placements = [Placement(one, f"nic-{i % 15}", kinds[0] if i % 15 < 13 else kinds[1]) for i, one in enumerate(TRACE)]
    unlimited = replace(free, plan=replace(free.plan, placements=tuple(placements)))
    compared = replace(
        comparison(plan("greedy", 11, 0, rejected=60), aware(11, 0, rejected=30)),
        catalogue=Catalogue(kinds, (), (), budget_pct=2.0),
        unlimited=unlimited,
    )
    lines = list(recommendation_lines(compared))
    assert lines[0].startswith(
        "Recommended: contention-aware, tomur. It places 70 of 100 arrivals on 11 NICs, the most"
    )
    assert lines[1].startswith("It rejects 30 arrivals: n0, n1, ") and lines[1].endswith(", n19 and 10 more.")
    assert lines[2] == "With 1 more large and 3 more small, the same strategy places all arrivals."
    recommended = json.loads(as_json(compared))["recommended"]
    assert recommended["left_out"] == [f"n{i}" for i in range(30)]
    assert recommended["nics_to_add"] == {"large": 1, "small": 3}


def test_arrivals_that_no_nic_can_take_stay_left_out() -> None:
    """The same strategy with any number of NICs still rejects 2."""
    compared = replace(
        comparison(aware(10, 0, rejected=30)),
        catalogue=Catalogue((replace(KINDS[0], count=0), KINDS[1]), (), (), budget_pct=2.0),
        unlimited=aware(15, 0, rejected=2),
    )
    assert "With 1 more small, the same strategy places all but 2." in recommendation_lines(compared)

"""A budget of SLA violations chooses the risk; a chosen one is kept, and what is placed again is placed once."""

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest

from placer.evaluate.expected_violations import ExpectedViolations
from placer.inputs.catalogue import Cards, open_catalogue
from placer.model.arrival import Arrival
from placer.model.catalogue import Catalogue
from placer.model.plan import Plan
from placer.model.sla import Sla
from placer.policy.rules import BEST_FIT, LOOK_AHEAD
from placer.strategies import budget, contention_aware
from placer.strategies.budget import RISKS_TRIED, SELECTION_FACTOR, Replayed, risk_within_budget
from placer.strategies.contention_aware import ContentionAware, risk_key
from placer.testing.strategies import ToyCatalogue, catalogue
from profiles import Workload


class Risky(ToyCatalogue):
    """A catalogue whose predictor knows its errors."""

    def supports_risk(self, predictor: str) -> bool:
        return True


def _asked(budget_pct: float | None, risk: float | None = None) -> Risky:
    return Risky(catalogue().kinds, (), (), risk, (), budget_pct)


def _place(risk: float) -> Plan:
    return Plan("contention-aware", "toy", (), 0.0, risk)


def _expect(monkeypatch: pytest.MonkeyPatch, per_risk: float, spread: float) -> list[float]:
    """Let plans violate `per_risk` % per unit of risk; returns the risks that were tried."""
    tried: list[float] = []

    def expected(plan: Plan, catalogue: ToyCatalogue, predictor: str) -> ExpectedViolations:
        tried.append(plan.risk or 0.0)
        return ExpectedViolations(per_risk * (plan.risk or 0.0), spread)

    monkeypatch.setattr(budget, "expected_violations", expected)
    return tried


@pytest.mark.parametrize("budget_pct", [0.16, 1.0, 2.0, 5.0])
def test_the_largest_risk_within_the_budget_is_taken(monkeypatch: pytest.MonkeyPatch, budget_pct: float) -> None:
    """At 10 % of violations per unit of risk; and no more than five plans are made."""
    tried = _expect(monkeypatch, 10.0, 0.0)
    risk = risk_within_budget(_asked(budget_pct), "toy", _place)
    assert risk == max(one for one in RISKS_TRIED if SELECTION_FACTOR * 10.0 * one <= budget_pct)
    assert len(tried) <= 5


def test_errors_that_repeat_make_placement_more_careful(monkeypatch: pytest.MonkeyPatch) -> None:
    """A spread of the expectation leaves less of the budget."""
    _expect(monkeypatch, 10.0, 0.0)
    even = risk_within_budget(_asked(2.0), "toy", _place)
    _expect(monkeypatch, 10.0, 1.0)
    assert risk_within_budget(_asked(2.0), "toy", _place) < even


def test_violations_that_replays_did_not_expect_make_placement_more_careful(monkeypatch: pytest.MonkeyPatch) -> None:
    """Twice as many as predictions lead to expect halve what is left; fewer than expected gain nothing."""
    _expect(monkeypatch, 10.0, 0.0)
    chosen = risk_within_budget(_asked(2.0), "toy", _place)
    often = risk_within_budget(_asked(2.0), "toy", _place, lambda risk: Replayed(5_000.0, 4_000.0, 1_000.0))
    seldom = risk_within_budget(_asked(2.0), "toy", _place, lambda risk: Replayed(3_500.0, 4_000.0, 1_000.0))
    assert often == max(one for one in RISKS_TRIED if 2 * SELECTION_FACTOR * 10.0 * one <= 2.0)
    assert seldom == chosen


def test_where_no_risk_keeps_the_budget_the_smallest_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    """The plan is as careful as it can be."""
    _expect(monkeypatch, 1000.0, 0.3)
    for budget_pct in (1.0, 0.125, 0.001):
        assert risk_within_budget(_asked(budget_pct), "toy", _place) == RISKS_TRIED[-1]


def test_a_given_risk_is_used_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a budget nothing is tried."""
    tried = _expect(monkeypatch, 10.0, 0.0)
    assert risk_within_budget(_asked(None, 0.1), "toy", _place) == 0.1
    assert risk_within_budget(replace(_asked(None), risk=None), "toy", _place) == budget.DEFAULT_RISK
    assert not tried


@pytest.fixture
def opened(made_up_models: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Catalogue:
    """Three made-up NFs and a budget; the user's cache is empty."""
    monkeypatch.setattr("platformdirs.user_cache_path", lambda name: tmp_path / name)
    with ExitStack() as stack:
        found = open_catalogue(Cards(models=made_up_models, testbed="none"), stack, lambda message: None)
    return replace(found, budget_pct=2.0)


def _trace(catalogue: Catalogue, drop: float = 0.1) -> list[Arrival]:
    nfs = catalogue.main_models.nfs
    return [
        Arrival(str(at), float(at), Workload(nfs[at % len(nfs)], catalogue.default_traffic), Sla(max_drop=drop))
        for at in range(30)
    ]


def _count_plans(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    risks: list[float] = []
    place = contention_aware.ContentionAware._place_at

    def counted(self: ContentionAware, risk: float, arrivals: Sequence[Arrival], **given: bool) -> Plan:
        risks.append(risk)
        return place(self, risk, arrivals, **given)  # type: ignore[arg-type]

    monkeypatch.setattr(contention_aware.ContentionAware, "_place_at", counted)
    return risks


def test_a_trace_that_is_placed_again_is_placed_once_with_the_same_plan(
    opened: Catalogue, monkeypatch: pytest.MonkeyPatch
) -> None:
    risks = _count_plans(monkeypatch)
    first = ContentionAware(opened, "tomur").place(_trace(opened))
    tried = len(risks)
    second = ContentionAware(opened, "tomur").place(_trace(opened))
    assert (second.placements, second.risk) == (first.placements, first.risk)
    assert tried > 1 and len(risks) == tried + 1


def test_another_trace_budget_rule_or_fleet_has_its_own_risk(opened: Catalogue) -> None:
    fewer = replace(opened, kinds=tuple(replace(kind, count=3) for kind in opened.kinds))
    keys = [
        risk_key(opened, "tomur", LOOK_AHEAD, _trace(opened)),
        risk_key(opened, "tomur", LOOK_AHEAD, _trace(opened, drop=0.2)),
        risk_key(opened, "tomur", BEST_FIT, _trace(opened)),
        risk_key(replace(opened, budget_pct=1.0), "tomur", LOOK_AHEAD, _trace(opened)),
        risk_key(fewer, "tomur", LOOK_AHEAD, _trace(opened)),
    ]
    assert None not in keys and len(set(keys)) == len(keys)


def test_no_risk_is_kept_of_models_that_changed_since_they_were_loaded(opened: Catalogue) -> None:
    changed = replace(opened, models=tuple(replace(models, seed=1) for models in opened.models))
    assert risk_key(changed, "tomur", LOOK_AHEAD, _trace(opened)) is None


@pytest.mark.parametrize("content", ["", "[]", "{", '{"a": "b"}'])
def test_a_damaged_cache_is_written_anew(opened: Catalogue, tmp_path: Path, content: str) -> None:
    home = tmp_path / "nf-placer"
    home.mkdir()
    (home / "risks.json").write_text(content, encoding="utf-8")
    plan = ContentionAware(opened, "tomur").place(_trace(opened))
    assert ContentionAware(opened, "tomur").risk_for(_trace(opened)) == plan.risk
    assert (home / "risks.json").read_text(encoding="utf-8").startswith("{")

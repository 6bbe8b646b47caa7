"""A risk that was chosen is kept, and a trace that is placed again is placed once."""

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest

from placer.inputs.catalogue import Cards, open_catalogue
from placer.model.arrival import Arrival
from placer.model.catalogue import Catalogue
from placer.model.plan import Plan
from placer.model.sla import Sla
from placer.policy.rules import BEST_FIT, LOOK_AHEAD
from placer.strategies import contention_aware
from placer.strategies.contention_aware import ContentionAware, risk_key
from profiles import Workload


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

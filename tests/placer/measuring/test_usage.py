"""Which plans say what is worth measuring."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from placer.measuring import usage
from placer.model.arrival import Arrival
from placer.model.catalogue import Catalogue
from placer.model.plan import Plan
from placer.testing.toy import arrival, catalogue


class Careful:
    """Places nothing, at a risk of 5 % unless another is given."""

    def __init__(self, catalogue: Catalogue, predictor: str) -> None:
        self.risk = catalogue.risk or 0.05

    def place(self, arrivals: Sequence[Arrival]) -> Plan:
        return Plan("careful", "toy", (), 0.0, self.risk)


def test_the_plan_of_a_round_is_the_one_within_the_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    """Less careful plans and resampled traces weigh co-locations; what a round reports is the plan of the arrivals."""
    monkeypatch.setattr(usage, "ContentionAware", Careful)
    assert usage.usage_of([arrival("1", 0, "a")], catalogue(), "toy", 0).plan.risk == 0.05

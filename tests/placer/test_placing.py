"""Plans at other budgets than the requested one.

The same arrivals, models and seed are the same plan, whatever the processor."""

import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from placer import placing
from placer.evaluate.evaluation import Evaluation
from placer.model.catalogue import Catalogue
from placer.placing import Placing
from placer.progress import Progress
from placer.strategies import NamedStrategy, find_strategy
from tests.placer.evaluate.test_evaluation import KINDS, evaluation
from tests.predictor.training.test_nf import PROCESSORS, REPO


def variation_of(violated: Sequence[int], monkeypatch: pytest.MonkeyPatch) -> placing.BudgetVariation:
    """The variation at a budget of 2 % where the plans, the asked one first, violate so many of 100 SLAs."""
    left = iter(violated[1:])

    def evaluated(self: Placing, strategy: NamedStrategy, predictor: str | None, catalogue: Catalogue) -> Evaluation:
        one = evaluation(strategy.name, 10, 10.0, 9 if catalogue.risk else next(left))
        return replace(one, plan=replace(one.plan, risk=catalogue.risk or catalogue.budget_pct))

    monkeypatch.setattr(Placing, "place_and_evaluate", evaluated)
    asked = evaluation("contention-aware", 10, 10.0, violated[0])
    catalogue = Catalogue(KINDS, (), (), budget_pct=2.0)
    return Placing([], None, Progress(quiet=True)).vary_budget(asked, find_strategy("contention-aware"), catalogue)


def test_a_plan_that_keeps_its_budget_is_not_made_more_careful(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the plan without a margin is made."""
    varied = variation_of([2], monkeypatch)
    assert varied.more_careful == ()
    assert (varied.without_margin.plan.strategy, varied.without_margin.plan.risk) == (
        "contention-aware without margin", 0.5,
    )  # fmt: skip


def test_smaller_budgets_are_tried_until_one_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """A half misses the budget, a quarter keeps it, an eighth is not tried."""
    varied = variation_of([6, 4, 1], monkeypatch)
    assert [(budget, one.plan.strategy, one.violated) for budget, one in varied.more_careful] == [
        (1.0, "contention-aware at budget 1 %", 4),
        (0.5, "contention-aware at budget 0.5 %", 1),
    ]


def test_an_eighth_is_the_smallest_budget_that_is_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    assert [budget for budget, _ in variation_of([9, 9, 9, 9, 0], monkeypatch).more_careful] == [1.0, 0.5, 0.25]


OTHERS = [name for name in PROCESSORS if PROCESSORS[name]]


def planned(processor: str, folder: Path) -> bytes:
    """The plan of the trace in the repository on a processor."""
    plan = folder / "plan.csv"
    command = [sys.executable, "-m", "placer", "run", "traces/arrivals-500.csv", "--quiet", "--plan", str(plan)]
    only = ["--strategy", "contention-aware", "--predictor", "tomur"]
    compiled = {"NUMBA_CACHE_DIR": str(folder)} if "compiled" in processor else {}
    environment = os.environ | PROCESSORS[processor] | compiled
    subprocess.run([*command, *only], cwd=REPO, env=environment, check=True, capture_output=True)
    return plan.read_bytes()


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The plan on this processor."""
    return planned("as it is", tmp_path_factory.mktemp("here"))


@pytest.mark.slow
@pytest.mark.parametrize("other", OTHERS)
def test_plans_are_the_same_bytes_on_another_processor(other: str, here: bytes, tmp_path: Path) -> None:
    """A throughput or a price that differs in its last digit would decide between two NICs of equal worth."""
    assert planned(other, tmp_path) == here

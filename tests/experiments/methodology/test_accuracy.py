"""Error metrics, findings and host measurements, computed by hand."""

from collections.abc import Sequence

import numpy as np
import pytest

from experiments.methodology import host_testbed
from experiments.methodology.accuracy import errors_pct, is_worse, score_table, scores, with_means
from experiments.methodology.findings import NOT_PUBLISHED, Finding, findings_table
from experiments.methodology.host_testbed import RepeatedRuns, measure, open_host_testbed
from experiments.registry import CannotRun, Setting
from profiler.testbed import Run, Testbed, TestbedError
from profiles import InputError, Load, TestbedDescription


def test_scores_are_the_mape_and_the_shares_within_5_and_10_percent() -> None:
    """Errors of 4, 8 and 12 %: MAPE 8 %, one in three within 5 %, two in three within 10 %."""
    errors = errors_pct(np.array([96.0, 108.0, 112.0]), np.full(3, 100.0))
    assert scores(errors) == pytest.approx((8.0, 100 / 3, 200 / 3))


def test_the_verdict_names_the_worse_metrics() -> None:
    """A MAPE above and a share below the published one are worse; the same at the published decimal is not."""
    table = score_table(
        {("NAT", "tomur", "simulated"): np.array([4.0, 8.0, 12.0])}, {("NAT", "tomur"): (7.0, 33.3, 80.0)}
    )
    assert table["verdict"].tolist() == ["worse: MAPE, ±10 %"]


def test_every_testbed_has_its_own_means() -> None:
    """Errors of 2 and 4 % on one card and 9 % on another: means of 3 and 9 %, each beside the published one."""
    errors = {
        ("NAT", "tomur", "one"): np.array([2.0]),
        ("ACL", "tomur", "one"): np.array([4.0]),
        ("NAT", "tomur", "two"): np.array([9.0]),
    }
    table = with_means(score_table(errors, {}), {"tomur": (3.7, 70.8, 95.9)})
    means = table[table["nf"] == "mean"].set_index("testbed")
    assert means["mape_pct"].to_dict() == pytest.approx({"one": 3.0, "two": 9.0})
    assert means["published_mape_pct"].tolist() == [3.7, 3.7]


@pytest.mark.parametrize(
    ("ours", "published", "higher_is_better", "worse"),
    [
        (1.04, 1.0, False, False),  # the same at one decimal
        (1.06, 1.0, False, True),
        (99.0, 100.0, True, True),
        (5.0, float("nan"), False, False),  # no published number
    ],
)
def test_worse_is_decided_at_the_published_decimal(
    ours: float, published: float, higher_is_better: bool, worse: bool
) -> None:
    """Numbers are compared at one decimal, and only where one is published."""
    assert is_worse(ours, published, higher_is_better=higher_is_better) == worse


@pytest.mark.parametrize(
    ("finding", "verdict"),
    [
        (Finding("an error", 5.0, 4.0, kind="error"), "worse"),
        (Finding("an error", 3.0, 4.0, kind="error"), ""),
        (Finding("an effect", 27.0, 30.0), ""),  # within a quarter
        (Finding("an effect", 20.0, 30.0), "differs"),
        (Finding("no effect", 1.5, 0.0), ""),  # within two points
        (Finding("no effect", 2.5, 0.0), "differs"),
        (Finding("drawn only", 5.0, NOT_PUBLISHED), ""),
    ],
)
def test_an_error_may_be_smaller_and_an_effect_must_be_the_same(finding: Finding, verdict: str) -> None:
    """Errors are compared at the published decimal, effects within a tolerance."""
    assert finding.verdict == verdict


def test_the_table_has_a_row_per_finding() -> None:
    """Each row has our number, the published one, the unit and the verdict."""
    (row,) = findings_table([Finding("drop", 20.0, 30.0)]).to_dict("records")
    assert row == {"quantity": "drop", "ours": 20.0, "published": 30.0, "unit": "%", "verdict": "differs"}


TINY = Setting(scale=0.1)


class Noisy(Testbed):
    """A testbed whose measurements never reach the standard error."""

    def describe(self) -> TestbedDescription:
        raise NotImplementedError

    def run(self, loads: Sequence[Load], *, noise: bool = True, seed: int | None = None) -> Run:
        raise TestbedError("too-noisy: standard error 3 %")


def test_the_standard_error_is_that_of_the_mean() -> None:
    """Of 1, 2 and 3 the mean is 2 with a standard error of 1/sqrt(3); of a single value it is 0."""
    runs = RepeatedRuns(np.array([[1.0], [2.0], [3.0]]))
    assert runs.mean[0] == 2.0 and runs.standard_error[0] == pytest.approx(1 / np.sqrt(3))
    assert RepeatedRuns(np.array([[1.0]])).standard_error[0] == 0.0


def test_an_experiment_cannot_run_without_the_host_testbed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The reason has the hint how to build it."""

    def refuse(spec: str) -> Testbed:
        raise InputError.of("--testbed", "host: is not built", hint="make nfs")

    monkeypatch.setattr(host_testbed, "open_testbed", refuse)
    with pytest.raises(CannotRun, match=r"is not built \(make nfs\)"):
        open_host_testbed(TINY)


def test_an_experiment_cannot_run_on_a_noisy_machine() -> None:
    """The reason repeats the error of the testbed."""
    with pytest.raises(CannotRun, match="standard error 3 %"):
        measure(Noisy(), [[]], TINY)

"""The benchmark of fitted models: what it counts, and what peers receive."""

import numpy as np
import pytest

from benches.fitting import CurveScore, run, scored, summary
from benches.fitting_peers import TOOLS, CurveTask, FoundCurve, found_by
from profiles import InputError
from tests.predictor.fitting.random_curves import random_curve

SEVERAL = 3  # seed of a curve with several breakpoints


def test_the_truth_is_found_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    """A tool that knows the curve has all breakpoints, no other, and no error."""
    curve = random_curve(SEVERAL)
    monkeypatch.setitem(TOOLS, "truth", lambda task: FoundCurve(curve.breakpoints, curve.truth))
    one = scored("truth", curve, 0)
    assert one.exact and one.hits == one.found == len(curve.breakpoints) > 1 and one.error_pct == 0
    assert len(one.jumps) + len(one.bends) == len(curve.breakpoints)


def test_one_breakpoint_too_many_is_not_exact(monkeypatch: pytest.MonkeyPatch) -> None:
    """Recall stays, precision falls."""
    curve = random_curve(SEVERAL)
    doubled = [curve.breakpoints[0], *curve.breakpoints]
    monkeypatch.setitem(TOOLS, "twice", lambda task: FoundCurve(doubled, curve.truth))
    figures = summary([scored("twice", curve, 0)])
    assert (figures["recall"], figures["exact"]) == (1.0, 0.0)
    assert figures["precision"] == round(len(curve.breakpoints) / len(doubled), 3)


def test_a_failure_finds_nothing_and_has_an_infinite_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(task: CurveTask) -> FoundCurve:
        raise ValueError("singular matrix")

    monkeypatch.setitem(TOOLS, "broken", fails)
    (row,) = run(count=2, seed=SEVERAL, tool=["broken"]).to_dict("records")
    assert (row["failures"], row["recall"], row["exact"]) == (2, 0.0, 0.0) and row["median error, %"] == np.inf


def test_recall_of_jumps_and_of_bends_are_apart() -> None:
    """Two of three jumps, none of one bend; four found in all."""
    figures = summary([CurveScore((True, True, False), (False,), 4, 1.0, 0.1, False)])
    assert (figures["recall"], figures["of jumps"], figures["of bends"]) == (0.5, 0.667, 0.0)
    assert figures["precision"] == 0.5


def test_an_unknown_tool_is_refused() -> None:
    with pytest.raises(InputError, match="'pwfl' is no tool"):
        run(count=1, tool=["pwfl"])


def test_tools_that_are_not_installed_are_left_out(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def missing(task: CurveTask) -> FoundCurve:
        raise ImportError

    monkeypatch.setitem(TOOLS, "absent", missing)
    assert len(run(count=1, tool=["absent"])) == 0 and capsys.readouterr().err == "absent: not installed\n"


@pytest.mark.parametrize("name", ["pwlf-fast", "pwlf"])
@pytest.mark.parametrize("x_log", [False, True])
def test_peers_find_a_bend_on_either_axis(name: str, x_log: bool) -> None:
    """Two lines without noise, on a linear axis and of ln(x); they receive the number of breakpoints."""
    pytest.importorskip("pwlf", reason="pwlf is not installed")
    x = np.geomspace(1.0, 1000.0, 40) if x_log else np.linspace(1.0, 1000.0, 40)
    bend = 100.0 if x_log else 400.0
    along = np.log(x / bend) if x_log else (x - bend) / bend
    found = found_by(TOOLS[name], CurveTask(x, 50 + np.maximum(along, 0) * 20 - along, x_log, 1))
    assert found is not None and found.breakpoints == pytest.approx([bend], rel=0.02)
    assert found.predict(np.array([bend])) == pytest.approx([50.0], abs=0.2)

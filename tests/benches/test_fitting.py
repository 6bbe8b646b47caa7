"""The benchmark of fitted models: what it counts."""

from benches.fitting import CurveScore, score, summary
from tests.predictor.fitting.random_curves import random_curve

SEVERAL = 3  # seed of a curve with several breakpoints


def test_the_truth_is_found_whole() -> None:
    """Who knows the curve has all breakpoints, no other, and no error."""
    curve = random_curve(SEVERAL)
    one = score(curve, curve.breakpoints, curve.truth)
    assert one.exact and one.hits == one.found == len(curve.breakpoints) > 1 and one.error_pct == 0
    assert len(one.jumps) + len(one.bends) == len(curve.breakpoints)


def test_one_breakpoint_too_many_is_not_exact() -> None:
    """Recall stays, precision falls."""
    curve = random_curve(SEVERAL)
    doubled = [curve.breakpoints[0], *curve.breakpoints]
    figures = summary([score(curve, doubled, curve.truth)])
    assert (figures["recall"], figures["exact"]) == (1.0, 0.0)
    assert figures["precision"] == round(len(curve.breakpoints) / len(doubled), 3)


def test_recall_of_jumps_and_of_bends_are_apart() -> None:
    """Two of three jumps, none of one bend; four found in all."""
    figures = summary([CurveScore((True, True, False), (False,), 4, 1.0, 0.1)])
    assert (figures["recall"], figures["of jumps"], figures["of bends"]) == (0.5, 0.667, 0.0)
    assert figures["precision"] == 0.5

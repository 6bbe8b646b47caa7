"""Fitted models made by hand: every family, several segments, and names that no language takes as they are."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

from predictor.fitting.fitted_model import CurveBreak, CurveSegment, FittedModel

Part = tuple[str, tuple[float, ...]]  # family and parameters of a segment


def made_up(
    edges: tuple[float, ...],
    *parts: Part,
    x: str = "entries",
    y: str = "cycles/packet",
    setting: Mapping[str, float] | None = None,
    breaks: Sequence[CurveBreak] = (),
    points: int = 120,
    errors: tuple[float, float | None, float] = (0.73, 0.91, 0.9),
    of_segments: Sequence[tuple[int, float]] = (),
) -> FittedModel:
    """A model of one segment between each two edges. `breaks`: jumps with an interval of 5 % to either side where left
    out. `errors`: sMAPE of the fit and at points left out, and noise (%). `of_segments`: points and sMAPE (%) of each.
    """
    segments = tuple(
        CurveSegment(start, end, family, parameters, *known)
        for (start, end), (family, parameters), known in zip(
            pairwise(edges), parts, of_segments or [(31, 0.41)] * len(parts), strict=True
        )
    )
    jumps = [CurveBreak(at, 0.95 * at, 1.05 * at, 12.1) for at in edges[1:-1]]
    smape_pct, left_out_pct, noise_pct = errors
    return FittedModel(
        x, y, points, segments, tuple(breaks or jumps), smape_pct, left_out_pct, noise_pct, 0.8, setting or {}
    )


FOUR_SEGMENTS = made_up(
    (1.0, 4096.0, 20000.5, 100000.0, 1048576.0),
    ("constant", (123.4,)),
    ("quadratic", (200.1, -3e-3, 1e-7)),
    ("inverse-log", (0.001, 2e-4)),
    ("exp", (500.0, -123.0, -1.234567890123e-6)),
)
ONE_SEGMENT = {
    "constant": made_up((0.0, 9.0), ("constant", (0.1,))),
    "linear": made_up((0.0, 1000.0), ("linear", (1 / 3, 2 / 3))),
    "quadratic": made_up((-50.0, 50.0), ("quadratic", (0.1, -0.2, 0.3))),
    "degree-3": made_up((0.0, 300.0), ("degree-3", (1000.1, -30.0, 0.1, 0.01))),
    "degree-4": made_up((0.0, 30.0), ("degree-4", (7.0, 0.0, 0.1, -0.07, 0.01))),
    "degree-5": made_up((0.0, 30.0), ("degree-5", (1e5, 1e-3, -1e-7, 1.1, -0.7, 0.01))),
    "log": made_up((1.0, 1e12), ("log", (1e7, -3e5))),
    "inverse": made_up((1.0, 5e7), ("inverse", (1e-6, 1.0))),
    "exp": made_up((0.0, 1e6), ("exp", (0.0, 1e-3, 1e-5))),
    "power": made_up((1.0, 1e6), ("power", (10.0, 0.3, 0.7))),
    "inverse-linear": made_up((0.0, 1e5), ("inverse-linear", (1e-3, 1e-4))),
    "inverse-quadratic": made_up((0.0, 1e3), ("inverse-quadratic", (1e-3, 0.0, 1e-5))),
    "inverse-log": made_up((1.0, 1e6), ("inverse-log", (1e-3, 1e-4))),
    "inverse-inverse": made_up((1.0, 1e4), ("inverse-inverse", (0.1, 3.0))),
    "inverse-exp": made_up((0.0, 1e3), ("inverse-exp", (0.1, 3.0, -0.01))),
}
"""By family."""
UNIX_TIMES = replace(
    made_up((1.7e9, 1.7e9 + 3600), ("quadratic", (1.0, 2e-3, 3e-6)), x="time"),
    segments=(CurveSegment(1.7e9, 1.7e9 + 3600, "quadratic", (1.0, 2e-3, 3e-6), 31, 0.41, 1.7e9),),
)
"""A formula of the seconds since the first measurement."""
PER_SETTING = tuple(
    made_up((1.0, 100.0), ("linear", (size, 0.1)), setting={"packet_size": size, "flows": -0.5})
    for size in (64.0, 1500.0)
)
EVERY_MODEL = {"four segments": FOUR_SEGMENTS, "unix times": UNIX_TIMES, **ONE_SEGMENT}
HOSTILE_NAMES = (
    "lambda", "entries", "log", "double", "cycles/packet", "64 B", "µs", "", " ", "x*/ int main() /*", '"""', "a\\",
    "a\nimport os", "%s{}", "y0", "größe", "????", "e" * 500, "value", "_", "match_kind", "main",
)  # fmt: skip

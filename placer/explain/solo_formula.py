"""The formula of an NF's throughput alone along one traffic attribute, and what happens at its breakpoints. It is the
fit of the NF's own runs where training made one for this traffic, else a fit of what the solo model predicts."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from predictor import Models, Predictor
from predictor.contention.nf_model import NfModel
from predictor.fitting.fit import fit
from predictor.fitting.fitted_model import CurveBreak, FittedModel
from predictor.fitting.points import MeasuredCurve
from profiles import ATTRIBUTES, TrafficProfile, Workload
from profiles.arrays import Floats
from profiles.profile import KPPS_COLUMN

FITTED_POINTS = 48  # predictions to which a formula is fitted
READING_NOISE = 0.005
"""Relative noise with which predictions are read: a fit of a smooth curve would split it into ever finer segments."""
STEADY_CHANGE = 0.01  # a change of throughput over a whole segment that is no more than its noise
AROUND_INTERVAL = 0.1
"""Relative distance from the interval at which the bottleneck is another, when that is why throughput changes."""
SLOPE_SHARE = 0.25  # share of a segment, from its breakpoint, over which its slope is taken


@dataclass(frozen=True)
class Turn:
    """What happens at a breakpoint.

    `at`, `low`, `high`: the value of the attribute; with its 90 % interval, None where predictions were fitted.
    `before`, `after`: relative change of throughput over a range as wide as that from one end of the attribute's to the
    other, on each side (1 is all of it); 0 where it is steady. `jump`: by how much throughput changes at once (kpps).
    `cause`: why, where the models know it: `cache`, or the resource that becomes the bottleneck of the NF alone; else
    None."""

    at: float
    low: float | None
    high: float | None
    before: float
    after: float
    jump: float
    cause: str | None


@dataclass(frozen=True)
class SoloFormula:
    """Throughput alone along the attribute along which it varies most. `model`: the formula. `traffic`: for which it
    holds, apart from the attribute. `measured`: whether it was fitted to runs of the NF alone, rather than to what the
    solo model predicts. `turns`: what happens at each breakpoint. `cache_mb`: the last-level cache; None where the
    testbed does not state it."""

    model: FittedModel
    traffic: Mapping[str, float]
    measured: bool
    turns: tuple[Turn, ...]
    cache_mb: float | None = None


def solo_formula(
    models: Models, predictor: Predictor, workload: Workload, ranges: Mapping[str, tuple[float, float]]
) -> SoloFormula | None:
    """The formula of the NF at this traffic, along one of the attributes with these ranges; None where none matters."""
    nf = models.models[workload.nf]
    curves = {name: _predict(predictor, workload, name, *bounds) for name, bounds in ranges.items()}
    spread = {name: float(np.ptp(kpps) / kpps.max()) for name, (_, kpps) in curves.items()}
    if not spread or max(spread.values()) < STEADY_CHANGE:
        return None
    attribute = max(spread, key=lambda name: spread[name])
    measured = _measure(nf, workload.traffic, attribute)
    x, kpps = curves[attribute]
    model = measured or _of_predictions(attribute, x, kpps)
    rest = {name: value for name, value in workload.traffic.as_dict().items() if name != attribute}
    cache = models.testbed.nic.llc_bytes if models.testbed else None
    cache_mb = cache / 1e6 if cache else None
    turns = [
        _turn(model, number, measured is not None, _cause(nf, predictor, workload, attribute, one, cache_mb))
        for number, one in enumerate(model.breakpoints)
    ]
    return SoloFormula(model, rest, measured is not None, tuple(turns), cache_mb)


def _measure(nf: NfModel, traffic: TrafficProfile, attribute: str) -> FittedModel | None:
    """The fit of the NF's runs, where it is along this attribute and of this traffic."""
    found = nf.solo.fit_of_runs if nf.solo else None
    if found is None or not isinstance(found.curve, FittedModel) or found.curve.x != attribute or nf.accelerators:
        return None
    values = traffic.as_dict()
    return found.curve if all(values[name] == value for name, value in found.curve.setting.items()) else None


def _predict(
    predictor: Predictor, workload: Workload, attribute: str, low: float, high: float
) -> tuple[Floats, Floats]:
    """Values of the attribute, and throughput alone there (kpps)."""
    even = (
        np.geomspace(max(low, 1.0), max(high, 1.0), FITTED_POINTS)
        if attribute == "flows"
        else np.linspace(low, high, FITTED_POINTS)
    )
    return even, predictor.solo([_at(workload, attribute, value) for value in even.tolist()])


def _of_predictions(attribute: str, x: Floats, kpps: Floats) -> FittedModel:
    noise = 1.0 + READING_NOISE * np.random.default_rng(0).standard_normal(len(x))
    return fit(MeasuredCurve(attribute, KPPS_COLUMN, x, kpps * noise))


def _turn(model: FittedModel, number: int, measured: bool, cause: str | None) -> Turn:
    point = model.breakpoints[number]
    before, after = (_slope(model, number + side, point.at) for side in (0, 1))
    low, high = (point.low, point.high) if measured else (None, None)
    return Turn(point.at, low, high, before, after, point.jump, cause)


def _slope(model: FittedModel, number: int, at: float) -> float:
    """Relative change of a segment near one of its ends, per range of the axis; 0 where the segment is steady."""
    segment = model.segments[number]
    logarithmic = model.start > 0 and model.x == "flows"
    axis = np.log if logarithmic else np.asarray
    start, end, first, last = (float(axis(value)) for value in (segment.start, segment.end, model.start, model.end))
    here = float(axis(at))
    there = here + SLOPE_SHARE * ((end - start) if here == start else (start - end))
    x = np.array([here, there, start, end])
    kpps = segment.predict(np.exp(x) if logarithmic else x)
    if abs(kpps[3] - kpps[2]) <= STEADY_CHANGE * np.abs(kpps).max():
        return 0.0
    return float((kpps[1] - kpps[0]) / (there - here) * (last - first) / np.abs(kpps).max())


def _cause(
    nf: NfModel, predictor: Predictor, workload: Workload, attribute: str, point: CurveBreak, cache_mb: float | None
) -> str | None:
    """Whether the working set outgrows the cache within the interval, or another resource becomes the bottleneck."""
    ends = [_at(workload, attribute, value) for value in (point.low, point.high)]
    if cache_mb and nf.solo:
        below, above = nf.solo.working_set(np.array([end.traffic.as_tuple() for end in ends])).tolist()
        if below <= cache_mb < above:
            return "cache"
    ends = [
        _at(workload, attribute, value)
        for value in (point.low * (1 - AROUND_INTERVAL), point.high * (1 + AROUND_INTERVAL))
    ]
    before, after = (answers[0].bottleneck for answers in predictor.predict([[end] for end in ends]))
    return after if before != after else None


def _at(workload: Workload, attribute: str, value: float) -> Workload:
    traffic: dict[str, float] = workload.traffic.as_dict() | {attribute: value}
    return replace(workload, traffic=TrafficProfile.from_mapping({name: traffic[name] for name in ATTRIBUTES}))

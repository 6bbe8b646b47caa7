"""Diagnosis: the bottleneck of an NF, and where along its traffic the bottleneck changes (Tomur, section 7.5.2)."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice, pairwise

import numpy as np

from placer.explain.solo_formula import SoloFormula
from placer.model.nic_kind import NicKind
from predictor import Predictor
from profiler.simulated import SimulatedTestbed
from profiler.simulated.testbed import Account
from profiler.testbed import Testbed
from profiles import ATTRIBUTES, TrafficProfile, Workload

SWEEP_STEPS = 12
BISECTION_STEPS = 12
"""Bisection steps, which locate a shift to 1/4096 of the distance between two readings."""


@dataclass(frozen=True)
class Reading:
    """The bottleneck of an NF at one traffic.

    `traffic`: traffic of the NF. `predicted_kpps`, `solo_kpps`: predicted throughput in the co-location and alone.
    `drops`: per resource, the throughput drop (kpps) that contention for it alone would cause. `bottleneck`: the
    predicted bottleneck: `cpu`, `memory` or an accelerator. `true_kpps`, `true_bottleneck`: throughput and bottleneck
    on the simulated card; None on other testbeds, which do not know bottlenecks. `capacity_kpps`, `true_capacity_kpps`:
    what the NF could carry in the co-location, beside what is offered to the others, as predicted and on the simulated
    card; None where more is offered to it than that."""

    traffic: TrafficProfile
    predicted_kpps: float
    solo_kpps: float
    drops: Mapping[str, float]
    bottleneck: str
    true_kpps: float | None = None
    true_bottleneck: str | None = None
    capacity_kpps: float | None = None
    true_capacity_kpps: float | None = None


@dataclass(frozen=True)
class CoreNeed:
    """What an NF carries of its load on a number of cores. `cores`: the number. `capacity_kpps`: what it could carry on
    so many, beside its neighbours. `share`: that, relative to the offered rate: at this share of its load it would need
    no more cores. `fits`: whether the NIC has so many cores beside the neighbours."""

    cores: int
    capacity_kpps: float
    share: float
    fits: bool


@dataclass(frozen=True)
class Shift:
    """The value of an attribute at which the predicted bottleneck changes."""

    attribute: str
    at: float
    before: str
    after: str


@dataclass(frozen=True)
class Diagnosis:
    """The bottleneck of an NF in a co-location.

    `workload`, `neighbours`: the NF with its traffic, and the NFs co-located with it. `reading`: the bottleneck at that
    traffic. `along`: per attribute, readings from the low to the high end of its range, the rest of the traffic
    unchanged. `shifts`: where the bottleneck changes, attribute by attribute. `solo`: the formula of its throughput
    alone; None where that was not asked for, or is constant. `needs`: what it carries of its load on each number of
    cores, ascending; empty where more is offered than it can carry."""

    workload: Workload
    neighbours: tuple[Workload, ...]
    reading: Reading
    along: Mapping[str, tuple[Reading, ...]]
    shifts: tuple[Shift, ...]
    solo: SoloFormula | None = None
    needs: tuple[CoreNeed, ...] = ()


def core_needs(
    predictor: Predictor, kind: NicKind, workload: Workload, neighbours: Sequence[Workload]
) -> tuple[CoreNeed, ...]:
    """What an NF at an offered rate carries on each number of cores that it may be given on this kind of NIC."""
    choices = kind.choices(replace(workload, cores=0))
    predictions = predictor.predict([(choice, *neighbours) for choice in choices])
    capacities = [answers[0].capacity_kpps for answers in predictions]
    return tuple(
        CoreNeed(kind.cores_for(choice), kpps, kpps / workload.rate_kpps, kind.fits((choice, *neighbours)))
        for choice, kpps in zip(choices, capacities, strict=True)
    )


def choose_cores(needs: Sequence[CoreNeed]) -> int:
    """The fewest cores that carry the load; else the most that the NIC has, and 0 where it has none."""
    able = [need for need in needs if need.fits]
    enough = [need.cores for need in able if need.share >= 1.0]
    return min(enough, default=max((need.cores for need in able), default=0))


def diagnose(
    predictor: Predictor,
    workload: Workload,
    neighbours: Sequence[Workload],
    ranges: Mapping[str, tuple[float, float]],
    *,
    testbed: Testbed | None = None,
    steps: int = SWEEP_STEPS,
) -> Diagnosis:
    """The bottleneck of an NF at its traffic, then along every attribute. `predictor`: predicts throughput, drops and
    bottleneck. `workload`, `neighbours`: the NF with its traffic, and the NFs co-located with it. `ranges`: low and
    high end per traffic attribute. `testbed`: the simulated card also knows true bottlenecks; others are not queried.
    `steps`: readings per attribute."""
    card = testbed if isinstance(testbed, SimulatedTestbed) else None

    def read(workloads: Sequence[Workload]) -> list[Reading]:
        return readings_of(predictor, workloads, neighbours, card)

    values = {name: steps_between(name, *ranges[name], steps) for name in ATTRIBUTES if name in ranges}
    here, *readings = read([workload, *(_with(workload, name, value) for name in values for value in values[name])])
    found = iter(readings)
    along = {name: tuple(islice(found, len(values[name]))) for name in values}
    # where the bottleneck shifts is the predictor's answer: a card that simulates is not asked again
    shifts = _shifts(lambda workloads: readings_of(predictor, workloads, neighbours), workload, along)
    return Diagnosis(workload, tuple(neighbours), here, along, tuple(shifts))


def readings_of(
    predictor: Predictor,
    workloads: Sequence[Workload],
    neighbours: Sequence[Workload],
    card: SimulatedTestbed | None = None,
) -> list[Reading]:
    """A reading of each workload when it shares a NIC with the neighbours."""
    co_locations = [(workload, *neighbours) for workload in workloads]
    predictions = [answers[0] for answers in predictor.predict(co_locations)]
    truths = _true_accounts(card, co_locations)
    offered = not all(workload.is_saturated for workload in workloads)
    capacities = _true_accounts(card if offered else None, [(each.saturated, *neighbours) for each in workloads])
    return [
        Reading(
            workload.traffic,
            prediction.throughput_kpps,
            prediction.solo_kpps,
            prediction.drops,
            prediction.bottleneck,
            truth.throughput_kpps if truth else None,
            truth.bottleneck if truth else None,
            None if workload.is_saturated else prediction.capacity_kpps,
            capacity.throughput_kpps if capacity else None,
        )
        for workload, prediction, truth, capacity in zip(workloads, predictions, truths, capacities, strict=True)
    ]


def _true_accounts(
    card: SimulatedTestbed | None, co_locations: Sequence[Sequence[Workload]]
) -> Sequence[Account | None]:
    """Where the first NF of each co-location spends its time on the card; None without one."""
    return [answers[0] for answers in card.account(co_locations)] if card else [None] * len(co_locations)


def steps_between(attribute: str, low: float, high: float, steps: int) -> list[float]:
    """Whole numbers from low to high: flows spaced evenly in their logarithm, other attributes evenly."""
    if attribute == "flows":
        values = np.geomspace(max(low, 1.0), max(high, 1.0), steps)
    else:
        values = np.linspace(low, high, steps)
    return sorted({float(value) for value in np.round(values)})


def _shifts(
    read: Callable[[Sequence[Workload]], list[Reading]], workload: Workload, along: Mapping[str, Sequence[Reading]]
) -> Iterator[Shift]:
    """Between readings of different bottlenecks, by bisection; all intervals are halved by one batch of readings."""
    between = [
        (attribute, first, last)
        for attribute, readings in along.items()
        for first, last in pairwise(readings)
        if first.bottleneck != last.bottleneck
    ]
    low = [first.traffic.as_dict()[attribute] for attribute, first, _ in between]
    high = [last.traffic.as_dict()[attribute] for attribute, _, last in between]
    after = [last.bottleneck for *_, last in between]
    for _ in range(BISECTION_STEPS if between else 0):
        middles = [(below + above) / 2 for below, above in zip(low, high, strict=True)]
        workloads = [_with(workload, name, middle) for (name, *_), middle in zip(between, middles, strict=True)]
        for at, (middle, reading) in enumerate(zip(middles, read(workloads), strict=True)):
            if reading.bottleneck == between[at][1].bottleneck:
                low[at] = middle
            else:
                high[at], after[at] = middle, reading.bottleneck
    for (attribute, first, _), above, bottleneck in zip(between, high, after, strict=True):
        yield Shift(attribute, above, first.bottleneck, bottleneck)


def _with(workload: Workload, attribute: str, value: float) -> Workload:
    return replace(workload, traffic=TrafficProfile.from_mapping(workload.traffic.as_dict() | {attribute: value}))

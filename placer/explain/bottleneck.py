"""Diagnosis: what binds an NF in its company, and where along its traffic that changes (Tomur, section 7.5.2)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from predictor import Predictor
from profiler.simulated import SimulatedTestbed
from profiler.testbed import Testbed
from profiles import ATTRIBUTES, TrafficProfile, Workload

STEPS = 12
HALVINGS = 12
"""After which the place of a shift is known to a four-thousandth of a step."""


@dataclass(frozen=True)
class Reading:
    """What binds an NF at one traffic.

    Parameters
    ----------
    traffic
        Of the NF.
    predicted_kpps, solo_kpps
        In its company and alone, as the predictor has it.
    drops
        Per resource, the throughput (kpps) that contention for it alone would cost.
    bottleneck
        The resource that binds, as the predictor has it.
    true_kpps, true_bottleneck
        The same as the testbed's own account has it; None where there is none.
    """

    traffic: TrafficProfile
    predicted_kpps: float
    solo_kpps: float
    drops: Mapping[str, float]
    bottleneck: str
    true_kpps: float | None = None
    true_bottleneck: str | None = None


@dataclass(frozen=True)
class Shift:
    """Along an attribute, the value at which the bottleneck becomes another, as the predictor has it."""

    attribute: str
    at: float
    before: str
    after: str


@dataclass(frozen=True)
class Diagnosis:
    """An NF in its company.

    Parameters
    ----------
    workload, beside
        The NF with its traffic, and who else is there.
    here
        At that traffic.
    along
        Per attribute, readings from the low to the high end of its range, the rest of the traffic as it is.
    shifts
        Where the bottleneck changes, attribute by attribute.
    """

    workload: Workload
    beside: tuple[Workload, ...]
    here: Reading
    along: Mapping[str, tuple[Reading, ...]]
    shifts: tuple[Shift, ...]


class Diagnostician:
    """Reads bottlenecks off a predictor, and off a testbed that keeps account.

    Parameters
    ----------
    predictor
        Who predicts.
    testbed
        Who may know better: the simulated card keeps account of where the time of a packet goes. None: nobody does.
    """

    def __init__(self, predictor: Predictor, testbed: Testbed | None = None) -> None:
        self._predictor = predictor
        self._card = testbed if isinstance(testbed, SimulatedTestbed) else None

    def diagnose(
        self,
        workload: Workload,
        beside: Sequence[Workload],
        ranges: Mapping[str, tuple[float, float]],
        *,
        steps: int = STEPS,
    ) -> Diagnosis:
        """The NF at its traffic, then along every attribute of `ranges`, `steps` readings each."""
        along = {}
        shifts: list[Shift] = []
        for attribute in (name for name in ATTRIBUTES if name in ranges):
            values = spaced(attribute, *ranges[attribute], steps)
            along[attribute] = tuple(self.read([_with(workload, attribute, value) for value in values], beside))
            shifts += self._shifts(workload, beside, attribute, along[attribute])
        return Diagnosis(workload, tuple(beside), self.read([workload], beside)[0], along, tuple(shifts))

    def read(self, workloads: Sequence[Workload], beside: Sequence[Workload]) -> list[Reading]:
        """A reading of each workload in the same company."""
        co_locations = [(workload, *beside) for workload in workloads]
        predictions = [answers[0] for answers in self._predictor.predict(co_locations)]
        accounts = (
            [answers[0] for answers in self._card.account(co_locations)] if self._card else [None] * len(co_locations)
        )
        return [
            Reading(
                workload.traffic,
                told.throughput_kpps,
                told.solo_kpps,
                told.drops,
                told.bottleneck,
                account.throughput_kpps if account else None,
                account.bottleneck if account else None,
            )
            for workload, told, account in zip(workloads, predictions, accounts, strict=True)
        ]

    def _shifts(
        self, workload: Workload, beside: Sequence[Workload], attribute: str, readings: Sequence[Reading]
    ) -> Iterator[Shift]:
        """Between readings whose bottlenecks differ, by halving."""
        for first, last in pairwise(readings):
            if first.bottleneck == last.bottleneck:
                continue
            before, (low, high) = (
                first.bottleneck,
                (first.traffic.as_dict()[attribute], last.traffic.as_dict()[attribute]),
            )
            after = last.bottleneck
            for _ in range(HALVINGS):
                middle = (low + high) / 2
                (told,) = self.read([_with(workload, attribute, middle)], beside)
                if told.bottleneck == before:
                    low = middle
                else:
                    high, after = middle, told.bottleneck
            yield Shift(attribute, high, before, after)


def spaced(attribute: str, low: float, high: float, steps: int) -> list[float]:
    """Values over a range, ends included: flows evenly in their logarithm, other attributes evenly, all whole."""
    if attribute == "flows":
        values = np.geomspace(max(low, 1.0), max(high, 1.0), steps)
    else:
        values = np.linspace(low, high, steps)
    return sorted({float(value) for value in np.round(values)})


def _with(workload: Workload, attribute: str, value: float) -> Workload:
    return replace(workload, traffic=TrafficProfile.from_mapping(workload.traffic.as_dict() | {attribute: value}))

"""Causes: why a class of NICs does not take an arrival, and why capacity idles."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from profiles import CoLocation


class Cause(StrEnum):
    """Everything but a contended resource that keeps NFs off a NIC; the value is what JSON output has.

    `placer.report.text.explanation` words them for people.
    """

    NOT_HOSTED = "not hosted"
    CORES = "cores"
    LINE_RATE = "line-rate"
    RATE = "rate"
    ARRIVAL_SLA = "SLA of the arrival"
    TENANT_SLA = "SLA of a tenant"
    SAMPLED_SLA = "an SLA, on the NICs that were checked"
    OUT_OF_SERVICE = "out of service"
    SLA_ALONE = "SLA of the arrival even alone"
    NONE_LEFT = "none left"
    TIGHT_SLA = "SLA too tight to share"
    ORDER = "order of arrival"
    SPREAD = "spread"
    APART = "apart"
    TOGETHER = "together"
    POOL = "pool"
    MOST_PER_NIC = "most_per_nic"
    MOST_PER_DOMAIN = "most_per_domain"
    EXCLUSIVE = "exclusive"
    CONSTRAINT = "another constraint"
    PRIORITY = "priority"

    @classmethod
    def of(cls, constraint: str) -> Cause:
        """The cause that a constraint is."""
        try:
            return cls(constraint)
        except ValueError:
            return cls.CONSTRAINT


@dataclass(frozen=True, slots=True)
class Reason:
    """Why one class of NICs does not take an arrival.

    `co_location`: what runs on each; empty where the class has various co-locations. `nics`: how many there are; 0 for
    a NIC that would have to be opened. `met`: where a constraint bars them, the ids of the instances that it meets.
    """

    nic_model: str
    co_location: CoLocation
    nics: int
    cause: Cause
    met: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Tally:
    """NICs in use, those with too few cores for an arrival, and those that fit; None where only some were checked."""

    nics: int
    too_few_cores: int
    fit: int | None

    def __add__(self, other: Tally) -> Tally:
        fit = None if self.fit is None or other.fit is None else self.fit + other.fit
        return Tally(self.nics + other.nics, self.too_few_cores + other.too_few_cores, fit)

    def __str__(self) -> str:
        if self.fit is None:
            return f"{self.nics} NICs in use: {self.too_few_cores} have too few cores"
        violating = self.nics - self.too_few_cores - self.fit
        return (
            f"{self.fit} of {self.nics} NICs in use fit: {self.too_few_cores} have too few cores, "
            f"{violating} would violate an SLA"
        )

"""Reasons: what keeps a newcomer out of a class of NICs."""

from __future__ import annotations

from dataclasses import dataclass

from placer.model.oracle import CoLocation

NOT_HOSTED = "the NF does not run on this model"
CORES = "too few cores"
OWN_SLA = "the newcomer would miss its SLA"
OTHERS_SLA = "a tenant would miss its SLA"
SOME_SLA = "somebody would miss the SLA, on those that were asked about"
OUT_OF_SERVICE = "failed or drained"
ALONE = "the newcomer would miss its SLA even alone"
NONE_LEFT = "no NIC of this kind is left"


@dataclass(frozen=True, slots=True)
class Reason:
    """Why one class of NICs does not take the newcomer.

    Parameters
    ----------
    nic_model
        Their model.
    company
        What runs on each; empty where the class is not of one company.
    nics
        How many they are; 0 for a NIC that would have to be opened.
    cause
        What keeps the newcomer out.
    """

    nic_model: str
    co_location: CoLocation
    nics: int
    cause: str


@dataclass(frozen=True, slots=True)
class Tally:
    """NICs in use, those with too few cores for a newcomer, and those that fit; None where only a few were asked."""

    nics: int
    too_few_cores: int
    fit: int | None

    def __add__(self, other: Tally) -> Tally:
        fit = None if self.fit is None or other.fit is None else self.fit + other.fit
        return Tally(self.nics + other.nics, self.too_few_cores + other.too_few_cores, fit)

    def __str__(self) -> str:
        if self.fit is None:
            return f"{self.nics} NICs in use: {self.too_few_cores} have too few cores"
        broken = self.nics - self.too_few_cores - self.fit
        return (
            f"{self.fit} of {self.nics} NICs in use fit: {self.too_few_cores} have too few cores, "
            f"on {broken} somebody would miss the SLA"
        )

"""Reasons: what keeps a newcomer out of a class of NICs."""

from __future__ import annotations

from dataclasses import dataclass

from placer.oracle import Company

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
    company: Company
    nics: int
    cause: str

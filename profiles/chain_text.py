"""Chains as people write them: `ACL:rules=1024,NAT|LB`.

Stages are separated by commas, parameters follow their NF after colons, and `|` begins the next core.
"""

from __future__ import annotations

from collections.abc import Sequence

from profiles.chain import NfStage
from profiles.text import number_of

NEXT, NEXT_CORE, PARAMETER = ",", "|", ":"

Cores = tuple[tuple[int, ...], ...]


def writable(nf: str) -> bool:
    """Whether an NF can be named in the text of a chain: its name holds no separator."""
    return nf == nf.strip() and not any(separator in nf for separator in (NEXT, NEXT_CORE, PARAMETER))


def stages_text(stages: Sequence[NfStage]) -> str:
    """The stages as text, in order."""
    return NEXT.join(
        PARAMETER.join([stage.nf, *(f"{name}={value:.10g}" for name, value in stage.parameters)]) for stage in stages
    )


def parse_chain(text: str) -> tuple[tuple[NfStage, ...], Cores | None]:
    """The stages of a chain, and the indices of those on each core; None where the text does not place them.

    Raises
    ------
    ValueError
        With everything that is wrong in it.
    """
    faults: list[str] = []
    stages: list[NfStage] = []
    cores: list[tuple[int, ...]] = []
    for core in text.split(NEXT_CORE):
        first = len(stages)
        stages += [_stage(part.strip(), faults) for part in core.split(NEXT)]
        cores.append(tuple(range(first, len(stages))))
    if faults:
        raise ValueError("; ".join(faults))
    return tuple(stages), tuple(cores) if NEXT_CORE in text else None


def _stage(text: str, faults: list[str]) -> NfStage:
    nf, *parameters = text.split(PARAMETER)
    if not nf:
        faults.append("a stage is empty")
    values = {}
    for parameter in parameters:
        name, _, value = parameter.partition("=")
        number = number_of(value)
        if not name or number is None:
            faults.append(f"'{parameter}' is not of the form NAME=NUMBER")
        elif name in values:
            faults.append(f"{nf} has {name} twice")
        else:
            values[name] = number
    return NfStage.of(nf, values)

"""Plans of chains as `placer chain place --plan` writes them, read again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from placer.chains.chain import Chain
from placer.chains.json_twins import LARGEST_FILE, chains_of, parsed_json, rack_of
from placer.chains.moves import SWITCH_NAME, OldPlaces, PlacedNf
from placer.chains.rack import Rack
from profiles import Fault, InputError
from profiles.text import read_text
from profiles.validation import worded


class _PlacedChain(BaseModel):
    model_config = ConfigDict(strict=True)

    name: str
    rate_mbps: float
    placement: dict[str, str]


class _Answer(BaseModel):
    model_config = ConfigDict(strict=True)

    chains: list[_PlacedChain]


class _Document(BaseModel):
    model_config = ConfigDict(strict=True)

    answer: _Answer
    chains: dict[str, Any]
    rack: dict[str, Any]


@dataclass(frozen=True)
class PlanFile:
    """A plan: chains and rack as they were, and where each NF is.

    Parameters
    ----------
    places
        Of the chains that are placed; none where the plan is infeasible.
    """

    chains: Sequence[Chain]
    rack: Rack
    places: OldPlaces


def read_plan(path: Path) -> PlanFile:
    """A plan from its file.

    Raises
    ------
    InputError
        With every fault.
    """
    file = str(path)
    content = parsed_json(read_text(path, LARGEST_FILE), file)
    try:
        document = _Document.model_validate(content)
    except ValidationError as error:
        hint = "a plan is what `placer chain place --plan FILE` writes"
        found = [(".".join(map(str, one["loc"])), worded(one)) for one in error.errors(include_url=False)]
        raise InputError([Fault(file, None, place or None, message, hint) for place, message in found]) from None
    chains, rack = chains_of(document.chains, file), rack_of(document.rack, file)
    devices = {SWITCH_NAME, *(device.name for device in rack.devices)}
    by_name = {chain.name: chain for chain in chains}
    faults, places = [], {}
    for at, one in enumerate(document.answer.chains):
        where = f"answer.chains.{at}"
        chain = by_name.get(one.name)
        if chain is None:
            faults.append(Fault(file, None, f"{where}.name", f"there is no chain {one.name!r}"))
            continue
        ids = {nf.id: nf.nf for nf in chain.nfs}
        if wrong := sorted(ids.keys() ^ one.placement.keys()):
            message = f"the NFs are not those of the chain: {', '.join(wrong)}"
            faults.append(Fault(file, None, f"{where}.placement", message))
        for nf, on in one.placement.items():
            if on not in devices:
                faults.append(Fault(file, None, f"{where}.placement.{nf}", f"there is no device {on!r}"))
        places[one.name] = {nf: PlacedNf(ids.get(nf, ""), on) for nf, on in one.placement.items()}
    if faults:
        raise InputError(faults)
    return PlanFile(chains, rack, places)

"""Plans of chains as `placer chain place --plan` writes them, read again."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict

from placer.rack.chain import Chain
from placer.rack.files.json_twins import LARGEST_FILE, chains_of, parse_json, rack_of, validate
from placer.rack.files.sources import RecordedSource
from placer.rack.rack import Rack
from placer.rack.replanning.moves import SWITCH_NAME, OldPlaces, PlacedNf
from profiles import Fault, InputError
from profiles.text import read_text


class _Subgroup(BaseModel):
    model_config = ConfigDict(strict=True)

    on: str
    nfs: list[str]
    cores: int | str
    nic: str | None = None
    on_cores: list[int] = []

    @property
    def share(self) -> int | Fraction:
        """Whole cores, or one of several turns on a core; 0 for what is neither."""
        if isinstance(self.cores, int):
            return max(self.cores, 0)
        return Fraction(self.cores) if re.fullmatch("1/[1-9][0-9]{0,3}", self.cores) else 0

    def stands_for(self) -> SubgroupCores:
        """What it stands for."""
        return SubgroupCores(self.on, tuple(self.nfs), self.share, tuple(self.on_cores), self.nic)


class _PlacedChain(BaseModel):
    model_config = ConfigDict(strict=True)

    name: str
    rate_mbps: float
    placement: dict[str, str]
    subgroups: list[_Subgroup] = []


class _Answer(BaseModel):
    model_config = ConfigDict(strict=True)

    chains: list[_PlacedChain]


class _Source(BaseModel):
    model_config = ConfigDict(strict=True)

    path: str
    sha256: str
    origin: str | None = None


class _Document(BaseModel):
    model_config = ConfigDict(strict=True)

    sources: dict[str, _Source] = {}

    answer: _Answer
    chains: dict[str, Any]
    rack: dict[str, Any]


@dataclass(frozen=True)
class SubgroupCores:
    """NFs that share cores of a device, and how many cores.

    `on_cores`, `nic`: which cores of the server, and which of its NICs, where it has several sockets or NICs.
    """

    on: str
    nfs: tuple[str, ...]
    cores: int | Fraction
    on_cores: tuple[int, ...] = ()
    nic: str | None = None

    def site(self, rack: Rack) -> int | None:
        """The number of its device among those of the rack; None if there is no such device, socket or NIC."""
        for number, device in enumerate(rack.devices):
            pool, nic = rack.pools[device.pool], rack.nics[device.nic].name
            cores = range(pool.first_core, pool.first_core + pool.cores)
            is_here = device.name == self.on and self.nic in (None, nic.removeprefix(f"{self.on} "))
            if is_here and all(core in cores for core in self.on_cores):
                return number
        return None


@dataclass(frozen=True)
class PlanFile:
    """A plan: chains and rack as they were, and where each NF is.

    `subgroups`: by the name of the chain; none for those whose file names none.
    """

    chains: Sequence[Chain]
    rack: Rack
    places: OldPlaces  # of the chains that are placed; none where the plan is infeasible
    subgroups: Mapping[str, Sequence[SubgroupCores]] = field(default_factory=dict)
    rates_mbps: Mapping[str, float] = field(default_factory=dict)
    sources: Mapping[str, RecordedSource] = field(default_factory=dict)  # files with own data, by their names in chains


def read_plan(path: Path) -> PlanFile:
    """A plan from its file. Raises InputError with every fault."""
    file, hint = str(path), "a plan is what `placer chain place --plan FILE` writes"
    document = validate(_Document, parse_json(read_text(path, LARGEST_FILE), file), file, hint)
    chains, rack = chains_of(document.chains, file), rack_of(document.rack, file)
    kinds = {chain.name: {nf.id: nf.nf for nf in chain.nfs} for chain in chains}
    faults = list(_faults(document.answer, kinds, rack, file))
    if faults:
        raise InputError(faults)
    places = {
        chain.name: {nf: PlacedNf(kinds[chain.name][nf], on) for nf, on in chain.placement.items()}
        for chain in document.answer.chains
    }
    subgroups = {chain.name: [group.stands_for() for group in chain.subgroups] for chain in document.answer.chains}
    rates = {chain.name: chain.rate_mbps for chain in document.answer.chains}
    folder = path.resolve().parent
    sources = {
        name: RecordedSource(folder / source.path, source.sha256, folder / source.origin if source.origin else None)
        for name, source in document.sources.items()
    }
    return PlanFile(chains, rack, places, subgroups, rates, sources)


def _faults(answer: _Answer, kinds: Mapping[str, Mapping[str, str]], rack: Rack, file: str) -> Iterator[Fault]:
    """Where the answer does not go with the chains and the rack beside it."""
    devices = {SWITCH_NAME, *(device.name for device in rack.devices)}
    for at, one in enumerate(answer.chains):
        where = f"answer.chains.{at}"
        if one.name not in kinds:
            yield Fault(file, None, f"{where}.name", f"there is no chain {one.name!r}")
            continue
        if wrong := sorted(kinds[one.name].keys() ^ one.placement.keys()):
            yield Fault(file, None, f"{where}.placement", f"the NFs are not those of the chain: {', '.join(wrong)}")
        for nf, on in one.placement.items():
            if on not in devices:
                yield Fault(file, None, f"{where}.placement.{nf}", f"there is no device {on!r}")
        for number, group in enumerate(one.subgroups):
            if wrong := [nf for nf in group.nfs if one.placement.get(nf) != group.on]:
                yield Fault(file, None, f"{where}.subgroups.{number}", f"not on {group.on}: {', '.join(wrong)}")
            elif group.stands_for().site(rack) is None:
                message = f"{group.on} has no socket with these cores, or no such NIC"
                yield Fault(file, None, f"{where}.subgroups.{number}", message)
            if not group.share:
                message = 'a subgroup has at least one core, or a turn on one, such as "1/3"'
                yield Fault(file, None, f"{where}.subgroups.{number}.cores", message)

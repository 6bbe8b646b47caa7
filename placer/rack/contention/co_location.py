"""What shares a device in a plan, and what predicts by how much its NFs slow one another down."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from placer.rack.chain import Chain, ChainNf
from placer.rack.plan import ChainPlan, Subgroup
from placer.rack.rack import Device, Rack


@dataclass(frozen=True)
class Member:
    """A subgroup of a co-location: some NFs of a chain, run to completion on each of its cores."""

    chain: Chain
    nfs: tuple[int, ...]
    busy: tuple[float, ...]  # per NF the share of the core's time that it takes by cycles alone
    cores: int  # how many run a copy of the subgroup

    @property
    def kinds(self) -> Sequence[ChainNf]:
        """Its NFs."""
        return [self.chain.nfs[at] for at in self.nfs]


class CycleGrowth(Protocol):
    """Predicts contention on a device."""

    def __call__(self, device: Device, members: Sequence[Member]) -> Sequence[Sequence[float]]:
        """Per member and NF the factor by which cycles grow beside the others, against the NF alone; at least 1."""


@dataclass(frozen=True)
class Placed:
    """A member, and where in the plan it is: the number of its chain, and of its subgroup there."""

    chain: int
    group: int
    member: Member


def co_locations(chains: Sequence[ChainPlan], rack: Rack) -> Iterator[tuple[Device, list[Placed]]]:
    """Each device of a plan that runs subgroups, with these."""
    on: dict[int, list[Placed]] = {}
    for number, one in enumerate(chains):
        for at, (group, cores) in enumerate(one.subgroups):
            on.setdefault(group.device, []).append(Placed(number, at, _member(one, group, int(cores))))
    for device, placed in sorted(on.items(), key=lambda item: item[0]):
        yield rack.devices[device], placed


def _member(one: ChainPlan, group: Subgroup, cores: int) -> Member:
    rack, chain = one.layout.rack, one.chain
    once = group.cycles_of_replicas if cores > 1 and group.cycles_of_replicas is not None else group.cycles
    costs = [rack.cost_on(chain, at, rack.devices[group.device]) for at in group.nfs]
    cycles = [chain.reach[at] * cost.cycles for at, cost in zip(group.nfs, costs, strict=True) if cost]
    return Member(chain, group.nfs, tuple(float(cycle / once) if once else 0.0 for cycle in cycles), cores)

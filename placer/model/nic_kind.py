"""Kinds of NIC: what a fleet has of one model, which workloads it hosts, and on how many cores."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import fsum, inf

from profiles import Workload

WIRE_BYTES = 20
"""Bytes of a packet on the wire besides its own: preamble and gap between frames."""
KEPT_WORKLOADS = 10_000  # workloads of which a kind remembers whether it hosts them
ROUNDED_OFF = 1e-12
"""The share of a rate on the wire that is not counted, so that rounding decides nothing: four of 25 Gb/s fit 100."""


def kpps_of(gbps: float, packet_size: float) -> float:
    """The rate (kpps) of packets of this size (bytes) that take so many Gb/s of a port."""
    return gbps / (8e-6 * (packet_size + WIRE_BYTES))


@dataclass(frozen=True, eq=False)
class NicKind:
    """One line of the fleet: NICs of a model, the cost of one, and how many there are.

    Parameters
    ----------
    index
        Position in the fleet; oracles are listed in the same order.
    model
        The NIC model. Two kinds may share one, say owned NICs at no cost and new ones.
    cores
        Cores of one NIC; of a GPU its workers.
    cores_of
        Cores that each NF takes on this model.
    count
        How many there are; None is unlimited.
    cost
        Cost of one NIC in use.
    latency_of
        By statistic of latency, the NFs of which it is known on this model; no other can be promised.
    paced
        Whether it runs only NFs whose offered rate is known, as a GPU does.
    names
        The names of the first NICs; the others are numbered.
    core_counts
        The numbers of cores, ascending, that each NF can be given; one that is missing has its default number only.
    line_rate_gbps
        What the port carries, each direction; packets have `WIRE_BYTES` on the wire besides.
    owned
        How many NICs are paid for, and need not be bought; None where that is not said.
    pool, domain
        The pool and the domain, as a rack, of all its NICs; empty for no pool, and for NICs that are each a domain.
    joins
        Whether it is another one, whose `index` it has, in a pool and domain of NICs that have joined.
    """

    index: int
    model: str
    cores: int
    cores_of: Mapping[str, int]
    count: int | None = None
    cost: float = 1.0
    latency_of: Mapping[str, frozenset[str]] = field(default_factory=dict)
    paced: bool = False
    names: tuple[str, ...] = ()
    owned: int | None = None
    core_counts: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    line_rate_gbps: float = inf
    pool: str = ""
    domain: str = ""
    joins: bool = False

    def in_place(self, pool: str, domain: str) -> NicKind:
        """The same kind in another pool and domain, of which there are only NICs that join."""
        return replace(self, pool=pool, domain=domain, count=0, names=(), owned=None, joins=True)

    @cached_property
    def key(self) -> int | str:
        """What is another one for each kind of a fleet."""
        return f"{self.index}|{self.pool}|{self.domain}" if self.joins else self.index

    def __deepcopy__(self, memo: object) -> NicKind:
        return self

    def cores_taken(self, workloads: Iterable[Workload]) -> int:
        """Cores that these workloads take together."""
        return sum(map(self.cores_for, workloads))

    def cores_for(self, workload: Workload) -> int:
        """Cores that the workload takes: those that it is given, or the default number of its NF.

        A GPU gives each NF a worker, whatever cores the NF has on other kinds.
        """
        return self.cores_of[workload.nf] if self.paced else workload.cores or self.cores_of[workload.nf]

    @property
    def all_core_counts(self) -> set[int]:
        """Every number of cores that some NF may be given."""
        return {*self.cores_of.values(), *(count for counts in self.core_counts.values() for count in counts)}

    def gbps_of(self, workload: Workload) -> float:
        """What the packets that are offered to the workload take of the port, Gb/s; 0 where no rate is known."""
        if workload.is_saturated:
            return 0.0
        return workload.rate_kpps * 8e-6 * (workload.traffic.packet_size + WIRE_BYTES) * (1.0 - ROUNDED_OFF)

    def fits(self, workloads: Sequence[Workload]) -> bool:
        """Whether one NIC runs all of these, and has the cores and the line rate for them together."""
        return (
            all(map(self.hosts, workloads))
            and self.cores_taken(workloads) <= self.cores
            and self.has_port_for(workloads)
        )

    def has_port_for(self, workloads: Iterable[Workload]) -> bool:
        """Whether the port carries the packets that are offered to all of these, whatever their order."""
        return self.line_rate_gbps == inf or fsum(map(self.gbps_of, workloads)) <= self.line_rate_gbps

    def choices(self, workload: Workload) -> tuple[Workload, ...]:
        """The workload on each number of cores that it may be given here, ascending; as it is where that is fixed."""
        counts = self.core_counts.get(workload.nf, ())
        if workload.cores or workload.is_saturated or self.paced or len(counts) < 2:
            return (workload,)
        return tuple(workload.on_cores(count) for count in counts if count <= self.cores)

    @cached_property
    def _hosted(self) -> dict[Workload, bool]:
        """What `hosts` has answered."""
        return {}

    def hosts(self, workload: Workload) -> bool:
        """Whether this model runs the NF, knows the latency that is promised, and an empty NIC has the cores for it.

        Where the number of cores is to be chosen, it is whether it hosts one of the choices.
        """
        known = self._hosted.get(workload)
        if known is None:
            if len(self._hosted) >= KEPT_WORKLOADS:
                self._hosted.clear()
            known = self._hosted[workload] = self._can_host(workload)
        return known

    def _can_host(self, workload: Workload) -> bool:
        default = self.cores_of.get(workload.nf, self.cores + 1)
        if workload.is_plain and not self.paced:
            return default <= self.cores
        saturated, cores = workload.is_saturated, workload.cores
        if self.paced:
            return default <= self.cores and not saturated and self._knows_latency(workload)
        if cores not in (0, default) and cores not in self.core_counts.get(workload.nf, ()):
            return False
        if (cores or (default if saturated else min(self.core_counts.get(workload.nf, (default,))))) > self.cores:
            return False
        if self.gbps_of(workload) > self.line_rate_gbps:
            return False
        return saturated or not workload.promises_latency or self._knows_latency(workload)

    def _knows_latency(self, workload: Workload) -> bool:
        return workload.nf in self.latency_of.get(workload.latency_statistic, ())


def choices_on(kinds: Iterable[NicKind], workload: Workload) -> list[Workload]:
    """The workload on each number of cores that it may be given on some of these kinds, ascending.

    As it is where that is fixed, or where only GPUs run it, which run it on whatever number it has.
    """
    if workload.cores or workload.is_saturated:
        return [workload]
    hosting = [kind for kind in kinds if not kind.paced and kind.hosts(workload)]
    of_kinds = [kind.choices(workload) for kind in hosting]
    if all(choices == (workload,) for choices in of_kinds):
        return [workload]
    found = {
        kind.cores_for(choice): choice for kind, choices in zip(hosting, of_kinds, strict=True) for choice in choices
    }
    return [choice if choice.cores else choice.on_cores(cores) for cores, choice in sorted(found.items())]

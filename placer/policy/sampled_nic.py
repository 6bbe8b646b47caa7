"""What the sampled index knows of a NIC and its tenants, and what a check on it has shown."""

from __future__ import annotations

import math
from bisect import bisect
from typing import Any, NamedTuple

from numpy.typing import NDArray

from placer.model.nic import Nic
from placer.policy.sampled_kernels import EMPTY_MARGIN
from profiles import CoLocation, Workload
from profiles.arrays import Floats


def margin_of(kpps: float, required: float) -> float:
    """How far a throughput is above the required one, in logarithms."""
    return math.log(max(kpps, 1e-9) / required) if required > 0 else EMPTY_MARGIN


class SampledTenant(NamedTuple):
    """A tenant in the index, with its workload.

    `key`: by which workloads are sorted. `numbers`: as kernels read an arrival: number of the NF, row as of
    `CoLocationChecks`, cores, the throughput that it requires (kpps), its margin when it is alone on the NIC, in
    logarithms, and what it takes of the port (Gb/s).
    """

    id: str
    workload: Workload
    key: tuple[str | float, ...]
    numbers: tuple[int, int, float, float, float, float]

    @property
    def required(self) -> float:
        return self.numbers[3]

    @property
    def gbps(self) -> float:
        return self.numbers[5]


class SampledNic:
    """A NIC in the index: its place in the arrays, and its tenants, sorted by workload."""

    __slots__ = ("nic", "place", "tenants")

    def __init__(self, nic: Nic, place: int) -> None:
        self.nic = nic
        self.place = place
        self.tenants: list[SampledTenant] = []

    @property
    def co_location(self) -> CoLocation:
        return tuple([tenant.workload for tenant in self.tenants])

    def place_of(self, tenant: SampledTenant) -> int:
        """Where one more tenant is among its tenants, which are sorted by workload."""
        return bisect([present.key for present in self.tenants], tenant.key)

    def place_by_id(self, identity: str) -> int:
        """Where the tenant with this id is among its tenants."""
        return [present.id for present in self.tenants].index(identity)

    def with_tenant(self, tenant: SampledTenant, at: int) -> list[SampledTenant]:
        """Its tenants and one more, at that place."""
        return [*self.tenants[:at], tenant, *self.tenants[at:]]


class SamplingTrial(NamedTuple):
    """What `SampledIndex.end_trial` sets back: free places, and every NIC that was changed as it was before; None for
    one that was not there."""

    vacant: list[int]
    used: int
    nics: dict[int, tuple[SampledNic, list[SampledTenant], list[NDArray[Any]]] | None]


class Checked(NamedTuple):
    """The margins of tenants on a NIC with an arrival, which was checked there last, and their rough logarithms.

    `at`: which of them is the arrival. `margins`: None where they were surely enough by what is expected: in `rough`
    the arrival comes last then.
    """

    nic: int
    at: int
    arriving: SampledTenant
    margins: Floats | None
    rough: Floats


class TriedChecks(dict[object, Checked]):
    """Checks of trials, by all on which they depend; a copy begins without any."""

    def __deepcopy__(self, memo: object) -> TriedChecks:
        return TriedChecks()

"""A testbed of NFs that slow one another down by a short formula, so that tests know which co-locations matter."""

import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from random import Random

from profiler.testbed import Measurement, Run, RunRefused, Testbed, TestbedError
from profiles import BenchLoad, CoLocation, Counters, Load, TestbedDescription, Workload
from tests.profiler.toy_testbed import description

LOADS = {"heavy": 0.4, "light": 0.02, "middle": 0.12}  # each NF with what it adds to the time per packet of another
SOLO_KPPS = 1000.0


def crowd_description(cores: int = 4, **changes: object) -> TestbedDescription:
    """One core per NF."""
    nfs = [{"name": name, "cores": 1} for name in LOADS]
    return description(name="crowd", nfs=nfs, nic={"model": "toy-nic", "cores": cores}, **changes)


def names(co_location: Sequence[Load]) -> tuple[str, ...]:
    """The NFs of a co-location, in order."""
    return tuple(one.nf if isinstance(one, Workload) else one.name for one in co_location)


@dataclass(eq=False, kw_only=True)
class CrowdTestbed(Testbed):
    """Throughput is 1000 kpps / (1 + the sum of the others' loads), times a little noise."""

    cores: int = 4  # of the NIC; each NF takes one
    noise: float = 0.002  # relative standard deviation
    refuses: Callable[[tuple[str, ...]], bool] = lambda nfs: False  # whether it refuses a co-location of these NFs
    factor: Callable[[tuple[str, ...], int], float] = lambda nfs, run: 1.0
    """By what a run of these NFs, the n-th, is wrong."""
    fails_after: int | None = None  # it fails at the run after that many
    requests: list[CoLocation] = field(default_factory=list, init=False)  # Co-locations of NFs that were run, in order
    runs: int = field(default=0, init=False)

    def describe(self) -> TestbedDescription:
        return crowd_description(self.cores)

    def run(self, loads: Sequence[Load], *, noise: bool = True, seed: int | None = None) -> Run:
        nfs = tuple(one for one in loads if isinstance(one, Workload))
        whole = len(nfs) == len(loads)
        if whole and self.refuses(names(nfs)):
            raise RunRefused("not together")
        if self.fails_after is not None and self.runs >= self.fails_after:
            raise TestbedError("crowd is broken")
        self.runs += 1
        factor = self.factor(names(nfs), self.requests.count(nfs)) if whole else 1.0
        if whole:
            self.requests.append(nfs)
        rng = Random(zlib.crc32(repr((seed, loads)).encode()))
        return Run(
            tuple(self._measured(at, loads, factor * rng.gauss(1.0, self.noise)) for at in range(len(loads))), 0.0
        )

    def _measured(self, at: int, loads: Sequence[Load], factor: float) -> Measurement:
        load = loads[at]
        if isinstance(load, BenchLoad):
            rate = dict(load.parameters).get("access_mops", 1.0)
            return Measurement(rate * 1000, Counters(1.0, rate * 1e6, rate * 1e6, rate * 5e5, rate * 1e7, 1e6, 4.0))
        others = [one for index, one in enumerate(loads) if index != at]
        time = 1.0 + sum(LOADS[one.nf] if isinstance(one, Workload) else 0.05 for one in others)
        return Measurement(SOLO_KPPS * factor / time, Counters(1.0, 1e9, 1e6, 5e5, 1e8, 5e7, 3.0))

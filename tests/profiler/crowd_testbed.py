"""A testbed of NFs that slow one another down by a short formula, so that tests know which co-locations matter."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from random import Random

from profiler.testbed import Measurement, Run, RunRefused, Testbed, TestbedError
from profiles import BenchLoad, CoLocation, Counters, Load, TestbedDescription, Workload
from tests.profiler.toy_testbed import description

LOADS = {"heavy": 0.4, "light": 0.02, "middle": 0.12}
"""Each NF with what it adds to the time per packet of another."""
SOLO_KPPS = 1000.0


def crowd_description(cores: int = 4, **changes: object) -> TestbedDescription:
    """One core per NF."""
    nfs = [{"name": name, "cores": 1} for name in LOADS]
    nic = {"model": "toy-nic", "cores": cores}
    return description(name="crowd", nfs=nfs, nic=nic, **changes)


def names(co_location: Sequence[Load]) -> tuple[str, ...]:
    """The NFs of a co-location, in order."""
    return tuple(one.nf if isinstance(one, Workload) else one.name for one in co_location)


class CrowdTestbed(Testbed):
    """Throughput is 1000 kpps / (1 + the sum of the others' loads), times a little noise.

    Parameters
    ----------
    cores
        Of the NIC; each NF takes one.
    noise
        Relative standard deviation.
    refuses
        Whether it refuses a co-location of these NFs.
    factor
        By what a run of these NFs, the n-th, is wrong.
    fails_after
        It fails at the run after that many.
    """

    def __init__(
        self,
        *,
        cores: int = 4,
        noise: float = 0.002,
        refuses: Callable[[tuple[str, ...]], bool] = lambda nfs: False,
        factor: Callable[[tuple[str, ...], int], float] = lambda nfs, run: 1.0,
        fails_after: int | None = None,
    ) -> None:
        self.described = crowd_description(cores)
        self._noise = noise
        self._refuses = refuses
        self._factor = factor
        self._fails_after = fails_after
        self.requests: list[CoLocation] = []
        """Co-locations of NFs that were run, in order."""
        self.runs = 0

    def describe(self) -> TestbedDescription:
        return self.described

    def run(self, loads: Sequence[Load], *, noise: bool = True, seed: int | None = None) -> Run:
        nfs = tuple(one for one in loads if isinstance(one, Workload))
        whole = len(nfs) == len(loads)
        if whole and self._refuses(names(nfs)):
            raise RunRefused("not together")
        if self._fails_after is not None and self.runs >= self._fails_after:
            raise TestbedError("crowd is broken")
        self.runs += 1
        factor = self._factor(names(nfs), self.requests.count(nfs)) if whole else 1.0
        if whole:
            self.requests.append(nfs)
        rng = Random(zlib.crc32(repr((seed, loads)).encode()))
        return Run(
            tuple(self._measured(at, loads, factor * rng.gauss(1.0, self._noise)) for at in range(len(loads))), 0.0
        )

    def _measured(self, at: int, loads: Sequence[Load], factor: float) -> Measurement:
        load = loads[at]
        if isinstance(load, BenchLoad):
            rate = dict(load.parameters).get("access_mops", 1.0)
            return Measurement(rate * 1000, Counters(1.0, rate * 1e6, rate * 1e6, rate * 5e5, rate * 1e7, 1e6, 4.0))
        others = [one for index, one in enumerate(loads) if index != at]
        time = 1.0 + sum(LOADS[one.nf] if isinstance(one, Workload) else 0.05 for one in others)
        return Measurement(SOLO_KPPS * factor / time, Counters(1.0, 1e9, 1e6, 5e5, 1e8, 5e7, 3.0))

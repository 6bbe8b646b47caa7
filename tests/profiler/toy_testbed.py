"""A testbed whose throughput is a short formula, so that tests know what profiling must find."""

import math
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass, field

from profiler.testbed import Measurement, Run, Testbed, TestbedError
from profiles import BenchLoad, Counters, Load, TestbedDescription, Workload

CORES = 6
STEP = 3000.0


def description(**changes: object) -> TestbedDescription:
    """One NF of two cores on six, a memory bench, no accelerator, unless changed."""
    described: dict[str, object] = {
        "name": "toy",
        "simulated": True,
        "nic": {"model": "toy-nic", "cores": CORES},
        "attributes": {"flows": (1, 100000), "packet_size": (64, 1500)},
        "default_traffic": {"flows": 1000, "packet_size": 512},
        "nfs": [{"name": "counter", "cores": 2}],
        "benches": [{"name": "mem-bench", "cores": 1, "parameters": {"wss_mb": (0.5, 8), "access_mops": (1, 100)}}],
    }
    return TestbedDescription.model_validate(described | changes)


@dataclass(eq=False)
class ToyTestbed(Testbed):
    """Throughput is 1000 kpps, half of it above 3000 flows, less with accesses of benches; not with packet size."""

    described: TestbedDescription = field(default_factory=description)
    _: KW_ONLY
    fails_after: float = math.inf  # it fails at the run after that many
    hidden: bool = False  # the step has an effect only under contention
    elapsed_s: float = 0.0  # the time that it reports for a run
    step: float = 0.5  # the share of throughput that remains above the step
    alter: Callable[[int, Run], Run] = lambda number, run: run  # what it answers in place of its n-th run
    card: str = ""  # which of several with the same description it is
    requests: list[tuple[Load, ...]] = field(default_factory=list, init=False)

    @property
    def measured_by(self) -> str:
        return self.card

    def describe(self) -> TestbedDescription:
        return self.described

    def run(self, loads: Sequence[Load], *, noise: bool = True, seed: int | None = None) -> Run:
        if len(self.requests) >= self.fails_after:
            raise TestbedError("toy is broken")
        self.requests.append(tuple(loads))
        run = Run(tuple(self._measured(load, loads) for load in loads), self.elapsed_s)
        return self.alter(len(self.requests), run)

    def _measured(self, load: Load, loads: Sequence[Load]) -> Measurement:
        accesses = sum(dict(one.parameters).get("access_mops", 0.0) for one in loads if isinstance(one, BenchLoad))
        if isinstance(load, BenchLoad):
            values = dict(load.parameters)
            rate = values.get("access_mops", 1.0)
            counters = Counters(
                1.0, rate * 1e6, rate * 1e6, rate * 5e5, rate * 1e7, rate * 3e6, values.get("wss_mb", 1)
            )
            return Measurement(rate * 1000.0, counters)
        assert isinstance(load, Workload)
        falls = load.traffic.flows > STEP and (bool(accesses) or not self.hidden)
        kpps = 1000.0 * (self.step if falls else 1.0) / (1.0 + accesses / 400.0)
        return Measurement(kpps, Counters(1.0, 1e9, 1e6, 5e5, 1e8, 5e7, load.traffic.flows / 1000))

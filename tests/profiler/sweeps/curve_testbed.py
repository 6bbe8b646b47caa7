"""A testbed whose throughput is a given function of the flows, and sweeps of it."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import Any

import numpy as np

from profiler.sweeps.spec import SweepSpec
from profiler.testbed import Measurement, Run, RunRefused, TestbedError
from profiles import Counters, Load, TestbedDescription, Workload
from tests.profiler.toy_testbed import ToyTestbed, description


@dataclass(eq=False)
class CurveTestbed(ToyTestbed):
    """Throughput (kpps) follows `curve` of the flows, with relative noise that depends on the seed and the flows."""

    described: TestbedDescription = field(default_factory=description, kw_only=True)
    curve: Callable[[float], float]
    _: KW_ONLY
    noise: float = 0.0  # relative standard deviation
    refused: Collection[float] = ()
    failing: Collection[float] = ()  # flows at which it refuses a run, or fails
    slower: float = 0.0  # by how much it gets slower with each run, relative
    stray: Collection[int] = ()  # the numbers of runs, from 0, that reach half of the throughput

    @property
    def flows(self) -> list[float]:
        """Those of each run so far."""
        return [load.traffic.flows for load, *_ in self.requests if isinstance(load, Workload)]

    def run(self, loads: Sequence[Load], *, noise: bool = True, seed: int | None = None) -> Run:
        load = loads[0]
        assert isinstance(load, Workload)
        flows = load.traffic.flows
        if len(self.requests) >= self.fails_after:
            raise TestbedError("toy is broken")
        if flows in self.refused:
            raise RunRefused(f"no {flows:g} flows here")
        if flows in self.failing:
            raise TestbedError(f"toy fails at {flows:g} flows")
        number = len(self.requests)
        self.requests.append(tuple(loads))
        drawn = np.random.default_rng([seed or 0, int(flows)]).normal()
        kpps = self.curve(flows) * (1 + self.noise * drawn) * (1 - self.slower) ** number
        return Run((Measurement(kpps * (0.5 if number in self.stray else 1.0), Counters(1.0, 1e9)),))


def flows_sweep(points: int = 20, repeats: int = 1, seed: int = 0, scale: str = "linear", **more: Any) -> SweepSpec:
    """The toy NF over 1 to 100,000 flows."""
    return SweepSpec.model_validate(
        {
            "testbed": "toy",
            "seed": seed,
            "workload": {"nf": "counter"},
            "vary": [{"key": "flows", "from": 1, "to": 100_000, "points": points, "scale": scale}],
            "measure": {"repeats": repeats},
            **more,
        }
    )

"""A testbed in one file: throughput is a formula, so that one can see what profiling and training make of it.

Copy it into `profiler/testbeds/`; then `placer profile --testbed formula --out profile` knows it. `formula:0.2` doubles
the contention. A testbed of your own would run the loads on a NIC and measure them instead.
"""

from __future__ import annotations

from collections.abc import Sequence

from profiler.testbed import Measurement, Run, RunRefused, Testbed
from profiler.testbeds import TESTBEDS
from profiles import BenchLoad, Counters, InputError, Load, TestbedDescription, Workload

CORES = 8
SOLO_KPPS = {"Forwarder": 2000.0, "Counter": 800.0}
CACHE_MB = {"Forwarder": 0.5, "Counter": 4.0}

DESCRIPTION = {
    "name": "formula",
    "simulated": True,
    "nic": {"model": "formula-nic", "cores": CORES},
    "attributes": {"flows": [1, 100000], "packet_size": [64, 1500]},
    "default_traffic": {"flows": 10000, "packet_size": 512},
    "nfs": [{"name": name, "cores": 2} for name in SOLO_KPPS],
    "benches": [{"name": "mem-bench", "cores": 1, "parameters": {"wss_mb": [0.5, 16], "access_mops": [1, 100]}}],
}


class FormulaTestbed(Testbed):
    """Each MB of a neighbour's working set costs an NF `slope` of its throughput per 10 MB."""

    def __init__(self, slope: float) -> None:
        self.slope = slope

    def describe(self) -> TestbedDescription:
        return TestbedDescription.model_validate(DESCRIPTION)

    def run(self, loads: Sequence[Load], *, noise: bool = True, seed: int | None = None) -> Run:
        working_sets = [self._working_set_mb(load) for load in loads]
        return Run(
            tuple(
                self._measure(load, own, sum(working_sets) - own) for load, own in zip(loads, working_sets, strict=True)
            )
        )

    def _working_set_mb(self, load: Load) -> float:
        if isinstance(load, BenchLoad):
            return dict(load.parameters)["wss_mb"]
        if not isinstance(load, Workload) or load.nf not in SOLO_KPPS:
            raise RunRefused(f"this testbed does not run {load.as_request()}")
        return CACHE_MB[load.nf] * load.traffic.flows / 10000

    def _measure(self, load: Load, own_mb: float, neighbours_mb: float) -> Measurement:
        solo = SOLO_KPPS[load.nf] if isinstance(load, Workload) else 1000 * dict(load.parameters)["access_mops"]
        kpps = solo / (1 + self.slope * neighbours_mb / 10)
        accesses = 50_000.0 * kpps
        counters = Counters(1.0, 20 * accesses, accesses, accesses / 2, accesses, accesses / 2, own_mb)
        return Measurement(kpps, counters)


@TESTBEDS.register("formula")
def open_formula(argument: str, timeout: float) -> Testbed:
    """The testbed of `formula` or `formula:SLOPE`."""
    try:
        return FormulaTestbed(float(argument or 0.1))
    except ValueError as error:
        raise InputError.of("--testbed", f"formula:SLOPE takes a number, got '{argument}'") from error

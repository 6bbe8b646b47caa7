"""A server whose cycles are known, so that tests know what profiling must find."""

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import Any

from profiler.protocol.request_checks import refusals
from profiler.testbed import Measurement, PacketLatency, Run, RunRefused, StageMeasurement, Testbed, TestbedError
from profiles import ChainLoad, ConfiguredWorkload, Counters, Load, TestbedDescription, TrafficProfile, Workload

CLOCK_MHZ = 1000.0
SOURCE = 50.0
CYCLES = {"Null": 0.0, "gate": 150.0, "coder": 450.0}
RULES, PER_RULE = 10.0, 5.0


def server_description(**changes: object) -> TestbedDescription:
    """A null NF, one with rules, and one whose cycles grow with the packets, on four cores; unless changed."""
    described: dict[str, object] = {
        "name": "toy-server",
        "simulated": True,
        "nic": {"model": "toy-server", "cores": 4, "kind": "server", "clock_mhz": CLOCK_MHZ},
        "attributes": {"flows": (1, 1000), "packet_size": (100, 1000)},
        "default_traffic": {"flows": 100, "packet_size": 500},
        "nfs": [
            {"name": "Null", "cores": 1},
            {
                "name": "gate", "cores": 1, "replicable": True,
                "parameters": {"rules": (1, 100)}, "default_parameters": {"rules": RULES},
            },
            {"name": "coder", "cores": 1, "replicable": False},
        ],
        "chains": True,
    }  # fmt: skip
    return TestbedDescription.model_validate(described | changes)


@dataclass(eq=False)
class ToyServer(Testbed):
    """One cycle per 10 bytes for coder, five per rule for gate, which drops a tenth; rings cost nothing."""

    described: TestbedDescription = field(default_factory=server_description)
    _: KW_ONLY
    fails_after: float = float("inf")  # it fails at the run after that many
    refused: Sequence[str] = ()  # NFs that it does not run in chains
    factors: list[float] = field(default_factory=list)
    """By which it measures throughput wrongly, one run after another; 1 where there are no more."""
    requests: list[tuple[Load, ...]] = field(default_factory=list, init=False)

    def describe(self) -> TestbedDescription:
        return self.described

    def run(self, loads: Sequence[Load], *, noise: bool = True, seed: int | None = None) -> Run:
        if faults := refusals(self.described, loads):
            raise RunRefused("; ".join(faults))
        if len(self.requests) >= self.fails_after:
            raise TestbedError("toy server is broken")
        self.requests.append(tuple(loads))
        return Run(tuple(map(self._measured, loads)))

    def _measured(self, load: Load) -> Measurement:
        if isinstance(load, ChainLoad):
            return self._chain(load)
        parameters: dict[str, Any] = dict(load.parameters) if isinstance(load, ConfiguredWorkload) else {}
        workload = load.workload if isinstance(load, ConfiguredWorkload) else load
        assert isinstance(workload, Workload)
        return self._of(SOURCE + nf_cycles(workload.nf, workload.traffic, parameters))

    def _chain(self, load: ChainLoad) -> Measurement:
        if any(stage.nf in self.refused for stage in load.stages):
            raise RunRefused("does not run in chains")
        shares = load.shares or (1.0,) * len(load.cores)
        cycles = [nf_cycles(stage.nf, load.traffic, dict(stage.parameters)) for stage in load.stages]
        cores = [sum(cycles[at] for at in core) / share for core, share in zip(load.cores, shares, strict=True)]
        capacity = self._of(SOURCE + max(cores)).throughput_kpps
        kpps = min(capacity, load.rate_kpps or capacity)
        stages, leaving = [], kpps
        for stage in load.stages:
            dropped = 10.0 if stage.nf == "gate" else 0.0
            leaving *= 1 - dropped / 100
            stages.append(StageMeasurement(leaving, dropped))
        latency = PacketLatency(1.0, 1.0, 2.0, 3.0) if load.rate_kpps else None
        return Measurement(kpps, counters(kpps), tuple(stages), latency)

    def _of(self, cycles: float) -> Measurement:
        kpps = 1e3 * CLOCK_MHZ / cycles * (self.factors.pop(0) if self.factors else 1.0)
        return Measurement(kpps, counters(kpps))


def counters(kpps: float) -> Counters:
    """Two instructions per cycle, all the time."""
    return Counters(2.0, 2e6 * CLOCK_MHZ, kpps, kpps, kpps, kpps, 1.0)


def nf_cycles(nf: str, traffic: TrafficProfile, parameters: dict[str, float]) -> float:
    """Cycles of an NF per packet, without the source."""
    if nf == "coder":
        return CYCLES[nf] + traffic.packet_size / 10
    return CYCLES[nf] + (PER_RULE * (parameters.get("rules", RULES) - RULES) if nf == "gate" else 0.0)

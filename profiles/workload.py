"""Workloads: what runs on a NIC."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from profiles.chain import ChainLoad, Parameters, sort_parameters
from profiles.gpu import GpuSettings
from profiles.traffic import TrafficProfile


@dataclass(frozen=True, order=True)
class Workload:
    """A network function under a traffic profile."""

    __slots__ = ("_hash", "nf", "traffic")

    nf: str
    traffic: TrafficProfile

    def __post_init__(self) -> None:
        # a decision looks up a hundred co-locations, whose hashes are those of their workloads
        object.__setattr__(self, "_hash", hash((self.nf, self.traffic)))

    def __hash__(self) -> int:
        return self._hash  # type: ignore[attr-defined, no-any-return]

    def __reduce__(self) -> tuple[type[Workload], tuple[str, TrafficProfile]]:
        # hashes of text differ between processes
        return Workload, (self.nf, self.traffic)

    @property
    def label(self) -> str:
        """What messages call it: the NF."""
        return self.nf

    def as_request(self) -> dict[str, object]:
        """The workload as the testbed protocol writes it."""
        return {"kind": "nf", "name": self.nf, "traffic": self.traffic.as_dict()}


@dataclass(frozen=True, slots=True, order=True)
class BenchLoad:
    """A synthetic bench with its parameters, sorted by name."""

    name: str
    parameters: tuple[tuple[str, float], ...]

    @classmethod
    def of(cls, name: str, parameters: Mapping[str, float]) -> BenchLoad:
        """The bench `name` with these parameters."""
        return cls(name, sort_parameters(parameters))

    @property
    def label(self) -> str:
        """What messages call it: the bench."""
        return self.name

    def as_request(self) -> dict[str, object]:
        """The bench as the testbed protocol writes it."""
        return {"kind": "bench", "name": self.name, "parameters": dict(self.parameters)}


@dataclass(frozen=True, slots=True, order=True)
class ConfiguredWorkload:
    """A network function that runs with parameters of its own (rules, routes, ...), sorted by name."""

    workload: Workload
    parameters: Parameters

    @classmethod
    def of(cls, workload: Workload, parameters: Mapping[str, float]) -> ConfiguredWorkload:
        """The workload with these parameters."""
        return cls(workload, sort_parameters(parameters))

    @property
    def label(self) -> str:
        """What messages call it: the NF."""
        return self.workload.nf

    def as_request(self) -> dict[str, object]:
        """The workload as the testbed protocol writes it."""
        return {**self.workload.as_request(), "parameters": dict(self.parameters)}


@dataclass(frozen=True, slots=True, order=True)
class PacedWorkload:
    """A network function whose packets are offered at a rate (kpps), above 0.

    `gpu` is how it runs on a GPU, and None elsewhere.
    """

    workload: Workload
    rate_kpps: float
    gpu: GpuSettings | None = None

    @property
    def nf(self) -> str:
        """The NF."""
        return self.workload.nf

    @property
    def traffic(self) -> TrafficProfile:
        """The traffic of its packets."""
        return self.workload.traffic

    @property
    def label(self) -> str:
        """What messages call it: the NF."""
        return self.workload.nf

    def as_request(self) -> dict[str, object]:
        """The workload as the testbed protocol writes it; `gpu` only where there is one."""
        request = {**self.workload.as_request(), "rate_kpps": self.rate_kpps}
        return request | ({"gpu": self.gpu.as_request()} if self.gpu else {})


Load = Workload | BenchLoad | ConfiguredWorkload | PacedWorkload | ChainLoad
"""Anything that a testbed can run."""

CoLocation = tuple[Workload, ...]
"""NF workloads that share a NIC; sorted where equal ones are to be recognised, since their order has no meaning."""

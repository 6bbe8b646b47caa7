"""Workloads: what runs on a NIC."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from profiles.traffic import TrafficProfile


@dataclass(frozen=True, slots=True, order=True)
class Workload:
    """A network function under a traffic profile."""

    nf: str
    traffic: TrafficProfile

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
        return cls(name, tuple(sorted((key, float(value)) for key, value in parameters.items())))

    def as_request(self) -> dict[str, object]:
        """The bench as the testbed protocol writes it."""
        return {"kind": "bench", "name": self.name, "parameters": dict(self.parameters)}


Load = Workload | BenchLoad
"""Anything that a testbed can run."""

CoLocation = tuple[Workload, ...]
"""NF workloads that share a NIC; sorted where equal ones are to be recognised, since their order has no meaning."""

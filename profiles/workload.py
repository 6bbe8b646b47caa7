"""Workloads: what runs on a NIC."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from math import inf

from profiles.chain import ChainLoad, Parameters, sort_parameters
from profiles.gpu import GpuSettings
from profiles.traffic import TrafficProfile

P99 = "p99"  # the statistic of latency that 99 of 100 packets stay within


class _Hashed:
    """Keeps a hash, which is not a field of what is hashed."""

    __slots__ = ("_hash",)

    _hash: int


@dataclass(frozen=True, slots=True, order=True)
class Workload(_Hashed):
    """A network function under a traffic profile, with what is offered to it and what it is given.

    Parameters
    ----------
    nf
        The network function.
    traffic
        The traffic profile of its packets.
    rate_kpps
        What is offered to it; infinite where that is more than it can carry, as in the paper (Tomur, section 7.1).
    cores
        How many cores it is given; 0 for as many as it has by default.
    latency_us
        What the latency of its packets must stay within; infinite where nothing is promised. It belongs to the
        workload, because a GPU chooses batches by it, and NICs compare instances of one workload by throughput alone.
    latency_statistic
        Of which statistic of their latency that is, by its name in the testbed protocol; `p99` where nothing is
        promised."""

    nf: str
    traffic: TrafficProfile
    rate_kpps: float = inf
    cores: int = field(default=0, kw_only=True)
    latency_us: float = field(default=inf, kw_only=True)
    latency_statistic: str = field(default=P99, kw_only=True)

    def __post_init__(self) -> None:
        # a decision looks up a hundred co-locations, whose hashes are those of their workloads
        object.__setattr__(self, "_hash", hash((self.nf, self.traffic, self.rate_kpps, self.cores, self.latency_us)))

    def __hash__(self) -> int:
        return self._hash

    def __deepcopy__(self, memo: object) -> Workload:
        return self

    def __reduce__(self) -> tuple[Callable[..., Workload], tuple[object, ...]]:
        # hashes of text differ between processes
        given = partial(Workload, cores=self.cores)
        restore = partial(given, latency_us=self.latency_us, latency_statistic=self.latency_statistic)
        return restore, (self.nf, self.traffic, self.rate_kpps)

    @property
    def label(self) -> str:
        """What messages call it: the NF."""
        return self.nf

    @property
    def sort_key(self) -> tuple[str | float, ...]:
        """By which workloads are ordered, quicker than they are compared."""
        traffic = self.traffic.as_tuple()
        return self.nf, *traffic, self.rate_kpps, self.cores, self.latency_us, self.latency_statistic

    @property
    def is_saturated(self) -> bool:
        """Whether more is offered to it than it can carry."""
        return self.rate_kpps == inf

    @property
    def is_plain(self) -> bool:
        """Whether it is saturated on its default number of cores, and no latency is promised."""
        return self.rate_kpps == inf and not self.cores and self.latency_us == inf

    @property
    def promises_latency(self) -> bool:
        """Whether its packets are promised a latency."""
        return self.latency_us < inf

    @property
    def saturated(self) -> Workload:
        """The workload where more is offered to it than it can carry, and no latency is promised."""
        if self.rate_kpps == inf and self.latency_us == inf:
            return self
        return Workload(self.nf, self.traffic, cores=self.cores)

    def on_cores(self, cores: int) -> Workload:
        """The workload on so many cores; 0 for as many as it has by default."""
        return self.at_load(self.rate_kpps, cores, self.latency_us)

    def at_load(self, rate_kpps: float, cores: int, latency_us: float) -> Workload:
        """The workload with these in place of its own."""
        # `replace` takes twice as long
        return Workload(
            self.nf, self.traffic, rate_kpps, cores=cores, latency_us=latency_us,
            latency_statistic=self.latency_statistic,
        )  # fmt: skip

    def as_request(self) -> dict[str, object]:
        """The workload as the testbed protocol writes it; a rate and cores only where they are given."""
        request: dict[str, object] = {"kind": "nf", "name": self.nf, "traffic": self.traffic.as_dict()}
        if self.rate_kpps < inf:
            request["rate_kpps"] = self.rate_kpps
        if self.cores:
            request["cores"] = self.cores
        return request


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
class GpuWorkload:
    """A network function that runs on a GPU, at the rate of its workload and with these settings."""

    workload: Workload
    gpu: GpuSettings

    @property
    def nf(self) -> str:
        """The NF."""
        return self.workload.nf

    @property
    def traffic(self) -> TrafficProfile:
        """The traffic of its packets."""
        return self.workload.traffic

    @property
    def rate_kpps(self) -> float:
        """What is offered to it."""
        return self.workload.rate_kpps

    @property
    def label(self) -> str:
        """What messages call it: the NF."""
        return self.workload.nf

    def as_request(self) -> dict[str, object]:
        """The workload as the testbed protocol writes it."""
        return {**self.workload.as_request(), "gpu": self.gpu.as_request()}


Load = Workload | BenchLoad | ConfiguredWorkload | GpuWorkload | ChainLoad  # anything that a testbed can run

CoLocation = tuple[Workload, ...]
"""NF workloads that share a NIC; sorted where equal ones are to be recognised, since their order has no meaning."""

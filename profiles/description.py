"""What a testbed reports of itself: the answer to `describe` (docs/formats/testbed-protocol.md)."""

from __future__ import annotations

from collections import Counter
from typing import Annotated, Any, ClassVar, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    FiniteFloat,
    SerializerFunctionWrapHandler,
    StringConstraints,
    model_serializer,
    model_validator,
)

from profiles.counters import COUNTERS
from profiles.shown import Shown
from profiles.traffic import ATTRIBUTES, TrafficProfile

MOST_CORES = 1024
MOST_NFS = 1000
MOST_BENCHES = 100
MOST_ACCELERATORS = 32
MOST_PARAMETERS = 32
MOST_COUNTERS = 1000
MOST_NAME_BYTES = 200
MOST_SMS = 10_000
MOST_EXECUTORS = 1024
MOST_PACKETS = 1_000_000
LARGEST_NUMBER = 1e15


def _number(value: object) -> object:
    """Only JSON numbers are numbers: neither text nor true."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"{value!r:.100} is not a number")
    return value


def _order_bounds(bounds: tuple[float, float]) -> tuple[float, float]:
    if bounds[0] > bounds[1]:
        raise ValueError(f"range [{bounds[0]:g}, {bounds[1]:g}] ends before it begins")
    return bounds


def _short(name: str) -> str:
    if len(name.encode(errors="replace")) > MOST_NAME_BYTES:
        raise ValueError(f"more than {MOST_NAME_BYTES} bytes")
    return name


_Value = Annotated[FiniteFloat, Field(ge=-LARGEST_NUMBER, le=LARGEST_NUMBER), BeforeValidator(_number)]
Cores = Annotated[int, Field(gt=0, le=MOST_CORES), BeforeValidator(_number)]
ValueRange = Annotated[tuple[_Value, _Value], AfterValidator(_order_bounds)]
Label = Annotated[str, StringConstraints(min_length=1, pattern=r"^\P{Cc}*$"), AfterValidator(_short)]
"""A name that is printed as it is."""
FileName = Annotated[str, StringConstraints(pattern=r"^[^/\\\p{Cc}.][^/\\\p{Cc}]*$"), AfterValidator(_short)]
"""A name that also names a file."""


NULL_NF = "Null"  # the NF that does nothing: packets go from the source to the sink. It is measured, but never placed.


class _Described(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")

    OPTIONAL: ClassVar[tuple[str, ...]] = ()  # fields that are written only where a testbed describes them

    @model_serializer(mode="wrap")
    def _written(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        written: dict[str, Any] = handler(self)
        fields = type(self).model_fields
        absent = [
            name for name in self.OPTIONAL if getattr(self, name) == fields[name].get_default(call_default_factory=True)
        ]
        return {name: value for name, value in written.items() if name not in absent}


def _same_clock(mhz: float) -> float:
    """Four digits: a program that measures its clock finds another value each time it starts, of the same machine."""
    return float(f"{mhz:.4g}")


class NicModel(_Described):
    """A kind of NIC, a server, or a server with a GPU: what every one of that model has. A GPU has `sms` streaming
    multiprocessors, each with `executors_per_sm` slots of threads; one of them processes `packets_per_executor` packets
    at a time."""

    OPTIONAL = ("kind", "clock_mhz", "line_rate_gbps", "sms", "executors_per_sm", "packets_per_executor")

    model: Label
    cores: Cores
    kind: Literal["smartnic", "server", "gpu"] | None = None
    clock_mhz: Annotated[_Value, Field(gt=0), AfterValidator(_same_clock)] | None = None
    llc_bytes: Annotated[int, Field(gt=0, le=int(LARGEST_NUMBER)), BeforeValidator(_number)] | None = None
    line_rate_gbps: Annotated[_Value, Field(gt=0)] | None = None
    """What its port carries, each direction; packets have 20 bytes on the wire besides."""
    accelerators: tuple[Label, ...] = Field(default=(), max_length=MOST_ACCELERATORS)
    sms: Annotated[int, Field(gt=0, le=MOST_SMS), BeforeValidator(_number)] | None = None
    executors_per_sm: Annotated[int, Field(gt=0, le=MOST_EXECUTORS), BeforeValidator(_number)] | None = None
    packets_per_executor: Annotated[int, Field(gt=0, le=MOST_PACKETS), BeforeValidator(_number)] | None = None

    @model_validator(mode="after")
    def _gpu_described(self) -> NicModel:
        names = ("sms", "executors_per_sm", "packets_per_executor")
        missing = [name for name in names if getattr(self, name) is None]
        if self.kind == "gpu" and missing:
            raise ValueError(f"a gpu needs {', '.join(missing)}")
        return self


class NfDescription(_Described):
    """A network function that a testbed offers."""

    OPTIONAL = ("core_counts", "parameters", "default_parameters", "replicable", "moves")

    name: FileName
    cores: Cores
    core_counts: tuple[Cores, ...] = Field(default=(), max_length=MOST_CORES)
    """How many cores it can be given, `cores` by default; empty where that is the only number."""
    accelerators: tuple[FileName, ...] = Field(default=(), max_length=MOST_ACCELERATORS)  # what it takes and uses
    parameters: dict[Label, ValueRange] = Field(default_factory=dict, max_length=MOST_PARAMETERS)
    default_parameters: dict[Label, _Value] = Field(default_factory=dict, max_length=MOST_PARAMETERS)
    """The range of each parameter that it knows, and the value of those that a run does not set."""
    replicable: bool | None = None
    """Whether several cores can run copies of it; None where the testbed does not describe it."""
    moves: Literal["header", "payload", "both"] | None = None
    """Of each packet, what it moves to a GPU; None where there is none."""

    @model_validator(mode="after")
    def _default_count_described(self) -> NfDescription:
        if self.core_counts and self.cores not in self.core_counts:
            raise ValueError(f"core_counts lacks {self.cores}, the default in cores")
        if len(set(self.core_counts)) < len(self.core_counts):
            raise ValueError("core_counts has a number twice")
        return self

    @property
    def counts(self) -> tuple[int, ...]:
        """The numbers of cores that it can be given."""
        return self.core_counts or (self.cores,)

    @model_validator(mode="after")
    def _defaults_in_range(self) -> NfDescription:
        for name, value in self.default_parameters.items():
            if name not in self.parameters:
                raise ValueError(f"default_parameters {name} has no range in parameters")
            low, high = self.parameters[name]
            if not low <= value <= high:
                raise ValueError(f"default_parameters {name} {value:g} is not inside its range [{low:g}, {high:g}]")
        return self


class BenchDescription(_Described):
    """A synthetic bench, with the range of each of its parameters."""

    name: Label
    cores: Cores
    parameters: dict[Label, ValueRange] = Field(default_factory=dict, max_length=MOST_PARAMETERS)


class TestbedDescription(Shown, _Described):
    """All that a testbed reports before anything has run on it."""

    __test__ = False
    OPTIONAL = ("chains", "paced", "workers", "arbitration")

    name: Label
    simulated: bool = False
    protocol: int = 1
    nic: NicModel
    counters: tuple[str, ...] = Field(default=COUNTERS, max_length=MOST_COUNTERS)
    attributes: dict[str, ValueRange] = Field(max_length=MOST_PARAMETERS)
    default_traffic: dict[str, _Value] = Field(max_length=MOST_PARAMETERS)
    nfs: tuple[NfDescription, ...] = Field(max_length=MOST_NFS)
    benches: tuple[BenchDescription, ...] = Field(default=(), max_length=MOST_BENCHES)
    chains: bool = False  # whether it runs chains of NFs
    paced: bool = False  # whether it offers packets to NFs at a given rate; a GPU always does
    workers: Cores | None = None  # of a GPU, the CPU cores that serve NFs, one each; None: all cores
    arbitration: Literal["one-shot", "sporadic"] | None = None
    """Of a GPU, how batches contend for the bus: each once, or again every period."""

    @model_validator(mode="after")
    def _consistent(self) -> TestbedDescription:
        if missing := [name for name in COUNTERS if name not in self.counters]:
            raise ValueError(f"counters lack {', '.join(missing)}")
        for name in ("flows", "packet_size"):
            if name not in self.default_traffic:
                raise ValueError(f"default_traffic lacks {name}")
        if unknown := [name for name in self.attributes if name not in ATTRIBUTES]:
            raise ValueError(f"attributes not understood: {', '.join(unknown)}")
        for name, (low, high) in self.attributes.items():
            default = self.default_traffic.get(name, 0.0)
            if not max(low, 0.0) <= default <= high:
                raise ValueError(f"default_traffic {name} {default:g} is not inside its range [{low:g}, {high:g}]")
        for kind, names in (("nfs", [nf.name for nf in self.nfs]), ("benches", [b.name for b in self.benches])):
            if repeated := sorted(name for name, times in Counter(names).items() if times > 1):
                raise ValueError(f"{kind} named twice: {', '.join(repeated)}")
        return self

    @property
    def traffic(self) -> TrafficProfile:
        """The default traffic profile."""
        return TrafficProfile.from_mapping(self.default_traffic)

    def range_of(self, attribute: str) -> tuple[float, float]:
        """Smallest and largest value of a traffic attribute; one that is not declared stays at its default."""
        default = self.traffic.as_dict()[attribute]
        return self.attributes.get(attribute, (default, default))

    def nf(self, name: str) -> NfDescription:
        """The NF of that name; KeyError when the testbed offers none."""
        for nf in self.nfs:
            if nf.name == name:
                return nf
        raise KeyError(name)

    @property
    def fitting_nfs(self) -> list[NfDescription]:
        """The NFs that need no more cores than the NIC has, without the null NF."""
        return [nf for nf in self.nfs if nf.cores <= self.nic.cores and nf.name != NULL_NF]

    def bench(self, name: str) -> BenchDescription | None:
        """The bench of that name, or None."""
        return next((bench for bench in self.benches if bench.name == name), None)

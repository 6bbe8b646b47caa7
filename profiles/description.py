"""What a testbed reports of itself: the `describe` answer of the testbed protocol (docs/formats.md)."""

from __future__ import annotations

from collections import Counter
from typing import Annotated

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    FiniteFloat,
    StringConstraints,
    model_validator,
)

from profiles.counters import COUNTERS
from profiles.traffic import ATTRIBUTES, TrafficProfile

MOST_CORES = 1024
MOST_NFS = 1000
MOST_BENCHES = 100
MOST_ACCELERATORS = 32
MOST_PARAMETERS = 32
MOST_COUNTERS = 1000
MOST_NAME_BYTES = 200
LARGEST = 1e15


def _number(value: object) -> object:
    """Only JSON numbers are numbers: neither text nor true."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"{value!r:.100} is not a number")
    return value


def _ordered(bounds: tuple[float, float]) -> tuple[float, float]:
    if bounds[0] > bounds[1]:
        raise ValueError(f"range [{bounds[0]:g}, {bounds[1]:g}] ends before it begins")
    return bounds


def _short(name: str) -> str:
    if len(name.encode(errors="replace")) > MOST_NAME_BYTES:
        raise ValueError(f"more than {MOST_NAME_BYTES} bytes")
    return name


_Value = Annotated[FiniteFloat, Field(ge=-LARGEST, le=LARGEST), BeforeValidator(_number)]
Cores = Annotated[int, Field(gt=0, le=MOST_CORES), BeforeValidator(_number)]
ValueRange = Annotated[tuple[_Value, _Value], AfterValidator(_ordered)]
Label = Annotated[str, StringConstraints(min_length=1, pattern=r"^\P{Cc}*$"), AfterValidator(_short)]
"""A name that is printed as it is."""
FileName = Annotated[str, StringConstraints(pattern=r"^[^/\\\p{Cc}.][^/\\\p{Cc}]*$"), AfterValidator(_short)]
"""A name that also names a file."""


class _Described(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


class NicModel(_Described):
    """A kind of NIC: what every card of that model has."""

    model: Label
    cores: Cores
    llc_bytes: Annotated[int, Field(gt=0, le=int(LARGEST)), BeforeValidator(_number)] | None = None
    accelerators: tuple[Label, ...] = Field(default=(), max_length=MOST_ACCELERATORS)


class NfDescription(_Described):
    """A network function that a testbed offers, with the cores it takes and the accelerators it uses."""

    name: FileName
    cores: Cores
    accelerators: tuple[FileName, ...] = Field(default=(), max_length=MOST_ACCELERATORS)


class BenchDescription(_Described):
    """A synthetic bench, with the range of each of its parameters."""

    name: Label
    cores: Cores
    parameters: dict[Label, ValueRange] = Field(default_factory=dict, max_length=MOST_PARAMETERS)


class TestbedDescription(_Described):
    """All that a testbed reports before anything has run on it."""

    __test__ = False

    name: Label
    simulated: bool = False
    protocol: int = 1
    nic: NicModel
    counters: tuple[str, ...] = Field(default=COUNTERS, max_length=MOST_COUNTERS)
    attributes: dict[str, ValueRange] = Field(max_length=MOST_PARAMETERS)
    default_traffic: dict[str, _Value] = Field(max_length=MOST_PARAMETERS)
    nfs: tuple[NfDescription, ...] = Field(max_length=MOST_NFS)
    benches: tuple[BenchDescription, ...] = Field(default=(), max_length=MOST_BENCHES)

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
        """The NFs that need no more cores than the NIC has."""
        return [nf for nf in self.nfs if nf.cores <= self.nic.cores]

    def bench(self, name: str) -> BenchDescription | None:
        """The bench of that name, or None."""
        return next((bench for bench in self.benches if bench.name == name), None)

"""What a testbed says of itself: the `describe` answer of the testbed protocol (docs/formats.md)."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, FiniteFloat, StringConstraints, model_validator

from profiles.counters import COUNTERS
from profiles.traffic import ATTRIBUTES, TrafficProfile


def _ordered(bounds: tuple[float, float]) -> tuple[float, float]:
    if bounds[0] > bounds[1]:
        raise ValueError(f"range [{bounds[0]:g}, {bounds[1]:g}] ends before it begins")
    return bounds


Range = Annotated[tuple[FiniteFloat, FiniteFloat], AfterValidator(_ordered)]


Name = Annotated[str, StringConstraints(pattern=r"^[^/\\\x00.][^/\\\x00]*$")]
"""A name that may also name a file."""


class _Described(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


class NicModel(_Described):
    """A kind of NIC: what every card of that model has."""

    model: str = Field(min_length=1)
    cores: int = Field(gt=0)
    llc_bytes: int | None = Field(default=None, gt=0)
    accelerators: tuple[str, ...] = ()


class NfDescription(_Described):
    """A network function that a testbed hosts, with the cores it takes and the accelerators it uses."""

    name: Name
    cores: int = Field(gt=0)
    accelerators: tuple[Name, ...] = ()


class BenchDescription(_Described):
    """A synthetic bench, with the range of each of its parameters."""

    name: str = Field(min_length=1)
    cores: int = Field(gt=0)
    parameters: dict[str, Range] = Field(default_factory=dict)


class TestbedDescription(_Described):
    """Everything that is known of a testbed before anything has run on it."""

    __test__ = False

    name: str
    simulated: bool = False
    protocol: int = 1
    nic: NicModel
    counters: tuple[str, ...] = COUNTERS
    attributes: dict[str, Range]
    default_traffic: dict[str, FiniteFloat]
    nfs: tuple[NfDescription, ...]
    benches: tuple[BenchDescription, ...] = ()

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
        for kind, names in (
            ("nfs", [nf.name for nf in self.nfs]),
            ("benches", [b.name for b in self.benches]),
        ):
            if repeated := sorted({name for name in names if names.count(name) > 1}):
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
        """The NF of that name; KeyError when the testbed hosts none."""
        for nf in self.nfs:
            if nf.name == name:
                return nf
        raise KeyError(name)

    def bench(self, name: str) -> BenchDescription | None:
        """The bench of that name, or None."""
        return next((bench for bench in self.benches if bench.name == name), None)

"""Chains of network functions on the cores of a NIC or server, and how people write them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from profiles.text import number_of
from profiles.traffic import TrafficProfile

Parameters = tuple[tuple[str, float], ...]  # parameters of an NF, sorted by name; what is left out has its default


def sort_parameters(values: Mapping[str, float]) -> Parameters:
    """The parameters as loads hold them."""
    return tuple(sorted((name, float(value)) for name, value in values.items()))


@dataclass(frozen=True, slots=True, order=True)
class NfStage:
    """One NF of a chain, with its parameters."""

    nf: str
    parameters: Parameters = ()

    @classmethod
    def of(cls, nf: str, parameters: Mapping[str, float] | None = None) -> "NfStage":
        """The NF with these parameters."""
        return cls(nf, sort_parameters(parameters or {}))


@dataclass(frozen=True, slots=True, order=True)
class ChainLoad:
    """A chain of NFs that packets pass in order. Stages of one core run to completion: a batch passes all of them
    before the core takes the next one. Stages on different cores are linked by rings."""

    stages: tuple[NfStage, ...]  # the NFs, in the order in which packets pass them
    cores: tuple[tuple[int, ...], ...]  # per core, the indices of its stages; each stage is on one core
    traffic: TrafficProfile  # what enters the chain
    rate_kpps: float = 0.0  # offered load; 0 is a closed loop: packets enter as fast as the chain takes them
    shares: tuple[float, ...] = ()
    """Per core, the share of its time that it may spend on this chain; empty for all of it on each."""

    @classmethod
    def of(
        cls,
        stages: Sequence[str | NfStage],
        cores: Sequence[Sequence[int]],
        traffic: TrafficProfile,
        *,
        rate_kpps: float = 0.0,
        shares: Sequence[float] = (),
    ) -> "ChainLoad":
        """The chain of these NFs; a name stands for an NF with its default parameters."""
        return cls(
            tuple(NfStage(stage) if isinstance(stage, str) else stage for stage in stages),
            tuple(tuple(indices) for indices in cores),
            traffic,
            float(rate_kpps),
            tuple(map(float, shares)),
        )

    @property
    def label(self) -> str:
        """What messages call it: its NFs, as in `ACL,NAT`."""
        return ",".join(stage.nf for stage in self.stages)

    def as_request(self) -> dict[str, object]:
        """The chain as the testbed protocol writes it; shares only where there are any."""
        request: dict[str, object] = {
            "kind": "chain",
            "stages": [{"name": stage.nf, "parameters": dict(stage.parameters)} for stage in self.stages],
            "cores": [list(indices) for indices in self.cores],
            "traffic": self.traffic.as_dict(),
            "rate_kpps": self.rate_kpps,
        }
        return request | ({"shares": list(self.shares)} if self.shares else {})


# Chains as people write them: `ACL:rules=1024,NAT|LB`.
#
# Stages are separated by commas, parameters follow their NF after colons, and `|` begins the next core.


NEXT_STAGE, NEXT_CORE, PARAMETER_MARK = ",", "|", ":"

Cores = tuple[tuple[int, ...], ...]


def writable(nf: str) -> bool:
    """Whether an NF can be named in the text of a chain: its name holds no separator."""
    return nf == nf.strip() and not any(separator in nf for separator in (NEXT_STAGE, NEXT_CORE, PARAMETER_MARK))


def stages_text(stages: Sequence[NfStage]) -> str:
    """The stages as text, in order."""
    return NEXT_STAGE.join(
        PARAMETER_MARK.join([stage.nf, *(f"{name}={value:.10g}" for name, value in stage.parameters)])
        for stage in stages
    )


def parse_chain(text: str) -> tuple[tuple[NfStage, ...], Cores | None]:
    """The stages of a chain, and the indices of those on each core; None where the text does not place them. Raises
    `ValueError` with everything that is wrong in it."""
    faults: list[str] = []
    stages: list[NfStage] = []
    cores: list[tuple[int, ...]] = []
    for core in text.split(NEXT_CORE):
        first = len(stages)
        stages += [_stage(part.strip(), faults) for part in core.split(NEXT_STAGE)]
        cores.append(tuple(range(first, len(stages))))
    if faults:
        raise ValueError("; ".join(faults))
    return tuple(stages), tuple(cores) if NEXT_CORE in text else None


def _stage(text: str, faults: list[str]) -> NfStage:
    nf, *parameters = text.split(PARAMETER_MARK)
    if not nf:
        faults.append("a stage is empty")
    values = {}
    for parameter in parameters:
        name, _, value = parameter.partition("=")
        number = number_of(value)
        if not name or number is None:
            faults.append(f"'{parameter}' is not of the form NAME=NUMBER")
        elif name in values:
            faults.append(f"{nf} has {name} twice")
        else:
            values[name] = number
    return NfStage.of(nf, values)

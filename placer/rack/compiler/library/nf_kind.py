"""The seam of the library: what a file says about its kind of NF."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, Literal, TypeVar

from placer.rack.compiler.library.given_data import DataParameter
from profiles.faults import Fault, InputError, suggestion
from profiles.registry import Registry

T = TypeVar("T")

WORD_MASK = (1 << 64) - 1


class SplitMix:
    """SplitMix64 (Steele, Lea and Flood, 2014)."""

    def __init__(self, seed: int) -> None:
        self._state = seed & WORD_MASK

    def next(self) -> int:
        """A number of 64 bits."""
        self._state = self._state + 0x9E3779B97F4A7C15 & WORD_MASK
        value = self._state
        value = (value ^ value >> 30) * 0xBF58476D1CE4E5B9 & WORD_MASK
        value = (value ^ value >> 27) * 0x94D049BB133111EB & WORD_MASK
        return value ^ value >> 31

    def below(self, n: int) -> int:
        """A number from 0 to n - 1, where n has at most 32 bits."""
        return (self.next() >> 32) * n >> 32

    def one_of(self, choices: Sequence[T]) -> T:
        return choices[self.below(len(choices))]


Platform = Literal["server", "switch", "smartnic", "openflow"]
ALL_PLATFORMS: frozenset[Platform] = frozenset(("server", "switch", "smartnic", "openflow"))

MOST_SEED = 2**32 - 1

NO_OWN_DATA: Mapping[str, Any] = {}

Data = TypeVar("Data")


@dataclass(frozen=True)
class ParameterRange:
    """A parameter of an NF in a chain: a number."""

    name: str
    help: str
    low: float
    high: float
    default: float | None = None  # None: the chain must set it
    is_whole: bool = True  # whether it is a count or a number of something

    def fault(self, value: float) -> str | None:
        """Why a value is refused."""
        if not self.low <= value <= self.high:
            return f"{value:.15g} is not from {self.low:.15g} to {self.high:.15g}"
        return f"{value:.15g} is not a whole number" if self.is_whole and value != int(value) else None


SEED_PARAMETER = ParameterRange("seed", "of the generated data", 0, MOST_SEED, 1)


class NfKind(ABC, Generic[Data]):
    """A kind of NF: its parameters, where it runs, and its data."""

    name: ClassVar[str]
    parameters: ClassVar[tuple[ParameterRange, ...]] = ()
    own: ClassVar[tuple[DataParameter, ...]] = ()  # parameters that take a file or such in place of generated data
    empty_means: ClassVar[str] = ""  # what happens to packets where own data has no entry
    platforms: ClassVar[frozenset[Platform]]  # where it can run, by table 3 of Lemur (Yen et al.)

    def completed(
        self, given: Mapping[str, float], where: str, own: Mapping[str, Any] = NO_OWN_DATA
    ) -> dict[str, float]:
        """The parameters of an instance, with defaults. `own`: own data by parameter, whose number is its size.

        Raises InputError when a parameter is unknown, out of its range, or missing: all of them, in the name of
        `where`.
        """
        known = {parameter.name: parameter for parameter in self.parameters}
        sizes = {parameter.name for parameter in self.own}
        faults = [
            Fault(where, None, name, f"{self.name} has no such parameter", suggestion(name, known) if known else None)
            for name in given
            if name not in known and name not in sizes
        ]
        for name, one in known.items():
            value = given.get(name, one.default)
            why = "it must be set" if value is None else one.fault(value) if name not in own else None
            if why:
                faults.append(Fault(where, None, name, why))
        if faults:
            raise InputError(faults)
        return {name: float(given.get(name, one.default or 0)) for name, one in known.items()}

    def runs_on(self, parameters: Mapping[str, float]) -> frozenset[Platform]:
        """Where an instance can run: fewer than `platforms` if a parameter asks for more than fits some."""
        return self.platforms

    @abstractmethod
    def data(self, parameters: Mapping[str, float]) -> Data:
        """The data of an instance, from its completed parameters: the same on all platforms."""

    def data_of(self, parameters: Mapping[str, float], own: Mapping[str, Any]) -> Data:
        """The data of an instance that has own data: by parameter what its reader made of it."""
        return self.data(parameters)

    def own_settings(self, own: Mapping[str, Any]) -> dict[str, str]:
        """Settings of the function in C that own data changes, beside its file."""
        return {}

    def own_warning(self, own: Mapping[str, Any]) -> str | None:
        """What an operator should know about own data that is given, or left out."""
        empty = [name for name, entries in own.items() if entries == ()]
        return f"there are no {empty[0]}: {self.empty_means}" if empty and self.empty_means else None

    def rule_numbers(self, data: Data) -> Sequence[int]:
        """Per entry whose packets devices count, the number of the rule that it is a part of; empty: each is one."""
        return ()

    def server_files(self, data: Data) -> dict[str, str]:
        """What the function in C reads, by the suffix of the file."""
        return {}

    def server_settings(self, parameters: Mapping[str, float], files: Mapping[str, str]) -> dict[str, str]:
        """The settings of the function in C; `files` has the path of each file by its suffix."""
        return {}

    def settings_of_copy(self, parameters: Mapping[str, float], copy: int, copies: int) -> dict[str, str]:
        """What one of several copies has in place of `server_settings`, where copies would use the same twice."""
        return {}

    def most_copies(self, parameters: Mapping[str, float]) -> int | None:
        """How many copies can run at once without disturbing one another; None: any number."""
        return None

    def has_own_seed(self, parameters: Mapping[str, float]) -> bool:
        """Whether no two functions of a rack may have the same `seed`: their initialization vectors come from it."""
        return False


class NoData(NfKind[None]):
    """A kind of NF whose parameters say everything."""

    def data(self, parameters: Mapping[str, float]) -> None:
        return None


NF_KINDS: Registry[NfKind[Any]] = Registry("kind of NF", "placer.rack.compiler.library", "placer.nf_kinds", "nf")

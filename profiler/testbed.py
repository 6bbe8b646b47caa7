"""Testbeds: whatever can run workloads side by side on a NIC and measure them."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from profiles import Counters, Load, TestbedDescription


class TestbedError(Exception):
    """A testbed that failed; the message carries what it last said."""

    __test__ = False


class RunRefused(TestbedError):
    """A request that the testbed understood and will not serve, however often it is asked."""


class TestbedChanged(TestbedError):
    """A testbed that came back as another one: what it measures belongs to another profile."""

    __test__ = False


@dataclass(frozen=True, slots=True)
class Measurement:
    """What one workload did during a run: throughput (kpps) and its own counters in that company."""

    throughput_kpps: float
    counters: Counters


@dataclass(frozen=True, slots=True)
class Run:
    """One run: a measurement per load, in the order asked, and the testbed's time for it (s)."""

    measurements: tuple[Measurement, ...]
    elapsed_s: float = 0.0


def refuse_unsound(run: Run) -> None:
    """TestbedError when a throughput or counter is no measurement, so that no model learns from it."""
    for one in run.measurements:
        if not (math.isfinite(one.throughput_kpps) and one.throughput_kpps > 0):
            raise TestbedError(f"testbed reports a throughput of {one.throughput_kpps} kpps")
        if wrong := {name: value for name, value in one.counters.as_dict().items() if not 0 <= value < math.inf}:
            raise TestbedError(f"testbed reports counters {wrong}")


class Testbed(ABC):
    """A NIC on which loads are run together. Use it as a context manager; leaving it frees what it holds."""

    __test__ = False

    @abstractmethod
    def describe(self) -> TestbedDescription:
        """What the testbed says of itself."""

    @abstractmethod
    def run(self, loads: Sequence[Load], *, noise: bool = True, seed: int | None = None) -> Run:
        """Run `loads` side by side and measure each.

        Parameters
        ----------
        loads
            NF workloads and benches that share the NIC.
        noise
            False asks a simulated testbed for the noise-free truth; a real one ignores it.
        seed
            A simulated testbed draws its noise from the seed and the loads alone.

        Raises
        ------
        RunRefused
            When the testbed refuses the request.
        TestbedError
            When the testbed fails.
        """

    def run_many(
        self, co_locations: Sequence[Sequence[Load]], *, noise: bool = True, seed: int | None = None
    ) -> list[Run]:
        """One run per company, in order; a testbed that can batch overrides this."""
        return [self.run(loads, noise=noise, seed=seed) for loads in co_locations]

    @property
    def batches(self) -> bool:
        """Whether it answers several companies together faster than one after another."""
        return type(self).run_many is not Testbed.run_many

    def close(self) -> None:
        """Free what the testbed holds; safe to call twice."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class TestbedInFront(Testbed):
    """A testbed in front of another, which it describes; what it changes of the answers is in `run_many`.

    Parameters
    ----------
    behind
        Who is asked.
    """

    __test__ = False

    def __init__(self, behind: Testbed) -> None:
        self._behind = behind

    @property
    def batches(self) -> bool:
        return self._behind.batches

    def describe(self) -> TestbedDescription:
        return self._behind.describe()

    def run(self, loads: Sequence[Load], *, noise: bool = True, seed: int | None = None) -> Run:
        return self.run_many([loads], noise=noise, seed=seed)[0]

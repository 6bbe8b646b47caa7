"""The runs of one NF: asked of the testbed, remembered, and counted against the quota."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from profiler.contention import ALONE, Contention, MemoryContention
from profiler.sampling import Range, traffic_ranges, traffic_with
from profiler.testbed import Measurement, Testbed
from profiles import Load, NfDescription, TestbedDescription, TrafficProfile, Workload

Company = tuple[TrafficProfile, Contention]
"""The NF's traffic, and what runs beside it."""

REPEAT_SEEDS = 1_000_003


class QuotaSpent(Exception):
    """The NF has had all its runs; whatever method asked for more ends here."""


class NfRuns:
    """The runs of one NF.

    Parameters
    ----------
    testbed
        Where the NF runs.
    nf
        The NF, as described.
    memory
        The memory contention that can run beside it.
    quota
        The most runs it may have; None for no limit.
    seed
        Passed on to the testbed with every run.
    done
        Told how many runs were made, each time some were.
    """

    def __init__(
        self,
        testbed: Testbed,
        nf: NfDescription,
        memory: MemoryContention,
        *,
        quota: int | None,
        seed: int,
        done: Callable[[int], None],
    ) -> None:
        self._testbed = testbed
        self._description = testbed.describe()
        self._seed = seed
        self._done = done
        self._quota = quota
        self._runs: dict[Company, list[Measurement]] = {}
        self._count = 0
        self.nf = nf
        self.memory = memory

    @property
    def base(self) -> TrafficProfile:
        """Default traffic with the least accelerator work: where memory contention is measured."""
        return least_work(self._description, self.nf)

    @property
    def attributes(self) -> dict[str, Range]:
        """The traffic attributes, with their ranges, over which memory contention is to be measured.

        An accelerator NF keeps `mtbr` at its smallest, because its matches load the accelerator.
        """
        ranges = traffic_ranges(self._description)
        return {name: bounds for name, bounds in ranges.items() if not (self.nf.accelerators and name == "mtbr")}

    @property
    def left(self) -> float:
        """Runs that may still be made."""
        return float("inf") if self._quota is None else self._quota - self._count

    def measure(self, companies: Iterable[Company]) -> list[float]:
        """Throughput (kpps) of the NF in each company, in order. A company asked before is not run again.

        Raises
        ------
        QuotaSpent
            When not every one fits into the quota; those that do were run.
        TestbedError
            When the testbed fails.
        """
        companies = list(companies)
        new = list(dict.fromkeys(company for company in companies if company not in self._runs))
        fitting = new if self._quota is None else new[: max(self._quota - self._count, 0)]
        self._run(fitting, self._seed)
        if len(fitting) < len(new):
            raise QuotaSpent
        return [self._runs[company][0].throughput_kpps for company in companies]

    def repeat(self, company: Company, times: int) -> list[float]:
        """Throughput (kpps) of several runs of the same company, each with noise of its own."""
        self.measure([company])
        for repeat in range(len(self._runs[company]), times):
            if self.left < 1:
                raise QuotaSpent
            self._run([company], self._seed + REPEAT_SEEDS * repeat)
        return [one.throughput_kpps for one in self._runs[company]]

    def all(self) -> list[tuple[TrafficProfile, Contention, Sequence[Measurement]]]:
        """Every company with its measurements (more than one when repeated), in the order first run."""
        return [(traffic, contention, runs) for (traffic, contention), runs in self._runs.items()]

    def _run(self, companies: Sequence[Company], seed: int) -> None:
        asked: list[list[Load]] = [
            [Workload(self.nf.name, traffic), *contention.loads] for traffic, contention in companies
        ]
        for company, run in zip(companies, self._testbed.run_many(asked, seed=seed), strict=True):
            self._runs.setdefault(company, []).append(run.measurements[0])
        self._count += len(companies)
        self._done(len(companies))


def least_work(description: TestbedDescription, nf: NfDescription) -> TrafficProfile:
    """Default traffic, for accelerator NFs with the fewest matches that the testbed offers."""
    if not nf.accelerators:
        return description.traffic
    return traffic_with(description.traffic, {"mtbr": description.range_of("mtbr")[0]})


def alone(traffics: Iterable[TrafficProfile]) -> list[Company]:
    """Each traffic with nothing beside the NF."""
    return [(traffic, ALONE) for traffic in traffics]

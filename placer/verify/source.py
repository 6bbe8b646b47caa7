"""Sources of throughputs for the verifier: a testbed, or the models where the optimum is a predicted one."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from placer.verify.certificate_file import Kind
from predictor import Models, Predictor
from profiler.testbed import Testbed
from profiles import CoLocation, InputError, TrafficProfile, Workload


@dataclass(frozen=True, eq=False)
class ThroughputSource:
    """Throughputs on one kind of NIC. `model`, `cores`: of the NIC; None where they are not known. `traffic`: traffic
    of arrivals in a trace that gives none. `errors`: the predictor, which says how likely throughputs fall short; None
    for a testbed."""

    name: str
    model: str | None
    cores: int | None
    cores_of: Mapping[str, int]
    traffic: TrafficProfile
    query: Callable[[Sequence[CoLocation]], list[list[float]]]
    check: Callable[[Collection[Workload]], None] = lambda workloads: None
    errors: Predictor | None = None


def testbed_source(testbed: Testbed) -> ThroughputSource:
    """A testbed, noise-free where it can be."""
    described = testbed.describe()

    def query(co_locations: Sequence[CoLocation]) -> list[list[float]]:
        runs = testbed.run_many(co_locations, noise=False)
        return [[measured.throughput_kpps for measured in run.measurements] for run in runs]

    cores_of = {nf.name: nf.cores for nf in described.nfs}
    name, nic = f"the testbed {described.name}", described.nic
    return ThroughputSource(name, nic.model, nic.cores, cores_of, described.traffic, query)


def predictor_source(models: Models, predictor: str, risk: float | None) -> ThroughputSource:
    """A predictor, at the risk that the optimum was made with. Raises InputError when the models do not have it."""
    if predictor not in models.predictors:
        raise InputError.of("--models", f"these models have no {predictor}, with which the certificate was made")

    def check(workloads: Collection[Workload]) -> None:
        for workload in sorted(workloads):
            for column, message in models.check(workload):
                raise InputError.of(f"{workload.nf} in the certificate", message, column=column)

    def query(co_locations: Sequence[CoLocation]) -> list[list[float]]:
        check({workload for co_location in co_locations for workload in co_location})
        return [list(map(float, answer)) for answer in models.predictors[predictor].throughput(co_locations, risk=risk)]

    nic = models.testbed.nic if models.testbed else None
    cores_of = {nf: models.cores(nf) for nf in models.nfs}
    name = f"the predictor {predictor}"
    model, cores = (nic.model, nic.cores) if nic else (None, None)
    predicted = models.predictors[predictor]
    return ThroughputSource(name, model, cores, cores_of, models.default_traffic, query, check, predicted)


# Queries of throughputs, and the co-locations to query.


Query = Callable[[int, Sequence[CoLocation]], Sequence[Sequence[float]]]
"""From the number of a NIC kind and co-locations, the throughputs (kpps) in each."""


def lowest_of(number: int, co_locations: Sequence[CoLocation], query: Query) -> dict[CoLocation, dict[Workload, float]]:
    """By co-location, the throughput of each workload; of equal workloads the lowest."""
    throughputs: dict[CoLocation, dict[Workload, float]] = {}
    for co_location, answer in zip(co_locations, query(number, co_locations), strict=True):
        lowest: dict[Workload, float] = {}
        for workload, kpps in zip(co_location, answer, strict=True):
            lowest[workload] = min(kpps, lowest.get(workload, kpps))
        throughputs[co_location] = lowest
    return throughputs


def solo_of(number: int, workloads: set[Workload], query: Query) -> dict[Workload, float]:
    """The throughput of each workload alone on a NIC."""
    alone: list[CoLocation] = [(workload,) for workload in sorted(workloads)]
    return {co_location[0]: answer[0] for co_location, answer in zip(alone, query(number, alone), strict=True)}


def co_locations_on(kind: Kind, instances_of: Mapping[Workload, int]) -> Iterator[CoLocation]:
    """Every co-location of at most so many instances of these workloads that fits the cores."""
    workloads = sorted(instances_of)

    def grow(co_location: CoLocation, first: int) -> Iterator[CoLocation]:
        for place in range(first, len(workloads)):
            larger = (*co_location, workloads[place])
            if (
                larger.count(workloads[place]) <= instances_of[workloads[place]]
                and kind.count_cores(larger) <= kind.cores
            ):
                yield larger
                yield from grow(larger, place)

    return grow((), 0)

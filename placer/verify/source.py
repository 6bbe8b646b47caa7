"""Sources of throughputs for the verifier: a testbed, or the models where the optimum is a predicted one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from predictor import Models
from profiler.testbed import Testbed
from profiles import CoLocation, InputError, TrafficProfile


@dataclass(frozen=True, eq=False)
class ThroughputSource:
    """Throughputs on one kind of NIC.

    Parameters
    ----------
    name
        In words.
    model, cores
        Of the NIC; None where they are not known.
    cores_of
        Cores that each NF takes.
    traffic
        Traffic of arrivals in a trace that gives none.
    query
        The throughputs (kpps) in co-locations.
    """

    name: str
    model: str | None
    cores: int | None
    cores_of: Mapping[str, int]
    traffic: TrafficProfile
    query: Callable[[Sequence[CoLocation]], list[list[float]]]


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
    """A predictor, at the risk that the optimum was made with.

    Raises
    ------
    InputError
        When the models do not have it.
    """
    if predictor not in models.predictors:
        raise InputError.of("--models", f"these models have no {predictor}, with which the certificate was made")

    def query(co_locations: Sequence[CoLocation]) -> list[list[float]]:
        for workload in sorted({workload for co_location in co_locations for workload in co_location}):
            for column, message in models.check(workload):
                raise InputError.of(f"{workload.nf} in the certificate", message, column=column)
        return [list(map(float, answer)) for answer in models.predictors[predictor].throughput(co_locations, risk=risk)]

    nic = models.testbed.nic if models.testbed else None
    cores_of = {nf: models.cores(nf) for nf in models.nfs}
    name = f"the predictor {predictor}"
    model, cores = (nic.model, nic.cores) if nic else (None, None)
    return ThroughputSource(name, model, cores, cores_of, models.default_traffic, query)

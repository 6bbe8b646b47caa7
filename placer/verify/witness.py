"""Whom the verifier asks about a kind of NIC: a testbed, or the models where the optimum is a predicted one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from placer.verify.asking import CoLocation
from predictor import Models
from profiler.testbed import Testbed
from profiles import InputError, TrafficProfile


@dataclass(frozen=True, eq=False)
class Witness:
    """One who tells throughputs.

    Parameters
    ----------
    name
        In words.
    cores
        Of a NIC; None where nobody measured it.
    cores_of
        Cores that each NF takes.
    traffic
        What is meant where a trace tells no traffic.
    tell
        The throughputs (kpps) of companies.
    """

    name: str
    cores: int | None
    cores_of: Mapping[str, int]
    traffic: TrafficProfile
    tell: Callable[[Sequence[CoLocation]], list[list[float]]]


def measuring(testbed: Testbed) -> Witness:
    """A testbed, noise-free where it can be."""
    described = testbed.describe()

    def tell(co_locations: Sequence[CoLocation]) -> list[list[float]]:
        runs = testbed.run_many(co_locations, noise=False)
        return [[measured.throughput_kpps for measured in run.measurements] for run in runs]

    cores_of = {nf.name: nf.cores for nf in described.nfs}
    return Witness(f"the testbed {described.name}", described.nic.cores, cores_of, described.traffic, tell)


def predicting(models: Models, predictor: str, risk: float | None) -> Witness:
    """A predictor, at the risk that the optimum was made with.

    Raises
    ------
    InputError
        When the models do not have it.
    """
    if predictor not in models.predictors:
        raise InputError.of("--models", f"these models have no {predictor}, by which the certificate was made")

    def tell(co_locations: Sequence[CoLocation]) -> list[list[float]]:
        for workload in sorted({workload for co_location in co_locations for workload in co_location}):
            for column, message in models.check(workload):
                raise InputError.of(f"{workload.nf} in the certificate", message, column=column)
        return [list(map(float, answer)) for answer in models.predictors[predictor].throughput(co_locations, risk=risk)]

    cores = models.testbed.nic.cores if models.testbed else None
    cores_of = {nf: models.cores(nf) for nf in models.nfs}
    return Witness(f"the predictor {predictor}", cores, cores_of, models.default_traffic, tell)

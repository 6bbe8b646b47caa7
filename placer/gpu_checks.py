"""Whether every NF of a plan that is on a GPU keeps its promise there, by code that shares nothing with admission.

The schedule of each co-location is computed anew from its batches, orders and minibatches, as of CONTRACTS 10.
"""

from __future__ import annotations

from collections.abc import Iterator

from placer.evaluate.checks import InvalidPlan
from placer.inputs.gpu_admission import ExactTest
from placer.model.catalogue import Catalogue
from placer.model.fleet import Fleet
from placer.model.gpu_oracle import GpuOracle
from placer.model.offered import OfferedWorkload
from placer.model.oracle import CoLocation
from placer.model.plan import Plan
from placer.model.replay import replay_plan
from placer.verify.admission import admission_case, admission_faults


def check_gpus(plan: Plan, catalogue: Catalogue) -> None:
    """Hold the co-locations of a plan on GPUs to what their NFs are promised.

    Raises
    ------
    InvalidPlan
        With every fault.
    """
    faults = list(gpu_faults(plan, catalogue)) if catalogue.gpus else []
    if faults:
        raise InvalidPlan(f"strategy {plan.strategy} breaks promises on GPUs:\n" + "\n".join(faults))


def gpu_faults(plan: Plan, catalogue: Catalogue) -> Iterator[str]:
    """A sentence per promise or limit that a co-location on a GPU breaks."""
    checked: set[tuple[int, CoLocation]] = set()
    for _, changed in replay_plan(plan, Fleet(catalogue.kinds)):
        for nic in changed:
            key = nic.kind.index, nic.co_location
            if nic.tenants and nic.kind.index in catalogue.gpus and key not in checked:
                checked.add(key)
                yield from (f"{nic.id}: {fault}" for fault in _faults(catalogue.gpus[nic.kind.index], nic.co_location))


def _faults(oracle: GpuOracle, co_location: CoLocation) -> Iterator[str]:
    schedule = oracle.schedule(co_location)
    for workload, one in zip(co_location, schedule.workloads, strict=True):
        if one.cause:
            yield f"{workload.nf} is rejected: {one.cause}"
    if schedule.keeps_all and isinstance(oracle.test, ExactTest):
        offered = [one for one in co_location if isinstance(one, OfferedWorkload)]
        written = oracle.test.certificate(offered, schedule)
        yield from admission_faults(admission_case(written["device"], written["slos"], written["answer"]))

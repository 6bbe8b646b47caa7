"""Exact admission: as many SLOs as a GPU can serve, and a bound on how many any plan could.

    SLOs -> their best cases -> bounds, each from one resource -> plans by insertion, improved -> bound from the demand
    on the bus -> proof by all plans where there are few SLOs, else more improvement

A plan is held as a layout (`sm_layout`): minibatches on SMs, from which everything else follows.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import cache

from placer.gpu.device import Arbitration, GpuDevice, GpuNf
from placer.gpu.exact.answer import plan_of
from placer.gpu.exact.best_case import best_cases
from placer.gpu.exact.causes import rejections
from placer.gpu.exact.problem import problem_of
from placer.gpu.exact.search import AdmissionSearch, Reporter
from placer.gpu.plan import Admission
from placer.gpu.slo import LatencySlo

__all__ = ["admit_exactly"]


def admit_exactly(
    device: GpuDevice,
    slos: Sequence[LatencySlo],
    time_limit_s: float = 1.0,
    progress: Reporter | None = None,
    *,
    everybody: bool = False,
) -> Admission:
    """Admit as many SLOs as possible.

    Parameters
    ----------
    time_limit_s
        After this, the best plan so far is returned with its bound. Loading compiled code does not count.
    progress
        Is called while a better plan is searched.
    everybody
        Whether only a plan for all of them is wanted. The search then ends as soon as there is none; what it returns
        need not admit as many as possible, and its bound is below the number of SLOs.

    Returns
    -------
    What is admitted, what is rejected with its cause, and an upper bound; proven where the bound is reached. Without
    the time limit in the way, equal calls return equal plans.
    """
    _load()
    started = time.monotonic()
    problem = problem_of(device, slos)
    cases = best_cases(problem)
    search = AdmissionSearch(problem, cases, started + time_limit_s, progress, everybody=everybody)
    search.run()
    admitted = plan_of(device, slos, problem, search.best)
    rejected = rejections(device, slos, admitted, cases)
    return Admission(admitted, rejected, search.bound, len(admitted) == search.bound, time.monotonic() - started)


@cache
def _load() -> None:
    """Load the compiled code, with two SLOs of which the GPU serves only one."""
    nf = GpuNf("class", 0.0, (1.0, 1.0))
    device = GpuDevice(1, 2, 64, 2, Arbitration.SPORADIC, {"class": (0.0, 1.5)}, {"nf": nf}, {"nf": {"nf": 1.0}})
    problem = problem_of(device, [LatencySlo(name, "nf", 100.0, 5.0) for name in ("a", "b")])
    search = AdmissionSearch(problem, best_cases(problem), time.monotonic() + 60.0)
    search.bound = 2
    search.run()

"""Online admission: the SLOs on a GPU, and which others may join them."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from placer.gpu.device import GpuDevice
from placer.gpu.exact import admit_exactly, rejections
from placer.gpu.exact.bound import best_cases
from placer.gpu.exact.complete import CompleteSearch
from placer.gpu.exact.recreate import PRIORITY_TRIES, insert
from placer.gpu.exact.sm_layout import Problem, SmLayout, empty_layout, plan_of, problem_of, put, settle
from placer.gpu.plan import Admitted, LatencySlo, Rejected

QUICK_WAYS = 8
"""Random ways to insert an SLO before all are searched."""


@dataclass(frozen=True)
class GpuFeasibility:
    """Whether SLOs can share a GPU; true where everybody is served.

    Parameters
    ----------
    plan
        One that serves everybody; else one that serves some.
    rejected
        Whom that plan does not serve, with causes.
    proven
        Whether no plan serves everybody, where this one does not.
    """

    plan: tuple[Admitted, ...]
    rejected: tuple[Rejected, ...]
    proven: bool

    def __bool__(self) -> bool:
        return not self.rejected


class GpuTenants:
    """The SLOs on a GPU.

    An SLO that joins leaves the others on their SMs, with their executors; their batches and the order of transfers may
    change, which takes effect with the next batch. With `may_move`, minibatches of others may move where it does not
    fit otherwise.

    Parameters
    ----------
    plan
        Of those on it already.
    time_limit_s
        Of each search. What is not found within it counts as rejected.
    """

    def __init__(self, device: GpuDevice, plan: Sequence[Admitted] = (), time_limit_s: float = 0.5) -> None:
        self._device = device
        self._plan = tuple(plan)
        self._time_limit_s = time_limit_s

    @property
    def plan(self) -> tuple[Admitted, ...]:
        """Who is on the GPU, in the order of transfers."""
        return self._plan

    def admits(self, slo: LatencySlo, *, may_move: bool = False) -> Admitted | Rejected:
        """How the SLO would run, or why not. Nothing changes."""
        return self._joining(slo, may_move)[1]

    def add(self, slo: LatencySlo, *, may_move: bool = False) -> Admitted | Rejected:
        """Admit the SLO where it fits: how it runs, or why not.

        Raises
        ------
        ValueError
            An SLO of that id is on the GPU.
        """
        self._plan, answer = self._joining(slo, may_move)
        return answer

    def remove(self, slo_id: str) -> None:
        """Release an SLO. The others keep everything.

        Raises
        ------
        KeyError
            It is not on the GPU.
        """
        left = tuple(one for one in self._plan if one.slo.id != slo_id)
        if len(left) == len(self._plan):
            raise KeyError(slo_id)
        self._plan = left

    def change_rate(self, slo_id: str, rate_kpps: float, *, may_move: bool = False) -> Admitted | Rejected:
        """Adapt batches to a new rate, on other SMs if needed; where it does not fit, the SLO stays as it is.

        Raises
        ------
        KeyError
            It is not on the GPU.
        """
        before = self._plan
        slo = {one.slo.id: one.slo for one in before}[slo_id]
        self.remove(slo_id)
        answer = self.add(replace(slo, rate_kpps=rate_kpps), may_move=may_move)
        if isinstance(answer, Rejected):
            self._plan = before
        return answer

    def feasible(self, slos: Sequence[LatencySlo] = ()) -> GpuFeasibility:
        """Whether those on the GPU and these can share it, on any SMs."""
        everybody = [one.slo for one in self._plan] + list(slos)
        admission = admit_exactly(self._device, everybody, self._time_limit_s, everybody=True)
        return GpuFeasibility(admission.admitted, admission.rejected, admission.bound < len(everybody))

    def _joining(self, slo: LatencySlo, may_move: bool) -> tuple[tuple[Admitted, ...], Admitted | Rejected]:
        """The plan with the SLO, and how it runs there; or the plan as it is, and why not."""
        if any(one.slo.id == slo.id for one in self._plan):
            raise ValueError(f"{slo.id} is on the GPU already")
        slos = [one.slo for one in self._plan] + [slo]
        problem = problem_of(self._device, slos)
        cases = best_cases(problem)
        if len(slos) > self._device.workers:
            return self._plan, rejections(self._device, slos, self._plan, cases)[0]
        layout = self._layout(problem)
        joined = self._insert(problem, layout)
        if joined is None:
            joined = CompleteSearch(problem, cases, time.monotonic() + self._time_limit_s).joins(layout, len(slos) - 1)
        if joined is not None:
            plan = plan_of(self._device, slos, problem, joined)
            return plan, next(one for one in plan if one.slo.id == slo.id)
        if may_move and (found := self.feasible([slo])):
            return found.plan, next(one for one in found.plan if one.slo.id == slo.id)
        return self._plan, rejections(self._device, slos, self._plan, cases)[0]

    def _layout(self, problem: Problem) -> SmLayout:
        """The plan as a layout."""
        layout = empty_layout(problem)
        for at, one in enumerate(self._plan):
            layout.wish[at] = one.batch
            for share in one.minibatches:
                put(problem, layout, at, share.sm, self._device.executors(share.packets))
        return layout

    def _insert(self, problem: Problem, layout: SmLayout) -> SmLayout | None:
        """The layout with the last SLO, where a quick way is found."""
        trial, rng = empty_layout(problem), np.random.default_rng(0)
        trial.chosen[:] = layout.chosen
        if settle(problem, trial, PRIORITY_TRIES) < 0:
            return None
        favoured = np.zeros(len(problem.nf), dtype=np.int64)
        for _ in range(QUICK_WAYS):
            if insert(problem, trial, len(problem.nf) - 1, favoured, rng, PRIORITY_TRIES):
                return trial
        return None

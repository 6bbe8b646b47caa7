"""The search: plans from insertion, improvement, and a proof, until plan and bound meet or the time is over."""

import time
from math import floor

import numpy as np

from placer.gpu.exact.bound import LOOSE_LIMIT, BestCases, most_once, upper_bound
from placer.gpu.exact.complete import CompleteSearch
from placer.gpu.exact.demand_bound import demand_bound, whole_demand_bound
from placer.gpu.exact.recreate import construct, improve
from placer.gpu.exact.sm_layout import Problem, SmLayout, empty_layout
from profiles.arrays import Ints

CLOCK_ROUNDS = 20  # rounds of improvement between two looks at the clock
FIRST_ROUNDS = 200  # rounds without a better plan before the proof
SECOND_ROUNDS = 1_000  # rounds without a better plan before a bound that takes longer
SEARCH_PATIENCE = 12_000  # rounds without a better plan after which improvement ends
FEW_SLOS = 12  # SLOs of which all plans are searched


class AdmissionSearch:
    """The best plan so far, and the bound. `deadline`: on the monotonic clock, seconds. `best`, `admitted`: the best
    plan, and the number of SLOs that it admits. `bound`: no plan admits more."""

    def __init__(self, problem: Problem, cases: BestCases, deadline: float) -> None:
        self._p = problem
        self._cases = cases
        self._deadline = deadline
        self._rng = np.random.default_rng(0)
        self._layout = empty_layout(problem)
        self._favoured = np.zeros(len(problem.nf), dtype=np.int64)
        self._possible = np.flatnonzero(cases.size > 0)
        load = cases.transfer / (problem.gap_us * np.maximum(1, cases.batch)) if problem.sporadic else cases.transfer
        self._ranked = self._sort(load)
        self.best = empty_layout(problem)
        self.admitted = 0
        self.bound = upper_bound(problem, cases)

    def run(self) -> None:
        """Improve the plan and the bound."""
        self._first_plans()
        self._improve(FIRST_ROUNDS)
        if self._p.sporadic and self._goes_on():
            self._bound_by_demand()
        if len(self._possible) <= FEW_SLOS:
            self._prove()
            return
        self._improve(SECOND_ROUNDS)
        if self._p.sporadic and self.admitted + 1 < self.bound:
            self._bound_by_whole_demand()
        self._improve(SEARCH_PATIENCE)

    def _goes_on(self) -> bool:
        """Whether a better plan may be found, is of use, and there is time."""
        return self.admitted < self.bound and time.monotonic() < self._deadline

    def _sort(self, keys: np.ndarray[tuple[int, ...], np.dtype[np.float64]]) -> Ints:
        """The SLOs that the GPU can serve alone, by a key."""
        return self._possible[np.argsort(keys[self._possible], kind="stable")]

    def _first_plans(self) -> None:
        """Insert SLOs in a few sequences: those that the bus would serve once, by deadline, and by load."""
        cases, possible = self._cases, self._possible
        once = possible[most_once(cases.transfer[possible], cases.due[possible], self._p.sporadic)]
        by_due = self._sort(cases.due)
        for sequence in (np.concatenate([by_due[np.isin(by_due, once)], by_due]), by_due, self._ranked):
            self._construct(sequence)

    def _construct(self, sequence: Ints) -> None:
        """Insert SLOs in a sequence; go on with the best plan so far."""
        self._layout.chosen[:] = 0
        self._keep(construct(self._p, self._layout, sequence, self._favoured, self._rng), self._layout)
        self._layout.chosen[:] = self.best.chosen

    def _keep(self, admitted: int, layout: SmLayout) -> bool:
        """Keep a plan that is better than the best."""
        if admitted <= self.admitted:
            return False
        self.admitted = admitted
        self.best.chosen[:] = layout.chosen
        return True

    def _bound_by_demand(self) -> None:
        """Bound by a linear program, whose multipliers show which SLOs are worth their bus time."""
        found = demand_bound(self._p, self._cases, self._deadline - time.monotonic())
        if found is None:
            return
        self.bound = max(self.admitted, min(self.bound, floor(found.bound * LOOSE_LIMIT + 1e-6)))
        self._ranked, self._favoured = self._sort(-found.gain), found.batch
        self._construct(self._ranked)

    def _bound_by_whole_demand(self) -> None:
        """The same with whole SLOs, in half of what time is left."""
        left = self._deadline - time.monotonic()
        if left > 0:
            found = whole_demand_bound(self._p, self._cases, self.admitted, left / 2.0)
            self.bound = self.bound if found is None else min(self.bound, found)

    def _improve(self, patience: int) -> None:
        """Improve the plan until it reaches the bound, or time or patience end."""
        trial, unchanged = empty_layout(self._p), 0
        while unchanged < patience and self._goes_on():
            now = improve(
                self._p, self._layout, trial, self._ranked, self._favoured, self._rng, CLOCK_ROUNDS, self.bound
            )  # fmt: skip
            unchanged = 0 if self._keep(now, trial) else unchanged + CLOCK_ROUNDS

    def _prove(self) -> None:
        """Search all plans for one that admits one more, until there is none."""
        complete = CompleteSearch(self._p, self._cases, self._deadline)
        while self._goes_on():
            size = self.admitted + 1
            found = complete.admits(size)
            if found is not None:
                self._keep(size, found)
            elif not complete.expired():
                self.bound = size - 1

"""The rounds of `placer profile --for`: plan with what is known, choose runs, and see what they changed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, replace

import numpy as np

from placer.evaluate.expected_violations import expected_violations
from placer.measuring.retraining import retrained
from placer.measuring.usage import Usage, usage_of
from placer.measuring.worth import choose_runs
from placer.model.arrival import Arrival
from placer.model.catalogue import Catalogue
from placer.model.oracle import DEFAULT_RISK
from predictor.training.noise import noise_of_a_run
from predictor.training.recorded import profiled, recorded_runs
from profiles import CoLocation
from profiles.profile import Profile


@dataclass(frozen=True)
class Round:
    """One round of planning and measuring.

    Parameters
    ----------
    runs, co_locations, repeats
        Runs chosen, co-locations among them that were not measured before, and further runs of others.
    nics
        NICs of the plan before the round.
    expected_pct, expected_after_pct
        SLA violations to expect of that plan, per 100 instances, with what is known before and after the round.
    change_pct
        The largest change of a prediction by the round, of the co-locations that plans used.
    """

    runs: int
    co_locations: int
    repeats: int
    nics: int
    expected_pct: float
    expected_after_pct: float
    change_pct: float


class MeasuringRounds:
    """Chooses the co-locations to run, round by round, by plans with models of the profile so far.

    Parameters
    ----------
    arrivals
        What will be placed.
    catalogue
        The NICs, with the models to plan the first round with.
    predictor
        The predictor to plan by.
    say
        Called with a line after each round.
    """

    def __init__(
        self, arrivals: Sequence[Arrival], catalogue: Catalogue, predictor: str, say: Callable[[str], None]
    ) -> None:
        self._arrivals = arrivals
        self._catalogue = catalogue
        self._predictor = predictor
        self._say = say
        self._usage: Usage | None = None
        self._planned: tuple[Usage, list[CoLocation], int] | None = None
        self.rounds: list[Round] = []

    @property
    def budget_pct(self) -> float | None:
        """SLA violations per 100 instances that plans are made for."""
        return self._catalogue.budget_pct

    def choose(self, profile: Profile, most: int, refused: Set[CoLocation]) -> list[CoLocation]:
        """The co-locations to run next, one several times for repeats; none where nothing is in doubt."""
        self._learn(profile)
        runs, noise = measured(profile)
        usage = usage_of(
            self._arrivals, self._catalogue, self._predictor, self._seed, self._usage, number=len(self.rounds)
        )
        self._usage = usage
        model = self._catalogue.models[0].predictors[self._predictor]
        risk = DEFAULT_RISK if usage.plan.risk is None else usage.plan.risk
        chosen = choose_runs(model, usage.weights, runs, most, noise=noise, risk=risk, refused=refused)
        if chosen:
            self._planned = usage, chosen, sum(1 for one in dict.fromkeys(chosen) if not runs.get(one))
        return chosen

    def finish(self, profile: Profile) -> None:
        """Complete the last round with what was measured."""
        self._learn(profile)

    @property
    def _seed(self) -> int:
        return self._catalogue.models[0].seed

    def _learn(self, profile: Profile) -> None:
        """Train again after a round, and note what it changed."""
        if self._planned is None:
            return
        (usage, chosen, new), self._planned = self._planned, None
        former = self._catalogue
        self._catalogue = replace(former, models=(retrained(former.models[0], profile, self._predictor),))
        one = Round(
            runs=len(chosen),
            co_locations=new,
            repeats=len(chosen) - new,
            nics=usage.nics,
            expected_pct=expected_violations(usage.plan, former, self._predictor).mean_pct,
            expected_after_pct=expected_violations(usage.plan, self._catalogue, self._predictor).mean_pct,
            change_pct=self._change_pct(former, usage),
        )
        self.rounds.append(one)
        self._say(
            f"round {len(self.rounds)}: {one.runs} runs, {one.co_locations} co-locations measured, {one.repeats} "
            f"repeats; {one.nics} NICs planned, expected SLA violations {one.expected_pct:.2g} % before and "
            f"{one.expected_after_pct:.2g} % after; predictions changed by up to {one.change_pct:.2g} %"
        )

    def _change_pct(self, former: Catalogue, usage: Usage) -> float:
        co_locations = sorted({tuple(workload for workload, _ in use) for use in usage.weights})
        before, after = (
            np.concatenate(one.models[0].predictors[self._predictor].throughput(co_locations))
            for one in (former, self._catalogue)
        )
        return 100.0 * float(np.abs(after / before - 1.0).max())


def measured(profile: Profile) -> tuple[Mapping[CoLocation, int], float]:
    """How often each co-location was run, and the relative standard deviation of a run."""
    recorded = profiled(recorded_runs(profile), profile)
    return {one: len(kpps) for one, kpps in recorded.items()}, noise_of_a_run(map(np.log, recorded.values()))

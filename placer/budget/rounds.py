"""The rounds of `placer profile --for`: plan with what is known, choose runs, and see what they changed."""

import hashlib
from collections.abc import Callable, Mapping, Sequence, Set
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

from placer.budget.usage import Usage, usage_of
from placer.budget.worth import choose_runs
from placer.evaluate.expected_violations import expected_violations
from placer.inputs.arrivals import STRICT_OPTIONS, TraceOptions, read_arrivals
from placer.inputs.catalogue import NONE, Cards, open_catalogue
from placer.model.arrival import Arrival
from placer.model.catalogue import Catalogue
from placer.model.oracle import DEFAULT_RISK
from predictor import PREDICTORS, Models, train
from predictor.contention.intervals import ErrorModel
from predictor.model_folder import MANIFEST_FILE
from predictor.training.calibrate import calibrate
from predictor.training.measurements import measurements_of
from predictor.training.recorded import collect_runs, noise_of_a_run, select_profiled
from profiles import CoLocation, InputError
from profiles.profile import Profile, read_profile


@dataclass(frozen=True)
class Round:
    """One round of planning and measuring. `runs`, `co_locations`, `repeats`: runs chosen, co-locations among them that
    were not measured before, and further runs of others. `nics`: NICs of the plan before the round. `expected_pct`,
    `expected_after_pct`: SLA violations to expect of that plan, per 100 instances, with what is known before and after
    the round. `change_pct`: the largest change of a prediction by the round, of the co-locations that plans used."""

    runs: int
    co_locations: int
    repeats: int
    nics: int
    expected_pct: float
    expected_after_pct: float
    change_pct: float


class MeasuringRounds:
    """Chooses the co-locations to run, round by round, by plans with models of the profile so far. `arrivals`: what
    will be placed. `catalogue`: the NICs, with the models to plan the first round with. `predictor`: the predictor to
    plan by. `say`: called with a line after each round."""

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
        runs, noise = measure(profile)
        usage = usage_of(
            self._arrivals, self._catalogue, self._predictor, self._seed, self._usage, number=len(self.rounds)
        )
        self._usage = usage
        model = self._catalogue.models[0].predictors[self._predictor]
        risk = DEFAULT_RISK if usage.plan.risk is None else usage.plan.risk
        chosen = choose_runs(model, usage.weights, runs, most, noise=noise, risk=risk, refused=refused)
        if chosen:
            self._planned = usage, chosen, sum(1 for co_location in dict.fromkeys(chosen) if not runs.get(co_location))
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
        self._catalogue = replace(former, models=(retrain(former.models[0], profile, self._predictor),))
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
            np.concatenate(catalogue.models[0].predictors[self._predictor].throughput(co_locations))
            for catalogue in (former, self._catalogue)
        )
        return 100.0 * float(np.abs(after / before - 1.0).max())


def measure(profile: Profile) -> tuple[Mapping[CoLocation, int], float]:
    """How often each co-location was run, and the relative standard deviation of a run."""
    recorded = select_profiled(collect_runs(profile), profile)
    return {one: len(kpps) for one, kpps in recorded.items()}, noise_of_a_run(map(np.log, recorded.values()))


# Models after further runs of co-locations: the corrections and error models are fitted anew, nothing else.
#
# Further runs are of co-locations and of NFs alone in `co-locations.csv`. What benches and solo runs taught, the
# boosted
# trees above all, does not change, and takes most of the time of training. Nor is the execution pattern of an NF chosen
# again, which the co-locations of a whole profile have decided before.


def retrain(models: Models, profile: Profile, predictor: str) -> Models:
    """The models with what `profile` adds to the profile that they were trained from. Trained anew where the profile is
    not of the same NFs. `models`: the models before. `profile`: the profile with further runs in `co-locations.csv`.
    `predictor`: the name of the only predictor that the result has. Raises `InputError` when measured co-locations
    contradict the other runs beyond belief."""
    if set(models.nfs) != set(profile.nfs):
        return train(profile, [predictor], seed=models.seed)
    uncorrected = {
        name: replace(model, calibration=None, alone=None, neighbours=None, error_model=ErrorModel.unknown())
        for name, model in models.models.items()
    }
    with threadpool_limits(1):  # as in training: more threads would round differently
        nfs = calibrate(uncorrected, measurements_of(profile, lambda message: None))
        trained = PREDICTORS.find(predictor).train(profile, nfs, seed=models.seed, warn=lambda message: None)
    return replace(models, predictors={predictor: trained}, models=nfs)


# Opens what `placer profile --for` plans with, refused where arrivals, models and profile do not fit together.


def open_rounds(
    arrivals: str,
    models: Path,
    out: Path,
    say: Callable[[str], None],
    budget_pct: float | None = None,
    options: TraceOptions = STRICT_OPTIONS,
) -> tuple[MeasuringRounds, str]:
    """The rounds, and a key that is the same for the same arrivals, models and budget.

    `arrivals`: a path, or `-` for standard input. `models`, `out`: the folders of the models and of the profile. `say`:
    called with messages, and with a line after each round. `budget_pct`: SLA violations per 100 instances that plans
    may be expected to have; None means the default. `options`: what is skipped in the arrivals. Raises `InputError`
    when the profile, the models or the arrivals are refused, or are not of one card."""
    profile = read_profile(out)
    with ExitStack() as stack:
        catalogue = open_catalogue(Cards(models=models, testbed=NONE, budget_pct=budget_pct), stack, say)
    trained = catalogue.models[0].testbed
    if profile.testbed is None:
        raise InputError.of("--out", f"{out} has no testbed.json, so its testbed is not known")
    if trained is not None and trained.nic.model != profile.testbed.nic.model:
        message = f"were trained on a {trained.nic.model}, {out} is a profile of a {profile.testbed.nic.model}"
        raise InputError.of("--models", message, hint=f"`placer train {out} --out MODELS`")
    traced = read_arrivals(arrivals, catalogue.default_traffic, catalogue.check, options, kinds=catalogue.kinds)
    _refuse_unprofiled(traced, profile, out)
    predictor = catalogue.predictors()[0]
    if not catalogue.supports_risk(predictor):
        raise InputError.of("--models", f"{predictor} does not estimate its errors, so nothing is in doubt")
    return MeasuringRounds(traced, catalogue, predictor, say), _key(traced, models, budget_pct)


def _refuse_unprofiled(arrivals: Sequence[Arrival], profile: Profile, out: Path) -> None:
    if missing := sorted({arrival.workload.nf for arrival in arrivals} - set(profile.nfs)):
        raise InputError.of("--for", f"{out} has no profile of {', '.join(missing)}")


def _key(arrivals: Sequence[Arrival], models: Path, budget_pct: float | None) -> str:
    digest = hashlib.sha256(repr(list(arrivals)).encode())
    digest.update((models / MANIFEST_FILE).read_bytes())
    if budget_pct is not None:
        digest.update(repr(budget_pct).encode())
    return digest.hexdigest()[:16]

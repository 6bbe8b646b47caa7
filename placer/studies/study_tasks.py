"""The runs of a study: its traces, generated or read, on every fleet for every budget."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

from placer.inputs.arrivals import read_arrivals
from placer.inputs.catalogue import Cards, open_catalogue
from placer.inputs.models import Say
from placer.model.catalogue import Catalogue
from placer.run import choose_predictors, strategy_names
from placer.studies.growth import arrivals_csv
from placer.studies.run_task import RunTask, Value, variants
from placer.studies.study import UNLIMITED, Study, TraceSpec
from profiles import InputError
from profiles.faults import suggestion
from traces.arrivals import Recipe, generate


def tasks_of_study(study: Study, say: Say) -> list[RunTask]:
    """Every run of the study, ordered by fleet, trace, draw, and budget or risk; all input is read and checked first.

    Raises
    ------
    InputError
        When a name, a trace, a fleet or the models are refused.
    """
    strategies = strategy_names(study.strategies)
    refuse_same_names("fleets", [Path(fleet) for fleet in study.fleets])
    tasks: list[RunTask] = []
    for fleet in study.fleets or (None,):
        cards = Cards(models=_path(study.models), testbed=study.testbed, fleet=_path(fleet))
        with ExitStack() as stack:
            catalogue = open_catalogue(cards, stack, say)
        predictors = tuple(choose_predictors(study.predictors, catalogue))
        for trace in study.trace:
            for draw, text in enumerate(_texts(trace, study.seed, catalogue)):
                labels: dict[str, Value] = {"trace": trace.label, "draw": draw, "fleet": fleet_name(cards.fleet)}
                task = RunTask(labels, text, cards, strategies, predictors, study.time_limit)
                tasks += variants(task, catalogue, budgets=study.budgets, risks=study.risks)
    return tasks


def fleet_name(fleet: Path | None) -> str:
    """Name of a fleet in results."""
    return fleet.stem if fleet else UNLIMITED


def refuse_same_names(option: str, fleets: Sequence[Path]) -> None:
    """InputError when two fleets would have the same name in results."""
    names = [fleet_name(fleet) for fleet in fleets]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise InputError.of(option, f"two fleets are called {twice}", hint="results name a fleet after its file")


def seed_of(seed: int, label: str, draw: int) -> int:
    """The seed of one draw of one trace."""
    return random.Random(f"{seed}/{label}/{draw}").getrandbits(32)


def _texts(trace: TraceSpec, seed: int, catalogue: Catalogue) -> Iterator[str]:
    """The draws of a trace, as CSV text that the catalogue accepts."""
    if trace.file is not None:
        yield arrivals_csv(read_arrivals(trace.file, catalogue.default_traffic, catalogue.check))
        return
    described = catalogue.main_models.testbed
    known = catalogue.main_models.nfs
    if unknown := [nf for nf in trace.nfs if nf not in known]:
        hint = suggestion(unknown[0], known)
        raise InputError.of("trace.nfs", f"not profiled: {', '.join(unknown)}", hint=hint)
    if trace.traffic != "default" and described is None:
        raise InputError.of("trace.traffic", "the models came from a profile that declares no range of traffic")
    for draw in range(trace.draws):
        recipe = Recipe(
            count=trace.count,
            nfs=trace.nfs,
            sla=trace.sla,
            traffic=trace.traffic,
            attributes=dict(described.attributes) if described else None,
            mean_stay_s=trace.mean_stay_s,
            seed=seed_of(seed, trace.label, draw),
        )
        yield "".join(generate(recipe))


def _path(text: str | None) -> Path | None:
    return None if text is None else Path(text)

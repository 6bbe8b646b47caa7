"""Studies: which strategies, predictors, risks and fleets on which traces, in a TOML file (docs/formats.md)."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated, Self

from pydantic import BaseModel, ConfigDict, Field, FiniteFloat, ValidationError, model_validator
from pydantic_core import ErrorDetails

from placer.inputs.arrivals import read_arrivals
from placer.inputs.catalogue import Cards, open_catalogue
from placer.inputs.models import Say
from placer.inputs.toml import line_of, read_toml, worded
from placer.model.catalogue import Catalogue
from placer.run import choose_predictors, strategy_names
from placer.studies.run_task import Unit, Value, looks_at_a_predictor
from profiles import Fault, InputError
from traces.arrivals import TABLE_2_NFS, TRAFFICS, Recipe, generate

TABLE = "trace"

UNLIMITED = "unlimited"
"""What results call NICs without limit."""

Share = Annotated[FiniteFloat, Field(ge=0, lt=1)]
RiskValue = Annotated[FiniteFloat, Field(gt=0, le=0.5)]


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Trace(_Table):
    """One `[[trace]]` table: a file, or a recipe that is drawn `draws` times.

    Parameters
    ----------
    name
        In results; the file's, or the recipe's traffic, when not told.
    file
        Arrivals (CSV).
    count, nfs, sla, traffic, mean_stay_s
        As of `placer generate`.
    draws
        How many traces are drawn by the recipe.
    """

    name: str | None = None
    file: str | None = None
    count: Annotated[int, Field(gt=0)] = 500
    nfs: tuple[str, ...] = TABLE_2_NFS
    sla: tuple[Share, Share] = (0.05, 0.20)
    traffic: str = "default"
    mean_stay_s: Annotated[FiniteFloat, Field(gt=0)] | None = None
    draws: Annotated[int, Field(gt=0)] = 1

    @model_validator(mode="after")
    def _one_or_the_other(self) -> Self:
        recipe = self.model_fields_set - {"name", "file"}
        if self.file is not None and recipe:
            raise ValueError(f"a trace with a file takes no {', '.join(sorted(recipe))}")
        if self.traffic not in TRAFFICS:
            raise ValueError(f"traffic '{self.traffic}' is not one of {', '.join(TRAFFICS)}")
        if self.sla[0] > self.sla[1]:
            raise ValueError(f"sla {list(self.sla)} is not a range of drops")
        return self

    @property
    def label(self) -> str:
        """What results call it."""
        return self.name or self.file or f"{self.traffic} {self.count}"


class Study(_Table):
    """A study as its file tells it.

    Parameters
    ----------
    seed
        Of all draws.
    strategies, predictors
        Names; empty means all.
    risks
        Of strategies that look at a predictor; empty means the default.
    fleets
        Fleet files; empty means NICs without limit.
    models, testbed, time_limit
        As of `placer run`.
    trace
        What is placed.
    """

    seed: Annotated[int, Field(ge=0)] = 0
    strategies: tuple[str, ...] = ()
    predictors: tuple[str, ...] = ()
    risks: tuple[RiskValue, ...] = ()
    fleets: tuple[str, ...] = ()
    models: str | None = None
    testbed: str | None = None
    time_limit: Annotated[FiniteFloat, Field(gt=0)] = 60.0
    trace: Annotated[tuple[Trace, ...], Field(min_length=1)]

    @model_validator(mode="after")
    def _names_differ(self) -> Self:
        labels = [trace.label for trace in self.trace]
        if twice := sorted({label for label in labels if labels.count(label) > 1}):
            raise ValueError(f"two traces are called {twice[0]}: give them a name")
        return self


def read_study(path: Path) -> Study:
    """The study in a file; files that it names are relative to it.

    Raises
    ------
    InputError
        With every fault of the file.
    """
    text, document = read_toml(path)
    try:
        study = Study.model_validate(document)
    except ValidationError as error:
        raise InputError(_faults(str(path), text, error)) from error
    beside = {"fleets": tuple(str(path.parent / fleet) for fleet in study.fleets)}
    traces = tuple(
        one.model_copy(update={"file": str(path.parent / one.file), "name": one.label}) if one.file else one
        for one in study.trace
    )
    models = str(path.parent / study.models) if study.models else None
    return study.model_copy(update={**beside, "trace": traces, "models": models})


def units_of(study: Study, say: Say) -> list[Unit]:
    """Every run of the study, traces before fleets before risks; everything is read and refused first.

    Raises
    ------
    InputError
        When a name, a trace, a fleet or the models are refused.
    """
    chosen = strategy_names(study.strategies)
    refuse_same_names("fleets", [Path(fleet) for fleet in study.fleets])
    units: list[Unit] = []
    for fleet in study.fleets or (None,):
        cards = Cards(models=_path(study.models), testbed=study.testbed, fleet=_path(fleet))
        with ExitStack() as stack:
            catalogue = open_catalogue(cards, stack, say)
            predictors = tuple(choose_predictors(study.predictors, catalogue))
            for trace in study.trace:
                for draw, text in enumerate(_texts(trace, study.seed, catalogue)):
                    labels: dict[str, Value] = {
                        "trace": trace.label,
                        "draw": draw,
                        "fleet": fleet_name(cards.fleet),
                    }
                    units += at_each_risk(
                        study.risks, chosen, predictors, catalogue, cards, study.time_limit, labels, text
                    )
    return units


def at_each_risk(
    risks: Sequence[float],
    chosen: tuple[str, ...],
    predictors: tuple[str, ...],
    catalogue: Catalogue,
    cards: Cards,
    time_limit: float,
    labels: Mapping[str, Value],
    text: str,
) -> Iterator[Unit]:
    """A unit per risk, none for the default alone; strategies and predictors to which risk is nothing run once."""
    looking = tuple(name for name in chosen if looks_at_a_predictor(name))
    heeding = tuple(name for name in predictors if catalogue.heeds_risk(name))
    for number, risk in enumerate(dict.fromkeys(risks) or (None,)):
        names, asked = (chosen, predictors) if number == 0 else (looking, heeding)
        if names and asked:
            yield Unit(
                labels,
                text,
                names,
                asked,
                risk,
                cards.fleet,
                cards.models,
                cards.testbed,
                time_limit,
            )


def fleet_name(fleet: Path | None) -> str:
    """What results call a fleet."""
    return fleet.stem if fleet else UNLIMITED


def refuse_same_names(option: str, fleets: Sequence[Path]) -> None:
    """InputError when results could not tell two fleets apart."""
    names = [fleet_name(fleet) for fleet in fleets]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise InputError.of(
            option, f"two fleets are called {twice}", hint="results tell fleets by the name of the file"
        )


def _texts(trace: Trace, seed: int, catalogue: Catalogue) -> Iterator[str]:
    """The trace's draws, as CSV text that the catalogue accepts."""
    if trace.file is not None:
        read_arrivals(trace.file, catalogue.default_traffic, catalogue.check)
        yield Path(trace.file).read_text(encoding="utf-8-sig")
        return
    described = catalogue.models[0].testbed
    if unknown := [nf for nf in trace.nfs if nf not in catalogue.models[0].nfs]:
        raise InputError.of("trace.nfs", f"not profiled: {', '.join(unknown)}")
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


def seed_of(seed: int, label: str, draw: int) -> int:
    """A seed of its own for every draw of every trace."""
    return random.Random(f"{seed}/{label}/{draw}").getrandbits(32)


def _path(text: str | None) -> Path | None:
    return None if text is None else Path(text)


def _faults(name: str, text: str, error: ValidationError) -> list[Fault]:
    """What is wrong; that a list holds nothing sound is not told of one in which something is wrong."""
    wrong = error.errors()
    inside = {one["loc"][:1] for one in wrong if len(one["loc"]) > 1}
    return [_fault(name, text, one) for one in wrong if one["type"] != "too_short" or one["loc"] not in inside]


def _fault(name: str, text: str, wrong: ErrorDetails) -> Fault:
    location = wrong["loc"]
    key = ".".join(str(part + 1) if isinstance(part, int) else part for part in location)
    words = [str(part) for part in location if isinstance(part, str)]
    number = next((part + 1 for part in location if isinstance(part, int)), 0) if words[:1] == [TABLE] else 0
    line = line_of(text, TABLE, number, words[-1]) if words else None
    hint = None
    if wrong["type"] == "extra_forbidden":
        known = Trace if number else Study
        hint = f"{f'[[{TABLE}]]' if number else 'a study'} holds {', '.join(_keys(known))}"
    return Fault(name, line, key or None, worded(wrong), hint)


def _keys(model: type[BaseModel]) -> list[str]:
    return list(model.model_fields)

"""Study files: which strategies, predictors, budgets and fleets on which traces, in TOML (docs/formats/study.md)."""

from pathlib import Path
from typing import Annotated, Self

from pydantic import BaseModel, ConfigDict, Field, FiniteFloat, model_validator

from placer.inputs.arrivals import MOST_ARRIVALS
from profiles.files.toml import read_toml, validate_toml
from traces.arrivals import LARGEST_LOAD, TABLE_2_NFS, TRAFFICS

UNLIMITED_FLEET = "unlimited"
"""Name in results of a fleet of unlimited NICs."""

MOST_DRAWS = 100_000
LONGEST_S = 1e9
"""Largest duration in a study, seconds: 31 years."""
LARGEST_SEED = 2**63 - 1

Share = Annotated[FiniteFloat, Field(strict=True, ge=0, lt=1)]
LoadShare = Annotated[FiniteFloat, Field(strict=True, gt=0, le=LARGEST_LOAD)]
BudgetValue = Annotated[FiniteFloat, Field(strict=True, gt=0, le=100)]
RiskValue = Annotated[FiniteFloat, Field(strict=True, gt=0, le=0.5)]
Seconds = Annotated[FiniteFloat, Field(strict=True, gt=0, le=LONGEST_S)]


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class TraceSpec(_Table):
    """One `[[trace]]` table: a file, or a recipe by which `draws` traces are generated.

    `name`: name in results; by default the file, or traffic and count of the recipe. `count`, `nfs`, `sla`, `traffic`,
    `mean_stay_s`, `loads`: as of `placer generate`; with loads, no SLA is drawn unless `sla` is given."""

    name: str | None = None
    file: str | None = None
    count: Annotated[int, Field(strict=True, gt=0, le=MOST_ARRIVALS)] = 500
    nfs: Annotated[tuple[str, ...], Field(min_length=1)] = TABLE_2_NFS
    sla: tuple[Share, Share] = (0.05, 0.20)
    loads: tuple[LoadShare, LoadShare] | None = None
    traffic: str = "default"
    mean_stay_s: Seconds | None = None
    draws: Annotated[int, Field(strict=True, gt=0, le=MOST_DRAWS)] = 1

    @model_validator(mode="after")
    def _is_file_or_recipe(self) -> Self:
        recipe = self.model_fields_set - {"name", "file"}
        if self.file is not None and recipe:
            raise ValueError(f"a trace with a file takes no {', '.join(sorted(recipe))}")
        if self.traffic not in TRAFFICS:
            raise ValueError(f"traffic '{self.traffic}' is not one of {', '.join(TRAFFICS)}")
        if self.sla[0] > self.sla[1]:
            raise ValueError(f"sla {list(self.sla)} is not a range of drops")
        if self.loads and self.loads[0] > self.loads[1]:
            raise ValueError(f"loads {list(self.loads)} is not a range of shares")
        return self

    @property
    def label(self) -> str:
        """Its name in results."""
        return self.name or self.file or f"{self.traffic} {self.count}"


class Study(_Table):
    """A study as its file describes it.

    `strategies`, `predictors`: names; empty means all. `budgets`, `risks`: budgets of SLA violations (%), or else
    risks, of the strategies that use a predictor; empty means the default budget. `fleets`: fleet files; empty means
    unlimited NICs. `models`, `testbed`, `time_limit`: as of `placer run`."""

    seed: Annotated[int, Field(strict=True, ge=0, le=LARGEST_SEED)] = 0
    strategies: tuple[str, ...] = ()
    predictors: tuple[str, ...] = ()
    budgets: tuple[BudgetValue, ...] = ()
    risks: tuple[RiskValue, ...] = ()
    fleets: tuple[str, ...] = ()
    models: str | None = None
    testbed: str | None = None
    time_limit: Seconds = 60.0
    trace: Annotated[tuple[TraceSpec, ...], Field(min_length=1)]

    @model_validator(mode="after")
    def _has_budgets_or_risks(self) -> Self:
        if self.budgets and self.risks:
            raise ValueError("budgets and risks are both given: a budget chooses the risk by itself, leave out one")
        return self

    @model_validator(mode="after")
    def _traces_fit(self) -> Self:
        labels = [trace.label for trace in self.trace]
        if twice := sorted({label for label in labels if labels.count(label) > 1}):
            raise ValueError(f"two traces are called {twice[0]}: give them a name")
        arrivals = sum(trace.count * trace.draws for trace in self.trace if trace.file is None)
        if arrivals > MOST_ARRIVALS:
            raise ValueError(f"count times draws is {arrivals:,} arrivals, the limit is {MOST_ARRIVALS:,}")
        return self


def read_study(path: Path) -> Study:
    """The study in a file; the files that it names are relative to it.

    Raises InputError with every fault of the file."""
    text, document = read_toml(path)
    study = validate_toml(Study, str(path), text, document)
    fleets = tuple(str(path.parent / fleet) for fleet in study.fleets)
    traces = tuple(
        spec.model_copy(update={"file": str(path.parent / spec.file), "name": spec.label}) if spec.file else spec
        for spec in study.trace
    )
    models = str(path.parent / study.models) if study.models else None
    return study.model_copy(update={"fleets": fleets, "trace": traces, "models": models})

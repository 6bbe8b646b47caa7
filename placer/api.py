"""The Python interface: what `import placer` offers. Read a trace, place it with any strategy, get tables and plots."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from html import escape
from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import pandas as pd

from placer.inputs.arrivals import TraceOptions, read_arrivals
from placer.inputs.catalogue import NONE, Cards, open_catalogue
from placer.inputs.day_loads import read_day_loads
from placer.inputs.frame import FrameText, frame_faults
from placer.model.arrival import Arrival
from placer.model.plan import OPTIMAL
from placer.progress import Progress, Stage
from placer.report.text.plan import plans_csv
from placer.report.text.recommendation import recommendation_lines
from placer.report.text.run import as_json, as_table, truth_note
from placer.run import Comparison, RunRequest, run
from placer.strategies import NamedStrategy, Strategy
from profiles import InputError
from profiles.shown import LONGEST_TEXT

if TYPE_CHECKING:
    import altair

Source = str | PathLike[str] | TextIO | pd.DataFrame
"""What a trace is read from."""

ARGUMENTS = {
    "strategy": "strategies",
    "predictor": "predictors",
    **{name: f"cards.{name}" for name in ("models", "fleet", "testbed", "risk", "timeout")},
    "budget": "cards.budget_pct",
    "ignore-columns": "read_trace(..., ignore_columns=True)",
    "skip-empty-stays": "read_trace(..., skip_empty_stays=True)",
    "loads": "read_trace(..., loads=...)",
}
"""Arguments of `place`, by the command-line option that messages name; others have the name of their option."""

IN_SHORT = (
    "strategy", "predictor", "nics", "cost", "wastage_pct", "sla_violations_pct", "expected_violations_pct",
    "keeps_budget", "rejected",
)  # fmt: skip
"""Columns of the table in a notebook."""
MOST_ROWS = 20
FIRST_ROWS = 5


class Trace(list[Arrival]):
    """Arrivals in order of time: a list that is shown in short."""

    def __repr__(self) -> str:
        nfs = sorted({arrival.workload.nf for arrival in self})
        named = ", ".join(nfs) if len(nfs) <= MOST_ROWS else f"{len(nfs):,} NFs"
        span = f", {self[0].time:g} to {self[-1].time:g} s" if self else ""
        return f"<Trace of {len(self):,} arrivals{span}: {named}>"[:LONGEST_TEXT]

    def _repr_html_(self) -> str:
        """What it holds, and the first arrivals as a table."""
        rows = [
            {
                "id": arrival.id,
                "time": arrival.time,
                "nf": arrival.workload.nf,
                **arrival.workload.traffic.as_dict(),
                "rate_kpps": None if arrival.workload.is_saturated else arrival.workload.rate_kpps,
                "cores": arrival.workload.cores or None,
                "sla_drop": arrival.sla.max_drop,
                "sla_min_kpps": arrival.sla.min_kpps,
                "departure": arrival.departure,
                "nic": arrival.nic,
            }
            for arrival in self[:FIRST_ROWS]
        ]
        return f"<p>{escape(repr(self))}</p>{_html_table(pd.DataFrame(rows).dropna(axis='columns', how='all'))}"


@dataclass(frozen=True, repr=False)
class PlacementResult:
    """All strategies on one trace, with the optimum. A notebook shows the table and the recommended plan.

    Parameters
    ----------
    comparison
        What `placer run` works with: every plan, its evaluation, the optimum."""

    comparison: Comparison

    def __repr__(self) -> str:
        """What `placer run` prints, as far as it fits into 2,000 characters."""
        lines = in_python(as_table(self.comparison)).splitlines()
        while sum(map(len, lines)) + len(lines) > LONGEST_TEXT:
            lines = [*lines[:-2], "..."]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        """The table and the recommended plan."""
        table = self.table()
        same_costs = (table["cost"] == table["nics"]).all()
        columns = [column for column in IN_SHORT if column != "cost" or not same_costs]
        notes = (*self.recommendation.splitlines(), truth_note(self.comparison))
        return _html_table(table[columns].round(1)) + "".join(f"<p>{escape(note)}</p>" for note in notes)

    @property
    def optimum(self) -> int:
        """NICs of the best plan known; `table` says which wastage is measured against a bound instead."""
        return self.comparison.optimum.nics

    @property
    def recommendation(self) -> str:
        """Which plan to choose, in sentences, a line each; empty where there is no choice."""
        return "\n".join(in_python(line) for line in recommendation_lines(self.comparison))

    def table(self) -> pd.DataFrame:
        """A row per strategy and predictor.

        Its columns are the keys of `strategies` of `placer run --format json` (docs/formats/run.md). The most used:

        - `strategy`, `predictor`: which plan; strategies that predict nothing have no predictor;
        - `nics`, `cost`: at the peak;
        - `wastage_pct`: NICs beyond the optimum, or beyond its lower bound where `wastage_against` says so, in %;
        - `sla_violations_pct`: instances that violate their SLA by the ground truth, in %; `violated` is their number;
        - `expected_violations_pct`: the same as the predictor expects it;
        - `budget_pct`, `keeps_budget`: the SLA violations to accept, and whether the plan has no more;
        - `rejected`: arrivals without a NIC."""
        return pd.DataFrame(json.loads(as_json(self.comparison))["strategies"])

    def placements(self) -> pd.DataFrame:
        """A row per strategy, predictor and instance: where it is placed, and its throughput.

        Its columns are those of `placer run --plan` (docs/formats/plan.md). The most used:

        - `strategy`, `predictor`, `id`: which instance in which plan; `id` is text;
        - `nic`, `nic_model`: where it is placed; missing where it was rejected;
        - `predicted_kpps`, `true_kpps`: its lowest throughput as predicted and by the ground truth; `solo_kpps`: alone;
        - `sla_met`: whether its SLA is met by the ground truth."""
        text = dict.fromkeys(("strategy", "predictor", "id", "nic", "nic_model", "reason"), str)
        plans = io.StringIO(plans_csv(self.comparison))
        return pd.read_csv(plans, dtype=text, keep_default_na=False, na_values=[""])

    def plot(self, file: str | Path | None = None) -> altair.Chart | altair.LayerChart:
        """NICs of every strategy as bars with their wastage, the optimum as a line.

        Parameters
        ----------
        file
            Where to save the chart: SVG, PNG, HTML or JSON by its suffix. Without one it is only returned."""
        from placer.report.html.run import nics_chart

        chart = nics_chart(self.comparison)
        if file is not None:
            chart.save(str(file))
        return chart


def read_trace(
    source: Source,
    cards: Cards | None = None,
    *,
    ignore_columns: bool = False,
    skip_empty_stays: bool = False,
    loads: str | PathLike[str] | None = None,
) -> Trace:
    """The arrivals of a CSV file, of an open text file, or of a pandas DataFrame.

    Parameters
    ----------
    source
        A path, an open file, or a frame with the columns of the CSV file (docs/formats/arrivals.md). The index
        of a frame does not matter, a missing value is an empty cell, and times may be timestamps.
    cards
        The NICs on which it will be placed: their models define default traffic and the profiled range.
    ignore_columns
        Whether unknown columns are ignored; stderr names them.
    skip_empty_stays
        Whether arrivals are skipped that depart as they arrive; stderr says how many.
    loads
        The path of the loads over the day that the column `load` names.

    Raises
    ------
    InputError
        With every fault, as FILE:LINE; of a frame as DataFrame:ROW, where ROW is the label in its index."""
    chosen = Cards(testbed=NONE) if cards is None else _cards(cards)
    with _in_words_of_python(source), ExitStack() as stack:
        readable = _readable(source)
        say = _Messages().say
        catalogue = open_catalogue(chosen, stack, say)
        days = None if loads is None else read_day_loads(fspath(loads))
        options = TraceOptions(ignore_columns, skip_empty_stays, say, days)
        return Trace(
            read_arrivals(readable, catalogue.default_traffic, catalogue.check, options, kinds=catalogue.kinds)
        )


def place(
    arrivals: Source | Iterable[Arrival],
    strategies: str | type[Strategy] | Sequence[str | type[Strategy]] = (),
    *,
    predictors: str | Sequence[str] = (),
    cards: Cards | None = None,
    seed: int = 0,
    time_limit: float = 60.0,
    solver: str = "cp-sat",
    certificate: bool = False,
    vary_budget: bool = False,
    measure: int | None = None,
    headroom_pct: float = 0.0,
    spare: int = 0,
    spare_domains: int = 0,
) -> PlacementResult:
    """Place a trace with strategies, evaluate each plan by the ground truth, and find the optimum.

    Parameters
    ----------
    arrivals
        The trace: what `read_trace` returns, or what it reads.
    strategies
        A name (`"greedy"`, `"contention-aware:best-fit"`), a class, or a list of them; without one, all registered
        strategies and the optimum.
    predictors
        A name or a list of names; without one, each in the models.
    cards
        The NICs, their models, their ground truth and the budget of SLA violations, as in
        `placer.Cards(fleet="fleet.toml", budget_pct=1)`; by default the simulated BlueField-2 without limit.
    seed
        Of the runs of `measure`.
    time_limit
        Seconds for the optimum.
    solver
        The integer solver of the optimum: `cp-sat` or `highs`.
    certificate
        Whether `result.comparison.certificate()` is to be asked for: a trace without one is refused at once.
    vary_budget
        Whether strategies that keep a budget of SLA violations are also placed without one, and where they miss it
        with smaller ones, as `placer run` does.
    measure
        Runs to spend at most on a plan whose co-locations are measured on the testbed.
    headroom_pct
        By how much more than its rate each instance with a rate is planned for, %; `sla_min_kpps` grows with it.
    spare, spare_domains
        How many NICs, and how many domains, may fail at one time: the column `spare_nics` has the NICs that each plan
        needs for this.

    Returns
    -------
    PlacementResult
        A notebook shows it as a table; `result.table()` and `result.placements()` are DataFrames.

    Raises
    ------
    InputError
        When the trace, a name, the fleet or the models are refused.
    TestbedError
        When the ground truth's testbed fails.
    InvalidPlan
        When a strategy violates a constraint.

    Examples
    --------
    >>> trace = placer.read_trace("traces/arrivals-500.csv")
    >>> placer.place(trace, ["greedy", "contention-aware"], predictors="tomur").optimum
    127"""
    _refuse_below("time_limit", time_limit, 0.1)
    _refuse_below("spare", spare, 0)
    _refuse_below("spare_domains", spare_domains, 0)
    _refuse_below("headroom_pct", headroom_pct, 0)
    _refuse_below("measure", 1 if measure is None else measure, 1)
    with _in_words_of_python(arrivals):
        request = RunRequest(
            arrivals=_readable(arrivals) if _is_read(arrivals) else _trace(arrivals),
            strategies=tuple(map(_strategy, _list(strategies))),
            predictors=tuple(map(_predictor, _list(predictors))),
            cards=Cards() if cards is None else _cards(cards),
            seed=seed,
            time_limit=time_limit,
            solver=solver,
            certificate=OPTIMAL if certificate else None,
            vary_budget=vary_budget,
            measure=measure,
            headroom_pct=headroom_pct,
            spare=spare,
            spare_domains=spare_domains,
        )
        return PlacementResult(run(request, _Messages()))


class _Messages(Progress):
    """Messages on stderr in the words of Python; no bars."""

    def say(self, message: str) -> None:
        super().say(in_python(message))

    @contextmanager
    def stages(self, prefix: str = "") -> Iterator[Stage]:
        yield lambda name, done, total: None


@contextmanager
def _in_words_of_python(source: object) -> Iterator[None]:
    """Faults name arguments in place of options, and rows of a frame in place of lines."""
    try:
        yield
    except InputError as refused:
        faults = frame_faults(refused.faults, source) if isinstance(source, pd.DataFrame) else refused.faults
        raise InputError(
            [
                replace(
                    fault,
                    file=in_python(fault.file) if fault.file.startswith("--") else fault.file,
                    message=in_python(fault.message),
                    hint=fault.hint and in_python(fault.hint),
                )
                for fault in faults
            ]
        ) from None


def in_python(text: str) -> str:
    """A message in which options are named as arguments: `--strategy` as `strategies`; commands stay as they are."""
    return re.sub(r"`placer [^`]*`|(?<![\w-])--([a-z]+(?:-[a-z]+)*)(?: (none\b|\d[\d.]*\d|\d))?", _argument, text)


def _argument(option: re.Match[str]) -> str:
    name, value = option.groups()
    if name is None:
        return option[0]
    argument = ARGUMENTS.get(name, name.replace("-", "_"))
    return argument if value is None else f"{argument}={value if value[0].isdigit() else repr(value)}"


def _is_read(source: object) -> bool:
    return isinstance(source, (str, PathLike, pd.DataFrame)) or hasattr(source, "read")


def _readable(source: Any) -> str | TextIO:
    """What `read_arrivals` reads."""
    if not _is_read(source):
        raise TypeError(f"a trace is read from a path, an open text file or a pandas DataFrame, not {_kind(source)}")
    if isinstance(source, (io.RawIOBase, io.BufferedIOBase)):
        raise TypeError(
            f"{getattr(source, 'name', 'the file')} is open in binary mode: open it as text, or give its path"
        )
    if isinstance(source, pd.DataFrame):
        return FrameText(source)
    text: str | TextIO = source if hasattr(source, "read") else fspath(source)
    return text


def _trace(arrivals: Any) -> list[Arrival]:
    if not isinstance(arrivals, Iterable):
        raise TypeError(f"arrivals is {_kind(arrivals)}: give what placer.read_trace returns, or what it reads")
    trace = list(arrivals)
    for number, arrival in enumerate(trace):
        if not isinstance(arrival, Arrival):
            raise TypeError(
                f"arrivals[{number}] is {_kind(arrival)}: placer.read_trace makes a placer.Arrival of each row"
            )
    return trace


def _list(names: Any) -> list[Any]:
    """One, or several, as a list."""
    if names is None:
        return []
    return list(names) if isinstance(names, Iterable) and not isinstance(names, str) else [names]


def _strategy(named: Any) -> str | NamedStrategy:
    if isinstance(named, str):
        return named
    if not (isinstance(named, type) and issubclass(named, Strategy)):
        raise TypeError(f"strategies has {_kind(named)}: give names, or subclasses of placer.Strategy")
    if not isinstance(getattr(named, "name", None), str):
        raise TypeError(f'strategies has the class {named.__name__}, which has no name: write name = "..." in it')
    return NamedStrategy(named.name, named)


def _predictor(named: Any) -> str:
    if not isinstance(named, str):
        raise TypeError(f'predictors has {_kind(named)}: give names, such as "tomur"')
    return named


def _cards(cards: Any) -> Cards:
    if not isinstance(cards, Cards):
        raise TypeError(f'cards is {_kind(cards)}: give placer.Cards(fleet="fleet.toml") or the like')
    return cards


def _refuse_below(name: str, value: Any, least: float) -> None:
    if not isinstance(value, (int, float)):
        raise TypeError(f"{name} is {_kind(value)}, not a number")
    if not value >= least:
        raise InputError.of(name, f"{value:g} is below {least:g}")


def _kind(value: object) -> str:
    if value is None:
        return "None"
    name = value.__name__ if isinstance(value, type) else type(value).__name__
    if isinstance(value, type):
        return f"the class {name}"
    return f"{'an' if name[0].lower() in 'aeiou' else 'a'} {name}"


def _html_table(frame: pd.DataFrame) -> str:
    """A small table; pandas escapes what is in it."""
    return frame.to_html(index=False, border=0, na_rep="", max_rows=MOST_ROWS, float_format="{:,.6g}".format)

"""`replay:PROFILE`: a testbed that answers from a recorded profile, for tests and for people without a card.

A profile directory keeps what each NF and each bench did alone, with its own counters; of co-runs it keeps the NF's
throughput and the sum of what its competitors exert, not who they were. So what can be answered is `describe` and
every recorded run of one NF or bench alone. Everything else is refused, with the nearest recorded run by name.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from profiler.testbed import Measurement, Run, RunRefused, Testbed
from profiles import COUNTERS, BenchLoad, Counters, InputError, Load, TestbedDescription, TrafficProfile, Workload
from profiles.profile import THROUGHPUT, Profile, read_profile


class ReplayTestbed(Testbed):
    """Answers solo runs as they were recorded; noise and seed are what they were then.

    Parameters
    ----------
    directory
        The profile directory.

    Raises
    ------
    InputError
        When it is not a profile, or has no testbed.json to describe itself with.
    """

    def __init__(self, directory: Path) -> None:
        profile = read_profile(directory)
        if profile.testbed is None:
            raise InputError.of("--testbed", f"{directory} has no testbed.json, so what was measured is not described")
        self._source = directory
        self._description = profile.testbed
        self._recorded = {**_recorded_nfs(profile), **_recorded_benches(profile)}

    def describe(self) -> TestbedDescription:
        return self._description

    def run(self, loads: Sequence[Load], *, noise: bool = True, seed: int | None = None) -> Run:
        if not loads:
            raise RunRefused("a run needs at least one workload")
        if len(loads) == 1 and loads[0] in self._recorded:
            return Run((self._recorded[loads[0]],))
        why = "no such run is recorded" if len(loads) == 1 else "who ran together is not recorded, only solo runs are"
        nearest = self._nearest(loads[0])
        hint = f"the nearest recorded is {shown(nearest)} alone" if nearest else f"nothing is recorded of {loads[0]}"
        raise RunRefused(f"replay of {self._source}: {', '.join(map(shown, loads))}: {why}; {hint}")

    def _nearest(self, load: Load) -> Load | None:
        """The recorded load of the same NF or bench whose values differ by the smallest factors."""
        same = [one for one in self._recorded if type(one) is type(load) and _name(one) == _name(load)]
        return min(same, key=lambda one: _distance(_values(one), _values(load)), default=None)


def open_replay(argument: str, timeout: float) -> Testbed:
    """The testbed of `replay:PROFILE`."""
    if not argument:
        raise InputError.of("--testbed", "replay: names no profile", hint="replay:PROFILE")
    return ReplayTestbed(Path(argument))


def shown(load: Load) -> str:
    """A load as messages name it."""
    values = ", ".join(f"{name} {value:g}" for name, value in _values(load).items())
    return f"{_name(load)} ({values})"


def _recorded_nfs(profile: Profile) -> dict[Load, Measurement]:
    return {
        Workload(nf.name, TrafficProfile.from_mapping(row)): _measurement(row)
        for nf in profile.nfs.values()
        for row in _rows(nf.solo)
    }


def _recorded_benches(profile: Profile) -> dict[Load, Measurement]:
    assert profile.testbed is not None
    recorded: dict[Load, Measurement] = {}
    for row in _rows(profile.benches):
        bench = profile.testbed.bench(str(row["bench"]))
        if bench is None:
            continue
        columns = {name: f"{bench.name}.{name}" if f"{bench.name}.{name}" in row else name for name in bench.parameters}
        recorded[BenchLoad.of(bench.name, {name: row[column] for name, column in columns.items()})] = _measurement(row)
    return recorded


def _rows(table: pd.DataFrame) -> list[dict[str, float]]:
    return [{str(name): value for name, value in row.items()} for row in table.to_dict("records")]


def _measurement(row: dict[str, float]) -> Measurement:
    return Measurement(float(row[THROUGHPUT]), Counters.from_mapping({name: row[name] for name in COUNTERS}))


def _name(load: Load) -> str:
    return load.nf if isinstance(load, Workload) else load.name


def _values(load: Load) -> dict[str, float]:
    return load.traffic.as_dict() if isinstance(load, Workload) else dict(load.parameters)


def _distance(one: dict[str, float], other: dict[str, float]) -> float:
    return sum(abs(math.log1p(one.get(name, 0.0)) - math.log1p(other.get(name, 0.0))) for name in {*one, *other})

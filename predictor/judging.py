"""What measured company tells of trained models: how to correct them, and how far to trust them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from predictor.calibration import Calibration, Seen
from predictor.contended import Contended
from predictor.facts import Facts
from predictor.nf_model import NfModel
from predictor.registry import Warn
from predictor.spread import Errors, Place, Spread, fit_spreads
from predictor.tables import contention_of, counters_of, traffic_of
from profiles import TrafficProfile, Workload
from profiles.profile import NF, RUN, THROUGHPUT, NfProfile

Array = NDArray[np.float64]
Company = tuple[Workload, ...]

ENOUGH = 20
"""Runs in real company from which they alone tell how far predictions err."""


@dataclass(frozen=True)
class Compared:
    """Measured runs of one NF in real company, beside what was predicted, one row each.

    Parameters
    ----------
    seen
        What the prediction was made of.
    error
        Measured over predicted, logarithm, shape (N,).
    noise
        Variance of the measurement, shape (N,); 0 where it is not known.
    """

    seen: Seen
    error: Array
    noise: Array


def judge(
    profiles: Mapping[str, NfProfile],
    models: Mapping[str, NfModel],
    default: TrafficProfile,
    warn: Warn = lambda _: None,
) -> dict[str, NfModel]:
    """The models, corrected where real company was measured and that helps, each told how far it errs.

    Without real company, errors beside benches that were left out of training stand in.
    """
    compared = _compared(profiles, models, warn)
    places = {name: Place.of(np.array(default.as_tuple()), model.measured) for name, model in models.items()}
    calibrations: dict[str, Calibration | None] = {}
    unseen: dict[str, Errors] = {}
    spreads: dict[str, Spread] = {}
    for name, model in models.items():
        rows = compared.get(name)
        calibrations[name] = Calibration.fit(rows.seen, rows.error) if rows else None
        if rows and len(rows.error) >= ENOUGH:
            unseen[name] = Errors(_left(calibrations[name], rows), places[name](rows.seen), rows.noise)
            continue
        of_benches = [model.memory.errors, *_beside_benches(profiles[name], model)]
        spreads[name] = Spread.even(
            places[name], np.concatenate([*of_benches, *([_left(calibrations[name], rows)] if rows else [])])
        )
    spreads |= fit_spreads(unseen, places)
    return {
        name: replace(model, calibration=calibrations[name], spread=spreads[name]) for name, model in models.items()
    }


def _left(calibration: Calibration | None, rows: Compared) -> Array:
    """What is left of each error when its row is not learnt from."""
    return calibration.errors if calibration else rows.error


def _compared(profiles: Mapping[str, NfProfile], models: Mapping[str, NfModel], warn: Warn) -> dict[str, Compared]:
    parts: dict[str, list[Compared]] = defaultdict(list)
    for name, model in models.items():
        if len(profiles[name].co_runs):
            parts[name].append(_with_sums(profiles[name].co_runs, model))
    for name, rows in _by_name(profiles, models, warn):
        parts[name].append(rows)
    return {name: _joined(of_nf) for name, of_nf in parts.items()}


def _beside_benches(nf: NfProfile, model: NfModel) -> list[Array]:
    return [_with_sums(nf.pattern, model).error] if len(nf.pattern) else []


def _with_sums(table: pd.DataFrame, model: NfModel) -> Compared:
    """Runs in company that is known by the sums of what it exerts."""
    traffic, (service, rate) = traffic_of(table), contention_of(table, model.accelerators)
    predicted = model.beside(counters_of(table), traffic, service, rate)
    error = np.log(table[THROUGHPUT].to_numpy(dtype=np.float64) / predicted)
    return Compared(model.seen(traffic, predicted, service), error, np.zeros(len(error)))


def _by_name(
    profiles: Mapping[str, NfProfile], models: Mapping[str, NfModel], warn: Warn
) -> list[tuple[str, Compared]]:
    """Runs in company that is known by name; an NF is told of also by the companies of others."""
    recorded = _recorded(profiles)
    known = {company: runs for company, runs in recorded.items() if all(one.nf in models for one in company)}
    if len(known) < len(recorded):
        warn(
            f"{len(recorded) - len(known)} of {len(recorded)} companies hold NFs that are not in the profile: left out"
        )
    if not known:
        return []
    noise = _noise(list(known.values()))
    contended = Contended(Facts(models))
    answer = contended.answer(list(known))
    measured, repeats = np.full(answer.throughput.shape, np.nan), np.ones(answer.throughput.shape)
    for row, runs in enumerate(known.values()):
        given = answer.seats.order[row, : answer.seats.sizes[row]]
        measured[row, : len(given)] = runs.mean(axis=0)[given]
        repeats[row] = len(runs)
    return [
        (name, Compared(seen, np.log(measured[where] / answer.throughput[where]), noise / repeats[where]))
        for name, where, seen in contended.seen(answer)
    ]


def _recorded(profiles: Mapping[str, NfProfile]) -> dict[Company, Array]:
    """Per company, throughput (kpps) of its runs, shape (runs, members)."""
    found: dict[Company, list[list[float]]] = defaultdict(list)
    for nf in profiles.values():
        if not len(nf.companies):
            continue
        table = nf.companies
        members = [
            Workload(str(name), TrafficProfile(*traffic))
            for name, traffic in zip(table[NF], traffic_of(table).tolist(), strict=True)
        ]
        kpps = table[THROUGHPUT].tolist()
        for rows in table.groupby(RUN, sort=False).indices.values():
            found[tuple(members[row] for row in rows)].append([kpps[row] for row in rows])
    return {company: np.array(runs) for company, runs in found.items()}


def _noise(runs: Sequence[Array]) -> float:
    """Variance of the logarithm of a measurement, by repeats; 0 where nothing was repeated."""
    repeated = [np.log(one) for one in runs if len(one) > 1]
    squares = sum(float(((one - one.mean(axis=0)) ** 2).sum()) for one in repeated)
    free = sum((len(one) - 1) * one.shape[1] for one in repeated)
    return squares / free if free else 0.0


def _joined(parts: Sequence[Compared]) -> Compared:
    seen = Seen(
        *(np.concatenate([getattr(one.seen, name) for one in parts]) for name in ("traffic", "kept", "pressure"))
    )
    return Compared(seen, np.concatenate([one.error for one in parts]), np.concatenate([one.noise for one in parts]))

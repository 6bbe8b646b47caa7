"""Runs in real company: as they were recorded, and beside what models make of them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from predictor.calibration import Seen
from predictor.contended import Contended
from predictor.facts import Facts
from predictor.nf_model import NfModel
from predictor.registry import Warn
from predictor.tables import contention_of, counters_of, traffic_of
from profiles import TrafficProfile, Workload
from profiles.profile import NF, RUN, THROUGHPUT, NfProfile

Array = NDArray[np.float64]
Company = tuple[Workload, ...]


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


def recorded(profiles: Mapping[str, NfProfile], warn: Warn) -> dict[Company, Array]:
    """Per company of profiled NFs, throughput (kpps) of its runs, shape (runs, members)."""
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
    known = {company: np.array(runs) for company, runs in found.items() if all(one.nf in profiles for one in company)}
    if left_out := len(found) - len(known):
        warn(f"{left_out} of {len(found)} measured companies hold NFs that are not in the profile: left out")
    return known


def compared_by_name(models: Mapping[str, NfModel], companies: Mapping[Company, Array]) -> list[tuple[str, Compared]]:
    """Per NF, its runs in these companies; an NF is told of also by the companies of others."""
    if not companies:
        return []
    noise = _noise(list(companies.values()))
    contended = Contended(Facts(models))
    answer = contended.answer(list(companies))
    measured, repeats = np.full(answer.throughput.shape, np.nan), np.ones(answer.throughput.shape)
    for row, runs in enumerate(companies.values()):
        given = answer.seats.order[row, : answer.seats.sizes[row]]
        measured[row, : len(given)] = runs.mean(axis=0)[given]
        repeats[row] = len(runs)
    return [
        (name, Compared(seen, np.log(measured[where] / answer.throughput[where]), noise / repeats[where]))
        for name, where, seen in contended.seen(answer)
    ]


def compared_by_sums(table: pd.DataFrame, model: NfModel) -> Compared:
    """Runs in company that is known by the sums of what it exerts."""
    traffic, (service, rate) = traffic_of(table), contention_of(table, model.accelerators)
    predicted = model.beside(counters_of(table), traffic, service, rate)
    error = np.log(table[THROUGHPUT].to_numpy(dtype=np.float64) / predicted)
    return Compared(model.seen(traffic, predicted, service), error, np.zeros(len(error)))


def joined(parts: Sequence[Compared]) -> Compared:
    seen = Seen(
        *(np.concatenate([getattr(one.seen, name) for one in parts]) for name in ("traffic", "kept", "pressure"))
    )
    return Compared(seen, np.concatenate([one.error for one in parts]), np.concatenate([one.noise for one in parts]))


def _noise(runs: Sequence[Array]) -> float:
    """Variance of the logarithm of a measurement, by repeats; 0 where nothing was repeated."""
    repeated = [np.log(one) for one in runs if len(one) > 1]
    squares = sum(float(((one - one.mean(axis=0)) ** 2).sum()) for one in repeated)
    free = sum((len(one) - 1) * one.shape[1] for one in repeated)
    return squares / free if free else 0.0

"""Runs in real company: as they were recorded, and beside what models make of them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from predictor.contention.calibration import Seen
from predictor.contention.equilibrium import Contended
from predictor.contention.nf_model import NfModel
from predictor.contention.workload_table import Facts
from predictor.registry import Warn
from predictor.tables import contention_of, counters_of, traffic_of
from profiles import InputError, TrafficProfile, Workload
from profiles.profile import NF, RUN, THROUGHPUT, NfProfile, Profile

Array = NDArray[np.float64]
CoLocation = tuple[Workload, ...]

USUAL_REPEATS = 10
"""Repeats of an NF that tell as much of its noise as what is usual of NFs."""


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
    company
        Equal numbers for rows of one company, shape (N,).
    """

    seen: Seen
    error: Array
    noise: Array
    co_location: NDArray[np.intp]


def recorded(profile: Profile, warn: Warn) -> dict[CoLocation, Array]:
    """Per company of profiled NFs, members sorted, throughput (kpps) of its runs, shape (runs, members).

    A run that stands in the folders of several of its NFs is one run.

    Raises
    ------
    InputError
        When a company does not fit on the NIC.
    """
    found: dict[CoLocation, dict[tuple[float, ...], None]] = defaultdict(dict)
    for nf in profile.nfs.values():
        for co_location, kpps in _runs_of(nf):
            if len(co_location) > 1:
                _refuse_overfull(profile, nf, co_location)
                found[co_location][kpps] = None
    known = {
        co_location: np.array(list(runs))
        for co_location, runs in found.items()
        if all(one.nf in profile.nfs for one in co_location)
    }
    if left_out := len(found) - len(known):
        strangers = sorted({one.nf for co_location in found for one in co_location} - set(profile.nfs))
        warn(f"{left_out} of {len(found)} companies hold NFs without a profile, {', '.join(strangers)}: left out")
    return known


def compared_by_name(
    models: Mapping[str, NfModel], co_locations: Mapping[CoLocation, Array]
) -> list[tuple[str, Compared]]:
    """Per NF, its runs in these companies; an NF is told of also by the companies of others."""
    if not co_locations:
        return []
    noise = _noise(co_locations)
    contended = Contended(Facts(models))
    answer = contended.answer(list(co_locations))
    measured, variance = (np.full(answer.throughput.shape, np.nan) for _ in range(2))
    for row, (co_location, runs) in enumerate(co_locations.items()):
        given = answer.seats.order[row, : answer.seats.sizes[row]]
        measured[row, : len(given)] = runs.mean(axis=0)[given]
        variance[row, : len(given)] = [noise[co_location[at].nf] / len(runs) for at in given]
    return [
        (name, Compared(seen, np.log(measured[where] / answer.throughput[where]), variance[where], where[0]))
        for name, where, seen in contended.seen(answer)
    ]


def compared_by_sums(table: pd.DataFrame, model: NfModel) -> Compared:
    """Runs in company that is known by the sums of what it exerts; each is a company of its own."""
    traffic, (service, rate) = traffic_of(table), contention_of(table, model.accelerators)
    predicted = model.beside(counters_of(table), traffic, service, rate)
    error = np.log(table[THROUGHPUT].to_numpy(dtype=np.float64) / predicted)
    return Compared(model.seen(traffic, predicted, service), error, np.zeros(len(error)), -1 - np.arange(len(error)))


def joined(parts: Sequence[Compared]) -> Compared:
    """All their rows."""
    seen = Seen(
        *(np.concatenate([getattr(one.seen, name) for one in parts]) for name in ("traffic", "kept", "pressure"))
    )
    error, noise, co_location = (
        np.concatenate([getattr(one, name) for one in parts]) for name in ("error", "noise", "co_location")
    )
    return Compared(seen, error, noise, co_location)


def _runs_of(nf: NfProfile) -> Iterator[tuple[CoLocation, tuple[float, ...]]]:
    """Each run in an NF's folder: who ran, sorted, and the throughput (kpps) of each."""
    if not len(nf.co_locations):
        return
    table = nf.co_locations
    members = [
        (Workload(str(name), TrafficProfile(*traffic)), kpps)
        for name, traffic, kpps in zip(table[NF], traffic_of(table).tolist(), table[THROUGHPUT], strict=True)
    ]
    for rows in table.groupby(RUN, sort=False).indices.values():
        ran = sorted(members[row] for row in rows)
        yield tuple(workload for workload, _ in ran), tuple(kpps for _, kpps in ran)


def _refuse_overfull(profile: Profile, nf: NfProfile, co_location: CoLocation) -> None:
    described = [profile.nfs[one.nf].description for one in co_location if one.nf in profile.nfs]
    cores = sum(one.cores for one in described if one)
    if profile.testbed and cores > profile.testbed.nic.cores:
        raise InputError.of(
            f"{nf.name}/companies.csv",
            f"a run of {len(co_location)} NFs takes {cores} cores of a NIC with {profile.testbed.nic.cores}",
            column=RUN,
            hint="give runs different numbers",
        )


def _noise(co_locations: Mapping[CoLocation, Array]) -> dict[str, float]:
    """Variance of the logarithm of a measurement, per NF, by repeats; 0 where nothing was repeated.

    What few repeats of an NF tell is drawn towards the median of all NFs.
    """
    squares: dict[str, list[float]] = defaultdict(list)
    for co_location, runs in co_locations.items():
        spread = np.log(runs).var(axis=0, ddof=1) if len(runs) > 1 else ()
        for one, squared in zip(co_location, spread, strict=False):
            squares[one.nf].append(float(squared))
    usual = float(np.median([np.mean(of_nf) for of_nf in squares.values()])) if squares else 0.0
    return {
        nf: (sum(squares[nf]) + USUAL_REPEATS * usual) / (len(squares[nf]) + USUAL_REPEATS) if squares else 0.0
        for nf in {one.nf for co_location in co_locations for one in co_location}
    }

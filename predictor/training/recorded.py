"""The runs of real co-locations that a profile recorded, each once. A run is one number in one folder. People may write
a run into the folders of several of its NFs, and number it in each; so runs of different folders with the same
workloads and throughputs are taken for one. Within a folder they are repeats, also where their throughputs are equal,
as on a testbed without noise."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from predictor.tables import traffic_of
from profiles import CoLocation, TrafficProfile, Workload
from profiles.arrays import Floats
from profiles.profile import CORES_COLUMN, KPPS_COLUMN, NF_COLUMN, RATE_COLUMN, RUN_COLUMN

if TYPE_CHECKING:
    from profiles.profile import NfProfile, Profile


def collect_runs(profile: Profile) -> dict[CoLocation, Floats]:
    """Per co-location, alone or with others, members sorted, throughput (kpps) of its runs, shape (runs, members)."""
    found: dict[CoLocation, Counter[tuple[float, ...]]] = defaultdict(Counter)
    for nf in profile.nfs.values():
        here: dict[CoLocation, Counter[tuple[float, ...]]] = defaultdict(Counter)
        for co_location, kpps in _runs_of(nf):
            here[co_location][kpps] += 1
        for co_location, times in here.items():
            found[co_location] |= times  # of each run, as often as in the folder that has it most often
    return {one: np.array(list(times.elements())) for one, times in found.items()}


def select_profiled(runs: Mapping[CoLocation, Floats], profile: Profile) -> dict[CoLocation, Floats]:
    """Those of which all members have a profile."""
    return {one: of_it for one, of_it in runs.items() if all(member.nf in profile.nfs for member in one)}


def left_out(runs: Mapping[CoLocation, Floats], profile: Profile) -> str | None:
    """A sentence on co-locations of which some NF has no profile; None where there are none."""
    together = [run for run in runs if len(run) > 1]
    missing = sorted({member.nf for nf_runs in together for member in nf_runs} - set(profile.nfs))
    if not missing:
        return None
    without = sum(any(member.nf in missing for member in nf_runs) for nf_runs in together)
    return f"{without} of {len(together)} co-locations left out: no profile of {', '.join(missing)}"


def collect_loads(profile: Profile) -> Iterator[tuple[CoLocation, tuple[float, ...]]]:
    """Each run of profiled NFs in which one has an offered rate or another number of cores: the workloads, sorted, and
    what each carried (kpps)."""
    for nf in profile.nfs.values():
        if not len(nf.loads):
            continue
        columns = (nf.loads[name] for name in (NF_COLUMN, RATE_COLUMN, CORES_COLUMN, KPPS_COLUMN))
        members = [
            (Workload(str(name), TrafficProfile(*traffic), float(rate), cores=int(cores)), float(kpps))
            for traffic, name, rate, cores, kpps in zip(traffic_of(nf.loads).tolist(), *columns, strict=True)
        ]
        for rows in nf.loads.groupby(RUN_COLUMN, sort=False).indices.values():
            run = sorted(members[row] for row in rows)
            if all(workload.nf in profile.nfs for workload, _ in run):
                yield tuple(workload for workload, _ in run), tuple(kpps for _, kpps in run)


def _runs_of(nf: NfProfile) -> Iterator[tuple[CoLocation, tuple[float, ...]]]:
    """Each recorded run in an NF's folder: the workloads, sorted, and the throughput (kpps) of each."""
    if not len(nf.co_locations):
        return
    table = nf.co_locations
    members = [
        (Workload(str(name), TrafficProfile(*traffic)), kpps)
        for name, traffic, kpps in zip(table[NF_COLUMN], traffic_of(table).tolist(), table[KPPS_COLUMN], strict=True)
    ]
    for rows in table.groupby(RUN_COLUMN, sort=False).indices.values():
        run = sorted(members[row] for row in rows)
        yield tuple(workload for workload, _ in run), tuple(kpps for _, kpps in run)


# The noise of a run, by repeats.


ASSUMED_NOISE = 0.01  # relative standard deviation of a run that is assumed before anything was repeated
ASSUMED_REPEATS = 4
"""The weight of that assumption, in repeats: few repeats that happen to agree do not make noise vanish."""


def noise_of_a_run(logarithms: Iterable[NDArray[np.float64]]) -> float:
    """Relative standard deviation of a run, of all co-locations together. `logarithms`: per co-location the logarithms
    of its throughputs, shape (runs, members)."""
    squares, repeats = [ASSUMED_REPEATS * ASSUMED_NOISE**2], ASSUMED_REPEATS
    for runs in logarithms:
        if len(runs) > 1:
            squares.append(float(((runs - runs.mean(axis=0)) ** 2).mean(axis=1).sum()))
            repeats += len(runs) - 1
    return math.sqrt(math.fsum(squares) / repeats)

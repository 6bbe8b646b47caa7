"""The runs of real co-locations that a profile recorded, each once.

A run is one number in one folder. People may write a run into the folders of several of its NFs, and number it in each;
so runs of different folders with the same workloads and throughputs are taken for one. Within a folder they are
repeats, also where their throughputs are equal, as on a testbed without noise.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from predictor.tables import traffic_of
from profiles import CoLocation, TrafficProfile, Workload
from profiles.profile import NF, RUN, THROUGHPUT

if TYPE_CHECKING:
    from profiles.profile import NfProfile, Profile

Array = NDArray[np.float64]


def recorded_co_locations(profile: Profile, warn: Callable[[str], None]) -> dict[CoLocation, Array]:
    """Per co-location of profiled NFs, members sorted, throughput (kpps) of its runs, shape (runs, members).

    `warn` receives a message where NFs without a profile leave out co-locations.
    """
    found = {one: runs for one, runs in _runs(profile).items() if len(one) > 1}
    known = {one: runs for one, runs in found.items() if all(member.nf in profile.nfs for member in one)}
    if left_out := len(found) - len(known):
        missing = sorted({one.nf for co_location in found for one in co_location} - set(profile.nfs))
        warn(f"{left_out} of {len(found)} co-locations left out: no profile of {', '.join(missing)}")
    return known


def recorded_alone(profile: Profile) -> dict[Workload, Array]:
    """Per workload of a profiled NF that co-locations.csv has alone, throughput (kpps) of its runs, shape (runs,)."""
    return {one[0]: runs[:, 0] for one, runs in _runs(profile).items() if len(one) == 1 and one[0].nf in profile.nfs}


def _runs(profile: Profile) -> dict[CoLocation, Array]:
    """Throughput (kpps) of all runs of each co-location, alone or with others, shape (runs, members)."""
    found: dict[CoLocation, Counter[tuple[float, ...]]] = defaultdict(Counter)
    for nf in profile.nfs.values():
        here: dict[CoLocation, Counter[tuple[float, ...]]] = defaultdict(Counter)
        for co_location, kpps in _recorded_runs(nf):
            here[co_location][kpps] += 1
        for co_location, times in here.items():
            found[co_location] |= times  # of each run, as often as in the folder that has it most often
    return {one: np.array(list(times.elements())) for one, times in found.items()}


def _recorded_runs(nf: NfProfile) -> Iterator[tuple[CoLocation, tuple[float, ...]]]:
    """Each recorded run in an NF's folder: the workloads, sorted, and the throughput (kpps) of each."""
    if not len(nf.co_locations):
        return
    table = nf.co_locations
    members = [
        (Workload(str(name), TrafficProfile(*traffic)), kpps)
        for name, traffic, kpps in zip(table[NF], traffic_of(table).tolist(), table[THROUGHPUT], strict=True)
    ]
    for rows in table.groupby(RUN, sort=False).indices.values():
        run = sorted(members[row] for row in rows)
        yield tuple(workload for workload, _ in run), tuple(kpps for _, kpps in run)

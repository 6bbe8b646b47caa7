"""What the whole profile tells: service times of the accelerator benches, and how much contention NFs can exert."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import least_squares

from predictor.contention.accelerators import ServiceTime, term_values
from predictor.contention.memory import access_rate
from predictor.tables import counters_of
from profiles.profile import TRAFFIC_COLUMNS, Profile, service_column

Array = NDArray[np.float64]

TERMS = ("constant", "packet_size", "mtbr", "matches")
CO_LOCATIONS = 4000
LIKELY = 0.995
STRAY = 0.03


def bench_services(profile: Profile) -> dict[str, ServiceTime]:
    """Per accelerator, the service time of its bench over packet size and matches, where benches were measured."""
    accelerators = sorted({name for nf in profile.nfs.values() for name in nf.uses})
    services: dict[str, ServiceTime] = {}
    for accelerator in accelerators:
        column = service_column(accelerator)
        rows = profile.benches[profile.benches[column] > 0] if column in profile.benches else profile.benches[:0]
        traffic = np.column_stack(
            [rows[name].fillna(0.0) if name in rows else np.zeros(len(rows)) for name in TRAFFIC_COLUMNS]
        ).astype(np.float64)
        if len(rows):
            services[accelerator] = _service(traffic, rows[column].to_numpy(dtype=np.float64))
    return services


def most_accesses(profile: Profile, nf: str, seed: int) -> float:
    """Cache accesses per second that all but the rarest companies of profiled NFs exert on `nf`.

    Companies are drawn evenly from the NFs and their measured solo runs, as many as the NIC's cores admit. Infinite
    when the profile does not say how many NFs a NIC holds, or what they do alone.
    """
    solo = {name: access_rate(counters_of(one.solo)) for name, one in sorted(profile.nfs.items()) if len(one.solo)}
    if not profile.testbed or not solo:
        return float("inf")
    cores = {one.name: one.cores for one in profile.testbed.nfs}
    seats = (profile.testbed.nic.cores - cores.get(nf, 1)) // min(cores.get(name, 1) for name in solo)
    rng = np.random.default_rng(seed)
    names = list(solo)
    exerted = np.zeros(CO_LOCATIONS)
    for _ in range(seats):
        drawn = rng.integers(len(names), size=CO_LOCATIONS)
        for at, name in enumerate(names):
            rows = drawn == at
            exerted[rows] += rng.choice(solo[name], size=int(rows.sum()))
    return float(np.quantile(exerted, LIKELY))


def _service(traffic: Array, time: Array) -> ServiceTime:
    """The linear part; where the accelerator is faster than the bench's core, its time is the core's, a floor."""
    varying = [term for term in TERMS if np.ptp(term_values(term, traffic)) > 0]
    terms = ["constant", *varying] if len(time) > len(varying) + 1 else ["constant"]
    design = np.column_stack([term_values(term, traffic) for term in terms])
    units = np.abs(design).max(axis=0)

    def errors(parameters: Array) -> Array:
        relative: Array = np.maximum(design / units @ parameters[1:], parameters[0]) / time - 1.0
        return relative

    start = np.concatenate([[0.9 * time.min()], np.linalg.lstsq(design / units, time, rcond=None)[0]])
    found = least_squares(errors, start, loss="soft_l1", f_scale=STRAY, x_scale=time.max()).x
    return ServiceTime(tuple(zip(terms, (found[1:] / units).tolist(), strict=True)))

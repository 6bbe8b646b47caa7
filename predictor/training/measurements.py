"""A profile as arrays, prepared once: what every fit of training reads."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import least_squares

from predictor.contention.accelerators import SERVICE_TERMS, ServiceTime, term_values
from predictor.contention.memory import access_rate
from predictor.regression.significant import significant
from predictor.tables import contention_of, counters_of, traffic_of
from predictor.training.recorded import collect_loads, collect_runs, left_out, select_profiled
from profiles import ATTRIBUTES, COUNTERS, CoLocation, Fault, InputError, TrafficProfile, Workload
from profiles.arrays import Floats
from profiles.profile import FIRST_RATE, FIRST_SERVICE, KPPS_COLUMN, NF_COLUMN, RUN_COLUMN, service_column

if TYPE_CHECKING:
    import pandas as pd

    from profiles.profile import NfProfile, Profile


Rows = NDArray[np.intp] | NDArray[np.bool_]

MEMORY_ROWS = 10  # fewest runs next to mem-bench from which a memory model is trained


@dataclass(frozen=True)
class Runs:
    """Measured runs of one NF, one row each."""

    traffic: Floats  # shape (N, 3)
    counters: Floats
    """The competitors' seven counters, summed; of the NF itself in `NfMeasurements.solo`. Shape (N, 7)."""
    service_ms: Floats
    rate_kpps: Floats
    """The competitors' service time and offered rate per accelerator of the NF, as `next_to_bench` takes them. Shape
    (N, accelerators)."""
    throughput: Floats  # of the NF (kpps), shape (N,)

    @classmethod
    def of(cls, table: pd.DataFrame, accelerators: tuple[str, ...]) -> Runs:
        """The rows of a table of `NfProfile`; counters that it does not have are zero."""
        service, rate = contention_of(table, accelerators)
        counters = counters_of(table) if COUNTERS[0] in table else np.zeros((len(table), len(COUNTERS)))
        throughput = table[KPPS_COLUMN].to_numpy(dtype=np.float64) if len(table) else np.zeros(0)
        return cls(traffic_of(table), counters, service, rate, throughput)

    @classmethod
    def joined(cls, parts: Sequence[Runs]) -> Runs:
        """The rows of all parts, in order."""
        return cls(*(np.concatenate([getattr(part, field.name) for part in parts]) for field in fields(cls)))

    def __len__(self) -> int:
        return len(self.throughput)

    def __getitem__(self, rows: Rows) -> Runs:
        return Runs(*(getattr(self, field.name)[rows] for field in fields(self)))

    @property
    def without_accelerator_contention(self) -> NDArray[np.bool_]:
        """Which runs had no competitor on an accelerator, shape (N,)."""
        free: NDArray[np.bool_] = (self.service_ms == 0).all(axis=1)
        return free


@dataclass(frozen=True)
class NfMeasurements:
    """The measurements of one NF."""

    name: str
    cores: int | None  # dedicated cores; None when neither nf.json nor testbed.json describes the NF
    described: bool  # whether nf.json describes it. Otherwise one queue per accelerator and a pipeline are assumed.
    accelerators: tuple[str, ...]  # the accelerators that it uses
    solo: Runs  # alone on the NIC; `counters` are the NF's own
    alone: Runs  # all different runs without competitors, of solo.csv and memory*.csv
    memory: Runs
    """All different runs under memory contention only, then all other different runs of `solo` as runs without it."""
    from_solo: NDArray[np.bool_]  # which runs of `memory` are of `solo`, shape (len(memory),)
    queues: Runs  # next to the bench of one accelerator each, then the solo runs
    queue_terms: Mapping[str, Floats]
    """Each term of a service time at the traffic of `queues`, by its name in `accelerators.SERVICE_TERMS`."""
    pattern: Runs  # next to memory and accelerator benches together
    co_runs: Runs  # in real co-locations of which only the sums are known
    ranges: Mapping[str, tuple[float, float]]  # smallest and largest measured value of each traffic attribute

    @classmethod
    def of(cls, nf: NfProfile, cores: int | None) -> NfMeasurements:
        """The measurements of `nf`, which takes that many cores."""
        uses = nf.uses
        solo, memory = Runs.of(nf.solo, uses), Runs.of(nf.memory, uses)
        benches = [_next_to_bench(nf.accelerators[name], uses, at) for at, name in enumerate(uses)]
        queues = Runs.joined([*benches, _without_counters(solo)])
        alone = _without_counters(Runs.joined([solo, memory[(memory.counters == 0).all(axis=1)]]))
        measured = Runs.joined([solo, memory, *(Runs.of(table, uses) for table in nf.accelerators.values())]).traffic
        # a run that stands in both files is one run: counted twice, it would pass for a setting without noise
        contended = Runs.joined([memory, _without_counters(solo)])
        first = _first_of_equals(contended)
        return cls(
            name=nf.name,
            cores=cores,
            described=nf.description is not None,
            accelerators=uses,
            solo=solo,
            alone=alone[_first_of_equals(alone)],
            memory=contended[first],
            from_solo=(np.arange(len(contended)) >= len(memory))[first],
            queues=queues,
            queue_terms={term: term_values(term, queues.traffic) for term in SERVICE_TERMS},
            pattern=Runs.of(nf.pattern, uses),
            co_runs=Runs.of(nf.co_runs, uses),
            ranges={
                name: (float(measured[:, at].min()), float(measured[:, at].max())) for at, name in enumerate(ATTRIBUTES)
            },
        )


@dataclass(frozen=True)
class Measurements:
    """The measurements of a whole profile."""

    nfs: Mapping[str, NfMeasurements]  # by name, sorted
    benches: Mapping[str, tuple[Floats, Floats]]
    """Per accelerator, runs of its bench alone: traffic, shape (N, 3), and service time (ms), shape (N,)."""
    co_locations: Mapping[CoLocation, Floats]
    """Per co-location of profiled NFs, members sorted, throughput (kpps) of its runs, shape (runs, members)."""
    alone: Mapping[Workload, Floats]
    """Per workload that co-locations.csv has alone, throughput (kpps) of its runs, shape (runs,)."""
    default_traffic: TrafficProfile
    nic_cores: int | None  # cores of the NIC; None without testbed.json
    described_cores: Mapping[str, int]  # cores per NF by testbed.json
    further: Mapping[str, tuple[NfMeasurements, ...]]  # per NF, its measurements on each further number of cores
    core_counts: Mapping[str, tuple[int, ...]]
    """Per NF, the numbers of cores that it can be given as far as that is described."""
    loads: Sequence[tuple[CoLocation, tuple[float, ...]]]
    """Co-locations in which an NF has an offered rate or another number of cores, and what each carried (kpps)."""


def measurements_of(profile: Profile, warn: Callable[[str], None]) -> Measurements:
    """The arrays of `profile`; `warn` receives what has to be assumed or left out. Raises `InputError` when an NF was
    measured too little, or a co-location does not fit on the NIC."""
    faults = [fault for nf in profile.nfs.values() for fault in [*_too_few_runs(nf), *_overfull_runs(profile, nf)]]
    if faults:
        raise InputError(faults)
    recorded = collect_runs(profile)
    if message := left_out(recorded, profile):
        warn(message)
    known = select_profiled(recorded, profile)
    testbed = profile.testbed
    cores = {nf.name: nf.cores for nf in testbed.nfs} if testbed else {}
    for name, nf in sorted(profile.nfs.items()):
        if nf.description is None:
            assumed = "one queue per accelerator and a pipeline are" if nf.uses else "no accelerator is"
            warn(f"{name}: no nf.json, {assumed} assumed")
    return Measurements(
        nfs={
            name: NfMeasurements.of(nf, nf.description.cores if nf.description else cores.get(name))
            for name, nf in sorted(profile.nfs.items())
        },
        benches=_bench_runs(profile),
        co_locations={one: runs for one, runs in known.items() if len(one) > 1},
        alone={one[0]: runs[:, 0] for one, runs in known.items() if len(one) == 1},
        default_traffic=profile.default_traffic(),
        nic_cores=testbed.nic.cores if testbed else None,
        described_cores=cores,
        further={
            name: tuple(NfMeasurements.of(nf.on_cores(count), count) for count in sorted(nf.further))
            for name, nf in profile.nfs.items()
        },
        core_counts={name: nf.description.counts if nf.description else () for name, nf in profile.nfs.items()},
        loads=tuple(collect_loads(profile)),
    )


def _bench_runs(profile: Profile) -> dict[str, tuple[Floats, Floats]]:
    runs = {}
    for accelerator in sorted({name for nf in profile.nfs.values() for name in nf.uses}):
        column, table = service_column(accelerator), profile.benches
        rows = table[table[column] > 0] if column in table else table[:0]
        if len(rows):
            filled = rows.assign(**{name: rows[name].fillna(0.0) if name in rows else 0.0 for name in ATTRIBUTES})
            runs[accelerator] = traffic_of(filled), rows[column].to_numpy(dtype=np.float64)
    return runs


def _next_to_bench(table: pd.DataFrame, uses: tuple[str, ...], at: int) -> Runs:
    """Runs next to the bench of the accelerator at position `at`, whose columns carry the contract's first names."""
    runs = Runs.of(table, ())
    service, rate = np.zeros((len(table), len(uses))), np.full((len(table), len(uses)), np.nan)
    service[:, at], rate[:, at] = table[FIRST_SERVICE], table[FIRST_RATE]
    return Runs(runs.traffic, np.zeros((len(table), len(COUNTERS))), service, rate, runs.throughput)


def _without_counters(runs: Runs) -> Runs:
    return Runs(runs.traffic, np.zeros_like(runs.counters), runs.service_ms, runs.rate_kpps, runs.throughput)


def _first_of_equals(runs: Runs) -> NDArray[np.bool_]:
    """Which runs equal no earlier one in traffic, counters and throughput, shape (N,)."""
    values = np.column_stack([runs.traffic, runs.counters, runs.throughput])
    first = np.zeros(len(runs), dtype=bool)
    first[np.unique(values, axis=0, return_index=True)[1]] = True
    return first


def _overfull_runs(profile: Profile, nf: NfProfile) -> Iterator[Fault]:
    if not profile.testbed or not len(nf.co_locations):
        return
    most = profile.testbed.nic.cores
    described = {name: one.description.cores for name, one in profile.nfs.items() if one.description}
    names = nf.co_locations[NF_COLUMN].astype(str).to_numpy()
    # the rows of each run: tables by run would copy the lines of the whole file for each
    for rows in nf.co_locations.groupby(RUN_COLUMN, sort=False).indices.values():
        cores = sum(described.get(name, 0) for name in names[rows])
        if len(rows) > 1 and cores > most:
            message = f"a run of {len(rows)} NFs takes {cores} cores of a NIC with {most}"
            yield Fault(f"{nf.name}/co-locations.csv", None, RUN_COLUMN, message, "give runs different numbers")


def _too_few_runs(nf: NfProfile) -> Iterator[Fault]:
    if len(nf.memory) < MEMORY_ROWS:
        message = f"{len(nf.memory)} runs, at least {MEMORY_ROWS} are needed"
        yield Fault(f"{nf.name}/memory.csv", None, None, message, "profile again with a larger --quota")
    for accelerator in nf.uses:
        if not len(nf.accelerators.get(accelerator, ())):
            message = "no runs, at least 1 is needed, and 2 next to the bench to infer the number of queues"
            hint = f"profile {nf.name} next to the bench of {accelerator}"
            yield Fault(f"{nf.name}/{accelerator}.csv", None, None, message, hint)


# Service times of the accelerator benches.


BENCH_TERMS = ("constant", "packet_size", "mtbr", "matches")
STRAY_ERROR = 0.03
SETTLED_BITS = 15  # binary digits of the parts of a service time, of the longest: 2e-5, where runs scatter by 5e-3


def bench_services(benches: Mapping[str, tuple[Floats, Floats]]) -> dict[str, ServiceTime]:
    """Per accelerator, the service time of its bench over packet size and matches, from `Measurements.benches`."""
    return {accelerator: _service(*runs) for accelerator, runs in benches.items()}


def _service(traffic: Floats, time: Floats) -> ServiceTime:
    """The linear part; where the accelerator is faster than the bench's core, its time is the core's, a floor."""
    varying = [term for term in BENCH_TERMS if np.ptp(term_values(term, traffic)) > 0]
    terms = ["constant", *varying] if len(time) > len(varying) + 1 else ["constant"]
    design = np.column_stack([term_values(term, traffic) for term in terms])
    units = np.abs(design).max(axis=0)

    def errors(parameters: Floats) -> Floats:
        relative: Floats = np.maximum(design / units @ parameters[1:], parameters[0]) / time - 1.0
        return relative

    start = np.concatenate([[0.9 * time.min()], np.linalg.lstsq(design / units, time, rcond=None)[0]])
    found = least_squares(errors, start, loss="soft_l1", f_scale=STRAY_ERROR, x_scale=time.max()).x
    times = significant(found[1:], SETTLED_BITS, of=time.max())
    return ServiceTime(tuple(zip(terms, (times / units).tolist(), strict=True)))


# How much memory contention co-located NFs exert: the range on which memory models must be most accurate.


CO_LOCATIONS = 4000
LIKELY_QUANTILE = 0.995


def most_accesses(measured: Measurements, nf: str, seed: int) -> float:
    """Cache accesses per second that all but the rarest co-locations of profiled NFs exert on `nf`. Co-locations are
    drawn evenly from the NFs and their measured solo runs, as many as the NIC's cores admit. Infinite when the profile
    does not describe the NIC, or holds no solo runs."""
    solo = {name: access_rate(one.solo.counters) for name, one in measured.nfs.items() if len(one.solo)}
    if measured.nic_cores is None or not solo:
        return float("inf")
    cores = measured.described_cores
    slots = (measured.nic_cores - cores.get(nf, 1)) // min(cores.get(name, 1) for name in solo)
    rng = np.random.default_rng(seed)
    names = list(solo)
    exerted = np.zeros(CO_LOCATIONS)
    for _ in range(slots):
        drawn = rng.integers(len(names), size=CO_LOCATIONS)
        for at, name in enumerate(names):
            rows = drawn == at
            exerted[rows] += rng.choice(solo[name], size=int(rows.sum()))
    return float(np.quantile(exerted, LIKELY_QUANTILE))

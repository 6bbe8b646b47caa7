"""Training of one NF: queues and service times, solo throughput, memory model, and the execution pattern they fit."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import least_squares

from predictor.contention.accelerators import SERVICE_TERMS, WHOLE_TOLERANCE, AcceleratorUse, ServiceTime
from predictor.contention.execution import EXECUTION_PATTERNS, PIPELINE, Execution, Pattern
from predictor.contention.nf_model import NfModel
from predictor.contention.solo import SoloModel
from predictor.regression.significant import significant
from predictor.training.measurements import NfMeasurements, Runs
from predictor.training.solo_fits import (
    SOLO_ROWS,
    SoloCurve,
    base_without_solo_runs,
    cores_on,
    fit_memory,
    fit_solo,
    with_fit_of_runs,
)
from profiles.arrays import Floats

FITTING_ROUNDS = 3
NO_SLICES: Mapping[str, float] = {}
FitKey = tuple[str, Pattern, tuple[str, ...]]
ExecutionFits = dict[FitKey, tuple[Execution, SoloModel | None]]
"""By NF, pattern, and those of its accelerators whose turns are of equal time."""
AMBIGUOUS_MISFIT = 1.5  # times the misfit of the pattern that fits best, up to which another may be the true one


def plausible_models(
    measured: NfMeasurements,
    benches: Mapping[str, ServiceTime],
    *,
    most_accesses: float,
    seed: int,
    solo_fit: SoloCurve | None = None,
    further: Sequence[NfMeasurements] = (),
    slices: Mapping[str, float] = NO_SLICES,
    fits: ExecutionFits | None = None,
) -> list[NfModel]:
    """A model per execution pattern that the measurements allow, the best fit first.

    Where an accelerator binds whatever the memory does, benches cannot distinguish a pipeline with slow requests from
    run to completion with quick ones. Real co-locations can: the two slow other NFs differently. `measured`: the
    measurements of the NF. `benches`: per accelerator, the service time of its bench. `most_accesses`: cache accesses
    per second that the other NFs of a NIC can exert on it. `seed`: seeds the boosting. `solo_fit`: a curve of its
    throughput alone, or `OWN_RUNS`, as `with_fit_of_runs` takes it; None for none. `further`: its measurements on
    further numbers of cores, which use the same queues. `slices`: as `find_slices` returns them. `fits`: those that it
    has made."""
    detect = measured.described and bool(measured.accelerators)
    models = [
        _fit(
            measured, further, pattern, benches, slices, fits or {},
            infer_queues=detect, most_accesses=most_accesses, seed=seed, solo_fit=solo_fit,
        )
        for pattern in (EXECUTION_PATTERNS if detect else (PIPELINE,))
    ]  # fmt: skip
    if not detect:
        return models
    misfits = misfits_next_to_benches(measured, models)
    evidence = {str(model.execution.pattern): round(misfit, 3) for model, misfit in zip(models, misfits, strict=True)}
    ranked = sorted(zip(misfits, models, strict=True), key=lambda one: one[0])
    return [replace(model, evidence=evidence) for misfit, model in ranked if misfit <= AMBIGUOUS_MISFIT * ranked[0][0]]


def _fit(
    measured: NfMeasurements,
    further: Sequence[NfMeasurements],
    pattern: Pattern,
    benches: Mapping[str, ServiceTime],
    slices: Mapping[str, float],
    fits: ExecutionFits,
    *,
    infer_queues: bool,
    most_accesses: float,
    seed: int,
    solo_fit: SoloCurve | None,
) -> NfModel:
    """The NF under one pattern: queues and solo throughput in turn, since each depends on the other, then memory."""
    base = base_without_solo_runs(measured, pattern, most_accesses=most_accesses, seed=seed)
    if (known := _key_of(measured, pattern, slices)) in fits:
        execution, solo = fits[known]
    else:
        execution, solo = _fit_execution(measured, further, pattern, benches, slices, base, infer_queues)
    if solo and solo_fit is not None:
        solo = with_fit_of_runs(solo, measured, execution, solo_fit)
    memory = fit_memory(measured, execution, solo, most_accesses=most_accesses, seed=seed)
    return NfModel(measured.name, measured.cores, execution, solo, memory, measured.ranges)


def _fit_execution(
    measured: NfMeasurements,
    further: Sequence[NfMeasurements],
    pattern: Pattern,
    benches: Mapping[str, ServiceTime],
    slices: Mapping[str, float],
    base: Floats | None,
    infer_queues: bool,
) -> tuple[Execution, SoloModel | None]:
    execution = Execution(pattern)
    solo = fit_solo(measured, execution)
    # cores that are slow with large packets look like an accelerator that is; on more cores the accelerator binds
    further = [of_count for of_count in further if solo and len(of_count.solo) >= SOLO_ROWS]
    for _ in range(FITTING_ROUNDS if measured.accelerators else 0):
        uses = fit_uses(measured, further, pattern, base, benches, slices, infer_queues=infer_queues)
        execution = Execution(pattern, uses)
        solo = fit_solo(measured, execution)
        if solo:
            reached = [cores_on(of_count, execution).kpps(of_count.queues.traffic) for of_count in further]
            base = np.concatenate([solo.kpps(measured.queues.traffic), *reached])
    return execution, solo


# Whether the tenants of an accelerator get turns of one request (Tomur, section 4.1.1), or of equal time.


SMALL_MISFIT, CLEARLY_SMALLER = 0.02, 0.7
"""The mean relative error next to benches up to which turns of one request are not doubted, and that of turns of equal
time, relative to it, below which these are taken for true."""


def find_slices(
    nfs: Mapping[str, NfMeasurements],
    further: Mapping[str, Sequence[NfMeasurements]],
    services: Mapping[str, ServiceTime],
    longest: Mapping[str, float],
    fits: ExecutionFits,
) -> dict[str, float]:
    """The length (ms) of a turn of each accelerator whose turns are of equal time, by the runs of all NFs next to its
    bench. `services`, `longest`: per accelerator, the service time of its bench, and its longest (ms). `fits` gets
    those that were made."""

    def misfit(users: Sequence[NfMeasurements], slices: Mapping[str, float]) -> float:
        found = [_least_misfit(nf, further[nf.name], services, slices, fits) for nf in users]
        return float(np.mean(found)) if found else 0.0

    slices = {}
    for name, longest_ms in longest.items():
        users = [nf for nf in nfs.values() if name in nf.accelerators and nf.described and len(nf.solo) >= SOLO_ROWS]
        by_request = misfit(users, NO_SLICES)
        if by_request > SMALL_MISFIT and misfit(users, {name: longest_ms}) < CLEARLY_SMALLER * by_request:
            slices[name] = longest_ms
    return slices


def _least_misfit(
    measured: NfMeasurements,
    further: Sequence[NfMeasurements],
    services: Mapping[str, ServiceTime],
    slices: Mapping[str, float],
    fits: ExecutionFits,
) -> float:
    """Mean relative error next to accelerator benches, of the pattern that fits best."""
    misfits, runs = [], measured.queues[~measured.queues.without_accelerator_contention]
    for pattern in EXECUTION_PATTERNS if len(runs) else ():
        key = _key_of(measured, pattern, slices)
        if key not in fits:
            fits[key] = _fit_execution(measured, further, pattern, services, slices, None, infer_queues=True)
        execution, solo = fits[key]
        assert solo is not None  # its users have solo runs
        predicted = execution.throughput(solo.kpps(runs.traffic), runs.traffic, runs.service_ms, runs.rate_kpps)
        misfits.append(float(np.minimum(np.abs(predicted / runs.throughput - 1), LARGEST_ERROR).mean()))
    return min(misfits, default=0.0)


def _key_of(measured: NfMeasurements, pattern: Pattern, slices: Mapping[str, float]) -> FitKey:
    return measured.name, pattern, tuple(name for name in measured.accelerators if name in slices)


# How well each execution pattern fits the runs of an NF next to benches.


LARGEST_ERROR = 0.25  # larger relative errors of a run count as this, so that outliers do not decide


def misfits_next_to_benches(measured: NfMeasurements, models: Sequence[NfModel]) -> list[float]:
    """Mean absolute percentage error of each model next to accelerator benches, with and without memory contention."""
    queues, pattern = measured.queues, measured.pattern
    throughput = np.concatenate([queues.throughput, pattern.throughput])
    misfits = []
    for model in models:
        base = model.base_kpps(queues.traffic)
        predicted = [model.execution.throughput(base, queues.traffic, queues.service_ms, queues.rate_kpps)]
        if len(pattern):
            predicted.append(model.throughput(pattern.counters, pattern.traffic, pattern.service_ms, pattern.rate_kpps))
        errors = np.abs(np.concatenate(predicted) / throughput - 1)
        misfits.append(float(100 * np.mean(np.minimum(errors, LARGEST_ERROR))))
    return misfits


# Queues and service times of an NF, from runs next to benches of known service time (Tomur, section 4.1.1).


MOST_QUEUES = 64
ABOVE_CORES = 1.03  # a run alone that is faster than the cores by this factor was of the accelerator without the cores
STRAY_ERROR = 0.03  # relative error from which a run counts as stray and weighs less
ENOUGH_RUNS = 30  # runs from which on the service time has one term more
RIDGE_RELUCTANCE = 0.01
SETTLED_BITS = 15
"""Binary digits of what is fitted, in units of the typical time of a packet: 2e-5, where runs scatter by 5e-3."""
CURVE_KNOTS = 5
ROWS_PER_KNOT = 6
USUAL_TOLERANCE, EXACT_TOLERANCE, MOST_STEPS = 1e-8, 1e-11, 100
"""How far a fit is continued, at the first try and at the last: to where every processor ends."""
DERIVATIVE_STEP = 1e-5
UNBOUND_KPPS, MOST_LOG = 1e9, 20.0
EVERY_PACKET = ("constant", "packet_size")
HEADERLESS_TERM = "payload_matches"


def fit_uses(
    measured: NfMeasurements,
    further: Sequence[NfMeasurements],
    pattern: Pattern,
    base: Floats | None,
    benches: Mapping[str, ServiceTime],
    slices: Mapping[str, float],
    *,
    infer_queues: bool,
) -> tuple[AcceleratorUse, ...]:
    """Queues and service time per accelerator.

    The throughput that `Execution` predicts is fitted to all runs at once, so that runs in which an accelerator does
    not bind contribute as well. Two equilibrium runs with different competitors suffice (Tomur, section 4.1.1): in a
    pipeline 1/T = t + S/n, in run to completion 1/T = 1/T_solo + S/n. There the part of the service time that every
    packet takes cannot be separated from the cores' time; the bench's is taken. `measured`: the measurements of the NF.
    `further`: those on further numbers of cores. `pattern`: the execution pattern that is assumed. `base`: what the
    cores reach with the least accelerator work at the traffic of each of their `queues` (kpps); None to infer it, too.
    `benches`: per accelerator, the service time of its bench, where known. `slices`: as `find_slices` returns them.
    `infer_queues`: whether to infer queue counts; else each is one."""
    counts = [measured, *further]
    runs = Runs.joined([of_count.queues for of_count in counts])
    terms = {name: np.concatenate([of_count.queue_terms[name] for of_count in counts]) for name in SERVICE_TERMS}
    # before anything is known, throughput is taken to grow with the cores
    more = [
        np.full(len(of_count.queues), math.log((of_count.cores or 1) / (measured.cores or 1))) for of_count in further
    ]
    speed = np.concatenate([np.zeros(len(measured.queues)), *more])
    # without solo runs, a run without competitors may be of the accelerator without the NF's cores
    bare = runs.without_accelerator_contention & (len(measured.solo) == 0)
    fit = _Fit(pattern, measured.accelerators, runs, bare, base, benches, terms, speed, slices)
    loose = [infer_queues and len(set(column[column > 0].tolist())) > 1 for column in runs.service_ms.T]
    shares, coefficients = fit.solve(*fit.start(loose), loose)
    whole = [1.0 / max(1, round(1.0 / share)) for share in shares]
    shares, coefficients = fit.solve(whole, coefficients, [False] * len(measured.accelerators))
    return tuple(replace(use, queues=round(use.queues)) for use in fit.uses(shares, coefficients))


class _Fit:
    """Least squares on the logarithm of throughput."""

    def __init__(
        self,
        pattern: Pattern,
        names: tuple[str, ...],
        runs: Runs,
        maybe_bare: NDArray[np.bool_],
        base: Floats | None,
        benches: Mapping[str, ServiceTime],
        terms: Mapping[str, Floats],
        speed: Floats,
        slices: Mapping[str, float],
    ) -> None:
        self.pattern, self.names, self.runs, self.base, self.benches = pattern, names, runs, base, benches
        self.speed = speed  # logarithm of how much faster the cores are than the default number, as they were guessed
        self.slices = [slices.get(name, 0.0) for name in names]
        self.maybe_bare, self.alone = maybe_bare, runs.without_accelerator_contention
        self.known = [() if pattern == PIPELINE else _of_every_packet(benches.get(name)) for name in names]
        self.terms = _terms(pattern, runs)
        self.columns = [terms[term] for term in self.terms]
        self.units = [float(np.median(1 / runs.throughput) / max(column.max(), 1e-300)) for column in self.columns]
        self.curve, self.usual_curve = (
            _curve(runs, self.alone) if base is None else (np.zeros((len(base), 0)), np.zeros(0))
        )

    def start(self, loose: Sequence[bool]) -> tuple[list[float], list[Floats]]:
        """The linear fit of 1/T to the runs with most contention, as if the accelerator bound in each."""
        found = [self._start_of(at, free) for at, free in enumerate(loose)]
        return [share for share, _ in found], [values for _, values in found]

    def solve(
        self, shares: Sequence[float], coefficients: Sequence[Floats], loose: Sequence[bool]
    ) -> tuple[list[float], list[Floats]]:
        """Shares (1 / queues) and coefficients of the service times that fit best; robust against a stray run."""
        first = np.concatenate(
            [
                *(values / self.units for values in coefficients),
                [share for share, free in zip(shares, loose, strict=True) if free],
                self.usual_curve,
            ]
        )
        if not len(first):
            return list(shares), list(coefficients)

        def unpack(vector: Floats) -> tuple[list[float], list[Floats]]:
            ends = np.cumsum([len(self.terms)] * len(self.names) + [sum(loose)])
            *values, free, _ = np.split(vector, ends)
            filled = iter(free.tolist())
            kept = [next(filled) if may else share for share, may in zip(shares, loose, strict=True)]
            return kept, [part * self.units for part in values]

        shared = np.zeros(len(first), dtype=bool)
        shared[len(self.names) * len(self.terms) :][: sum(loose)] = True
        # where runs do not determine them: one queue, and service times like the bench's
        usual, times = self.usual(), np.arange(len(first)) < len(self.names) * len(self.terms)
        cores = slice(len(first) - self.curve.shape[1], len(first))

        def residuals(vector: Floats) -> Floats:
            base = self.base
            if base is None:
                base = np.exp(np.clip(self.curve @ vector[cores] + self.speed, -MOST_LOG, MOST_LOG))
            errors = np.log(np.maximum(self._predict(*unpack(vector), base), 1e-9) / self.runs.throughput)
            unusual = [
                vector[shared] - 1.0,
                (vector[times] - usual)[~np.isnan(usual)],
                vector[cores] - self.usual_curve,
            ]
            return np.concatenate([errors, *(RIDGE_RELUCTANCE * part for part in unusual)])

        def slopes(vector: Floats) -> Floats:
            here = residuals(vector)
            steps = DERIVATIVE_STEP * np.eye(len(vector))
            return np.stack([(residuals(vector + step) - here) / DERIVATIVE_STEP for step in steps], axis=1)

        # nothing takes negative time, or two terms could stand in for a third that was not varied apart from them
        low, high = np.where(times, 0.0, -np.inf), np.full(len(first), np.inf)
        low[shared], high[shared] = 1 / MOST_QUEUES, 1.0 + 1e-6
        first = np.clip(first, low, high)
        for stray in (10 * STRAY_ERROR, STRAY_ERROR):
            last = stray == STRAY_ERROR
            found = least_squares(
                residuals,
                first,
                jac=slopes,
                bounds=(low, high),
                loss="soft_l1",
                f_scale=stray,
                x_scale="jac",
                ftol=1e-4 * EXACT_TOLERANCE if last else USUAL_TOLERANCE,
                xtol=EXACT_TOLERANCE if last else USUAL_TOLERANCE,
                gtol=1e-2 * EXACT_TOLERANCE if last else USUAL_TOLERANCE,
                max_nfev=MOST_STEPS if last else None,
            )
            first = found.x
        return unpack(significant(first, SETTLED_BITS, of=1.0))

    def usual(self) -> Floats:
        """Per accelerator and term, the scaled coefficient where runs do not determine it; NaN where any is as likely.
        A request costs the same as one of the bench, and matches are proportional to packet size."""
        known = [dict(_of_every_packet(self.benches.get(name))) for name in self.names]
        usual = [[of.get(term, 0.0 if term == HEADERLESS_TERM else np.nan) for term in self.terms] for of in known]
        return (np.array(usual, dtype=np.float64).reshape(len(self.names), -1) / self.units).ravel()

    def uses(self, shares: Sequence[float], coefficients: Sequence[Floats]) -> tuple[AcceleratorUse, ...]:
        """Queues and service times with these parameters."""
        return tuple(
            AcceleratorUse(name, 1 / share, ServiceTime((*known, *zip(self.terms, values.tolist(), strict=True))), turn)
            for name, known, share, values, turn in zip(
                self.names, self.known, shares, coefficients, self.slices, strict=True
            )
        )

    def _predict(self, shares: Sequence[float], coefficients: Sequence[Floats], base: Floats) -> Floats:
        if self.pattern == PIPELINE:
            base = np.where(self.maybe_bare & (self.runs.throughput > ABOVE_CORES * base), UNBOUND_KPPS, base)
        runs = self.runs
        execution = Execution(self.pattern, self.uses(shares, coefficients))
        return execution.throughput(base, runs.traffic, runs.service_ms, runs.rate_kpps)

    def _start_of(self, at: int, free: bool) -> tuple[float, Floats]:
        free = free and not self.slices[at]
        service, rate = self.runs.service_ms[:, at], self.runs.rate_kpps[:, at]
        rows = (service > 0) & np.isnan(rate) if free else np.ones(len(service), dtype=bool)
        throughput = self.runs.throughput[rows]
        columns = [column[rows] for column in self.columns] + ([service[rows]] if free else [])
        if not columns:
            return 1.0, np.zeros(0)
        design = np.column_stack(columns)
        units = np.maximum(np.abs(design).max(axis=0), 1e-300)
        time = 1 / throughput
        if self.pattern != PIPELINE:
            time = time - (1 / self.base[rows] if self.base is not None else 1 / self.runs.throughput.max())
        if self.slices[at]:
            # as if of one queue, beside as many as the bench has
            time = time / (1.0 + np.ceil(service[rows] / self.slices[at] - WHOLE_TOLERANCE))
        # slow runs weigh most: in them the accelerator binds
        solution = np.linalg.lstsq(design / units, time, rcond=None)[0] / units
        return (float(np.clip(solution[-1], 1 / MOST_QUEUES, 1.0)), solution[:-1]) if free else (1.0, solution)


def _terms(pattern: Pattern, runs: Runs) -> tuple[str, ...]:
    """The terms of the service time that the runs can determine."""
    _, sizes, matches = (runs.traffic.max(axis=0) > 1.001 * runs.traffic.min(axis=0)).tolist()
    terms = ["constant"] + ["packet_size"] * sizes if pattern == PIPELINE else []
    if matches:
        # headers hold no matches, so that matches per packet are not quite proportional to its size
        terms += ["matches"] + [HEADERLESS_TERM] * (len(runs.throughput) >= ENOUGH_RUNS) if sizes else ["mtbr"]
    return tuple(terms)


def _curve(runs: Runs, alone: NDArray[np.bool_]) -> tuple[Floats, Floats]:
    """The throughput of the cores as a curve over flows, tilted with packet size: weights of its knots per run. And its
    knots where runs do not determine them: as fast as the fastest run alone, whatever the packet size."""
    flows, size = np.log(np.maximum(runs.traffic[:, 0], 1.0)), runs.traffic[:, 1] / max(runs.traffic[:, 1].max(), 1e-9)
    count = int(np.clip(alone.sum() // ROWS_PER_KNOT, 1, CURVE_KNOTS))
    knots = np.unique(np.quantile(flows[alone], np.linspace(0, 1, count))) if alone.any() else np.zeros(1)
    hats = np.column_stack([np.interp(flows, knots, unit) for unit in np.eye(len(knots))])
    tilt = hats * (size - size.mean())[:, None] if np.ptp(size) > 0 and count > 1 else hats[:, :0]
    usual = np.zeros(hats.shape[1] + tilt.shape[1])
    usual[: hats.shape[1]] = np.log(runs.throughput[alone].max(initial=1e-9))
    return np.column_stack([hats, tilt]), usual


def _of_every_packet(bench: ServiceTime | None) -> tuple[tuple[str, float], ...]:
    return tuple((term, value) for term, value in (bench.coefficients if bench else ()) if term in EVERY_PACKET)

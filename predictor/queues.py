"""Number of queues and service time of an NF, inferred from runs beside a bench of known service time (Tomur, 4.1.1)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import least_squares

from predictor.accelerators import AcceleratorUse, ServiceTime, term_values
from predictor.composition import PIPELINE, Pattern
from predictor.nf_model import Execution

Array = NDArray[np.float64]
MOST_QUEUES = 64
ABOVE = 1.03


@dataclass(frozen=True)
class QueueRuns:
    """Runs of one NF beside accelerator benches: N rows, one column per accelerator where it is a matrix.

    Parameters
    ----------
    traffic
        Shape (N, 3).
    service_ms, rate_kpps
        Of the competitors, as `beside_bench` takes them, shape (N, accelerators).
    throughput
        Of the NF (kpps), shape (N,).
    """

    traffic: Array
    service_ms: Array
    rate_kpps: Array
    throughput: Array


def fit_uses(
    pattern: Pattern,
    names: tuple[str, ...],
    runs: QueueRuns,
    base: Array,
    benches: Mapping[str, ServiceTime],
    *,
    infer_queues: bool,
) -> tuple[AcceleratorUse, ...]:
    """Queues and service time per accelerator.

    The throughput that `Execution` predicts is fitted to all runs at once, so that runs in which the accelerator does
    not bind tell that it does not. Two equilibrium runs with different competitors suffice (Tomur, section 4.1.1): in a
    pipeline 1/T = t + S/n, in run to completion 1/T = 1/T_solo + S/n. There the part of the service time that every
    packet takes cannot be told from the cores' time; the bench's is taken.

    Parameters
    ----------
    pattern
        The execution pattern that is assumed.
    names
        The accelerators.
    runs
        The runs.
    base
        What the cores reach with the least accelerator work at each run's traffic (kpps).
    benches
        Per accelerator, the service time of its bench, where known.
    infer_queues
        Whether to infer queue counts; else each is one.
    """
    terms = [_terms(pattern, runs) for _ in names]
    contended = [bool((runs.service_ms[:, at] > 0).sum() >= 2) and infer_queues for at in range(len(names))]
    start = _start(pattern, names, runs, base, terms, contended)
    fitted = _solve(pattern, names, runs, base, terms, start, contended)
    queues = [max(1, round(1 / share)) for share in fitted.shares]
    fixed = _Parameters(fitted.coefficients, [1 / number for number in queues])
    fitted = _solve(pattern, names, runs, base, terms, fixed, [False] * len(names))
    uses = fitted.uses(names, terms)
    return uses if pattern == PIPELINE else tuple(_with_bench_constant(use, benches.get(use.name)) for use in uses)


@dataclass(frozen=True)
class _Parameters:
    """Per accelerator: coefficients of the service time, relative to their typical size, and 1 / queues."""

    coefficients: list[Array]
    shares: list[float]

    def uses(self, names: tuple[str, ...], terms: list[list[str]]) -> tuple[AcceleratorUse, ...]:
        return tuple(
            AcceleratorUse(
                name, max(1, round(1 / share)), ServiceTime(tuple(zip(which, map(float, values), strict=True)))
            )
            for name, which, values, share in zip(names, terms, self.coefficients, self.shares, strict=True)
        )


def _terms(pattern: Pattern, runs: QueueRuns) -> list[str]:
    """The terms of the service time that the runs can tell."""
    _, sizes, matches = (runs.traffic.max(axis=0) > 1.001 * runs.traffic.min(axis=0)).tolist()
    terms = [] if pattern != PIPELINE else ["constant"] + ["packet_size"] * sizes
    return terms + (["matches"] if sizes else ["mtbr"]) * bool(matches and runs.traffic[:, 2].max() > 0)


def _start(
    pattern: Pattern,
    names: tuple[str, ...],
    runs: QueueRuns,
    base: Array,
    terms: list[list[str]],
    contended: list[bool],
) -> _Parameters:
    """The linear fit of 1/T on the runs with most contention, as if the accelerator bound in each."""
    coefficients, shares = [], []
    for at in range(len(names)):
        service = runs.service_ms[:, at]
        rows = service >= (np.median(service[service > 0]) if contended[at] else 0.0)
        rows &= np.isnan(runs.rate_kpps[:, at]) | (not contended[at])
        rows = rows if rows.sum() > len(terms[at]) else service >= 0
        traffic, time = runs.traffic[rows], 1.0 / runs.throughput[rows]
        if pattern != PIPELINE:
            time = time - 1.0 / base[rows]
        columns = [term_values(term, traffic) for term in terms[at]]
        columns += [service[rows]] if contended[at] else []
        share = 1.0
        solution = np.zeros(0)
        if columns:
            design = np.column_stack(columns)
            weight = runs.throughput[rows]
            unit = np.maximum(np.abs(design).max(axis=0), 1e-300)
            solution = np.linalg.lstsq(design / unit * weight[:, None], time * weight, rcond=None)[0] / unit
        if contended[at]:
            share, solution = float(solution[-1]), solution[:-1]
        else:
            solution = solution if pattern != PIPELINE or not len(solution) else solution
        coefficients.append(solution)
        shares.append(float(np.clip(share, 1 / MOST_QUEUES, 1.0)))
    return _Parameters(coefficients, shares)


def _solve(
    pattern: Pattern,
    names: tuple[str, ...],
    runs: QueueRuns,
    base: Array,
    terms: list[list[str]],
    start: _Parameters,
    free: list[bool],
) -> _Parameters:
    """Least squares on the logarithm of throughput, robust against a stray run."""
    units = [
        np.array(
            [np.median(1.0 / runs.throughput) / max(term_values(term, runs.traffic).max(), 1e-300) for term in which]
        )
        for which in terms
    ]
    above = (runs.service_ms.sum(axis=1) == 0) & (runs.throughput > ABOVE * base) & (pattern == PIPELINE)

    def unpack(vector: Array) -> _Parameters:
        values: Iterator[float] = iter(vector.tolist())
        coefficients = [np.array([next(values) * unit for unit in scale]) for scale in units]
        return _Parameters(
            coefficients, [next(values) if loose else kept for loose, kept in zip(free, start.shares, strict=True)]
        )

    def residuals(vector: Array) -> Array:
        parameters = unpack(vector)
        execution = _Loose(pattern, parameters.uses(names, terms), tuple(parameters.shares))
        # a run alone and above what the cores reach is the accelerator alone
        reachable = np.where(above, 1e9, base)
        predicted = execution.throughput(reachable, runs.traffic, runs.service_ms, runs.rate_kpps)
        return np.asarray(np.log(np.maximum(predicted, 1e-9) / runs.throughput))

    first = np.concatenate(
        [
            *(values / scale for values, scale in zip(start.coefficients, units, strict=True)),
            [s for s, loose in zip(start.shares, free, strict=True) if loose],
        ]
    )
    if not len(first):
        return start
    low = np.concatenate([np.full(sum(map(len, units)), -np.inf), np.full(sum(free), 1 / MOST_QUEUES)])
    high = np.concatenate([np.full(sum(map(len, units)), np.inf), np.full(sum(free), 1.0)])
    first = np.clip(first, low + 1e-9, high - 1e-9)
    solved = least_squares(residuals, first, bounds=(low, high), loss="soft_l1", f_scale=0.03, x_scale="jac")
    return unpack(solved.x)


class _Loose(Execution):
    """An execution whose queue counts need not be whole yet."""

    def __init__(self, pattern: Pattern, uses: tuple[AcceleratorUse, ...], shares: tuple[float, ...]) -> None:
        loose = tuple(
            AcceleratorUse(use.name, 1 / share, use.service)  # type: ignore[arg-type]
            for use, share in zip(uses, shares, strict=True)
        )
        super().__init__(pattern, loose)


def _with_bench_constant(use: AcceleratorUse, bench: ServiceTime | None) -> AcceleratorUse:
    known = use.service.as_dict()
    for term, coefficient in (bench.as_dict() if bench else {}).items():
        if term in ("constant", "packet_size"):
            known.setdefault(term, coefficient)
    return AcceleratorUse(use.name, use.queues, ServiceTime(tuple(sorted(known.items()))))

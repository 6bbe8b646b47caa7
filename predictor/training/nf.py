"""Training of one NF: queues and service times, solo throughput, memory model, and the execution pattern they fit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from predictor.contention.accelerators import ServiceTime
from predictor.contention.composition import PATTERNS, PIPELINE, Pattern
from predictor.contention.execution import Execution
from predictor.contention.nf_model import NfModel
from predictor.training.cores import base_without_solo_runs, fit_memory, fit_solo
from predictor.training.measurements import NfMeasurements
from predictor.training.pattern_misfit import misfits_next_to_benches
from predictor.training.queues import fit_uses
from predictor.training.solo_fits import SoloCurve, with_fit_of_runs

ROUNDS = 3
AMBIGUOUS = 1.5
"""Times the misfit of the pattern that fits best, up to which another may be the true one."""


def plausible_models(
    measured: NfMeasurements,
    benches: Mapping[str, ServiceTime],
    *,
    most_accesses: float,
    seed: int,
    solo_fit: SoloCurve | None = None,
) -> list[NfModel]:
    """A model per execution pattern that the measurements allow, the best fit first.

    Where an accelerator binds whatever the memory does, benches cannot distinguish a pipeline with slow requests from
    run to completion with quick ones. Real co-locations can: the two slow other NFs differently.

    Parameters
    ----------
    measured
        The measurements of the NF.
    benches
        Per accelerator, the service time of its bench.
    most_accesses
        Cache accesses per second that the other NFs of a NIC can exert on it.
    seed
        Seeds the boosting.
    solo_fit
        A curve of its throughput alone, or `OWN_RUNS`, as `with_fit_of_runs` takes it; None for none.
    """
    detect = measured.described and bool(measured.accelerators)
    models = [
        _fit(
            measured,
            pattern,
            benches,
            infer_queues=detect,
            most_accesses=most_accesses,
            seed=seed,
            solo_fit=solo_fit,
        )
        for pattern in (PATTERNS if detect else (PIPELINE,))
    ]
    if not detect:
        return models
    misfits = misfits_next_to_benches(measured, models)
    evidence = {str(model.execution.pattern): round(misfit, 3) for model, misfit in zip(models, misfits, strict=True)}
    ranked = sorted(zip(misfits, models, strict=True), key=lambda one: one[0])
    return [replace(model, evidence=evidence) for misfit, model in ranked if misfit <= AMBIGUOUS * ranked[0][0]]


def _fit(
    measured: NfMeasurements,
    pattern: Pattern,
    benches: Mapping[str, ServiceTime],
    *,
    infer_queues: bool,
    most_accesses: float,
    seed: int,
    solo_fit: SoloCurve | None,
) -> NfModel:
    """The NF under one pattern: queues and solo throughput in turn, since each depends on the other, then memory."""
    execution = Execution(pattern)
    base = base_without_solo_runs(measured, pattern, most_accesses=most_accesses, seed=seed)
    solo = fit_solo(measured, execution)
    for _ in range(ROUNDS if measured.accelerators else 0):
        execution = Execution(pattern, fit_uses(measured, pattern, base, benches, infer_queues=infer_queues))
        solo = fit_solo(measured, execution)
        base = solo.kpps(measured.queues.traffic) if solo else base
    if solo and solo_fit is not None:
        solo = with_fit_of_runs(solo, measured, execution, solo_fit)
    memory = fit_memory(measured, execution, solo, most_accesses=most_accesses, seed=seed)
    return NfModel(measured.name, measured.cores, execution, solo, memory, measured.ranges)

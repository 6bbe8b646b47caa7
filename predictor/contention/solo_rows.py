"""What workloads are alone, in compiled code: a row of a `WorkloadTable` for each.

Where traffic differs from instance to instance, every arrival has a row of its own. NumPy, call by call, takes ten
times as long for a single row.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from predictor.contention.accelerators import HEADER_BYTES, SERVICE_TERMS
from predictor.contention.execution import ADDED_WAITS, PIPELINE, SLOWEST_STAGE, compose, drop_on_accelerator
from predictor.contention.memory import WORKING_SET
from predictor.contention.nf_model import NfModel
from predictor.contention.solo import TINY_DIFFERENCE
from predictor.contention.workload_columns import columns_of
from predictor.regression.compiled import compile_kernel, dot
from predictor.regression.gaussian_process import GaussianProcess, side_by_side
from predictor.regression.packed import flags, numbers_2d, numbers_3d, processes_at, whole_2d
from predictor.regression.processes import Processes, write_similarity
from predictor.regression.significant import VALUE_BITS
from profiles import ATTRIBUTES, COUNTERS
from profiles.arrays import Floats

SIGNIFICANT_STEPS = 2.0 ** (VALUE_BITS - 1)
"""Steps per unit that `significant(..., of=1.0)` keeps."""


class SoloModels(NamedTuple):
    """Models of NFs alone, one NF after the other."""

    compiled: NDArray[np.bool_]
    """Whether a row follows from these models: not where an NF was not measured alone, or has a curve, shape (NFs,)."""
    throughput: Processes
    counters: Processes
    inputs: NDArray[np.int64]
    """The traffic attributes on which throughput depends, -1 at the end, shape (NFs, 3)."""
    default: Floats
    width: Floats
    """Of the `TrafficScale` of errors, shape (NFs, 3)."""
    pipeline: NDArray[np.bool_]
    """Shape (NFs,)."""
    queues: Floats
    """Per accelerator, 0 where it is not used, shape (NFs, accelerators)."""
    slices: Floats
    """Of the `AcceleratorUse`, shape (NFs, accelerators)."""
    terms: Floats
    """Coefficients of service times by term, shape (NFs, accelerators, terms)."""


def solo_models(models: Sequence[NfModel], accelerators: Sequence[str]) -> SoloModels:
    """The models as compiled code reads them."""
    compiled = [model.solo is not None and model.solo.throughput.curve is None for model in models]
    throughput, counters = (
        [GaussianProcess.none(1)] * len(models),
        [GaussianProcess.none(len(ATTRIBUTES))] * len(models),
    )
    inputs = np.full((len(models), len(ATTRIBUTES)), -1, dtype=np.int64)
    queues, slices = np.zeros((2, len(models), len(accelerators)))
    terms = np.zeros((len(models), len(accelerators), len(SERVICE_TERMS)))
    for at, model in enumerate(models):
        if model.solo is not None and compiled[at]:
            throughput[at], counters[at] = model.solo.throughput.process, model.solo.counters
            inputs[at, : len(model.solo.throughput.attributes)] = model.solo.throughput.attributes
        for use in model.execution.uses:
            column = accelerators.index(use.name)
            queues[at, column], slices[at, column] = use.queues, use.slice_ms
            for term, coefficient in use.service.coefficients:
                terms[at, column, SERVICE_TERMS.index(term)] += coefficient
    return SoloModels(
        np.array(compiled, dtype=np.bool_),
        side_by_side(throughput),
        side_by_side(counters),
        inputs,
        np.array([model.error_model.scale.default for model in models]),
        np.array([model.error_model.scale.width for model in models]),
        np.array([model.execution.pattern == PIPELINE for model in models], dtype=np.bool_),
        queues,
        slices,
        terms,
    )


@compile_kernel
def solo_models_at(packed):  # type: ignore[no-untyped-def]  # pragma: no cover - runs compiled
    """The `SoloModels` that were packed."""
    return SoloModels(
        flags(packed, 0), processes_at(packed, 1), processes_at(packed, 9), whole_2d(packed, 17),
        numbers_2d(packed, 18), numbers_2d(packed, 19), flags(packed, 20), numbers_2d(packed, 21),
        numbers_2d(packed, 22), numbers_3d(packed, 23),
    )  # fmt: skip


@compile_kernel
def write_rows(packed, numbers, whole, rows, loaded):  # type: ignore[no-untyped-def]  # pragma: no cover
    """Write these rows of a `WorkloadTable`, which hold NF and `GIVEN_NUMBERS` already.

    `packed` are `SoloModels`. If `loaded`, what they exert is scaled by what they carry.
    """
    models, table = solo_models_at(packed), columns_of(numbers, whole)
    most = max(models.throughput.points.shape[2], models.counters.points.shape[2])
    axes, inputs, near = np.empty(len(ATTRIBUTES)), np.zeros(len(ATTRIBUTES)), np.empty(most)
    for row in rows:
        nf, traffic = table.nf[row], table.traffic[row]
        if not models.compiled[nf]:
            continue
        axes[0], axes[1] = math.log(max(traffic[0], TINY_DIFFERENCE)), math.log(max(traffic[1], TINY_DIFFERENCE))
        axes[2] = traffic[2]
        count = write_similarity(models.counters, nf, axes, near)
        for counter in range(len(COUNTERS)):
            value = models.counters.mean[nf, counter] + dot(near, models.counters.weights[nf, counter], count)
            reading = math.exp(value)
            table.counters[row, counter] = 0.0 if reading <= 2 * TINY_DIFFERENCE else reading
        for at in range(len(ATTRIBUTES)):
            inputs[at] = axes[models.inputs[nf, at]] if models.inputs[nf, at] >= 0 else 0.0
        count = write_similarity(models.throughput, nf, inputs, near)
        base = math.exp(models.throughput.mean[nf, 0] + dot(near, models.throughput.weights[nf, 0], count))
        table.pipeline[row], table.relative[row], table.base[row] = models.pipeline[nf], True, base
        _write_deviation(models, nf, traffic, table.deviation[row])
        _write_accelerators(models, table, row)
        table.presence[row] = table.modelled_solo[row]
    if loaded:
        write_loads(numbers, whole, rows)


@compile_kernel
def write_loads(numbers, whole, rows):  # type: ignore[no-untyped-def]  # pragma: no cover - runs compiled
    """Scale what the workloads of new rows exert by what they carry.

    Their `presence` is what they carry at most on their default number of cores, and becomes that of the table.
    """
    table = columns_of(numbers, whole)
    for row in rows:
        table.rate[row] /= table.factor[row]
        table.presence[row] = min(table.rate[row], table.modelled_solo[row]) / table.presence[row]
        for counter in range(WORKING_SET):
            table.counters[row, counter] *= table.presence[row]


@compile_kernel
def _write_deviation(models, nf, traffic, deviation):  # type: ignore[no-untyped-def]  # pragma: no cover
    """`TrafficScale.deviation` of one row."""
    deviation[0], deviation[1] = math.log(max(traffic[0], 1.0)), math.log(max(traffic[1], 1.0))
    deviation[2] = math.log1p(traffic[2] / 100.0)
    for at in range(len(deviation)):
        coordinate = np.rint(deviation[at] * SIGNIFICANT_STEPS) / SIGNIFICANT_STEPS
        deviation[at] = (coordinate - models.default[nf, at]) / models.width[nf, at]


@compile_kernel
def _write_accelerators(models, table, row):  # type: ignore[no-untyped-def]  # pragma: no cover - runs compiled
    """Write service times, and what they leave of the throughput of the cores alone."""
    nf, size, mtbr, base = table.nf[row], table.traffic[row, 1], table.traffic[row, 2], table.base[row]
    accelerators, matches, used = models.queues.shape[1], 0.0, 0
    for at in range(accelerators):
        table.queues[row, at] = models.queues[nf, at]
        table.service[row, at] = 0.0
        if models.queues[nf, at] > 0:
            table.service[row, at] = _service_ms(models.terms[nf, at], size, mtbr)
            if models.slices[nf, at] > 0:
                table.queues[row, at] *= models.slices[nf, at] / max(table.service[row, at], 1e-12)
            matches += table.service[row, at] - _service_ms(models.terms[nf, at], size, 0.0)
            used += 1
    staged = models.pipeline[nf]
    table.match_ms[row] = 0.0 if staged or not used else matches
    rate = base if staged or not used else 1.0 / (1.0 / base + matches)
    table.modelled_solo[row] = rate
    if used:
        drops, kept = np.empty(used), 0
        for at in range(accelerators):
            if models.queues[nf, at] > 0:
                service = table.service[row, at]
                drops[kept] = drop_on_accelerator(staged, rate, service, 1.0 / max(service, 1e-12))
                kept += 1
        table.modelled_solo[row] = compose(SLOWEST_STAGE if staged else ADDED_WAITS, rate, drops)


@compile_kernel
def _service_ms(terms, size, mtbr):  # type: ignore[no-untyped-def]  # pragma: no cover - runs compiled
    """`ServiceTime` by its coefficients, in the order of `SERVICE_TERMS`."""
    total = terms[0] + terms[1] * size + terms[2] * mtbr + terms[3] * size * mtbr
    return max(total + terms[4] * max(size - HEADER_BYTES, 0.0) * mtbr, 0.0)

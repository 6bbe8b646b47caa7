"""Training of an NF on further numbers of cores, from few runs alone and beside benches."""

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np
from scipy.optimize import least_squares

from predictor.contention.core_counts import CoreScale, scale_to
from predictor.contention.correcting import Corrected, correct_members, corrections_of
from predictor.contention.equilibrium import EquilibriumModel
from predictor.contention.memory import WORKING_SET
from predictor.contention.nf_model import NfModel
from predictor.contention.solo import traffic_axes
from predictor.contention.workload_table import WorkloadTable
from predictor.regression.gaussian_process import GaussianProcess
from predictor.regression.significant import significant
from predictor.training.measurements import Measurements, NfMeasurements, Runs
from predictor.training.solo_fits import cores_alone
from profiles.arrays import Floats

FEWEST_RUNS = 3  # runs alone from which on a number of cores counts as measured
RUN_ERROR = 0.01
"""Standard deviation of the logarithm of a run around the model, by which runs weigh against what is assumed."""
SPEED_SPREAD = 0.2
"""How far the logarithm of the speed differs from one that grows with the cores: its standard deviation."""
PRESSURE_SPREAD, EXPOSURE_SPREAD = 0.5, 0.3
"""Standard deviations of the logarithms of what competitors weigh, and of the exponent of what memory leaves."""
LEAST_SPREAD = 0.005
TYPICAL_NOISE = 0.1  # variance of the runs as a share of what the speed changes with the traffic
SETTLED_BITS = 20


def fit_core_scales(model: NfModel, measured: Iterable[NfMeasurements], described: Iterable[int]) -> NfModel:
    """The model with what changes on each further number of cores, if any was measured. `model`: of the NF on its
    default number of cores. `measured`: its measurements on each further number. `described`: the numbers that it can
    be given. Those that were not measured follow from those that were."""
    if model.cores is None or model.solo is None:
        return model
    scales = {
        of_count.cores: fit_core_scale(model, of_count)
        for of_count in measured
        if of_count.cores is not None and len(of_count.alone) >= FEWEST_RUNS
    }
    if not scales:
        return model
    missing = [count for count in described if count != model.cores and count not in scales]
    scales |= {count: scale_to(count, model.cores, scales) for count in missing}
    return replace(model, core_scales=dict(sorted(scales.items())))


def fit_core_scale(model: NfModel, measured: NfMeasurements) -> CoreScale:
    """What changes where the NF has as many cores as in these measurements."""
    assert model.cores is not None and model.solo is not None and measured.cores is not None
    expected = math.log(measured.cores / model.cores)
    traffic, kpps = cores_alone(measured, model.execution)
    further = np.log(kpps / model.base_kpps(traffic)) - expected
    weight = len(further) / (len(further) + (RUN_ERROR / SPEED_SPREAD) ** 2)
    logarithm = float(significant(np.array([expected + weight * further.mean()]))[0])
    relevant = np.isin(range(3), model.solo.throughput.attributes)
    # an attribute that the throughput alone does not depend on is the same everywhere
    axes = np.where(relevant, traffic_axes(traffic), 0.0)
    left = (further - (logarithm - expected))[:, None]
    by_traffic = GaussianProcess.fit(axes, left, anchored=True, noise=TYPICAL_NOISE)
    by_traffic = replace(by_traffic, scale=np.where(relevant, by_traffic.scale, 0.0))
    errors = by_traffic.left_out(left)[:, 0]
    spread = max(float(significant(np.array([np.sqrt((errors**2).mean())]))[0]), LEAST_SPREAD)
    scale = CoreScale(measured.cores, logarithm, by_traffic, model.cores / measured.cores, 1.0, spread)
    return _fit_contention(model, scale, measured.memory[~measured.from_solo])


def _fit_contention(model: NfModel, scale: CoreScale, runs: Runs) -> CoreScale:
    """The scale with the pressure and the exposure that fit runs next to benches."""
    if not len(runs):
        return scale
    usual = math.log(scale.pressure)

    def with_parameters(parameters: Floats) -> CoreScale:
        return replace(scale, pressure=math.exp(float(parameters[0])), exposure=math.exp(float(parameters[1])))

    def errors(parameters: Floats) -> Floats:
        measured = np.log(runs.throughput / throughput_on(model, with_parameters(parameters), runs)) / RUN_ERROR
        assumed = [(parameters[0] - usual) / PRESSURE_SPREAD, parameters[1] / EXPOSURE_SPREAD]
        return np.concatenate([measured, assumed])

    bounds = ([usual - 2.0, -1.0], [usual + 2.0, 1.0])
    found = least_squares(errors, np.array([usual, 0.0]), loss="soft_l1", bounds=bounds, diff_step=[0.05, 0.05]).x
    return with_parameters(significant(found, SETTLED_BITS, of=1.0))


def throughput_on(model: NfModel, scale: CoreScale, runs: Runs) -> Floats:
    """What the model predicts of these runs on that number of cores (kpps), shape (N,)."""
    weights = np.full(runs.counters.shape[1], scale.pressure)
    weights[WORKING_SET] = 1.0
    base = model.base_kpps(runs.traffic)
    shares = model.memory_share(model.memory_runs(runs.counters * weights, runs.traffic), base)
    cores = base * scale.factor(runs.traffic) * shares**scale.exposure
    return model.execution.throughput(cores, runs.traffic, runs.service_ms, runs.rate_kpps)


# How much further predictions at loads err, by measured co-locations at random rates.


ASSUMED_ERRORS, MOST_DOUBT = 20, 4.0
"""Standardised errors of 1 that are assumed besides those that were measured; the largest factor."""
OVERLOADED = 1.02
"""Offered over predicted capacity, from which on a run shows the capacity, whichever way the prediction errs."""
LARGEST_ERROR = 6.0  # standardised errors count at most as this


def with_doubts(models: Mapping[str, NfModel], measured: Measurements) -> dict[str, NfModel]:
    """The models with how much further they err at loads, on each number of cores; unchanged without such runs."""
    known = {name: (0, *model.core_counts) for name, model in models.items()}
    loads = [run for run in measured.loads if all(workload.cores in known[workload.nf] for workload in run[0])]
    if not loads or not all(model.solo for model in models.values()):
        return dict(models)
    table = WorkloadTable(models)
    equilibrium = EquilibriumModel(table).solve([co_location for co_location, _ in loads])
    batch, corrected = equilibrium.batch, Corrected.of(equilibrium.throughput)
    corrections = corrections_of(list(models.values()), table.accelerators)
    correct_members(
        table.columns, corrections, batch.member, batch.sizes, 2, equilibrium.throughput, equilibrium.solo, True,
        corrected,
    )  # fmt: skip
    errors: dict[tuple[str, int], list[float]] = defaultdict(list)
    for at, (co_location, kpps) in enumerate(loads):
        for place, given in enumerate(batch.order[at, : batch.sizes[at]].tolist()):
            workload, predicted = co_location[given], float(corrected.throughput[at, place])
            spread = float(corrected.spread[at, place])
            if len(co_location) > 1 and spread > 0 and workload.rate_kpps > OVERLOADED * predicted:
                error = math.log(kpps[given] / predicted) / spread
                errors[workload.nf, workload.cores].append(min(abs(error), LARGEST_ERROR))
    return {name: _with_doubt(model, errors) for name, model in models.items()}


def _with_doubt(model: NfModel, errors: Mapping[tuple[str, int], Sequence[float]]) -> NfModel:
    def doubt(cores: int) -> float:
        squares = np.square(errors.get((model.name, cores), ()))
        mean = (float(squares.sum()) + ASSUMED_ERRORS) / (len(squares) + ASSUMED_ERRORS)
        return float(significant(np.array([min(max(math.sqrt(mean), 1.0), MOST_DOUBT)]))[0])

    scales = {cores: replace(scale, doubt=doubt(cores)) for cores, scale in model.core_scales.items()}
    return replace(model, core_scales=scales, doubt_at_loads=doubt(0))

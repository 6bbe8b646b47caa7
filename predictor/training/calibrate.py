"""What real co-locations add to trained models: corrections, and how far predictions err."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from predictor.contention.calibration import Calibration
from predictor.contention.conditions_of_members import LEAST_SHARE
from predictor.contention.intervals import DEGREES_OF_FREEDOM, ErrorModel, HeldOutErrors, TrafficScale, spread_of
from predictor.contention.neighbours import LEAST_NOISE, ROOT5, NeighbourCorrection, loneliness
from predictor.contention.nf_model import NfModel
from predictor.contention.solo import MeasuredAlone
from predictor.regression.significant import PARAMETER_BITS, significant
from predictor.training.co_runs import ComparedRuns, compare_next_to_benches, compare_with
from predictor.training.measurements import Measurements
from profiles import ATTRIBUTES
from profiles.arrays import Floats

ENOUGH_RUNS = 20  # runs in real co-locations from which on errors are estimated from these alone


def calibrate(models: Mapping[str, NfModel], measured: Measurements) -> dict[str, NfModel]:
    """The models with corrections, where real co-locations were measured and they help, and with error models.

    First a correction by the conditions of predictions, which helps everywhere; then, in units of the spread that is
    left, one by the NFs that share the NIC, which answers measured co-locations as measured. Without real co-locations,
    errors next to benches that were left out of training are used. Raises `InputError` when measured co-locations
    contradict the other runs beyond belief."""
    default = np.array(measured.default_traffic.as_tuple())
    scales = {name: TrafficScale.of(default, model.measured) for name, model in models.items()}
    models = {
        name: replace(model, error_model=ErrorModel.even(scales[name], np.zeros(0))) for name, model in models.items()
    }
    models = {name: replace(model, alone=_find_measured_alone(model, measured)) for name, model in models.items()}
    compared, of_benches = compare_with(measured, models), compare_next_to_benches(measured, models)
    calibrations: dict[str, Calibration | None] = {}
    held_out: dict[str, HeldOutErrors] = {}
    error_models: dict[str, ErrorModel] = {}
    for name, model in models.items():
        rows = compared.get(name)
        calibrations[name] = Calibration.fit(rows.conditions, rows.error, rows.co_location) if rows else None
        if rows and len(rows.error) >= ENOUGH_RUNS:
            distance = scales[name].distance(rows.conditions)
            held_out[name] = HeldOutErrors(_left(calibrations[name], rows), distance, rows.noise)
            continue
        of_co_runs = [_left(calibrations[name], rows)] if rows else []
        errors = [model.memory.errors, of_benches[name].error, *of_co_runs]
        error_models[name] = ErrorModel.even(scales[name], np.concatenate(errors))
    fitted = fit_error_models(held_out, scales)
    neighbours, optimism = {}, {}
    for name, errors_of in fitted.items():
        rows, calibration = compared[name], calibrations[name]
        named, spread = rows.conditions.named, errors_of.at(rows.conditions)
        # The error of each row that the calibration, which was fitted to it, leaves.
        kept = rows.error - np.log(calibration(rows.conditions)) if calibration else rows.error
        standard, noise = (kept / spread)[named], (rows.noise / spread**2)[named]
        if found := fit_neighbours(tuple(models), rows.conditions.neighbours[named], standard, noise):
            neighbours[name] = found
            optimism[name] = ((_left(calibration, rows) - kept) / spread)[named]
    error_models |= restandardise(fitted, neighbours, optimism)
    return {
        name: replace(
            model, calibration=calibrations[name], neighbours=neighbours.get(name), error_model=error_models[name]
        )
        for name, model in models.items()
    }


def _find_measured_alone(model: NfModel, measured: Measurements) -> MeasuredAlone | None:
    of_nf = measured.nfs[model.name].alone
    further = [(one.traffic.as_tuple(), runs) for one, runs in measured.alone.items() if one.nf == model.name]
    traffic = np.concatenate([of_nf.traffic, *(np.tile(at, (len(runs), 1)) for at, runs in further)])
    kpps = np.concatenate([of_nf.throughput, *(runs for _, runs in further)])
    if not len(traffic):
        return None
    return MeasuredAlone.fit(traffic, significant(np.log(kpps / model.modelled_solo_kpps(traffic)), of=1.0))


def _left(calibration: Calibration | None, rows: ComparedRuns) -> Floats:
    """The error of each row when it is left out of the correction."""
    return calibration.errors if calibration else rows.error


# Fit of error models: the spread of each NF's errors, estimated of all NFs together.


CALIBRATION_ROUNDS = 3
SPREAD_PRIOR, SLOPE_SPREAD_PRIOR, SLOPE_PRIOR = 0.5, 0.3, 1.0
"""Prior standard deviations (logarithms): of the spread and its growth between NFs, and of its growth."""


def fit_error_models(errors: Mapping[str, HeldOutErrors], scales: Mapping[str, TrafficScale]) -> dict[str, ErrorModel]:
    """The error model of each NF, with the standardised errors of all. The logarithm of the spread is linear in the
    distance. Maximum a posteriori under Student's t, with similar NFs: a hierarchical model (Gelman et al., Bayesian
    Data Analysis, chapter 5). The less of an error is noise, the more it reveals of the errors' shape, and the more it
    weighs."""
    if not errors:
        return {}
    names = list(errors)
    nf = np.repeat(np.arange(len(names)), [len(errors[name].logarithm) for name in names])
    logarithm, distance, noise = (
        np.concatenate([getattr(errors[name], part) for name in names]) for part in ("logarithm", "distance", "noise")
    )
    usual, growth = _most_likely(nf, len(names), logarithm, distance, noise)
    # a spread below the uncertainty of the noise itself cannot be distinguished from zero
    usual = np.maximum(usual, 0.25 * np.log(max(2 * float((noise**2).mean()) / len(noise), LEAST_SHARE**4)))
    spread = significant(np.exp(usual))
    variance = spread_of(usual[nf] + (growth[nf] * distance).sum(axis=1)) ** 2
    standard = significant(logarithm / np.sqrt(variance + noise), of=1.0)
    order = np.argsort(standard, kind="stable")
    weight = significant(variance / (variance + noise))
    return {
        name: ErrorModel(scales[name], float(spread[at]), growth[at], standard[order], weight[order])
        for at, name in enumerate(names)
    }


def _most_likely(
    nf: NDArray[np.intp], count: int, logarithm: Floats, distance: Floats, noise: Floats
) -> tuple[Floats, Floats]:
    """Per NF, the logarithm of the usual spread, shape (count,), and its growth, shape (count, 2). The tails of an
    error plus noise are lighter than the error's own, by the share of the variance that is noise (from fourth moments).
    That share follows from the spread, so both are found in turn."""
    squared, width = logarithm**2, distance.shape[1]
    terms = np.column_stack([np.ones(len(distance)), distance])
    apart = np.array([SPREAD_PRIOR, *[SLOPE_SPREAD_PRIOR] * width])
    common = np.array([np.inf, *[SLOPE_PRIOR] * width])
    freedom = np.full(len(squared), DEGREES_OF_FREEDOM)

    def unpack(vector: Floats) -> tuple[Floats, Floats]:
        shared, *own = vector.reshape(count + 1, width + 1)
        return shared, np.array(own)

    def variance(vector: Floats) -> Floats:
        shared, own = unpack(vector)
        return spread_of((terms * (shared + own)[nf]).sum(axis=1)) ** 2

    def cost(vector: Floats) -> tuple[float, Floats]:
        (shared, own), expected = unpack(vector), variance(vector)
        shrunk = (freedom - 2) / freedom
        scale = shrunk * (expected + noise)
        tail = 1 + squared / scale / freedom
        slope = expected * shrunk / scale * (1 - (freedom + 1) * squared / scale / freedom / tail)
        by_nf = np.column_stack([np.bincount(nf, slope * column, count) for column in terms.T])
        value = 0.5 * np.log(scale).sum() + ((freedom + 1) / 2 * np.log(tail)).sum()
        value += 0.5 * (((own / apart) ** 2).sum() + ((shared / common) ** 2).sum())
        return float(value), np.concatenate([by_nf.sum(axis=0) + shared / common**2, (by_nf + own / apart**2).ravel()])

    likely = np.zeros((count + 1) * (width + 1))
    likely[0] = 0.5 * np.log(max(float(squared.mean() - noise.mean()), 0.1 * float(squared.mean()), LEAST_SHARE**2))
    for _ in range(CALIBRATION_ROUNDS):
        likely = minimize(cost, likely, jac=True, method="L-BFGS-B").x
        share = variance(likely) / (variance(likely) + noise)
        freedom = 4 + (DEGREES_OF_FREEDOM - 4) / np.maximum(share, 0.05) ** 2
    shared, own = unpack(likely)
    found = significant(shared + own, PARAMETER_BITS, of=1.0)
    return found[:, 0], found[:, 1:]


def restandardise(
    models: Mapping[str, ErrorModel], corrections: Mapping[str, NeighbourCorrection], optimism: Mapping[str, Floats]
) -> dict[str, ErrorModel]:
    """The models with the standardised errors that the corrections leave, of all NFs together. `optimism` is by how
    much more each row errs, in usual spreads, when it is left out of the first correction, too."""
    left = [correction.left_out() for correction in corrections.values()]
    if not left:
        return dict(models)
    error, variance = (np.concatenate(parts) for parts in zip(*left, strict=True))
    error = error + np.concatenate([optimism[name] for name in corrections])
    noise = np.concatenate([correction.noise for correction in corrections.values()])
    standard = significant(error / np.sqrt(variance + noise), of=1.0)
    order = np.argsort(standard, kind="stable")
    weight = significant(variance / (variance + noise))
    return {name: replace(model, standard=standard[order], weight=weight[order]) for name, model in models.items()}


# Fit of the corrections by measured co-locations: how alike co-locations must be to err alike.


LEAST_ROWS = 20
TUNED_ON = 250
TUNING_STEPS = 40
TYPICAL_SETTINGS = {"counts": 2.0, "traffic": 0.5, "own": 0.5, "smooth": 0.5, "apart": 0.3}
"""Typical lengths, and variances in squared spreads."""
SETTING_SPREADS = {"counts": 0.2, "traffic": 0.5, "own": 0.5, "smooth": 0.5, "apart": 0.5}
"""How far they are from that between NFs and NICs (standard deviation of the natural logarithm). Looser priors fit a
few dozen co-locations too closely: of throughputs that 5 % may fall short of, 9 % then did on fresh co-locations."""
SETTING_BOUND = 4.0  # largest distance from typical values (natural logarithm)


def fit_neighbours(names: Sequence[str], inputs: Floats, errors: Floats, noise: Floats) -> NeighbourCorrection | None:
    """The most likely correction under a prior around typical lengths and variances; None for too few co-locations.
    `names`: the NFs that are counted. `inputs`, `errors`, `noise`: as of `NeighbourCorrection`, shapes (N, 4 * NFs +
    3), (N,) and (N,)."""
    if len(errors) < LEAST_ROWS:
        return None
    errors, noise = significant(errors, of=1.0), significant(noise)
    every = -(-len(errors) // TUNED_ON)
    found = _most_likely_lengths(len(names), inputs[::every], errors[::every], noise[::every])
    counts, (traffic, own, smooth, apart) = found[: len(names)], found[len(names) :]
    width = len(ATTRIBUTES)
    lengths = np.concatenate([counts, np.full(width * len(names), traffic), np.full(width, own)])
    return NeighbourCorrection(tuple(names), lengths, float(smooth), float(apart), inputs, errors, noise)


def _most_likely_lengths(nfs: int, inputs: Floats, errors: Floats, noise: Floats) -> Floats:
    """Lengths of counts, traffic and own traffic, then both variances, shape (NFs + 4,)."""
    from scipy.linalg import LinAlgError, cho_factor, cho_solve
    from scipy.optimize import minimize

    apart = _apart(nfs, inputs)
    same = (np.add.reduce(apart) < 1e-12) * loneliness(inputs)[:, None]
    moving = [at for at, squared in enumerate(apart) if squared.any()]
    typical = np.log(
        [
            *[TYPICAL_SETTINGS["counts"]] * nfs,
            TYPICAL_SETTINGS["traffic"],
            TYPICAL_SETTINGS["own"],
            TYPICAL_SETTINGS["smooth"],
            TYPICAL_SETTINGS["apart"],
        ]
    )
    spread = np.array(
        [*[SETTING_SPREADS["counts"]] * nfs, *(SETTING_SPREADS[name] for name in ("traffic", "own", "smooth", "apart"))]
    )
    free = [*moving, nfs + 2, nfs + 3]

    def cost(changed: Floats) -> tuple[float, Floats]:
        logarithms = typical.copy()
        logarithms[free] += changed
        lengths, (smooth, own) = np.exp(logarithms[: nfs + 2]), np.exp(logarithms[nfs + 2 :])
        scaled = [apart[at] / lengths[at] ** 2 for at in moving]
        distance = ROOT5 * np.sqrt(np.add.reduce(scaled)) if scaled else np.zeros_like(same)
        decay = np.exp(-distance)
        like = (1 + distance * (1 + distance / 3)) * decay
        covariance = smooth * like + own * same
        covariance[np.diag_indices(len(errors))] += np.maximum(noise, LEAST_NOISE)
        try:
            factor = cho_factor(covariance, lower=True)
        except LinAlgError:
            return 1e12, np.zeros(len(changed))
        solved = cho_solve(factor, errors)
        pull = cho_solve(factor, np.eye(len(errors))) - np.outer(solved, solved)
        value = float(np.log(np.diag(factor[0])).sum() + 0.5 * errors @ solved)
        slope = pull * (smooth * 5 / 3 * (1 + distance) * decay)
        gradient = [0.5 * float((slope * squared).sum()) for squared in scaled]
        gradient += [0.5 * smooth * float((pull * like).sum()), 0.5 * own * float((pull * same).sum())]
        away = changed / spread[free]
        return value + 0.5 * float((away**2).sum()), np.array(gradient) + away / spread[free]

    bounds = [(-SETTING_BOUND, SETTING_BOUND)] * len(free)
    start = np.zeros(len(free))
    found = minimize(cost, start, jac=True, bounds=bounds, method="L-BFGS-B", options={"maxiter": TUNING_STEPS}).x
    typical[free] += found
    return significant(np.exp(typical), PARAMETER_BITS)


def _apart(nfs: int, inputs: Floats) -> list[Floats]:
    """Squared distances between rows: per counted NF, of the neighbours' traffic, and of the own traffic."""
    width = len(ATTRIBUTES)
    counts, traffic, own = np.split(inputs, [nfs, nfs + nfs * width], axis=1)
    parts = [*(counts[:, at : at + 1] for at in range(nfs)), traffic, own]
    return [((part[:, None, :] - part[None, :, :]) ** 2).sum(axis=2) for part in parts]

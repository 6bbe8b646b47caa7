"""Fit of error models: the spread of each NF's errors, estimated of all NFs together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from predictor.contention.intervals import FREEDOM, LEAST, ErrorModel, HeldOutErrors, TrafficScale, spread_of
from predictor.contention.neighbours import NeighbourCorrection
from predictor.regression.significant import PARAMETER_BITS, significant

Array = NDArray[np.float64]

ROUNDS = 3
APART, SLOPES_APART, SLOPE = 0.5, 0.3, 1.0
"""Prior standard deviations (logarithms): of the spread and its growth between NFs, and of its growth."""


def fit_error_models(errors: Mapping[str, HeldOutErrors], scales: Mapping[str, TrafficScale]) -> dict[str, ErrorModel]:
    """The error model of each NF, with the standardised errors of all.

    The logarithm of the spread is linear in the distance. Maximum a posteriori under Student's t, with similar NFs: a
    hierarchical model (Gelman et al., Bayesian Data Analysis, chapter 5). The less of an error is noise, the more it
    reveals of the errors' shape, and the more it weighs.
    """
    if not errors:
        return {}
    names = list(errors)
    nf = np.repeat(np.arange(len(names)), [len(errors[name].logarithm) for name in names])
    logarithm, distance, noise = (
        np.concatenate([getattr(errors[name], part) for name in names]) for part in ("logarithm", "distance", "noise")
    )
    usual, growth = _most_likely(nf, len(names), logarithm, distance, noise)
    # a spread below the uncertainty of the noise itself cannot be distinguished from zero
    usual = np.maximum(usual, 0.25 * np.log(max(2 * float((noise**2).mean()) / len(noise), LEAST**4)))
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
    nf: NDArray[np.intp], count: int, logarithm: Array, distance: Array, noise: Array
) -> tuple[Array, Array]:
    """Per NF, the logarithm of the usual spread, shape (count,), and its growth, shape (count, 2).

    The tails of an error plus noise are lighter than the error's own, by the share of the variance that is noise (from
    fourth moments). That share follows from the spread, so both are found in turn.
    """
    squared, width = logarithm**2, distance.shape[1]
    terms = np.column_stack([np.ones(len(distance)), distance])
    apart = np.array([APART, *[SLOPES_APART] * width])
    common = np.array([np.inf, *[SLOPE] * width])
    freedom = np.full(len(squared), FREEDOM)

    def unpack(vector: Array) -> tuple[Array, Array]:
        shared, *own = vector.reshape(count + 1, width + 1)
        return shared, np.array(own)

    def variance(vector: Array) -> Array:
        shared, own = unpack(vector)
        return spread_of((terms * (shared + own)[nf]).sum(axis=1)) ** 2

    def cost(vector: Array) -> tuple[float, Array]:
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
    likely[0] = 0.5 * np.log(max(float(squared.mean() - noise.mean()), 0.1 * float(squared.mean()), LEAST**2))
    for _ in range(ROUNDS):
        likely = minimize(cost, likely, jac=True, method="L-BFGS-B").x
        share = variance(likely) / (variance(likely) + noise)
        freedom = 4 + (FREEDOM - 4) / np.maximum(share, 0.05) ** 2
    shared, own = unpack(likely)
    found = significant(shared + own, PARAMETER_BITS, of=1.0)
    return found[:, 0], found[:, 1:]


def restandardised(
    models: Mapping[str, ErrorModel], corrections: Mapping[str, NeighbourCorrection], optimism: Mapping[str, Array]
) -> dict[str, ErrorModel]:
    """The models with the standardised errors that the corrections leave, of all NFs together.

    `optimism` is by how much more each row errs, in usual spreads, when it is left out of the first correction, too.
    """
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

"""Fit of the corrections by measured co-locations: how alike co-locations must be to err alike."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from predictor.contention.neighbours import LEAST_NOISE, ROOT5, NeighbourCorrection, loneliness
from predictor.regression.significant import PARAMETER_BITS, significant
from profiles import ATTRIBUTES

Array = NDArray[np.float64]

LEAST_ROWS = 20
TUNED_ON = 250
ITERATIONS = 40
TYPICAL = {"counts": 2.0, "traffic": 0.5, "own": 0.5, "smooth": 0.5, "apart": 0.3}
"""Typical lengths, and variances in squared spreads."""
SPREAD = {"counts": 0.2, "traffic": 0.5, "own": 0.5, "smooth": 0.5, "apart": 0.5}
"""How far they are from that between NFs and NICs (standard deviation of the natural logarithm).

Looser priors fit a few dozen co-locations too closely: of throughputs that 5 % may fall short of, 9 % then did on fresh
co-locations.
"""
BOUND = 4.0
"""Largest distance from typical values (natural logarithm)."""


def fit_neighbours(names: Sequence[str], inputs: Array, errors: Array, noise: Array) -> NeighbourCorrection | None:
    """The most likely correction under a prior around typical lengths and variances; None for too few co-locations.

    Parameters
    ----------
    names
        The NFs that are counted.
    inputs, errors, noise
        As of `NeighbourCorrection`, shapes (N, 4 * NFs + 3), (N,) and (N,).
    """
    if len(errors) < LEAST_ROWS:
        return None
    errors, noise = significant(errors, of=1.0), significant(noise)
    every = -(-len(errors) // TUNED_ON)
    found = _most_likely(len(names), inputs[::every], errors[::every], noise[::every])
    counts, (traffic, own, smooth, apart) = found[: len(names)], found[len(names) :]
    width = len(ATTRIBUTES)
    lengths = np.concatenate([counts, np.full(width * len(names), traffic), np.full(width, own)])
    return NeighbourCorrection(tuple(names), lengths, float(smooth), float(apart), inputs, errors, noise)


def _most_likely(nfs: int, inputs: Array, errors: Array, noise: Array) -> Array:
    """Lengths of counts, traffic and own traffic, then both variances, shape (NFs + 4,)."""
    from scipy.linalg import LinAlgError, cho_factor, cho_solve
    from scipy.optimize import minimize

    apart = _apart(nfs, inputs)
    same = (np.add.reduce(apart) < 1e-12) * loneliness(inputs)[:, None]
    moving = [at for at, squared in enumerate(apart) if squared.any()]
    typical = np.log(
        [*[TYPICAL["counts"]] * nfs, TYPICAL["traffic"], TYPICAL["own"], TYPICAL["smooth"], TYPICAL["apart"]]
    )
    spread = np.array([*[SPREAD["counts"]] * nfs, *(SPREAD[name] for name in ("traffic", "own", "smooth", "apart"))])
    free = [*moving, nfs + 2, nfs + 3]

    def cost(changed: Array) -> tuple[float, Array]:
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

    bounds = [(-BOUND, BOUND)] * len(free)
    start = np.zeros(len(free))
    found = minimize(cost, start, jac=True, bounds=bounds, method="L-BFGS-B", options={"maxiter": ITERATIONS}).x
    typical[free] += found
    return significant(np.exp(typical), PARAMETER_BITS)


def _apart(nfs: int, inputs: Array) -> list[Array]:
    """Squared distances between rows: per counted NF, of the neighbours' traffic, and of the own traffic."""
    width = len(ATTRIBUTES)
    counts, traffic, own = np.split(inputs, [nfs, nfs + nfs * width], axis=1)
    parts = [*(counts[:, at : at + 1] for at in range(nfs)), traffic, own]
    return [((part[:, None, :] - part[None, :, :]) ** 2).sum(axis=2) for part in parts]

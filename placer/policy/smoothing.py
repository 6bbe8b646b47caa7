"""How far frequencies are smoothed: as much as they do not differ by more than chance.

Frequencies of few arrivals are mostly chance. They are drawn towards what is expected of all alike, by a
Dirichlet-multinomial model whose concentration, in arrivals, is averaged over its likelihood (empirical Bayes: Good,
"The Estimation of Probabilities", 1965). Where the groups are alike, the expectation soon outweighs what was counted;
where they differ, what was counted does.
"""

from __future__ import annotations

import numpy as np
from scipy.special import gammaln

from placer.policy.kernels import Floats
from predictor.regression.significant import significant

CONCENTRATIONS = 2.0 ** np.arange(-1, 11)
"""Arrivals that an expectation may be worth, per cell of a group."""


def smoothed(counts: Floats, expected: Floats) -> tuple[Floats, float]:
    """Probabilities of the cells of each group, shape (groups, cells), and how many arrivals the expectation is worth.

    Parameters
    ----------
    counts
        Arrivals by group and cell, shape (groups, cells).
    expected
        Probabilities of the cells that are expected of every group, shape (cells,).
    """
    cells, total = counts.shape[1], counts.sum(axis=1)
    concentration = CONCENTRATIONS * cells
    prior = concentration[:, None] * expected
    likelihood = (gammaln(concentration)[:, None] - gammaln(concentration[:, None] + total)).sum(axis=1) + (
        gammaln(prior[:, None, :] + counts) - gammaln(prior)[:, None, :]
    ).sum(axis=(1, 2))
    weight = np.exp(likelihood - likelihood.max())
    weight /= weight.sum()
    each = (counts + prior[:, None, :]) / (total[:, None] + concentration[:, None, None])
    # rounded, because levels of SLAs hang on comparisons, and processors differ in the last digits
    probabilities = significant((weight[:, None, None] * each).sum(axis=0), of=1.0)
    worth = significant(np.exp((weight * np.log(concentration)).sum()))
    return probabilities / probabilities.sum(axis=1, keepdims=True), float(worth)

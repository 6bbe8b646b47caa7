"""Flattened trees compared with scikit-learn's `predict`, row by row and as a batch, on the same ensembles."""

from functools import partial

import numpy as np
import pandas as pd
from sklearn.ensemble import GradientBoostingRegressor

from benches.bench import cost, register
from predictor.regression.boosting import Stages, Trees

SIZES = (1_000, 10_000, 100_000)
ENSEMBLES, FEATURES, TRAINED_ON = 3, 10, 400
ONE_BY_ONE = 200


@register("trees")
def run() -> pd.DataFrame:
    """Per batch size: times (ms), ratios, peak memory (MB), and the largest difference between the predictions."""
    rng = np.random.default_rng(0)
    features = rng.normal(size=(TRAINED_ON, FEATURES))
    target = np.sin(features[:, 0]) + features[:, 1] * features[:, 2] + (features[:, 3] > 0)
    models = [
        GradientBoostingRegressor(subsample=0.7, random_state=at).fit(features, target) for at in range(ENSEMBLES)
    ]
    trees = Trees.of([_stages(model) for model in models])

    def by_scikit_learn(rows: np.ndarray) -> np.ndarray:
        mean: np.ndarray = np.mean([model.predict(rows) for model in models], axis=0)
        return mean

    def one_by_one(rows: np.ndarray) -> list[np.ndarray]:
        return [by_scikit_learn(rows[at : at + 1]) for at in range(len(rows))]

    table = []
    for size in SIZES:
        rows = rng.normal(size=(size, FEATURES))
        some = rows[:ONE_BY_ONE]
        ours, batch = cost(partial(trees.predict, rows)), cost(partial(by_scikit_learn, rows), 3)
        row_by_row = cost(partial(one_by_one, some), 1).seconds * size / len(some)
        table.append(
            {
                "rows": size,
                "ours_ms": round(1e3 * ours.seconds, 3),
                "sklearn_batch_ms": round(1e3 * batch.seconds, 2),
                "times_faster": round(batch.seconds / ours.seconds, 1),
                "sklearn_row_by_row_ms": round(1e3 * row_by_row),
                "times_faster_than_row_by_row": round(row_by_row / ours.seconds),
                "ours_ns_per_row": round(1e9 * ours.seconds / size),
                "ours_peak_mb": round(ours.peak_mb, 1),
                "sklearn_peak_mb": round(batch.peak_mb, 1),
                "largest_difference": float(np.abs(trees.predict(rows) - by_scikit_learn(rows)).max()),
            }
        )
    return pd.DataFrame(table)


def _stages(model: GradientBoostingRegressor) -> Stages:
    """What scikit-learn fitted, as our stages."""
    base = float(np.ravel(model.init_.constant_)[0])
    return Stages(base, [tree.tree_ for tree in model.estimators_[:, 0]], model.n_features_in_)

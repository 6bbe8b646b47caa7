"""What scikit-learn's gradient boosting fitted, as our stages."""

from __future__ import annotations

import numpy as np
from sklearn.ensemble import GradientBoostingRegressor

from predictor.regression.boosting import Stages


def stages_of(model: GradientBoostingRegressor) -> Stages:
    """The stages of a fitted model (squared loss, learning rate 0.1, constant start)."""
    base = float(np.ravel(model.init_.constant_)[0])
    return Stages(base, [tree.tree_ for tree in model.estimators_[:, 0]], model.n_features_in_)

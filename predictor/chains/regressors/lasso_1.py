"""Lasso on the polynomial expansion of degree 1 (van Rossem et al., section 3.3, "Lasso")."""

from predictor.chains.regressor import REGRESSORS, Polynomial


@REGRESSORS.register("lasso-1")
class Lasso1(Polynomial):
    """A polynomial of degree 1; few terms differ from zero."""

    degree = 1

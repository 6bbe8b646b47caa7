"""Lasso on the polynomial expansion of degree 3 (van Rossem et al., section 3.3, "Lasso")."""

from predictor.chains.regressor import REGRESSORS, Polynomial


@REGRESSORS.register("lasso-3")
class Lasso3(Polynomial):
    """A polynomial of degree 3; few terms differ from zero."""

    degree = 3

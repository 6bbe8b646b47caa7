"""Lasso on the polynomial expansion of degree 2 (van Rossem et al., section 3.3, "Lasso")."""

from predictor.chains.regressor import REGRESSORS, Polynomial


@REGRESSORS.register("lasso-2")
class Lasso2(Polynomial):
    """A polynomial of degree 2; few terms differ from zero."""

    degree = 2

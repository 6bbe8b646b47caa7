"""Elastic Net on the polynomial expansion of degree 3 (van Rossem et al., section 3.3, "Elastic Net")."""

from typing import Any

from predictor.chains.regressor import REGRESSORS, Polynomial

STRENGTH_FOLDS = 3  # of the cross-validation that chooses the strength


@REGRESSORS.register("elastic-net-3")
class ElasticNet3(Polynomial):
    """A polynomial of degree 3 with small coefficients; more terms differ from zero than with Lasso."""

    degree = 3

    def linear_model(self, noise_variance: float) -> Any:
        from sklearn.linear_model import ElasticNetCV

        return ElasticNetCV(cv=STRENGTH_FOLDS, alphas=20, max_iter=2000, tol=1e-3)

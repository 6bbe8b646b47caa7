"""The conformance kit: what every strategy, predictor, testbed and constraint must do.

    from placer.testing import check_strategy

    def test_my_strategy() -> None:
        check_strategy(MyStrategy)

Each check raises AssertionError with the first fact that does not hold. This project's own are held to the same."""

from placer.testing.constraints import check_constraint
from placer.testing.predictors import check_predictor
from placer.testing.strategies import check_strategy
from placer.testing.testbeds import check_testbed

__all__ = ["check_constraint", "check_predictor", "check_strategy", "check_testbed"]

"""Models that several tests look at."""

from __future__ import annotations

import pytest

from predictor import Models, train
from tests.predictor.made_up import CRYPTO, LOOKUP, PLAIN, profile


@pytest.fixture(scope="session")
def models() -> Models:
    """Models of three made-up NFs: no accelerator, a pipeline, and run-to-completion."""
    return train(profile([PLAIN, CRYPTO, LOOKUP]))

"""Models that several tests look at."""

from pathlib import Path

import pytest

from predictor import Models, load_models


@pytest.fixture(scope="session")
def models(made_up_models: Path) -> Models:
    """Models of three made-up NFs: no accelerator, a pipeline, and run-to-completion."""
    return load_models(made_up_models)

"""Real measurements: trained on one set of files, judged on another."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from predictor import train
from profiles.profile import read_profile
from profiles.table import read_table

FLOWMON = Path(__file__).parents[2] / ".." / "shared" / "data" / "flowmon-bf2"


@pytest.mark.skipif(not FLOWMON.is_dir(), reason="the BlueField-2 measurements are not beside the repository")
def test_flowmonitor_on_a_real_card_within_step_one_bar() -> None:
    """FlowMonitor beside memory and regex benches on a real BlueField-2 is predicted within 4.6 % on average."""
    models = train(read_profile(FLOWMON))
    runs, faults = read_table(FLOWMON / "validation.csv", [])
    assert not faults
    predicted = models.predictors["tomur"].predict_contention("FlowMonitor", runs)
    assert 100 * np.mean(np.abs(predicted / runs["throughput_kpps"] - 1)) <= 4.6

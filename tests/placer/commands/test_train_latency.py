"""`placer train` on a profile with latency.csv."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tests.placer.commands.conftest import Placer

RECORDED = Path(__file__).parents[3] / "traces" / "server-simulated"


@pytest.fixture
def profile(tmp_path: Path) -> Path:
    """The recorded profile of one NF."""
    folder = tmp_path / "profile"
    shutil.copytree(RECORDED / "Tunnel", folder / "Tunnel")
    for file in ("testbed.json", "benches.csv"):
        shutil.copy2(RECORDED / file, folder / file)
    return folder


def test_latency_is_trained_with_all_else(profile: Path, tmp_path: Path, placer: Placer) -> None:
    """Its errors are on stderr, and its model in a file of its own; the same command, the same bytes."""
    status, out, err = placer("train", profile, "--out", tmp_path / "m", "--predictor", "slomo")
    assert (status, out) == (0, "")
    assert "trained the latency of Tunnel: at left-out settings, the error of the mean is" in err
    found = json.loads((tmp_path / "m" / "latency" / "Tunnel.json").read_text())
    assert found["latency"] == 1 and found["settings"] == 8 and found["utilisation"] == pytest.approx([0.1, 0.95], 1e-3)
    placer("train", profile, "--out", tmp_path / "again", "--predictor", "slomo")
    for name in ("Tunnel.json", "shared.npz"):
        one, other = ((tmp_path / folder / "latency" / name).read_bytes() for folder in ("m", "again"))
        assert one == other


def test_a_fitted_curve_of_the_user_is_not_replaced(profile: Path, tmp_path: Path, placer: Placer) -> None:
    """Which of two would count is not known."""
    latency = (profile / "Tunnel" / "latency.csv").rename(tmp_path / "latency.csv")
    train = ("train", profile, "--out", tmp_path / "m", "--predictor", "slomo")
    assert placer(*train).status == 0
    (tmp_path / "m" / "latency").mkdir()
    (tmp_path / "m" / "latency" / "Tunnel.json").write_text('{"fit": 1}')
    assert placer(*train).status == 0
    latency.rename(profile / "Tunnel" / "latency.csv")
    status, _, err = placer(*train)
    assert status == 2
    assert "latency/Tunnel.json: is a fitted curve, and the latency of Tunnel would be trained" in err
    assert (tmp_path / "m" / "latency" / "Tunnel.json").read_text() == '{"fit": 1}'

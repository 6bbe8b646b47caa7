"""`placer predict` and `placer train`: what is refused, what is predicted with a warning, and names that miss."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from placer.cli import main
from predictor import Models, train
from tests.predictor.made_up import CRYPTO, PLAIN, profile

Command = Callable[..., tuple[int, str, str]]


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Saved models of two NFs of one core each, on a NIC of six."""
    path = tmp_path_factory.mktemp("predict") / "models"
    train(profile([PLAIN, CRYPTO])).save(path)
    return path


@pytest.fixture
def placer(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    """Runs `placer` in this process: exit status, stdout, stderr."""

    def run(*arguments: object) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["placer", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            main()
        printed = capsys.readouterr()
        return int(ended.value.code or 0), printed.out, printed.err

    return run


def _scenario(path: Path, name: str, count: int) -> Path:
    path.write_text(json.dumps({"workloads": [{"name": name}] * count}) + "\n", encoding="utf-8")
    return path


def test_more_nfs_than_cores_are_refused_or_predicted_with_a_warning(
    placer: Command, models: Path, tmp_path: Path
) -> None:
    """A hundred NFs on six cores."""
    predict = ("predict", "--models", models, "--scenarios", _scenario(tmp_path / "s.jsonl", PLAIN.name, 100))
    status, out, err = placer(*predict)
    assert (status, out) == (2, "")
    assert "s.jsonl:1: workloads: 100 NFs take 100 cores, a made-up has 6\nhint: --extrapolate" in err
    status, out, err = placer(*predict, "--extrapolate")
    assert status == 0 and len(json.loads(out)["throughput_kpps"]) == 100
    assert "too few cores for the co-locations of these lines: 1" in err


def test_a_name_in_the_wrong_case_is_answered_with_the_right_one(placer: Command, models: Path, tmp_path: Path) -> None:
    """Of an NF and of a predictor."""
    predict = ("predict", "--models", models, "--scenarios", _scenario(tmp_path / "s.jsonl", "Plain", 1))
    status, _, err = placer(*predict)
    assert status == 2 and "nf: 'Plain' is not profiled, did you mean plain?" in err
    status, _, err = placer(*predict, "--predictor", "Tomur")
    assert status == 2 and "--predictor: 'Tomur' is not in the models\nhint: did you mean tomur?" in err
    status, _, err = placer("train", tmp_path, "--out", tmp_path / "out", "--predictor", "slow")
    assert status == 2 and "--predictor: 'slow' is not a predictor" in err


def test_a_risk_below_the_measured_errors_is_predicted_and_warned_of(models: Path) -> None:
    """A thousandth of a percent: throughputs stay well above 0, and a sentence is there for stderr."""
    from predictor import load_models
    from profiles import Workload

    loaded: Models = load_models(models)
    tomur, slomo = loaded.predictors["tomur"], loaded.predictors["slomo"]
    co_location = [Workload(PLAIN.name, loaded.default_traffic), Workload(CRYPTO.name, loaded.default_traffic)]
    median, wary = tomur.throughput([co_location])[0], tomur.throughput([co_location], risk=1e-5)[0]
    assert (wary < median).all() and (wary > median / 3.01).all()
    assert "smallest for which errors were measured" in str(tomur.risk_warning(1e-5))
    assert tomur.risk_warning(0.5) is None and slomo.risk_warning(1e-5) is None

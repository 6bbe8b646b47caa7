"""Where models come from."""

import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from placer.inputs import models
from placer.inputs.solo_fits import read_solo_fits
from predictor.fitting.fitted_model import FittedModel
from predictor.fitting.model_file import models_text
from predictor.training.solo_fits import OWN_RUNS
from profiles import InputError
from profiles.profile import Profile
from tests.predictor.fitting.made_up_models import made_up
from tests.predictor.made_up import CRYPTO, PLAIN, profile


def test_recorded_models_are_trained_once_whoever_asks(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Two that find none train them one after the other, and the second finds those of the first."""
    trained: list[object] = []

    class Trained:
        """Models that take a while to train."""

        def save(self, folder: Path) -> None:
            folder.mkdir()

    def train(profile: object) -> Trained:
        trained.append(profile)
        time.sleep(0.2)
        return Trained()

    def load(folder: Path) -> Path:
        if not folder.exists():
            raise InputError.of(str(folder), "is missing")
        return folder

    monkeypatch.setattr(models, "train", train)
    monkeypatch.setattr(models, "load_models", load)
    monkeypatch.setattr("platformdirs.user_cache_path", lambda name: tmp_path / "cache" / name)
    with ThreadPoolExecutor(3) as three:
        loaded = list(three.map(lambda _: models.open_models(None, lambda message: None), range(3)))
    assert len(trained) == 1 and len(loaded) == 3


CURVE = made_up((1.0, 50000.0), ("constant", (900.0,)), x="flows", y="throughput_kpps")
FAR_AWAY = made_up((1e6, 2e6), ("constant", (900.0,)), x="flows", y="throughput_kpps")
BELOW_ZERO = made_up((1.0, 50000.0), ("linear", (900.0, -1.0)), x="flows", y="throughput_kpps")
OTHER = replace(CURVE, setting={"packet_size": 64.0})
AT_DEFAULT = replace(CURVE, setting={"packet_size": 1500.0})


@pytest.fixture(scope="module")
def measured() -> Profile:
    """One NF without accelerators and one with."""
    return profile([PLAIN, CRYPTO])


def written(folder: Path, *models: FittedModel) -> str:
    """The file of these models."""
    path = folder / "model.json"
    path.write_text(models_text(models))
    return str(path)


def test_a_model_is_read(measured: Profile, tmp_path: Path) -> None:
    """By NF; of a table of fits, the one at default traffic."""
    assert read_solo_fits([f"plain={written(tmp_path, CURVE)}"], measured) == {"plain": CURVE}
    assert read_solo_fits([f"plain={written(tmp_path, OTHER, AT_DEFAULT)}"], measured) == {"plain": AT_DEFAULT}


def test_an_nf_without_a_file_is_fitted_to_its_own_runs(measured: Profile) -> None:
    assert read_solo_fits(["plain"], measured) == {"plain": OWN_RUNS}


@pytest.mark.parametrize(
    ("options", "curve", "message"),
    [
        # before any file is read
        (["plain="], CURVE, "'plain=' is neither NF=MODEL.json nor NF"),
        (["=model.json"], CURVE, "'=model.json' is neither NF=MODEL.json nor NF"),
        (["Plain=model.json"], CURVE, "'Plain' is not profiled (did you mean plain?)"),
        (["plain=a.json", "plain=b.json"], CURVE, "plain is given twice"),
        # with the file and the key
        (["plain=FILE"], replace(CURVE, x="entries"), "x: is 'entries', not one of flows, packet_size, mtbr"),
        (["plain=FILE"], replace(CURVE, y="cycles"), "y: is 'cycles', not throughput_kpps"),
        (["plain=FILE"], OTHER, "setting: has no model at default traffic (packet_size 1500, mtbr 600)"),
        (["plain=FILE"], FAR_AWAY, "flows from 1e+06 to 2e+06 does not overlap what the profile has of plain"),
        (["plain=FILE"], BELOW_ZERO, "y: is not above 0 everywhere from 1 to 50000"),
        # their effect is the accelerator's, which has its own model
        (["crypto-pipeline=FILE"], replace(CURVE, x="mtbr"), "uses crypto, whose model has the effect of matches"),
    ],
    ids=["no file", "no NF", "case", "twice", "x", "y", "setting", "range", "below zero", "matches"],
)
def test_what_does_not_match_the_profile_is_refused(
    measured: Profile, tmp_path: Path, options: list[str], curve: FittedModel, message: str
) -> None:
    file = written(tmp_path, curve)
    with pytest.raises(InputError) as raised:
        read_solo_fits([option.replace("FILE", file) for option in options], measured)
    assert message in str(raised.value)

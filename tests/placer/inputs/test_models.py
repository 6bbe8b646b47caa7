"""Where models come from."""

import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from placer.inputs import models
from profiles import InputError


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

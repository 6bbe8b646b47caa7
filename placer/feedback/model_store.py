"""Versions of models on disk, beside the state of their fleet: FILE.models/NUMBER/NIC-MODEL."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from urllib.parse import quote

from predictor import Predictor, load_models
from profiles import InputError

TRAINING = "training-"
"""How folders begin in which models are made."""


class ModelStore:
    """The folder of versions.

    Parameters
    ----------
    folder
        Is made when the first version is kept.
    predictor
        The name of the predictor that decides.
    """

    def __init__(self, folder: Path, predictor: str) -> None:
        self.folder = folder
        self.predictor = predictor

    @classmethod
    def beside(cls, state: Path, predictor: str) -> ModelStore:
        """That of a state file."""
        return cls(state.with_name(f"{state.name}.models"), predictor)

    def training_folder(self) -> Path:
        """A new folder to make models in; what earlier processes left there is removed."""
        for old in self.folder.glob(f"{TRAINING}*"):
            shutil.rmtree(old, ignore_errors=True)
        made = self.folder / f"{TRAINING}{os.getpid()}"
        made.mkdir(parents=True, exist_ok=True)
        return made

    def keep(self, trained: Mapping[str, Path], number: int) -> None:
        """Keep trained models, by NIC model, as a version."""
        place = self.folder / str(number)
        shutil.rmtree(place, ignore_errors=True)  # of a process that was killed before it recorded the version
        place.mkdir(parents=True)
        for nic_model, folder in trained.items():
            folder.rename(place / quote(nic_model, safe=""))

    def predictors(self, number: int, nic_models: Sequence[str]) -> dict[str, Predictor]:
        """The predictors of a version, by NIC model, as far as it was retrained.

        Raises
        ------
        InputError
            When the version is missing or damaged.
        """
        place = self.folder / str(number)
        if not place.is_dir():
            hint = "restore it together with the state, or begin a new one"
            raise InputError.of(str(place), f"is missing: version {number} of the models", hint=hint)
        found = {}
        for nic_model in nic_models:
            folder = place / quote(nic_model, safe="")
            if folder.is_dir():
                found[nic_model] = load_models(folder).predictors[self.predictor]
        return found

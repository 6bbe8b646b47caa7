"""Versions of models in the database, beside the state: every agent loads those that decide."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

from placer.fleet.learning.versions import ModelStore
from predictor import Predictor

Ask = Callable[..., list[tuple[Any, ...]]]


class SharedModelStore(ModelStore):
    """Versions in a table, a row per file.

    `folder`: of copies on this machine.
    """

    def __init__(self, folder: Path, predictor: str, ask: Ask) -> None:
        super().__init__(folder, predictor)
        self._ask = ask

    def keep(self, trained: Mapping[str, Path], number: int) -> None:
        """As of `ModelStore`; all files of a version at once."""
        super().keep(trained, number)
        place = self.folder / str(number)
        rows = [
            (number, nic_model, path.relative_to(place / quote(nic_model, safe="")).as_posix(), path.read_bytes())
            for nic_model in trained
            for path in sorted((place / quote(nic_model, safe="")).rglob("*"))
            if path.is_file()
        ]
        marks = ", ".join(["(%s, %s, %s, %s)"] * len(rows))
        self._ask(
            f"INSERT INTO model_files VALUES {marks} ON CONFLICT (version, nic_model, path) "  # marks alone # noqa: S608
            "DO UPDATE SET content = excluded.content",
            *(value for row in rows for value in row),
        )  # fmt: skip

    def predictors(self, number: int, nic_models: Sequence[str]) -> dict[str, Predictor]:
        if not (self.folder / str(number)).is_dir():
            self.fetch(number)
        return super().predictors(number, nic_models)

    def fetch(self, number: int) -> None:
        """Copy a version to this machine; nothing where there is no such version."""
        query = "SELECT nic_model, path, content FROM model_files WHERE version = %s"
        for nic_model, path, content in self._ask(query, number):
            file = self.folder / str(number) / quote(nic_model, safe="") / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content)

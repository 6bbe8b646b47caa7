"""What happens to the models of a fleet besides measurements: a retrained version comes, or an operator asks for one.

Every action takes effect with a measurement, and is recorded with its event: the same events and actions lead to the
same versions, placements and evidence.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Protocol

from placer.fleet.learning.corrections import Estimate
from predictor import Predictor
from profiles import CoLocation


class ActionKind(StrEnum):
    CANARY = "canary"
    FREEZE = "freeze"
    UNFREEZE = "unfreeze"
    ROLL_BACK = "roll-back"


@dataclass(frozen=True, slots=True)
class ModelAction:
    """An action.

    `version`: the version that comes, or that is gone back to. `trained_at`: the event up to which a version that comes
    was trained with readings. `asked`: the name of the row by which an operator asked for it.
    """

    kind: ActionKind
    version: int | None = None
    trained_at: int = 0
    asked: str | None = None

    def as_dict(self, event: int) -> dict[str, Any]:
        """As it is recorded."""
        return {"kind": self.kind.value, "version": self.version, "trained_at": self.trained_at, "event": event}

    @classmethod
    def of(cls, recorded: Mapping[str, Any], asked: str | None = None) -> ModelAction:
        """What was recorded, or asked for."""
        return cls(ActionKind(recorded["kind"]), recorded.get("version"), recorded.get("trained_at") or 0, asked)


@dataclass(frozen=True)
class RetrainedModel:
    """A model of a NIC model, and what it estimates of co-locations as far as that was computed in advance."""

    predictor: Predictor
    estimates: Mapping[CoLocation, tuple[Estimate, ...]] = field(default_factory=dict)


class Actions(Protocol):
    """Where actions come from."""

    def due(self, event: int) -> Sequence[ModelAction]:
        """Those that take effect with this event."""

    def models(self, version: int) -> Mapping[str, RetrainedModel]:
        """The models of a version that came, by NIC model; those that are missing stay as they are."""


class NoActions:
    """Nothing but measurements."""

    def due(self, event: int) -> Sequence[ModelAction]:
        return ()

    def models(self, version: int) -> Mapping[str, RetrainedModel]:
        return {}

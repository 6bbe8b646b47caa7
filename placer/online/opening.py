"""Opens what deciding online needs: the kinds of NIC, and a predictor for each."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from placer.catalogue import Catalogue
from placer.models_home import Say
from placer.open_catalogue import NONE, open_catalogue
from placer.oracle import Oracle
from profiles import InputError


@dataclass(frozen=True)
class OnlineRequest:
    """Which NICs there are, and who predicts.

    Parameters
    ----------
    models
        A MODELS folder; None means the models of the recorded simulated BlueField-2.
    fleet
        A fleet file; None means unlimited NICs of the model that the models were trained on.
    predictor
        Its name.
    risk
        The share of instances that may be expected to miss their SLA; None takes predictions at their best guess.
    """

    models: Path | None = None
    fleet: Path | None = None
    predictor: str = "tomur"
    risk: float | None = None
    testbed: str | None = NONE
    timeout: float = 60.0


def open_online(request: OnlineRequest, stack: ExitStack, say: Say) -> tuple[Catalogue, tuple[Oracle, ...]]:
    """The catalogue, without testbeds, and an oracle per kind.

    Raises
    ------
    InputError
        When a file is refused, or the models have no such predictor.
    """
    catalogue = open_catalogue(request, stack, say)
    known = catalogue.predictors()
    if request.predictor not in known:
        hint = f"these models have {', '.join(known)}"
        raise InputError.of("--predictor", f"not in the models: {request.predictor}", hint=hint)
    return catalogue, catalogue.oracles(request.predictor)

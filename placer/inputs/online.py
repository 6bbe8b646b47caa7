"""Opens what deciding online needs: the kinds of NIC, and a predictor for each."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

from placer.inputs.catalogue import NONE, open_catalogue
from placer.inputs.models import Say
from placer.model.catalogue import Catalogue
from placer.model.oracle import DEFAULT_RISK, Oracle
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
        The probability at which an instance may miss its SLA; None is the default.
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
    risk = DEFAULT_RISK if request.risk is None else request.risk
    catalogue = open_catalogue(replace(request, risk=risk), stack, say)
    known = catalogue.predictors()
    if request.predictor not in known:
        hint = f"these models have {', '.join(known)}"
        raise InputError.of("--predictor", f"not in the models: {request.predictor}", hint=hint)
    return catalogue, catalogue.oracles(request.predictor)

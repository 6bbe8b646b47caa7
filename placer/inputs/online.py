"""Opens what online placement needs: the kinds of NIC, and a predictor for each."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace

from placer.inputs.catalogue import NONE, Cards, open_catalogue
from placer.inputs.models import Say
from placer.model.catalogue import DEFAULT_PREDICTOR, Catalogue
from placer.model.oracle import DEFAULT_RISK, Oracle
from profiles import InputError


def open_online(
    cards: Cards, stack: ExitStack, say: Say, predictor: str = DEFAULT_PREDICTOR
) -> tuple[Catalogue, tuple[Oracle, ...]]:
    """The catalogue, without testbeds, and an oracle per kind; the risk is `DEFAULT_RISK` unless the cards name one.

    Raises
    ------
    InputError
        When a file is refused, or the models have no such predictor.
    """
    risk = DEFAULT_RISK if cards.risk is None else cards.risk
    catalogue = open_catalogue(replace(cards, risk=risk, testbed=NONE), stack, say)
    known = catalogue.predictors()
    if predictor not in known:
        raise InputError.of(
            "--predictor", f"not in the models: {predictor}", hint=f"these models have {', '.join(known)}"
        )
    for warning in catalogue.risk_warnings(predictor):
        say(warning)
    return catalogue, catalogue.oracles(predictor)

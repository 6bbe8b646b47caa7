"""Opens what online placement needs: the kinds of NIC, and a predictor for each."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace

from placer.inputs.catalogue import NONE, Cards, open_catalogue
from placer.inputs.models import Say, recorded_of
from placer.model.catalogue import DEFAULT_PREDICTOR, Catalogue
from profiles import InputError


def open_online(cards: Cards, stack: ExitStack, say: Say, predictor: str = DEFAULT_PREDICTOR) -> Catalogue:
    """The catalogue for placement by that predictor, without a ground truth.

    The cards' testbed only names the recorded models that are used where the cards have no others.

    Raises
    ------
    InputError
        When a file is refused, or the models have no such predictor.
    """
    recorded_of(cards.testbed)
    named = cards.testbed if cards.models is None else None
    catalogue = open_catalogue(replace(cards, testbed=named or NONE), stack, say)
    known = catalogue.predictors()
    if predictor not in known:
        raise InputError.of(
            "--predictor", f"not in the models: {predictor}", hint=f"these models have {', '.join(known)}"
        )
    for warning in catalogue.risk_warnings(predictor):
        say(warning)
    return catalogue

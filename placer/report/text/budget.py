"""What commands that choose a risk by a budget report of it."""

from __future__ import annotations

from placer.model.catalogue import Catalogue


def chosen_risk(catalogue: Catalogue, risk: float | None, arrivals: str) -> str:
    """The risk that is used, and why; `arrivals` are those that it was chosen by."""
    if risk is None:
        return "the predictor does not model its prediction error: it places by its median prediction"
    if catalogue.budget_pct is None:
        return f"risk {risk:g}, as given"
    return f"risk {risk:g}, chosen by {arrivals} for a budget of {catalogue.budget_pct:g} % SLA violations"

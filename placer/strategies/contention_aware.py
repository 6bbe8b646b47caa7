"""Contention-aware: predict everybody's throughput before anybody moves in (Tomur, section 7.5.1)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from placer.model.catalogue import Catalogue
from placer.model.fleet import Fleet, Nic, NicKind, Tenant
from placer.model.oracle import DEFAULT_RISK, Oracle
from placer.policy.rules import FIRST_FIT, LOOK_AHEAD, Rule
from placer.policy.selector import Selector
from placer.strategies.strategy import OnlineStrategy, register


@register
class ContentionAware(OnlineStrategy):
    """A NIC on which every tenant, old and new, is predicted to keep its SLA: the one whose room is least spoilt.

    Parameters
    ----------
    oracles
        Per kind, who tells the throughputs; by default the predictor, at the catalogue's risk or `DEFAULT_RISK`.
    looks_ahead
        False takes the first NIC that fits, always.
    rule
        Which of several NICs that fit; by default what `looks_ahead` says.
    """

    name = "contention-aware"
    needs_predictor = True

    def __init__(
        self,
        catalogue: Catalogue,
        predictor: str | None = None,
        oracles: Sequence[Oracle] | None = None,
        *,
        looks_ahead: bool = True,
        rule: Rule | None = None,
    ) -> None:
        super().__init__(catalogue, predictor)
        if oracles is None:
            if predictor is None:
                raise ValueError("contention-aware needs a predictor or oracles.")
            risk = DEFAULT_RISK if catalogue.risk is None else catalogue.risk
            oracles = replace(catalogue, risk=risk).oracles(predictor)
        self.oracles = oracles
        self.rule = rule or (LOOK_AHEAD if looks_ahead else FIRST_FIT)

    def begin(self, fleet: Fleet) -> None:
        self._selector = Selector(fleet, self.oracles, self.rule)

    def choose(self, fleet: Fleet, tenant: Tenant) -> Nic | NicKind | None:
        self._selector.foresee(tenant)
        return self._selector.choose(tenant)

    def reason(self, tenant: Tenant) -> str:
        return str(self._selector.tally(tenant))

"""Contention-aware: predict the throughput of every tenant before placing an arrival (Tomur, section 7.5.1)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from types import MappingProxyType

from placer.model.catalogue import Catalogue
from placer.model.fleet import Fleet, Nic, NicKind, Tenant
from placer.model.oracle import DEFAULT_RISK, Oracle
from placer.policy.rules import LOOK_AHEAD, RULES, Rule
from placer.policy.selector import Selector
from placer.strategies.strategy import OnlineStrategy, register


@register
class ContentionAware(OnlineStrategy):
    """Places an arrival where all tenants, with the arrival, are predicted to meet their SLAs; a rule selects the NIC.

    Parameters
    ----------
    oracles
        Source of throughputs per kind of NIC; by default the predictor, at the catalogue's risk or `DEFAULT_RISK`.
    rule
        Selects one of the NICs that fit.
    """

    name = "contention-aware"
    needs_predictor = True
    variants = MappingProxyType({name: {"rule": rule} for name, rule in RULES.items()})

    def __init__(
        self,
        catalogue: Catalogue,
        predictor: str | None = None,
        oracles: Sequence[Oracle] | None = None,
        *,
        rule: Rule = LOOK_AHEAD,
    ) -> None:
        super().__init__(catalogue, predictor)
        if oracles is None:
            if predictor is None:
                raise ValueError("contention-aware needs a predictor or oracles.")
            risk = DEFAULT_RISK if catalogue.risk is None else catalogue.risk
            oracles = replace(catalogue, risk=risk).oracles(predictor)
        self.oracles = oracles
        self.rule = rule

    def begin(self, fleet: Fleet) -> None:
        self._selector = Selector(fleet, self.oracles, self.rule)

    def choose(self, fleet: Fleet, tenant: Tenant) -> Nic | NicKind | None:
        self._selector.observe(tenant)
        return self._selector.choose(tenant)

    def reason(self, tenant: Tenant) -> str:
        return str(self._selector.tally(tenant))

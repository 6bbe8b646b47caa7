"""Contention-aware: predict the throughput of every tenant before placing an arrival (Tomur, section 7.5.1)."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from types import MappingProxyType

from placer.model.arrival import Arrival
from placer.model.catalogue import Catalogue
from placer.model.fleet import Fleet, Nic, NicKind, Tenant
from placer.model.oracle import DEFAULT_RISK, Oracle
from placer.model.plan import Plan
from placer.policy.closing import length_of
from placer.policy.rules import LOOK_AHEAD, RULES, Rule
from placer.policy.selector import Selector
from placer.progress import Advance
from placer.strategies.budget import risk_within_budget
from placer.strategies.replay import LeftOutOracle, Replayed, judged, left_out_of, replayed_arrivals
from placer.strategies.strategy import OnlineStrategy, register

TRIED = 250
"""Arrivals of a trace, evenly taken, whose plans show how careful placement must be."""


@register
class ContentionAware(OnlineStrategy):
    """Places an arrival where all tenants, with the arrival, are predicted to meet their SLAs; a rule selects the NIC.

    Parameters
    ----------
    oracles
        Source of throughputs per kind of NIC; by default the predictor, at a risk that keeps the catalogue's budget.
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
        if oracles is None and predictor is None:
            raise ValueError("contention-aware needs a predictor or oracles.")
        self.given = oracles
        self.oracles = oracles or self._oracles_at(DEFAULT_RISK if catalogue.risk is None else catalogue.risk)
        self.rule = rule
        self._length: int | None = None

    def place(self, arrivals: Sequence[Arrival], progress: Advance | None = None) -> Plan:
        """The plan at the catalogue's risk; without one, at the largest risk that is expected to keep the budget."""
        if self.given is not None or self.predictor is None:
            self._length = length_of(arrivals)
            return super().place(arrivals, progress)
        began = time.perf_counter()
        plan = self._place_at(self.risk_for(arrivals), arrivals, length_of(arrivals), progress)
        return replace(plan, seconds=time.perf_counter() - began)

    def risk_for(self, arrivals: Sequence[Arrival]) -> float:
        """The catalogue's risk; without one, the largest at which these arrivals are expected to keep the budget."""
        few = arrivals[:: -(-len(arrivals) // TRIED)] if arrivals else arrivals
        return risk_within_budget(
            self.catalogue,
            self.predictor or "",
            lambda risk: self._place_at(risk, few, length_of(few)),
            lambda risk: self._replay_at(risk, arrivals),
        )

    def _replay_at(self, risk: float, arrivals: Sequence[Arrival]) -> Replayed:
        """What placement violates at that risk among measured co-locations."""
        predictor = self.predictor or ""
        left_out = left_out_of(self.catalogue, predictor)
        if not left_out:
            return Replayed()
        predictors = [models.predictors[predictor] for models in self.catalogue.models]
        self.oracles = tuple(LeftOutOracle(by, of_kind, risk) for by, of_kind in zip(predictors, left_out, strict=True))
        self._length = None
        plan = super().place(replayed_arrivals(self.catalogue, arrivals))
        return judged(plan, self.catalogue, predictor)

    def _place_at(
        self, risk: float, arrivals: Sequence[Arrival], length: int | None, progress: Advance | None = None
    ) -> Plan:
        self.oracles, self._length = self._oracles_at(risk), length
        return replace(super().place(arrivals, progress), risk=risk)

    def _oracles_at(self, risk: float) -> tuple[Oracle, ...]:
        return replace(self.catalogue, risk=risk).oracles(self.predictor or "")

    def begin(self, fleet: Fleet) -> None:
        self._selector = Selector(fleet, self.oracles, self.rule, arrivals=self._length)

    def choose(self, fleet: Fleet, tenant: Tenant) -> Nic | NicKind | None:
        self._selector.observe(tenant)
        return self._selector.choose(tenant)

    def reason(self, tenant: Tenant) -> str:
        return str(self._selector.tally(tenant))

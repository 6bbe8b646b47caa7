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
        self._known: Sequence[Tenant] = ()

    def place(self, arrivals: Sequence[Arrival], progress: Advance | None = None) -> Plan:
        """The plan at the catalogue's risk; without one, at the largest risk that is expected to keep the budget."""
        if self.given is not None or self.predictor is None:
            return self._place_by(self.oracles, arrivals, progress=progress)
        began = time.perf_counter()
        plan = self._place_at(self.risk_for(arrivals), arrivals, progress=progress)
        return replace(plan, seconds=time.perf_counter() - began)

    def risk_for(self, arrivals: Sequence[Arrival]) -> float:
        """The catalogue's risk; without one, the largest at which these arrivals are expected to keep the budget."""
        few = arrivals[:: -(-len(arrivals) // TRIED)] if arrivals else arrivals
        plain = len({one.workload for one in few}) == len({one.workload.nf for one in few})
        return risk_within_budget(
            self.catalogue,
            self.predictor or "",
            lambda risk: self._place_at(risk, few, known=plain),
            lambda risk: self._replay_at(risk, arrivals),
        )

    def _replay_at(self, risk: float, arrivals: Sequence[Arrival]) -> Replayed:
        """What placement violates at that risk among measured co-locations."""
        predictor = self.predictor or ""
        left_out = left_out_of(self.catalogue, predictor)
        if not left_out:
            return Replayed()
        predictors = [models.predictors[predictor] for models in self.catalogue.models]
        oracles = [LeftOutOracle(by, of_kind, risk) for by, of_kind in zip(predictors, left_out, strict=True)]
        replayed = replayed_arrivals(self.catalogue, arrivals)
        return judged(self._place_by(oracles, replayed, ends=False, known=True), self.catalogue, predictor)

    def _place_at(
        self, risk: float, arrivals: Sequence[Arrival], *, known: bool = False, progress: Advance | None = None
    ) -> Plan:
        return replace(self._place_by(self._oracles_at(risk), arrivals, known=known, progress=progress), risk=risk)

    def _place_by(
        self,
        oracles: Sequence[Oracle],
        arrivals: Sequence[Arrival],
        *,
        ends: bool = True,
        known: bool = False,
        progress: Advance | None = None,
    ) -> Plan:
        """A plan by these throughputs.

        `ends` is whether the length of the trace is known. Where all arrivals are `known`, as of a plan that only shows
        what to expect, their co-locations are predicted before the first.
        """
        self.oracles, self._length = oracles, length_of(arrivals) if ends else None
        self._known = [arrival.tenant for arrival in arrivals] if known else []
        return super().place(arrivals, progress)

    def _oracles_at(self, risk: float) -> tuple[Oracle, ...]:
        return replace(self.catalogue, risk=risk).oracles(self.predictor or "")

    def begin(self, fleet: Fleet) -> None:
        self._selector = Selector(fleet, self.oracles, self.rule, arrivals=self._length, expected=self._known)

    def choose(self, fleet: Fleet, tenant: Tenant) -> Nic | NicKind | None:
        self._selector.observe(tenant)
        return self._selector.choose(tenant)

    def reason(self, tenant: Tenant) -> str:
        return str(self._selector.tally(tenant))

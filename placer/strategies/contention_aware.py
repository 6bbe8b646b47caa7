"""Contention-aware: predict the throughput of every tenant before placing an arrival (Tomur, section 7.5.1)."""

import hashlib
import json
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

import platformdirs

from placer.evaluate.checks import peak_cost
from placer.model.arrival import Arrival, have_loads
from placer.model.catalogue import Catalogue
from placer.model.fleet import Fleet
from placer.model.nic import Nic, Tenant
from placer.model.nic_kind import NicKind
from placer.model.oracle import DEFAULT_RISK, Oracle
from placer.model.plan import Plan
from placer.policy.cores import FIRST_ROOM, UsualNeighbours, order_choices
from placer.policy.rules import LOOK_AHEAD, RULES_BY_NAME, Rule, length_of
from placer.policy.selector import Selector
from placer.progress import Advance
from placer.strategies import budget
from placer.strategies.strategy import OnlineStrategy, register
from predictor.regression.compiled import digest_of_sources, running_s
from profiles import Workload
from profiles.aside import file_aside

OTHER_ROOM = (0.95, 1.05)  # in place of `FIRST_ROOM`, in other plans that are tried
MORE_CAREFUL = 2
"""Smaller risks at which a trace is placed, too, where a budget chooses the risk: one may need fewer NICs by chance."""
CHOSEN_FROM = 5_000  # arrivals up to which that is done
TRIED_ARRIVALS = 250  # arrivals of a trace, evenly taken, whose plans show how careful placement must be


@register
class ContentionAware(OnlineStrategy):
    """Places an arrival where all tenants, with the arrival, are predicted to meet their SLAs; a rule selects the NIC.
    `oracles`: source of throughputs per kind of NIC; by default the predictor, at a risk that keeps the catalogue's
    budget. `rule`: selects one of the NICs that fit."""

    name = "contention-aware"
    needs_predictor = True
    variants = MappingProxyType({name: {"rule": rule} for name, rule in RULES_BY_NAME.items()})

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
        self.room = FIRST_ROOM
        self._length: int | None = None
        self._known: Sequence[Tenant] = ()
        self._tried = False
        self._observed: str | None = None

    def place(self, arrivals: Sequence[Arrival], progress: Advance | None = None) -> Plan:
        """The plan at the catalogue's risk; without one, at the largest risk that is expected to keep the budget."""
        if self.given is not None or self.predictor is None:
            return self._place_by(self.oracles, arrivals, progress=progress)
        began = running_s()
        # where cores are chosen, too, a plan has more than its risk
        key = None if have_loads(arrivals) else risk_key(self.catalogue, self.predictor, self.rule, arrivals)
        if key is not None and (known := recall_risk(key)):
            return self._place_at(known, arrivals, progress=progress)
        plan = self._cheapest(list(self._plans(self._largest_risk(arrivals), arrivals, progress)))
        if key is not None:
            keep_risk(key, plan.risk)
        return replace(plan, seconds=running_s() - began)

    def risk_for(self, arrivals: Sequence[Arrival]) -> float:
        """The catalogue's risk; without one, that of the plan of these arrivals that keeps the budget."""
        key = risk_key(self.catalogue, self.predictor or "", self.rule, arrivals)
        if known := recall_risk(key):
            return known
        risk = self._largest_risk(arrivals)
        if len(self._risks_from(risk, arrivals)) > 1:
            risk = self._cheapest(list(self._plans(risk, arrivals, None, tried=True))).risk or risk
        keep_risk(key, risk)
        return risk

    def _plans(
        self, largest: float, arrivals: Sequence[Arrival], progress: Advance | None, *, tried: bool = False
    ) -> Iterator[Plan]:
        """The plans to choose from. How many NICs one needs depends little on the risk, and as much on chance."""
        for self.room in OTHER_ROOM if have_loads(arrivals) and len(arrivals) <= CHOSEN_FROM else ():
            yield self._place_at(largest, arrivals, tried=tried, progress=progress)
            progress = None
        self.room = FIRST_ROOM
        for risk in self._risks_from(largest, arrivals):
            yield self._place_at(risk, arrivals, tried=tried, progress=progress)
            progress = None

    def _risks_from(self, risk: float, arrivals: Sequence[Arrival]) -> tuple[float, ...]:
        """The risk and, where the budget has chosen it, the next more careful ones."""
        chosen = self.catalogue.budget_pct is not None and risk in budget.RISKS_TRIED
        if not chosen or len(arrivals) > CHOSEN_FROM or self.rule is not LOOK_AHEAD:
            return (risk,)
        return budget.RISKS_TRIED[budget.RISKS_TRIED.index(risk) :][: 1 + MORE_CAREFUL]

    def _cheapest(self, plans: Sequence[Plan]) -> Plan:
        """The plan that rejects least, then costs least; of equal ones the most careful, which comes last."""
        return min(reversed(plans), key=lambda plan: (plan.rejected, peak_cost(plan, self.catalogue.kinds)))

    def _largest_risk(self, arrivals: Sequence[Arrival]) -> float:
        """The catalogue's risk; without one, the largest at which these arrivals are expected to keep the budget.

        What already runs is not decided on, and shows nothing of the risk.
        """
        placed = [arrival for arrival in arrivals if arrival.nic is None]
        few = placed[:: -(-len(placed) // TRIED_ARRIVALS)] if placed else placed
        plain = len({arrival.workload for arrival in few}) == len({arrival.workload.nf for arrival in few})
        return budget.risk_within_budget(
            self.catalogue,
            self.predictor or "",
            lambda risk: self._place_at(risk, few, known=plain, tried=True),
            lambda risk: self._replay_at(risk, arrivals),
        )

    def _replay_at(self, risk: float, arrivals: Sequence[Arrival]) -> budget.Replayed:
        """What placement violates at that risk among measured co-locations."""
        predictor = self.predictor or ""
        if have_loads(arrivals):  # what was measured is co-locations of NFs that are offered more than they can carry
            return budget.Replayed()
        left_out = budget.left_out_co_locations(self.catalogue, predictor)
        if not left_out:
            return budget.Replayed()
        predictors = [models.predictors[predictor] for models in self.catalogue.models]
        oracles = [budget.LeftOutOracle(by, of_kind, risk) for by, of_kind in zip(predictors, left_out, strict=True)]
        replayed = budget.arrivals_to_replay(self.catalogue, arrivals)
        plan = self._place_by(oracles, replayed, ends=False, known=True, tried=True)
        return budget.judge(plan, self.catalogue, predictor)

    def _place_at(
        self,
        risk: float,
        arrivals: Sequence[Arrival],
        *,
        known: bool = False,
        tried: bool = False,
        progress: Advance | None = None,
    ) -> Plan:
        plan = self._place_by(self._oracles_at(risk), arrivals, known=known, tried=tried, progress=progress)
        return replace(plan, risk=risk)

    def _place_by(
        self,
        oracles: Sequence[Oracle],
        arrivals: Sequence[Arrival],
        *,
        ends: bool = True,
        known: bool = False,
        tried: bool = False,
        progress: Advance | None = None,
    ) -> Plan:
        """A plan by these throughputs.

        `ends` is whether the length of the trace is known. Where all arrivals are `known`, as of a plan that only shows
        what to expect, their co-locations are predicted before the first. Of a plan that is only `tried`, there are no
        reasons.
        """
        self.oracles, self._length, self._tried = oracles, length_of(arrivals) if ends else None, tried
        self._known = [arrival.tenant for arrival in arrivals] if known else []
        return super().place(arrivals, progress)

    def _oracles_at(self, risk: float) -> tuple[Oracle, ...]:
        return replace(self.catalogue, risk=risk).oracles(self.predictor or "")

    def begin(self, fleet: Fleet) -> None:
        self._selector = Selector(fleet, self.oracles, self.rule, arrivals=self._length, expected=self._known)
        self._neighbours = UsualNeighbours()

    def choices(self, workload: Workload) -> Sequence[Workload]:
        """As of `order_choices`."""
        return order_choices(self.catalogue.kinds, self.oracles, workload, self.room, self._neighbours)

    def choose_with_cores(self, fleet: Fleet, tenant: Tenant) -> tuple[Nic | NicKind | None, Workload]:
        choice, workload = super().choose_with_cores(fleet, tenant)
        if choice is not None:
            self._neighbours.add(workload)
        return choice, workload

    def choose(self, fleet: Fleet, tenant: Tenant) -> Nic | NicKind | None:
        if tenant.id != self._observed:  # not each number of cores that is tried
            self._observed = tenant.id
            self._selector.observe(tenant)
        return self._selector.choose(tenant)

    def reason(self, tenant: Tenant) -> str:
        return "" if self._tried else str(self._selector.tally(tenant))


# Risks that were chosen, kept in the user's cache.
#
# A risk within a budget is found by placing the trace, or one like it, several times. `placer explain` and `diagnose`
# ask for the plan that `placer run` made: with the risk known, it is placed once.


KEPT_RISKS = 500  # risks that are kept; the oldest go
PLACER_FOLDER = Path(__file__).parents[1]
CODE_FOLDERS = (
    *(PLACER_FOLDER / room for room in ("strategies", "policy", "model", "evaluate")),
    PLACER_FOLDER.parent / "predictor",
)
"""Folders of the code that chooses a risk."""


def risk_key(catalogue: Catalogue, predictor: str, rule: Rule, arrivals: Sequence[Arrival]) -> str | None:
    """A name for all that the choice depends on; None where nothing is chosen, or models are of no folder."""
    digests = [models.digest for models in catalogue.models]
    chosen = catalogue.budget_pct is not None and catalogue.supports_risk(predictor)
    if not chosen or catalogue.gpus or catalogue.curves or not digests or not all(digests):
        return None
    asked = (
        catalogue.kinds, digests, catalogue.budget_pct, predictor, rule.name, digest_of_sources(CODE_FOLDERS),
        list(arrivals),
    )  # fmt: skip
    return hashlib.sha256(repr(asked).encode()).hexdigest()[:24]


def recall_risk(key: str | None) -> float | None:
    """The risk that was kept under this key."""
    return _read_risks().get(key) if key else None


def keep_risk(key: str | None, risk: float | None) -> None:
    """Keep a risk; where the cache cannot be written, nothing is kept."""
    if key is None or risk is None:
        return
    kept = _read_risks()
    kept.pop(key, None)
    kept[key] = risk
    with suppress(OSError), file_aside(_file()) as aside:
        aside.write_text(json.dumps(dict(list(kept.items())[-KEPT_RISKS:])), encoding="utf-8")


def _read_risks() -> dict[str, float]:
    try:
        return {str(key): float(risk) for key, risk in json.loads(_file().read_text(encoding="utf-8")).items()}
    except (OSError, ValueError, TypeError, AttributeError):
        return {}  # there is no file yet, or not one of ours: it is written anew


def _file() -> Path:
    return platformdirs.user_cache_path("nf-placer") / "risks.json"

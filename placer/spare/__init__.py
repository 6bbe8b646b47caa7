"""Spare NICs (`--spare`): what a plan needs beside its own, so that the tenants of NICs that fail fit on the others."""

from collections.abc import Sequence
from dataclasses import replace
from math import inf

from placer.evaluate.spare_checks import Failures, Spare, check_spare
from placer.model.catalogue import Catalogue
from placer.model.nic_kind import NicKind
from placer.model.oracle import Oracle
from placer.model.plan import Plan
from placer.spare.failover import FailoverSearch
from placer.spare.rules import ByDecision, ByExpectation, ByThroughput
from placer.spare.takeover import SharingRule
from placer.strategies import NamedStrategy
from profiles import Fault, InputError

__all__ = ["NO_FAILURES", "Failures", "Spare", "find_spare", "refuse_too_many_failures"]

NO_FAILURES = Failures()


def refuse_too_many_failures(failures: Failures, kinds: Sequence[NicKind]) -> None:
    """InputError where all NICs of the fleet, or all its domains, may fail."""
    nics = sum(inf if kind.count is None else kind.count for kind in kinds)
    alone = sum(inf if kind.count is None else kind.count for kind in kinds if not kind.domain)
    domains = alone + len({kind.domain for kind in kinds if kind.domain})
    faults = [
        Fault(option, None, None, f"{most:,} fail, and the fleet has {there:,.0f} {noun}{'s' * (there != 1)}", hint)
        for option, most, there, noun in (
            ("--spare", failures.nics, nics, "NIC"),
            ("--spare-domains", failures.domains, domains, "domain"),
        )
        for hint in [f"at most {option} {there - 1:.0f}" if there > 1 else "raise count in the fleet file"]
        if most >= max(there, 1)
    ]
    if faults:
        raise InputError(faults)


def find_spare(
    plan: Plan, failures: Failures, catalogue: Catalogue, strategy: NamedStrategy | None, judges: Sequence[Oracle] = ()
) -> Spare:
    """The cheapest empty NICs with which a plan survives the failures; each one that was tried is replayed and checked.

    `strategy`: the one that made the plan; None for the optimum, which the `judges` made, per kind of NIC. Raises
    `InvalidPlan` when tenants were put where they must not be."""
    rule = _rule_of(plan, catalogue, strategy, judges)
    spare, takeovers = FailoverSearch(plan, catalogue.kinds, rule, failures).find()
    if spare.added is not None:
        check_spare(plan, catalogue.kinds, spare, takeovers, rule.oracles if isinstance(rule, ByThroughput) else None)
    return spare


def _rule_of(plan: Plan, catalogue: Catalogue, strategy: NamedStrategy | None, judges: Sequence[Oracle]) -> SharingRule:
    if strategy is None:
        return ByThroughput(judges)
    if plan.within is not None and plan.predictor is not None:
        return ByExpectation(plan, catalogue, plan.predictor)
    if plan.predictor is not None:
        risk = catalogue.risk if plan.risk is None else plan.risk
        return ByThroughput(replace(catalogue, risk=risk).oracles(plan.predictor))
    return ByDecision(strategy.build(catalogue, None), catalogue)

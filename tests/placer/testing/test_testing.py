"""The conformance kit accepts what conforms, and names the fact that does not hold."""

from collections.abc import Iterator
from dataclasses import replace

import pytest

from placer.model.constraints import CONSTRAINTS, Constraint, GroupConstraint, KindConstraint, register
from placer.model.fleet import Fleet
from placer.model.nic import Nic, Tenant
from placer.model.nic_kind import NicKind
from placer.model.plan import Plan
from placer.strategies import STRATEGIES, OnlineStrategy, Strategy
from placer.testing import check_constraint, check_predictor, check_strategy, check_testbed
from predictor.registry import PREDICTORS
from profiler.simulated import SimulatedTestbed
from profiler.testbed import Run
from profiles import ChainLoad, Load, Workload
from tests.profiler.toy_server import ToyServer

ONLINE = {name: strategy for name, strategy in STRATEGIES.items() if issubclass(strategy, OnlineStrategy)}
"""The toy world has no models, so `planned` is held to the same facts by tests of its own."""


@pytest.mark.long
@pytest.mark.parametrize("strategy", ONLINE.values(), ids=list(ONLINE))
def test_our_strategies_conform(strategy: type[Strategy]) -> None:
    check_strategy(strategy)


@pytest.mark.long
@pytest.mark.parametrize("name", PREDICTORS)
def test_our_predictors_conform(name: str) -> None:
    check_predictor(name)


@pytest.mark.long
@pytest.mark.parametrize("name", CONSTRAINTS)
def test_our_constraints_conform(name: str) -> None:
    values = {"pool": ("p1", "p1|p2"), "most_per_nic": ("1 g1", "2 g2"), "most_per_domain": ("2 g1", "1 g2")}
    check_constraint(CONSTRAINTS[name], values.get(name, ("g1", "g2")))


@pytest.fixture
def as_before() -> Iterator[None]:
    """A time after which constraints that were registered in it are unknown again."""
    known = dict(CONSTRAINTS)
    yield
    for name in set(CONSTRAINTS) - set(known):
        CONSTRAINTS._own.pop(name)


@pytest.mark.usefixtures("as_before")
def test_a_constraint_that_overlooks_a_violation_or_blames_what_ran_before_is_found() -> None:
    class Blind(GroupConstraint):
        name, text, same = "blind", "no two of the group on one NIC", False

        @classmethod
        def faults(cls, plan: Plan) -> Iterator[str]:
            yield from ()

    class Late(KindConstraint):
        name, text = "late", "not on NICs of pools"

        @classmethod
        def allows(cls, value: str, kind: NicKind) -> bool:
            return not value or not kind.pool

        @classmethod
        def faults(cls, plan: Plan) -> Iterator[str]:
            for placement in plan.placed:
                if placement.kind and not cls.allows(placement.arrival.constraints.of(cls.name), placement.kind):
                    yield f"{placement.arrival.id} is in a pool"

    with pytest.raises(AssertionError, match=r"blind, plan \d+: .* faults are \[\], by the relation there are True"):
        check_constraint(register(Blind))
    with pytest.raises(AssertionError, match="instances that already run were nobody's decision"):
        check_constraint(register(Late))


@pytest.mark.usefixtures("as_before")
def test_a_constraint_that_is_unknown_not_supported_or_never_violated_is_found() -> None:
    class InOneDomain(GroupConstraint):
        name, text, same, by_domain = "in-one-domain", "all of the group in one domain", True, True

        @classmethod
        def faults(cls, plan: Plan) -> Iterator[str]:
            yield from ()

    class Idle(KindConstraint):
        name, text = "idle", "on any NIC"

        @classmethod
        def allows(cls, value: str, kind: NicKind) -> bool:
            return True

        @classmethod
        def faults(cls, plan: Plan) -> Iterator[str]:
            yield from ()

    constraints: list[tuple[type[Constraint], str]] = [(InOneDomain, "not supported"), (Idle, "give others")]
    for constraint, message in constraints:
        with pytest.raises(AssertionError, match="is not registered"):
            check_constraint(constraint)
        with pytest.raises(AssertionError, match=message):
            check_constraint(register(constraint))


def test_the_simulated_testbed_conforms() -> None:
    check_testbed("simulated")


def test_a_strategy_that_ignores_cores_is_found() -> None:
    class OneNic(OnlineStrategy):
        name = "one-nic"

        def choose(self, fleet: Fleet, tenant: Tenant) -> Nic | NicKind | None:
            return next(iter(fleet.nics.values()), None) or self.cheapest_new(fleet, tenant)

    with pytest.raises(AssertionError, match=r"one-nic, .* trace \d+: .*(?s:.*)cores taken"):
        check_strategy(OneNic)


def test_a_strategy_that_ignores_groups_is_found() -> None:
    class FirstFit(OnlineStrategy):
        name = "first-fit"

        def choose(self, fleet: Fleet, tenant: Tenant) -> Nic | NicKind | None:
            fitting = (nic for nic in fleet.nics.values() if nic.kind.fits([*nic.co_location, tenant.workload]))
            return next(fitting, None) or self.cheapest_new(fleet, tenant)

    with pytest.raises(AssertionError, match=r"first-fit, groups of spread, pool '': (?s:.*)\(spread\) are both on"):
        check_strategy(FirstFit)


def test_a_strategy_that_keeps_state_between_traces_is_found() -> None:
    class Alternating(OnlineStrategy):
        name = "alternating"
        turn = 0

        def choose(self, fleet: Fleet, tenant: Tenant) -> NicKind | None:
            self.turn += 1
            return None if self.turn % 2 else self.cheapest_new(fleet, tenant)

    with pytest.raises(AssertionError, match="an earlier trace changes the plan"):
        check_strategy(Alternating)


def test_a_testbed_that_leaves_out_a_measurement_is_found() -> None:
    class Forgetful(SimulatedTestbed):
        def run(self, loads: list[Load], **options: object) -> Run:  # type: ignore[override]
            return Run(super().run(loads, **options).measurements[:1])  # type: ignore[arg-type]

    with pytest.raises(AssertionError, match="1 measurements of"):
        check_testbed(Forgetful())


def test_a_testbed_with_other_noise_for_the_same_seed_is_found() -> None:
    class Unseeded(SimulatedTestbed):
        def run(self, loads: list[Load], *, noise: bool = True, seed: int | None = None) -> Run:  # type: ignore[override]
            return super().run(loads, noise=noise)

    with pytest.raises(AssertionError, match="answers of one seed differ"):
        check_testbed(Unseeded())


def test_a_testbed_that_ignores_rates_or_cores_is_found() -> None:
    class Unpaced(SimulatedTestbed):
        def run(self, loads: list[Load], **options: object) -> Run:  # type: ignore[override]
            fast = [load.saturated if isinstance(load, Workload) else load for load in loads]
            return super().run(fast, **options)  # type: ignore[arg-type]

    class Lossy(SimulatedTestbed):
        def run(self, loads: list[Load], **options: object) -> Run:  # type: ignore[override]
            run = super().run(loads, **options)  # type: ignore[arg-type]
            return Run(tuple(replace(one, throughput_kpps=0.97 * one.throughput_kpps) for one in run.measurements))

    class FixedCores(SimulatedTestbed):
        def run(self, loads: list[Load], **options: object) -> Run:  # type: ignore[override]
            fixed = [replace(load, cores=0) if isinstance(load, Workload) else load for load in loads]
            return super().run(fixed, **options)  # type: ignore[arg-type]

    for wrong, message in ((Unpaced, "kpps of an offered"), (Lossy, "kpps of an offered"), (FixedCores, "5 cores")):
        with pytest.raises(AssertionError, match=message):
            check_testbed(wrong())


def test_a_testbed_that_ignores_what_is_wrong_with_a_chain_is_found() -> None:
    class Careless(ToyServer):
        def run(self, loads: list[Load], *, noise: bool = True, seed: int | None = None) -> Run:  # type: ignore[override]
            whole = [replace(load, cores=((0, 1),)) if isinstance(load, ChainLoad) else load for load in loads]
            return super().run(whole, noise=noise, seed=seed)

    check_testbed(ToyServer())
    with pytest.raises(AssertionError, match="a chain with a stage on no core is not refused"):
        check_testbed(Careless())


def test_a_testbed_that_runs_chains_without_stages_is_found() -> None:
    class WithoutStages(ToyServer):
        def run(self, loads: list[Load], *, noise: bool = True, seed: int | None = None) -> Run:  # type: ignore[override]
            run = super().run(loads, noise=noise, seed=seed)
            return Run(tuple(replace(one, stages=()) for one in run.measurements))

    with pytest.raises(AssertionError, match="Null,coder: 0 stages measured"):
        check_testbed(WithoutStages())

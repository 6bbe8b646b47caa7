"""Every plan that `place` accepts compiles, and no better one would have."""

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from random import Random

import pytest

from placer.rack.chain import Chain, Slo
from placer.rack.compiler.compile import compile_rack
from placer.rack.compiler.within_limits import (
    cut_copies,
    is_unchecked,
    keep_from_devices,
    plan_within_limits,
    refusal_of,
    refuse_copies,
)
from placer.rack.files.plan_file import SubgroupCores
from placer.rack.layout_arrays import possible_sites
from placer.rack.plan import RackPlan, Status
from placer.rack.rack import CoreCost, NfCosts, Rack, Server, SmartNic, Switch
from placer.rack.strategies.optimal import exact_plan
from profiles import InputError
from tests.placer.rack.compiler.racks import made_chain, made_plan

QUICK_RACKS, RANDOM_RACKS, RACKS_PER_TEST = 6, 2000, 50  # a rack takes seconds of clang
NEEDS_CLANG = pytest.mark.skipif(shutil.which("clang") is None, reason="clang is not installed: `make deps` does it")
SLOW, FAST = CoreCost(Fraction(40000)), CoreCost(Fraction(100))


def rack_with(servers: int, on_switch: tuple[str, ...] = ()) -> Rack:
    """Servers of four cores, each with a SmartNIC that is much faster, and a NIC of 40 Gbps."""
    each = tuple(
        Server(f"s{at}", 4, Fraction(2000), Fraction(40000), smartnic=SmartNic(f"n{at}", 3, Fraction(2000)))
        for at in range(servers)
    )
    kinds = ("ACL", "Detunnel", "FastEncrypt", "IPv4Fwd", "LB", "Match", "Tunnel", "UrlFilter")
    costs = {kind: NfCosts(SLOW, FAST, 1 if kind in on_switch else None) for kind in kinds}
    return Rack(Switch(), each, Fraction(1), {**costs, "UrlFilter": NfCosts(SLOW)})


def chain_of(name: str, *nfs: tuple[str, Mapping[str, float]]) -> Chain:
    slo = Slo(Fraction(100), Fraction(8000))
    return replace(made_chain(nfs, name=name, aggregates=["udp"] if name == "a" else ()), slo=slo)


def best(chains: list[Chain], rack: Rack) -> RackPlan:
    return plan_within_limits(lambda given: exact_plan(given, rack), chains, rack).plan


def sites(chain: Chain, rack: Rack) -> list[str]:
    return ["switch" if site < 0 else rack.devices[site].name for site in possible_sites(chain, rack)[0]]


@pytest.mark.parametrize(
    ("nf", "parameters", "expected"),
    [
        ("FastEncrypt", {"blocks": 1}, ["s0", "n0"]),
        pytest.param("FastEncrypt", {"blocks": 2}, ["s0"], marks=NEEDS_CLANG),  # 6,754 instructions of 4,196
        ("FastEncrypt", {"in_udp": 0}, ["s0"]),  # without blocks
        ("ACL", {"rules": 9}, ["s0", "n0"]),
        ("ACL", {"rules": 700}, ["s0"]),
        ("IPv4Fwd", {"routes": 1399}, ["s0"]),
    ],
)
def test_an_nf_is_kept_from_cards_that_its_program_does_not_fit(
    nf: str, parameters: dict[str, float], expected: list[str]
) -> None:
    rack = rack_with(1)
    (kept,) = keep_from_devices([chain_of("c", (nf, parameters))], rack)
    assert sites(kept, rack) == expected


def test_an_nf_that_fits_nowhere_is_refused() -> None:
    rack = rack_with(1)
    rack = replace(rack, costs={"ACL": NfCosts(smartnic=FAST)})
    with pytest.raises(InputError, match=r"c/f0: ACL\(rules=700\) can run on no device of this rack"):
        keep_from_devices([chain_of("c", ("ACL", {"rules": 700}))], rack)


@NEEDS_CLANG
def test_of_nfs_that_fit_a_card_one_by_one_the_best_choice_leaves() -> None:
    """Two of these access lists do not fit together: one is on the card, the other on the slow server."""
    chains = [chain_of("a", ("ACL", {"rules": 400})), chain_of("b", ("ACL", {"rules": 350}))]
    rack = rack_with(1)
    plan = best(chains, rack)
    assert plan.status is Status.OPTIMAL
    assert sorted(one.site_name(0) for one in plan.chains) == ["n0", "s0"]
    assert refusal_of(plan, chains) is None and refusal_of(exact_plan(chains, rack), chains) is not None
    both = best(chains, rack_with(2))
    assert sorted(one.site_name(0) for one in both.chains) == ["n0", "n1"] and both.status is Status.OPTIMAL


def test_no_nf_has_more_copies_than_there_can_be() -> None:
    """A NAT with two addresses is on two cores and a Dedup on one; a NAT with sixteen keeps its copies."""
    rack = replace(rack_with(1), costs={kind: NfCosts(SLOW) for kind in ("Dedup", "NAT")})
    few, many, dedup = ("NAT", {"addresses": 2}), ("NAT", {"addresses": 16}), ("Dedup", {})
    for nfs, cores, status in (
        ([few], 2, Status.FEASIBLE),
        ([many], 4, Status.OPTIMAL),
        ([few, dedup], 1, Status.OPTIMAL),
    ):
        plan = best([chain_of("c", *nfs)], rack)
        assert [given for _, given in plan.chains[0].subgroups] == [cores] and plan.status is status
    predicted = plan_within_limits(lambda given: exact_plan(given, rack), [chain_of("c", few)], rack, cuts_copies=False)
    assert predicted.plan.chains[0].cores == (1,)
    on_switch = replace(rack, costs={"NAT": NfCosts(SLOW, switch_blocks=1)})
    chain = chain_of("c", few)
    fast = replace(chain, slo=replace(chain.slo, t_min_mbps=Fraction(1300)))  # two cores carry 1200
    assert best([fast], on_switch).chains[0].site_name(0) == "switch"
    with pytest.raises(InputError, match="c/f0: 2 copies are more than this Dedup can have, 1"):
        compile_rack(made_plan((made_chain(["Dedup"]), "s0"), cores=[SubgroupCores("s0", ("f0",), 2)]), "plan")


def test_copies_that_a_new_plan_cannot_have_are_cut_or_named() -> None:
    """As replanning asks for it; of chains that are about costs alone, what the compiler will say."""
    rack = replace(rack_with(1), costs={kind: NfCosts(SLOW) for kind in ("Dedup", "NAT")})
    (few,) = keep_from_devices([chain_of("c", ("NAT", {"addresses": 2}))], rack)
    cut = cut_copies(exact_plan([few], rack))
    assert (cut.chains[0].cores, cut.chains[0].rate_mbps, cut.bound_mbps) == ((2,), 1200, None)
    assert refuse_copies(cut) is None and cut_copies(cut) is cut
    plan = exact_plan([chain_of("c", ("Dedup", {}))], rack)
    assert refuse_copies(plan) == "c/f0: 4 copies are more than this Dedup can have, 1"
    assert refuse_copies(exact_plan([chain_of("c", ("NAT", {}))], rack)) is None


def test_without_clang_a_plan_with_smartnics_is_unchecked(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same plan is checked where clang is installed, and one without SmartNICs needs none."""
    chains, rack = [chain_of("a", ("ACL", {"rules": 9}))], rack_with(1)
    monkeypatch.setattr(shutil, "which", lambda program: None)
    limited = plan_within_limits(lambda given: exact_plan(given, rack), chains, rack)
    assert is_unchecked(limited)
    monkeypatch.setattr(shutil, "which", lambda program: program)
    assert not is_unchecked(limited)


@NEEDS_CLANG
def test_a_choice_without_an_answer_in_time_leaves_the_plan_unproven() -> None:
    """One of two access lists has to leave the card; of the second choice nobody knows."""
    chains = [chain_of("a", ("ACL", {"rules": 400})), chain_of("b", ("ACL", {"rules": 350}))]
    rack, asked = rack_with(1), list[Sequence[Chain]]()

    def solve(given: Sequence[Chain]) -> RackPlan:
        asked.append(given)
        plan = exact_plan(given, rack)
        return plan if len(asked) < 3 else replace(plan, status=Status.UNKNOWN, chains=(), bound_mbps=None)

    plan = plan_within_limits(solve, chains, rack).plan
    assert len(asked) == 3 and plan.chains and plan.status is Status.FEASIBLE


@pytest.mark.parametrize(
    "seeds",
    [
        range(QUICK_RACKS),
        *(
            pytest.param(range(at, at + RACKS_PER_TEST), marks=pytest.mark.slow)
            for at in range(0, RANDOM_RACKS, RACKS_PER_TEST)
        ),
    ],
    ids=lambda seeds: f"{seeds.start}-{seeds.stop}",
)
def test_random_plans_compile(seeds: range) -> None:
    """Access lists, routes, balancers and blocks near what a card takes; a plan that compiles is best of those."""
    for seed in seeds:
        random = Random(seed)
        rack = rack_with(random.choice((1, 1, 2)), tuple(random.sample(("ACL", "IPv4Fwd", "LB", "Match"), 1)))
        chains = [
            chain_of(name, *(_nf_near_the_limit(random) for _ in range(random.randint(1, 3))))
            for name in ("a", "b")[: random.randint(1, 2)]
        ]
        found = plan_within_limits(lambda given, on=rack: exact_plan(given, on), chains, rack)  # type: ignore[misc]
        assert found.refusal is None, seed
        if found.plan.chains:
            assert refusal_of(found.plan, chains) is None, seed


def _nf_near_the_limit(random: Random) -> tuple[str, dict[str, float]]:
    choices: list[tuple[str, dict[str, float]]] = [
        ("ACL", {"rules": random.choice((1, 100, 300, 350, 650, 690, 699, 700))}),
        ("IPv4Fwd", {"routes": random.choice((1, 600, 700, 1300, 1398, 1399))}),
        ("FastEncrypt", {"blocks": random.choice((0, 1, 1, 2))}),
        ("LB", {"table": random.choice((256, 1024)), "backends": 8}),
        ("Tunnel", {"vlan": 7}),
        ("UrlFilter", {"urls": 10}),
    ]
    return random.choice(choices)

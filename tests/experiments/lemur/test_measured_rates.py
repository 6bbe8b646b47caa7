"""What the simulated server measures of plans."""

from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest

from experiments.lemur.methodology.measured_rates import Capacity, capacities, measure_rates, walks
from placer.rack.files.chains_file import chains_of_text
from placer.rack.files.json_twins import rack_of
from placer.rack.plan import RackPlan
from placer.rack.strategies.optimal import best_plan
from profiler.simulated import SimulatedServer
from profiler.simulated.server import SERVER_CARD
from profiler.testbed import RunRefused
from profiles import ChainLoad, TrafficProfile
from tests.placer.rack import small

CYCLES = {"Encrypt": 9123, "UrlFilter": 6994, "Match": 976, "ACL": 985}
NFS: dict[str, Any] = {name: {"server": {"cycles": cycles}} for name, cycles in CYCLES.items()}


def planned(text: str, cores: int, nfs: dict[str, Any] = NFS) -> RackPlan:
    """The plan by cycles alone; one server, with the traffic that takes most cycles."""
    rack = small.rack(nfs, small.server("s0", cores=cores, nic_mbps=400_000))
    rack |= {"overheads": {"subgroup_cycles": 86}, "testbed": {"flows": 100_000, "mtbr": 600}}
    slos = "".join(f"slo c{at}: 1 Gbps to 100 Gbps\n" for at in range(text.count("chain")))
    return best_plan(chains_of_text(slos + text, "chains").chains, rack_of(rack, "rack"))


def measured(text: str, cores: int, nfs: dict[str, Any] = NFS) -> tuple[RackPlan, list[Capacity]]:
    plan = planned(text, cores, nfs)
    return plan, capacities(plan, SimulatedServer(card=replace(SERVER_CARD, cores=64)))


def test_a_subgroup_alone_reaches_what_its_cycles_say() -> None:
    """The server is calibrated to the published cycles."""
    plan, (one,) = measured("chain c0: Encrypt\n", 1)
    assert one.mbps == one.alone_mbps == pytest.approx(plan.chains[0].rate_mbps, rel=0.003)
    assert measure_rates(plan, [one]) == [pytest.approx(plan.chains[0].rate_mbps, rel=0.003)]


def test_neighbours_take_their_part() -> None:
    """Fourteen cores with UrlFilter do not find their automata in the cache, each of them alone does."""
    _, (one,) = measured("chain c0: UrlFilter\n", 14)
    assert one.mbps < 0.9 * one.alone_mbps


def test_a_branch_is_measured_by_its_paths() -> None:
    """Half of the packets pass UrlFilter: a packet takes half of the time of each path, on the one core of both."""
    plan, (one,) = measured("chain c0: Match -> [1/2 UrlFilter | 1/2 -] -> Encrypt\n", 1)
    assert plan.chains[0].cores == (1,)
    traffic = TrafficProfile(100_000, 1500, 600)
    paths = [
        ChainLoad.of(nfs.split(), [range(len(nfs.split()))], traffic)
        for nfs in ("Match UrlFilter Encrypt", "Match Encrypt")
    ]
    kpps = [SimulatedServer().run([path], noise=False).measurements[0].throughput_kpps for path in paths]
    assert one.mbps == pytest.approx(12 / sum(0.5 / each for each in kpps), rel=0.005)


def test_ways_through_a_subgroup() -> None:
    """Of `A -> [1/2 B | 1/2 -] -> C`: both ways through all, and those through A and C without B."""
    chain = chains_of_text("slo c: 0 Mbps to 1 Gbps\nchain c: A -> [1/2 B | 1/2 -] -> C -> D\n", "chains").chains[0]
    a, b, c, d = ("ABCD".index(nf.nf) for nf in chain.nfs)
    half = Fraction(1, 2)
    assert walks(chain, [a, b, c, d]) == {(a, b, c, d): half, (a, c, d): half}
    assert walks(chain, [a, c]) == {(a,): half, (a, c): half, (c,): half}
    assert walks(chain, [b]) == {(b,): half}


def test_nfs_run_as_those_that_the_rack_names() -> None:
    """ACL_1024 is ACL with 1,024 rules: 4,091 cycles."""
    costs = {"cycles": 4091, "testbed_nf": "ACL", "testbed_parameters": {"rules": 1024}}
    plan, (one,) = measured("chain c0: ACL_1024\n", 1, {"ACL_1024": {"server": costs}})
    assert one.mbps == pytest.approx(plan.chains[0].rate_mbps, rel=0.01)


def test_neighbours_with_little_to_do_run_at_the_rates_of_the_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    """A chain at a tenth of what its core carries is offered that rate, and takes all that it can for itself."""
    seen: list[list[ChainLoad]] = []
    run_many = SimulatedServer.run_many
    monkeypatch.setattr(
        SimulatedServer, "run_many", lambda self, loads, **more: seen.extend(loads) or run_many(self, loads, **more)
    )
    plan = planned("chain c0: Encrypt\nchain c1: ACL\n", 2)
    chains = tuple(
        replace(one, rate_mbps=one.rate_mbps * share) for one, share in zip(plan.chains, (1, 0.1), strict=True)
    )
    capacities(replace(plan, chains=chains), SimulatedServer())
    beside_encrypt, beside_acl = ([load.rate_kpps for load in loads] for loads in seen[:2])
    assert beside_encrypt == [0, pytest.approx(chains[1].rate_mbps / 12)]
    assert beside_acl == [0, 0]
    assert seen[0][0].traffic == TrafficProfile(100_000, 1500, 600)


def test_a_plan_that_the_testbed_cannot_run_is_refused() -> None:
    with pytest.raises(RunRefused, match="NF Nobody is not known"):
        measured("chain c0: Nobody\n", 1, {"Nobody": small.ON_SERVER})

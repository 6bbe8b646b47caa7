"""Plans by cycles alone and with contention in the loop, run on the simulated server, and what it measures of plans."""

from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from experiments import Result, Setting, find_experiment
from experiments.lemur import contention
from experiments.lemur.contention import CHAIN_TEXTS, SOFTWARE_NFS, build_simulated_rack, lemur_sets, random_mixes
from experiments.lemur.methodology.measured_rates import Capacity, capacities, measure_rates, walks
from experiments.lemur.methodology.paper_rack import CHAIN_SETS, RATE_DELTAS
from placer.rack.files.chains_file import chains_of_text
from placer.rack.files.json_twins import rack_of
from placer.rack.plan import RackPlan
from placer.rack.strategies.optimal import best_plan
from profiler.simulated import SimulatedServer, server_testbed
from profiler.simulated.server import SERVER_CARD
from profiler.testbed import RunRefused
from profiles import ChainLoad, TrafficProfile
from tests.placer.rack import small
from tests.placer.rack.contention.fake_models import FakeSolo, fake_models

FEW = ("1234 at delta 1", "123 at delta 0.5", "1234 at delta 4")


@pytest.fixture(scope="module")
def result() -> Result:
    """Three of Lemur's instances, with models that expect 2 % of every function that has a neighbour."""
    models = fake_models({name: FakeSolo(0.0, 0.001) for name in build_simulated_rack().costs})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(contention, "open_models", lambda *given: models)
        patch.setattr(contention, "lemur_sets", lambda: [one for one in lemur_sets() if one.name in FEW])
        patch.setattr(contention, "MIX_COUNT", 1)
        patch.setattr(
            server_testbed, "FOLLOWED_PACKETS", 64
        )  # packets of which the latency is measured: it does not matter
        return find_experiment("lemur-contention").run(Setting(seed=3))


@pytest.mark.long
def test_rows_count_plans_that_violate_slos(result: Result) -> None:
    """At delta 1, whole cores just reach t_min by cycles, and miss it beside others; with contention it is kept."""
    lemur = result.table.set_index("group").loc["Lemur's sets"]
    assert (lemur["instances"], lemur["planned"], lemur["none_found"]) == (3, 2, 0)
    assert (lemur["violated_by_cycles"], lemur["of_these_kept"], lemur["violated"]) == (1, 1, 0)
    assert lemur["violated_alone"] == 0 and 0.6 < lemur["worst_by_cycles_pct"] < 2
    assert list(result.table["group"]) == ["Lemur's sets", "random mixes"]


@pytest.mark.long
def test_each_plan_has_a_row(result: Result) -> None:
    """With what the testbed measures; nothing where cycles alone give no plan."""
    plans = result.data["plans"].set_index("instance")
    assert plans.loc["123 at delta 0.5", "rounds"] >= 1 and np.isnan(plans.loc["1234 at delta 4", "mbps"])
    kept = plans[plans["mbps"].notna()]
    assert (kept["mbps"] <= kept["by_cycles_mbps"] + 0.1).all()
    assert (kept["error_by_cycles_pct"] >= kept["error_pct"] - 0.001).all()


@pytest.mark.long
def test_notes_are_sentences(result: Result) -> None:
    assert all(sentence.endswith(".") for sentence in (*result.testbeds, *result.notes))


def test_a_scale_chooses_sets_at_several_deltas() -> None:
    """Five of forty at an eighth; all of them at 1 and above."""
    some = contention.chosen_sets(Setting(scale=0.125))
    assert len(some) == 5 and len({instance.name.split()[-1] for instance in some}) > 2
    assert len(contention.chosen_sets(Setting(scale=2.0))) == len(CHAIN_SETS) * len(RATE_DELTAS)


def test_least_rates_are_multiples_of_what_one_core_gives() -> None:
    """Of the slowest function on a server: Encrypt for chains 1 and 2, Dedup for 3 and 4; with the source's cycles."""
    rack = build_simulated_rack()
    source = float(rack.overheads.subgroup_cycles)
    found = {one.name: one for one in lemur_sets()}
    assert len(found) == len(CHAIN_SETS) * len(RATE_DELTAS)
    chains = found["1234 at delta 2"].chains
    for chain, nf in zip(chains, ("Encrypt", "Encrypt", "Dedup", "Dedup"), strict=True):
        cycles = float(rack.costs[nf].server.cycles) + source  # type: ignore[union-attr]
        assert float(chain.slo.t_min_mbps) == pytest.approx(2 * 1700 * 12_000 / cycles, rel=1e-6)
    assert [len(chain.nfs) for chain in chains] == [8, 6, 5, 15] and len(CHAIN_TEXTS) == 4


def test_the_rack_is_the_simulated_server() -> None:
    """With its measured cycles, and IPv4Fwd on the switch only."""
    rack = build_simulated_rack()
    assert rack.costs["IPv4Fwd"].server is None
    assert float(rack.costs["Encrypt"].server.cycles) == pytest.approx(9123, rel=0.01)  # type: ignore[union-attr]
    assert (rack.testbed.spec, rack.testbed.flows, rack.testbed.mtbr) == ("simulated:server", 100_000, 600)


def test_mixes_are_the_same_for_the_same_seed() -> None:
    """Each chain has a function that runs on servers alone."""
    one, same, other = (list(random_mixes(3, np.random.default_rng(seed))) for seed in (1, 1, 2))
    assert one == same != other
    for mix in one:
        assert all({nf.nf for nf in chain.nfs} & set(SOFTWARE_NFS) for chain in mix.chains)


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


@pytest.mark.long
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

"""Plans by cycles alone and with contention in the loop, run on the simulated server."""

from collections.abc import Iterator

import numpy as np
import pytest

from experiments import Result, Setting, find_experiment
from experiments.lemur import contention
from experiments.lemur.contention import CHAIN_TEXTS, SOFTWARE_NFS, build_simulated_rack, lemur_sets, random_mixes
from experiments.lemur.methodology.paper_rack import CHAIN_SETS, RATE_DELTAS
from profiler.simulated import server_testbed
from tests.placer.rack.contention.fake_models import FakeSolo, fake_models

FEW = ("1234 at delta 1", "123 at delta 0.5", "1234 at delta 4")


@pytest.fixture(scope="module")
def result() -> Iterator[Result]:
    """Three of Lemur's instances, with models that expect 2 % of every function that has a neighbour."""
    models = fake_models({name: FakeSolo(0.0, 0.001) for name in build_simulated_rack().costs})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(contention, "open_models", lambda *given: models)
        patch.setattr(contention, "lemur_sets", lambda: [one for one in lemur_sets() if one.name in FEW])
        patch.setattr(contention, "MIX_COUNT", 1)
        patch.setattr(
            server_testbed, "FOLLOWED_PACKETS", 64
        )  # packets of which the latency is measured: it does not matter
        yield find_experiment("lemur-contention").run(Setting(seed=3))


def test_rows_count_plans_that_violate_slos(result: Result) -> None:
    """At delta 1, whole cores just reach t_min by cycles, and miss it beside others; with contention it is kept."""
    lemur = result.table.set_index("group").loc["Lemur's sets"]
    assert (lemur["instances"], lemur["planned"], lemur["none_found"]) == (3, 2, 0)
    assert (lemur["violated_by_cycles"], lemur["of_these_kept"], lemur["violated"]) == (1, 1, 0)
    assert lemur["violated_alone"] == 0 and 0.6 < lemur["worst_by_cycles_pct"] < 2
    assert list(result.table["group"]) == ["Lemur's sets", "random mixes"]


def test_each_plan_has_a_row(result: Result) -> None:
    """With what the testbed measures; nothing where cycles alone give no plan."""
    plans = result.data["plans"].set_index("instance")
    assert plans.loc["123 at delta 0.5", "rounds"] >= 1 and np.isnan(plans.loc["1234 at delta 4", "mbps"])
    kept = plans[plans["mbps"].notna()]
    assert (kept["mbps"] <= kept["by_cycles_mbps"] + 0.1).all()
    assert (kept["error_by_cycles_pct"] >= kept["error_pct"] - 0.001).all()


def test_notes_are_sentences(result: Result) -> None:
    assert all(sentence.endswith(".") for sentence in (*result.testbeds, *result.notes))


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

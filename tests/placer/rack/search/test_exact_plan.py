"""Plans of instances that hinge on one limit, by hand: what random ones seldom meet."""

from __future__ import annotations

import pytest

from placer.rack.files.json_twins import chains_of, rack_of
from placer.rack.options import options_of
from placer.rack.search.branch_and_bound import Search
from placer.rack.stages.block_stages import BlockStages
from tests.placer.rack.checker import faults
from tests.placer.rack.small import ON_SERVER, ON_SWITCH, Json, chain, rack, server
from tests.placer.rack.test_best_plan import answered


def marginal(chains: list[Json], on: Json) -> float | None:
    """Of the best plan, which keeps all limits; None if there is none."""
    found = answered({"chains": chains}, on)
    assert faults({"chains": chains}, on, found) == []
    assert found["status"] == ("optimal" if found["chains"] else "infeasible")
    return found["marginal_mbps"] if found["chains"] else None


@pytest.mark.parametrize(
    "nfs",
    [
        {},  # nothing runs it
        {"smartnic": {"cycles": 10}},  # no server has a SmartNIC
        {"server": {"cycles": 17_000_000}},  # four cores carry 5 Mbps
    ],
)
def test_an_nf_that_fits_nowhere_makes_the_instance_infeasible(nfs: Json) -> None:
    """There is no layout or allocation of cores at all, and that is no fault of the input."""
    assert marginal([chain("a", "X", t_min_mbps=100)], rack({"X": nfs})) is None


def test_a_chain_on_the_switch_alone_needs_no_nic() -> None:
    """No packet crosses a NIC, so that t_max is reached, with and without servers."""
    chains = [chain("a", "XX", t_min_mbps=100)]
    assert marginal(chains, rack({"X": ON_SWITCH})) == 99_900
    assert marginal(chains, rack({"X": ON_SWITCH}, servers=[])) == 99_900


@pytest.mark.parametrize("number", [3, 4, 5])
def test_the_search_ends_where_tables_fit_by_halves(number: int) -> None:
    """Two stages of one block hold two tables; the relaxation shares them between all chains, and the search ends."""
    chains = [chain(f"c{at}", "X", t_min_mbps=100, t_max_mbps=30_000 + at) for at in range(number)]
    on = rack({"X": ON_SERVER | ON_SWITCH}, switch={"stages": 2, "blocks_per_stage": 1})
    largest = [30_000 + at for at in range(number)]
    on_server = {3: 30_000, 4: 40_000, 5: 40_000}[number]  # of its NIC, by one chain or by several
    assert marginal(chains, on) == pytest.approx(sum(largest[-2:]) + on_server - 100 * number)


def test_all_on_the_switch_is_found_where_parts_do_not_fit() -> None:
    """Encapsulation takes two of three stages once packets cross to servers; without, three tables fit in a row.

    Two of the tables do not fit the stage that is left. That forbids them together in every other plan.
    """
    chains = chains_of({"chains": [chain("a", "XXY", t_max_mbps=12_000)]}, "chains")
    on = rack_of(
        rack(
            {"X": ON_SWITCH, "Y": ON_SERVER | ON_SWITCH},
            switch={"stages": 3, "blocks_per_stage": 1},
            overheads={"stages": 2},
        ),
        "rack",
    )
    search = Search(on, [options_of(chains[0], on)], BlockStages(on, chains))
    search.relaxation.cuts.append(frozenset({(0, 0), (0, 1)}))
    assert search.run().marginal == 12_000


def test_a_rate_just_above_what_the_nic_carries_is_not_rounded_to_t_max() -> None:
    """t_max is 5e-7 beyond the NIC: the rate is the NIC's."""
    chains = [chain("a", "X", t_min_mbps=999, t_max_mbps=1000.0005)]
    assert marginal(chains, rack({"X": ON_SERVER}, server("s0", nic_mbps=1000))) == pytest.approx(1, abs=1e-9)


@pytest.mark.long
@pytest.mark.parametrize(
    ("beyond", "fits"),
    [
        (1e-6, False),
        (1e-7, False),  # within the tolerance of solvers
        (3e-9, False),
        (5e-10, True),  # within that of CONTRACTS 9
        (0, True),
    ],
)
@pytest.mark.parametrize("cycles", [0, 17, 1700])
def test_limits_hold_to_a_billionth(beyond: float, fits: bool, cycles: int) -> None:
    """Rates, cores, latency: a limit may be missed by 1e-9 of it and no more, whatever a solver allows itself."""
    costs = {"server": {"cycles": cycles}}
    nics = [server("s0", nic_mbps=1000), server("s1", nic_mbps=1000)]
    alone = [chain("a", "X", t_min_mbps=1000 * (1 + beyond))]
    assert (marginal(alone, rack({"X": costs}, nics[0])) is not None) == fits
    both = [chain("a", "X", t_min_mbps=500 * (1 + 2 * beyond)), chain("b", "X", t_min_mbps=500)]
    assert (marginal(both, rack({"X": costs}, nics[0])) is not None) == fits
    third = chain("c", "X", t_min_mbps=1000)
    assert (marginal([*both, third], rack({"X": costs}, *nics)) is not None) == fits
    if cycles:
        full = [chain("a", "X", t_min_mbps=1700 * 12_000 / cycles * (1 + beyond), t_max_mbps=10**7)]
        assert (marginal(full, rack({"X": costs}, server("s0", cores=1, nic_mbps=10**7))) is not None) == fits
        late = [chain("a", "X", d_max_us=(2 + cycles / 1700) * (1 - beyond))]
        assert (marginal(late, rack({"X": costs})) is not None) == fits

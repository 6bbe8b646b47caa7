"""Options from parts of layouts, against all layouts."""

import time
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from placer.rack.chain import Chain
from placer.rack.files.chains_file import read_chains_file
from placer.rack.files.json_twins import chains_of, rack_of
from placer.rack.files.rack_file import read_rack_file
from placer.rack.layout_arrays import all_layouts, layouts_at
from placer.rack.options import Options, options_at
from placer.rack.plan import Status
from placer.rack.rack import CoreCost, Rack, SmartNic
from placer.rack.search.partial_layouts import undominated_sites
from placer.rack.strategies.optimal import best_plan, exact_plan
from tests.effort import examples
from tests.placer.rack import instances
from tests.placer.rack.instances import Json, faulty

EXAMPLES = Path(__file__).parents[4] / "examples"
GENERATORS = [instances.everyday, instances.edges, instances.openflow, instances.racks, instances.sockets]
ON_SMARTNIC = ("ACL", "LB", "Match", "Tunnel", "Detunnel")


@pytest.mark.parametrize("generator", GENERATORS)
@pytest.mark.long
def test_parts_of_layouts_leave_the_undominated_options_of_all_layouts(generator: instances.Generator) -> None:
    """Rates and needs of both are equal, but for options that no NIC carries at t_min."""

    def differences(chains: Json, rack: Json) -> list[str]:
        on = rack_of({**rack, "servers": [{**server, "shared_cores": False} for server in rack["servers"]]}, "rack")
        return [chain.name for chain in chains_of(chains, "chains") if _of_all(chain, on) != _of_parts(chain, on)]

    assert not faulty(differences, generator, range(examples(100)))


def _of_all(chain: Chain, rack: Rack) -> set[tuple[float, ...]]:
    found = options_at(all_layouts(chain, rack), rack)
    limits = np.repeat([float(nic.mbps) for nic in rack.nics], 2) * (1 + 1e-9)
    carried = (found.nic_shares * float(chain.slo.t_min_mbps) <= limits).all(axis=1)
    return _numbers(found.at(np.flatnonzero(carried)), rack)


def _of_parts(chain: Chain, rack: Rack) -> set[tuple[float, ...]]:
    found = undominated_sites(chain, rack, range(len(chain.nfs)))
    assert found.complete
    return _numbers(options_at(layouts_at(chain, rack, found.sites), rack), rack)


def _numbers(options: Options, rack: Rack) -> set[tuple[float, ...]]:
    tables = options.on_switch & (rack.switch.usable_stages is not None)
    rows = np.hstack([options.rate[:, None], options.cores, options.nic_shares, tables])
    found = {tuple(float(f"{number:.9g}") for number in row) for row in rows}
    # sums in another order differ in the last digits, so that one of two layouts may need as much and no table
    return {row for row in found if not any(_dominates(other, row) for other in found if other != row)}


def _dominates(row: tuple[float, ...], other: tuple[float, ...]) -> bool:
    return row[0] >= other[0] and all(less <= more for less, more in zip(row[1:], other[1:], strict=True))


def two_servers(stages: int | None) -> tuple[tuple[Chain, ...], Rack]:
    """Lemur's chains 1 to 4 on two servers of eight cores, each with a SmartNIC: chain 4 has 62,500,000 layouts."""
    on = read_rack_file(EXAMPLES / "rack.toml")
    costs = {
        nf: replace(cost, smartnic=CoreCost(cost.server.cycles / 10)) if nf in ON_SMARTNIC and cost.server else cost
        for nf, cost in on.costs.items()
    }
    servers = tuple(
        replace(on.servers[0], name=f"s{at}", cores=8, smartnic=SmartNic(f"n{at}", 3, Fraction(1000))) for at in (0, 1)
    )
    switch = replace(on.switch, stages=stages)
    return read_chains_file(EXAMPLES / "edge.chains").chains, replace(on, costs=costs, servers=servers, switch=switch)


@pytest.mark.parametrize("stages", [None, 12])
@pytest.mark.long
def test_two_servers_with_smartnics_are_proven_optimal(stages: int | None) -> None:
    """In seconds, where all layouts of chain 4 would take hours."""
    plan = exact_plan(*two_servers(stages), time_limit=120)
    assert plan.status is Status.OPTIMAL
    assert plan.marginal_mbps == pytest.approx(18432.3, abs=0.1)


@pytest.mark.long
def test_where_the_time_ends_there_is_still_a_plan() -> None:
    """Twelve stages of one block: which of all tables are there decides, and there are too many choices."""
    chains, rack = two_servers(12)
    rack = replace(rack, switch=replace(rack.switch, blocks_per_stage=1))
    plan = best_plan(chains, rack, time_limit=2)
    assert plan.status is Status.FEASIBLE and len(plan.chains) == len(chains)
    assert plan.bound_mbps is not None and plan.bound_mbps > plan.marginal_mbps


def test_the_clock_ends_a_search_for_options() -> None:
    """A search that is out of time at once has a plan or none, but proves nothing."""
    begin = time.process_time()
    plan = exact_plan(*two_servers(12), time_limit=0.2)
    assert plan.status in (Status.FEASIBLE, Status.UNKNOWN)
    assert plan.bound_mbps is not None and plan.bound_mbps > 18432
    assert time.process_time() - begin < 3

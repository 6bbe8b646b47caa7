"""Optimal: the plan with the largest marginal throughput, proven where it can be."""

import time
from collections.abc import Sequence
from dataclasses import replace
from math import prod

from placer.rack.chain import Chain, same_but_for_names
from placer.rack.options import Options, options_of, possible_sites
from placer.rack.plan import ChainPlan, Layout, RackPlan, Status, refine_rates
from placer.rack.rack import Rack
from placer.rack.search.branch_and_bound import Found, Search
from placer.rack.search.fleet_plan import fleet_plan
from placer.rack.stages.stage_oracles import stage_oracle
from placer.rack.strategies import Notify, register

FEW_SERVERS = 2
FEW_LAYOUTS = 100_000
"""Of all chains together, for which the exact search is tried on more than a few servers."""


@register("optimal")
def best_plan(
    chains: Sequence[Chain], rack: Rack, *, time_limit: float = 60.0, notify: Notify = lambda message: None
) -> RackPlan:
    """The plan with the largest marginal throughput.

    On a few servers the search is exact. On more, column generation comes first (`search/fleet_plan.py`), and the exact
    search follows where its plan is not proven and the instance is small. `time_limit`: seconds for the search; after
    them the plan is `feasible`, with the bound that was reached.
    """
    if len(rack.servers) <= FEW_SERVERS:
        return exact_plan(chains, rack, time_limit=time_limit)
    plan = fleet_plan(chains, rack, time_limit=time_limit, notify=notify)
    left = time_limit - plan.seconds
    if plan.status in (Status.OPTIMAL, Status.INFEASIBLE) or left <= 0 or layouts_in_all(chains, rack) > FEW_LAYOUTS:
        return plan
    return _better(plan, exact_plan(chains, rack, time_limit=left))


def layouts_in_all(chains: Sequence[Chain], rack: Rack) -> float:
    """How many layouts there are, before any is left out."""
    return sum(prod(float(len(sites)) for sites in possible_sites(chain, rack)) for chain in chains)


def _better(one: RackPlan, other: RackPlan) -> RackPlan:
    """The better of two plans, with the lower bound of both."""
    seconds = one.seconds + other.seconds
    if other.status in (Status.OPTIMAL, Status.INFEASIBLE):
        return replace(other, seconds=seconds)
    best = max((one, other), key=lambda plan: plan.marginal_mbps if plan.chains else float("-inf"))
    bounds = [plan.bound_mbps for plan in (one, other) if plan.bound_mbps is not None]
    return replace(best, bound_mbps=min(bounds, default=None), seconds=seconds)


def exact_plan(chains: Sequence[Chain], rack: Rack, *, time_limit: float = 60.0) -> RackPlan:
    """The best plan by branch and bound over all layouts of all chains (`search/branch_and_bound.py`)."""
    begin = time.perf_counter()
    known: dict[object, Options] = {}
    options = []
    for chain in chains:
        same = same_but_for_names(chain)
        if same not in known:
            known[same] = options_of(chain, rack)
        one = known[same]
        options.append(one)
    if any(len(option) == 0 for option in options):
        return RackPlan(rack, Status.INFEASIBLE, seconds=time.perf_counter() - begin)
    found = Search(rack, options, stage_oracle(rack, chains), time_limit).run()
    return plan_found(found, options, chains, rack, time.perf_counter() - begin)


def plan_found(
    found: Found, options: Sequence[Options], chains: Sequence[Chain], rack: Rack, seconds: float
) -> RackPlan:
    """What a search found, as a plan with rates that keep every limit exactly."""
    if found.chosen is None:
        status = Status.UNKNOWN if found.bound > float("-inf") else Status.INFEASIBLE
        return RackPlan(rack, status, bound_mbps=found.bound if status is Status.UNKNOWN else None, seconds=seconds)
    rough = [
        place_chain(chain, one, row, rack, 0.0) for chain, one, row in zip(chains, options, found.chosen, strict=True)
    ]
    rates = refine_rates(
        [chain_plan.layout for chain_plan in rough], [chain_plan.most_mbps for chain_plan in rough], found.rates
    )
    placed_chains = tuple(ChainPlan(one.layout, rate, one.cores) for one, rate in zip(rough, rates, strict=True))
    plan = RackPlan(rack, Status.OPTIMAL if found.proven else Status.FEASIBLE, placed_chains, found.bound, seconds)
    return RackPlan(rack, plan.status, placed_chains, max(found.bound, plan.marginal_mbps), seconds)


def place_chain(chain: Chain, options: Options, row: int, rack: Rack, rate_mbps: float) -> ChainPlan:
    """An option of a chain, or of one that is equal but for its names, as a placed chain."""
    sites = tuple(int(site) for site in options.layouts.sites[options.layout[row]])
    layout = Layout(chain, rack, sites)
    cores = tuple(int(options.group_cores[row, group.nfs[0]]) for group in layout.subgroups)
    return ChainPlan(layout, rate_mbps, cores)

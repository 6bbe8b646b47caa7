"""Optimal: the plan with the largest marginal throughput, proven where it can be."""

import time
from collections.abc import Iterable, Sequence
from dataclasses import replace
from fractions import Fraction
from math import prod

import numpy as np

from placer.rack.chain import Chain, TableId
from placer.rack.layout_arrays import possible_sites
from placer.rack.options import Options
from placer.rack.plan import ChainPlan, Layout, RackPlan, Status, refine_rates
from placer.rack.rack import Rack
from placer.rack.search.branch_and_bound import Found, Search
from placer.rack.search.fleet_bound import classes_of
from placer.rack.search.fleet_plan import fleet_plan
from placer.rack.search.partial_layouts import FoundOptions, find_options
from placer.rack.stages.stage_oracles import stage_oracle
from placer.rack.strategies import Notify, register
from placer.rack.strategies.lemur import lemur
from profiles import InputError

NOTHING_FOUND = Found(None, np.empty(0), float("-inf"), float("inf"), 0)
FOR_THE_HEURISTIC = 0.05  # a share of the time, beyond its end
FOR_OPTIONS = 0.8  # the share of the time that is left which finding options may take
FEW_SERVERS = 2
FEW_LAYOUTS = 100_000
"""Of all chains together, for which the exact search is tried on more than a few servers."""


@register("optimal")
def best_plan(
    chains: Sequence[Chain], rack: Rack, *, time_limit: float = 60.0, notify: Notify = lambda message: None
) -> RackPlan:
    """The plan with the largest marginal throughput.

    On a few servers the search is exact; where the time ends it, the plan of Lemur's heuristic counts, too. On more,
    column generation comes first (`search/fleet_plan.py`), and the exact search follows where its plan is not proven
    and the instance is small. With several sockets, NICs or shared cores, there is only the exact search; of shared
    cores the plan with whole ones counts, too, where that does not end in time or a chain has too many layouts.
    `time_limit`: seconds for the search; after them the plan is `feasible`, with the bound that was reached.
    """
    if not rack.is_simple:
        begin = time.perf_counter()
        try:
            plan = exact_plan(chains, rack, time_limit=time_limit)
        except InputError:  # a chain has too many layouts
            if rack.core_parts == 1:
                raise
            plan = RackPlan(rack, Status.UNKNOWN, (), _largest_marginal(chains), time.perf_counter() - begin)
        if plan.status in (Status.OPTIMAL, Status.INFEASIBLE) or rack.core_parts == 1:
            return plan
        # whole cores are a simpler question
        servers = tuple(replace(server, shared_cores=False) for server in rack.servers)
        left = max(FOR_THE_HEURISTIC * time_limit, time_limit - plan.seconds)
        whole = exact_plan(chains, replace(rack, servers=servers), time_limit=left)
        placed = tuple(replace(chain, layout=replace(chain.layout, rack=rack)) for chain in whole.chains)
        status = Status.FEASIBLE if placed else Status.UNKNOWN
        return _better(plan, RackPlan(rack, status, placed, None, whole.seconds))
    if len(rack.servers) <= FEW_SERVERS:
        plan = exact_plan(chains, rack, time_limit=time_limit)
        if plan.status in (Status.OPTIMAL, Status.INFEASIBLE):
            return plan
        # of a chain with many layouts only some were looked at: the heuristic may have a better one
        return _or_heuristic(plan, time_limit, notify, chains)
    plan = fleet_plan(chains, rack, time_limit=time_limit, notify=notify)
    if plan.status is Status.UNKNOWN:
        plan = _or_heuristic(plan, time_limit, notify, chains)
    left = time_limit - plan.seconds
    if plan.status in (Status.OPTIMAL, Status.INFEASIBLE) or left <= 0 or layouts_in_all(chains, rack) > FEW_LAYOUTS:
        return plan
    return _better(plan, exact_plan(chains, rack, time_limit=left))


def layouts_in_all(chains: Sequence[Chain], rack: Rack) -> float:
    """How many layouts there are, before any is left out."""
    return sum(prod(float(len(sites)) for sites in possible_sites(chain, rack)) for chain in chains)


def _largest_marginal(chains: Sequence[Chain]) -> float:
    """What all chains have at their t_max, Mbps."""
    return sum(float(chain.slo.t_max_mbps - chain.slo.t_min_mbps) for chain in chains)


def _or_heuristic(plan: RackPlan, time_limit: float, notify: Notify, chains: Sequence[Chain]) -> RackPlan:
    """The plan, or that of Lemur's heuristic where that is better, and no chain has too many layouts for it."""
    try:
        return _better(plan, lemur(chains, plan.rack, time_limit=FOR_THE_HEURISTIC * time_limit, notify=notify))
    except InputError:
        return plan


def _better(one: RackPlan, other: RackPlan) -> RackPlan:
    """The better of two plans, with the lower bound of both."""
    seconds = one.seconds + other.seconds
    if other.status in (Status.OPTIMAL, Status.INFEASIBLE):
        return replace(other, seconds=seconds)
    best = max((one, other), key=lambda plan: plan.marginal_mbps if plan.chains else float("-inf"))
    bounds = [plan.bound_mbps for plan in (one, other) if plan.bound_mbps is not None]
    return replace(best, bound_mbps=min(bounds, default=None), seconds=seconds)


def exact_plan(chains: Sequence[Chain], rack: Rack, *, time_limit: float = 60.0) -> RackPlan:
    """The best plan by branch and bound over the options of all chains (`search/branch_and_bound.py`).

    Where a chain has many layouts, its options count only tables that were found not to fit together. The search begins
    again with more of them, until those that it did not count fit. `time_limit`: seconds, also for finding options.
    """
    begin = time.perf_counter()
    until = time.monotonic() + time_limit
    stages, options = stage_oracle(rack, chains), ChainOptions(chains, rack)
    best, bound, cuts = NOTHING_FOUND, float("inf"), list[frozenset[TableId]]()
    best_options: Sequence[Options] = []
    while True:
        options.find(time.monotonic() + FOR_OPTIONS * (until - time.monotonic()))
        each = options.of_chains()
        if any(len(one.options) == 0 and one.complete for one in each):
            return RackPlan(rack, Status.INFEASIBLE, seconds=time.perf_counter() - begin)
        if any(len(one.options) == 0 for one in each):
            break
        search = Search(
            rack, [one.options for one in each], stages, until - time.monotonic(), [one.tables for one in each]
        )
        search.relaxation.cuts += cuts
        found = search.run()
        complete = all(one.complete for one in each)
        bound = min(bound, found.bound) if complete else bound
        if found.marginal > best.marginal:
            best, best_options = found, search.options
        if not search.uncounted or not complete or time.monotonic() > until:
            break
        cuts = search.relaxation.cuts
        options.count(search.uncounted)
    if bound == float("inf"):  # options are not complete
        bound = _largest_marginal(chains)
    proven = replace(best, bound=max(bound, best.marginal))
    return plan_found(proven, best_options, chains, rack, time.perf_counter() - begin)


class ChainOptions:
    """The options of chains, found once for those that differ only in their names."""

    def __init__(self, chains: Sequence[Chain], rack: Rack) -> None:
        self.rack = rack
        self.classes = classes_of(chains)
        self.class_of = {number: at for at, numbers in enumerate(self.classes) for number in numbers}
        self.firsts = [chains[numbers[0]] for numbers in self.classes]
        self.counted: list[frozenset[int]] = [frozenset() for _ in self.classes]
        self.found: list[FoundOptions | None] = [None for _ in self.classes]

    def find(self, until: float) -> None:
        """Find options where there are none, or where they do not count all tables that they must."""
        for at, (chain, counted, known) in enumerate(zip(self.firsts, self.counted, self.found, strict=True)):
            if known is None or not counted <= known.tables:
                now = time.monotonic()
                share = 1 if self.rack.is_simple else 1 / (len(self.firsts) - at)
                self.found[at] = find_options(chain, self.rack, counted, now + share * (until - now))

    def count(self, tables: Iterable[TableId]) -> None:
        """From now on, options count these tables."""
        for number, nf in tables:
            self.counted[self.class_of[number]] |= {nf}

    def of_chains(self) -> list[FoundOptions]:
        """Those of each chain."""
        return [one for number in range(len(self.class_of)) if (one := self.found[self.class_of[number]]) is not None]


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
    given = [int(options.group_cores[row, group.nfs[0]]) for group in layout.subgroups]
    return ChainPlan(layout, rate_mbps, tuple(cores if cores > 0 else Fraction(1, -cores) for cores in given))

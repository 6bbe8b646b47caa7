"""The best plan of chains on a rack, proven."""

from __future__ import annotations

import time
from collections.abc import Sequence
from fractions import Fraction

from placer.chains.chain import Chain
from placer.chains.options import Options, options_of
from placer.chains.plan import PlacedChain, RackPlan, Status, placed, refined_rates
from placer.chains.rack import Rack
from placer.chains.search import Found, Search
from placer.chains.stages import BlockStages


def best_plan(chains: Sequence[Chain], rack: Rack, *, time_limit: float = 60.0) -> RackPlan:
    """The plan with the largest marginal throughput.

    Parameters
    ----------
    time_limit
        Seconds for the search; after them the plan is `feasible`, with the bound that was reached.
    """
    begin = time.perf_counter()
    known: dict[object, Options] = {}
    options = []
    for chain in chains:
        same = (chain.packet_size, chain.slo, tuple(nf.nf for nf in chain.nfs), chain.edges)
        if same not in known:
            known[same] = options_of(chain, rack)
        one = known[same]
        options.append(one)
    if any(len(one) == 0 for one in options):
        return RackPlan(rack, Status.INFEASIBLE, seconds=time.perf_counter() - begin)
    found = Search(rack, options, BlockStages(rack, chains), time_limit).run()
    return _plan(found, options, chains, rack, time.perf_counter() - begin)


def _plan(found: Found, options: Sequence[Options], chains: Sequence[Chain], rack: Rack, seconds: float) -> RackPlan:
    if found.chosen is None:
        status = Status.UNKNOWN if found.bound > float("-inf") else Status.INFEASIBLE
        return RackPlan(rack, status, bound_mbps=found.bound if status is Status.UNKNOWN else None, seconds=seconds)
    rough = [placed(chain, one, row, rack, 0.0) for chain, one, row in zip(chains, options, found.chosen, strict=True)]
    rates = refined_rates([one.layout for one in rough], [_cap(one) for one in rough], found.rates)
    placed_chains = tuple(PlacedChain(one.layout, rate, one.cores) for one, rate in zip(rough, rates, strict=True))
    plan = RackPlan(rack, Status.OPTIMAL if found.proven else Status.FEASIBLE, placed_chains, found.bound, seconds)
    return RackPlan(rack, plan.status, placed_chains, max(found.bound, plan.marginal_mbps), seconds)


def _cap(one: PlacedChain) -> Fraction:
    """The largest rate that the cores of a chain allow."""
    devices, bits = one.layout.rack.devices, one.chain.packet_bits
    rates = [group.rate(cores, devices[group.device], bits) for group, cores in one.subgroups]
    return min([one.chain.slo.t_max_mbps, *(rate for rate in rates if rate is not None)])

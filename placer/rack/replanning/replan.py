"""Replanning: a plan for changed chains that keeps every SLO, moves as few NFs as possible, and then is the fastest.

A move is an NF of a chain that stays and changes its device; NFs of new chains move nothing, and cores may change
hands freely. On few servers the answer is exact. On many, `replan_servers.py` looks at the servers that a change
touches first.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from placer.rack.chain import Chain
from placer.rack.plan import RackPlan, Status
from placer.rack.rack import Rack
from placer.rack.replanning.moves import NfMove, OldPlaces, find_kept_sites, list_moves
from placer.rack.replanning.replan_search import Replanning
from placer.rack.replanning.replan_servers import ServerReplanning
from placer.rack.stages.stage_oracles import stage_oracle
from placer.rack.strategies.optimal import FEW_LAYOUTS, FEW_SERVERS, layouts_in_all

Notify = Callable[[str], None]
PROVEN_STATUSES = (Status.OPTIMAL, Status.INFEASIBLE)


@dataclass(frozen=True)
class Replanned:
    """A plan after a change.

    `plan`: its bound, and `optimal`, are for plans with as few moves. `moves`: NFs that change their device.
    `least_moves`: no plan that keeps the SLOs makes fewer, proven. `enough_moves`: where no plan keeps within the
    limit: so many moves would do, if that is known.
    """

    plan: RackPlan
    moves: tuple[NfMove, ...]
    least_moves: int
    enough_moves: int | None = None

    @property
    def fewest_proven(self) -> bool:
        """Whether no plan needs fewer moves."""
        return bool(self.plan.chains) and len(self.moves) <= self.least_moves


def replan(
    chains: Sequence[Chain],
    rack: Rack,
    old: OldPlaces,
    *,
    most_moves: int | None = None,
    time_limit: float = 60.0,
    notify: Notify = lambda message: None,
) -> Replanned:
    """The plan that keeps all SLOs with the fewest moves, and of those the one with the largest marginal throughput.

    `most_moves`: None: any number. `time_limit`: seconds; after them the best plan so far is returned.
    """
    rack.refuse_for("a new plan with few moves", "`placer chain place`: a plan without regard to moves")
    begin = time.perf_counter()
    until = time.monotonic() + time_limit
    kept = [find_kept_sites(chain, rack, old) for chain in chains]
    if len(rack.servers) <= FEW_SERVERS:
        found = Replanning(chains, rack, kept, stage_oracle(rack, chains)).fewest(until=until)
    else:
        found = ServerReplanning(chains, rack, kept, until, notify).fewest()
        if found.plan.status not in PROVEN_STATUSES and layouts_in_all(chains, rack) <= FEW_LAYOUTS:
            exact = Replanning(chains, rack, kept, stage_oracle(rack, chains)).fewest(first=found.least, until=until)
            found = exact if exact.plan.status in PROVEN_STATUSES else found
    plan = replace(found.plan, rack=rack, seconds=time.perf_counter() - begin)
    moves = tuple(list_moves(plan, old))
    if not plan.chains or most_moves is None or len(moves) <= most_moves:
        return Replanned(plan, moves, found.least)
    status = Status.INFEASIBLE if found.least > most_moves else Status.UNKNOWN
    return Replanned(RackPlan(rack, status, seconds=plan.seconds), (), found.least, len(moves))

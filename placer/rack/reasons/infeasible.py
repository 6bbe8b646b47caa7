"""Why chains do not fit a rack: a minimal conflict, and what would have to change, each alone.

A relaxation is the smallest change of one number that makes the chains fit: a lower t_min, a higher d_max, more cores,
a faster NIC, more blocks in each stage. A conflict is a set of limits that cannot be kept together, of which none could
be left out.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from placer.rack.chain import Chain
from placer.rack.layout_arrays import Layouts, layouts_in_parts
from placer.rack.plan import Limit, LimitChange, RackPlan, Status
from placer.rack.rack import Rack
from placer.rack.search.fleet_bound import equal_servers
from placer.rack.strategies.optimal import exact_plan
from profiles import InputError

MORE_CORES = 1024  # extra cores, or blocks of a stage, beyond which none help
MOST_MBPS = Fraction(10**9)
CLOSE_RELAXATION = Fraction(1, 10_000)  # relative, how close a relaxed NIC is to the least one that is enough
FOR_CHANGES = 0.6  # the share of the time that is spent on changes; the rest is left for a conflict


def explain_infeasible(plan: RackPlan, chains: Sequence[Chain], *, seconds: float = 30.0) -> RackPlan:
    """An infeasible plan with a conflict and the changes that are enough; any other plan as it is."""
    if plan.status is not Status.INFEASIBLE:
        return plan
    begin = time.perf_counter()
    changes = tuple(Infeasible(chains, plan.rack, seconds * FOR_CHANGES).relaxations())
    left = seconds - (time.perf_counter() - begin)
    return replace(plan, changes=changes, conflict=tuple(Infeasible(chains, plan.rack, left).conflict()))


@dataclass
class Infeasible:
    """An instance without a plan."""

    chains: Sequence[Chain]
    rack: Rack
    seconds: float = 30.0  # for all questions together; those that were not answered in time are left out

    def __post_init__(self) -> None:
        self.until = time.monotonic() + self.seconds
        equal = equal_servers(self.rack)
        self.group_of = {server: group for group, servers in enumerate(equal) for server in servers}

    def fits(self, chains: Sequence[Chain], rack: Rack) -> bool:
        """Whether every chain can have its least rate. Raises TimeoutError when this is not known in time."""
        return self._least_plan(chains, rack) is not None

    def _least_plan(self, chains: Sequence[Chain], rack: Rack) -> RackPlan | None:
        least = [
            replace(chain, slo=replace(chain.slo, t_max_mbps=max(chain.slo.t_min_mbps, Fraction(1))))
            for chain in chains
        ]
        plan = exact_plan(least, rack, time_limit=max(self.until - time.monotonic(), 0.0))
        if plan.status is Status.UNKNOWN:
            raise TimeoutError
        return None if plan.status is Status.INFEASIBLE else plan

    def relaxations(self) -> Iterator[LimitChange]:
        """Changes that are enough alone, those of chains first."""
        for ask in (self._rates, self._latencies, self._cores, self._nics, self._blocks):
            try:
                yield from ask()
            except TimeoutError:  # the next question may be a shorter one
                continue

    def conflict(self) -> list[Limit]:
        """Limits that cannot be kept together, of which none could be left out.

        None where no limit is the cause, and where the time was not enough.
        """
        kept = list(_limits(self.chains, self.rack))
        kinds = [
            {limit for limit in kept if limit.kind == kind} for kind in dict.fromkeys(limit.kind for limit in kept)
        ]
        try:
            if not self.fits(*self._without([])):
                return []
            for part in [*kinds, *({limit} for limit in kept)]:
                fewer = [limit for limit in kept if limit not in part]
                if len(fewer) < len(kept) and not self.fits(*self._without(fewer)):
                    kept = fewer
        except TimeoutError:
            return []
        return kept

    def _without(self, kept: Sequence[Limit]) -> tuple[list[Chain], Rack]:
        """The instance with only these limits."""
        chains = [self._freed(chain, kept) for chain in self.chains]
        rack = self.rack
        for limit in _limits(self.chains, self.rack):
            if limit not in kept:
                rack = _widen(rack, limit, None)
        return chains, rack

    @staticmethod
    def _freed(chain: Chain, kept: Sequence[Limit]) -> Chain:
        slo = chain.slo
        if Limit("t_min", chain.name) not in kept:
            slo = replace(slo, t_min_mbps=Fraction(0))
        if Limit("d_max", chain.name) not in kept:
            slo = replace(slo, d_max_us=None)
        return replace(chain, slo=slo)

    def _with_latency(self, number: int, d_max_us: Fraction) -> list[Chain]:
        chains = list(self.chains)
        chains[number] = replace(chains[number], slo=replace(chains[number].slo, d_max_us=d_max_us))
        return chains

    def _rates(self) -> Iterator[LimitChange]:
        """Per chain the largest t_min that the others leave it."""
        for number, chain in enumerate(self.chains):
            if not chain.slo.t_min_mbps:
                continue
            chains = [replace(chain, slo=replace(chain.slo, t_max_mbps=chain.slo.t_min_mbps)) for chain in self.chains]
            slo = replace(chain.slo, t_min_mbps=Fraction(0), t_max_mbps=chain.slo.t_min_mbps)
            chains[number] = replace(chain, slo=slo)
            plan = exact_plan(chains, self.rack, time_limit=max(self.until - time.monotonic(), 0.0))
            if plan.status is Status.UNKNOWN:
                raise TimeoutError
            if plan.chains and (rate := plan.chains[number].rate_mbps) > 0:
                yield LimitChange(Limit("t_min", chain.name), rate)

    def _latencies(self) -> Iterator[LimitChange]:
        """Per chain the least d_max; it is the latency of one of its layouts."""
        for number, chain in enumerate(self.chains):
            if chain.slo.d_max_us is None:
                continue
            free = replace(chain, slo=replace(chain.slo, d_max_us=None))
            latencies = np.unique(np.concatenate([part.latency_us for part in self._parts(free)]))
            values = [Fraction(float(latency)) for latency in latencies if latency > float(chain.slo.d_max_us)]

            def fits(at: int, number: int = number, values: Sequence[Fraction] = values) -> bool:
                return self.fits(self._with_latency(number, values[at]), self.rack)

            if (at := _first(len(values), fits)) is not None:
                yield LimitChange(Limit("d_max", chain.name), float(values[at]))

    def _parts(self, chain: Chain) -> Iterator[Layouts]:
        """The layouts of a chain. Raises TimeoutError when they are too many for the time that is left."""
        try:
            for layouts in layouts_in_parts(chain, self.rack):
                if time.monotonic() > self.until:
                    raise TimeoutError
                yield layouts
        except InputError:
            raise TimeoutError from None

    def _cores(self) -> Iterator[LimitChange]:
        known: dict[tuple[int, int, bool], int | None] = {}
        for pool in self.rack.pools:
            limit, kind = Limit("cores", pool.name), (self.group_of[pool.server], pool.socket, pool.is_smartnic)
            if kind not in known:
                known[kind] = self._more(limit)
            if (more := known[kind]) is not None:
                yield LimitChange(limit, float(_value(self.rack, limit) + more))

    def _blocks(self) -> Iterator[LimitChange]:
        if self.rack.switch.usable_stages is not None and self.rack.stage_oracle == "blocks":
            limit = Limit("blocks", "switch")
            if (more := self._more(limit)) is not None:
                yield LimitChange(limit, float(_value(self.rack, limit) + more))

    def _more(self, limit: Limit) -> int | None:
        """The least number of more cores or blocks that is enough."""
        now = _value(self.rack, limit)

        def fits(at: int) -> bool:
            return self.fits(self.chains, _widen(self.rack, limit, now + at + 1))

        at = _first(MORE_CORES, fits)
        return None if at is None else at + 1

    def _nics(self) -> Iterator[LimitChange]:
        known: dict[tuple[int, int], float | None] = {}
        for number, nic in enumerate(self.rack.nics):
            first = next(at for at, other in enumerate(self.rack.nics) if other.server == nic.server)
            group = self.group_of[nic.server], number - first
            if group not in known:
                known[group] = self._least_nic(number)
            if (to := known[group]) is not None:
                yield LimitChange(Limit("nic_mbps", nic.name), to)

    def _least_nic(self, number: int) -> float | None:
        """The least Mbps of one NIC that are enough: what it carries in some plan."""
        limit = Limit("nic_mbps", self.rack.nics[number].name)
        low, high = self.rack.nics[number].mbps, self._carry(limit, number, None)
        if high is None:
            return None
        step = CLOSE_RELAXATION  # first just below: often no other plan carries less
        while high - low > CLOSE_RELAXATION * high:
            middle = high - step * (high - low)
            found = self._carry(limit, number, middle)
            low, high = (low, found) if found is not None else (middle, high)
            step = Fraction(1, 2)
        return float(high)

    def _carry(self, limit: Limit, number: int, to: Fraction | None) -> Fraction | None:
        """What a NIC carries in a plan for another limit of it; None without a plan."""
        plan = self._least_plan(self.chains, _widen(self.rack, limit, to))
        if plan is None:
            return None
        carried = dict.fromkeys(("in", "out"), Fraction(0))
        for chain in plan.chains:
            for (nic, way), share in chain.layout.nic_shares.items():
                if nic == number:
                    carried[way] += share * chain.chain.slo.t_min_mbps
        return max(carried.values())


def _limits(chains: Sequence[Chain], rack: Rack) -> Iterator[Limit]:
    for chain in chains:
        if chain.slo.t_min_mbps:
            yield Limit("t_min", chain.name)
        if chain.slo.d_max_us is not None:
            yield Limit("d_max", chain.name)
    for pool in rack.pools:
        yield Limit("cores", pool.name)
    for nic in rack.nics:
        yield Limit("nic_mbps", nic.name)
    if rack.switch.usable_stages is not None:
        yield Limit("blocks", "switch")


def _value(rack: Rack, limit: Limit) -> int:
    """The number of cores of a device or socket, without reserved ones subtracted, or of blocks of a stage."""
    if limit.kind == "blocks":
        return rack.switch.blocks_per_stage
    owners = {
        name: socket.cores
        for server in rack.servers
        for name, socket in zip(server.socket_names, server.each_socket, strict=True)
    }
    owners |= {server.smartnic.name: server.smartnic.cores for server in rack.servers if server.smartnic}
    return owners[limit.of]


def _widen(rack: Rack, limit: Limit, to: Fraction | int | None) -> Rack:
    """The rack with another value of a limit; None for one that never matters. Limits of chains change nothing."""
    if limit.kind == "blocks":
        switch = replace(rack.switch, stages=None) if to is None else replace(rack.switch, blocks_per_stage=int(to))
        return replace(rack, switch=switch)
    servers = list(rack.servers)
    for at, server in enumerate(servers):
        card = server.smartnic
        if limit.kind == "nic_mbps" and limit.of in server.nic_names:
            mbps, nics = MOST_MBPS if to is None else Fraction(to), list(server.nics)
            if nics:
                number = server.nic_names.index(limit.of)
                nics[number] = replace(nics[number], mbps=mbps)
                mbps = sum((nic.mbps for nic in nics), Fraction(0))
            servers[at] = replace(server, nic_mbps=mbps, nics=tuple(nics))
        elif limit.kind == "cores" and limit.of in server.socket_names:
            more = MORE_CORES if to is None else int(to) - _value(rack, limit)
            sockets = list(server.sockets)
            if sockets:
                number = server.socket_names.index(limit.of)
                sockets[number] = replace(sockets[number], cores=sockets[number].cores + more)
            servers[at] = replace(server, cores=server.cores + more, sockets=tuple(sockets))
        elif limit.kind == "cores" and card and card.name == limit.of:
            cores = card.cores + MORE_CORES if to is None else int(to)
            servers[at] = replace(server, smartnic=replace(card, cores=cores))
    return replace(rack, servers=tuple(servers))


def _first(values: int, fits: Callable[[int], bool]) -> int | None:
    """The first of so many numbers that fits, where all after one that fits do, too; None if the last does not."""
    if not values or not fits(values - 1):
        return None
    low, high = 0, 1
    while high < values and not fits(high - 1):
        low, high = high, high * 2
    high = min(high, values)
    while low < high - 1:
        middle = (low + high) // 2
        low, high = (low, middle) if fits(middle - 1) else (middle, high)
    return high - 1

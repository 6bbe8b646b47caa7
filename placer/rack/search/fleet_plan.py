"""Plans for many servers: column generation over what servers hold, then whole numbers of each content.

Servers that differ only in their names form a group. A chain is placed on one server and the switch; `fleet_bound.py`
bounds all plans, also those that split chains over servers.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import Bounds, LinearConstraint
from scipy.sparse import csr_array, diags_array, eye_array, hstack

from placer.rack.chain import Chain
from placer.rack.options import Options
from placer.rack.plan import SWITCH_SITE, ChainPlan, Layout, RackPlan, Status
from placer.rack.rack import Rack
from placer.rack.search.fleet_bound import classes_of, equal_servers, fleet_bound
from placer.rack.search.partial_layouts import find_options
from placer.rack.stages.stage_oracles import StageOracle, stage_oracle, with_blocks_of
from profiles.arrays import Floats, Ints
from profiles.linear_programs import linprog, milp

PROVEN_GAP = 1e-9
LEAST_IMPROVEMENT = 1e-6  # relative; contents that improve the relaxation by less are not looked for
FEWER_BLOCKS = 0.9  # the share of blocks that is tried next where tables do not fit the stages
WHOLE_WEIGHT = 1e-6  # by how much a weight may miss a whole number
WANTED_GAP = 1e-4  # relative gap at which the search for whole numbers ends
FOR_BOUND = 0.4  # the share of the time in which the bound is found, or left at the sum of all t_max
FOR_OPTIONS = 0.4  # the share of what then is left in which options of chains are found
FOR_SETS = 0.4  # the share of what then is left in which the best contents of sets of chains are found
FEW_SETS = 64  # of chains: the best content of each of them is found first


@dataclass(frozen=True)
class _Column:
    group: int
    content: Content


@dataclass(frozen=True)
class _Relaxed:
    """A solution of the relaxation: weights of contents; prices of chains, servers and blocks."""

    mbps: float
    unplaced: float  # chains that no content holds, in parts
    weights: Floats
    prices: Floats
    opening: Floats
    block_price: float


class FleetProgram:
    """The program over contents of servers."""

    def __init__(
        self, chains: Sequence[Chain], rack: Rack, until: float, notify: Callable[[str], None] = lambda message: None
    ) -> None:
        self.chains, self.rack, self.until, self.notify = chains, rack, until, notify
        self.classes = classes_of(chains)
        self.sizes = np.array([len(numbers) for numbers in self.classes])
        self.groups = equal_servers(rack)
        self.racks = [replace(rack, servers=(rack.servers[numbers[0]],)) for numbers in self.groups]
        self.options = [[self._find_options(numbers[0], rack) for numbers in self.classes] for rack in self.racks]
        self.pricings = self._pricings()
        stages = rack.switch.usable_stages
        self.blocks = None if stages is None else stages * rack.switch.blocks_per_stage
        self.columns: list[_Column] = []
        gains = [float(pricing.gains.max(initial=1.0)) for pricing in self.pricings]
        self.penalty = 10.0 * max(gains, default=1.0) + 1e3

    def _find_options(self, number: int, rack: Rack) -> Options:
        """Options of a chain on one server; tables on the switch count as a resource."""
        now, questions = time.monotonic(), len(self.racks) * len(self.classes)
        until = now + FOR_OPTIONS / questions * max(self.until - now, 0.0)
        return find_options(self.chains[number], rack, range(len(self.chains[number].nfs)), until).options

    def _pricings(self) -> list[ServerPricing]:
        pairs = zip(self.racks, self.options, strict=True)
        return [ServerPricing(rack, options, self.sizes, self.until) for rack, options in pairs]

    def leave_out(self, stages: StageOracle) -> None:
        """Forget options whose own tables do not fit the switch, unless that takes a compiler to find out."""
        if self.rack.stage_oracle.startswith("exec:") or self.blocks is None:
            return
        for option in self.options:
            for at, (numbers, options) in enumerate(zip(self.classes, option, strict=True)):
                sets = [frozenset((numbers[0], int(nf)) for nf in np.flatnonzero(row)) for row in options.on_switch]
                option[at] = options.at(np.flatnonzero([stages.fits(tables) for tables in sets]))
        self.pricings = self._pricings()

    def solve(self) -> list[_Column] | None:
        """Contents for all servers that are used: whole numbers of what was generated; None if none suffice."""
        servers = np.array([len(numbers) for numbers in self.groups])
        self._list_sets()
        relaxed = self._generate(self.sizes, servers)
        if relaxed.unplaced < WHOLE_WEIGHT:
            self.notify(f"relaxation without split chains: {relaxed.mbps:,.0f} Mbps, {len(self.columns):,} contents")
        self._balance(self.sizes, servers)
        self._dive(relaxed, servers)
        return self._whole()

    def _list_sets(self) -> None:
        """Where few sets of chains are possible, add the content of each that carries most, in a part of the time."""
        if np.prod(self.sizes + 1.0) > FEW_SETS or self.columns:
            return
        free, now = np.zeros(len(self.classes)), time.monotonic()
        until = now + FOR_SETS * max(self.until - now, 0.0)
        for counts in map(np.array, np.ndindex(*(self.sizes + 1))):
            for group, pricing in enumerate(self.pricings):
                if counts.any() and time.monotonic() < until:
                    _, content = pricing.best(free, 0.0, counts, counts, until)
                    if content.counts.any():
                        self.columns.append(_Column(group, content))

    def _generate(self, sizes: Ints, servers: Ints) -> _Relaxed:
        """Add contents until none improves the relaxation, or the time is over."""
        while True:
            relaxed = self._relax(sizes, servers)
            added = 0
            for group, pricing in enumerate(self.pricings):
                if time.monotonic() > self.until or not servers[group]:
                    continue
                value, content = pricing.best(relaxed.prices, relaxed.block_price, sizes)
                opening = relaxed.opening[group]
                if value > opening + LEAST_IMPROVEMENT * max(1.0, abs(opening)) and content.counts.any():
                    self.columns.append(_Column(group, content))
                    added += 1
            if not added:
                return relaxed

    def _balance(self, sizes: Ints, servers: Ints) -> None:
        """Add contents that hold an even share of all chains, rounded either way: whole numbers of them place all.

        When the time is over, only if there are none yet: pricing takes seconds where options are many.
        """
        least, most = sizes // servers.sum(), -(-sizes // servers.sum())
        relaxed = self._relax(sizes, servers)
        for group, pricing in enumerate(self.pricings):
            for low, high in ((least, most), (most, most)):
                if self.columns and time.monotonic() > self.until:
                    return
                _, content = pricing.best(relaxed.prices, relaxed.block_price, high, low)
                if content.counts.any():
                    self.columns.append(_Column(group, content))

    def _dive(self, relaxed: _Relaxed, servers: Ints) -> None:
        """Add contents that suit whole numbers: fix the most used one and generate for what is left, again."""
        sizes, servers = self.sizes.copy(), servers.copy()
        while self.columns and sizes.any() and servers.any() and time.monotonic() < self.until:
            known = self.columns[: len(relaxed.weights)]
            fits = np.array([(column.content.counts <= sizes).all() for column in known])
            at = int(np.argmax(np.where(fits, relaxed.weights, 0.0)))
            column = self.columns[at]
            number = min(max(int(relaxed.weights[at] + WHOLE_WEIGHT), 1), int(servers[column.group]))
            if relaxed.weights[at] < WHOLE_WEIGHT or not fits[at] or not number:
                return
            servers[column.group] -= number
            sizes = np.maximum(sizes - number * column.content.counts, 0)
            relaxed = self._generate(sizes, servers)

    def _relax(self, sizes: Ints, servers: Ints) -> _Relaxed:
        """The relaxation over the contents so far; chains may stay unplaced at a penalty."""
        matrix, limits = self._rows(servers)
        classes, groups = len(self.classes), len(self.groups)
        covers, others = matrix[:classes], matrix[classes:]
        placed: Floats = np.hstack([covers, np.eye(classes)])
        above: Floats = np.hstack([others, np.zeros((len(others), classes))])
        objective: Floats = np.concatenate([-self._values(), np.full(classes, self.penalty)])
        found = linprog(objective, A_ub=above, b_ub=limits, A_eq=placed, b_eq=sizes, bounds=(0, None), method="highs")
        assert found.x is not None
        duals = -found.ineqlin.marginals
        block_price = float(duals[groups]) if self.blocks is not None else 0.0
        weights, unplaced = np.split(found.x, [len(self.columns)])
        mbps = -float(objective @ found.x)
        return _Relaxed(mbps, float(unplaced.sum()), weights, -found.eqlin.marginals, duals[:groups], block_price)

    def _values(self) -> Floats:
        return np.array([column.content.marginal_mbps for column in self.columns])

    def _rows(self, servers: Ints) -> tuple[Floats, Floats]:
        """Chains by class, servers by group, and blocks of each column; and the limits of the latter two."""
        rows = np.zeros((len(self.classes) + len(self.groups) + (self.blocks is not None), len(self.columns)))
        for at, column in enumerate(self.columns):
            rows[: len(self.classes), at] = column.content.counts
            rows[len(self.classes) + column.group, at] = 1
            if self.blocks is not None:
                rows[-1, at] = column.content.blocks
        return rows, np.array([*servers, *([] if self.blocks is None else [self.blocks])], dtype=np.float64)

    def _whole(self) -> list[_Column] | None:
        """The best whole numbers of contents, a content for each server that is used; None if none places all.

        They hold each chain once, or some more often, which `placed` then leaves out: whatever carries more.
        """
        matrix, limits = self._rows(np.array([len(numbers) for numbers in self.groups]))
        if not self.columns:
            return None
        classes, plans = len(self.classes), list[list[_Column]]()
        for most in (self.sizes, np.inf):
            found = milp(
                -self._values(),
                constraints=[
                    LinearConstraint(matrix[:classes], self.sizes, most),
                    LinearConstraint(matrix[classes:], -np.inf, limits),
                ],
                integrality=np.ones(len(self.columns), dtype=np.int64),
                bounds=Bounds(0, np.inf),
                options={"time_limit": max(self.until - time.monotonic(), LEAST_SECONDS), "mip_rel_gap": WANTED_GAP},
            )
            if found.x is not None:
                numbers = [round(number) for number in found.x]
                plans.append([column for column, n in zip(self.columns, numbers, strict=True) for _ in range(n)])
        return max(plans, key=lambda plan: sum(chain.rate_mbps for chain in self.placed(plan)), default=None)

    def placed(self, columns: Sequence[_Column]) -> tuple[ChainPlan, ...]:
        """The chains of these contents; those that are there too often are left out where they gain least."""
        servers = [list(numbers) for numbers in self.groups]
        found: list[list[ChainPlan]] = [[] for _ in self.classes]
        for column in columns:
            server = servers[column.group].pop(0)
            for chain_on in column.content.placed:
                options = self.options[column.group][chain_on.chain_class]
                rate = float(options.chain.slo.t_min_mbps) + chain_on.beyond_mbps / chain_on.chains
                placed = self._place(options, chain_on.option, server, rate)
                found[chain_on.chain_class] += [placed] * chain_on.chains
        result: dict[int, ChainPlan] = {}
        for numbers, candidates in zip(self.classes, found, strict=True):
            best = sorted(candidates, key=lambda one: -one.rate_mbps)[: len(numbers)]
            for number, chosen in zip(numbers, best, strict=True):
                layout = Layout(self.chains[number], self.rack, chosen.layout.sites)
                result[number] = ChainPlan(layout, chosen.rate_mbps, chosen.cores)
        return tuple(result[number] for number in range(len(self.chains)))

    def _place(self, options: Options, row: int, server: int, rate: float) -> ChainPlan:
        own = [number for number, device in enumerate(self.rack.devices) if device.server == server]
        sites = options.layouts.sites[options.layout[row]]
        layout = Layout(
            options.chain, self.rack, tuple(SWITCH_SITE if site == SWITCH_SITE else own[site] for site in sites)
        )
        cores = tuple(int(options.group_cores[row, group.nfs[0]]) for group in layout.subgroups)
        largest = min([rate, float(options.rate[row])])
        return ChainPlan(layout, largest, cores)


def fleet_plan(
    chains: Sequence[Chain],
    rack: Rack,
    *,
    time_limit: float = 60.0,
    notify: Callable[[str], None] = lambda message: None,
) -> RackPlan:
    """A plan for many servers, with a bound that holds for all plans.

    Chains are not split over servers, so the bound may be out of reach; how far is the gap.
    """
    begin = time.perf_counter()
    until = time.monotonic() + time_limit
    stages, counted = stage_oracle(rack, chains), with_blocks_of(rack, chains)
    try:
        bound = fleet_bound(chains, counted, time.monotonic() + FOR_BOUND * time_limit)
    except TimeoutError:
        bound = sum(float(chain.slo.t_max_mbps - chain.slo.t_min_mbps) for chain in chains)
    if bound == float("-inf"):
        return RackPlan(rack, Status.INFEASIBLE, seconds=time.perf_counter() - begin)
    notify(f"bound: {bound:,.0f} Mbps beyond the least rates")
    # where nothing is known of blocks, those of the rack guide the search
    program = FleetProgram(chains, rack if counted.switch.stages is None else counted, until, notify)
    placed = _fitting(program, stages)
    seconds = time.perf_counter() - begin
    if placed is None:
        return RackPlan(rack, Status.UNKNOWN, bound_mbps=bound, seconds=seconds)
    plan = RackPlan(rack, Status.FEASIBLE, placed, bound, seconds)
    proven = bound <= plan.marginal_mbps * (1 + PROVEN_GAP)
    return replace(plan, status=Status.OPTIMAL, bound_mbps=plan.marginal_mbps) if proven else plan


def _fitting(program: FleetProgram, stages: StageOracle) -> tuple[ChainPlan, ...] | None:
    """The chains of a plan whose tables fit the switch: with fewer blocks where those of the best plan do not."""
    program.leave_out(stages)
    while (columns := program.solve()) is not None:
        placed = program.placed(columns)
        tables = frozenset((number, nf) for number, one in enumerate(placed) for nf in one.layout.on_switch)
        if stages.fits(tables):
            return placed
        used = sum(column.content.blocks for column in columns)
        if not used:
            return None
        program.blocks = int(min(used, program.blocks or used) * FEWER_BLOCKS)
        program.notify(f"tables do not fit the stages; with at most {program.blocks:,} blocks:")
    return None


# What one server may hold: chains with their options and rates; the best content at given prices.
#
# A content is a column of the program over equal servers (`fleet_plan.py`), found by a small integer program: how many
# chains of each class take each option, and how far their rates go beyond the least ones.


PRICING_SECONDS = 20.0
LEAST_SECONDS = 0.1


@dataclass(frozen=True)
class PlacedOption:
    """Chains of one class in a content that have the same option."""

    chain_class: int
    option: int
    chains: int  # how many
    beyond_mbps: float  # by how much the rates of all of them together exceed the least ones


@dataclass(frozen=True)
class Content:
    """What one server holds."""

    placed: tuple[PlacedOption, ...]
    counts: Ints  # chains by class; shape (classes,)
    blocks: int  # of table memory that they take on the switch

    @property
    def marginal_mbps(self) -> float:
        """Of all its chains."""
        return sum(chain_on.beyond_mbps for chain_on in self.placed)


class ServerPricing:
    """Finds contents of one kind of server.

    `rack`: with one such server. `options`: by class of chains, on that rack. `until`: of the monotonic clock.
    """

    def __init__(self, rack: Rack, options: Sequence[Options], sizes: Ints, until: float) -> None:
        self.until = until
        self.classes = len(options)
        self.class_of = np.repeat(np.arange(len(options)), [len(option) for option in options])
        self.option_of = np.concatenate([np.arange(len(option)) for option in options])
        self.sizes = sizes
        least = np.array([float(option.chain.slo.t_min_mbps) for option in options])[self.class_of]
        rates: Floats = np.concatenate([option.rate for option in options])
        shares: Floats = np.vstack([option.nic_shares for option in options])
        cores: Ints = np.vstack([option.cores for option in options])
        self.blocks = np.concatenate([_blocks(option, rack) for option in options])
        mbps = float(rack.servers[0].nic_mbps)
        limits = np.array([*(device.cores for device in rack.devices), mbps, mbps], dtype=np.float64)
        scales = np.where(limits > 0, limits, 1.0)
        columns = len(rates)
        use: Floats = np.hstack(
            [np.vstack([cores.T, (shares * least[:, None]).T]), np.vstack([0.0 * cores.T, shares.T])]
        )
        gains = np.maximum(rates - least, 0.0)
        within = hstack([diags_array(-gains), eye_array(columns)], format="csr")
        self.constraints = [
            LinearConstraint(csr_array(use / scales[:, None]), -np.inf, limits / scales),
            LinearConstraint(within, -np.inf, 0.0),
        ]
        self.gains = gains
        self.members = (self.class_of == np.arange(len(options))[:, None]).astype(np.float64)

    def best(
        self,
        prices: Floats,
        block_price: float,
        most: Ints | None = None,
        least: Ints | None = None,
        until: float = float("inf"),
    ) -> tuple[float, Content]:
        """The content with the largest marginal rate less prices of its chains and blocks, and that difference.

        `prices`: of a chain, by class, Mbps; negative where chains must be placed somewhere. `block_price`: of a block
        of table memory, Mbps. `most`, `least`: chains by class that the content may and must have. `until`: of the
        monotonic clock, where that is before the end of all.
        """
        columns = len(self.gains)
        if not columns:
            return 0.0, Content((), np.zeros(self.classes, np.int64), 0)
        costs = prices[self.class_of] + block_price * self.blocks
        most = self.sizes if most is None else most
        at_least = np.zeros(self.classes) if least is None else least.astype(np.float64)
        each: Floats = most[self.class_of].astype(np.float64)
        of_class: Floats = np.hstack([self.members, np.zeros_like(self.members)])
        found = milp(
            np.concatenate([costs, -np.ones(columns)]),
            constraints=[*self.constraints, LinearConstraint(csr_array(of_class), at_least, most.astype(np.float64))],
            integrality=np.concatenate([np.ones(columns), np.zeros(columns)]),
            bounds=Bounds(0, np.concatenate([each, each * self.gains])),
            options={"time_limit": min(PRICING_SECONDS, max(min(until, self.until) - time.monotonic(), LEAST_SECONDS))},
        )
        if found.x is None:
            return 0.0, Content((), np.zeros(self.classes, np.int64), 0)
        return -float(found.fun), self._content(np.round(found.x[:columns]).astype(np.int64), found.x[columns:])

    def _content(self, chains: Ints, beyond: Floats) -> Content:
        used = np.flatnonzero(chains)
        placed = tuple(
            PlacedOption(int(self.class_of[at]), int(self.option_of[at]), int(chains[at]), max(float(beyond[at]), 0.0))
            for at in used
        )
        counts = np.bincount(self.class_of, chains, self.classes).astype(np.int64)
        return Content(placed, counts, int(chains @ self.blocks))


def _blocks(options: Options, rack: Rack) -> Ints:
    blocks = np.array([rack.costs[nf.nf].switch_blocks or 0 for nf in options.chain.nfs])
    return np.asarray((options.on_switch * blocks).sum(axis=1), dtype=np.int64)

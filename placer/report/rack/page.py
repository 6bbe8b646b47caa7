"""The page of `placer chain place`: the rack and its use, and each chain as a path through devices."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from itertools import product

import pandas as pd

from placer.rack.plan import SWITCH_SITE, ChainPlan, RackPlan, Status, core_numbers
from placer.rack.rack import CorePool
from placer.rack.stages.stage_oracles import stage_oracle
from placer.report.html import charts, theme
from placer.report.html.page import Figure, Page, Picture, Section, Tile
from placer.report.html.svg import Drawing, text_width
from placer.report.rack.plan import bottlenecks, rack_report, rack_use

MOST_CHAINS = 24  # that are drawn
CYCLES_NOTE = "Rates follow from the cycles of the rack; contention is not part of them. Nothing was measured."
CONTENTION_NOTE = (
    "Rates are predicted for subgroups that slow one another down; what limits a chain is said by cycles alone, and so "
    "is the bound. Nothing was measured."
)


def page_of_rack_plan(plan: RackPlan, strategy: str, chains: str, *, predicted: bool = False) -> Page:
    """The page of a plan. `strategy`: that made it. `chains`: name of the file of chains. `predicted`: whether rates
    are predicted with contention, not by cycles alone."""
    if not plan.chains:
        summary = tuple(rack_report(plan, strategy, "table").splitlines())
        return Page(f"Chains on a rack: {chains}", summary, (), ())
    aggregate = sum(chain.rate_mbps for chain in plan.chains) / 1000
    used, cores = _number(sum(rack_use(plan).cores)), sum(pool.cores for pool in plan.rack.pools)
    proven = plan.status is Status.OPTIMAL
    tiles = (
        Tile(f"{aggregate:,.2f} Gbps", "all chains together"),
        Tile(f"{plan.marginal_mbps / 1000:,.2f} Gbps", "beyond the least rates"),
        Tile("proven" if proven else _gap(plan), "optimal" if proven else "gap to the bound"),
        Tile(f"{len(plan.chains):,}", "chains"),
        Tile(f"{used:,} of {cores:,}", "cores in use"),
    )  # fmt: skip
    return Page(
        f"Chains on a rack: {chains}",
        (*_verdict(plan, strategy, aggregate), CONTENTION_NOTE if predicted else CYCLES_NOTE, *plan.notes),
        tiles,
        (_rack(plan), _use(plan), _chains(plan), *_paths(plan)),
    )


def _number(cores: int | Fraction) -> int | float:
    return cores if isinstance(cores, int) else round(float(cores), 2)


def _gap(plan: RackPlan) -> str:
    return "unknown" if plan.gap is None else f"{100 * plan.gap:.2f} %"


def _verdict(plan: RackPlan, strategy: str, aggregate: float) -> Iterator[str]:
    marginal = plan.marginal_mbps / 1000
    yield f"{strategy} places {len(plan.chains):,} chains, which carry {aggregate:,.2f} Gbps and keep their SLOs."
    if plan.status is Status.OPTIMAL:
        yield f"{marginal:,.2f} Gbps are beyond the least rates. No plan gives more, which is proven."
    elif plan.bound_mbps is not None:
        yield (
            f"{marginal:,.2f} Gbps are beyond the least rates; no plan gives more than {plan.bound_mbps / 1000:,.2f} "
            f"Gbps. The gap is {_gap(plan)}."
        )
    else:
        yield f"{marginal:,.2f} Gbps are beyond the least rates. How much more is possible is not known."


def _rack(plan: RackPlan) -> Section:
    drawn, servers = len(draw_servers(plan)), len(plan.rack.servers)
    text = "Cores and links in the colour of the chain that uses them; grey cores are reserved, empty ones idle."
    if drawn < servers:
        text += f" The {drawn} of {servers} servers with most cores in use are drawn; the table below has all."
    picture = Picture("rack", "The switch, and below it each server with its link and its cores.",
                      rack_drawing(plan, _stages(plan)))  # fmt: skip
    return Section("rack", "The rack", text, (picture,))


def _stages(plan: RackPlan) -> str:
    """What the NFs on the switch need of its stages, in words; a compiler, which may be slow, is not asked again."""
    usable = plan.rack.switch.usable_stages
    if usable is None:
        return "its stages are without a bound"
    if plan.rack.stage_oracle.startswith("exec:"):
        return f"they fit its {usable} stages"
    return f"they need {least_stages(plan)} of its {usable} stages"


def least_stages(plan: RackPlan) -> int:
    """The fewest stages that the NFs on the switch fit, with those for encapsulation."""
    rack = plan.rack
    tables = frozenset((chain, nf) for chain, one in enumerate(plan.chains) for nf in one.layout.on_switch)
    usable = rack.switch.usable_stages or 0
    for stages in range(usable):
        fewer = replace(rack, switch=replace(rack.switch, stages=stages, reserved_stages=0))
        if stage_oracle(fewer, [chain.chain for chain in plan.chains]).fits(tables):
            return stages
    return usable


def _use(plan: RackPlan) -> Section:
    table = use_table(plan)
    bars = table.rename(columns={"used, %": "pct"})[["resource", "pct"]].head(3 * MOST_CHAINS)
    chart = charts.percentages(bars, "in use, %", "resource")
    text = "Cores, links in each direction, and stages of the switch."
    return Section("use", "Utilisation", text, (Figure("use", "What is in use of each resource.", chart),), table)


def use_table(plan: RackPlan) -> pd.DataFrame:
    """A row per resource: what it has, what is used, and the share of it."""
    rack, use = plan.rack, rack_use(plan)
    rows: list[tuple[str, float, float, str]] = [
        (f"{pool.name}: cores", float(used), float(pool.cores), "cores")
        for pool, used in zip(rack.pools, use.cores, strict=True)
    ]
    for nic, *used in zip(rack.nics, use.nic_in, use.nic_out, strict=True):
        for direction, mbps in zip(("in", "out"), used, strict=True):
            rows.append((f"{nic.name}: link {direction}", mbps / 1000, float(nic.mbps) / 1000, "Gbps"))
    if (stages := rack.switch.usable_stages) and not rack.stage_oracle.startswith("exec:"):
        rows.append(("switch: stages", float(least_stages(plan)), float(stages), "stages"))
    table = pd.DataFrame(rows, columns=["resource", "used", "of", "unit"])
    return table.assign(**{"used, %": (100 * table["used"] / table["of"]).where(table["of"] > 0, 0.0)})


def _chains(plan: RackPlan) -> Section:
    use = rack_use(plan)
    rows = []
    for chain in plan.chains:
        slo, latency = chain.chain.slo, float(chain.layout.latency_us)
        rows.append(
            {
                "chain": chain.chain.name,
                "rate, Mbps": chain.rate_mbps,
                "t_min, Mbps": float(slo.t_min_mbps),
                "t_max, Mbps": float(slo.t_max_mbps),
                "latency, us": latency,
                "slack, us": None if slo.d_max_us is None else float(slo.d_max_us) - latency,
                "cores": _number(sum(chain.cores)),
                "limited by": "; ".join(bottlenecks(chain, use)) or "–",
            }
        )
    table = pd.DataFrame(rows)
    return Section(
        "chains", "Chains", "Rates, latencies, and what keeps each chain from more.", (), table, expanded=True
    )


def _paths(plan: RackPlan) -> Iterator[Section]:
    left_out = len(plan.chains) - MOST_CHAINS
    pictures = []
    for number, one in enumerate(plan.chains[:MOST_CHAINS]):
        visits = ", ".join(f"{nf.id} on {one.site_name(at)}" for at, nf in enumerate(one.chain.nfs))
        caption = f"{one.chain.name}: {one.rate_mbps:,.1f} Mbps, {float(one.layout.latency_us):.2f} us. {visits}."
        pictures.append(Picture(f"path-{number}", caption, chain_drawing(one, colour_of(number))))
    text = "Packets go from left to right. Filled NFs run on cores; thick lines join those that share them."
    if left_out > 0:
        text += f" {left_out:,} more chains are not drawn."
    yield Section("paths", "Paths", text, tuple(pictures))


# A chain as a path through devices: a lane for each device, its NFs from left to right.


LEFT_MARGIN, LANE_PAD = 90.0, 12.0
BOX_HEIGHT, LANE_STEP = 24.0, 34.0  # heights of an NF, and of an NF with the space to the next one in its lane
BADGE_WIDTH = 20.0
WIDTH_BETWEEN = 46.0  # width between NFs, for lines and shares
TURN_WIDTH = 36.0  # width in which a line that passes other NFs leaves its lane
LEAST_WIDTH = 1000.0


def chain_drawing(one: ChainPlan, colour: str) -> bytes:
    """The chain as SVG. Thick lines join NFs of one subgroup; a mark above its first NF has its cores."""
    return _ChainDrawing(one, colour).svg()


@dataclass
class _ChainDrawing:
    one: ChainPlan
    colour: str
    places: dict[int, tuple[float, float]] = field(default_factory=dict)
    """Per NF the left end and the middle of its box."""
    edges: dict[int, tuple[float, float]] = field(default_factory=dict)  # per NF where its lane begins and ends

    def svg(self) -> bytes:
        chain = self.one.chain
        self.drawing = Drawing(max(self.columns[-1] + LANE_PAD, LEAST_WIDTH))
        self._lanes()
        for edge in chain.edges:
            self._edge(edge.tail, edge.head, str(edge.share) if edge.share != 1 else "")
        for at in range(len(chain.nfs)):
            self._nf(at)
        return self.drawing.svg()

    @cached_property
    def depth(self) -> Mapping[int, int]:
        """Per NF the number of NFs on the longest way to it."""
        depth: dict[int, int] = {}
        for at in self.one.chain.order:
            depth[at] = max((depth[edge.tail] + 1 for edge in self.one.chain.edges_into(at)), default=0)
        return depth

    @cached_property
    def columns(self) -> list[float]:
        """Left ends of the columns, and where the last one ends."""
        found = [LEFT_MARGIN]
        for column in range(max(self.depth.values()) + 1):
            widest = max(self._width(at) for at, depth in self.depth.items() if depth == column)
            found.append(found[-1] + widest + WIDTH_BETWEEN)
        return [*found[:-1], found[-1] - WIDTH_BETWEEN]

    @cached_property
    def sites(self) -> list[int]:
        """The switch, then the other devices that the chain uses, a SmartNIC above its server."""
        devices = self.one.layout.rack.devices
        used = {site for site in self.one.layout.sites if site != SWITCH_SITE}
        return [SWITCH_SITE, *sorted(used, key=lambda site: (devices[site].server, not devices[site].is_smartnic))]

    def _width(self, at: int) -> float:
        return max(text_width(self.one.chain.nfs[at].id) + 14, 48.0)

    def _lanes(self) -> None:
        y = 0.0
        for site in self.sites:
            cells: dict[int, list[int]] = {}
            for at in self.one.chain.order:
                if self.one.layout.sites[at] == site:
                    cells.setdefault(self.depth[at], []).append(at)
            rows = max((len(nfs) for nfs in cells.values()), default=0)
            height = rows * LANE_STEP + BADGE_WIDTH + 8 if rows else BOX_HEIGHT + 8
            name = "switch" if site == SWITCH_SITE else self.one.layout.rack.devices[site].label
            self.drawing.box(0, y, self.drawing.width, height, theme.on_paper("raised"))
            self.drawing.text(8, y + height / 2 + 4, name, bold=True)
            for column, nfs in cells.items():
                for row, at in enumerate(nfs):
                    self.edges[at] = y - 3, y + height + 3
                    self.places[at] = self.columns[column], y + BADGE_WIDTH + row * LANE_STEP + BOX_HEIGHT / 2
            y += height + 6

    def _edge(self, tail: int, head: int, share: str) -> None:
        (x1, y1), (x2, y2) = self.places[tail], self.places[head]
        x1 += self._width(tail)
        inside = any({tail, head} <= set(group.nfs) for group, _ in self.one.subgroups)
        colour, width = (self.colour, 4.0) if inside else (theme.on_paper("soft"), 1.5)
        if self.depth[head] - self.depth[tail] > 1:
            y = y1 - BOX_HEIGHT / 2 - 6 if abs(y1 - y2) < 1 else self.edges[tail][y2 > y1]
            self._bend(x1, y1, x1 + TURN_WIDTH, y, colour, width)
            self.drawing.line(x1 + TURN_WIDTH, y, x2 - TURN_WIDTH, y, colour, width)
            self._bend(x2 - TURN_WIDTH, y, x2, y2, colour, width)
            place = x1 + TURN_WIDTH + 4, y - 3
        else:
            self._bend(x1, y1, x2, y2, colour, width)
            place = x2 - 22, y2 - 5
        self.drawing.text(*place, share, size=10, colour=theme.on_paper("soft"))

    def _bend(self, x1: float, y1: float, x2: float, y2: float, colour: str, width: float) -> None:
        """A curve that begins and ends level."""
        middle = (x1 + x2) / 2
        self.drawing.curve([(x1, y1), (middle, y1), (middle, y2), (x2, y2)], colour, width)

    def _nf(self, at: int) -> None:
        x, y = self.places[at]
        on_switch = self.one.layout.sites[at] == SWITCH_SITE
        fill = theme.on_paper("ground") if on_switch else self.colour
        nf = self.one.chain.nfs[at]
        self.drawing.box(x, y - BOX_HEIGHT / 2, self._width(at), BOX_HEIGHT, fill, self.colour)
        ink = theme.on_paper("ink" if on_switch else "ground")
        self.drawing.text(x + self._width(at) / 2, y + 4, nf.id, colour=ink, anchor="middle")
        for group, cores in self.one.subgroups:
            if group.nfs[0] == at:
                words = f"{cores} core" if cores == 1 else f"{cores} cores"
                self.drawing.text(x, y - BOX_HEIGHT / 2 - 4, words, size=10, bold=True)


# The rack as a drawing: the switch, the links, and the cores of servers and SmartNICs, coloured by chain.


PAGE_WIDTH = 1000.0
PER_ROW = 4
BAND_GAP = 16.0
CELL_SIZE, ROW_HEIGHT = 17.0, 20.0
LABEL_WIDTH = 130.0  # width of what is said of a link
MOST_SERVERS = 16  # that are drawn: those with most cores in use


def colour_of(chain: int) -> str:
    """The colour of a chain, by its number in the plan; after some they begin again."""
    return theme.on_paper(f"c{chain % len(theme.CATEGORY_COLOURS) + 1}")


def draw_servers(plan: RackPlan) -> list[int]:
    """The servers that are drawn, in the rack's order."""
    use = rack_use(plan)
    used: list[int | Fraction] = [0] * len(plan.rack.servers)
    for pool, cores in zip(plan.rack.pools, use.cores, strict=True):
        used[pool.server] += cores
    most = sorted(range(len(used)), key=lambda one: (-used[one], one))[:MOST_SERVERS]
    return sorted(most)


def rack_drawing(plan: RackPlan, stages: str) -> bytes:
    """The rack as SVG. `stages`: what is said of the switch's stages."""
    return _RackDrawing(plan, stages).svg()


@dataclass
class _RackDrawing:
    plan: RackPlan
    stages: str

    def svg(self) -> bytes:
        self.drawing, self.use = Drawing(PAGE_WIDTH), rack_use(self.plan)
        top = self._switch(self._legend())
        servers = draw_servers(self.plan)
        columns = max(min(len(servers), PER_ROW), 1)
        width = min((PAGE_WIDTH - (columns - 1) * BAND_GAP) / columns, 480.0)
        for begin in range(0, len(servers), columns):
            row = servers[begin : begin + columns]
            bottoms = [self._server(at * (width + BAND_GAP), top, width, server) for at, server in enumerate(row)]
            top = max(bottoms) + 2 * BAND_GAP
        return self.drawing.svg()

    def _legend(self) -> float:
        x, y = 0.0, 12.0
        for number, one in enumerate(self.plan.chains[: 3 * len(theme.CATEGORY_COLOURS)]):
            needs = 22 + text_width(one.chain.name) + BAND_GAP
            if x + needs > PAGE_WIDTH:
                x, y = 0.0, y + ROW_HEIGHT
            self.drawing.box(x, y - 10, 12, 12, colour_of(number))
            self.drawing.text(x + 18, y, one.chain.name)
            x += needs
        return y + BAND_GAP

    def _switch(self, top: float) -> float:
        on_switch = [len(chain.layout.on_switch) for chain in self.plan.chains]
        self.drawing.box(0, top, PAGE_WIDTH, 54, theme.on_paper("raised"), theme.on_paper("line"))
        self.drawing.text(12, top + 20, "switch", bold=True)
        self.drawing.text(66, top + 20, f"{sum(on_switch)} NFs; {self.stages}", colour=theme.on_paper("soft"))
        step = min(CELL_SIZE, (PAGE_WIDTH - 24) / max(sum(on_switch), 1))
        x = 12.0
        for number, count in enumerate(on_switch):
            for _ in range(count):
                self.drawing.box(x, top + 30, max(step - 2, 0.5), 14, colour_of(number))
                x += step
        return top + 54

    def _server(self, x: float, top: float, width: float, server: int) -> float:
        middle = x + width / 2
        self.drawing.line(middle, top, middle, top + BAND_GAP, theme.on_paper("soft"), 2)
        y = top + BAND_GAP
        rack = self.plan.rack
        pools = [(number, pool) for number, pool in enumerate(rack.pools) if pool.server == server]
        nics = [number for number, nic in enumerate(rack.nics) if nic.server == server]
        height = (
            2 * ROW_HEIGHT * len(nics)
            + 22
            + sum(26 + ROW_HEIGHT * _rows(self._cells(number, pool), width) for number, pool in pools)
        )
        self.drawing.box(x, y, width, height, theme.on_paper("raised"), theme.on_paper("line"))
        y += 8
        for nic, direction in product(nics, ("in", "out")):
            self._link(x + 12, y, width - 24, nic, direction, float(rack.nics[nic].mbps))
            y += ROW_HEIGHT
        for number, pool in sorted(pools, key=lambda pair: not pair[1].is_smartnic):
            y = self._cores(x + 12, y + 6, width - 24, number, pool)
        return top + BAND_GAP + height

    def _link(self, x: float, y: float, width: float, nic: int, direction: str, limit: float) -> None:
        carried = (self.use.nic_in if direction == "in" else self.use.nic_out)[nic]
        label = f"{direction} {carried / 1000:,.1f} of {limit / 1000:,.3g} Gbps"
        self.drawing.text(x, y + 12, label)
        at, scale = x + LABEL_WIDTH, (width - LABEL_WIDTH) / max(limit, 1e-9)
        self.drawing.box(at, y + 2, width - LABEL_WIDTH, 12, theme.on_paper("ground"), theme.on_paper("line"))
        for number, one in enumerate(self.plan.chains):
            mbps = one.rate_mbps * float(one.layout.nic_shares.get((nic, direction), 0))
            if mbps:
                self.drawing.box(at, y + 3, mbps * scale, 10, colour_of(number))
                at += mbps * scale

    def _cores(self, x: float, y: float, width: float, number: int, pool: CorePool) -> float:
        cells = self._cells(number, pool)
        kind = "SmartNIC" if pool.is_smartnic else "server"
        self.drawing.text(x, y + 12, pool.name, bold=True)
        label = f"{kind}: {self.use.cores[number]} of {pool.cores} cores"
        self.drawing.text(x + text_width(pool.name) + 12, y + 12, label, colour=theme.on_paper("soft"))
        per_row = _per_row(width + 24)
        for at, colour in enumerate(cells):
            place = x + at % per_row * CELL_SIZE, y + 20 + at // per_row * ROW_HEIGHT
            self.drawing.box(*place, CELL_SIZE - 3, CELL_SIZE - 3, colour, theme.on_paper("line"))
        return y + 20 + ROW_HEIGHT * _rows(cells, width + 24)

    def _cells(self, number: int, pool: CorePool) -> Sequence[str]:
        """The colour of each core: those of chains first, then idle ones, then reserved ones.

        A shared core has the colour of the first chain on it.
        """
        rack, colours = self.plan.rack, dict[int, str]()
        for at, (one, numbers) in enumerate(zip(self.plan.chains, core_numbers(self.plan.chains), strict=True)):
            for group, on_cores in zip(one.layout.subgroups, numbers, strict=True):
                if rack.devices[group.device].pool == number:
                    colours = {core: colour_of(at) for core in on_cores} | colours
        cells = [colours[core] for core in sorted(colours)] + [theme.on_paper("ground")] * (pool.cores - len(colours))
        reserved = 0 if pool.is_smartnic else rack.servers[pool.server].each_socket[pool.socket].reserved_cores
        return [*cells, *[theme.on_paper("line")] * reserved]


def _per_row(width: float) -> int:
    return max(int((width - 24) // CELL_SIZE), 1)


def _rows(cells: Sequence[object], width: float) -> int:
    return -(-len(cells) // _per_row(width))

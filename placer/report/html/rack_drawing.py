"""The rack as a drawing: the switch, the links, and the cores of servers and SmartNICs, coloured by chain."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from placer.chains.plan import RackPlan
from placer.chains.rack import Device
from placer.chains.reasons.bottlenecks import rack_use
from placer.report.html import theme
from placer.report.html.svg import Drawing, text_width

WIDTH = 1000.0
PER_ROW = 4
GAP = 16.0
CELL, ROW = 17.0, 20.0
LABEL = 130.0
"""Width of what is said of a link."""
MOST_SERVERS = 16
"""That are drawn: those with most cores in use."""


def colour_of(chain: int) -> str:
    """The colour of a chain, by its number in the plan; after some they begin again."""
    return theme.on_paper(f"c{chain % len(theme.CATEGORIES) + 1}")


def drawn_servers(plan: RackPlan) -> list[int]:
    """The servers that are drawn, in the rack's order."""
    use = rack_use(plan)
    used = [0] * len(plan.rack.servers)
    for device, cores in zip(plan.rack.devices, use.cores, strict=True):
        used[device.server] += cores
    most = sorted(range(len(used)), key=lambda one: (-used[one], one))[:MOST_SERVERS]
    return sorted(most)


def rack_drawing(plan: RackPlan, stages: str) -> bytes:
    """The rack as SVG.

    Parameters
    ----------
    stages
        What is said of the switch's stages.
    """
    return _RackDrawing(plan, stages).svg()


@dataclass
class _RackDrawing:
    plan: RackPlan
    stages: str

    def svg(self) -> bytes:
        self.drawing, self.use = Drawing(WIDTH), rack_use(self.plan)
        top = self._switch(self._legend())
        servers = drawn_servers(self.plan)
        columns = max(min(len(servers), PER_ROW), 1)
        width = min((WIDTH - (columns - 1) * GAP) / columns, 480.0)
        for begin in range(0, len(servers), columns):
            row = servers[begin : begin + columns]
            bottoms = [self._server(at * (width + GAP), top, width, server) for at, server in enumerate(row)]
            top = max(bottoms) + 2 * GAP
        return self.drawing.svg()

    def _legend(self) -> float:
        x, y = 0.0, 12.0
        for number, one in enumerate(self.plan.chains[: 3 * len(theme.CATEGORIES)]):
            needs = 22 + text_width(one.chain.name) + GAP
            if x + needs > WIDTH:
                x, y = 0.0, y + ROW
            self.drawing.box(x, y - 10, 12, 12, colour_of(number))
            self.drawing.text(x + 18, y, one.chain.name)
            x += needs
        return y + GAP

    def _switch(self, top: float) -> float:
        on_switch = [len(one.layout.on_switch) for one in self.plan.chains]
        self.drawing.box(0, top, WIDTH, 54, theme.on_paper("raised"), theme.on_paper("line"))
        self.drawing.text(12, top + 20, "switch", bold=True)
        self.drawing.text(66, top + 20, f"{sum(on_switch)} NFs; {self.stages}", colour=theme.on_paper("soft"))
        step = min(CELL, (WIDTH - 24) / max(sum(on_switch), 1))
        x = 12.0
        for number, count in enumerate(on_switch):
            for _ in range(count):
                self.drawing.box(x, top + 30, max(step - 2, 0.5), 14, colour_of(number))
                x += step
        return top + 54

    def _server(self, x: float, top: float, width: float, server: int) -> float:
        middle = x + width / 2
        self.drawing.line(middle, top, middle, top + GAP, theme.on_paper("soft"), 2)
        y = top + GAP
        rack = self.plan.rack
        of = rack.servers[server]
        devices = [(number, one) for number, one in enumerate(rack.devices) if one.server == server]
        height = 2 * ROW + 22 + sum(26 + ROW * _rows(self._cells(number, one), width) for number, one in devices)
        self.drawing.box(x, y, width, height, theme.on_paper("raised"), theme.on_paper("line"))
        y += 8
        for direction in ("in", "out"):
            self._link(x + 12, y, width - 24, server, direction, float(of.nic_mbps))
            y += ROW
        for number, one in sorted(devices, key=lambda pair: not pair[1].is_smartnic):
            y = self._cores(x + 12, y + 6, width - 24, number, one)
        return top + GAP + height

    def _link(self, x: float, y: float, width: float, server: int, direction: str, limit: float) -> None:
        carried = (self.use.nic_in if direction == "in" else self.use.nic_out)[server]
        label = f"{direction} {carried / 1000:,.1f} of {limit / 1000:,.3g} Gbps"
        self.drawing.text(x, y + 12, label)
        at, scale = x + LABEL, (width - LABEL) / max(limit, 1e-9)
        self.drawing.box(at, y + 2, width - LABEL, 12, theme.on_paper("ground"), theme.on_paper("line"))
        for number, one in enumerate(self.plan.chains):
            mbps = one.rate_mbps * float(one.layout.nic_shares.get((server, direction), 0))
            if mbps:
                self.drawing.box(at, y + 3, mbps * scale, 10, colour_of(number))
                at += mbps * scale

    def _cores(self, x: float, y: float, width: float, number: int, device: Device) -> float:
        cells = self._cells(number, device)
        kind = "SmartNIC" if device.is_smartnic else "server"
        self.drawing.text(x, y + 12, device.name, bold=True)
        label = f"{kind}: {self.use.cores[number]} of {device.cores} cores"
        self.drawing.text(x + text_width(device.name) + 12, y + 12, label, colour=theme.on_paper("soft"))
        per_row = _per_row(width + 24)
        for at, colour in enumerate(cells):
            place = x + at % per_row * CELL, y + 20 + at // per_row * ROW
            self.drawing.box(*place, CELL - 3, CELL - 3, colour, theme.on_paper("line"))
        return y + 20 + ROW * _rows(cells, width + 24)

    def _cells(self, number: int, device: Device) -> Sequence[str]:
        """The colour of each core: those of chains first, then idle ones, then reserved ones."""
        cells: list[str] = []
        for at, one in enumerate(self.plan.chains):
            cells += [colour_of(at)] * sum(cores for group, cores in one.subgroups if group.device == number)
        cells += [theme.on_paper("ground")] * (device.cores - len(cells))
        reserved = 0 if device.is_smartnic else self.plan.rack.servers[device.server].reserved_cores
        return [*cells, *[theme.on_paper("line")] * reserved]


def _per_row(width: float) -> int:
    return max(int((width - 24) // CELL), 1)


def _rows(cells: Sequence[object], width: float) -> int:
    return -(-len(cells) // _per_row(width))

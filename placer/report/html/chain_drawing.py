"""A chain as a path through devices: a lane for each device, its NFs from left to right."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from placer.chains.layout import SWITCH
from placer.chains.plan import ChainPlan
from placer.report.html import theme
from placer.report.html.svg import Drawing, text_width

LEFT, PAD = 90.0, 12.0
BOX, STEP = 24.0, 34.0
"""Heights of an NF, and of an NF with the space to the next one in its lane."""
BADGE = 20.0
BETWEEN = 46.0
"""Width between NFs, for lines and shares."""
TURN = 36.0
"""Width in which a line that passes other NFs leaves its lane."""
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
    edges: dict[int, tuple[float, float]] = field(default_factory=dict)
    """Per NF where its lane begins and ends."""

    def svg(self) -> bytes:
        chain = self.one.chain
        self.drawing = Drawing(max(self.columns[-1] + PAD, LEAST_WIDTH))
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
        found = [LEFT]
        for column in range(max(self.depth.values()) + 1):
            widest = max(self._width(at) for at, depth in self.depth.items() if depth == column)
            found.append(found[-1] + widest + BETWEEN)
        return [*found[:-1], found[-1] - BETWEEN]

    @cached_property
    def sites(self) -> list[int]:
        """The switch, then the other devices that the chain uses, a SmartNIC above its server."""
        devices = self.one.layout.rack.devices
        used = {site for site in self.one.layout.sites if site != SWITCH}
        return [SWITCH, *sorted(used, key=lambda site: (devices[site].server, not devices[site].is_smartnic))]

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
            height = rows * STEP + BADGE + 8 if rows else BOX + 8
            name = "switch" if site == SWITCH else self.one.layout.rack.devices[site].name
            self.drawing.box(0, y, self.drawing.width, height, theme.on_paper("raised"))
            self.drawing.text(8, y + height / 2 + 4, name, bold=True)
            for column, nfs in cells.items():
                for row, at in enumerate(nfs):
                    self.edges[at] = y - 3, y + height + 3
                    self.places[at] = self.columns[column], y + BADGE + row * STEP + BOX / 2
            y += height + 6

    def _edge(self, tail: int, head: int, share: str) -> None:
        (x1, y1), (x2, y2) = self.places[tail], self.places[head]
        x1 += self._width(tail)
        inside = any({tail, head} <= set(group.nfs) for group, _ in self.one.subgroups)
        colour, width = (self.colour, 4.0) if inside else (theme.on_paper("soft"), 1.5)
        if self.depth[head] - self.depth[tail] > 1:
            y = y1 - BOX / 2 - 6 if abs(y1 - y2) < 1 else self.edges[tail][y2 > y1]
            self._bend(x1, y1, x1 + TURN, y, colour, width)
            self.drawing.line(x1 + TURN, y, x2 - TURN, y, colour, width)
            self._bend(x2 - TURN, y, x2, y2, colour, width)
            place = x1 + TURN + 4, y - 3
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
        on_switch = self.one.layout.sites[at] == SWITCH
        fill = theme.on_paper("ground") if on_switch else self.colour
        nf = self.one.chain.nfs[at]
        self.drawing.box(x, y - BOX / 2, self._width(at), BOX, fill, self.colour)
        ink = theme.on_paper("ink" if on_switch else "ground")
        self.drawing.text(x + self._width(at) / 2, y + 4, nf.id, colour=ink, anchor="middle")
        for group, cores in self.one.subgroups:
            if group.nfs[0] == at:
                words = f"{cores} core" if cores == 1 else f"{cores} cores"
                self.drawing.text(x, y - BOX / 2 - 4, words, size=10, bold=True)

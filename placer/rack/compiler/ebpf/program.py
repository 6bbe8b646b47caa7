"""What a SmartNIC does with packets: where they enter by label, the NFs they pass, and how they leave."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from fractions import Fraction

from placer.rack.compiler.ebpf.functions import NIC_FUNCTIONS, NicFunction
from placer.rack.compiler.graph import NfInstance, Place, RackNf, Way, identifier
from placer.rack.compiler.routing import Label, Routing
from placer.rack.compiler.traffic.expression import Expression
from profiles import Fault, InputError

MOST_PATH, MOST_INDEX = (1 << 24) - 1, 255


class NicSide(StrEnum):
    """The neighbours of a SmartNIC."""

    SWITCH = "switch"
    HOST = "host"


@dataclass(frozen=True)
class NicExit:
    """Where a packet leaves; without a label it leaves as it is, to the world."""

    to: NicSide
    label: Label | None = None


@dataclass(frozen=True)
class NicEdge:
    """One way behind an NF: to a step, by its number, or out.

    `match`: which packets take it; None: those that no match takes, shared in proportion to `share`. `counter`: the
    name of the counter of its packets; None: nothing counts them.
    """

    to: int | NicExit
    match: Expression | None = None
    share: Fraction = Fraction(1)
    counter: str | None = None


@dataclass(frozen=True)
class NicStep:
    """An NF, as `chain/nf`, and what comes behind it: matches are tried in order, the first that holds decides."""

    name: str
    function: NicFunction
    edges: tuple[NicEdge, ...]


@dataclass(frozen=True)
class NicEntry:
    """The step at which packets with a label enter. `rate_mbps`: at which they may; None: at any."""

    label: Label
    step: int
    rate_mbps: Fraction | None = None


@dataclass(frozen=True)
class NicPassing:
    """Packets that go through unchanged: those with a label, or, with None, those without a header."""

    label: Label | None
    to: NicSide


@dataclass(frozen=True)
class NicProgram:
    """All that a SmartNIC runs; each edge leads to a later step.

    Raises InputError from `check`, with every fault of the program.
    """

    name: str
    steps: tuple[NicStep, ...] = ()
    entries: tuple[NicEntry, ...] = ()
    passing: tuple[NicPassing, ...] = ()

    def check(self) -> None:
        """Refuse a program that cannot be written."""
        faults = [Fault(self.name, None, where, what, hint) for where, what, hint in self._faults()]
        if faults:
            raise InputError(faults)

    def _faults(self) -> Iterator[tuple[str, str, str | None]]:
        labels = [entry.label for entry in self.entries] + [exit_.label for exit_ in self.passing]
        for label, count in Counter(labels).items():
            if count > 1:
                yield "entries", f"{_show(label)} enters {count} times", None
        for label in {*labels, *(exit_.label for exit_ in self.exits())}:
            if label is not None and not (0 < label.path <= MOST_PATH and 0 <= label.index <= MOST_INDEX):
                yield "entries", f"{_show(label)} is no label", f"paths 1 to {MOST_PATH}, indices 0 to {MOST_INDEX}"
        for entry in self.entries:
            if not 0 <= entry.step < len(self.steps):
                yield "entries", f"{_show(entry.label)} enters at step {entry.step} of {len(self.steps)}", None
        for name, count in Counter(step.name for step in self.steps).items():
            if count > 1:
                yield name, f"is there {count} times", None
        for at, step in enumerate(self.steps):
            yield from _step_faults(at, step, len(self.steps))

    def exits(self) -> Sequence[NicExit]:
        """The ways out, each once."""
        return list(
            dict.fromkeys(edge.to for step in self.steps for edge in step.edges if isinstance(edge.to, NicExit))
        )

    @property
    def limited(self) -> Sequence[NicEntry]:
        """The entries with a limit of their rate."""
        return [entry for entry in self.entries if entry.rate_mbps is not None]

    def identifiers(self) -> list[str]:
        """Names of the steps in C."""
        return [f"nf_{identifier(step.name)}" for step in self.steps]


def _step_faults(at: int, step: NicStep, steps: int) -> Iterator[tuple[str, str, str | None]]:
    if not step.edges:
        yield step.name, "has no edge", "packets leave it to another step or out"
    for edge in step.edges:
        if isinstance(edge.to, int) and not at < edge.to < steps:
            yield step.name, f"leads back to step {edge.to}", "sort the steps: a SmartNIC runs no loop"
        if edge.share <= 0:
            yield step.name, f"an edge has the share {edge.share}", "shares are above 0"
    for what, hint in step.function.faults():
        yield step.name, what, hint


def _show(label: Label | None) -> str:
    return "no label" if label is None else f"label {label}"


# The program of a SmartNIC of a plan.


def nic_program(routing: Routing, place: Place, instances: Mapping[int, NfInstance]) -> NicProgram:
    """What a SmartNIC runs: its NFs in the order of packets, and what passes between switch and host."""
    nfs = routing.graph.of(place)
    steps = {nf.number: at for at, nf in enumerate(nfs)}
    return NicProgram(
        place.name,
        tuple(
            NicStep(
                nf.name,
                NIC_FUNCTIONS[nf.kind](instances[nf.number].parameters, instances[nf.number].data),
                tuple(
                    replace(_edge(routing, nf, way, steps), counter=routing.graph.counters.get((nf.number, at)))
                    for at, way in enumerate(nf.ways)
                ),
            )
            for nf in nfs
        ),
        tuple(
            NicEntry(routing.labels[nf.number], steps[nf.number], routing.rate_limit(nf))
            for nf in nfs
            if nf.number in routing.entered
        ),
        tuple(_passing(routing, place)),
    )


def _edge(routing: Routing, nf: RackNf, way: Way, steps: Mapping[int, int]) -> NicEdge:
    if way.target is None:
        return NicEdge(NicExit(NicSide.SWITCH, routing.exits[nf.number]), way.match, way.share)
    if way.target in steps:
        return NicEdge(steps[way.target], way.match, way.share)
    at_host = routing.graph.nfs[way.target].place.server == nf.place.server
    label = routing.labels[way.target]
    return NicEdge(NicExit(NicSide.HOST if at_host else NicSide.SWITCH, label), way.match, way.share)


def _passing(routing: Routing, place: Place) -> Iterator[NicPassing]:
    """Labels of packets that are not for the SmartNIC: to the host, or from it to the switch."""
    graph = routing.graph
    host = [nf for nf in graph.nfs if nf.place.server == place.server and nf.place != place]
    to_host = {routing.labels[nf.number] for nf in host if nf.number in routing.entered}
    to_switch: set[Label] = {routing.exits[nf.number] for nf in host if nf.number in routing.exits}
    for nf in host:
        away = [target for target in nf.targets if graph.nfs[target].place.server != place.server]
        to_switch |= {routing.labels[target] for target in away}
    yield from (NicPassing(label, NicSide.HOST) for label in sorted(to_host))
    yield from (NicPassing(label, NicSide.SWITCH) for label in sorted(to_switch))

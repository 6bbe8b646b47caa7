"""The reference: what chains do to packets, whatever runs them where.

Frames enter at the switch of a rack. Malformed ones, and those that claim to come from inside by a network service
header, are dropped; then the first chain that takes a frame has it. A frame runs through the models of the chain's NFs
(`nfs/`), one NF after the other, before the next frame enters. Nothing here knows of plans, paths or platforms.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from ipaddress import IPv4Address
from typing import Any, NamedTuple, Protocol

from placer.rack.chain import Chain
from placer.rack.compiler.execute import NfCounts
from placer.rack.compiler.library.nf_kind import NF_KINDS
from placer.rack.compiler.library.prefixes import Prefix
from placer.rack.compiler.traffic.entries import parse
from placer.rack.compiler.traffic.expression import Everything
from tests.reference.nfs import nf_models
from tests.reference.nfs.headers import has_too_many_tags, read_headers, word_at
from tests.reference.nfs.model import Contract, FunctionModel
from tests.reference.peel import TYPE, PacketFields, branches_behind, fields_of, holds, split_key

TYPE_NSH = 0x894F  # the type of frames with a network service header (RFC 8300)

MALFORMED, FORGED, UNCLASSIFIED, UNMATCHED = "malformed", "forged", "unclassified", "unmatched"
REASONS = (MALFORMED, FORGED, UNCLASSIFIED, UNMATCHED)  # why frames are dropped outside of NFs

Way = tuple[tuple[str, bytes], ...]


@dataclass(frozen=True)
class OutputFrame:
    """A frame that leaves.

    `input`: the number of the frame that entered, from 0. `way`: the NFs that it passed, each with the flow that the
    split hash sees there. Frames of one way keep their order, on however many cores NFs run. `is_certain`: whether its
    bytes and its way depend on nothing that a contract leaves open, such as the port that a NAT chose.
    """

    frame: bytes
    input: int
    way: Way
    is_certain: bool = True


@dataclass
class Interpretation:
    """What became of frames.

    `outputs`: in the order in which they left. `entered`: frames that entered the rack. `uncertain`, `uncertain_nfs`:
    frames of which some NF may do something else within its contract, by their numbers; and those NFs. `turns`: frames
    that went from one NF to another, by their names.
    """

    entered: int = 0
    outputs: list[OutputFrame] = field(default_factory=list)
    counts: dict[str, NfCounts] = field(default_factory=dict)
    dropped: Counter[str] = field(default_factory=Counter)
    uncertain: set[int] = field(default_factory=set)
    uncertain_nfs: set[str] = field(default_factory=set)
    turns: Counter[tuple[str, str]] = field(default_factory=Counter)


def interpret(chains: Sequence[Chain], packets: Iterable[tuple[int, bytes]]) -> Interpretation:
    """What chains make of frames, each given behind the time at which it arrives, us.

    Raises InputError when an NF has a parameter that its kind does not know, or of another range. Raises
    ExpressionError when an aggregate or a match cannot be read.
    """
    interpreter = Interpreter(chains)
    for time_us, frame in packets:
        interpreter.enter(frame, time_us)
    return interpreter.result


class WaysBehind(Protocol):
    """What chooses the next NF of frames."""

    @property
    def look_at_source(self) -> bool:
        """Whether the choice may depend on where a packet comes from."""
        ...

    def target(self, frame: bytes) -> int | None:
        """The number of the next NF; None if there is none for a frame."""
        ...


@dataclass(frozen=True)
class Meaning:
    """What the NFs and branches of a chain mean: by the chain's edges and parameters, unless a text says it.

    `model`: of an NF of a chain, by its number. `ways`: behind it.
    """

    model: Callable[[Chain, int], FunctionModel] = lambda chain, at: model_of(
        chain.nfs[at].nf, chain.nfs[at].parameters, f"{chain.name}/{chain.nfs[at].id}"
    )
    ways: Callable[[Chain, int], WaysBehind] = branches_behind


class Interpreter:
    """Chains with their state: `enter` frames one by one, and read `result`.

    `models` has the model of each NF, by `chain/nf`.
    """

    def __init__(self, chains: Sequence[Chain], meaning: Meaning | None = None) -> None:
        self.result = Interpretation()
        self.models: dict[str, FunctionModel] = {}
        meaning = meaning or Meaning()
        self._chains = [_RunningChain(chain, self.models, self.result, meaning) for chain in chains]

    def enter(self, frame: bytes, time_us: int) -> None:
        """Let a frame arrive from the world."""
        number, dropped = self.result.entered, self.result.dropped
        self.result.entered += 1
        if read_headers(frame).kind == "malformed" or has_too_many_tags(frame):
            dropped[MALFORMED] += 1
        elif word_at(frame, TYPE) == TYPE_NSH:
            dropped[FORGED] += 1
        else:
            fields = fields_of(frame)
            chain = next((running for running in self._chains if running.takes(fields)), None)
            if chain is None:
                dropped[UNCLASSIFIED] += 1
            else:
                chain.enter(frame, number, time_us)


class _Travelling(NamedTuple):
    """A frame that is about to enter an NF."""

    at: int
    frame: bytes
    way: Way = ()
    is_certain: bool = True
    is_translated: bool = False  # its source is what a NAT chose
    is_opaque: bool = False  # its payload is what an encoder or a cipher chose


class _RunningChain:
    def __init__(
        self, chain: Chain, models: dict[str, FunctionModel], result: Interpretation, meaning: Meaning
    ) -> None:
        self.chain = chain
        self.result = result
        self.aggregates = tuple(map(parse, chain.aggregates)) or (Everything(),)
        self.names = [f"{chain.name}/{nf.id}" for nf in chain.nfs]
        self.branches = [meaning.ways(chain, at) for at in range(len(chain.nfs))]
        self.models = models
        for at, name in enumerate(self.names):
            models[name] = meaning.model(chain, at)
            result.counts[name] = NfCounts()

    def takes(self, fields: PacketFields) -> bool:
        return any(holds(aggregate, fields) for aggregate in self.aggregates)

    def enter(self, frame: bytes, number: int, time_us: int) -> None:
        """Run a frame through the chain, and all that it becomes."""
        waiting = [_Travelling(self.chain.entry, frame)]
        while waiting:
            entering = waiting.pop()
            left = self._passed(entering, number, time_us)
            if self.chain.edges_from(entering.at):
                waiting += filter(None, (self._next(leaving, number) for leaving in reversed(left)))
            else:
                self.result.outputs += [OutputFrame(out.frame, number, out.way, out.is_certain) for out in left]

    def _passed(self, entering: _Travelling, number: int, time_us: int) -> list[_Travelling]:
        """Frames behind the NF."""
        name = self.names[entering.at]
        nf = self.models[name]
        left = entering._replace(
            way=(*entering.way, (name, split_key(entering.frame))),
            is_certain=entering.is_certain and not _leaves_open(nf, entering),
            is_translated=entering.is_translated or nf.contract is Contract.NAT,
            is_opaque=entering.is_opaque or nf.contract in (Contract.ESP, Contract.DEDUP),
        )
        made = nf.process(entering.frame, time_us)
        counts = self.result.counts[name]
        counts.entered += 1
        counts.sent += len(made)
        counts.dropped += not made
        if not left.is_certain:
            self.result.uncertain_nfs |= {name, *self._behind(entering.at)}
            self.result.uncertain.add(number)
        return [left._replace(frame=frame) for frame in made]

    def _next(self, left: _Travelling, number: int) -> _Travelling | None:
        """The frame before the next NF; None if no way is for it."""
        branches = self.branches[left.at]
        is_certain = left.is_certain and not (left.is_translated and branches.look_at_source)
        if not is_certain:
            self.result.uncertain.add(number)
            self.result.uncertain_nfs |= self._behind(left.at)
        target = branches.target(left.frame)
        if target is None:
            self.result.dropped[UNMATCHED] += 1
            return None
        self.result.turns[self.names[left.at], self.names[target]] += 1
        return left._replace(at=target, is_certain=is_certain)

    def _behind(self, at: int) -> set[str]:
        """All NFs that a frame may reach from one."""
        heads = [edge.head for edge in self.chain.edges_from(at)]
        return {self.names[head] for head in heads}.union(*map(self._behind, heads))


def _leaves_open(nf: FunctionModel, entering: _Travelling) -> bool:
    """Whether what an NF does to a frame depends on what an NF before it chose."""
    if entering.is_translated and entering.is_opaque and nf.opens_payload:
        return True
    return (entering.is_translated and nf.looks_at_source) or (entering.is_opaque and nf.changes_payload)


def model_of(nf: str, given: Mapping[str, float], name: str) -> FunctionModel:
    """The model of an NF of a chain: from its parameters and data, not from the settings that the compiler writes.

    Raises InputError when a parameter is unknown, or of another range.
    """
    kind = NF_KINDS.find(nf)
    parameters = kind.completed(given, name)
    settings = {key: f"{value:.15g}" for key, value in parameters.items()}
    match nf:
        case "ACL" | "IPv4Fwd" | "UrlFilter":
            text = "".join(f"{_line(entry)}\n" for entry in kind.data(parameters))
            return nf_models()[nf]({"file": "data", "list": "data", "ipv6": "pass"}, {"data": text})
        case "Monitor":
            settings["ipv6"] = "pass"
        case "Limiter":
            settings = {"rate_mbps": repr(parameters["mbps"])}
        case "NAT":
            settings["host_ports"] = "64512"
    return nf_models()[nf](settings, {})


def _line(entry: Any) -> str:
    """An entry of an NF's data as its function reads it."""
    if isinstance(entry, str):
        return entry
    if hasattr(entry, "hop"):
        return f"{_prefix(entry.prefix)} {entry.hop}"
    ends = ((entry.source, entry.source_ports), (entry.destination, entry.destination_ports))
    words = [f"{_prefix(prefix)} {low}-{high}" for prefix, (low, high) in ends]
    return f"{'permit' if entry.permit else 'deny'} {entry.protocol} {' '.join(words)}"


def _prefix(prefix: Prefix) -> str:
    return f"{IPv4Address(prefix.address)}/{prefix.length}"

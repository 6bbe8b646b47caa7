"""The reference: what chains do to packets, whatever runs them where.

Frames enter at the switch of a rack. Malformed ones, and those that claim to come from inside by a network service
header, are dropped; then the first chain that takes a frame has it. A frame runs through the models of the chain's NFs
(`library/`), one NF after the other, before the next frame enters. Nothing here knows of plans, paths or platforms.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from placer.chains.chain import Chain
from placer.metacompiler.library.headers import TYPE_NSH, FrameType, has_too_many_tags, read_headers, word_at
from placer.metacompiler.library.nf_model import NF_KINDS, Contract, FrameModel
from placer.metacompiler.traffic.expression import Everything, PacketFields, holds
from placer.metacompiler.traffic.parse import parsed
from placer.metacompiler.ways import TYPE, branches_behind, fields_of, split_key

MALFORMED, FORGED, UNCLASSIFIED, UNMATCHED = "malformed", "forged", "unclassified", "unmatched"
REASONS = (MALFORMED, FORGED, UNCLASSIFIED, UNMATCHED)
"""Why frames are dropped outside of NFs."""

Way = tuple[tuple[str, bytes], ...]


@dataclass
class NfCounts:
    """Frames that entered an NF, that it sent on, and that it dropped."""

    entered: int = 0
    sent: int = 0
    dropped: int = 0


@dataclass(frozen=True)
class OutputFrame:
    """A frame that leaves.

    Parameters
    ----------
    input
        The number of the frame that entered, from 0.
    way
        The NFs that it passed, each with the flow that the split hash sees there. Frames of one way keep their order,
        on however many cores NFs run.
    is_certain
        Whether its bytes and its way depend on nothing that a contract leaves open, such as the port that a NAT chose.
    """

    frame: bytes
    input: int
    way: Way
    is_certain: bool = True


@dataclass
class Interpretation:
    """What became of frames.

    Parameters
    ----------
    outputs
        In the order in which they left.
    counts
        By NF: `chain/nf`.
    dropped
        By reason, outside of NFs.
    entered
        Frames that entered the rack.
    uncertain, uncertain_nfs
        Frames of which some NF may do something else within its contract, by their numbers; and those NFs.
    """

    entered: int = 0
    outputs: list[OutputFrame] = field(default_factory=list)
    counts: dict[str, NfCounts] = field(default_factory=dict)
    dropped: Counter[str] = field(default_factory=Counter)
    uncertain: set[int] = field(default_factory=set)
    uncertain_nfs: set[str] = field(default_factory=set)


def interpret(chains: Sequence[Chain], packets: Iterable[tuple[int, bytes]]) -> Interpretation:
    """What chains make of frames, each given behind the time at which it arrives, us.

    Raises
    ------
    InputError
        When an NF has a parameter that its kind does not know, or of another range.
    ExpressionError
        When an aggregate or a match cannot be read.
    """
    interpreter = Interpreter(chains)
    for time_us, frame in packets:
        interpreter.enter(frame, time_us)
    return interpreter.result


class Interpreter:
    """Chains with their state: `enter` frames one by one, and read `result`.

    `models` has the model of each NF, by `chain/nf`.
    """

    def __init__(self, chains: Sequence[Chain]) -> None:
        self.result = Interpretation()
        self.models: dict[str, FrameModel] = {}
        self._chains = [_RunningChain(chain, self.models, self.result) for chain in chains]

    def enter(self, frame: bytes, time_us: int) -> None:
        """Let a frame arrive from the world."""
        number, dropped = self.result.entered, self.result.dropped
        self.result.entered += 1
        headers = read_headers(frame)
        if headers.type is FrameType.MALFORMED or has_too_many_tags(frame):
            dropped[MALFORMED] += 1
        elif word_at(frame, TYPE) == TYPE_NSH:
            dropped[FORGED] += 1
        else:
            fields = fields_of(frame)
            chain = next((one for one in self._chains if one.takes(fields)), None)
            if chain is None:
                dropped[UNCLASSIFIED] += 1
            else:
                chain.enter(frame, number, time_us)


class _Travelling(NamedTuple):
    """A frame that is about to enter an NF.

    `is_translated`: its source is what a NAT chose. `is_opaque`: its payload is what an encoder or a cipher chose.
    """

    at: int
    frame: bytes
    way: Way = ()
    is_certain: bool = True
    is_translated: bool = False
    is_opaque: bool = False


class _RunningChain:
    def __init__(self, chain: Chain, models: dict[str, FrameModel], result: Interpretation) -> None:
        self.chain = chain
        self.result = result
        self.aggregates = tuple(map(parsed, chain.aggregates)) or (Everything(),)
        self.names = [f"{chain.name}/{nf.id}" for nf in chain.nfs]
        self.branches = [branches_behind(chain, at) for at in range(len(chain.nfs))]
        self.nfs = [_RunningNf(nf.nf, nf.parameters, name) for nf, name in zip(chain.nfs, self.names, strict=True)]
        for name, nf in zip(self.names, self.nfs, strict=True):
            models[name] = nf.model
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
                waiting += filter(None, (self._next(one, number) for one in reversed(left)))
            else:
                self.result.outputs += [OutputFrame(one.frame, number, one.way, one.is_certain) for one in left]

    def _passed(self, entering: _Travelling, number: int, time_us: int) -> list[_Travelling]:
        """Frames behind the NF."""
        name, nf = self.names[entering.at], self.nfs[entering.at]
        left = entering._replace(
            way=(*entering.way, (name, split_key(entering.frame))),
            is_certain=entering.is_certain and not nf.leaves_open(entering.is_translated, entering.is_opaque),
            is_translated=entering.is_translated or nf.contract is Contract.NAT,
            is_opaque=entering.is_opaque or nf.contract in (Contract.ESP, Contract.DEDUP),
        )
        made = nf.model.process(entering.frame, time_us)
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
        return left._replace(at=target, is_certain=is_certain)

    def _behind(self, at: int) -> set[str]:
        """All NFs that a frame may reach from one."""
        heads = [edge.head for edge in self.chain.edges_from(at)]
        return {self.names[head] for head in heads}.union(*map(self._behind, heads))


class _RunningNf:
    """An instance, and what its kind says about it."""

    def __init__(self, nf: str, given: Mapping[str, float], name: str) -> None:
        kind = NF_KINDS.find(nf)
        parameters = kind.completed(given, name)
        self.model: FrameModel = kind.model(parameters, kind.data(parameters))
        self.contract = kind.contract(parameters)
        self.looks_at_source = kind.looks_at_source(parameters)
        self.changes_payload = kind.changes_payload(parameters)
        self.opens_payload = kind.opens_payload(parameters)

    def leaves_open(self, is_translated: bool, is_opaque: bool) -> bool:
        """Whether what it does to such a frame depends on what an NF before it chose."""
        if is_translated and is_opaque and self.opens_payload:
            return True
        return (is_translated and self.looks_at_source) or (is_opaque and self.changes_payload)

"""Compares what programs did with what the reference says: frames as a multiset, order per flow, counters.

Frames are equal byte for byte, but for what the contracts of the NFs on their way leave open (`peel.py`). External
endpoints of NATs correspond one to one. Behind a Limiter frames may be fewer, within its rate.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NamedTuple

from placer.rack.chain import Chain, ChainNf
from placer.rack.compiler.execute import NfCounts
from tests.reference import interpret
from tests.reference.nfs.headers import word_at
from tests.reference.peel import TYPE, BlankEndpoint, Endpoint, Peeled, PeelStep, peel, peel_steps

SHOWN = 3  # frames that are shown of each kind of difference
NO_LIMIT_MBPS = 1e6
RATE_SHARE, RATE_FRAMES = 0.05, 8
"""By how much what a Limiter sends may differ from its model: a share, and frames at the edges of bursts, where several
short ones may pass in place of a long one that came before them on another way."""


@dataclass(frozen=True)
class RackOutcome:
    """What programs did."""

    frames: Sequence[bytes]  # that left the rack, in their order
    counts: Mapping[str, NfCounts] | None = None  # by NF, `chain/nf`; None: they are not compared
    dropped: Mapping[str, int] = field(default_factory=dict)


class _Key(NamedTuple):
    """What frames are known by: the NFs with a contract on their way, the last one first, and what is left of them."""

    recipe: tuple[str, ...]
    left: bytes


class _Frames(NamedTuple):
    """Frames that left: with a counterpart in the reference, and without; and those that did not leave."""

    found: list[tuple[_Key, Peeled]]
    foreign: list[bytes]
    missing: list[interpret.OutputFrame]


class ReferenceRun:
    """A run of packets through chains by the reference, with which any number of outcomes can be compared.

    `expected` is what it did.
    """

    def __init__(
        self, chains: Sequence[Chain], packets: Iterable[tuple[int, bytes]], meaning: interpret.Meaning | None = None
    ) -> None:
        packets = list(packets)
        interpreter = _run(chains, packets, meaning)
        self.expected: interpret.Interpretation = interpreter.result
        self._limited = _from_limiters_on(chains)
        if self._limited:
            interpreter = _run([_without_limits(chain) for chain in chains], packets, meaning)
        self._most = interpreter.result
        self._steps = peel_steps(interpreter.models)
        self._limiters = {f"{chain.name}/{nf.id}" for chain in chains for nf in chain.nfs if nf.nf == "Limiter"}

    def differences(self, outcome: RackOutcome) -> list[str]:
        """What is wrong with an outcome, a sentence each; nothing if it is as it must be."""
        recipes = sorted({key.recipe for key in self._wanted}, key=len)
        matched, used = _Frames([], [], []), Counter[_Key]()
        for frame in outcome.frames:
            for recipe in recipes:
                left = peel(frame, [self._steps[name] for name in recipe])
                key = _Key(recipe, left.frame if left else b"")
                if left and used[key] < len(self._wanted.get(key, ())):
                    matched.found.append((key, left))
                    used[key] += 1
                    break
            else:
                matched.foreign.append(frame)
        for key, outputs in self._wanted.items():
            matched.missing.extend(output for output, _ in outputs[used[key] :])
        frames = matched
        wrong = [*_leaked(outcome.frames), *self._wrong_frames(frames)]
        if not wrong:
            wrong += [*self._wrong_endpoints(frames.found), *self._wrong_order(frames.found)]
        if outcome.counts is not None:
            wrong += [*self._wrong_counts(outcome.counts), *self._wrong_drops(outcome)]
        return wrong

    @cached_property
    def _wanted(self) -> Mapping[_Key, Sequence[tuple[interpret.OutputFrame, Peeled]]]:
        """Certain frames that may leave, by what they are known by, in the order in which they do."""
        wanted = defaultdict(list)
        for output in self._most.outputs:
            if output.is_certain:
                recipe, left = self._all_peeled(output)
                wanted[_Key(recipe, left.frame)].append((output, left))
        return dict(wanted)

    def _all_peeled(self, output: interpret.OutputFrame) -> tuple[tuple[str, ...], Peeled]:
        """The NFs that can be undone, and what is left: NFs behind them may have undone or hidden what others did."""
        recipe, left = [], Peeled(output.frame)
        for name, _ in reversed(output.way):
            further = self._steps[name].peeled(left) if name in self._steps else None
            if further is not None:
                recipe.append(name)
                left = further
        return tuple(recipe), left

    def _wrong_frames(self, frames: _Frames) -> Iterator[str]:
        """Frames that should not have left, or did not. Each uncertain one may have become any frame."""
        missing = [one for one in frames.missing if not any(name in self._limiters for name, _ in one.way)]
        if len(frames.foreign) > len(self.expected.uncertain):
            yield _shown("left, but should not have", frames.foreign)
        if missing:
            yield _shown("did not leave, but should have", [one.frame for one in missing])

    def _wrong_order(self, found: Iterable[tuple[_Key, Peeled]]) -> Iterator[str]:
        """Flows whose frames left in another order. Frames that are the same on several ways are not looked at."""
        ways = {
            key: outputs[0][0].way for key, outputs in self._wanted.items() if len({a.way for a, _ in outputs}) == 1
        }
        sent, expected = defaultdict[interpret.Way, list[_Key]](list), defaultdict[interpret.Way, list[_Key]](list)
        keys = {id(output): key for key, outputs in self._wanted.items() for output, _ in outputs}
        for key, _ in found:
            if key in ways:
                sent[ways[key]].append(key)
        for output in self._most.outputs:
            key = keys.get(id(output), _Key((), b""))
            if key in ways:
                expected[ways[key]].append(key)
        for way, order in sent.items():
            if not _is_part(order, expected[way]):
                yield f"{len(order)} frames of one flow left in another order than they came, by {_way_text(way)}"

    def _wrong_endpoints(self, found: Sequence[tuple[_Key, Peeled]]) -> Iterator[str]:
        """NATs whose external endpoints do not correspond one to one with those of the reference."""
        reference = [(key, left) for key, outputs in self._wanted.items() for _, left in outputs]
        for nat in sorted(name for name, step in self._steps.items() if isinstance(step, BlankEndpoint)):
            sent, expected = _by_endpoint(nat, found, self._steps), _by_endpoint(nat, reference, self._steps)
            same = _correspond(sent, expected) if self._limited else _signatures(sent) == _signatures(expected)
            if not same:
                yield f"{nat}: external endpoints are not one for each inside endpoint"

    def _wrong_counts(self, counts: Mapping[str, NfCounts]) -> Iterator[str]:
        """Counters of NFs that differ."""
        for name, expected in self.expected.counts.items():
            found = counts.get(name, NfCounts())
            if name in self.expected.uncertain_nfs:
                continue
            if name in self._limited:
                near = name not in self._limiters or _is_near(found, expected)
                if not near or found.entered != found.sent + found.dropped:
                    yield f"{name}: counted {_counts_text(found)}, its rate allows about {_counts_text(expected)}"
            elif found != expected:
                yield f"{name}: counted {_counts_text(found)}, not {_counts_text(expected)}"
        for name in counts:
            if name not in self.expected.counts:
                yield f"{name}: counted, but no NF of the chains"

    def _wrong_drops(self, outcome: RackOutcome) -> Iterator[str]:
        """Reasons that differ, and frames that are neither sent nor dropped."""
        exact = (
            (interpret.MALFORMED, interpret.FORGED, interpret.UNCLASSIFIED)
            if self.expected.uncertain or self._limited
            else interpret.REASONS
        )
        for reason in exact:
            found, expected = outcome.dropped.get(reason, 0), self.expected.dropped[reason]
            if found != expected:
                yield f"dropped as {reason}: {found}, not {expected}"
        for reason in sorted(set(outcome.dropped) - set(interpret.REASONS)):
            if outcome.dropped[reason]:
                yield f"dropped as {reason}: {outcome.dropped[reason]}, which explains nothing"
        inside = sum(one.dropped for one in (outcome.counts or {}).values())
        left = len(outcome.frames) + sum(outcome.dropped.values()) + inside
        if left != self.expected.entered:
            yield f"{self.expected.entered} frames entered, but {left} left or were dropped"


def _run(
    chains: Sequence[Chain], packets: Iterable[tuple[int, bytes]], meaning: interpret.Meaning | None
) -> interpret.Interpreter:
    interpreter = interpret.Interpreter(chains, meaning)
    for time_us, frame in packets:
        interpreter.enter(frame, time_us)
    return interpreter


def _without_limits(chain: Chain) -> Chain:
    """The chain with Limiters whose rate nothing reaches."""

    def unlimited(nf: ChainNf) -> ChainNf:
        return replace(nf, parameters={**nf.parameters, "mbps": NO_LIMIT_MBPS}) if nf.nf == "Limiter" else nf

    return replace(chain, nfs=tuple(map(unlimited, chain.nfs)))


def _from_limiters_on(chains: Iterable[Chain]) -> set[str]:
    """Limiters and what is behind them: their counters depend on rates."""
    found = set()
    for chain in chains:
        behind: set[int] = set()
        for at in chain.order:
            if chain.nfs[at].nf == "Limiter" or any(edge.tail in behind for edge in chain.edges_into(at)):
                behind.add(at)
        found |= {f"{chain.name}/{chain.nfs[at].id}" for at in behind}
    return found


_Groups = Mapping[Endpoint, Counter[_Key]]


def _by_endpoint(nat: str, frames: Iterable[tuple[_Key, Peeled]], steps: Mapping[str, PeelStep]) -> _Groups:
    """What left by each external endpoint of a NAT."""
    groups: dict[Endpoint, Counter[_Key]] = defaultdict(Counter)
    for key, left in frames:
        nats = [name for name in key.recipe if isinstance(steps[name], BlankEndpoint)]
        for name, endpoint in zip(nats, left.endpoints, strict=False):
            if name == nat:
                groups[endpoint][key] += 1
    return groups


def _signatures(groups: _Groups) -> Counter[frozenset[tuple[_Key, int]]]:
    """What left by endpoints, whatever these are: equal if the endpoints correspond one to one."""
    return Counter(frozenset(group.items()) for group in groups.values())


def _correspond(sent: _Groups, expected: _Groups) -> bool:
    """Whether endpoints correspond one to one, by frames that occur once; of the others it is unknown."""
    by_frame, twice = {}, set[_Key]()
    for endpoint, group in expected.items():
        for key, n in group.items():
            twice |= {key} if n > 1 or key in by_frame else set()
            by_frame[key] = endpoint
    pairs = {(by_frame[key], one) for one, group in sent.items() for key in group if key not in twice}
    return len({inside for inside, _ in pairs}) == len(pairs) == len({outside for _, outside in pairs})


def _is_near(found: NfCounts, expected: NfCounts) -> bool:
    """Whether a Limiter sent about what its model sends."""
    return abs(found.sent - expected.sent) <= max(RATE_FRAMES, RATE_SHARE * expected.entered)


def _is_part(order: Sequence[_Key], whole: Iterable[_Key]) -> bool:
    """Whether all keys occur in this order."""
    rest = iter(whole)
    return all(key in rest for key in order)


def _leaked(frames: Sequence[bytes]) -> Iterator[str]:
    leaked = [frame for frame in frames if len(frame) >= TYPE + 2 and word_at(frame, TYPE) == interpret.TYPE_NSH]
    if leaked:
        yield _shown("left with a network service header", leaked)


def _shown(what: str, frames: Sequence[bytes]) -> str:
    more = f", and {len(frames) - SHOWN} more" if len(frames) > SHOWN else ""
    return f"{len(frames)} frames {what}: {', '.join(frame.hex() for frame in frames[:SHOWN])}{more}"


def _counts_text(counts: NfCounts) -> str:
    return f"{counts.entered} entered, {counts.sent} sent, {counts.dropped} dropped"


def _way_text(way: interpret.Way) -> str:
    return " -> ".join(name for name, _ in way)

"""What readings say of a place and near it. A place is a workload on a NIC model beside certain competitors."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from placer.feedback.ledger import Ledger, LedgerEntry, parts_of
from placer.model.oracle import CACHED, CoLocation
from profiles import Workload

NEARNESS = {1: 0.2, 2: 0.15}
"""The weight of what was measured where so many competitors differ. Placement chooses what is predicted too high, so
what is measured lies below the predictions of what is near: with more weight, it costs NICs and saves no violation."""

UNMOVED = 1.0
"""The weight of the prediction itself among what was measured near."""

Place = tuple[str, Workload, CoLocation]
"""NIC model, workload and competitors."""


class MeasuredShift(NamedTuple):
    """What readings say together, of the logarithm.

    Parameters
    ----------
    weighted
        By how much predictions move, times its weight.
    weight
        Its weight.
    noise
        How far that usually is off by the noise of readings; None where nobody lost packets.
    doubt
        How much lower it is taken to be because of that.
    """

    weighted: float
    weight: float
    noise: float | None = None
    doubt: float = 0.0


SILENT = MeasuredShift(0.0, 0.0)


class _Node:
    """A place, linked with those in which one competitor is missing; None where something is not known yet."""

    __slots__ = ("more", "own", "parts", "place")

    def __init__(self, place: Place) -> None:
        self.place = place
        self.own: MeasuredShift | None = None
        self.more: MeasuredShift | None = None
        self.parts: tuple[_Node, ...] | None = None


class NearPlaces:
    """What is said of places, as it is asked for.

    A decision asks for hundreds of places, and a reading changes what is said of a few. So places are linked once, and
    what was added up is kept until a reading changes it.

    Parameters
    ----------
    ledger
        All readings.
    agreement
        What the readings of an entry say together.
    """

    def __init__(self, ledger: Ledger, agreement: Callable[[Place, LedgerEntry], MeasuredShift]) -> None:
        self._ledger = ledger
        self._agreement = agreement
        self._nodes: dict[Place, _Node] = {}

    def at(self, place: Place) -> tuple[float, MeasuredShift]:
        """By how much what was measured near moves the prediction of a place, of the logarithm, and what was measured
        in exactly this place.

        Nothing is near an NF alone, which was measured before it was deployed.
        """
        node = self._nodes.get(place) or self._node(place)
        own = node.own or self._own(node)
        return (self._near(node, own) if place[2] else 0.0), own

    def changed(self, place: Place) -> None:
        """Something was measured here."""
        node = self._node(place)
        node.own = None
        for part in self._parts(node):
            part.more = None

    def clear(self) -> None:
        """Anything may have changed."""
        self._nodes.clear()

    def _near(self, node: _Node, own: MeasuredShift) -> float:
        one_more = node.more or self._more(node)
        one, two = NEARNESS[1], NEARNESS[2]
        total, weights = one * one_more.weighted, UNMOVED + one * one_more.weight
        for part in node.parts or self._parts(node):
            fewer, others = part.own or self._own(part), part.more or self._more(part)
            total += one * fewer.weighted
            weights += one * fewer.weight
            total += two * (others.weighted - own.weighted)
            weights += two * (others.weight - own.weight)
        return total / weights

    def _node(self, place: Place) -> _Node:
        node = self._nodes.get(place)
        if node is None:
            if len(self._nodes) >= CACHED:
                self._nodes.clear()
            node = self._nodes[place] = _Node(place)
        return node

    def _parts(self, node: _Node) -> tuple[_Node, ...]:
        if node.parts is None:
            nic_model, workload, competitors = node.place
            node.parts = tuple([self._node((nic_model, workload, part)) for part in parts_of(competitors)])
        return node.parts

    def _own(self, node: _Node) -> MeasuredShift:
        if node.own is None:
            entry = self._ledger.find(*node.place)
            node.own = SILENT if entry is None else self._agreement(node.place, entry)
        return node.own

    def _more(self, node: _Node) -> MeasuredShift:
        """What all entries with these competitors and one more say together."""
        if node.more is None:
            nic_model, workload, _ = node.place
            entries = self._ledger.with_one_more(*node.place)
            every = [self._own(self._node((nic_model, workload, one.competitors))) for one in entries]
            node.more = MeasuredShift(sum(one.weighted for one in every), sum(one.weight for one in every))
        return node.more

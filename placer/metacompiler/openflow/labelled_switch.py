"""The emulated OpenFlow switch among devices that know service headers.

What leaves the switch has VLAN labels; here stands what a server does first and last: it takes the label for a service
header, and back.
"""

from __future__ import annotations

from collections import Counter

from placer.metacompiler.openflow.emulated_switch import EmulatedOpenFlowSwitch
from placer.metacompiler.openflow.labels import read_labels, with_service_header, with_vlan_label
from placer.metacompiler.openflow.pipeline import UNKNOWN_PATH, WORLD


class LabelledSwitch:
    """A switch with ports from 0 on, the world's, as the programmable one of the rack has them.

    Parameters
    ----------
    flows, groups, names, labels
        Texts as generated.
    """

    def __init__(self, flows: str, groups: str, names: str, labels: str) -> None:
        self._switch = EmulatedOpenFlowSwitch(flows, groups)
        self._names = names
        self._labels = read_labels(labels)
        self._unknown = 0

    def process(self, frame: bytes, port: int) -> tuple[int, bytes] | None:
        """The port by which a frame leaves, and the frame there; None if it is dropped."""
        arrived = frame if port == 0 else with_vlan_label(frame, self._labels)
        if arrived is None:
            self._unknown += 1
            return None
        left = self._switch.process(arrived, port + WORLD)
        if not left:
            return None
        [(to, made)] = left
        served = made if to == WORLD else with_service_header(made, self._labels)
        return None if served is None else (to - WORLD, served)

    def counters(self) -> Counter[str]:
        """What rules counted: `NF sent`, `NF dropped` and `reason REASON`."""
        counted = self._switch.counters(self._names)
        counted[f"reason {UNKNOWN_PATH}"] += self._unknown
        return counted

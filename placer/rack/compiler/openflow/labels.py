"""Service paths as VLANs: an OpenFlow switch knows no service headers (Lemur, section 5.3).

A label is an outer tag of IEEE 802.1ad, whose VLAN stands for service path and index. Only labels by which packets
travel get a number, so that 4,094 of them serve for more NFs. Between the switch and the servers the outermost tag is
always a label, whatever tags a packet has of its own: those are behind it. No frame from the world is looked at for
one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from placer.rack.compiler.openflow.headers import ETHERNET_BYTES, TAG_BYTES, TYPE_NSH, TYPE_QINQ, word_at
from placer.rack.compiler.routing import Label, Routing
from profiles import InputError

MOST_LABELS = 4094
"""VLANs that a tag can name: 0 and 4095 are reserved (IEEE 802.1Q, table 9-2)."""
ADDRESS_BYTES = 12
NSH_BASE = bytes.fromhex("0fc20203")
"""Version 0, time to live 63, two words, metadata of variable length, Ethernet (RFC 8300)."""
NSH_BYTES = 8


@dataclass(frozen=True)
class VlanLabels:
    """The VLAN of each label."""

    vlans: Mapping[Label, int]

    @cached_property
    def labels(self) -> Mapping[int, Label]:
        """The label of each VLAN."""
        return {vlan: label for label, vlan in self.vlans.items()}

    def text(self) -> str:
        """A line per label: VLAN, service path, index."""
        return "".join(f"{vlan} {label.path} {label.index}\n" for label, vlan in self.vlans.items())


def read_labels(text: str) -> VlanLabels:
    """The labels of a text that `VlanLabels.text` wrote."""
    lines = [list(map(int, line.split())) for line in text.splitlines()]
    return VlanLabels({Label(path, index): vlan for vlan, path, index in lines})


def vlan_labels(routing: Routing) -> VlanLabels:
    """The VLANs of the labels by which packets travel.

    Raises
    ------
    InputError
        When there are more than a tag can name.
    """
    used = {routing.labels[nf] for nf in routing.entered} | set(routing.exits.values())
    if len(used) > MOST_LABELS:
        message = f"{len(used)} labels are too many for an OpenFlow switch: a VLAN tag names {MOST_LABELS}"
        raise InputError.of("chains", message, hint="fewer chains, or fewer changes between switch and servers")
    in_order = sorted(used, key=lambda label: (label.path, -label.index))
    return VlanLabels({label: vlan for vlan, label in enumerate(in_order, 1)})


def tag(frame: bytes, vlan: int) -> bytes:
    """A frame with its label in front of all tags of its own."""
    return frame[:ADDRESS_BYTES] + (TYPE_QINQ << 16 | vlan).to_bytes(4, "big") + frame[ADDRESS_BYTES:]


def with_service_header(frame: bytes, labels: VlanLabels) -> bytes | None:
    """A labelled frame with a service header in place of the tag, as servers know it; None if it has no label."""
    if len(frame) < ETHERNET_BYTES + TAG_BYTES or word_at(frame, ADDRESS_BYTES) != TYPE_QINQ:
        return None
    label = labels.labels.get(word_at(frame, ETHERNET_BYTES) & 0xFFF)
    if label is None:
        return None
    inner = frame[:ADDRESS_BYTES] + frame[ADDRESS_BYTES + TAG_BYTES :]
    return inner[:ADDRESS_BYTES] + TYPE_NSH.to_bytes(2, "big") + NSH_BASE + label.word.to_bytes(4, "big") + inner


def with_vlan_label(frame: bytes, labels: VlanLabels) -> bytes | None:
    """A frame with a tag in place of its service header; None if it has no header, or an unknown path."""
    begin = ETHERNET_BYTES + NSH_BYTES
    if len(frame) < begin + ETHERNET_BYTES or word_at(frame, ADDRESS_BYTES) != TYPE_NSH:
        return None
    word = int.from_bytes(frame[ETHERNET_BYTES + 4 : begin], "big")
    vlan = labels.vlans.get(Label(word >> 8, word & 0xFF))
    return None if vlan is None else tag(frame[begin:], vlan)

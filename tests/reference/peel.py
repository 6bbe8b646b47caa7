"""Takes off frames what contracts of NFs leave open: ciphers are opened, encoded payloads restored, endpoints blanked.

What is left is the same, whichever keys of a stream, references or ports an NF chose within its contract.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from tests.reference.nfs.dedup import DedupModel
from tests.reference.nfs.esp import EspModel
from tests.reference.nfs.headers import CHECKSUM_AT, ICMP, SOURCE, TCP, Headers, end_of, read_headers, with_end, word_at
from tests.reference.nfs.model import Contract, FunctionModel
from tests.reference.nfs.nat import NatModel

Endpoint = tuple[int, int, int]
"""Protocol, address, and port or identifier."""


class Peeled(NamedTuple):
    """What is left of a frame, and the external endpoints of NATs that were taken off, the last NAT's first."""

    frame: bytes
    endpoints: tuple[Endpoint, ...] = ()


class PeelStep(Protocol):
    """Undoes one NF."""

    def peeled(self, of: Peeled) -> Peeled | None:
        """What is left; None if the frame cannot have passed that NF."""
        ...


@dataclass(frozen=True)
class OpenEsp:
    """Decrypts."""

    model: EspModel

    def peeled(self, of: Peeled) -> Peeled | None:
        opened = self.model.open_sent(of.frame)
        return None if opened is None else of._replace(frame=opened)


@dataclass(frozen=True)
class RestorePayload:
    """Replaces references to earlier payloads by their bytes."""

    model: DedupModel

    def peeled(self, of: Peeled) -> Peeled | None:
        return of._replace(frame=self.model.restore_sent(of.frame))


@dataclass(frozen=True)
class BlankEndpoint:
    """Blanks the external endpoint of a NAT; checksums change with it, so that a wrong one stays wrong."""

    model: NatModel

    def peeled(self, of: Peeled) -> Peeled | None:
        headers = read_headers(of.frame)
        if headers.kind != "ipv4" or headers.l4 == 0:
            return None
        address, port = end_of(of.frame, headers.l3, headers.l4, SOURCE)
        if not self.model.owns(address):
            return None
        blank = with_end(of.frame, headers.l3, headers.l4, SOURCE, (0, 0))
        return Peeled(_with_one_zero(blank, headers), (*of.endpoints, (headers.protocol, address, port)))


def peel_steps(models: Mapping[str, FunctionModel]) -> dict[str, PeelStep]:
    """By NF with a contract, `chain/nf`, what undoes it; `models` are those that ran."""
    found: dict[str, PeelStep] = {}
    for name, model in models.items():
        if isinstance(model, NatModel):
            found[name] = BlankEndpoint(model)
        elif isinstance(model, DedupModel):
            found[name] = RestorePayload(model)
        elif isinstance(model, EspModel) and model.contract is Contract.ESP:
            found[name] = OpenEsp(model)
    return found


def peel(frame: bytes, steps: Iterable[PeelStep]) -> Peeled | None:
    """What is left of a frame after all steps, the last NF first; None if it cannot have passed these NFs."""
    of: Peeled | None = Peeled(frame)
    for step in steps:
        of = None if of is None else step.peeled(of)
    return of


def _with_one_zero(frame: bytes, headers: Headers) -> bytes:
    """A frame in which checksums have one of the two zeros of ones' complement."""
    made = bytearray(frame)
    places = [headers.l3 + 10]
    if headers.protocol in (TCP, ICMP):
        places.append(headers.l4 + CHECKSUM_AT[headers.protocol])
    for at in places:
        if word_at(made, at) == 0xFFFF:
            made[at : at + 2] = b"\0\0"
    return bytes(made)

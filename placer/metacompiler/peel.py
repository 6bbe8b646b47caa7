"""Takes off frames what contracts of NFs leave open: ciphers are opened, encoded payloads restored, endpoints blanked.

What is left is the same, whichever keys of a stream, references or ports an NF chose within its contract.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from placer.chains.chain import Chain, ChainNf
from placer.metacompiler.library.dedup import DedupModel
from placer.metacompiler.library.esp import AesCbc, ChaCha20, Opening
from placer.metacompiler.library.headers import ICMP, TCP, FrameType, Headers, read_headers, source_of, word_at
from placer.metacompiler.library.nf_model import NF_KINDS, Contract, FrameModel
from placer.metacompiler.library.rewriting import (
    CHECKSUMS,
    IP_CHECKSUM,
    PacketEnd,
    port_of,
    with_address,
    with_port,
)

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

    opening: Opening

    def peeled(self, of: Peeled) -> Peeled | None:
        opened = self.opening.opened(of.frame)
        return None if opened is None else of._replace(frame=opened)


@dataclass(frozen=True)
class RestorePayload:
    """Replaces references to earlier payloads by their bytes."""

    model: DedupModel

    def peeled(self, of: Peeled) -> Peeled | None:
        return of._replace(frame=self.model.restored(of.frame))


@dataclass(frozen=True)
class BlankEndpoint:
    """Blanks the external endpoint of a NAT; checksums change with it, so that a wrong one stays wrong."""

    first_address: int
    addresses: int

    def peeled(self, of: Peeled) -> Peeled | None:
        frame = of.frame
        headers = read_headers(frame)
        if headers.type is not FrameType.IPV4 or headers.l4 == 0:
            return None
        address = source_of(frame, headers)
        if not 0 <= address - self.first_address < self.addresses:
            return None
        endpoint = headers.protocol, address, port_of(frame, headers, PacketEnd.SOURCE)
        blank = with_address(with_port(frame, headers, PacketEnd.SOURCE, 0), headers, PacketEnd.SOURCE, 0)
        return Peeled(_with_one_zero(blank, headers), (*of.endpoints, endpoint))


def peel_steps(chains: Iterable[Chain], models: Mapping[str, FrameModel]) -> dict[str, PeelStep]:
    """By NF with a contract, `chain/nf`, what undoes it; `models` are those that ran."""
    found: dict[str, PeelStep] = {}
    for chain in chains:
        for nf in chain.nfs:
            name = f"{chain.name}/{nf.id}"
            if step := _step(nf, name, models[name]):
                found[name] = step
    return found


def _step(nf: ChainNf, name: str, model: FrameModel) -> PeelStep | None:
    kind = NF_KINDS.find(nf.nf)
    parameters = kind.completed(nf.parameters, name)
    match kind.contract(parameters):
        case Contract.NAT:
            return BlankEndpoint(int(parameters["first_address"]), int(parameters["addresses"]))
        case Contract.ESP:
            return OpenEsp(Opening(AesCbc() if nf.nf == "Encrypt" else ChaCha20(), parameters["in_udp"] == 1))
        case Contract.DEDUP if isinstance(model, DedupModel):
            return RestorePayload(model)
        case _:
            return None


def peel(frame: bytes, steps: Iterable[PeelStep]) -> Peeled | None:
    """What is left of a frame after all steps, the last NF first; None if it cannot have passed these NFs."""
    of: Peeled | None = Peeled(frame)
    for step in steps:
        of = None if of is None else step.peeled(of)
    return of


def _with_one_zero(frame: bytes, headers: Headers) -> bytes:
    """A frame in which checksums have one of the two zeros of ones' complement."""
    made = bytearray(frame)
    places = [headers.l3 + IP_CHECKSUM]
    if headers.protocol in (TCP, ICMP):
        places.append(headers.l4 + CHECKSUMS[headers.protocol])
    for at in places:
        if word_at(made, at) == 0xFFFF:
            made[at : at + 2] = b"\0\0"
    return bytes(made)

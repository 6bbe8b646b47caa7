"""FastEncrypt: ESP by ChaCha20-Poly1305 (RFC 7634), or ChaCha20 over the begin of payloads, which fits a SmartNIC."""

from __future__ import annotations

from collections.abc import Mapping

from placer.metacompiler.library.esp import CHACHA_KEY, IN_UDP, ChaCha20, Sealing, esp_settings, require_cryptography
from placer.metacompiler.library.headers import UDP, FrameType, Headers, checksum_changed, read_headers, word_at
from placer.metacompiler.library.nf_model import NF_KINDS, Contract, FrameModel, NoData, ParameterRange, Platform
from placer.metacompiler.library.rewriting import CHECKSUMS

BLOCK = 64
"""Bytes of a block of key stream."""
MOST_BLOCKS = 16


class StreamModel:
    """What FastEncrypt with blocks does to frames: the first bytes of UDP and TCP payloads are encrypted.

    It emulates what fits a card, and is no protection: the same packet has the same key stream, and nothing is
    authenticated. Done twice it undoes itself. Fragments, and packets without such a payload, pass.
    """

    def __init__(self, blocks: int) -> None:
        require_cryptography("FastEncrypt")
        self._bytes = BLOCK * blocks

    def process(self, packet: bytes, time_us: int) -> list[bytes]:
        headers = read_headers(packet)
        if headers.type is FrameType.MALFORMED:
            return []
        end = min(headers.end, headers.payload + self._bytes)
        if not headers.has_ports or headers.fragment or end == headers.payload:
            return [packet]
        before = packet[headers.payload : end]
        after = _encrypted(_nonce(packet, headers), before)
        made = bytearray(packet)
        made[headers.payload : end] = after
        _update(made, headers, before, after)
        return [bytes(made)]


def _encrypted(nonce: bytes, data: bytes) -> bytes:
    from cryptography.hazmat.primitives.ciphers import Cipher, algorithms

    return Cipher(algorithms.ChaCha20(CHACHA_KEY, nonce), mode=None).encryptor().update(data)


def _nonce(packet: bytes, headers: Headers) -> bytes:
    """The counter, from 1, and a nonce of addresses, identification and protocol."""
    l3 = headers.l3
    return (
        (1).to_bytes(4, "little") + packet[l3 + 12 : l3 + 20] + packet[l3 + 4 : l3 + 6] + bytes((headers.protocol, 0))
    )


def _update(packet: bytearray, headers: Headers, before: bytes, after: bytes) -> None:
    at, odd = headers.l4 + CHECKSUMS[headers.protocol], bytes(len(before) % 2)
    was = word_at(packet, at)
    if headers.protocol == UDP and was == 0:
        return
    now = checksum_changed(was, before + odd, after + odd)
    if headers.protocol == UDP and now == 0:
        now = 0xFFFF  # 0 would mean no checksum (RFC 768)
    packet[at : at + 2] = now.to_bytes(2, "big")


class FastEncryptNf(NoData):
    """Encryption by ChaCha20."""

    name = "FastEncrypt"
    parameters = (
        ParameterRange("blocks", "of 64 bytes that are encrypted in each payload; 0: ESP", 0, MOST_BLOCKS, 0),
        IN_UDP,
    )
    platforms = frozenset(("server", "smartnic"))

    def runs_on(self, parameters: Mapping[str, float]) -> frozenset[Platform]:
        return self.platforms if parameters["blocks"] else frozenset(("server",))

    def contract(self, parameters: Mapping[str, float]) -> Contract:
        return Contract.BYTES if parameters["blocks"] else Contract.ESP

    def looks_at_source(self, parameters: Mapping[str, float]) -> bool:
        return parameters["blocks"] > 0

    def changes_payload(self, parameters: Mapping[str, float]) -> bool:
        return parameters["blocks"] > 0

    def model(self, parameters: Mapping[str, float], data: None) -> FrameModel:
        if parameters["blocks"]:
            return StreamModel(int(parameters["blocks"]))
        return Sealing(ChaCha20(), parameters["in_udp"] == 1)

    def server_settings(self, parameters: Mapping[str, float], files: Mapping[str, str]) -> dict[str, str]:
        blocks = int(parameters["blocks"])
        return {"blocks": f"{blocks}"} if blocks else esp_settings(parameters)


NF_KINDS.register(FastEncryptNf.name)(FastEncryptNf())

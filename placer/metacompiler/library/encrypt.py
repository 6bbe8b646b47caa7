"""Encrypt: packets leave as ESP by AES-128-CBC (RFC 3602) and HMAC-SHA-256-128 (RFC 4868)."""

from __future__ import annotations

from collections.abc import Mapping

from placer.metacompiler.library.esp import IN_UDP, AesCbc, Sealing, esp_settings
from placer.metacompiler.library.nf_model import NF_KINDS, Contract, FrameModel, NoData


class EncryptNf(NoData):
    """The end of a link that encrypts; the other one is Decrypt."""

    name = "Encrypt"
    parameters = (IN_UDP,)
    platforms = frozenset(("server",))

    def contract(self, parameters: Mapping[str, float]) -> Contract:
        return Contract.ESP

    def model(self, parameters: Mapping[str, float], data: None) -> FrameModel:
        return Sealing(AesCbc(), parameters["in_udp"] == 1)

    def server_settings(self, parameters: Mapping[str, float], files: Mapping[str, str]) -> dict[str, str]:
        return esp_settings(parameters)


NF_KINDS.register(EncryptNf.name)(EncryptNf())

"""Decrypt: the other end of Encrypt's link."""

from __future__ import annotations

from collections.abc import Mapping

from placer.metacompiler.library.esp import IN_UDP, AesCbc, Opening, esp_settings
from placer.metacompiler.library.nf_model import NF_KINDS, FrameModel, NoData


class DecryptNf(NoData):
    """The end of a link that decrypts; what is not of the link is dropped."""

    name = "Decrypt"
    parameters = (IN_UDP,)
    platforms = frozenset(("server",))

    def opens_payload(self, parameters: Mapping[str, float]) -> bool:
        return True

    def model(self, parameters: Mapping[str, float], data: None) -> FrameModel:
        return Opening(AesCbc(), parameters["in_udp"] == 1)

    def server_settings(self, parameters: Mapping[str, float], files: Mapping[str, str]) -> dict[str, str]:
        return esp_settings(parameters)


NF_KINDS.register(DecryptNf.name)(DecryptNf())

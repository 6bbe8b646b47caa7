"""FastEncrypt: ESP by ChaCha20-Poly1305 (RFC 7634), or ChaCha20 over the begin of payloads, which fits a SmartNIC."""

from collections.abc import Mapping

from placer.rack.compiler.library.encrypt import IN_UDP, esp_settings
from placer.rack.compiler.library.nf_kind import NF_KINDS, NoData, ParameterRange, Platform

MOST_BLOCKS = 16


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

    def server_settings(self, parameters: Mapping[str, float], files: Mapping[str, str]) -> dict[str, str]:
        blocks = int(parameters["blocks"])
        return {"blocks": f"{blocks}"} if blocks else esp_settings(parameters)


NF_KINDS.register(FastEncryptNf.name)(FastEncryptNf())

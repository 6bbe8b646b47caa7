"""FastEncrypt: ESP by ChaCha20-Poly1305 (RFC 7634), or ChaCha20 over the begin of payloads, which fits a SmartNIC."""

from collections.abc import Mapping
from typing import Any

from placer.rack.compiler.library.encrypt import IN_UDP, esp_settings, key_settings
from placer.rack.compiler.library.given_data import DataParameter
from placer.rack.compiler.library.nf_kind import NF_KINDS, NfKind, ParameterRange, Platform

MOST_BLOCKS = 16
DEFAULT_KEY = bytes(range(36))  # the key and the salt of nf-run


class FastEncryptNf(NfKind[bytes]):
    """Encryption by ChaCha20. Its data is the key, 32 bytes, and the salt of nonces, 4 bytes."""

    name = "FastEncrypt"
    parameters = (
        ParameterRange("blocks", "of 64 bytes that are encrypted in each payload; 0: ESP", 0, MOST_BLOCKS, 0),
        IN_UDP,
    )
    own = (DataParameter("key", "key and salt", lambda given: given.hex_digits(2 * len(DEFAULT_KEY))),)
    platforms = frozenset(("server", "smartnic"))

    def data(self, parameters: Mapping[str, float]) -> bytes:
        return DEFAULT_KEY

    def data_of(self, parameters: Mapping[str, float], own: Mapping[str, Any]) -> bytes:
        key: bytes = own["key"]
        return key

    def own_settings(self, own: Mapping[str, Any]) -> dict[str, str]:
        return key_settings(own)

    def has_own_seed(self, parameters: Mapping[str, float]) -> bool:
        return not parameters["blocks"]

    def runs_on(self, parameters: Mapping[str, float]) -> frozenset[Platform]:
        return self.platforms if parameters["blocks"] else frozenset(("server",))

    def server_settings(self, parameters: Mapping[str, float], files: Mapping[str, str]) -> dict[str, str]:
        blocks = int(parameters["blocks"])
        return {"blocks": f"{blocks}"} if blocks else esp_settings(parameters)


NF_KINDS.register(FastEncryptNf.name)(FastEncryptNf())

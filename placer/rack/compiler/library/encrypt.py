"""Encrypt: packets leave as ESP (RFC 4303) by AES-128-CBC (RFC 3602) and HMAC-SHA-256-128 (RFC 4868)."""

from collections.abc import Mapping
from typing import Any

from placer.rack.compiler.library.given_data import DataParameter
from placer.rack.compiler.library.nf_kind import NF_KINDS, NoData, ParameterRange

IN_UDP = ParameterRange("in_udp", "1: ESP in UDP, port 4500, which a NAT behind it translates", 0, 1, 1)

ESP_KEYS = (
    DataParameter("key", "key of AES-128", lambda given: given.hex_digits(32)),
    DataParameter("hmac_key", "key of HMAC-SHA-256", lambda given: given.hex_digits(64)),
)

KEY_RISKS = {"key": "anyone can read its packets", "hmac_key": "anyone can change its packets unnoticed"}
"""What a public key of each kind allows."""


class EncryptNf(NoData):
    """The end of a link that encrypts; the other one is Decrypt."""

    name = "Encrypt"
    parameters = (IN_UDP,)
    own = ESP_KEYS
    platforms = frozenset(("server",))

    def server_settings(self, parameters: Mapping[str, float], files: Mapping[str, str]) -> dict[str, str]:
        return esp_settings(parameters)

    def has_own_seed(self, parameters: Mapping[str, float]) -> bool:
        return True

    def own_settings(self, own: Mapping[str, Any]) -> dict[str, str]:
        return key_settings(own)

    def own_warning(self, own: Mapping[str, Any]) -> str | None:
        return key_warning(own)


def esp_settings(parameters: Mapping[str, float]) -> dict[str, str]:
    """The settings of the functions in C; keys, unless given, and SPI of a link are those that they have by default."""
    return {"in_udp": f"{int(parameters['in_udp'])}"}


def key_warning(own: Mapping[str, Any]) -> str | None:
    """Why one key alone does not protect packets."""
    missing = [parameter.name for parameter in ESP_KEYS if parameter.name not in own]
    if not own or not missing:
        return None
    return f"{missing[0]} is the default one, which is public: {KEY_RISKS[missing[0]]}"


def key_settings(own: Mapping[str, Any]) -> dict[str, str]:
    """The settings for keys that an operator gives."""
    return {name: key.hex() for name, key in own.items()}


NF_KINDS.register(EncryptNf.name)(EncryptNf())

"""Encrypt: packets leave as ESP (RFC 4303) by AES-128-CBC (RFC 3602) and HMAC-SHA-256-128 (RFC 4868)."""

from collections.abc import Mapping

from placer.rack.compiler.library.nf_kind import NF_KINDS, NoData, ParameterRange

IN_UDP = ParameterRange("in_udp", "1: ESP in UDP, port 4500, which a NAT behind it translates", 0, 1, 1)


class EncryptNf(NoData):
    """The end of a link that encrypts; the other one is Decrypt."""

    name = "Encrypt"
    parameters = (IN_UDP,)
    platforms = frozenset(("server",))

    def server_settings(self, parameters: Mapping[str, float], files: Mapping[str, str]) -> dict[str, str]:
        return esp_settings(parameters)


def esp_settings(parameters: Mapping[str, float]) -> dict[str, str]:
    """The settings of the functions in C; keys and SPI of a link are those that they have unless set."""
    return {"in_udp": f"{int(parameters['in_udp'])}"}


NF_KINDS.register(EncryptNf.name)(EncryptNf())

"""Decrypt: the other end of Encrypt's link."""

from collections.abc import Mapping
from typing import Any

from placer.rack.compiler.library.encrypt import ESP_KEYS, IN_UDP, esp_settings, key_settings, key_warning
from placer.rack.compiler.library.nf_kind import NF_KINDS, NoData


class DecryptNf(NoData):
    """The end of a link that decrypts; what is not of the link is dropped."""

    name = "Decrypt"
    parameters = (IN_UDP,)
    own = ESP_KEYS
    platforms = frozenset(("server",))

    def server_settings(self, parameters: Mapping[str, float], files: Mapping[str, str]) -> dict[str, str]:
        return esp_settings(parameters)

    def own_settings(self, own: Mapping[str, Any]) -> dict[str, str]:
        return key_settings(own)

    def own_warning(self, own: Mapping[str, Any]) -> str | None:
        return key_warning(own)


NF_KINDS.register(DecryptNf.name)(DecryptNf())

"""Decrypt: the other end of Encrypt's link."""

from collections.abc import Mapping

from placer.rack.compiler.library.encrypt import IN_UDP, esp_settings
from placer.rack.compiler.library.nf_kind import NF_KINDS, NoData


class DecryptNf(NoData):
    """The end of a link that decrypts; what is not of the link is dropped."""

    name = "Decrypt"
    parameters = (IN_UDP,)
    platforms = frozenset(("server",))

    def server_settings(self, parameters: Mapping[str, float], files: Mapping[str, str]) -> dict[str, str]:
        return esp_settings(parameters)


NF_KINDS.register(DecryptNf.name)(DecryptNf())

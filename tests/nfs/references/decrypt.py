"""Decrypt: the other end of Encrypt's link."""

from __future__ import annotations

from tests.nfs.references.encrypt import VARIANTS
from tests.nfs.references.esp import EspReference
from tests.nfs.references.esp_packets import AesCbc
from tests.nfs.references.headers import OUTSIDE


class DecryptReference(EspReference):
    """The end outside of the link: its packets from inside are those that Encrypt sends."""

    nf = "Decrypt"
    variants = VARIANTS
    encrypted_side = OUTSIDE

    def make_cipher(self) -> AesCbc:
        return AesCbc(bytes.fromhex(self.settings["key"]), bytes.fromhex(self.settings["hmac_key"]))

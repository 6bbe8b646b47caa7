"""Encrypt: packets from inside leave as ESP by AES-128-CBC and HMAC-SHA-256-128, those from outside are decrypted."""

from __future__ import annotations

from tests.nfs.references.esp import EspReference
from tests.nfs.references.esp_packets import AesCbc

KEY, HMAC_KEY = "8d5f0c6be1a0472f9b3ce75d2460a18e", "5a" * 16 + "c3" * 16
VARIANTS: tuple[dict[str, str], ...] = (
    {"key": KEY, "hmac_key": HMAC_KEY, "replay_window": "64"},
    {"key": KEY, "hmac_key": HMAC_KEY, "in_udp": "1", "spi": "70000"},
    {"key": KEY, "hmac_key": "", "replay_window": "32"},
)


class EncryptReference(EspReference):
    """The end inside of the link."""

    nf = "Encrypt"
    variants = VARIANTS

    def make_cipher(self) -> AesCbc:
        return AesCbc(bytes.fromhex(self.settings["key"]), bytes.fromhex(self.settings["hmac_key"]))

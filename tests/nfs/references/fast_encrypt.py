"""FastEncrypt: ESP by ChaCha20-Poly1305 (RFC 7634)."""

from __future__ import annotations

from tests.nfs.references.esp import EspReference
from tests.nfs.references.esp_packets import ChaCha20
from tests.nfs.references.headers import INSIDE, OUTSIDE

KEY = "0f1e2d3c4b5a69788796a5b4c3d2e1f0" * 2 + "a1b2c3d4"


class FastEncryptReference(EspReference):
    """Either end of the link."""

    nf = "FastEncrypt"
    variants = (
        {"key": KEY, "replay_window": "64"},
        {"key": KEY, "decrypt": "1", "in_udp": "1"},
    )

    def prepare(self) -> None:
        super().prepare()
        self.encrypted_side = OUTSIDE if self.number("decrypt", 0) else INSIDE

    def make_cipher(self) -> ChaCha20:
        return ChaCha20(bytes.fromhex(self.settings["key"]))

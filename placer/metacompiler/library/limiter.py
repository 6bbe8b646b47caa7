"""Limiter: a token bucket; frames above the rate are dropped."""

from __future__ import annotations

from collections.abc import Mapping

from placer.metacompiler.library.nf_model import NF_KINDS, Contract, FrameModel, NoData, ParameterRange

BURST_US = 5000
"""The bucket is what comes at the rate in this time."""
CHECKSUM_BYTES = 4
"""Of Ethernet, which count, too."""


class LimiterModel:
    """What the Limiter does to frames: one passes while the bucket is not empty, whatever its length."""

    def __init__(self, mbps: float) -> None:
        self._bytes_per_us = mbps / 8
        self._most = self._tokens = self._bytes_per_us * BURST_US
        self._filled_us = 0

    def process(self, packet: bytes, time_us: int) -> list[bytes]:
        if time_us > self._filled_us:
            new = (time_us - self._filled_us) * self._bytes_per_us
            self._tokens = min(self._tokens + new, self._most)
            self._filled_us = time_us
        if self._tokens <= 0:
            return []
        self._tokens -= len(packet) + CHECKSUM_BYTES
        return [packet]


class LimiterNf(NoData):
    """A rate limit."""

    name = "Limiter"
    parameters = (ParameterRange("mbps", "rate, 10^6 bits per second", 0.001, 1e6, 100000, is_whole=False),)
    platforms = frozenset(("server",))

    def contract(self, parameters: Mapping[str, float]) -> Contract:
        return Contract.RATE

    def model(self, parameters: Mapping[str, float], data: None) -> FrameModel:
        return LimiterModel(parameters["mbps"])

    def server_settings(self, parameters: Mapping[str, float], files: Mapping[str, str]) -> dict[str, str]:
        return {"rate_mbps": repr(parameters["mbps"])}

    def parameters_of(self, settings: Mapping[str, str]) -> dict[str, float]:
        return {"mbps": float(settings["rate_mbps"])} if "rate_mbps" in settings else {}


NF_KINDS.register(LimiterNf.name)(LimiterNf())

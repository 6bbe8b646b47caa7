"""Match: sorts packets by expressions. The edges behind it have them: the NF itself passes all."""

from __future__ import annotations

from collections.abc import Mapping

from placer.metacompiler.library.nf_model import NF_KINDS, FrameModel, NoData


class MatchModel:
    """What the Match does to frames: nothing. Which edge they take is read from them behind it."""

    def process(self, packet: bytes, time_us: int) -> list[bytes]:
        return [packet]


class MatchNf(NoData):
    """The NF whose edges have matches."""

    name = "Match"
    platforms = frozenset(("server", "switch", "smartnic"))

    def model(self, parameters: Mapping[str, float], data: None) -> FrameModel:
        return MatchModel()

    def server_settings(self, parameters: Mapping[str, float], files: Mapping[str, str]) -> dict[str, str]:
        """Those of a Match that passes all."""
        return {"filters": "len>=0", "drop_unmatched": "1"}


NF_KINDS.register(MatchNf.name)(MatchNf())

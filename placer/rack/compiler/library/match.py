"""Match: sorts packets by expressions. The edges behind it have them: the NF itself passes all."""

from collections.abc import Mapping

from placer.rack.compiler.library.nf_kind import NF_KINDS, NoData


class MatchNf(NoData):
    """The NF whose edges have matches."""

    name = "Match"
    platforms = frozenset(("server", "switch", "smartnic"))

    def server_settings(self, parameters: Mapping[str, float], files: Mapping[str, str]) -> dict[str, str]:
        """Those of a Match that passes all."""
        return {"filters": "len>=0", "drop_unmatched": "1"}


NF_KINDS.register(MatchNf.name)(MatchNf())

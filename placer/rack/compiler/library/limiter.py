"""Limiter: a token bucket; frames above the rate are dropped."""

from collections.abc import Mapping

from placer.rack.compiler.library.nf_kind import NF_KINDS, NoData, ParameterRange


class LimiterNf(NoData):
    """A rate limit."""

    name = "Limiter"
    parameters = (ParameterRange("mbps", "rate, 10^6 bits per second", 0.001, 1e6, 100000, is_whole=False),)
    platforms = frozenset(("server",))

    def server_settings(self, parameters: Mapping[str, float], files: Mapping[str, str]) -> dict[str, str]:
        return {"rate_mbps": repr(parameters["mbps"])}

    def settings_of_copy(self, parameters: Mapping[str, float], copy: int, copies: int) -> dict[str, str]:
        """An equal part of the rate: together they let through no more, and less where flows are uneven."""
        return {"rate_mbps": repr(parameters["mbps"] / copies)}


NF_KINDS.register(LimiterNf.name)(LimiterNf())

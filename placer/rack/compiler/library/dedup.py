"""Dedup: replaces payload bytes that were sent before by references; the other end of the link restores them."""

from collections.abc import Mapping

from placer.rack.compiler.library.nf_kind import NF_KINDS, NoData


class DedupNf(NoData):
    """Redundancy elimination."""

    name = "Dedup"
    platforms = frozenset(("server",))

    def most_copies(self, parameters: Mapping[str, float]) -> int:
        """One: the other end has one cache, from which packets of a second copy would push what the first refers to."""
        return 1


NF_KINDS.register(DedupNf.name)(DedupNf())

"""Dedup: replaces payload bytes that were sent before by references; the other end of the link restores them."""

from placer.rack.compiler.library.nf_kind import NF_KINDS, NoData


class DedupNf(NoData):
    """Redundancy elimination."""

    name = "Dedup"
    platforms = frozenset(("server",))


NF_KINDS.register(DedupNf.name)(DedupNf())

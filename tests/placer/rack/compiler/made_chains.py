"""Chains for tests, written in a line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction

from placer.rack.chain import Chain, ChainEdge, ChainNf, Slo

SLO = Slo(Fraction(1), Fraction(100000))


def made_chain(
    nfs: Sequence[str | tuple[str, Mapping[str, float]]],
    edges: Sequence[tuple[int, int, str, str]] | None = None,
    name: str = "c",
    aggregates: Sequence[str] = (),
) -> Chain:
    """A chain of NFs f0, f1, ...; edges as tail, head, share, match; without edges a line."""
    pairs = [(nf, {}) if isinstance(nf, str) else nf for nf in nfs]
    if edges is None:
        edges = [(at, at + 1, "1", "") for at in range(len(nfs) - 1)]
    return Chain(
        name,
        1500,
        SLO,
        tuple(ChainNf(f"f{at}", nf, parameters) for at, (nf, parameters) in enumerate(pairs)),
        tuple(ChainEdge(tail, head, Fraction(share), match) for tail, head, share, match in edges),
        tuple(aggregates),
    )

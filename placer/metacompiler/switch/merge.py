"""One parser out of those of standalone NFs: the union of their transitions (Lemur, appendix A.2.1)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from placer.metacompiler.switch.program import ParserEdge
from profiles import InputError


def merged_parser(parsers: Iterable[tuple[str, Sequence[ParserEdge]]]) -> tuple[ParserEdge, ...]:
    """All transitions of parsers, each once, in the order in which they come first.

    Parameters
    ----------
    parsers
        Each with the name of the NF that it belongs to.

    Raises
    ------
    InputError
        When two NFs go to different headers for the same packets: they cannot be on one switch.
    """
    known: dict[object, tuple[ParserEdge, str]] = {}
    for name, edges in parsers:
        for edge in edges:
            before, other = known.setdefault((edge.source, edge.tests), (edge, name))
            if before.target != edge.target:
                tests = " and ".join(f"{one.field} is {one.value:#x}" for one in edge.tests) or "nothing else applies"
                message = f"cannot share a parser with {other}: behind {edge.source}, where {tests}, "
                message += f"one finds {edge.target}, the other {before.target}"
                raise InputError.of(name, message, hint="place one of them elsewhere")
    return tuple(edge for edge, _ in known.values())

"""Parsers of standalone NFs become one."""

from __future__ import annotations

import pytest

from placer.rack.compiler.switch.compose import merge_parser
from placer.rack.compiler.switch.headers import PLAIN_EDGES, TO_IPV4, TO_PORTS
from placer.rack.compiler.switch.program import FieldTest, ParserEdge
from profiles import InputError


def test_the_parser_is_the_union() -> None:
    """Each transition once; those that only one NF has are there."""
    assert set(merge_parser([("a", PLAIN_EDGES), ("b", TO_IPV4), ("c", TO_PORTS)])) == set(TO_PORTS)
    assert len(merge_parser([("a", TO_PORTS), ("b", TO_PORTS)])) == len(set(TO_PORTS))


def test_a_conflict_is_refused_with_both_nfs() -> None:
    """Two NFs that find different headers behind the same value cannot share a switch (Lemur, A.2.1)."""
    test = (FieldTest("h.ethernet.type", 0x88B5),)
    one, other = ParserEdge("ethernet", "probe", test), ParserEdge("ethernet", "trace", test)
    with pytest.raises(InputError) as refused:
        merge_parser([("c/probe", [*PLAIN_EDGES, one]), ("c/trace", [*PLAIN_EDGES, other])])
    message = "c/trace: cannot share a parser with c/probe: behind ethernet, where h.ethernet.type is 0x88b5, "
    assert message + "one finds trace, the other probe" in str(refused.value)

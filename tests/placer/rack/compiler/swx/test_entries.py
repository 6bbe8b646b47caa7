"""The entries of a switch program as text."""

from __future__ import annotations

from dataclasses import replace

from placer.rack.compiler.swx.spec import entries_text
from tests.placer.rack.compiler.p4.small import SMALL


def test_of_entries_with_the_same_key_the_first_is_written() -> None:
    """DPDK would let the last one replace the others, whatever their priorities."""
    (table,) = (table for table in SMALL.tables if table.name == "filter")
    permit, deny = table.entries
    again = replace(deny, key=permit.key)
    twice = replace(SMALL, tables=(replace(table, entries=(permit, again, deny)),))
    lines = entries_text(twice).splitlines()
    assert lines == [
        "filter match 0x5/0xffff 0x0/0x0 priority 0 action entered",
        "filter match 0x4/0xc 0x1/0xff priority 2 action drop",
    ]

"""Switch programs are written as P4-16 that the checker accepts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache

import pytest

from placer.rack.compiler.graph import graph_of
from placer.rack.compiler.instances import instances_of
from placer.rack.compiler.p4.emit import p4_text
from placer.rack.compiler.p4.names import ARCHITECTURE_NAMES
from placer.rack.compiler.routing import route_graph
from placer.rack.compiler.switch.compose import compose
from placer.rack.compiler.switch.program import Apply, Assign, Compute, Operation, SwitchAction, SwitchProgram
from tests.placer.rack.compiler.p4.small import SMALL
from tests.placer.rack.compiler.random_racks import SAME_BYTES, random_plan
from tests.reference.p4.checker import check
from tests.reference.p4.checker.scope import PNA_NAMES


@cache
def of_plan(seed: int, kinds: Sequence[str] = SAME_BYTES) -> SwitchProgram:
    """The switch of a random rack."""
    graph = graph_of(random_plan(seed, kinds), "plan.json")
    return compose(route_graph(graph), instances_of(graph))


@pytest.mark.parametrize("seed", range(8))
def test_the_program_of_a_random_rack_is_accepted(seed: int) -> None:
    assert check(p4_text(of_plan(seed)), "switch.p4") == []


def test_a_program_is_the_same_text_each_time() -> None:
    assert p4_text(of_plan(3)) == p4_text(of_plan(3))


@pytest.mark.parametrize("entries", [True, False])
def test_a_program_of_every_statement_is_accepted(entries: bool) -> None:
    text = p4_text(SMALL, entries=entries)
    assert check(text, "switch.p4") == []
    assert ("const entries" in text) == entries


@pytest.mark.parametrize(
    "line",
    [
        "// path 1: c/f0 -> c/f1",
        "// c/f0",
        "entered_.write(1, entered_.read(1) + 1); // entered: c/f1",
        "reasons.write(0, reasons.read(0) + 1); // dropped: unmatched",
        "if (hdr.ipv4.ttl < 2) { // few hops",
    ],
)
def test_readers_find_the_names_of_nfs(line: str) -> None:
    assert line in [one.strip() for one in p4_text(SMALL).splitlines()]


@pytest.mark.parametrize(
    "line",
    [
        "transition select(packet.lookahead<outer_t>().type) {",
        "(0x6 &&& 0xf, 0x40): parse_options;",
        "packet.extract(hdr.options, ((bit<32>) (hdr.ipv4.version_words & 0xf) - 5) << 5);",
        "0xa010000 &&& 0xffff0000: to(2);",
        "(0x4 &&& 0xc, 0x1): drop();",
        "add_on_miss = true;",
        "default_idle_timeout_for_data_plane_added_entries = 1; // 30 s",
        '@mutually_exclusive("filter", "nat")',
    ],
)
def test_parser_entries_learning_and_exclusive_branches_are_written(line: str) -> None:
    assert line in [one.strip() for one in p4_text(SMALL).splitlines()]


def test_of_two_entries_with_one_key_the_first_stays() -> None:
    assert p4_text(SMALL).count("0xa000000 &&& 0xff000000") == 1


@pytest.mark.parametrize(
    ("statement", "line"),
    [
        (Assign("m.key", 0x12345), "meta.key = 0x2345;"),
        (Assign("m.key", "m.number"), "meta.key = (bit<16>) meta.number;"),
        (Compute(Operation.ADD, "m.key", -1), "meta.key = meta.key + 0xffff;"),
        (Compute(Operation.SHIFT_LEFT, "m.key", 16), "meta.key = 0;"),
        (Compute(Operation.SHIFT_RIGHT, "m.key", "m.drop"), "meta.key = meta.key >> meta.drop;"),
        (Assign("m.table", 3), "meta.table_ = 3;"),
    ],
)
def test_values_take_the_width_of_what_is_written(statement: Assign | Compute, line: str) -> None:
    text = p4_text(replace(SMALL, control=(statement, *SMALL.control)))
    assert line in [one.strip() for one in text.splitlines()]
    assert check(text, "switch.p4") == []


def test_tables_and_actions_and_registers_may_share_a_name() -> None:
    route, listing, learning = SMALL.tables
    tables = (route, replace(listing, actions=(*listing.actions, "route")), learning)
    program = replace(SMALL, actions=(*SMALL.actions, SwitchAction("route", ())), tables=tables)
    assert check(p4_text(program), "switch.p4") == []


def test_a_table_that_stands_twice_is_refused() -> None:
    """The generator must never revisit a table."""
    text = p4_text(replace(SMALL, control=(Apply("filter"), *SMALL.control)))
    assert any("second time" in fault.message for fault in check(text, "switch.p4"))


def test_every_name_of_the_architecture_is_avoided() -> None:
    """A table that is called as a type or a function of `pna.p4` would not compile."""
    assert PNA_NAMES <= ARCHITECTURE_NAMES

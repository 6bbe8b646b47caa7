"""Switch programs are written as P4-16 that the checker accepts."""

import random
import struct
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import cache

import pytest

from placer.rack.compiler.compile import compile_rack
from placer.rack.compiler.graph import graph_of, instances_of
from placer.rack.compiler.p4.bodies import ARCHITECTURE_NAMES
from placer.rack.compiler.p4.emit import p4_text
from placer.rack.compiler.routing import route_graph
from placer.rack.compiler.switch.compose import compose
from placer.rack.compiler.switch.program import Apply, Assign, Compute, Operation, SwitchAction, SwitchProgram
from placer.rack.compiler.swx.spec import entries_text, spec_text
from tests.placer.rack.compiler.library.frames import ipv4_frame, random_frame
from tests.placer.rack.compiler.p4.small import SMALL
from tests.placer.rack.compiler.racks import SAME_BYTES, made_chain, made_plan, random_plan
from tests.reference.nfs.headers import read_headers
from tests.reference.p4.checker import P4SyntaxError, check
from tests.reference.p4.checker.scope import PNA_NAMES
from tests.reference.p4.run import P4Machine
from tests.reference.swx.pipeline import Pipeline


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


def test_packets_over_a_meter_are_dropped_and_counted() -> None:
    """Those of its chain alone."""
    limited, other = made_chain(["Match"], name="a", aggregates=["udp"]), made_chain(["Match"], name="b")
    limited = replace(limited, slo=replace(limited.slo, t_max_mbps=Fraction(1)))
    text = p4_text(compile_rack(made_plan((limited, "switch"), (other, "switch")), "plan").switch)
    assert "// limits 0: t_max of a, 1000 kbit/s, burst 1250 bytes" in text
    assert check(text, "switch.p4") == []
    assert any("has 1 elements" in fault.message for fault in check(text.replace("execute(0)", "execute(1)"), "p"))
    machine, frames = P4Machine(text), [ipv4_frame(protocol=17), ipv4_frame(protocol=6)]
    assert [machine.process(frame, 0) for frame in frames] == [(0, frame) for frame in frames]
    machine.red = {0}
    assert [machine.process(frame, 0) for frame in frames] == [None, (0, frames[1])]
    assert machine.registers["reasons"][-1] == 1 and machine.registers["entered"] == [1, 2]


FRAMES = 80


def frames_for(program: SwitchProgram, seed: int) -> Iterator[tuple[int, bytes]]:
    """Frames from the world and labelled ones from devices, with their ports; some labels are unknown, some forged."""
    draw = random.Random(seed)
    labels = [entry.key[0][0] for table in program.tables if table.name == "steer" for entry in table.entries]
    for _ in range(FRAMES):
        frame, port = random_frame(draw), 0
        if len(frame) < 14 or read_headers(frame).kind == "malformed":
            continue
        if draw.random() < 0.5:
            label = draw.choice(labels) if labels and draw.random() < 0.9 else draw.randrange(1 << 32)
            frame = frame[:12] + struct.pack("!HII", 0x894F, 0x0FC20203, label) + frame
            port = 0 if draw.random() < 0.1 else draw.choice((1, 2))
        yield port, frame


@pytest.mark.parametrize("unset", [0, 0x5A5A5A5A5A5A5A5A])
def test_both_texts_of_random_racks_do_the_same(unset: int) -> None:
    """Whatever stands in metadata before it is written."""
    seen: Counter[str] = Counter()
    for seed in range(10):
        program = of_plan(seed, ("NAT", "ACL", "LB", "Tunnel", "IPv4Fwd", "Match") if seed % 2 else SAME_BYTES)
        machine, pipeline = P4Machine(p4_text(program), unset), Pipeline(spec_text(program), entries_text(program))
        for port, frame in frames_for(program, seed):
            expected = pipeline.process(frame, port)
            assert machine.process(frame, port) == expected, (seed, port, frame.hex())
            seen["dropped" if expected is None else f"sent to {expected[0]}"] += 1
        assert {name: pipeline.registers[name] for name in machine.registers} == machine.registers
    assert min(seen["dropped"], seen["sent to 0"], seen["sent to 1"]) > 30


def test_a_swapped_branch_or_a_wrong_label_is_seen() -> None:
    """A change of the text that the checker accepts changes what becomes of some frame."""
    program = of_plan(0)
    text = p4_text(program)
    changed = text.replace("hdr.nsh.setInvalid();", "", 1)
    assert changed != text
    machine, other = P4Machine(text), P4Machine(changed)
    assert any(machine.process(frame, port) != other.process(frame, port) for port, frame in frames_for(program, 0))


def small_frame(source: int, ttl: int = 64, version_words: int = 5, options: bytes = b"") -> bytes:
    """Ethernet, then the fields of the small program's own IPv4 header."""
    return bytes(12) + struct.pack("!HBBHI", 0x0800, version_words, ttl, 7, source) + options + b"payload"


@pytest.mark.parametrize(
    ("source", "port"), [(0x0A010203, 2), (0x0A020304, 1), (0x0B000000, None)], ids=["longer prefix", "shorter", "none"]
)
def test_the_longest_prefix_decides_and_the_default_drops(source: int, port: int | None) -> None:
    sent = P4Machine(p4_text(SMALL)).process(small_frame(source, ttl=1), 0)
    assert (sent and sent[0]) == port


def test_a_flow_is_learnt_once_and_keeps_its_number() -> None:
    machine = P4Machine(p4_text(SMALL))
    first, second, again = (machine.process(small_frame(source), 3) for source in (1, 2, 1))
    assert first is not None
    assert second is not None
    assert again is not None
    control = slice(16, 18)
    assert (first[1][control], second[1][control]) == (b"\0\7", b"\0\7")
    assert again[1][control] == struct.pack("!H", 1024)
    assert machine.registers["next"] == [1026]


def test_a_header_of_varying_length_comes_out_as_it_was() -> None:
    frame = small_frame(1, version_words=6, options=b"\1\2\3\4")
    sent = P4Machine(p4_text(SMALL)).process(frame, 0)
    assert sent is not None
    assert sent[1][22:] == b"\1\2\3\4payload"


def test_a_ternary_table_takes_the_first_entry_that_fits() -> None:
    machine = P4Machine(p4_text(replace(SMALL, control=(*SMALL.control[:4], SMALL.control[-1]))))
    kinds = {5: True, 0x0C: True, 0x14: False, 0x24: False, 0x15: False}
    sent = {kind: machine.process(bytes(12) + struct.pack("!H", kind), 1) is not None for kind in kinds}
    assert sent == kinds


def test_what_is_not_emitted_is_not_run() -> None:
    with pytest.raises(P4SyntaxError, match="a statement or '}', found 'exit'"):
        P4Machine(p4_text(SMALL).replace("drop_packet();", "exit;"))


def test_a_program_that_relies_on_metadata_being_zero_is_seen() -> None:
    """Metadata is zero only where the program says so."""
    program = of_plan(0)
    text = p4_text(program).replace("meta.drop = 0;\n", "", 1)
    right, wrong = P4Machine(text), P4Machine(text, unset=1)
    assert any(right.process(frame, port) != wrong.process(frame, port) for port, frame in frames_for(program, 0))

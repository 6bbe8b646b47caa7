"""The P4 text of a switch program does with every frame what its DPDK pipeline does."""

from __future__ import annotations

import random
import struct
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

import pytest

from placer.rack.compiler.p4.emit import p4_text
from placer.rack.compiler.switch.program import SwitchProgram
from placer.rack.compiler.swx.spec import entries_text, spec_text
from tests.placer.rack.compiler.library.frames import random_frame
from tests.placer.rack.compiler.p4.small import SMALL
from tests.placer.rack.compiler.p4.test_emit import of_plan
from tests.placer.rack.compiler.random_racks import SAME_BYTES
from tests.reference.nfs.headers import read_headers
from tests.reference.p4.checker import P4SyntaxError
from tests.reference.p4.run import P4Machine
from tests.reference.swx.pipeline import Pipeline

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
    program = replace(SMALL, control=(*SMALL.control[:4], SMALL.control[-1]))
    machine = P4Machine(p4_text(program))
    kinds = {5: True, 0x0C: True, 0x14: False, 0x24: False, 0x15: False}
    sent = {kind: machine.process(bytes(12) + struct.pack("!H", kind), 1) is not None for kind in kinds}
    assert sent == kinds


def test_what_is_not_emitted_is_not_run() -> None:
    with pytest.raises(P4SyntaxError, match="expected a statement or '}', found 'exit'"):
        P4Machine(p4_text(SMALL).replace("drop_packet();", "exit;"))


def test_a_program_that_relies_on_metadata_being_zero_is_seen() -> None:
    """Metadata is zero only where the program says so."""
    program = of_plan(0)
    text = p4_text(program).replace("meta.drop = 0;\n", "", 1)
    right, wrong = P4Machine(text), P4Machine(text, unset=1)
    assert any(right.process(frame, port) != wrong.process(frame, port) for port, frame in frames_for(program, 0))

"""The text of a DPDK pipeline: labels, conditions, tables and entries."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from placer.rack.compiler.compile import compile_rack
from placer.rack.compiler.swx.spec import entries_text, names_text, spec_text
from tests.placer.rack.compiler.library.frames import ipv4_frame
from tests.placer.rack.compiler.made_chains import made_chain
from tests.placer.rack.compiler.made_plans import made_plan
from tests.placer.rack.compiler.random_racks import random_plan
from tests.reference.swx.pipeline import Pipeline
from tests.reference.swx.spec_reader import SpecError, read_spec


@pytest.mark.parametrize("seed", range(20))
def test_each_jump_leads_forward_to_a_label(seed: int) -> None:
    """To one that stands once, behind the jump: a pipeline has no loop."""
    text = spec_text(compile_rack(random_plan(seed, smartnics=0), "plan").switch)
    for block in re.findall(r"(?:action .*|apply) \{\n(.*?)\n\}", text, re.DOTALL):
        lines = block.splitlines()
        places = {line.split()[0]: at for at, line in enumerate(lines) if " : " in line}
        assert len(places) == sum(" : " in line for line in lines)
        for at, line in enumerate(lines):
            words = line.split(" : ")[-1].split()
            if words[0].startswith("jmp"):
                assert places[words[1]] > at


def test_a_packet_passes_the_switch_and_is_counted() -> None:
    """ACL without filters, then a tag: byte for byte, with the counters of both."""
    plan = made_plan((made_chain([("ACL", {"rules": 0.0}), ("Tunnel", {"vlan": 7.0})]), "switch switch"))
    program = compile_rack(plan, "plan").switch
    pipeline = Pipeline(spec_text(program), entries_text(program))
    frame = ipv4_frame()
    assert pipeline.process(frame, 0) == (0, frame[:12] + bytes.fromhex("81000007") + frame[12:])
    assert pipeline.registers["entered"] == pipeline.registers["sent"] == [1, 1]
    assert names_text(program).splitlines()[:2] == ["function 0 c/f0", "function 1 c/f1"]


def test_a_label_is_written_and_taken_off() -> None:
    """To the server with path 1 and index 254; back with 253, and out without any."""
    plan = made_plan((made_chain(["Match", "Monitor", "Match"]), "switch s0 switch"))
    program = compile_rack(plan, "plan").switch
    pipeline = Pipeline(spec_text(program), entries_text(program))
    frame = ipv4_frame()
    outer = frame[:12] + bytes.fromhex("894f0fc20203")
    assert pipeline.process(frame, 0) == (1, outer + bytes.fromhex("000001fe") + frame)
    assert pipeline.process(outer + bytes.fromhex("000001fd") + frame, 1) == (0, frame)


def test_packets_without_a_right_label_are_dropped_for_a_reason() -> None:
    """Forged by the world, without a label from a device, or with one that nobody has."""
    plan = made_plan((made_chain(["Match", "Monitor", "Match"]), "switch s0 switch"))
    program = compile_rack(plan, "plan").switch
    pipeline = Pipeline(spec_text(program), entries_text(program))
    frame = ipv4_frame()
    outer = frame[:12] + bytes.fromhex("894f0fc20203")
    assert pipeline.process(outer + bytes.fromhex("000001fd") + frame, 0) is None
    assert pipeline.process(frame, 1) is None
    assert pipeline.process(outer + bytes.fromhex("000009ff") + frame, 1) is None
    counted = dict(zip(program.reasons, pipeline.registers["reasons"], strict=True))
    assert counted == {"forged": 1, "unclassified": 0, "unknown_path": 1, "without_label": 1, "unmatched": 0}


@given(st.integers(0, 2**32 - 1), st.integers(0, 32))
def test_entries_say_value_and_mask(address: int, length: int) -> None:
    """What is written of an entry is read again."""
    mask = 0xFFFFFFFF << (32 - length) & 0xFFFFFFFF
    spec = (
        "struct m_t {\n\tbit<32> a\n}\nmetadata instanceof m_t\naction go args none {\n\treturn\n}\n"
        "table t {\n\tkey {\n\t\tm.a wildcard\n\t}\n\tactions {\n\t\tgo\n\t}\n"
        "\tdefault_action go args none\n\tsize 1\n}\n"
        "apply {\n\ttable t\n\tdrop\n}\n"
    )
    read = read_spec(spec, f"t match {address & mask:#x}/{mask:#x} priority 0 action go\n")
    assert read.tables["t"].entries[0].key == ((address & mask, mask),)


def test_a_text_that_is_no_pipeline_is_refused_by_its_line() -> None:
    """The number of the line and its words."""
    with pytest.raises(SpecError, match="line 1: structure x"):
        read_spec("structure x {\n}\n", "")

"""The text of a DPDK pipeline: labels, conditions, tables and entries."""

import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from placer.rack.compiler.compile import compile_rack
from placer.rack.compiler.switch import compose
from placer.rack.compiler.switch.program import SwitchProgram
from placer.rack.compiler.swx.code import Line, with_fewer_jumps
from placer.rack.compiler.swx.spec import entries_text, names_text, spec_text
from tests.placer.rack.compiler.library.frames import ipv4_frame
from tests.placer.rack.compiler.p4.small import SMALL
from tests.placer.rack.compiler.racks import made_chain, made_plan, random_plan
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
    assert {reason for reason, count in counted.items() if count} == {"forged", "unknown_path", "without_label"}
    assert set(counted.values()) == {0, 1}


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


def test_another_rule_changes_the_entries_of_its_own_table_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """DPDK builds each table anew that has other entries. Without room for all, rules are counted without gaps."""

    def program_of(rules: int) -> SwitchProgram:
        nfs = [("ACL", {"rules": float(rules)}), ("ACL", {"rules": 9.0}), ("IPv4Fwd", {"routes": 5.0})]
        return compile_rack(made_plan((made_chain(nfs), "switch switch switch")), "plan").switch

    before, after = (set(entries_text(program_of(rules)).splitlines()) for rules in (4, 5))
    assert {line.split()[0] for line in before ^ after} == {"c__f0_rules"}
    assert [(at, count) for _, at, count in program_of(4).rules] == [(0, 4), (21845, 9), (43690, 5)]
    monkeypatch.setattr(compose, "ROOM_FOR_RULES", 24)
    assert [(at, count) for _, at, count in program_of(4).rules] == [(0, 4), (4, 9), (13, 5)]


FIELDS = ("m.a", "m.b")


def _lines(text: str) -> list[Line]:
    return [("label", one[:-1]) if one.endswith(":") else ("instruction", one) for one in text.split("; ")]


def _text(lines: Sequence[Line]) -> str:
    return "; ".join(f"{text}:" if kind == "label" else text for kind, text in lines)


def _run(lines: Sequence[Line], fields: dict[str, int], valid: bool) -> list[str]:
    """The instructions other than jumps that a packet runs."""
    places = {text: at for at, (kind, text) in enumerate(lines) if kind == "label"}
    fields, done, at = dict(fields), [], 0
    while at < len(lines):
        kind, text = lines[at]
        word, *operands = text.split()
        at += 1
        if kind == "label":
            continue
        if word.startswith("jmp"):
            at = places[operands[0]] if _holds(word, operands, fields, valid) else at
            continue
        done.append(text)
        if word == "mov":
            fields[operands[0]] = int(operands[1])
        if word in ("validate", "invalidate"):
            valid = word == "validate"
    return done


def _holds(word: str, operands: Sequence[str], fields: dict[str, int], valid: bool) -> bool:
    """Whether a jump is taken."""
    if word in ("jmpeq", "jmpneq"):
        return (fields[operands[1]] == int(operands[2])) == (word == "jmpeq")
    return word == "jmp" or valid == (word == "jmpv")


def test_a_jump_over_a_jump_becomes_one() -> None:
    """`jmpeq` over a `jmp` is a `jmpneq`."""
    lines = _lines("jmpeq A m.a 1; jmp B; A:; emit h.x; B:; tx m.port")
    assert _text(with_fewer_jumps(lines)) == "jmpneq B m.a 1; emit h.x; B:; tx m.port"


def test_a_test_whose_outcome_is_known_is_passed() -> None:
    """Where a field was just set, a jump to a test of it goes to where the test leads."""
    lines = _lines("jmpv A h.x; mov m.a 1; jmp B; A:; mov m.a 2; B:; jmpneq C m.a 1; emit h.x; C:; tx m.port")
    assert "jmp PAST_0" in _text(with_fewer_jumps(lines))


def test_a_write_between_makes_a_test_unknown() -> None:
    """What was known of a field ends where it is written."""
    lines = _lines("jmpneq E m.a 1; add m.a 1; jmp B; E:; emit h.x; B:; jmpneq C m.a 1; emit h.y; C:; tx m.port")
    assert with_fewer_jumps(lines) == lines


@st.composite
def _programs(draw: st.DrawFn) -> list[Line]:
    """Instructions whose jumps all lead forward."""
    size = draw(st.integers(1, 12))
    lines: list[Line] = []
    for at in range(size):
        target = f"L{draw(st.integers(at + 1, size))}"
        field, value = draw(st.sampled_from(FIELDS)), draw(st.integers(0, 1))
        plain = (f"mov {field} {value}", f"count {at}", "validate h.x", "invalidate h.x", "table t")
        jumps = (f"jmp {target}", f"jmpv {target} h.x", f"jmpnv {target} h.x")
        tests = (f"jmpeq {target} {field} {value}", f"jmpneq {target} {field} {value}")
        lines += [("label", f"L{at}"), ("instruction", draw(st.sampled_from((*plain, *jumps, *tests, *tests))))]
    return [*lines, ("label", f"L{size}"), ("instruction", "tx m.port")]


@given(_programs())
def test_packets_run_the_same_instructions(lines: list[Line]) -> None:
    """Whatever a packet is, it runs the same instructions in the same order, but for jumps."""
    shorter = with_fewer_jumps(lines)
    assert sum(text.startswith("jmp") for _, text in shorter) <= sum(text.startswith("jmp") for _, text in lines)
    for a, b, valid in product((0, 1), (0, 1), (False, True)):
        fields = {"m.a": a, "m.b": b}
        assert _run(shorter, fields, valid) == _run(lines, fields, valid)

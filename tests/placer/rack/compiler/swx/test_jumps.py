"""Jumps of pipelines: fewer of them, and each packet runs the same instructions otherwise."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

from hypothesis import given
from hypothesis import strategies as st

from placer.rack.compiler.swx.code import Line, with_fewer_jumps

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
            holds = _holds(word, operands, fields, valid)
            at = places[operands[0]] if holds else at
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

"""Programs of the subset are accepted; faults name file, line, column and what is wrong."""

from __future__ import annotations

import pytest

from placer.metacompiler.p4.checker import P4SyntaxError, check, parsed, warnings
from tests.placer.metacompiler.p4.checker.programs import NAMES, changed, program


@pytest.mark.parametrize("name", NAMES)
def test_a_right_program_is_accepted(name: str) -> None:
    assert check(program(name), f"{name}.p4") == []


@pytest.mark.parametrize("name", NAMES)
def test_a_right_program_is_accepted_with_other_line_ends(name: str) -> None:
    assert check(program(name).replace("\n", "\r\n"), f"{name}.p4") == []


def test_a_fault_names_file_line_and_column_and_suggests() -> None:
    text = changed("acl", "hits.count(rule);", "hits.count(rul);")
    (fault,) = check(text, "switch.p4")
    line = text[: text.index("rul)")].count("\n") + 1
    assert str(fault) == f"switch.p4:{line}:20: there is no value rul"
    assert fault.hint == "did you mean rule?"


def test_all_faults_are_listed_in_the_order_of_lines() -> None:
    text = (
        changed("acl", "bit<8> ttl;", "bit<8> ttl; nothing_t a;").replace("NAT", "").replace("drop_packet", "drop_it")
    )
    lines = [fault.line for fault in check(text, "switch.p4")]
    assert len(lines) == 2
    assert lines == sorted(lines)


def test_a_fault_in_a_type_does_not_cause_others() -> None:
    """A header of an unknown type is one fault, however often its fields are used."""
    faults = check(changed("acl", "ports_t ports;", "port_t ports;"), "switch.p4")
    assert [fault.message for fault in faults] == ["there is no type port_t"]


def test_a_syntax_error_is_the_only_fault() -> None:
    faults = check(changed("acl", "struct headers_t {", "struct headers_t").replace("drop_packet", "drop_it"), "a.p4")
    assert [str(fault) for fault in faults] == [
        "a.p4:30:5: expected '{' before the fields of headers_t, found 'ethernet_t'"
    ]


def test_reading_what_is_no_program_raises_at_its_place() -> None:
    with pytest.raises(P4SyntaxError) as caught:
        parsed("const bit<8> A = 1;\n  const B = 2;")
    assert (caught.value.position.line, caught.value.position.column) == (2, 11)


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("", "no instance of PNA_NIC"),
        ("\N{GREEK SMALL LETTER ALPHA}", "is no character of a P4 program"),
        ("(" * 5000, "expected a declaration"),
        ("const bit<8> A = " + "(" * 5000, "nested more than"),
        ("const bit<8> A = " + "-" * 5000 + "1;", "nested more than"),
        ("const bit<8> A = 1 << 100000000000;", "more than 4096"),
        ("const bit<99999999999> A = 1;", "a width is 1 to"),
        ("control c() { apply { " + "{" * 5000, "nested more than"),
        ("control c() { apply { " + "if (true) " * 5000, "nested more than"),
    ],
)
def test_strange_texts_are_refused_without_harm(text: str, what: str) -> None:
    assert any(what in fault.message for fault in check(text, "a.p4"))


def test_declarations_without_use_are_warned_of() -> None:
    text = changed("acl", "struct metadata_t {", "const bit<8> SPARE = 1;\nstruct metadata_t {\n    bit<8> spare;")
    text = text.replace("    action permit(", "    action spare() { }\n    action permit(")
    assert check(text, "a.p4") == []
    assert [fault.message for fault in warnings(text, "a.p4")] == [
        "constant SPARE is never used",
        "field spare of struct metadata_t is never used",
        "action spare is never used",
    ]


@pytest.mark.parametrize("name", NAMES)
def test_right_programs_are_not_warned_of(name: str) -> None:
    assert warnings(program(name), f"{name}.p4") == []


def test_what_stands_behind_return_is_warned_of() -> None:
    text = changed("nat", "                return;", "                return;\n                drop_packet();")
    assert [fault.message for fault in warnings(text, "a.p4")] == ["this is never reached"]


@pytest.mark.parametrize(
    ("type_", "value"),
    [
        ("bit<8>", "255"),
        ("bit<8>", "8w0xff"),
        ("bit<8>", "0b1111_0000"),
        ("bit<8>", "0o377"),
        ("bit<8>", "(1 << 7) | 3"),
        ("bit<8>", "4w3 ++ 4w12"),
        ("bit<4>", "16w0xabcd[7:4]"),
        ("bit<8>", "(bit<8>) 16w0xabcd"),
        ("bit<1>", "(bit<1>) true"),
        ("bool", "1 + 2 * 3 == 7 && !(2 < 1)"),
        ("bool", "8w1 - 8w2 == 255"),
        ("bit<8>", "17 / 3 % 4"),
        ("bit<(4 + 4)>", "255"),
        ("PortId_t", "(PortId_t) 7"),
    ],
)
def test_constants_are_computed_as_the_language_says(type_: str, value: str) -> None:
    text = changed("acl", "struct metadata_t", f"const {type_} A = {value};\nstruct metadata_t")
    assert check(text, "a.p4") == []


@pytest.mark.parametrize(
    ("type_", "value", "says"),
    [
        ("bit<8>", "256", "256 does not fit bit<8>"),
        ("bit<8>", "-1", "-1 does not fit bit<8>"),
        ("bit<8>", "1 << 8", "256 does not fit"),
        ("bit<8>", "4w3 ++ 5w12", "found bit<9>"),
        ("bit<4>", "16w0xabcd[8:4]", "found bit<5>"),
        ("bit<8>", "1 == 1", "found bool"),
        ("bit<8>", "8w1 + 16w1", "same type on both sides"),
        ("bit<8>", "5 % 0", "needs positive constants"),
        ("bit<8>", "(bit<8>) 300", "300 does not fit"),
        ("PortId_t", "7", "a cast is needed"),
        ("PortId_t", "(PortId_t) 4294967296", "does not fit bit<32>"),
        ("bit<8>", '"text"', "found string"),
        ("bit<8>", "error.NoMatch", "found error"),
    ],
)
def test_constants_of_other_types_or_values_are_refused(type_: str, value: str, says: str) -> None:
    text = changed("acl", "struct metadata_t", f"const {type_} A = {value};\nstruct metadata_t")
    assert any(says in fault.message for fault in check(text, "a.p4"))

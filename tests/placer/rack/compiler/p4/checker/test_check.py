"""Wrong programs are refused, with the file, the line and the column of each fault, and what is wrong there."""

import random
import re
from collections.abc import Iterator

import pytest

from placer.rack.compiler.p4.emit import p4_text
from tests.placer.rack.compiler.p4.checker.mutations import MUTATIONS, TEXT, ProgramMutation
from tests.placer.rack.compiler.p4.test_emit import of_plan
from tests.reference.p4.checker import P4SyntaxError, check, parse_program
from tests.reference.p4.checker.reader import P4Token, split_tokens

NESTED = "hdr.ipv4.ttl = hdr.ipv4.ttl + 255;"
DRAWN_TOKENS = 30


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.what)
def test_a_wrong_program_is_refused_with_its_fault(mutation: ProgramMutation) -> None:
    faults = check(mutation.text, "switch.p4")
    assert any(mutation.says in fault.message for fault in faults), [str(fault) for fault in faults]
    assert all(re.match(r"switch\.p4:\d+:\d+: \S", str(fault)) for fault in faults)


def test_a_fault_names_file_line_and_column_and_suggests() -> None:
    text = TEXT.replace("meta.port = port;", "meta.port = prt;")
    (fault,) = check(text, "switch.p4")
    line = text[: text.index("prt;")].count("\n") + 1
    assert str(fault) == f"switch.p4:{line}:21: there is no value prt"
    assert fault.hint == "did you mean port?"


def test_all_faults_are_listed_in_the_order_of_lines() -> None:
    text = TEXT.replace("size = 3;", "size = 0;").replace("meta.port = port;", "meta.port = prt;")
    lines = [fault.line or 0 for fault in check(text, "switch.p4")]
    assert len(lines) == 2
    assert lines == sorted(lines)


def test_a_fault_in_a_type_does_not_cause_others() -> None:
    """A header of an unknown type is one fault, however often its fields are used, and its type is used no more."""
    text = TEXT.replace("ipv4_t ipv4;", "ip_t ipv4;")
    assert [fault.message for fault in check(text, "a.p4")] == ["ipv4_t is never used", "there is no type ip_t"]


def test_a_syntax_error_is_the_only_fault() -> None:
    text = TEXT.replace("struct headers_t {", "struct headers_t").replace("meta.port = port;", "meta.port = prt;")
    line = text[: text.index("outer_t outer")].count("\n") + 1
    assert [str(fault) for fault in check(text, "a.p4")] == [f"a.p4:{line}:5: expected '{{', found 'outer_t'"]


def test_reading_what_is_no_program_raises_at_its_place() -> None:
    with pytest.raises(P4SyntaxError) as caught:
        parse_program("#include <core.p4>\n  #include <psa.p4>")
    assert caught.value.position == (2, 3)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "expected '#include <core.p4>', found the end of the program"),
        ("#include <core.p4>", "expected '#include <pna.p4>', found the end of the program"),
        ("\N{GREEK SMALL LETTER ALPHA}", "is not emitted"),
        ("(" * 5000, "expected '#include <core.p4>'"),
        (TEXT.replace(NESTED, "meta.drop = " + "(" * 5000), "is nested too deeply"),
        (TEXT.replace(NESTED, "meta.drop = " + "(bit<8>) " * 5000), "is nested too deeply"),
        (TEXT.replace(NESTED, "if (meta.drop == 1) {" * 5000), "is nested too deeply"),
        (
            TEXT.replace(NESTED, "if (meta.drop == 1) { }" + " else if (meta.drop == 1) { }" * 5000),
            "is nested too deeply",
        ),
        (TEXT.replace("bit<8> drop", "bit<9999999999> drop"), "a width is 1 to"),
        (TEXT.replace("bit<8> drop", f"bit<{'9' * 5000}> drop"), "is not a number"),
        (TEXT.replace("meta.key << 2", "meta.key << 9999999999"), "always 0"),
    ],
)
def test_strange_texts_are_refused_without_harm(text: str, says: str) -> None:
    assert any(says in fault.message for fault in check(text, "a.p4"))


# Mutations of any token


PROGRAMS = {"small": TEXT, "plan 0": p4_text(of_plan(0)), "plan 3": p4_text(of_plan(3, ("NAT", "ACL", "LB", "Tunnel")))}
each_program = pytest.mark.parametrize("name", PROGRAMS)


def draw_tokens(name: str) -> Iterator[P4Token]:
    """Some tokens of a program, the same at every run."""
    tokens = [token for token in split_tokens(PROGRAMS[name]) if token.kind != "end"]
    yield from random.Random(name).sample(tokens, DRAWN_TOKENS)


@each_program
@pytest.mark.long
def test_a_program_without_a_token_or_with_one_twice_is_refused(name: str) -> None:
    text = PROGRAMS[name]
    for token in draw_tokens(name):
        assert check(text[: token.start] + text[token.end :], "a.p4"), token
        assert check(f"{text[: token.end]} {token.text}{text[token.end :]}", "a.p4"), token


@each_program
def test_a_name_that_occurs_more_than_once_cannot_be_misspelt(name: str) -> None:
    """Where a name is only declared, and nothing else names it, another one is as good."""
    text = PROGRAMS[name]
    for token in draw_tokens(name):
        if token.kind == "name" and check(f"{text[: token.end]}x{text[token.end :]}", "a.p4") == []:
            assert len(re.findall(rf"\b{token.text}\b", text)) == 1 or text[: token.start].endswith("> "), token


@each_program
def test_no_text_breaks_the_checker(name: str) -> None:
    """Tokens thrown together are refused, never a crash."""
    draw = random.Random(name)
    text = PROGRAMS[name]
    for _ in range(DRAWN_TOKENS):
        start, end = sorted(draw.sample(range(len(text)), 2))
        end = min(end, start + draw.randrange(200))
        other = draw.randrange(len(text))
        assert isinstance(check(text[:start] + text[other : other + 40] + text[end:], "a.p4"), list)


PROGRAM = """
#include <core.p4>
#include <pna.p4>
header a_t { bit<8> kind; bit<8> next; }
header b_t { bit<16> value; }
struct headers_t { a_t a; b_t b; }
struct metadata_t { bit<8> branch; bit<8> other; bit<1> flag; bit<32> port; }
parser MainParser(packet_in packet, out headers_t hdr, inout metadata_t meta,
                  in pna_main_parser_input_metadata_t istd) {
    state start { packet.extract(hdr.a); transition both; }
    state both { packet.extract(hdr.b); transition accept; }
}
control PreControl(in headers_t hdr, inout metadata_t meta, in pna_pre_input_metadata_t istd,
                   inout pna_pre_output_metadata_t ostd) { apply { } }
control MainControl(inout headers_t hdr, inout metadata_t meta, in pna_main_input_metadata_t istd,
                    inout pna_main_output_metadata_t ostd) {
    action set_branch(bit<8> to) { meta.branch = to; }
    TABLES
    apply { meta.other = 0; meta.flag = 0; meta.port = 0; BODY send_to_port((PortId_t) meta.port); }
}
control MainDeparser(packet_out packet, in headers_t hdr, in metadata_t meta, in pna_main_output_metadata_t ostd) {
    apply { packet.emit(hdr.a); packet.emit(hdr.b); }
}
PNA_NIC(MainParser(), PreControl(), MainControl(), MainDeparser()) main;
"""
ONE, OTHER = "one.apply();", "other.apply();"
NOT_EXCLUSIVE = "tables one and other are declared exclusive, but one packet may reach both"


def list_faults(body: str, tables: tuple[str, ...] = ("one",), notes: str = "") -> list[str]:
    """What the checker says of a program with these statements in its main control."""
    declared = notes + " ".join(
        f"table {name} {{ key = {{ meta.other: exact; }} actions = {{ set_branch; }}"
        " const default_action = set_branch(1); size = 1; }"
        for name in tables
    )
    text = PROGRAM.replace("TABLES", declared).replace("BODY", body)
    return [fault.message for fault in check(text, "a.p4")]


@pytest.mark.parametrize(
    "body",
    [
        ONE,
        f"if (meta.flag == 1) {{ {ONE} }} else {{ {ONE} }}",
        f"if (meta.flag == 1) {{ meta.other = 1; }} else if (meta.branch == 1) {{ {ONE} }} else {{ {ONE} }}",
    ],
)
def test_a_table_once_on_every_path_is_accepted(body: str) -> None:
    assert list_faults(body) == []


def list_faults_of_exclusive_tables(body: str) -> list[str]:
    """What is said of two tables that are declared exclusive."""
    return list_faults(body, ("one", "other"), '@mutually_exclusive("other") ')


@pytest.mark.parametrize(
    "body",
    [
        f"if (meta.flag == 1) {{ {ONE} }} else {{ {OTHER} }}",
        f"if (meta.branch == 1) {{ {OTHER} }} else if (meta.branch == 2) {{ {ONE} }}",
        f"if (meta.branch == 1) {{ {ONE} }} else if (meta.branch == 2) {{ {OTHER} }} else {{ {ONE} }}",
        f"if (meta.branch == 1) {{ if (meta.flag == 1) {{ {ONE} }} }} else {{ {OTHER} }}",
    ],
)
def test_tables_in_different_branches_of_one_if_may_be_declared_exclusive(body: str) -> None:
    assert list_faults_of_exclusive_tables(body) == []


@pytest.mark.parametrize(
    "body",
    [
        f"{ONE} {OTHER}",
        f"if (meta.branch == 1) {{ {ONE} }} if (meta.branch == 1) {{ {OTHER} }}",
        f"if (meta.branch == 1) {{ {ONE} }} if (meta.branch == 2) {{ {OTHER} }}",  # only branches of one `if` may be
        f"if (meta.branch == 1) {{ {ONE} }} if (meta.other == 2) {{ {OTHER} }}",
        f"if (meta.branch == 1) {{ {ONE} meta.branch = 2; }} if (meta.branch == 2) {{ {OTHER} }}",
        f"if (meta.flag == 1) {{ {ONE} {OTHER} }}",
        f"if (meta.flag == 1) {{ {ONE} }} else {{ {OTHER} {ONE} }}",
    ],
)
def test_tables_that_one_packet_may_reach_both_are_not_exclusive(body: str) -> None:
    assert list_faults_of_exclusive_tables(body) == [NOT_EXCLUSIVE]

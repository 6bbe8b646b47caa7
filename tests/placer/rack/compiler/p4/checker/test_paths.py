"""Paths: what a parser has extracted in each state; a table stands once on each path of the control, and exclusive
tables never meet on one."""

from __future__ import annotations

import pytest

from tests.reference.p4.checker import check

PROGRAM = """
#include <core.p4>
#include <pna.p4>
header a_t { bit<8> kind; bit<8> next; }
header b_t { bit<16> value; }
struct headers_t { a_t a; b_t b; }
struct metadata_t { bit<8> branch; bit<8> other; bit<1> flag; bit<32> port; }
parser MainParser(packet_in packet, out headers_t hdr, inout metadata_t meta,
                  in pna_main_parser_input_metadata_t istd) {
    PARSER
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
PARSER = (
    "state start { packet.extract(hdr.a); transition both; } state both { packet.extract(hdr.b); transition accept; }"
)
BOTH = "state both { packet.extract(hdr.b); transition accept; }"
ONE, OTHER = "one.apply();", "other.apply();"
NOT_EXCLUSIVE = "tables one and other are declared exclusive, but one packet may reach both"


def list_faults(
    body: str = ONE, *, tables: tuple[str, ...] = ("one",), notes: str = "", parser: str = PARSER
) -> list[str]:
    """What the checker says of a program with these statements in its main control, and this parser."""
    declared = notes + " ".join(
        f"table {name} {{ key = {{ meta.other: exact; }} actions = {{ set_branch; }}"
        " const default_action = set_branch(1); size = 1; }"
        for name in tables
    )
    text = PROGRAM.replace("PARSER", parser).replace("TABLES", declared).replace("BODY", body)
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


@pytest.mark.parametrize(
    "body",
    [
        f"{ONE} {ONE}",
        f"if (meta.flag == 1) {{ {ONE} }} {ONE}",
        f"if (meta.branch == 1) {{ {ONE} }} if (meta.branch == 2) {{ {ONE} }}",
        f"if (meta.flag == 1) {{ if (meta.branch == 1) {{ meta.other = 1; }} else {{ {ONE} }} {ONE} }}",
        f"if (meta.flag == 1) {{ meta.other = 1; }} else {{ {ONE} }} {ONE}",
    ],
)
def test_a_table_that_a_path_revisits_is_refused(body: str) -> None:
    assert list_faults(body) == ["table one is applied a second time on this path"]


def list_faults_of_exclusive_tables(body: str) -> list[str]:
    """What is said of two tables that are declared exclusive."""
    return list_faults(body, tables=("one", "other"), notes='@mutually_exclusive("other") ')


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
        f"if (meta.branch == 1) {{ {ONE} }} if (meta.other == 2) {{ {OTHER} }}",
        f"if (meta.branch == 1) {{ {ONE} meta.branch = 2; }} if (meta.branch == 2) {{ {OTHER} }}",
        f"if (meta.flag == 1) {{ {ONE} {OTHER} }}",
        f"if (meta.flag == 1) {{ {ONE} }} else {{ {OTHER} {ONE} }}",
    ],
)
def test_tables_that_one_packet_may_reach_both_are_not_exclusive(body: str) -> None:
    assert list_faults_of_exclusive_tables(body) == [NOT_EXCLUSIVE]


def test_conditions_of_two_ifs_that_never_hold_together_do_not_make_tables_exclusive() -> None:
    """The compiler declares only tables in different branches of one `if` exclusive."""
    body = f"if (meta.branch == 1) {{ {ONE} }} if (meta.branch == 2) {{ {OTHER} }}"
    assert list_faults_of_exclusive_tables(body) == [NOT_EXCLUSIVE]


def select(*cases: str) -> str:
    """A choice by the kind of header a."""
    return f"transition select(hdr.a.kind) {{ {' '.join(cases)} }}"


@pytest.mark.parametrize(
    "parser",
    [
        PARSER,
        f"state start {{ packet.extract(hdr.a); {select('0x1: both;', 'default: accept;')} }} {BOTH}",
        f"state start {{ packet.extract(hdr.a); {select('4 &&& 0xfc: both;', 'default: accept;')} }} {BOTH}",
        "state start { transition select(packet.lookahead<a_t>().kind) { 1: first; default: both; } }"
        f"state first {{ packet.extract(hdr.a); transition both; }} {BOTH}",
        "state start { packet.extract(hdr.a); transition select(hdr.a.kind, hdr.a.next) { (1, _): both;"
        f" (_, 2): accept; default: accept; }} }} {BOTH}",
    ],
)
def test_right_parsers_are_accepted(parser: str) -> None:
    assert list_faults(parser=parser) == []


@pytest.mark.parametrize(
    ("parser", "says"),
    [
        (
            f"state start {{ {select('1: both;', 'default: accept;')} }} {BOTH}",
            [
                "header a is read before it is extracted",
                "header a is read, but nothing extracts it or sets it valid",
                "header a is emitted, but never valid",
            ],
        ),
        (
            "state start { transition select(packet.lookahead<a_t>().kind) { 1: first; default: second; } }"
            "state first { packet.extract(hdr.a); transition second; }"
            f"state second {{ {select('1: both;', 'default: accept;')} }} {BOTH}",
            ["header a is read, but not extracted on every path here"],
        ),
        (
            f"state start {{ packet.extract(hdr.a); transition more; }}"
            f"state more {{ packet.extract(hdr.b); transition both; }} {BOTH}",
            ["header b is extracted twice on a path"],
        ),
        (
            f"state start {{ packet.extract(hdr.a); {select('1: start;', 'default: both;')} }} {BOTH}",
            ["header a is extracted twice on a path"],
        ),
        (
            "state start { packet.extract(hdr.a); transition more; }"
            "state more { packet.extract(hdr.b); transition idle; }"
            "state idle { transition other; }"
            "state other { transition select(meta.other) { 1: idle; default: accept; } }",
            ["state idle comes back to itself and reads nothing"],
        ),
        (f"{PARSER} state third {{ transition accept; }}", ["state third is never reached"]),
        (
            "state start { packet.extract(hdr.b); transition more; }"
            "state more { packet.extract(hdr.a); transition accept; }",
            ["header b is emitted behind a, but extracted before it"],
        ),
        (
            f"state start {{ packet.extract(hdr.a); {select('0x100: both;', 'default: accept;')} }} {BOTH}",
            ["256 does not fit bit<8>"],
        ),
        (
            f"state start {{ packet.extract(hdr.a); {select('1: both;', '_: accept;', 'default: both;')} }} {BOTH}",
            ["no packet comes behind this case: it takes all"],
        ),
    ],
)
def test_wrong_parsers_are_refused(parser: str, says: list[str]) -> None:
    assert sorted(list_faults(parser=parser)) == sorted(says)

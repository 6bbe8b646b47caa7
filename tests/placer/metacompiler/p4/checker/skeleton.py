"""A program around a few lines, so that a test shows only what it is about."""

from __future__ import annotations

from placer.metacompiler.p4.checker import check, warnings

HEAD = """
#include <core.p4>
#include <pna.p4>
header a_t { bit<8> kind; bit<8> next; }
header b_t { bit<16> value; }
struct headers_t { a_t a; b_t b; b_t[3] stack; }
struct metadata_t { bit<8> branch; bit<8> other; bool flag; }
parser MainParser(packet_in packet, out headers_t hdr, inout metadata_t meta,
                  in pna_main_parser_input_metadata_t istd) {
"""
MIDDLE = """
}
control PreControl(in headers_t hdr, inout metadata_t meta, in pna_pre_input_metadata_t istd,
                   inout pna_pre_output_metadata_t ostd) { apply { } }
control MainControl(inout headers_t hdr, inout metadata_t meta, in pna_main_input_metadata_t istd,
                    inout pna_main_output_metadata_t ostd) {
    action nothing() { meta.branch = 0; meta.other = 0; meta.flag = false; }
    action set_branch(bit<8> to) { meta.branch = to; }
    action set_other(bit<8> to) { meta.other = to; }
"""
END = """
}
control MainDeparser(packet_out packet, in headers_t hdr, in metadata_t meta, in pna_main_output_metadata_t ostd) {
    apply { packet.emit(hdr.a); packet.emit(hdr.b); packet.emit(hdr.stack); }
}
PNA_NIC(MainParser(), PreControl(), MainControl(), MainDeparser()) main;
"""
PARSER = "state start { packet.extract(hdr.a); packet.extract(hdr.b); transition accept; }"
CONTROL = "apply { nothing(); set_branch(1); set_other(1); }"


def table(name: str, actions: str = "nothing", notes: str = "") -> str:
    """A table of a few actions, by metadata."""
    return f"""{notes}
    table {name} {{ key = {{ meta.other: exact; }} actions = {{ {actions}; nothing_; }} default_action = nothing_(); }}
    """.replace("nothing_", "NoAction")


def whole(control: str = CONTROL, parser: str = PARSER) -> str:
    """The program with these parts of its main control and of its parser."""
    return HEAD + parser + MIDDLE + control + END


def faults(control: str = CONTROL, parser: str = PARSER) -> list[str]:
    """What the checker says of it."""
    return [fault.message for fault in check(whole(control, parser), "a.p4")]


def warned(control: str = CONTROL, parser: str = PARSER) -> list[str]:
    """What it warns of."""
    return [fault.message for fault in warnings(whole(control, parser), "a.p4")]

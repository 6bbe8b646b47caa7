"""The package, and what only the whole program shows."""

from __future__ import annotations

PACKAGE = (
    (
        "no package",
        "acl",
        "PNA_NIC(MainParser(), PreControl(), MainControl(), MainDeparser()) main;",
        "",
        "no instance of PNA_NIC",
    ),
    ("a package of another name", "acl", ") main;", ") nic;", "is called main"),
    ("a block too few", "acl", "PreControl(), ", "", "takes 4 blocks, found 3"),
    ("blocks exchanged", "acl", "PreControl(), MainControl()", "MainControl(), PreControl()", "needs inout, found in"),
    (
        "a control instead of a parser",
        "acl",
        "(MainParser(),",
        "(MainControl(),",
        "MainControl is a control, not a parser",
    ),
    ("a parameter of another direction", "acl", "inout headers_t hdr", "in headers_t hdr", "needs inout, found in"),
    (
        "a parameter too few",
        "acl",
        "    in metadata_t meta,\n    in pna_main_output",
        "    in pna_main_output",
        "expected 4 parameters",
    ),
    (
        "blocks with other headers",
        "acl",
        "    packet_out packet,\n    in headers_t hdr",
        "    packet_out packet,\n    in metadata_t hdr",
        "needs headers_t",
    ),
    ("metadata among the headers", "acl", "    ports_t ports;", "    ports_t ports;\n    bit<8> more;", "not a header"),
    ("a header that is not emitted", "acl", "packet.emit(hdr.ports);", "", "never emitted"),
    (
        "a header emitted twice",
        "acl",
        "packet.emit(hdr.ports);",
        "packet.emit(hdr.ports);\npacket.emit(hdr.ports);",
        "emitted twice",
    ),
    (
        "headers emitted in another order",
        "acl",
        "packet.emit(hdr.ipv4);\n        packet.emit(hdr.ports);",
        "packet.emit(hdr.ports);\n        packet.emit(hdr.ipv4);",
        "but extracted before it",
    ),
    ("a header that is never valid", "acl", "packet.extract(hdr.ports);", "", "nothing extracts it"),
    (
        "a variable that never gets a value",
        "branches",
        "bit<16> ports = 0;\n        if (hdr.ports.isValid()) {\n"
        "            ports = hdr.ports.source ^ hdr.ports.destination;\n        }",
        "bit<16> ports;",
        "never gets a value",
    ),
)
"""Each: what it is, the program, what stands there, what replaces it, and words of the fault."""

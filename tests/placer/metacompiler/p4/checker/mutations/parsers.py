"""States, transitions, and what is extracted."""

from __future__ import annotations

PARSERS = (
    ("no state start", "acl", "state start", "state begin", "has no state start"),
    (
        "a state is removed",
        "acl",
        "    state parse_ports {\n        packet.extract(hdr.ports);\n        transition accept;\n    }\n",
        "",
        "there is no state parse_ports",
    ),
    (
        "a state that is never reached",
        "acl",
        "0x0800: parse_ipv4;",
        "0x0800: accept;",
        "state parse_ipv4 is never reached",
    ),
    (
        "a state without transition",
        "acl",
        "extract(hdr.ports);\n        transition accept;",
        "extract(hdr.ports);",
        "has no transition",
    ),
    (
        "no default of select",
        "acl",
        "0x0800: parse_ipv4;\n            default: accept;",
        "0x0800: parse_ipv4;",
        "has no default",
    ),
    ("two equal cases", "acl", "(0, 17): parse_ports", "(0, 6): parse_ports", "has the same values"),
    (
        "a case behind the default",
        "acl",
        "0x0800: parse_ipv4;\n            default: accept;",
        "default: accept;\n            0x0800: parse_ipv4;",
        "no packet comes here",
    ),
    ("a value too many for the keys", "acl", "(0, 17): parse_ports", "(0, 17, 3): parse_ports", "expected 2 values"),
    ("a state called accept", "acl", "state parse_ports", "state accept", "a state of every parser"),
    (
        "a loop over a header",
        "acl",
        "extract(hdr.ports);\n        transition accept;",
        "extract(hdr.ports);\n        transition parse_ipv4;",
        "extracted twice",
    ),
    (
        "a loop that reads nothing",
        "nsh_switch",
        "meta.index = hdr.nsh.index;\n        transition parse_ethernet;",
        "meta.index = hdr.nsh.index;\n        transition parse_labelled;",
        "reads nothing",
    ),
    ("a header read before it is extracted", "acl", "packet.extract(hdr.ipv4);\n", "", "nothing extracts it"),
    (
        "a header extracted after its use",
        "nsh_switch",
        "packet.extract(hdr.ipv4);\n        transition select(hdr.ipv4.header_length)",
        "transition select(hdr.ipv4.header_length)",
        "before it is extracted",
    ),
    (
        "a header that one path lacks",
        "nsh_switch",
        "default: parse_ethernet;",
        "default: parse_labelled;",
        "not extracted on every path",
    ),
    (
        "a header extracted twice",
        "acl",
        "packet.extract(hdr.ports);",
        "packet.extract(hdr.ports); packet.extract(hdr.ports);",
        "extracted twice",
    ),
    (
        "a condition in a parser",
        "acl",
        "packet.extract(hdr.ports);",
        "if (true) { packet.extract(hdr.ports); }",
        "has no if",
    ),
    ("exit in a parser", "acl", "packet.extract(hdr.ports);", "packet.extract(hdr.ports); exit;", "has no exit"),
    (
        "a table in a parser",
        "acl",
        "    state start {",
        "    table t { actions = { NoAction; } default_action = NoAction(); }\n    state start {",
        "a state of parser",
    ),
)
"""Each: what it is, the program, what stands there, what replaces it, and words of the fault."""

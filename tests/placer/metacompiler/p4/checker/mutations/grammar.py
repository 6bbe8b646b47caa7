"""Texts that are no program of the grammar."""

from __future__ import annotations

GRAMMAR = (
    (
        "a brace is missing",
        "acl",
        "meta.permitted = false;\n    }",
        "meta.permitted = false;",
        "an annotation stands before",
    ),
    ("a brace too many", "acl", "meta.permitted = false;", "meta.permitted = false;}", "expected an action, a table"),
    ("a semicolon is missing", "forward", "checksum.clear();", "checksum.clear()", "';' behind the call"),
    ("a comma is missing", "nat", '"translate",', '"translate"', "behind the arguments"),
    ("a parenthesis is missing", "nat", "if (added) {", "if (added {", "behind the condition"),
    ("a colon is missing", "acl", "hdr.ipv4.protocol: ternary", "hdr.ipv4.protocol ternary", "expected ':'"),
    ("a comment without end", "nsh_switch", "VLAN tags. */", "VLAN tags.", "comment has no end"),
    ("a text without end", "acl", '@name("chain0/acl")', '@name("chain0/acl)', "no closing quote"),
    ("a character of no token", "acl", "meta.permitted = true;", "meta.permitted = $;", "'$' is no character"),
    ("a number without sense", "acl", "0x0a000000", "0x0g000000", "is not a number"),
    ("a directive", "acl", "#include <core.p4>", "#define X 1\n#include <core.p4>", "not of the subset"),
    ("a word of the language as name", "acl", "action permit(", "action table(", "expected the name of an action"),
    ("a switch statement", "acl", "exit;", "switch (1) { }", "switch is not of the subset"),
    ("a signed type", "forward", "bit<16> hop;", "int<16> hop;", "int is not a type"),
    ("a signed number", "nat", "32w0)", "32s0)", "signed"),
    ("an enumeration", "acl", "struct metadata_t", "enum e_t { A }\nstruct metadata_t", "found 'enum'"),
    ("half of a key list", "branches", "(8, 0): drop();", "(8, 0: drop();", "behind the values"),
    ("a part of a table twice", "acl", "size = 64;", "size = 64; size = 64;", "has size twice"),
    ("entries that are not const", "acl", "const entries", "entries", "entries of a program are const"),
    ("a state without brace", "acl", "state start {", "state start", "before the statements of state"),
    ("apply is not last", "acl", "    action deny(", "    apply { }\n    action deny(", "apply is its last"),
)
"""Each: what it is, the program, what stands there, what replaces it, and words of the fault."""

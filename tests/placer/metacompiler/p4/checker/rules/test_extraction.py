"""The graph of a parser: what is reached, what each path has extracted, and loops."""

from __future__ import annotations

import pytest

from tests.placer.metacompiler.p4.checker.skeleton import faults, warned

BOTH = "state both { packet.extract(hdr.b); transition accept; }"


def select(*cases: str) -> str:
    """A choice by the kind of header a."""
    return f"transition select(hdr.a.kind) {{ {' '.join(cases)} }}"


@pytest.mark.parametrize(
    "parser",
    [
        f"state start {{ packet.extract(hdr.a); {select('1: both;', 'default: accept;')} }} {BOTH}",
        f"state start {{ packet.extract(hdr.a); {select('1 .. 3: both;', '4 &&& 0xfc: both;', '_: reject;')} }} {BOTH}",
        "state start { packet.extract(hdr.a); packet.extract(hdr.b); transition more; } state more {"
        " packet.extract(hdr.stack.next); transition select(hdr.stack.last.value) { 0: accept; _: more; } }",
        "state start { transition select(packet.lookahead<a_t>().kind) { 1: first; default: both; } }"
        f"state first {{ packet.extract(hdr.a); transition both; }} {BOTH}",
        "state start { packet.extract(hdr.a); transition select(hdr.a.kind, hdr.a.next) { (1, _): both;"
        f" (_, 2): accept; (_, _): reject; }} }} {BOTH}",
        "state start { packet.extract(hdr.a); packet.extract(hdr.b); packet.advance(16); transition accept; }",
    ],
)
def test_right_parsers_are_accepted(parser: str) -> None:
    assert faults(parser=parser) == []


@pytest.mark.parametrize(
    ("parser", "says"),
    [
        (
            f"state start {{ {select('1: both;', 'default: accept;')} }} {BOTH}",
            ["header a is read before it is extracted", "header a is read, but nothing extracts it or sets it valid"],
        ),
        (
            "state start { transition select(packet.lookahead<a_t>().kind) { 1: first; default: second; } }"
            "state first { packet.extract(hdr.a); transition second; }"
            f"state second {{ {select('1: both;', 'default: accept;')} }} {BOTH}",
            ["header a is read, but not extracted on every path here"],
        ),
        (
            f"state start {{ packet.extract(hdr.a); packet.extract(hdr.b); transition both; }} {BOTH}",
            ["header b is extracted twice on a path"],
        ),
        (
            f"state start {{ packet.extract(hdr.a); {select('1: start;', 'default: both;')} }} {BOTH}",
            ["header a is extracted twice on a path"],
        ),
        (
            "state start { packet.extract(hdr.a); packet.extract(hdr.b); transition idle; }"
            "state idle { meta.branch = 1; transition other; }"
            "state other { transition select(meta.branch) { 1: idle; default: accept; } }",
            ["state idle comes back to itself and reads nothing"],
        ),
        (
            f"state start {{ packet.extract(hdr.a); packet.extract(hdr.b); transition accept; }} {BOTH}",
            ["state both is never reached"],
        ),
        (
            "state start { packet.extract(hdr.b); packet.extract(hdr.a); transition accept; }",
            ["header b is emitted behind a, but extracted before it"],
        ),
        (
            f"state start {{ packet.extract(hdr.a); {select('256: both;', 'default: accept;')} }} {BOTH}",
            ["256 does not fit bit<8>"],
        ),
        (
            f"state start {{ packet.extract(hdr.a); {select('1: both;', '_: reject;', '2: both;')} }} {BOTH}",
            ["no packet comes here: a case before it takes all"],
        ),
    ],
)
def test_wrong_parsers_are_refused(parser: str, says: list[str]) -> None:
    assert faults(parser=parser) == says


def test_a_header_that_is_emitted_but_never_valid_is_warned_of() -> None:
    assert "header stack is emitted, but never valid" in warned()

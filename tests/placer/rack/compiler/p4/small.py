"""A small switch program by hand: every kind of statement and of table once."""

from placer.rack.compiler.switch.program import (
    ActionCall,
    Apply,
    Assign,
    Compute,
    Count,
    FieldComparison,
    FieldTest,
    HeaderType,
    If,
    IsValid,
    Learn,
    MatchEntry,
    MatchTable,
    Operation,
    ParserEdge,
    Registers,
    SetValid,
    SwitchAction,
    SwitchProgram,
    TableKey,
    TakeNumber,
)
from placer.rack.rack import MatchKind

SMALL = SwitchProgram(
    headers=(
        HeaderType("outer", {"destination": 48, "source": 48, "type": 16}),
        HeaderType("ethernet", {"destination": 48, "source": 48, "type": 16}),
        HeaderType("ipv4", {"version_words": 8, "ttl": 8, "control": 16, "source": 32}),
        HeaderType("options", {}, most_bytes=40),
    ),
    parser=(
        ParserEdge("start", "outer", (FieldTest("h.outer.type", 0x894F),)),
        ParserEdge("start", "ethernet"),
        ParserEdge("outer", "ethernet"),
        ParserEdge("ethernet", "ipv4", (FieldTest("h.ethernet.type", 0x0800),)),
        ParserEdge("ipv4", "options", (FieldTest("h.ipv4.version_words", 6, 0xF), FieldTest("h.ipv4.ttl", 64))),
    ),
    metadata={"port": 32, "drop": 8, "key": 16, "number": 32, "learnt": 16, "big": 32, "table": 8},
    registers=(
        Registers("entered", 2),
        Registers("sent", 2),
        Registers("next", 1, 1024),
        Registers("reasons", 1),
        Registers("spare", 1),
    ),
    actions=(
        SwitchAction("to", (Assign("m.port", "t.port"),), {"port": 32}),
        SwitchAction("drop", (Count("reasons", 0), Assign("m.drop", 1))),
        SwitchAction("translate", (Assign("m.learnt", "t.state"), Assign("h.ipv4.control", "t.state")), {"state": 16}),
        SwitchAction(
            "learn",
            (TakeNumber("next", 0, "m.number"), Learn("translate", ("m.number",)), Assign("m.learnt", "m.number")),
        ),
        SwitchAction("entered", ()),
    ),
    tables=(
        MatchTable(
            "route",
            (TableKey("h.ipv4.source", 32, MatchKind.LPM),),
            ("to", "drop"),
            ActionCall("drop"),
            (
                MatchEntry(((0x0A010000, 0xFFFF0000),), ActionCall("to", (2,))),
                MatchEntry(((0x0A000000, 0xFF000000),), ActionCall("to", (1,))),
                MatchEntry(((0x0A000000, 0xFF000000),), ActionCall("drop")),
            ),
            of="c/f0",
        ),
        MatchTable(
            "filter",
            (TableKey("m.key", 16, MatchKind.TERNARY), TableKey("m.table", 8, MatchKind.TERNARY)),
            ("entered", "drop"),
            ActionCall("entered"),
            (
                MatchEntry(((5, 0xFFFF), (0, 0)), ActionCall("entered")),
                MatchEntry(((4, 0x000C), (1, 0xFF)), ActionCall("drop")),
            ),
            64,
        ),
        MatchTable(
            "nat", (TableKey("h.ipv4.source", 32),), ("translate", "learn"), ActionCall("learn"), (), 128, 30, "c/f1"
        ),
    ),
    control=(
        Assign("m.drop", 0),
        Assign("m.table", 1),
        Assign("m.key", "h.ethernet.type"),
        Assign("m.big", 0x10000000A),
        Compute(Operation.SHIFT_LEFT, "m.key", 2),
        Compute(Operation.SHIFT_RIGHT, "m.key", 16),
        Compute(Operation.SUBTRACT, "m.big", "m.key"),
        If(
            IsValid("ipv4"),
            (
                Count("entered", 1),
                If(
                    FieldComparison("h.ipv4.ttl", "<", 2),
                    (Apply("route"),),
                    (Apply("nat"), Count("sent", 1)),
                    "few hops",
                ),
                Compute(Operation.ADD, "h.ipv4.ttl", 255),
            ),
            (
                If(
                    FieldComparison("m.key", "==", "m.big"),
                    (SetValid("outer"), Assign("h.outer.type", 1), Assign("h.outer.source", "m.big")),
                    (If(FieldComparison("m.key", "!=", 0x12345), (SetValid("outer", False), Apply("filter"))),),
                ),
            ),
        ),
    ),
    functions=("c/f0", "c/f1"),
    reasons=("unmatched",),
    notes=("path 1: c/f0 -> c/f1",),
)

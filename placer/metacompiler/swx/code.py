"""Statements of a switch program as instructions of a DPDK pipeline."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from placer.metacompiler.switch.program import (
    Apply,
    Assign,
    Body,
    Compute,
    Count,
    FieldComparison,
    FieldTest,
    If,
    IsValid,
    Learn,
    SetValid,
    Statement,
    TakeNumber,
    UpdateChecksum,
)
from placer.metacompiler.swx.jumps import with_fewer_jumps

SUMMANDS = "summands"
"""A header that no packet has: DPDK adds only fields of headers to checksums."""


@dataclass
class SpecCode:
    """Instructions with labels; labels at the same place become one.

    Parameters
    ----------
    names
        Fields that are elsewhere than the program says.
    """

    names: Mapping[str, str]
    lines: list[tuple[str, str]] = field(default_factory=list)
    labels: int = 0

    def new_label(self, name: str) -> str:
        self.labels += 1
        return f"{name}_{self.labels}"

    def put(self, label: str) -> None:
        """The label stands before the next instruction."""
        self.lines.append(("label", label))

    def instruction(self, text: str) -> None:
        self.lines.append(("instruction", " ".join(self.names.get(word, word) for word in text.split())))

    def text(self) -> str:
        """All instructions, one in a line; jumps to the next instruction are left out."""
        lines = with_fewer_jumps(self.lines)
        first: dict[str, str] = {}
        standing: str | None = None
        for kind, text in lines:
            standing = (standing or text) if kind == "label" else None
            if kind == "label" and standing:
                first[text] = standing
        used = {first[word] for kind, text in lines if kind == "instruction" for word in text.split() if word in first}
        shown = []
        label = ""
        for kind, text in lines:
            if kind == "label":
                label = f"{first[text]} : " if first[text] in used else label
                continue
            shown.append(f"\t{label}{' '.join(first.get(word, word) for word in text.split())}\n")
            label = ""
        return "".join(shown)

    def body(self, body: Body) -> None:
        for statement in body:
            self.statement(statement)

    def statement(self, statement: Statement) -> None:
        match statement:
            case If():
                self.case(statement)
            case UpdateChecksum():
                self.update(statement)
            case _:
                for text in _instructions(statement):
                    self.instruction(text)

    def update(self, one: UpdateChecksum) -> None:
        """What DPDK computes is never 0, where RFC 1624 has 0 but for sums that cannot be here."""
        self.instruction(f"cksub {one.checksum} {self.summand(one.before, 'before')}")
        self.instruction(f"ckadd {one.checksum} {self.summand(one.after, 'after')}")
        if not one.never_zero:
            end = self.new_label("SUM")
            self.instruction(f"jmpneq {end} {one.checksum} 0xffff")
            self.instruction(f"mov {one.checksum} 0x0")
            self.put(end)

    def summand(self, value: str, place: str) -> str:
        """A field of a header with this value."""
        if not self.names.get(value, value).startswith("m."):
            return value
        self.instruction(f"mov h.{SUMMANDS}.{place} {value}")
        return f"h.{SUMMANDS}.{place}"

    def case(self, case: If) -> None:
        """Jumps over what is not to run."""
        then, otherwise = case.then, case.otherwise
        other, end = self.new_label("ELSE"), self.new_label("END")
        self.skip(case.condition, other)
        self.body(then)
        if otherwise:
            self.instruction(f"jmp {end}")
        self.put(other)
        self.body(otherwise)
        self.put(end)

    def skip(self, condition: FieldComparison | IsValid, to: str) -> None:
        """A jump where a condition does not hold."""
        match condition:
            case IsValid(header):
                self.instruction(f"jmpnv {to} h.{header}")
            case FieldComparison(left, "==", right):
                self.instruction(f"jmpneq {to} {left} {right}")
            case FieldComparison(left, "!=", right):
                self.instruction(f"jmpeq {to} {left} {right}")
            case FieldComparison(left, "<", int(right)):
                self.instruction(f"jmpgt {to} {left} {right - 1}" if right else f"jmp {to}")
            case FieldComparison(left, ">", int(right)):
                self.instruction(f"jmplt {to} {left} {right + 1}")
            case _:
                raise AssertionError(condition)

    def jump_unless(self, test: FieldTest, to: str) -> None:
        self.instruction(f"jmpneq {to} {self.masked(test)} {test.value:#x}")

    def jump_if(self, test: FieldTest, to: str) -> None:
        self.instruction(f"jmpeq {to} {self.masked(test)} {test.value:#x}")

    def masked(self, test: FieldTest) -> str:
        """Where the value to compare is."""
        if test.mask is None:
            return test.field
        self.instruction(f"mov m.test {test.field}")
        self.instruction(f"and m.test {test.mask:#x}")
        return "m.test"


def _instructions(statement: Statement) -> Iterator[str]:
    match statement:
        case Assign(to, value):
            yield f"mov {to} {value if isinstance(value, str) else hex(value)}"
        case Compute(operation, to, value):
            yield f"{operation.value} {to} {value if isinstance(value, str) else hex(value)}"
        case SetValid(header, valid):
            yield f"{'validate' if valid else 'invalidate'} h.{header}"
        case Count(registers, index):
            yield f"regadd {registers} {index} 0x1"
        case TakeNumber(registers, index, to):
            yield f"regrd {to} {registers} {index}"
            yield f"regadd {registers} {index} 0x1"
        case Learn(action, arguments):
            yield "mov m.timeout 0x0"
            yield f"learn {action}{''.join(f' {one}' for one in arguments[:1])} m.timeout"
        case Apply(table):
            yield f"table {table}"
        case If():
            raise AssertionError(statement)

"""Executes the P4 that a model is written as: matches a whole number with the ranges of the table, in whole numbers. It
shares nothing with what writes the table, and understands nothing else."""

import re
from bisect import bisect_right
from dataclasses import dataclass
from fractions import Fraction

CONTROL = re.compile(
    r"control (?P<name>\w+)\(in bit<(?P<x_bits>\d+)> (?P<x>\w+), "
    r"out (?P<sign>bit|int)<(?P<y_bits>\d+)> (?P<y>\w+), out bool measured\) \{(?P<body>.*?)\n\}",
    re.DOTALL,
)
ENTRY = re.compile(r"(\d+) \.\. (\d+) : (inside|outside)\((-?\d+)\);")
ACTION = "action {action}({sign}<{bits}> value) {{ {y} = value; measured = {measured}; }}"


@dataclass(frozen=True)
class P4Control:
    """A control, parsed: its entries by rising x, and its default action."""

    name: str
    entries: tuple[tuple[int, int, bool, int], ...]
    default: int
    fraction_bits: int
    largest_error_pct: Fraction
    mean_error_pct: Fraction

    def apply(self, x: int) -> tuple[int, bool]:
        """The value, and whether x was measured."""
        at = bisect_right(self.entries, x, key=lambda one: one[0]) - 1
        if at >= 0 and x <= self.entries[at][1]:
            return self.entries[at][3], self.entries[at][2]
        return self.default, False


def parsed(code: str) -> list[P4Control]:
    """The controls of a file; AssertionError for what a compiler would refuse."""
    comments = re.findall(r"/\*(.*?)\*/", code, re.DOTALL)
    text = re.sub(r"/\*.*?\*/|//[^\n]*", "", code, flags=re.DOTALL)
    found = list(CONTROL.finditer(text))
    assert len(found) == len(comments) and not CONTROL.sub("", text).strip()
    return [_control(one, comment) for one, comment in zip(found, comments, strict=True)]


def _control(found: re.Match[str], comment: str) -> P4Control:
    body = " ".join(found["body"].split())
    for action, measured in (("inside", "true"), ("outside", "false")):
        shape = {"sign": found["sign"], "bits": found["y_bits"], "y": found["y"], "measured": measured}
        assert ACTION.format(action=action, **shape) in body
    table = re.fullmatch(
        rf".*table lookup {{ key = {{ {found['x']} : range; }} actions = {{ inside; outside; }} "
        r"const entries = \{ (.*) \} const default_action = outside\((-?\d+)\); size = (\d+); \} "
        r"apply \{ lookup\.apply\(\); \}",
        body,
    )
    assert table
    entries = [(int(a), int(b), action == "inside", int(value)) for a, b, action, value in ENTRY.findall(table[1])]
    assert " ".join(one[0] for one in ENTRY.finditer(table[1])) == table[1] and len(entries) == int(table[3])
    _check(entries, int(found["x_bits"]), int(found["y_bits"]), signed=found["sign"] == "int")
    scale = re.search(r"times 2\^(\d+) = (\d+)\.", comment)
    stated = re.search(r"largest error ([\d.e+-]+) %, mean error ([\d.e+-]+) %", comment)
    assert scale and stated and 2 ** int(scale[1]) == int(scale[2])
    return P4Control(
        found["name"], tuple(entries), int(table[2]), int(scale[1]), Fraction(stated[1]), Fraction(stated[2])
    )


def _check(entries: list[tuple[int, int, bool, int]], x_bits: int, y_bits: int, *, signed: bool) -> None:
    """Every number fits its type, and ranges rise without gap or overlap from 0."""
    low, high = (-(2 ** (y_bits - 1)), 2 ** (y_bits - 1) - 1) if signed else (0, 2**y_bits - 1)
    expected = 0
    for first, last, _, value in entries:
        assert first == expected and first <= last < 2**x_bits and low <= value <= high
        expected = last + 1

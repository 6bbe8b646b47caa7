"""The rules of scans, with Python's own engine.

The expressions are data: they stand nowhere but in the table of nfs/core/rules.c, and are read from there. What they
match is decided here by `re`, not by the function's engine.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

TABLE = Path(__file__).resolve().parents[3] / "nfs" / "core" / "rules.c"
CLASSES = ("peer_to_peer", "remote", "chat", "mail", "media", "store", "web", "network")
ENTRY = re.compile(r'\{"([\w-]+)", RULE_(\w+),\s*((?:"(?:[^"\\]|\\.)*"\s*)+),\s*((?:"(?:[^"\\]|\\.)*"\s*)+)\}')
STRING = re.compile(r'"(?:[^"\\]|\\.)*"')


@dataclass(frozen=True, slots=True)
class Rule:
    """An expression, its class, and bytes that match it."""

    name: str
    kind: str
    expression: re.Pattern[bytes]
    witness: bytes


def text_of(strings: str) -> bytes:
    """The bytes of string literals in C, one behind the other."""
    return b"".join(ast.literal_eval("b" + one) for one in STRING.findall(strings))


def literal_of(expression: bytes) -> bytes:
    """The longest run of plain characters outside of groups, classes and repetitions."""
    best = run = b""
    at, depth = 0, 0
    while at < len(expression):
        char = expression[at : at + 1]
        step, plain = 1, char.isalnum() or char in b" -_/:=<>,;@\"'!~%&"
        if char == b"\\":
            step = 4 if expression[at + 1 : at + 2] == b"x" else 2
            escaped = expression[at + 1 : at + step]
            plain = step == 4 or not escaped.isalnum()
            char = bytes([int(escaped[1:], 16)]) if step == 4 else escaped
        elif char == b"[":
            step, plain = expression.index(b"]", at + 2) - at + 1, False
        elif char == b"{":
            step, plain = expression.index(b"}", at) - at + 1, False
        elif char in b"()":
            depth, plain = depth + (1 if char == b"(" else -1), False
        if expression[at + step : at + step + 1] in (b"?", b"*", b"{"):
            plain = False
        run = run + char if plain and depth == 0 else b""
        best = max(best, run, key=len)
        at += step
    return best


def literals_of(expression: bytes) -> list[bytes]:
    """Bytes of which every match has at least one: a run outside of groups, or one from each choice of a group."""
    if b"|" in re.sub(rb"\([^()]*\)|\[[^]]*\]|\\.", b"", expression):
        return [b""]
    groups = re.findall(rb"(?<!\\)\(((?!\?)[^()\\]*)\)(?![?*{])", expression)
    choices = [[literal_of(choice) for choice in group.split(b"|")] for group in groups]
    return max([[literal_of(expression)], *choices], key=lambda literals: min(len(literal) for literal in literals))


@cache
def rules() -> tuple[Rule, ...]:
    """All rules of the table."""
    return tuple(
        Rule(name, kind.lower(), re.compile(text_of(expression), re.DOTALL), text_of(witness))
        for name, kind, expression, witness in ENTRY.findall(TABLE.read_text(encoding="utf-8"))
    )


@cache
def searches() -> tuple[list[tuple[bytes, Rule]], list[tuple[bytes, Rule]]]:
    """Literals and their rules; those of rules that ignore case are in lower case, and come second."""
    found: tuple[list[tuple[bytes, Rule]], list[tuple[bytes, Rule]]] = [], []
    for rule in rules():
        ignores = bool(rule.expression.flags & re.IGNORECASE)
        for literal in literals_of(rule.expression.pattern):
            found[ignores].append((literal.lower() if ignores else literal, rule))
    return found


def matching(payload: bytes) -> list[Rule]:
    """The rules that a payload matches."""
    exact, ignoring = searches()
    lower = payload.lower()
    likely = [rule for literal, rule in exact if literal in payload]
    likely += [rule for literal, rule in ignoring if literal in lower]
    return [rule for rule in dict.fromkeys(likely) if rule.expression.search(payload)]

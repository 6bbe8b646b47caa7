"""Reads rules and groups from their text, as far as generated programs use the syntax of `ovs-ofctl`."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

PARENTHESES = re.compile(r"\([^)]*\)")
FLOW_WORDS = ("cookie", "table", "priority")


@dataclass
class ReadRule:
    """A rule: what it matches, what it does, and how many packets and bytes it has seen."""

    table: int
    priority: int
    cookie: int
    match: dict[str, str]
    actions: tuple[str, ...]
    packets: int = 0
    bytes: int = 0


@dataclass(frozen=True)
class ReadGroup:
    """A group: the first value of its hash, and its buckets with their weights."""

    number: int
    salt: int
    buckets: tuple[tuple[int, tuple[str, ...]], ...] = field(default=())


def read_rules(text: str) -> list[ReadRule]:
    """The rules of a file, those of higher priority first, in each table."""
    lines = [line.partition("#")[0].strip() for line in text.splitlines()]
    return sorted((_rule(line) for line in lines if line), key=lambda rule: -rule.priority)


def read_groups(text: str) -> dict[int, ReadGroup]:
    """The groups of a file, by their number."""
    groups = [_group(line) for line in text.splitlines() if line.strip()]
    return {group.number: group for group in groups}


def _rule(line: str) -> ReadRule:
    head, _, tail = line.partition(" actions=")
    fields = dict(_field(word) for word in head.split(","))
    numbers = [int(fields.pop(word), 0) for word in FLOW_WORDS]
    return ReadRule(numbers[1], numbers[2], numbers[0], fields, _actions(tail))


def _field(word: str) -> tuple[str, str]:
    name, _, value = word.strip().partition("=")
    return name, value


def _group(line: str) -> ReadGroup:
    head, *buckets = line.split(",bucket=")
    fields = dict(_field(word) for word in PARENTHESES.sub("", head).split(","))
    found = []
    for bucket in buckets:
        parts, _, actions = bucket.partition(",actions=")
        weight = dict(part.split(":") for part in parts.split(","))["weight"]
        found.append((int(weight), _actions(actions)))
    return ReadGroup(int(fields["group_id"]), int(fields["selection_method_param"]), tuple(found))


def _actions(text: str) -> tuple[str, ...]:
    """Actions, which commas part, but not within parentheses."""
    return tuple(re.split(r",(?![^(]*\))", text.strip()))

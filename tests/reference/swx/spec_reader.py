"""Reads the text of a DPDK pipeline and its entries."""

from collections.abc import Iterator
from dataclasses import dataclass, field

Instruction = tuple[str, list[str]]  # a label or nothing, and the words of an instruction; headers lose their `h.`


class SpecError(Exception):
    """A text that is no pipeline: what is wrong, with the number of the line."""


@dataclass(frozen=True)
class SpecAction:
    """An action: names of its arguments, and its code."""

    arguments: tuple[str, ...]
    code: tuple[Instruction, ...]


@dataclass(frozen=True)
class SpecEntry:
    """An entry: per field of the key value and mask, then the action with its arguments."""

    key: tuple[tuple[int, int], ...]
    action: str
    arguments: dict[str, int]


@dataclass
class SpecTable:
    """A table; the entries of a ternary one in the order of their priorities."""

    name: str
    keys: tuple[str, ...]
    is_ternary: bool
    is_learner: bool
    default: tuple[str, dict[str, int]]
    entries: list[SpecEntry] = field(default_factory=list)


@dataclass
class SpecText:
    """What a text says."""

    bits: dict[str, int] = field(default_factory=dict)
    metadata: list[str] = field(default_factory=list)
    headers: dict[str, list[tuple[str, int]]] = field(default_factory=dict)
    registers: dict[str, tuple[int, int]] = field(default_factory=dict)
    actions: dict[str, SpecAction] = field(default_factory=dict)
    tables: dict[str, SpecTable] = field(default_factory=dict)
    apply: tuple[Instruction, ...] = ()


def read_spec(spec: str, entries: str) -> SpecText:
    """What the two texts say. Raises SpecError at the first line that does not belong there."""
    found = SpecText()
    structs: dict[str, list[tuple[str, int]]] = {}
    lines = _lines(spec)
    for number, words in lines:
        try:
            _read_block(found, structs, words, lines)
        except (KeyError, IndexError, ValueError) as error:
            raise SpecError(f"line {number}: {' '.join(words)}: {error!r}") from error
    for number, words in _lines(entries):
        try:
            _read_entry(found, words)
        except (KeyError, IndexError, ValueError) as error:
            raise SpecError(f"entry in line {number}: {' '.join(words)}: {error!r}") from error
    for table in found.tables.values():
        table.entries.sort(key=lambda entry: entry.arguments.pop("priority", 0))
    return found


def _lines(text: str) -> Iterator[tuple[int, list[str]]]:
    for number, line in enumerate(text.splitlines(), 1):
        words = line.partition(";")[0].partition("#")[0].split()
        if words:
            yield number, words


def _read_block(
    found: SpecText, structs: dict[str, list[tuple[str, int]]], words: list[str], lines: Iterator[tuple[int, list[str]]]
) -> None:
    match words:
        case ["struct", name, "{"]:
            structs[name] = [(field[1], _bits(field[0])) for field in _block(lines)]
        case ["header", name, "instanceof", struct]:
            found.headers[name] = [(one, bits) for one, bits in structs[struct] if bits]
            found.bits |= {f"{name}.{one}": bits for one, bits in structs[struct]}
        case ["metadata", "instanceof", struct]:
            found.metadata = [f"m.{one}" for one, _ in structs[struct]]
            found.bits |= {f"m.{one}": bits for one, bits in structs[struct]}
        case ["regarray", name, "size", size, "initval", first]:
            found.registers[name] = int(size, 0), int(first, 0)
        case ["action", name, "args", *of, "{"]:
            arguments = () if of == ["none"] else tuple(one for one, _ in structs[of[1]])
            found.actions[name] = SpecAction(arguments, _code(lines))
        case ["table" | "learner" as kind, name, "{"]:
            found.tables[name] = _read_table(name, kind == "learner", lines)
        case ["apply", "{"]:
            found.apply = _code(lines)
        case _:
            raise ValueError("not a block")


def _bits(text: str) -> int:
    """Of a field; 0 if its length varies."""
    return 0 if text.startswith("varbit<") else int(text.removeprefix("bit<").removesuffix(">"))


def _block(lines: Iterator[tuple[int, list[str]]]) -> Iterator[list[str]]:
    for _, words in lines:
        if words == ["}"]:
            return
        yield words


def _code(lines: Iterator[tuple[int, list[str]]]) -> tuple[Instruction, ...]:
    found = []
    for words in _block(lines):
        label, rest = (words[0], words[2:]) if words[1:2] == [":"] else ("", words)
        found.append((label, [word.removeprefix("h.") for word in rest]))
    return tuple(found)


def _read_table(name: str, is_learner: bool, lines: Iterator[tuple[int, list[str]]]) -> SpecTable:
    keys: list[str] = []
    matches: set[str] = set()
    default: tuple[str, dict[str, int]] = ("", {})
    for words in _block(lines):
        match words:
            case ["key", "{"]:
                rows = list(_block(lines))
                keys = [row[0].removeprefix("h.") for row in rows]
                matches = {row[1] for row in rows if len(row) > 1}
            case ["actions", "{"] | ["timeout", "{"]:
                list(_block(lines))
            case ["default_action", action, "args", *values]:
                default = action, _arguments([] if values[:1] == ["none"] else values)
            case ["size", _]:
                continue
            case _:
                raise ValueError(" ".join(words))
    return SpecTable(name, tuple(keys), "wildcard" in matches, is_learner, default)


def _read_entry(found: SpecText, words: list[str]) -> None:
    table, word, *rest = words
    if word != "match":
        raise ValueError("an entry begins with its table and `match`")
    at = rest.index("action")
    before = rest[: rest.index("priority")] if "priority" in rest else rest[:at]
    key = tuple(_key(one) for one in before)
    arguments = _arguments(rest[at + 2 :])
    if "priority" in rest:
        arguments["priority"] = int(rest[rest.index("priority") + 1], 0)
    found.tables[table].entries.append(SpecEntry(key, rest[at + 1], arguments))


def _key(text: str) -> tuple[int, int]:
    value, slash, mask = text.partition("/")
    return int(value, 0), int(mask, 0) if slash else -1


def _arguments(words: list[str]) -> dict[str, int]:
    return {name: int(value, 0) for name, value in zip(words[::2], words[1::2], strict=True)}

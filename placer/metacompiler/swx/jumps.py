"""Fewer jumps in the instructions of a pipeline: jumps that lead to jumps, over jumps, or nowhere.

Lines are pairs: ("label", NAME), or ("instruction", TEXT). All jumps lead forward.
"""

from __future__ import annotations

from collections.abc import Sequence

Line = tuple[str, str]

OPPOSITES = {"jmpeq": "jmpneq", "jmpneq": "jmpeq", "jmpv": "jmpnv", "jmpnv": "jmpv"}
EQUAL, DIFFERENT = "==", "!="
FACTS = {"jmpeq": EQUAL, "jmpv": EQUAL, "jmpneq": DIFFERENT, "jmpnv": DIFFERENT}
"""What holds where a jump is taken."""
VALID = "valid"
FORGETTING = {"table", "learn", "rx", "extract", "lookahead"}
"""Instructions behind which nothing is known of what was before."""
Facts = dict[str, tuple[str, str]]
"""By field or header: whether it equals a value, or does not."""


def with_fewer_jumps(lines: Sequence[Line]) -> list[Line]:
    """The same instructions with fewer jumps on the way of a packet."""
    found = list(lines)
    while True:
        shorter = _without_needless(_inverted(_threaded(found)))
        if shorter == found:
            return found
        found = shorter


def _threaded(lines: list[Line]) -> list[Line]:
    """Jumps lead where the tests behind their targets lead them, if it is known how these turn out."""
    lines = _only_used_labels(lines)
    places = {text: at for at, (kind, text) in enumerate(lines) if kind == "label"}
    new: dict[int, str] = {}
    found = list(lines)
    for at, (kind, text) in enumerate(lines):
        word, *operands = text.split()
        if kind != "instruction" or not word.startswith("jmp"):
            continue
        facts = _known_before(lines, at) | _learnt(word, operands, taken=True)
        target = places[operands[0]]
        while (behind := _behind(lines, target, places, facts)) is not None:
            target = behind
        if target != places[operands[0]]:
            label = _label_at(lines, target, new)
            found[at] = ("instruction", " ".join([word, label, *operands[1:]]))
    for at in sorted(new, reverse=True):
        found.insert(at, ("label", new[at]))
    return found


def _label_at(lines: Sequence[Line], at: int, new: dict[int, str]) -> str:
    """A label of the instruction at a place."""
    if at < len(lines) and lines[at][0] == "label":
        return lines[at][1]
    known = {text for kind, text in lines if kind == "label"} | set(new.values())
    number = len(new)
    while f"PAST_{number}" in known:
        number += 1
    return new.setdefault(at, f"PAST_{number}")


def _behind(lines: Sequence[Line], at: int, places: dict[str, int], facts: Facts) -> int | None:
    """Where a packet goes from a jump at the place, or one behind its labels; None if there is none, or unknown."""
    while at < len(lines) and lines[at][0] == "label":
        at += 1
    if at == len(lines):
        return None
    word, *operands = lines[at][1].split()
    if word == "jmp":
        return places[operands[0]]
    if word not in OPPOSITES:
        return None
    turns = _turns_out(word, operands, facts)
    if turns is None:
        return None
    return places[operands[0]] if turns else at + 1


def _turns_out(word: str, operands: Sequence[str], facts: Facts) -> bool | None:
    """Whether a jump is taken, if that is known."""
    ((name, (relation, value)),) = _learnt(word, operands, taken=True).items()
    if name not in facts:
        return None
    known, known_value = facts[name]
    if known == EQUAL:
        return (known_value == value) == (relation == EQUAL)
    return relation == DIFFERENT if known_value == value else None


def _learnt(word: str, operands: Sequence[str], *, taken: bool) -> Facts:
    """What a jump says of a field or header where it is taken, or is not."""
    if word not in FACTS:
        return {}
    relation = FACTS[word if taken else OPPOSITES[word]]
    if word in ("jmpv", "jmpnv"):
        return {operands[1]: (relation, VALID)}
    if not operands[2][0].isdigit():
        return {operands[1]: (DIFFERENT, "nothing")}
    return {operands[1]: (relation, str(int(operands[2], 0)))}


def _known_before(lines: Sequence[Line], at: int) -> Facts:
    """What the instructions in front of a jump say, up to where other packets join."""
    facts: Facts = {}
    written: set[str] = set()
    for before in range(at - 1, -1, -1):
        kind, text = lines[before]
        word, *operands = text.split()
        if kind == "label" or word in FORGETTING or word in ("jmp", "tx", "drop"):
            break
        if word in FACTS:
            for name, fact in _learnt(word, operands, taken=False).items():
                if name not in written:
                    facts.setdefault(name, fact)
        elif word in ("validate", "invalidate"):
            relation = EQUAL if word == "validate" else DIFFERENT
            if operands[0] not in written:
                facts.setdefault(operands[0], (relation, VALID))
            written.add(operands[0])
        elif operands:
            if word == "mov" and operands[0] not in written and operands[1][0].isdigit():
                facts.setdefault(operands[0], (EQUAL, str(int(operands[1], 0))))
            written.add(operands[0])
    return facts


def _only_used_labels(lines: Sequence[Line]) -> list[Line]:
    used = {text.split()[1] for kind, text in lines if kind == "instruction" and text.startswith("jmp")}
    return [(kind, text) for kind, text in lines if kind == "instruction" or text in used]


def _inverted(lines: Sequence[Line]) -> list[Line]:
    """Jumps over jumps become one."""
    found: list[Line] = []
    for at, line in enumerate(lines):
        word, *operands = line[1].split()
        if found and found[-1][0] == "instruction" and line[0] == "instruction" and word == "jmp":
            before, *rest = found[-1][1].split()
            if before in OPPOSITES and rest[0] in _labels_behind(lines, at):
                found[-1] = ("instruction", " ".join([OPPOSITES[before], operands[0], *rest[1:]]))
                continue
        found.append(line)
    return found


def _without_needless(lines: Sequence[Line]) -> list[Line]:
    """Without jumps to the next instruction, and what stands behind a jump and is never reached."""
    found: list[Line] = []
    reached = True
    for at, (kind, text) in enumerate(lines):
        reached = reached or kind == "label"
        if not reached or (text.startswith("jmp ") and text.split()[1] in _labels_behind(lines, at)):
            continue
        found.append((kind, text))
        reached = kind == "label" or text.split()[0] not in ("jmp", "tx", "drop", "return")
    return _only_used_labels(found)


def _labels_behind(lines: Sequence[Line], at: int) -> set[str]:
    """The labels of the next instruction."""
    found = set()
    for following in range(at + 1, len(lines)):
        kind, text = lines[following]
        if kind != "label":
            break
        found.add(text)
    return found

"""The limits of the card, checked on the object: instructions, stack, no loop, no call, known helpers.

They are those of the Netronome card of Lemur's testbed (Yen et al., appendix A.3), which XDP emulates here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from placer.metacompiler.ebpf.build import StackLimitError, compiled
from placer.metacompiler.ebpf.elf import Instruction, NicObject, read_object
from placer.metacompiler.ebpf.program import NicEdge, NicEntry, NicExit, NicProgram, NicSide, NicStep
from placer.metacompiler.ebpf.source import source_of
from placer.metacompiler.routing import Label
from profiles import Fault, InputError

MOST_INSTRUCTIONS = 4196
MOST_STACK = 512
HELPERS = {1: "bpf_map_lookup_elem", 44: "bpf_xdp_adjust_head"}

JUMPS, WIDE_LOAD, CALL, EXIT, ALWAYS = (5, 6), 0x18, 0x85, 0x95, 0x05
MOVE, ADD_CONSTANT = 0xBF, 0x07
STACK = 10
OWN_CALL = 1
ALONE = Label(1, 255)


@dataclass(frozen=True)
class NicUse:
    """What a program takes of the card: instructions of 8 bytes, and bytes of stack."""

    instructions: int
    stack: int


def use_of(program: NicObject) -> NicUse:
    """What an object takes of the card."""
    return NicUse(len(program.code), _stack(program.code))


def violations(program: NicObject) -> list[tuple[str, str]]:
    """Each limit that an object violates, by name, and how."""
    use = use_of(program)
    found = []
    if use.instructions > MOST_INSTRUCTIONS:
        found.append(("instructions", f"{use.instructions:,} instructions, at most {MOST_INSTRUCTIONS:,}"))
    if use.stack > MOST_STACK:
        found.append(("stack", f"{use.stack} bytes of stack, at most {MOST_STACK}"))
    if len(program.functions) > 1 or any(_calls_own(one) for one in program.code):
        names = ", ".join(one.name for one in program.functions)
        found.append(("calls", f"functions that are called ({names}): all must be inlined"))
    loop = _back_edge(program.code)
    if loop is not None:
        found.append(("loop", f"instruction {loop[0]} leads back to {loop[1]}: loops must be unrolled"))
    strange = sorted({one.immediate for one in program.code if one.opcode == CALL and not one.source} - HELPERS.keys())
    found += [("helper", f"helper {number} of the kernel, which the card lacks") for number in strange]
    return found


def built(program: NicProgram) -> tuple[bytes, NicUse]:
    """The object of a program within the limits, and what it takes of the card.

    Raises
    ------
    InputError
        With each limit that it violates, and which NF takes how much of that.
    """
    try:
        data = compiled(source_of(program))
    except StackLimitError:
        raise _refused(program, None) from None
    found = read_object(data)
    if violations(found):
        raise _refused(program, found)
    return data, use_of(found)


def _refused(program: NicProgram, found: NicObject | None) -> InputError:
    """The refusal of a program, with what each of its NFs takes alone; None: an object that needs too much stack."""
    broken = violations(found) if found else [("stack", f"more than {MOST_STACK} bytes of stack")]
    several = len(program.steps) > 1
    alone = {step.name: _object_alone(step) if several else found for step in program.steps}
    return InputError([Fault(program.name, None, what, how, _hint(what, alone)) for what, how in broken])


def _object_alone(step: NicStep) -> NicObject | None:
    """The object of a program with this NF alone; None if that needs too much stack."""
    alone = replace(step, edges=(NicEdge(NicExit(NicSide.SWITCH)),))
    try:
        return read_object(compiled(source_of(NicProgram("alone", (alone,), (NicEntry(ALONE, 0),)))))
    except StackLimitError:
        return None


def _hint(what: str, alone: Mapping[str, NicObject | None]) -> str:
    """Which NFs to place elsewhere."""
    shown = []
    for name, found in alone.items():
        if found is None:
            shown.append(f"{name} more than {MOST_STACK} B of stack")
        elif what == "instructions":
            shown.append(f"{name} {use_of(found).instructions:,}")
        elif what == "stack":
            shown.append(f"{name} {use_of(found).stack} B")
        elif any(broken == what for broken, _ in violations(found)):
            shown.append(name)
    return f"place NFs elsewhere; alone: {', '.join(shown)}"


def _calls_own(one: Instruction) -> bool:
    return one.opcode == CALL and one.source == OWN_CALL


def _successors(code: Sequence[Instruction], at: int) -> Iterator[int]:
    one = code[at]
    kind = one.opcode & 7
    if one.opcode == WIDE_LOAD:
        yield at + 2
    elif kind not in JUMPS or one.opcode == CALL:
        yield at + 1
    elif one.opcode == ALWAYS:
        yield at + 1 + one.offset
    elif one.opcode != EXIT:
        yield at + 1
        yield at + 1 + one.offset


def _back_edge(code: Sequence[Instruction]) -> tuple[int, int] | None:
    """An edge that closes a loop, found in depth; a jump backwards that closes none is not one."""
    entered, left = set(), set()
    path: list[tuple[int, Iterator[int]]] = [(0, _successors(code, 0))] if code else []
    entered.add(0)
    while path:
        at, following = path[-1]
        after = next(following, None)
        if after is None:
            left.add(at)
            path.pop()
        elif after not in entered:
            if after < len(code):
                entered.add(after)
                path.append((after, _successors(code, after)))
        elif after not in left:
            return at, after
    return None


def _stack(code: Sequence[Instruction]) -> int:
    """The lowest byte of the stack that is read, written or pointed to."""
    lowest = 0
    pointers: dict[int, int] = {STACK: 0}
    for one in code:
        kind = one.opcode & 7
        base = one.source if kind == 1 else one.target if kind in (2, 3) else None
        if base in pointers:
            lowest = min(lowest, pointers[base] + one.offset)
        if one.opcode == MOVE and one.source in pointers:
            pointers[one.target] = pointers[one.source]
        elif one.opcode == ADD_CONSTANT and one.target in pointers:
            pointers[one.target] += one.immediate
            lowest = min(lowest, pointers[one.target])
        elif kind in (0, 1, 4, 7):
            pointers.pop(one.target, None)
        elif one.opcode == CALL:
            pointers = {register: at for register, at in pointers.items() if register > 5}
    return -lowest

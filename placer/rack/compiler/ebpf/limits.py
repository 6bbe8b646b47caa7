"""The limits of the card, checked on the object: instructions, stack, no loop, no call, known helpers.

They are those of the Netronome card of Lemur's testbed (Yen et al., appendix A.3), which XDP emulates here.
"""

from __future__ import annotations

import struct
import subprocess
import sysconfig
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from placer.rack.compiler.ebpf.program import NicEdge, NicEntry, NicExit, NicProgram, NicSide, NicStep
from placer.rack.compiler.ebpf.source import source_of
from placer.rack.compiler.routing import Label
from profiles import Fault, InputError

MOST_INSTRUCTIONS = 4196
MOST_STACK = 512
KERNEL_HELPERS = {1: "bpf_map_lookup_elem", 44: "bpf_xdp_adjust_head"}

JUMP_CLASSES, WIDE_LOAD, CALL_OPCODE, EXIT_OPCODE, ALWAYS_JUMP = (5, 6), 0x18, 0x85, 0x95, 0x05
MOVE_REGISTER, ADD_CONSTANT = 0xBF, 0x07
STACK_REGISTER = 10
OWN_CALL = 1
LONE_LABEL = Label(1, 255)


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
    if len(program.functions) > 1 or any(_calls_own(instruction) for instruction in program.code):
        names = ", ".join(function.name for function in program.functions)
        found.append(("calls", f"functions that are called ({names}): all must be inlined"))
    loop = _back_edge(program.code)
    if loop is not None:
        found.append(("loop", f"instruction {loop[0]} leads back to {loop[1]}: loops must be unrolled"))
    strange = sorted(
        {
            instruction.immediate
            for instruction in program.code
            if instruction.opcode == CALL_OPCODE and not instruction.source
        }
        - KERNEL_HELPERS.keys()
    )
    found += [("helper", f"helper {number} of the kernel, which the card lacks") for number in strange]
    return found


def build(program: NicProgram) -> tuple[bytes, NicUse]:
    """The object of a program within the limits, and what it takes of the card.

    Raises InputError with each limit that it violates, and which NF takes how much of that.
    """
    try:
        data = compile_source(source_of(program))
    except StackLimitError:
        raise _refuse(program, None) from None
    found = read_object(data)
    if violations(found):
        raise _refuse(program, found)
    return data, use_of(found)


def is_within(program: NicProgram) -> bool:
    """Whether an object of a program is within the limits. Raises InputError where clang is missing or refuses it."""
    return _is_within(source_of(program))


@lru_cache(maxsize=1024)
def _is_within(source: str) -> bool:
    try:
        return not violations(read_object(compile_source(source)))
    except StackLimitError:
        return False


def _refuse(program: NicProgram, found: NicObject | None) -> InputError:
    """The refusal of a program, with what each of its NFs takes alone; None: an object that needs too much stack."""
    broken = violations(found) if found else [("stack", f"more than {MOST_STACK} bytes of stack")]
    several = len(program.steps) > 1
    alone = {step.name: _object_alone(step) if several else found for step in program.steps}
    return InputError([Fault(program.name, None, what, how, _hint(what, alone)) for what, how in broken])


def _object_alone(step: NicStep) -> NicObject | None:
    """The object of a program with this NF alone; None if that needs too much stack."""
    alone = replace(step, edges=(NicEdge(NicExit(NicSide.SWITCH)),))
    try:
        return read_object(compile_source(source_of(NicProgram("alone", (alone,), (NicEntry(LONE_LABEL, 0),)))))
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
    return one.opcode == CALL_OPCODE and one.source == OWN_CALL


def _successors(code: Sequence[Instruction], at: int) -> Iterator[int]:
    one = code[at]
    kind = one.opcode & 7
    if one.opcode == WIDE_LOAD:
        yield at + 2
    elif kind not in JUMP_CLASSES or one.opcode == CALL_OPCODE:
        yield at + 1
    elif one.opcode == ALWAYS_JUMP:
        yield at + 1 + one.offset
    elif one.opcode != EXIT_OPCODE:
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
    pointers: dict[int, int] = {STACK_REGISTER: 0}
    for instruction in code:
        kind = instruction.opcode & 7
        base = instruction.source if kind == 1 else instruction.target if kind in (2, 3) else None
        if base in pointers:
            lowest = min(lowest, pointers[base] + instruction.offset)
        if instruction.opcode == MOVE_REGISTER and instruction.source in pointers:
            pointers[instruction.target] = pointers[instruction.source]
        elif instruction.opcode == ADD_CONSTANT and instruction.target in pointers:
            pointers[instruction.target] += instruction.immediate
            lowest = min(lowest, pointers[instruction.target])
        elif kind in (0, 1, 4, 7):
            pointers.pop(instruction.target, None)
        elif instruction.opcode == CALL_OPCODE:
            pointers = {register: at for register, at in pointers.items() if register > 5}
    return -lowest


# Reads the object of a SmartNIC's program: an ELF file, as clang writes it for BPF.


ELF_HEADER = struct.Struct("<4sBBB9xHHIQQQIHHHHHH")
ELF_SECTION = struct.Struct("<IIQQQQIIQQ")
ELF_SYMBOL = struct.Struct("<IBBHQQ")
ELF_RELOCATION = struct.Struct("<QQ")
BPF_INSTRUCTION = struct.Struct("<BBhi")
BPF_MACHINE = 247
PROGBITS, NOBITS = 1, 8
CODE_FLAG, DATA_FLAG = 4, 2
FUNCTION_SYMBOL = 2
PROGRAM_SECTION = "xdp"


class ObjectError(Exception):
    """A file that is no object of a SmartNIC's program."""


class Instruction(NamedTuple):
    """One slot of 8 bytes; a load of 64 bits takes two."""

    opcode: int
    target: int
    source: int
    offset: int
    immediate: int


class NicSymbol(NamedTuple):
    """A name: in which section, where, how long, and whether it is a function."""

    name: str
    section: str
    value: int
    size: int
    function: bool


@dataclass(frozen=True)
class NicObject:
    """A program in memory."""

    code: Sequence[Instruction]  # the instructions of its only section of code
    addresses: Mapping[int, tuple[str, int]]  # by instruction that loads an address: section and offset there
    data: Mapping[str, bytes]  # sections of data, `.bss` as zeros
    functions: Sequence[NicSymbol]  # functions with code, one in a program that the card takes


class _Section(NamedTuple):
    name: str
    kind: int
    flags: int
    offset: int
    size: int
    link: int
    info: int


def read_object(data: bytes) -> NicObject:
    """The program in an object. Raises ObjectError if it is no ELF file for BPF, or has no program for XDP."""
    try:
        return _read(data)
    except (struct.error, IndexError, ValueError) as error:
        raise ObjectError(f"the object is damaged: {error}") from None


def _read(data: bytes) -> NicObject:
    magic, bits, order, _, _, machine, *_ = header = ELF_HEADER.unpack_from(data)
    if magic != b"\x7fELF" or (bits, order, machine) != (2, 1, BPF_MACHINE):
        raise ObjectError("the object is no ELF file for BPF, little-endian")
    sections = _sections(data, header)
    symbols = _symbols(data, sections)
    programs = [section for section in sections if section.name == PROGRAM_SECTION]
    if len(programs) != 1:
        raise ObjectError(f"the object has {len(programs)} sections '{PROGRAM_SECTION}'")
    code = data[programs[0].offset : programs[0].offset + programs[0].size]
    return NicObject(
        [_instruction(*raw) for raw in BPF_INSTRUCTION.iter_unpack(code)],
        _addresses(data, sections, symbols, sections.index(programs[0]), code),
        {
            section.name: bytes(section.size)
            if section.kind == NOBITS
            else data[section.offset : section.offset + section.size]
            for section in sections
            if section.kind in (PROGBITS, NOBITS) and section.flags & DATA_FLAG and not section.flags & CODE_FLAG
        },
        [symbol for symbol in symbols if symbol.function],
    )


def _instruction(opcode: int, registers: int, offset: int, immediate: int) -> Instruction:
    return Instruction(opcode, registers & 0xF, registers >> 4, offset, immediate)


def _sections(data: bytes, header: Sequence[int]) -> list[_Section]:
    start, size, count, names = header[9], header[14], header[15], header[16]
    raw = [ELF_SECTION.unpack_from(data, start + size * at) for at in range(count)]
    return [
        _Section(_text(data, raw[names][4] + name), kind, flags, offset, length, link, info)
        for name, kind, flags, _, offset, length, link, info, _, _ in raw
    ]


def _text(data: bytes, at: int) -> str:
    return data[at : data.index(b"\0", at)].decode()


def _symbols(data: bytes, sections: Sequence[_Section]) -> list[NicSymbol]:
    table = next((section for section in sections if section.kind == 2), None)
    if table is None:
        raise ObjectError("the object has no symbols")
    names = sections[table.link].offset
    found = []
    for at in range(table.offset, table.offset + table.size, ELF_SYMBOL.size):
        name, info, _, section, value, size = ELF_SYMBOL.unpack_from(data, at)
        place = sections[section].name if section < len(sections) else ""
        found.append(NicSymbol(_text(data, names + name), place, value, size, info & 0xF == FUNCTION_SYMBOL))
    return found


def _addresses(
    data: bytes, sections: Sequence[_Section], symbols: Sequence[NicSymbol], program: int, code: bytes
) -> dict[int, tuple[str, int]]:
    found = {}
    for section in (section for section in sections if section.kind == 9 and section.info == program):
        for at in range(section.offset, section.offset + section.size, ELF_RELOCATION.size):
            offset, info = ELF_RELOCATION.unpack_from(data, at)
            symbol = symbols[info >> 32]
            addend = BPF_INSTRUCTION.unpack_from(code, offset)[3]
            found[offset // BPF_INSTRUCTION.size] = (symbol.section, symbol.value + addend)
    return found


# Compiles the program of a SmartNIC with clang.


CLANG = "clang"
CLANG_OPTIONS = ("-O2", "-target", "bpf", "-mcpu=v3", "-fno-jump-tables", "-Wall", "-Wextra", "-Wno-unused-function")
REGISTER_OPTIONS = ("-mllvm", "-pre-RA-sched=source")
"""Instructions in the order of the source: ChaCha20 then keeps more of its words in registers."""
STACK_MESSAGE = "BPF stack limit"


class StackLimitError(Exception):
    """A program that needs more stack than BPF has, 512 bytes: clang writes no object."""


def compile_command(source: Path | str, target: Path | str) -> list[str]:
    """The command that compiles `source` into the object `target`."""
    headers = f"/usr/include/{sysconfig.get_config_var('MULTIARCH') or 'x86_64-linux-gnu'}"
    return [CLANG, *CLANG_OPTIONS, *REGISTER_OPTIONS, "-idirafter", headers, "-c", str(source), "-o", str(target)]


@lru_cache(maxsize=256)
def compile_source(source: str) -> bytes:
    """The object of a program in C; each source is compiled once: an update holds it to the limits before it writes it.

    Raises InputError if clang is missing or refuses the program, with its first message. Raises StackLimitError.
    """
    with tempfile.TemporaryDirectory() as folder:
        text, target = Path(folder, "nic.c"), Path(folder, "nic.o")
        text.write_text(source, encoding="utf-8")
        try:
            done = subprocess.run(compile_command(text, target), capture_output=True, text=True, check=False)
        except FileNotFoundError:
            raise InputError.of("nic.c", f"{CLANG} is not installed", hint="make deps") from None
        if STACK_MESSAGE in done.stderr:
            raise StackLimitError
        if done.returncode != 0:
            errors = [line for line in done.stderr.splitlines() if "error" in line]
            raise InputError.of("nic.c", f"clang refuses the program: {next(iter(errors), 'without saying why')}")
        return target.read_bytes()

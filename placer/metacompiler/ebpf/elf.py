"""Reads the object of a SmartNIC's program: an ELF file, as clang writes it for BPF."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

HEADER = struct.Struct("<4sBBB9xHHIQQQIHHHHHH")
SECTION = struct.Struct("<IIQQQQIIQQ")
SYMBOL = struct.Struct("<IBBHQQ")
RELOCATION = struct.Struct("<QQ")
INSTRUCTION = struct.Struct("<BBhi")
BPF_MACHINE = 247
PROGBITS, NOBITS = 1, 8
CODE_FLAG, DATA_FLAG = 4, 2
FUNCTION = 2
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
    """A program in memory.

    Parameters
    ----------
    code
        The instructions of its only section of code.
    addresses
        By instruction that loads an address: section and offset there.
    data
        Sections of data, `.bss` as zeros.
    functions
        Functions with code, one in a program that the card takes.
    """

    code: Sequence[Instruction]
    addresses: Mapping[int, tuple[str, int]]
    data: Mapping[str, bytes]
    functions: Sequence[NicSymbol]


class _Section(NamedTuple):
    name: str
    kind: int
    flags: int
    offset: int
    size: int
    link: int
    info: int


def read_object(data: bytes) -> NicObject:
    """The program in an object.

    Raises
    ------
    ObjectError
        If it is no ELF file for BPF, or has no program for XDP.
    """
    try:
        return _read(data)
    except (struct.error, IndexError, ValueError) as error:
        raise ObjectError(f"the object is damaged: {error}") from None


def _read(data: bytes) -> NicObject:
    magic, bits, order, _, _, machine, *_ = header = HEADER.unpack_from(data)
    if magic != b"\x7fELF" or (bits, order, machine) != (2, 1, BPF_MACHINE):
        raise ObjectError("the object is no ELF file for BPF, little-endian")
    sections = _sections(data, header)
    symbols = _symbols(data, sections)
    programs = [one for one in sections if one.name == PROGRAM_SECTION]
    if len(programs) != 1:
        raise ObjectError(f"the object has {len(programs)} sections '{PROGRAM_SECTION}'")
    code = data[programs[0].offset : programs[0].offset + programs[0].size]
    return NicObject(
        [_instruction(*raw) for raw in INSTRUCTION.iter_unpack(code)],
        _addresses(data, sections, symbols, sections.index(programs[0]), code),
        {
            one.name: bytes(one.size) if one.kind == NOBITS else data[one.offset : one.offset + one.size]
            for one in sections
            if one.kind in (PROGBITS, NOBITS) and one.flags & DATA_FLAG and not one.flags & CODE_FLAG
        },
        [one for one in symbols if one.function],
    )


def _instruction(opcode: int, registers: int, offset: int, immediate: int) -> Instruction:
    return Instruction(opcode, registers & 0xF, registers >> 4, offset, immediate)


def _sections(data: bytes, header: Sequence[int]) -> list[_Section]:
    start, size, count, names = header[9], header[14], header[15], header[16]
    raw = [SECTION.unpack_from(data, start + size * at) for at in range(count)]
    return [
        _Section(_text(data, raw[names][4] + name), kind, flags, offset, length, link, info)
        for name, kind, flags, _, offset, length, link, info, _, _ in raw
    ]


def _text(data: bytes, at: int) -> str:
    return data[at : data.index(b"\0", at)].decode()


def _symbols(data: bytes, sections: Sequence[_Section]) -> list[NicSymbol]:
    table = next((one for one in sections if one.kind == 2), None)
    if table is None:
        raise ObjectError("the object has no symbols")
    names = sections[table.link].offset
    found = []
    for at in range(table.offset, table.offset + table.size, SYMBOL.size):
        name, info, _, section, value, size = SYMBOL.unpack_from(data, at)
        place = sections[section].name if section < len(sections) else ""
        found.append(NicSymbol(_text(data, names + name), place, value, size, info & 0xF == FUNCTION))
    return found


def _addresses(
    data: bytes, sections: Sequence[_Section], symbols: Sequence[NicSymbol], program: int, code: bytes
) -> dict[int, tuple[str, int]]:
    found = {}
    for section in (one for one in sections if one.kind == 9 and one.info == program):
        for at in range(section.offset, section.offset + section.size, RELOCATION.size):
            offset, info = RELOCATION.unpack_from(data, at)
            symbol = symbols[info >> 32]
            addend = INSTRUCTION.unpack_from(code, offset)[3]
            found[offset // INSTRUCTION.size] = (symbol.section, symbol.value + addend)
    return found

"""Runs the object of a SmartNIC's program without a kernel: each block of instructions as Python, made when it is run.

Reads and writes outside of packet, stack and data are faults, as for the kernel's verifier; unlike it, this sees only
the packets that are run.
"""

from collections.abc import Iterator, Mapping, Sequence
from types import CodeType
from typing import Any

from placer.rack.compiler.ebpf.limits import Instruction, NicObject

M64, M32 = (1 << 64) - 1, (1 << 32) - 1
SIZES = {0x00: 4, 0x08: 2, 0x10: 1, 0x18: 8}
BINARY = {0x00: "+", 0x10: "-", 0x20: "*", 0x40: "|", 0x50: "&", 0xA0: "^"}
COMPARED = {0x10: "==", 0x20: ">", 0x30: ">=", 0x50: "!=", 0xA0: "<", 0xB0: "<="}
SIGNED = {0x60: ">", 0x70: ">=", 0xC0: "<", 0xD0: "<="}
LD, LDX, ST, STX, ALU32, JMP, JMP32, ALU64 = range(8)
CALL, EXIT, ALWAYS = 0x85, 0x95, 0x05
ATOMIC = 0xC0


class UnknownInstructionError(Exception):
    """An instruction that clang does not write for programs of SmartNICs."""


def block_begins(code: Sequence[Instruction]) -> set[int]:
    """Instructions to which jumps lead: blocks begin there."""
    return {
        at + 1 + one.offset
        for at, one in enumerate(code)
        if one.opcode & 7 in (JMP, JMP32) and one.opcode not in (CALL, EXIT)
    }


def translated(code: Sequence[Instruction], at: int, begins: set[int], addresses: Mapping[int, int]) -> Iterator[str]:
    """The block that begins at an instruction; its last line sets `at` to the next one, -1 at the end."""
    first = at
    while at == first or at not in begins:
        one = code[at]
        kind = one.opcode & 7
        if one.opcode == 0x18:
            wide = addresses.get(at, (one.immediate & M32) | (code[at + 1].immediate & M32) << 32)
            yield f"r{one.target} = {wide}"
            at += 2
            continue
        at += 1
        if one.opcode == CALL:
            yield f"r0 = call({one.immediate}, r1, r2)"
        elif kind in (JMP, JMP32):
            yield _jump(one, at)
            return
        elif kind in (ALU32, ALU64):
            yield _computed(one)
        else:
            yield _moved(one)
    yield f"at = {at}"


def _jump(one: Instruction, at: int) -> str:
    if one.opcode == EXIT:
        return "at = -1"
    if one.opcode == ALWAYS:
        return f"at = {at + one.offset}"
    return f"at = {at + one.offset} if {_condition(one)} else {at}"


def _condition(one: Instruction) -> str:
    operation, wide = one.opcode & 0xF0, one.opcode & 7 == JMP
    left, right = _register(one.target, wide), _operand(one, wide)
    if operation in COMPARED:
        return f"{left} {COMPARED[operation]} {right}"
    if operation == 0x40:
        return f"{left} & {right}"
    if operation in SIGNED:
        sign = 1 << (63 if wide else 31)
        return f"({left} ^ {sign}) {SIGNED[operation]} ({right} ^ {sign})"
    raise UnknownInstructionError(f"jump {one.opcode:#x}")


def _register(number: int, wide: bool) -> str:
    return f"r{number}" if wide else f"(r{number} & {M32})"


def _operand(one: Instruction, wide: bool) -> str:
    if one.opcode & 8:
        return _register(one.source, wide)
    return str(one.immediate & (M64 if wide else M32))


def _computed(one: Instruction) -> str:
    operation, wide = one.opcode & 0xF0, one.opcode & 7 == ALU64
    mask, bits = (M64, 64) if wide else (M32, 32)
    left, right = _register(one.target, wide), _operand(one, wide)
    target = f"r{one.target} ="
    if operation == 0xB0:
        return f"{target} {right}"
    if operation in BINARY:
        return f"{target} ({left} {BINARY[operation]} {right}) & {mask}"
    if operation == 0x60:
        return f"{target} ({left} << ({right} & {bits - 1})) & {mask}"
    if operation == 0x70:
        return f"{target} {left} >> ({right} & {bits - 1})"
    if operation == 0xC0:
        sign = 1 << (bits - 1)
        return f"{target} ((({left} ^ {sign}) - {sign}) >> ({right} & {bits - 1})) & {mask}"
    if operation == 0x80:
        return f"{target} -{left} & {mask}"
    if operation == 0xD0:
        return f"{target} {_swapped(one)}"
    raise UnknownInstructionError(f"computation {one.opcode:#x}")


def _swapped(one: Instruction) -> str:
    """Cut to 16, 32 or 64 bits, with the bytes in the other order if it says so."""
    size = one.immediate // 8
    cut = f"r{one.target} & {(1 << one.immediate) - 1}"
    return f"int.from_bytes(({cut}).to_bytes({size}, 'little'), 'big')" if one.opcode & 8 else cut


def _moved(one: Instruction) -> str:
    kind, size = one.opcode & 7, SIZES[one.opcode & 0x18]
    if kind == LDX:
        return f"r{one.target} = load(r{one.source} + {one.offset}, {size})"
    place = f"r{one.target} + {one.offset}, {size}"
    if kind == ST:
        return f"store({place}, {one.immediate})"
    if one.opcode & 0xE0 == ATOMIC:
        if one.immediate != 0:
            raise UnknownInstructionError(f"atomic operation {one.immediate:#x}")
        return f"store({place}, load({place}) + r{one.source})"
    return f"store({place}, r{one.source})"


HEADROOM = 256
FRAME_BYTES = 40  # at the begin of the headroom, which the kernel keeps to itself
LEAST_BYTES = 14
STACK_BYTES = 512
CLOCK = ".data.clock"  # the section of the time, ns, of programs that keep rates
LOWEST = 32  # bits of an address below the number of its region
CONTEXT, PACKET, STACK, DATA = 1, 2, 3, 4
REFUSED = (1 << 64) - 22
ABORTED, DROP, PASS, TX = 0, 1, 2, 3


class MachineFaultError(Exception):
    """A program that does what the kernel would have refused."""


class NicMachine:
    """A program with its data, which stays from packet to packet."""

    def __init__(self, program: NicObject) -> None:
        self.code = program.code
        self.sections = {name: bytearray(data) for name, data in program.data.items()}
        bases = {name: DATA + at << LOWEST for at, name in enumerate(self.sections)}
        self.addresses = {at: bases[section] + offset for at, (section, offset) in program.addresses.items()}
        self.packet, self.begin = bytearray(), 0
        self.stack = bytearray(STACK_BYTES)
        self.regions = {STACK: self.stack} | {DATA + at: data for at, data in enumerate(self.sections.values())}
        self.blocks: dict[int, CodeType] = {}
        self.begins = block_begins(self.code)
        self.names: dict[str, Any] = {"load": self._load, "store": self._store, "call": self._call}

    def run(self, packet: bytes, time_us: int = 0) -> tuple[int, bytes]:
        """The action for a packet, one of XDP's, and the packet as the program leaves it. `time_us`: when it came.

        Raises MachineFaultError if the program reads or writes where it must not.
        """
        self.packet, self.begin = bytearray(HEADROOM) + packet, HEADROOM
        if CLOCK in self.sections:
            self.sections[CLOCK][:] = (1000 * time_us).to_bytes(8, "little")
        self.regions[PACKET] = self.packet
        names = self.names
        names |= {f"r{number}": 0 for number in range(10)}
        names |= {"r1": CONTEXT << LOWEST, "r10": (STACK << LOWEST) + STACK_BYTES}
        at = 0
        while at >= 0:
            block = self.blocks.get(at) or self._block(at)
            exec(block, names)  # what `_block` made of instructions, not text
            at = names["at"]
        return names["r0"] & 0xFFFFFFFF, bytes(self.packet[self.begin :])

    def counters(self) -> list[int]:
        """The program's counters."""
        data = bytes(self.sections.get(".bss", b""))
        return [int.from_bytes(data[at : at + 8], "little") for at in range(0, len(data), 8)]

    def _block(self, at: int) -> CodeType:
        lines = translated(self.code, at, self.begins, self.addresses)
        self.blocks[at] = compile("\n".join(lines), f"<block {at}>", "exec")
        return self.blocks[at]

    def _place(self, address: int, size: int) -> tuple[bytearray, int]:
        region, at = self.regions.get(address >> LOWEST), address & 0xFFFFFFFF
        least = self.begin if address >> LOWEST == PACKET else 0
        if region is None or not least <= at <= len(region) - size:
            raise MachineFaultError(f"{size} bytes at {address:#x} are not the program's")
        return region, at

    def _load(self, address: int, size: int) -> int:
        if address >> LOWEST == CONTEXT:
            return self._context(address & 0xFFFFFFFF)
        region, at = self._place(address, size)
        return int.from_bytes(region[at : at + size], "little")

    def _context(self, offset: int) -> int:
        """A field of `struct xdp_md`: begin and end of the packet."""
        if offset not in (0, 4):
            raise MachineFaultError(f"field {offset} of the context is not emulated")
        return (PACKET << LOWEST) + (len(self.packet) if offset else self.begin)

    def _store(self, address: int, size: int, value: int) -> None:
        region, at = self._place(address, size)
        region[at : at + size] = (value & (1 << 8 * size) - 1).to_bytes(size, "little")

    def _call(self, helper: int, first: int, second: int) -> int:
        if helper != 44:
            raise MachineFaultError(f"helper {helper} is not emulated")
        delta = (second & 0xFFFFFFFF) - ((second & 0x80000000) << 1)
        begin = self.begin + delta
        if not FRAME_BYTES <= begin <= len(self.packet) - LEAST_BYTES:
            return REFUSED
        self.begin = begin
        return 0

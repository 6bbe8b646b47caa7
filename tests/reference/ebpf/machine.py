"""Runs the object of a SmartNIC's program without a kernel: each block of instructions as Python, made when it is run.

Reads and writes outside of packet, stack and data are faults, as for the kernel's verifier; unlike it, this sees only
the packets that are run.
"""

from __future__ import annotations

from types import CodeType
from typing import Any

from placer.rack.compiler.ebpf.limits import NicObject
from tests.reference.ebpf.translate import block_begins, translated

HEADROOM = 256
FRAME_BYTES = 40
"""At the begin of the headroom, which the kernel keeps to itself."""
LEAST_BYTES = 14
STACK_BYTES = 512
LOWEST = 32
"""Bits of an address below the number of its region."""
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

    def run(self, packet: bytes) -> tuple[int, bytes]:
        """The action for a packet, one of XDP's, and the packet as the program leaves it.

        Raises
        ------
        MachineFaultError
            If the program reads or writes where it must not.
        """
        self.packet, self.begin = bytearray(HEADROOM) + packet, HEADROOM
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

"""Runs the text of a P4 program: an interpreter for what `emit` writes, from the syntax tree that the checker reads.

It reads the text, not the program that the text was made from. What a hand-written program of the checked subset may
hold besides (hashes, counters, checksums, stacks, slices that are written) is refused.
"""

from placer.metacompiler.p4.run.expressions import NotRun
from placer.metacompiler.p4.run.machine import P4Machine

__all__ = ["NotRun", "P4Machine"]

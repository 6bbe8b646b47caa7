"""Runs the text of a P4 program: an interpreter for what `emit` writes, from the syntax tree that the checker reads. It
reads the text, not the program that the text was made from."""

from tests.reference.p4.run.machine import P4Machine

__all__ = ["P4Machine"]

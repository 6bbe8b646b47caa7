"""Reader and checker of the P4-16 that the rack's compiler emits for the Portable NIC Architecture (PNA).

`reader` has the grammar and reads the text into a tree; the others check names, widths, parser graphs, tables, paths,
after the P4-16 language specification (version 1.2). What the compiler never emits is refused. So is what the language
allows, but the compiler has no reason to write: a table stands once on every path, headers are written in the order in
which they are read, constants fit, names are not hidden, all that is declared is used. This is no compiler."""

from tests.reference.p4.checker.check import check
from tests.reference.p4.checker.reader import P4SyntaxError, parse_program

__all__ = ["P4SyntaxError", "check", "parse_program"]

"""Parser and type checker of P4-16 programs for the Portable NIC Architecture, as far as generated programs go.

Written after the P4-16 language specification (version 1.2): `syntax` reads and prints, `rules` checks names, types,
parser graphs, tables and the package. It is stricter than the language where a generated program has no reason to
be lax: tables need a default action, a table stands once on every path, `select` needs a default, headers are
written in the order in which they are read, constants must fit, names are not hidden. It is no compiler.
"""

from placer.metacompiler.p4.checker.check import check, warnings
from placer.metacompiler.p4.checker.faults import P4Fault, P4SyntaxError
from placer.metacompiler.p4.checker.syntax.declarations import parsed
from placer.metacompiler.p4.checker.syntax.printer import printed

__all__ = ["P4Fault", "P4SyntaxError", "check", "parsed", "printed", "warnings"]

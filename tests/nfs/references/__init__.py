"""Independent references of the network functions in C: plain Python, written from RFCs and documentation.

A reference takes the packets that a function takes, and states what must come out. A new one is one file with a
subclass of `Reference`; nothing else needs an edit.
"""

from __future__ import annotations

import importlib
import pkgutil

from tests.nfs.references.reference import Reference


def references() -> dict[str, type[Reference]]:
    """The reference of each function, by the function's name."""
    found = {}
    for module in pkgutil.iter_modules(__path__):
        loaded = importlib.import_module(f"{__name__}.{module.name}")
        for value in vars(loaded).values():
            if isinstance(value, type) and issubclass(value, Reference) and value.nf:
                found[value.nf] = value
    return dict(sorted(found.items()))

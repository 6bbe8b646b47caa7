"""Models of the network functions (NFs): what each one does to packets, in plain Python, from RFCs and documentation.

The functions in C are compared with them (`tests/nfs`), and so is what the compiler of chains makes of the NFs for
switches, SmartNICs and servers (`tests/placer/rack/compiler`). A new one is a subclass of `FunctionModel` in a file of
this folder; nothing else needs an edit.
"""

import importlib
import pkgutil
from functools import cache

from tests.reference.nfs.model import FunctionModel


@cache
def nf_models() -> dict[str, type[FunctionModel]]:
    """The model of each function, by the function's name."""
    found = {}
    for module in pkgutil.iter_modules(__path__):
        for value in vars(importlib.import_module(f"{__name__}.{module.name}")).values():
            if isinstance(value, type) and issubclass(value, FunctionModel) and value.nf:
                found[value.nf] = value
    return dict(sorted(found.items()))

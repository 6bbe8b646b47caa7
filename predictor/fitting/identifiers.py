"""Names of columns as identifiers of a programming language."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection

from predictor.fitting.fitted_model import FittedModel

LONGEST = 60


def identifier(text: str, avoided: Collection[str], empty: str = "x") -> str:
    """An identifier of ASCII letters, digits and underscores: `cycles/packet` becomes `cycles_packet`.

    Parameters
    ----------
    text
        Whatever a column is called.
    avoided
        Keywords, and names that are taken; those get an underscore at the end.
    empty
        What stands for a text without letters and digits.
    """
    letters = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode()
    name = re.sub(r"[^0-9A-Za-z]+", "_", letters).strip("_")[:LONGEST].rstrip("_") or empty
    if name[0].isdigit():
        name = f"{empty}_{name}"
    while name in avoided:
        name += "_"
    return name


def function_name(model: FittedModel, avoided: Collection[str]) -> str:
    """The name of y; for a fit at a setting also the setting, as in `cycles_packet_size_64`."""
    setting = "".join(f" {name} {_spelled(value)}" for name, value in model.setting.items())
    return identifier(model.y + setting, avoided, "y")


def _spelled(value: float) -> str:
    return f"{value:.12g}".replace("-", "minus ").replace(".", " point ").replace("+", "")

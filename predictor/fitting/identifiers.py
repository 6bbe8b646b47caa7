"""Names of columns as identifiers of a programming language."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Sequence

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


def function_names(models: Sequence[FittedModel], avoided: Collection[str]) -> list[str]:
    """Names for the functions of models, all different: of y, and of the setting, as in `cycles_packet_size_64`."""
    names: list[str] = []
    for model in models:
        setting = "".join(f" {name} {_spelled(value)}" for name, value in model.setting.items())
        names.append(identifier(model.y + setting, {*avoided, *names}, "y"))
    return names


def _spelled(value: float) -> str:
    return f"{value:.12g}".replace("-", "minus ").replace(".", " point ").replace("+", "")

"""A curve in the characters of a terminal: Braille dots, or plain ASCII."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

BRAILLE = 0x2800
BITS = ((0x01, 0x02, 0x04, 0x40), (0x08, 0x10, 0x20, 0x80))
"""Of the dots of a Braille character, by column and row."""
ASCII = " '-|.:||"
"""By which thirds of a character have points: the first bit is the upper one."""
ASCII_ROWS = 3


def drawn_curve(x: Array, y: Array, columns: int, rows: int, *, braille: bool) -> list[str]:
    """The points in a box of characters, one string per row, the largest y at the top.

    Parameters
    ----------
    x, y
        Finite numbers, at least one.
    columns, rows
        Size of the box in characters.
    braille
        Whether Braille dots may be used; otherwise plain ASCII.
    """
    across, down = (2, 4) if braille else (1, ASCII_ROWS)
    at = _places(x, columns * across)
    depth = rows * down - 1 - _places(y, rows * down)
    characters = np.zeros((rows, columns), dtype=int)
    bits = np.array(BITS if braille else [[1, 2, 4]])
    np.bitwise_or.at(characters, (depth // down, at // across), bits[at % across, depth % down])
    return ["".join(chr(BRAILLE + bits) if braille else ASCII[bits] for bits in row) for row in characters.tolist()]


def _places(values: Array, count: int) -> NDArray[np.int_]:
    """Of each value its place among `count`; equal values are in the middle."""
    low, span = values.min(), np.ptp(values)
    if not span > 0:
        return np.full(len(values), count // 2)
    places: NDArray[np.int_] = np.minimum((values - low) / span * count, count - 1).astype(int)
    return places

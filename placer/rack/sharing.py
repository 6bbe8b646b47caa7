"""Subgroups that take turns on a core (round robin): each gets an equal share of it."""

from collections.abc import Iterable, Sequence
from fractions import Fraction

import numpy as np

from placer.rack.rack import MOST_TURNS
from profiles.arrays import Ints


def pack_turns(turns: Iterable[int]) -> list[list[int]]:
    """What runs on each of as few cores as possible, by number; a subgroup that needs one of n turns has up to n - 1
    others beside it.

    Around the one with the fewest turns is room for the fewest, and those with the next fewest lose least there.
    """
    wanted, cores = list(turns), list[list[int]]()
    for at in sorted(range(len(wanted)), key=lambda at: (wanted[at], at)):
        if cores and len(cores[-1]) < wanted[cores[-1][0]]:
            cores[-1].append(at)
        else:
            cores.append([at])
    return cores


def has_room(counts: Ints, cores: int) -> bool:
    """Whether so many cores are enough; `counts`: how many subgroups need one of at most 1, 2, ... turns."""
    return len(pack_turns(np.repeat(np.arange(1, MOST_TURNS + 1), np.diff(counts, prepend=0)).tolist())) <= cores


def number_cores(given: Sequence[int | Fraction]) -> list[list[int]]:
    """The cores of each subgroup of a pool, by number from 0: whole ones first, then those of turns."""
    found: list[list[int]] = [[] for _ in given]
    free = 0
    for at, cores in enumerate(given):
        if cores >= 1:
            found[at] = list(range(free, free + int(cores)))
            free += int(cores)
    parts = [at for at, cores in enumerate(given) if cores < 1]
    for core, on in enumerate(pack_turns(Fraction(given[at]).denominator for at in parts)):
        for part in on:
            found[parts[part]] = [free + core]
    return found

"""Profiling methods, one file each; other people's are entry points of the group `placer.methods`."""

from __future__ import annotations

from importlib.metadata import entry_points

from profiler.methods import active, adaptive, full, random
from profiler.methods.method import METHODS, QUOTA, Method, register
from profiles import InputError

GROUP = "placer.methods"

__all__ = ["METHODS", "QUOTA", "Method", "active", "adaptive", "find_method", "full", "random", "register"]


def find_method(name: str) -> Method:
    """The method of that name; InputError, naming the known ones, when there is none."""
    for point in entry_points(group=GROUP):
        if point.name not in METHODS:
            point.load()
    if name not in METHODS:
        raise InputError.of(
            "--method", f"'{name}' is not a profiling method", hint=f"methods are {', '.join(sorted(METHODS))}"
        )
    return METHODS[name]

"""Profiling methods by name: what `--method NAME` chooses.

A method is one file here that registers a class under the file's name. Another package adds one through an entry point
of the group `placer.methods`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from profiles.registry import Registry

if TYPE_CHECKING:
    from profiler.method import Method

METHODS: Registry[type[Method]] = Registry("profiling method", "profiler.methods", "placer.methods", "--method")


def find_method(name: str) -> Method:
    """The method of that name; InputError, with the nearest name, when there is none."""
    return METHODS.find(name)()


def known_methods() -> str:
    """The name of every method, without importing any, for help texts."""
    return ", ".join(METHODS.file_names())

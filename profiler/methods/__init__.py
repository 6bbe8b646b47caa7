"""Profiling methods by name: what `--method NAME` chooses.

A method is one file here that registers a class under its name. Another package adds one through an entry point of the
group `placer.methods`.
"""

from __future__ import annotations

from profiler.methods.method import QUOTA, Method
from profiles.registry import Registry

__all__ = ["METHODS", "QUOTA", "Method", "find_method"]

METHODS: Registry[type[Method]] = Registry("profiling method", "profiler.methods", "placer.methods", "--method")


def find_method(name: str) -> Method:
    """The method of that name; InputError, with the nearest name, when there is none."""
    return METHODS.find(name)()

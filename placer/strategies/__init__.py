"""Strategies: given the fleet and an arrival, a NIC or none.

A new one is a file here that registers itself, or an entry point of the group `placer.strategies` in another package.
"""

from __future__ import annotations

from importlib import import_module
from importlib.metadata import entry_points

from placer.strategies.strategy import OnlineStrategy, Strategy, register, registered

BUILT_IN = ("monopolization", "greedy", "contention_aware")

for _name in BUILT_IN:
    import_module(f"placer.strategies.{_name}")

__all__ = ["OnlineStrategy", "Strategy", "register", "strategies"]


def strategies() -> dict[str, type[Strategy]]:
    """Every strategy by name: the built-in ones, then those of other packages."""
    for point in entry_points(group="placer.strategies"):
        if point.name not in registered:
            register(point.load())
    return dict(registered)

"""Strategies: given the fleet and an arrival, a NIC or none.

A new one is a file here that registers itself, or an entry point of the group `placer.strategies` in another package.
Read `strategy.py`, then `greedy.py`."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from placer.model.catalogue import Catalogue
from placer.strategies.strategy import STRATEGIES, OnlineStrategy, Strategy, register
from profiles import InputError

__all__ = ["STRATEGIES", "NamedStrategy", "OnlineStrategy", "Strategy", "find_strategy", "register"]

VARIANT = ":"  # between a strategy and its variant: `contention-aware:best-fit`


@dataclass(frozen=True, eq=False)
class NamedStrategy:
    """A strategy as named on the command line, with the arguments of its variant."""

    name: str
    definition: type[Strategy]
    arguments: Mapping[str, Any] = field(default_factory=dict)

    @property
    def needs_predictor(self) -> bool:
        """Whether it decides by a predictor."""
        return self.definition.needs_predictor

    def build(self, catalogue: Catalogue, predictor: str | None) -> Strategy:
        """The strategy for these NICs."""
        strategy = self.definition(catalogue, predictor, **self.arguments)
        strategy.name = self.name
        return strategy


def find_strategy(name: str) -> NamedStrategy:
    """The strategy of that name, which may end in a variant. Raises `InputError` when there is no such strategy, or it
    has no such variant; the hint names those there are."""
    base, _, variant = name.partition(VARIANT)
    definition = STRATEGIES.find(base)
    if not variant and base == name:
        return NamedStrategy(name, definition)
    if variant not in definition.variants:
        known = ", ".join(f"{base}{VARIANT}{variant}" for variant in definition.variants)
        hint = f"one of {known}" if known else f"{base} has no variants"
        raise InputError.of(STRATEGIES.option, f"'{name}' is not a strategy", hint=hint)
    return NamedStrategy(name, definition, definition.variants[variant])

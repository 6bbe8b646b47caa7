"""Strategies that place chains on a rack: from chains, a rack and a time limit to a plan.

Each file registers one function under its own name. Another package adds its own by an entry point of the group
`placer.chain_strategies`. `optimal` searches all plans and proves the best; the others are those that Lemur is compared
with (section 5.1).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol

from profiles.registry import Registry

if TYPE_CHECKING:
    from placer.rack.chain import Chain
    from placer.rack.plan import RackPlan
    from placer.rack.rack import Rack


Notify = Callable[[str], None]
"""Called with messages on progress."""


class ChainStrategy(Protocol):
    """A way to place chains."""

    def __call__(self, chains: Sequence[Chain], rack: Rack, *, time_limit: float, notify: Notify) -> RackPlan:
        """A plan; of status `unknown`, with a note why, where the strategy finds none."""


CHAIN_STRATEGIES: Registry[ChainStrategy] = Registry(
    "strategy for chains",
    room="placer.rack.strategies",
    group="placer.chain_strategies",
    option="--strategy",
    first=("optimal",),
)
"""Every strategy by name."""


def register(name: str) -> Callable[[ChainStrategy], ChainStrategy]:
    """A decorator that makes a strategy known."""
    return CHAIN_STRATEGIES.register(name)

"""Certificates that are no longer as they were written."""

from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st


def altered(draw: Callable[..., Any], claims: Any, names: list[str]) -> Any:
    """A copy in which a number, a name, for which others may stand, or a list was changed somewhere, or nothing."""
    if isinstance(claims, dict) and claims:
        key = draw(st.sampled_from(sorted(claims)))
        return {**claims, key: altered(draw, claims[key], names)}
    if isinstance(claims, list) and claims:
        place = draw(st.integers(0, len(claims) - 1))
        how = draw(st.sampled_from(["inside", "inside", "twice", "without"]))
        changed = {"inside": [altered(draw, claims[place], names)], "twice": [claims[place]] * 2, "without": []}[how]
        return [*claims[:place], *changed, *claims[place + 1 :]]
    if isinstance(claims, int | float) and not isinstance(claims, bool):
        near = [claims * (1 + 1e-7), claims + 1e-9, claims - 1e-9]
        return draw(st.sampled_from([claims + 1, claims - 1, claims / 2, 2 * claims, -claims, *near, 0, None]))
    return draw(st.sampled_from([claims, *names, None, 1, []]))

"""Co-locations that NICs cannot become by what is predicted now, although they could when the table was made."""

from __future__ import annotations

from collections.abc import Iterable, Iterator


class BlockedJoins:
    """Which patterns each NIC must not become, because one of its tenants would violate its SLA there by now.

    Only NICs that a decision came upon are here. What is blocked in a trial is forgotten at its end.
    """

    def __init__(self) -> None:
        self._of_nic: dict[int, dict[int, None]] = {}
        self._by_pattern: dict[int, dict[int, None]] = {}
        self._in_trial: list[tuple[int, int]] | None = None

    def add(self, nic: int, pattern: int) -> None:
        """The NIC of this number must not become this pattern."""
        self._of_nic.setdefault(nic, {})[pattern] = None
        self._by_pattern.setdefault(pattern, {})[nic] = None
        if self._in_trial is not None:
            self._in_trial.append((nic, pattern))

    def of(self, nic: int) -> Iterable[int]:
        """The patterns that a NIC must not become."""
        return self._of_nic.get(nic, ())

    def nics(self, patterns: Iterable[int] | None) -> Iterator[tuple[int, int]]:
        """Number and pattern of NICs that must not become one of these patterns, or any; no more once they may."""
        for pattern in tuple(self._by_pattern) if patterns is None else patterns:
            yield from ((nic, pattern) for nic in tuple(self._by_pattern.get(pattern, ())))

    def remove(self, nic: int, pattern: int) -> None:
        """The NIC may become this pattern."""
        for numbers, key, one in ((self._of_nic, nic, pattern), (self._by_pattern, pattern, nic)):
            del numbers[key][one]
            if not numbers[key]:
                del numbers[key]

    def changed(self, nic: int) -> None:
        """The NIC has other tenants now, for which nothing is known; in a trial, it will have the former ones again."""
        if self._in_trial is None:
            for pattern in tuple(self.of(nic)):
                self.remove(nic, pattern)

    def begin_trial(self) -> None:
        """NICs have other tenants for a while."""
        self._in_trial = []

    def end_trial(self) -> list[int]:
        """All is as it was; returns the NICs that must not become something only since then."""
        made, self._in_trial = self._in_trial or [], None
        for nic, pattern in made:
            self.remove(nic, pattern)
        return list(dict.fromkeys(nic for nic, _ in made))

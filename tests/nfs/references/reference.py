"""What every reference has."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

from tests.nfs.references.nf_run import NfRun
from tests.nfs.references.traffic import Mix, Sent, frames

Bounds = tuple[int, int]
"""Least and most that a counter may be."""


class Reference:
    """A function as its documentation describes it.

    Most references are exact: `take` states the frames that come out for each one. Where a function may choose freely,
    such as a NAT its ports, `judge` is overridden and checks what any valid choice has.
    """

    nf: ClassVar[str] = ""
    variants: ClassVar[tuple[dict[str, str], ...]] = ({},)
    """Settings to compare with; a million packets get the first ones."""
    chain: ClassVar[str] = ""
    """A chain file in place of the function alone, with `{settings}`; the function's counters are the first ones."""

    def __init__(self, settings: dict[str, str], folder: Path) -> None:
        self.settings = settings
        self.folder = folder
        self.counted: Counter[str] = Counter()
        self.prepare()

    @classmethod
    def settings_of(cls, variant: int, folder: Path) -> dict[str, str]:
        """The settings of a variant, with files in a folder."""
        return {key: value.replace("{folder}", str(folder)) for key, value in cls.variants[variant].items()}

    def prepare(self) -> None:
        """Read the settings, write the files that they name."""

    def mix(self) -> Mix:
        """The traffic that the function gets."""
        return Mix()

    def traffic(self, seed: int, n: int, run: NfRun) -> Iterator[Sent]:
        """`n` frames; `run` gives others to the function before, where they depend on what it chooses."""
        return frames(seed, n, self.mix())

    def take(self, sent: Sent) -> tuple[list[bytes], list[bytes]]:
        """The frames that leave because of one, away from where it came from, and back."""
        raise NotImplementedError

    def judge(self, burst: list[Sent], out: list[bytes], back: list[bytes]) -> list[str]:
        """What is wrong with the frames that left outside and inside because of a burst, which has one side."""
        expected: tuple[list[bytes], list[bytes]] = ([], [])
        for sent in burst:
            forward, returned = self.take(sent)
            expected[sent.side].extend(forward)
            expected[1 - sent.side].extend(returned)
        if expected[0] == out and expected[1] == back:
            return []
        return differences("out", expected[0], out) + differences("back", expected[1], back)

    def counters(self) -> dict[str, int | Bounds]:
        """Counters at the end, or the bounds of those that may vary."""
        return dict(self.counted)

    def finish(self) -> list[str]:
        """What is wrong with everything that the function has done, besides packets and counters."""
        return []

    def number(self, key: str, default: int) -> int:
        """A setting."""
        return int(self.settings.get(key, default))

    def seconds(self, key: str, default: float) -> int:
        """A setting in seconds, as microseconds."""
        return int(float(self.settings.get(key, default)) * 1e6)


def differences(end: str, expected: list[bytes], got: list[bytes]) -> list[str]:
    """A line for each frame that is missing or should not be there; the order within a burst is free."""
    missing, surplus = Counter(expected), Counter(got)
    return [f"{end}: missing {frame.hex()}" for frame in (missing - surplus).elements()] + [
        f"{end}: not expected {frame.hex()}" for frame in (surplus - missing).elements()
    ]

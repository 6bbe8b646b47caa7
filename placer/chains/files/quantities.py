"""Rates, times and sizes with their units, as in `1.1 Gbps to 100 Gbps, at most 45 us`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from fractions import Fraction

from placer.chains.chain import Slo
from placer.chains.files.chain_text import TextError
from placer.chains.files.json_twins import LARGEST
from profiles.faults import suggestion

MBPS = {
    "bps": Fraction(1, 10**6),
    "kbps": Fraction(1, 10**3),
    "Mbps": Fraction(1),
    "Gbps": Fraction(10**3),
    "Tbps": Fraction(10**6),
}
"""Units of rates, in Mbps."""
MICROSECONDS = {
    "ns": Fraction(1, 10**3),
    "us": Fraction(1),
    "\N{MICRO SIGN}s": Fraction(1),
    "\N{GREEK SMALL LETTER MU}s": Fraction(1),
    "ms": Fraction(10**3),
    "s": Fraction(10**6),
}
"""Units of times, in us."""
BYTES = {"B": Fraction(1), "byte": Fraction(1), "bytes": Fraction(1)}
LARGEST_PACKET = 65_535
WORD = re.compile(r"[0-9.]+|,|[^\s,0-9.]+")
NUMBER = re.compile(r"[0-9]{1,30}(\.[0-9]{1,30})?")
FORM = "as in 1.1 Gbps to 100 Gbps, at most 45 us, or exactly 2 Gbps"


class _Words:
    """Reads a text word by word."""

    def __init__(self, text: str) -> None:
        self.words = [(found[0], found.start()) for found in WORD.finditer(text)]
        self.end = len(text.rstrip())
        self.number = 0

    @property
    def at(self) -> int:
        return self.words[self.number][1] if self.number < len(self.words) else self.end

    @property
    def next(self) -> str:
        return self.words[self.number][0] if self.number < len(self.words) else ""

    def takes(self, *words: str) -> bool:
        """Whether these words come next; then they are taken."""
        upcoming = [word for word, _ in self.words[self.number : self.number + len(words)]]
        if upcoming != list(words):
            return False
        self.number += len(words)
        return True

    def quantity(self, what: str, units: Mapping[str, Fraction], hint: str) -> Fraction:
        at, text = self.at, self.next
        if not NUMBER.fullmatch(text):
            raise TextError(at, f"the {what} is missing here" if not text else f"'{text}' is no {what}", hint)
        self.number += 1
        unit_at, unit = self.at, self.next
        if unit in ("", ",", "to") or NUMBER.fullmatch(unit):
            raise TextError(unit_at, f"'{text}' has no unit", f"one of {', '.join(units)}")
        if unit not in units:
            raise TextError(unit_at, f"the unit '{unit}' is not known", suggestion(unit, units))
        self.number += 1
        value = Fraction(text) * units[unit]
        if value > LARGEST:
            raise TextError(at, f"'{text} {unit}' is too large")
        return value

    def end_here(self, hint: str) -> None:
        if self.next:
            raise TextError(self.at, f"'{self.next}' does not belong here", hint)


def parsed_slo(text: str) -> Slo:
    """The SLO that a text is.

    Raises
    ------
    TextError
        At what is not understood.
    """
    words = _Words(text)
    if words.takes("exactly"):
        at = words.at
        least = largest = words.quantity("rate", MBPS, FORM)
    else:
        at = words.at
        least = words.quantity("rate", MBPS, FORM)
        if not words.takes("to"):
            raise TextError(words.at, "the largest useful rate is missing", FORM)
        largest = words.quantity("rate", MBPS, FORM)
    latency = None
    if words.takes(",", "at", "most"):
        latency_at = words.at
        latency = words.quantity("latency", MICROSECONDS, FORM)
        if latency == 0:
            raise TextError(latency_at, "a latency is above 0")
    words.end_here(FORM)
    if least > largest:
        raise TextError(at, "the least rate is above the largest", FORM)
    if largest == 0:
        raise TextError(at, "the largest rate is 0")
    return Slo(least, largest, latency)


def parsed_packet_size(text: str) -> int:
    """The size of packets in bytes.

    Raises
    ------
    TextError
        At what is not understood.
    """
    words = _Words(text)
    hint = "as in 1500 B"
    at = words.at
    size = words.quantity("packet size", BYTES, hint)
    words.end_here(hint)
    if size.denominator != 1 or not 1 <= size <= LARGEST_PACKET:
        raise TextError(at, f"a packet has a whole number of bytes from 1 to {LARGEST_PACKET:,}")
    return int(size)

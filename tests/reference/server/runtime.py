"""Runs the text of a chain file on models of NFs: an interpreter of what the compiler writes for servers.

It reads the text, not what the text was made from. An NF is its model, with the settings of the
text and the files that it names.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

from tests.reference.nfs import nf_models
from tests.reference.nfs.headers import read_headers, split_value, word_at
from tests.reference.nfs.model import FunctionModel

OUTER_BYTES = 22  # outer Ethernet and network service header
TYPE_NSH = 0x894F
NSH_HEAD = bytes.fromhex("0fc20203")

Sorter = Callable[[Sequence[str], bytes], int | None]  # the number of the first filter that matches a frame
Target = tuple[Fraction, str]  # a share and where it goes: a function, or `nsh PATH INDEX`


@dataclass
class ChainCounts:
    """Frames by function, and losses by cause."""

    entered: dict[str, int] = field(default_factory=dict)
    sent: dict[str, int] = field(default_factory=dict)
    lost: dict[str, int] = field(default_factory=dict)


class ChainRuntime:
    """A chain file that runs."""

    def __init__(self, text: str, files: Mapping[str, str], sorter: Sorter) -> None:
        self.counts = ChainCounts()
        self.sorter = sorter
        self.functions: dict[str, FunctionModel] = {}
        self.filters: dict[str, tuple[list[str], bool]] = {}
        self.edges: dict[str, list[Target]] = {}
        self.salts: dict[str, int] = {}
        for line in text.splitlines():
            words = line.partition("#")[0].split()
            if words:
                self._read(words, files)

    def _read(self, words: list[str], files: Mapping[str, str]) -> None:
        if words[0] == "core":
            return
        if words[0].endswith(":"):
            name, kind, settings = words[0][:-1], words[1], dict(word.split("=", 1) for word in words[2:])
            if kind == "Match":
                self.filters[name] = settings["filters"].split(";"), settings["drop_unmatched"] == "1"
            else:
                self.functions[name] = nf_models()[kind](settings, files)
            self.counts.entered[name] = self.counts.sent[name] = 0
        elif words[0] == "split":
            self.salts[" ".join(words[1:-1])] = int(words[-1])
        else:
            arrow = words.index("->")
            head = words[arrow + 1 :]
            share = Fraction(head.pop()) if "/" in head[-1] else Fraction(1)
            self.edges.setdefault(" ".join(words[:arrow]), []).append((share, " ".join(head)))

    def receive(self, frame: bytes, time_us: int) -> list[bytes]:
        """The frames that leave because of one that arrives, each with its label."""
        if len(frame) < OUTER_BYTES or word_at(frame, 12) != TYPE_NSH:
            return self._lose("without_nsh")
        word = int.from_bytes(frame[18:OUTER_BYTES], "big")
        entry = f"nsh {word >> 8} {word & 0xFF}"
        if entry not in self.edges:
            return self._lose("unknown_path")
        return self._go(entry, entry, frame[OUTER_BYTES:], time_us)

    def _lose(self, cause: str) -> list[bytes]:
        self.counts.lost[cause] = self.counts.lost.get(cause, 0) + 1
        return []

    def _go(self, gate: str, tail: str, frame: bytes, time_us: int) -> list[bytes]:
        """By an edge of a gate to its end."""
        chosen = self._chosen(self.edges[gate], tail, frame)
        if chosen.startswith("nsh "):
            path, index = map(int, chosen.split()[1:])
            label = NSH_HEAD + (path << 8 | index).to_bytes(4, "big")
            return [frame[:12] + TYPE_NSH.to_bytes(2, "big") + label + frame]
        self.counts.entered[chosen] += 1
        if chosen in self.filters:
            return self._sort(chosen, frame, time_us)
        left: list[bytes] = []
        for made in self.functions[chosen].process(frame, time_us):
            self.counts.sent[chosen] += 1
            left += self._go(chosen, chosen, made, time_us)
        return left

    def _chosen(self, edges: Sequence[Target], tail: str, frame: bytes) -> str:
        """Where the flow of a frame goes."""
        if len(edges) == 1:
            return edges[0][1]
        value = split_value(frame, read_headers(frame), self.salts.get(tail, 0))
        total, sum_ = sum(share for share, _ in edges), Fraction(0)
        for share, target in edges[:-1]:
            sum_ += share
            if value < int(65536 * sum_ / total):
                return target
        return edges[-1][1]

    def _sort(self, name: str, frame: bytes, time_us: int) -> list[bytes]:
        filters, drops = self.filters[name]
        gate = self.sorter(filters, frame)
        if gate is None and drops:
            return []
        self.counts.sent[name] += 1
        numbered = len(filters) + (not drops) > 1
        number = len(filters) if gate is None else gate
        return self._go(f"{name}[{number}]" if numbered else name, name, frame, time_us)

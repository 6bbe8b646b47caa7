"""What every model of a network function (NF) has, and the simplest one, Null."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from enum import StrEnum
from typing import ClassVar

from tests.reference.nfs.headers import INSIDE
from tests.reference.nfs.traffic import Mix, Sent, mixed_frames

Bounds = tuple[int, int]  # least and most that a counter may be
Left = tuple[list[bytes], list[bytes]]  # frames that leave outside, and those that leave inside
FirstRun = Callable[[Iterable[Sent]], Iterable[tuple[int, bytes]]]
"""Gives frames to a function of its own: times, us, and frames that leave outside."""


class Contract(StrEnum):
    """How outputs of an NF in a chain may differ from its model's (`tests/reference/compare.py`)."""

    BYTES = "bytes"  # not at all
    NAT = "nat"  # the external endpoint is any, but one per internal endpoint, and never shared
    RATE = "rate"  # which packets pass depends on when they arrive; the rate is kept
    ESP = "esp"  # sequence numbers and initialization vectors are any; what is encrypted is equal
    DEDUP = "dedup"  # which bytes are replaced by references is any; what is restored is equal


class FunctionModel:
    """A function as its documentation and the RFCs describe it: plain Python that shares no code with what it judges.

    `take` states the frames that leave because of one. Where a function may choose freely, such as a NAT its ports,
    `judge` learns the choice from what came out, and checks what any valid one has. `settings`: those of the function
    in C; others have its defaults. `files`: texts of the files that settings name.
    """

    nf: ClassVar[str] = ""
    variants: ClassVar[tuple[dict[str, str], ...]] = ({},)
    """Settings with which the function in C is compared; `{folder}` is where files are."""
    chain: str = ""
    """A chain file in place of the function alone, with `{settings}`; the function's counters are the first ones."""
    keeps_order: ClassVar[bool] = False
    """Whether frames of one burst leave in their order; some functions take packets of one kind first."""

    unknown: str = "pass"
    arp: str = "pass"
    """What becomes of frames that it does not understand, and of ARP, unless a setting says otherwise."""

    contract: Contract = Contract.BYTES
    looks_at_source: bool = False
    """Whether what it does to a packet may depend on the packet's source, which a NAT before it chose."""
    changes_payload: bool = False
    """Whether it changes a payload that an NF before it encrypted or encoded, and so hides it."""
    opens_payload: bool = False
    """Whether it decrypts payloads: their checksums are wrong where a NAT has seen ciphers only."""

    def __init__(self, settings: Mapping[str, str], files: Mapping[str, str]) -> None:
        self.settings = settings
        self.files = files
        self.counted: Counter[str] = Counter()
        self.prepare()

    @classmethod
    def made_files(cls) -> dict[str, str]:
        """The texts of the files in the folder that `variants` name."""
        return {}

    def prepare(self) -> None:
        """Read settings and files."""

    def mix(self) -> Mix:
        """The traffic that the function gets."""
        return Mix()

    def traffic(self, seed: int, n: int, run: FirstRun) -> Iterator[Sent]:
        """`n` frames; `run` gives others to the function before, where they depend on what it chooses."""
        return mixed_frames(seed, n, self.mix())

    def take(self, sent: Sent) -> Left:
        """The frames that leave because of one, away from where it came from, and back."""
        raise NotImplementedError

    def process(self, frame: bytes, time_us: int) -> list[bytes]:
        """The frames that leave outside because of one that arrives from inside, as in a chain of a rack."""
        return self.take(Sent(time_us, INSIDE, frame))[0]

    def take_burst(self, burst: list[Sent]) -> Left:
        """The frames that leave because of a burst, which has one side."""
        ends: Left = ([], [])
        for sent in burst:
            forward, returned = self.take(sent)
            ends[sent.side].extend(forward)
            ends[1 - sent.side].extend(returned)
        return ends

    def judge(self, burst: list[Sent], out: list[bytes], back: list[bytes]) -> list[str]:
        """What is wrong with the frames that left outside and inside because of a burst."""
        expected = self.take_burst(burst)
        if expected == (out, back):
            return []
        wrong = differences("out", expected[0], out) + differences("back", expected[1], back)
        return wrong or ["another order"] * self.keeps_order

    def passes(self, kind: str) -> bool:
        """Count a frame that is not understood, or malformed; whether it passes."""
        if kind == "malformed":
            self.counted["malformed"] += 1
            return False
        known = kind == "arp"
        chosen = self.settings.get("arp", self.arp) if known else self.settings.get("unknown", self.unknown)
        self.counted["other" if chosen == "pass" else "unknown"] += 1
        return chosen == "pass"

    def drop(self, counter: str) -> Left:
        """Count a frame that is dropped."""
        self.counted[counter] += 1
        return [], []

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

    def lines_of(self, key: str) -> list[str]:
        """The lines of the file that a setting names, without comments."""
        lines = self.files[self.settings[key]].splitlines()
        return [line for line in lines if line and not line.startswith("#")]


def differences(end: str, expected: list[bytes], got: list[bytes]) -> list[str]:
    """A line for each frame that is missing or should not be there; the order within a burst is free."""
    missing, surplus = Counter(expected), Counter(got)
    return [f"{end}: missing {frame.hex()}" for frame in (missing - surplus).elements()] + [
        f"{end}: not expected {frame.hex()}" for frame in (surplus - missing).elements()
    ]


class NullModel(FunctionModel):
    """Every frame leaves as it came."""

    nf = "Null"

    def take(self, sent: Sent) -> Left:
        self.counted["passed"] += 1
        return [sent.frame], []

"""Streams of TCP as a function in the middle follows them, and frames of streams, cut, repeated and reordered."""

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from enum import Enum
from typing import ClassVar

from tests.reference.nfs.headers import ACK, FIN, INSIDE, OUTSIDE, RST, SYN, TCP, URG
from tests.reference.nfs.traffic import NUMBERS, FlowEnds, Mix, Sent, make_flows, odd_of, plain, random_payload


class Taken(Enum):
    """What becomes of a segment."""

    PASSED = "passed"
    BLOCKED = "blocked"
    DIFFERING = "differing"
    OUTSIDE = "outside"
    OVERLONG = "overlong"


@dataclass
class Stream:
    """One direction of a connection: what is not read yet, what was read before if there is room, and parts ahead."""

    ROOM: ClassVar[int] = 8192
    PARTS: ClassVar[int] = 3
    FOREIGN_KEPT: ClassVar[int] = 4096
    WAIT_US: ClassVar[int] = 10_000_000
    SYN_WAIT_US: ClassVar[int] = 60_000_000

    first: int  # sequence number of the first byte of `text`
    last_us: int
    begun: bool = False
    kept: int = 0  # bytes that were read and are not forgotten
    text: bytes = b""
    read: int = 0  # bytes of it
    hole: int = 0  # bytes that are left out ...
    hole_at: int = 0  # ... before this byte of it
    ahead: dict[int, bytes] = field(default_factory=dict)  # by offset
    foreign: bool = False  # bytes behind `hole_at` are not kept once they are read
    stopped: bool = False
    counted: bool = False
    mode: str = ""

    def __post_init__(self) -> None:
        self.first %= NUMBERS
        self.origin = self.first

    @property
    def waits(self) -> bool:
        """Whether bytes are missing before others, or not read yet."""
        return self.read < len(self.text) or bool(self.ahead)

    def goes_on(self, now_us: int) -> bool:
        """Whether its last segment that was sent on is not long ago."""
        return now_us - self.last_us < self.SYN_WAIT_US

    def ignores(self, sequence: int, now_us: int) -> bool:
        """Whether its receiver may ignore a SYN in front of a byte, as it does while a connection is open."""
        far = (sequence - self.first) % NUMBERS
        near = min(far, NUMBERS - far) <= 2 * self.ROOM
        return sequence != self.origin and (near or self.goes_on(now_us))

    @property
    def least(self) -> int:
        """The first byte that may be forgotten once it is read."""
        return self.hole_at if self.foreign else self.kept

    @property
    def is_foreign(self) -> bool:
        """Whether nothing but its first bytes is kept."""
        return self.foreign and not self.waits and len(self.text) == self.hole_at

    def drop(self, begin: int, n: int) -> None:
        """Take bytes out of the text, so that those behind have smaller offsets."""
        self.text = self.text[:begin] + self.text[begin + n :]
        self.read -= n
        self.ahead = {at - n: part for at, part in self.ahead.items()}

    def begin_later(self, n: int) -> None:
        self.first = (self.first + n) % NUMBERS
        if (self.first - self.origin) % NUMBERS > 1 << 30:
            self.origin = (self.first - (1 << 30)) % NUMBERS

    def forget(self) -> None:
        """Forget what was read and is not kept."""
        gone = self.read - self.least
        if self.foreign:
            self.drop(self.hole_at, gone)
            self.hole += gone
            if self.hole > 1 << 30:
                self.forget_first()
            return
        self.drop(0, gone)
        if gone > self.hole_at:
            self.begin_later(gone + self.hole)
            self.hole = self.hole_at = 0
        else:
            self.begin_later(gone)
            self.hole_at -= gone

    def forget_first(self) -> None:
        """Forget the first bytes and half of those that were left out."""
        half = self.hole // 2
        self.drop(0, self.hole_at)
        self.begin_later(self.hole_at + half)
        self.hole, self.hole_at = self.hole - half, 0

    def set_foreign(self) -> None:
        """What was read is not what its reader reads: only the first bytes are kept from now on."""
        self.read = len(self.text)
        if not self.foreign and self.hole:
            self.begin_later(self.hole_at + self.hole)
            self.drop(0, self.hole_at)
            self.hole = 0
        if not self.foreign:
            self.hole_at = min(len(self.text), self.FOREIGN_KEPT)
        self.foreign = True
        self.forget()

    def move(self, sequence: int) -> None:
        """Go on at a number behind the first bytes."""
        self.hole = (sequence - self.first - self.hole_at) % NUMBERS
        self.text, self.read, self.ahead = self.text[: self.hole_at], self.hole_at, {}

    def has_passed(self, sequence: int, data: bytes) -> bool:
        """Whether some bytes were sent on and are not kept."""
        at = (sequence - self.first) % NUMBERS
        return self.foreign and at < self.hole_at + self.hole and at + len(data) > self.hole_at

    def pass_over(self, sequence: int, data: bytes) -> bool:
        """Go behind a segment that goes on where a foreign stream is."""
        goes_on = (sequence - self.first) % NUMBERS == len(self.text) + self.hole
        if not self.is_foreign or self.hole > 1 << 30 or not goes_on:
            return False
        self.hole += len(data)
        return True

    def join(self) -> None:
        """Append parts that are ahead no longer."""
        for at in sorted(self.ahead):
            if at > len(self.text):
                return
            self.text += self.ahead.pop(at)[len(self.text) - at :]

    def leave_out(self, n: int) -> None:
        """Go behind bytes that nobody reads, also those that have not come."""
        here = min(n, len(self.text) - self.read)
        self.read += here
        if n == here:
            return
        if self.hole or self.foreign:
            self.forget()
        left_out = n - here
        self.hole, self.hole_at = left_out + (self.hole if self.foreign else 0), len(self.text)
        behind = self.hole_at + left_out
        parts = {max(at, behind): part[max(behind - at, 0) :] for at, part in sorted(self.ahead.items())}
        self.ahead = {at - left_out: part for at, part in parts.items() if part}
        self.join()

    def note_ahead(self, at: int, data: bytes) -> Taken | None:
        """Keep bytes that came ahead; None if there is room."""
        known = {at + i: byte for at, part in self.ahead.items() for i, byte in enumerate(part)}
        if any(known.get(at + i, byte) != byte for i, byte in enumerate(data)):
            return Taken.DIFFERING
        known |= {at + i: byte for i, byte in enumerate(data)}
        parts: dict[int, bytearray] = {}
        begin = -1
        for place in sorted(known):
            if begin < 0 or place != begin + len(parts[begin]):
                begin = place
                parts[begin] = bytearray()
            parts[begin].append(known[place])
        if len(parts) > self.PARTS:
            return Taken.OUTSIDE
        self.ahead = {place: bytes(part) for place, part in parts.items()}
        return None

    def take(self, sequence: int, data: bytes, read: Callable[["Stream"], str]) -> Taken:
        """Take a segment; `read` reads what has come without a gap."""
        while data:
            far = (sequence - self.first) % NUMBERS
            if far >= NUMBERS // 2:
                return Taken.OUTSIDE
            if self.hole_at <= far < self.hole_at + self.hole:
                n = min(len(data), self.hole_at + self.hole - far)
                sequence, data = sequence + n, data[n:]
                continue
            until = self.hole_at if far < self.hole_at else len(self.text)
            at = far - (0 if far < self.hole_at else self.hole)
            fits = at <= len(self.text) or at + len(data) <= self.ROOM + self.read - self.least
            if at + len(data) > self.ROOM and self.least < self.read <= at and fits:
                self.forget()
                continue
            if at > len(self.text) and at + len(data) > self.ROOM:
                return Taken.OUTSIDE
            if at > len(self.text):
                return self.note_ahead(at, data) or Taken.PASSED
            taken = self.repeat(at, data, until) if at < len(self.text) else self.go_on(data, read)
            if isinstance(taken, Taken):
                return taken
            sequence, data = sequence + taken, data[taken:]
        return Taken.PASSED

    def before(self, at: int) -> bytes:
        """What is known without a gap right before a place."""
        if at <= len(self.text):
            return self.text[:at]
        return b"".join(part[: at - begin] for begin, part in self.ahead.items() if begin < at <= begin + len(part))

    def behind(self, at: int) -> bytes:
        """What is known without a gap from a place on."""
        if at < len(self.text):
            return self.text[at:]
        return b"".join(part[at - begin :] for begin, part in self.ahead.items() if begin <= at < begin + len(part))

    def repeat(self, at: int, data: bytes, until: int) -> int | Taken:
        """Compare bytes with those that came before; how many."""
        n = min(len(data), until - at)
        return n if self.text[at : at + n] == data[:n] else Taken.DIFFERING

    def go_on(self, data: bytes, read: Callable[["Stream"], str]) -> int | Taken:
        """Append bytes and read them; how many."""
        n = min(len(data), min(self.ahead, default=self.ROOM) - len(self.text))
        if n == 0:
            return Taken.OVERLONG
        self.text += data[:n]
        self.join()
        ended = read(self)
        return n if ended == "waits" else Taken(ended)


@dataclass
class Speaker:
    """A flow, and where its sender is."""

    flow: FlowEnds
    side: int
    sequence: int
    ready: list[tuple[int, bytes, int]] = field(default_factory=list)  # sequence, bytes, flags
    sent: list[tuple[int, bytes, int]] = field(default_factory=list)

    def say(self, rng: random.Random, text: bytes) -> None:
        """Cut a text into segments, mostly in their order."""
        longest = rng.choice((20, 200, 1460, 1460))
        pieces = []
        while text:
            n = rng.randrange(1, longest + 1) if rng.random() < 0.7 else longest
            pieces.append((self.sequence, text[:n], ACK))
            self.sequence, text = (self.sequence + len(text[:n])) % NUMBERS, text[n:]
        if rng.random() < 0.3 and len(pieces) > 1:
            at = rng.randrange(len(pieces) - 1)
            pieces[at : at + rng.choice((2, 3))] = pieces[at : at + rng.choice((2, 3))][::-1]
        self.ready += pieces

    def segment(self, rng: random.Random, make_text: Callable[[random.Random], bytes]) -> tuple[int, bytes, int]:
        """The next one, now and then an earlier one, otherwise, or one from elsewhere."""
        chance = rng.random()
        if chance < 0.06 and self.sent:
            sequence, data, flags = rng.choice(self.sent)
            cut = rng.randrange(len(data) + 1)
            if rng.random() < 0.2 and data:
                data = data[:-1] + bytes([data[-1] ^ 1])
            return ((sequence + cut) % NUMBERS, data[cut:], flags) if rng.random() < 0.3 else (sequence, data, flags)
        if chance < 0.07:
            return rng.getrandbits(32), make_text(rng), ACK
        if chance < 0.08:  # bytes that no host takes, or some do not
            return self.sequence, make_text(rng), rng.choice((0, FIN, RST, RST | ACK, ACK | URG))
        if not self.ready:
            if rng.random() < 0.1:
                self.sequence = (rng.getrandbits(32) if rng.random() < 0.8 else NUMBERS - rng.randrange(1, 900)) + 1
                early = make_text(rng) if rng.random() < 0.1 else b""
                self.sequence %= NUMBERS
                begin = (self.sequence - 1) % NUMBERS
                self.sequence = (self.sequence + len(early)) % NUMBERS
                return begin, early, SYN
            self.say(rng, b"".join(make_text(rng) for _ in range(rng.choice((1, 1, 2, 4)))))
            if not self.ready:
                return self.sequence, b"", ACK
        made = self.ready.pop(0)
        self.sent = [*self.sent[-3:], made]
        return made


def stream_frames(seed: int, n: int, mix: Mix, pauses: bool = True) -> Iterator[Sent]:
    """`n` frames of streams whose texts are payloads of the mix, and of other flows as they come.

    With `pauses` all are silent now and then, so long that other connections of their ports may follow.
    """
    rng = random.Random(seed)
    speakers = [Speaker(flow, side, rng.getrandbits(32)) for flow in make_flows(rng, mix) for side in (INSIDE, OUTSIDE)]
    now_us, done, number = 1_000_000, 0, 0
    make_payload = mix.payload or random_payload
    share = 0.01 if pauses else 0.0
    while done < n:
        now_us += 1 + int(rng.expovariate(1 / mix.gap_us)) + (rng.random() < share) * Stream.SYN_WAIT_US
        chosen = [speakers[int(len(speakers) * rng.random() ** 2)] for _ in range(rng.randrange(1, mix.burst + 1))]
        side = chosen[0].side
        burst: list[bytes] = []
        for speaker in chosen:
            number += 1
            if speaker.side != side:
                continue
            if speaker.flow.protocol != TCP:
                burst.append(plain(rng, speaker.flow, side == INSIDE, make_payload(rng), mix, number))
                continue
            sequence, data, flags = speaker.segment(rng, make_payload)
            frame = plain(rng, speaker.flow, side == INSIDE, data, Mix(flags=(flags,)), number)
            frame = with_sequence(frame, sequence)
            burst.extend(odd_of(rng, frame, mix) if rng.random() < mix.odd / 4 else [frame])
        for frame in burst[: min(32, n - done)]:
            yield Sent(now_us, side, frame)
        done += len(burst[: min(32, n - done)])


def with_sequence(frame: bytes, sequence: int) -> bytes:
    """A plain TCP segment with another sequence number, whose checksum is not renewed: no filter looks at it."""
    at = (54 if frame[14] >> 4 == 6 else 34) + 4
    return frame[:at] + sequence.to_bytes(4, "big") + frame[at + 4 :]

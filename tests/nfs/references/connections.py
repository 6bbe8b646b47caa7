"""Traffic of TCP connections that mostly open and close as RFC 9293 has it, mixed with other frames."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass

from tests.nfs.references.headers import ACK, FIN, INSIDE, OUTSIDE, RST, SYN, TCP
from tests.nfs.references.traffic import Flow, Mix, Sent, make_flows, odd_of, plain, random_payload

SCRIPTS = (
    ((0, SYN), (1, SYN | ACK), (0, ACK), (1, ACK), (0, FIN | ACK), (1, ACK), (1, FIN | ACK), (0, ACK)),
    ((0, SYN), (0, SYN), (1, SYN | ACK), (0, ACK), (1, FIN | ACK), (0, FIN | ACK), (1, ACK), (0, SYN)),
    ((0, SYN), (1, SYN | ACK), (0, ACK), (0, ACK), (1, ACK), (0, RST), (0, SYN), (1, RST | ACK)),
    ((1, SYN), (0, SYN), (1, SYN | ACK), (0, SYN | ACK), (1, ACK), (0, ACK), (1, FIN | ACK), (0, ACK)),
    ((0, SYN), (1, ACK), (0, RST), (0, SYN), (1, SYN | ACK), (0, FIN | ACK), (1, FIN | ACK), (0, ACK)),
)
"""Sides and flags of a connection's segments, in order."""


@dataclass(slots=True)
class Dialogue:
    """How far a flow is in its script."""

    flow: Flow
    script: tuple[tuple[int, int], ...]
    at: int = 0

    def step(self, side: int, rng: random.Random) -> int | None:
        """The flags of the next segment from a side; None if the other one is to send."""
        if rng.random() < 0.05:
            return rng.choice((SYN, SYN | ACK, ACK, FIN | ACK, RST, 0, SYN | FIN, FIN))
        if self.script[self.at][0] != side:
            return None
        flags = self.script[self.at][1]
        self.at = (self.at + 1) % len(self.script)
        return flags


def connections(seed: int, n: int, mix: Mix) -> Iterator[Sent]:
    """`n` frames of connections, and of other flows as they come."""
    rng = random.Random(seed)
    dialogues = [Dialogue(flow, rng.choice(SCRIPTS)) for flow in make_flows(rng, mix)]
    by_flags = {flags: Mix(flags=(flags,)) for flags in range(32)}
    now_us, done, number = 1_000_000, 0, 0
    while done < n:
        now_us += 1 + int(rng.expovariate(1 / mix.gap_us))
        side = OUTSIDE if rng.random() < 0.5 else INSIDE
        burst: list[bytes] = []
        for _ in range(rng.randrange(1, mix.burst + 1)):
            dialogue = dialogues[int(len(dialogues) * rng.random() ** 2)]
            tcp = dialogue.flow.protocol == TCP
            flags = dialogue.step(side, rng) if tcp else 0
            if flags is None:
                continue
            number += 1
            frame = plain(rng, dialogue.flow, side == INSIDE, random_payload(rng), by_flags[flags], number)
            burst.extend(odd_of(rng, frame, mix) if rng.random() < mix.odd else [frame])
        for frame in burst[: min(32, n - done)]:
            yield Sent(now_us, side, frame)
        done += len(burst[: min(32, n - done)])

"""How many packets took each branch, as far as it follows from counters of NFs.

What an NF has sent is what its branches took, and what has entered an NF came by the branches that lead to it. Where
such a sum has one unknown part, the part follows; and then maybe others. Devices count the branches that are left, such
as two to the same NF; an OpenFlow switch counts all.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

WAY_SIGN = ">"  # in the name of a counter, between its NF and the number of the way behind it
LOST_OUTSIDE = frozenset(("malformed", "forged", "too_many_tags", "unclassified", "unmatched", "rate_limit"))
"""Why packets are dropped, other than by NFs, without getting lost between two of them."""


@dataclass(frozen=True)
class CountedWay:
    """A way from one NF to the next: its match, empty without one, and its packets; None where they are not known."""

    nf: str
    to: str
    match: str
    packets: int | None = None


def open_ways(ways: Sequence[CountedWay]) -> list[int]:
    """The places of ways whose packets may not follow from counters of NFs: devices have to count them."""
    known = count_ways(ways, Counter(), Counter(), {"unmatched": 1})
    return [at for at, packets in enumerate(known) if packets is None]


def count_ways(
    ways: Sequence[CountedWay], entered: Mapping[str, int], sent: Mapping[str, int], dropped: Mapping[str, int]
) -> list[int | None]:
    """The packets of each way, those included that are known before.

    `entered`, `sent`: by NF; `dropped`: by reason, outside of NFs.
    """
    found = [way.packets for way in ways]
    if not {reason for reason, count in dropped.items() if count} <= LOST_OUTSIDE:
        return found
    sums: list[tuple[list[int], int]] = []
    for name in dict.fromkeys(way.nf for way in ways):
        of = [at for at, way in enumerate(ways) if way.nf == name]
        if not dropped.get("unmatched") or any(not ways[at].match for at in of):
            sums.append((of, sent[name]))
    sums += [
        ([at for at, way in enumerate(ways) if way.to == name], entered[name])
        for name in dict.fromkeys(way.to for way in ways)
    ]
    for _ in ways:
        for parts, total in sums:
            unknown = [at for at in parts if found[at] is None]
            if len(unknown) == 1:
                found[unknown[0]] = total - sum(found[at] or 0 for at in parts)
    return found

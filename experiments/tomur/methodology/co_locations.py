"""Which NFs run together, and with which traffic (Tomur, section 7.2)."""

from collections.abc import Sequence

import numpy as np

from experiments.tomur.methodology.simulated_card import DEFAULT_TRAFFIC
from profiles import TrafficProfile, Workload

MOST_OTHERS = 3  # every NF takes two of the eight cores of a BlueField-2

NINE_TRAFFICS = tuple(
    TrafficProfile(flows, packet_size, mtbr)
    for flows, by_size in (
        (1000.0, ((256.0, 1000.0), (750.0, 600.0), (1500.0, 100.0))),
        (16000.0, ((256.0, 100.0), (750.0, 1000.0), (1500.0, 600.0))),
        (200000.0, ((256.0, 600.0), (750.0, 100.0), (1500.0, 1000.0))),
    )
    for packet_size, mtbr in by_size
)
"""The default and eight others: three flow counts by three packet sizes; every match rate occurs three times."""


def co_locations_of(
    nf: str,
    count: int,
    rng: np.random.Generator,
    *,
    others: Sequence[str],
    traffics: Sequence[TrafficProfile] = (DEFAULT_TRAFFIC,),
) -> list[list[Workload]]:
    """`count` co-locations: `nf` first, then one to three different `others`, each with one of `traffics`."""
    candidates = [name for name in others if name != nf]

    def traffic() -> TrafficProfile:
        return traffics[int(rng.integers(len(traffics)))]

    return [
        [
            # the NF itself gets the traffic profiles in turn, so that few co-locations cover all of them
            Workload(nf, traffics[number % len(traffics)]),
            *(
                Workload(str(name), traffic())
                for name in rng.choice(candidates, rng.integers(1, MOST_OTHERS + 1), replace=False)
            ),
        ]
        for number in range(count)
    ]


def random_traffics(
    count: int, rng: np.random.Generator, *, vary: Sequence[str] = ("flows", "packet_size", "mtbr")
) -> list[TrafficProfile]:
    """Traffic drawn uniformly: 1 to 500K flows, 64 to 1500 B, 0 to 1100 matches/MB; what is not varied is default."""
    ranges = {"flows": (1.0, 500000.0), "packet_size": (64.0, 1500.0), "mtbr": (0.0, 1100.0)}
    drawn = {name: np.round(rng.uniform(*ranges[name], size=count)).tolist() for name in vary}
    return [
        TrafficProfile.from_mapping(DEFAULT_TRAFFIC.as_dict() | {name: values[row] for name, values in drawn.items()})
        for row in range(count)
    ]

"""Which NFs a new plan moves to another device than the old one."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from placer.rack.chain import FACTOR_MARK, Chain
from placer.rack.layout_arrays import MOST_LAYOUTS
from placer.rack.plan import SWITCH_SITE, RackPlan
from placer.rack.rack import Rack
from profiles import InputError
from profiles.arrays import Ints

NEW_SITE = -2  # in place of a site: the NF has no place yet, and any place is no move
GONE_SITE = -3  # in place of a site: the device of the NF is gone, and any place is a move
SWITCH_NAME = "switch"


@dataclass(frozen=True)
class PlacedNf:
    """Where an NF was, by the name of the device, and what it was: another kind of NF is not the same."""

    nf: str
    on: str


OldPlaces = Mapping[str, Mapping[str, PlacedNf]]  # by the name of the chain and the id of the NF


@dataclass(frozen=True)
class NfMove:
    """An NF of a chain that stays changes its device."""

    chain: str
    nf: str
    source: str
    target: str


def find_kept_sites(chain: Chain, rack: Rack, old: OldPlaces) -> tuple[int, ...]:
    """Per NF the index of the device where it was, or SWITCH, NEW or GONE."""
    sites = {device.name: number for number, device in enumerate(rack.devices)} | {SWITCH_NAME: SWITCH_SITE}
    places = old.get(chain.name, {})

    def site(nf_id: str, kind: str) -> int:
        place = places.get(nf_id)
        return NEW_SITE if place is None or place.nf != _known(kind) else sites.get(place.on, GONE_SITE)

    return tuple(site(nf.id, nf.nf) for nf in chain.nfs)


def _known(kind: str) -> str:
    """A kind of NF without the factors by which its cycles grow."""
    return kind.partition(FACTOR_MARK)[0]


def moves_of(sites: Ints, kept: Sequence[int]) -> Ints:
    """Per layout how many NFs it moves.

    `sites`: shape (layouts, NFs). `kept`: per NF, as `find_kept_sites` returns them.
    """
    old = np.array(kept, dtype=np.int64)
    return np.asarray(((sites != old) & (old != NEW_SITE)).sum(axis=1), dtype=np.int64)


def sites_within(chain: Chain, possible: Sequence[Sequence[int]], kept: Sequence[int], most: int) -> Ints:
    """All assignments of sites that move at most so many NFs; shape (layouts, NFs).

    `possible`: per NF the sites that it may take. Raises InputError when there are more than MOST_LAYOUTS.
    """
    rows, moved = np.empty((1, 0), dtype=np.int64), np.zeros(1, dtype=np.int64)
    for sites, old in zip(possible, kept, strict=True):
        each = np.array(sites, dtype=np.int64)
        rows = np.hstack([np.repeat(rows, len(each), axis=0), np.tile(each, len(rows))[:, None]])
        moved = np.repeat(moved, len(each)) + ((rows[:, -1] != old) & (old != NEW_SITE))
        rows, moved = rows[moved <= most], moved[moved <= most]
        if len(rows) > MOST_LAYOUTS:
            raise InputError.of(chain.name, f"has more than {MOST_LAYOUTS:,} layouts with at most {most} moves")
    return rows


def list_moves(plan: RackPlan, old: OldPlaces) -> Iterator[NfMove]:
    for chain in plan.chains:
        places = old.get(chain.chain.name, {})
        for at, nf in enumerate(chain.chain.nfs):
            place = places.get(nf.id)
            if place is not None and place.nf == _known(nf.nf) and place.on != chain.site_name(at):
                yield NfMove(chain.chain.name, nf.id, place.on, chain.site_name(at))

"""The seam of `nfs/`: which rules a kind of NF adds to its table."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from placer.metacompiler.instances import NfInstance
from placer.metacompiler.openflow.rules import Actions, Match
from profiles.registry import Registry


@dataclass(frozen=True)
class NfRule:
    """A rule of an NF, among packets that are in it.

    Parameters
    ----------
    actions
        Done to the packet before it goes on; None: it is dropped.
    """

    priority: int
    match: Match
    actions: Actions | None = ()


NfRules = Callable[[NfInstance], Sequence[NfRule]]

OPENFLOW_NFS: Registry[NfRules] = Registry(
    "kind of NF on an OpenFlow switch", "placer.metacompiler.openflow.nfs", "placer.openflow_nfs", "nf"
)

"""What chains share: limits and their prices, and a proof as JSON; of single servers, or of equal ones together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from placer.chains.chain import Chain
from placer.chains.layouts import TOLERANCE
from placer.chains.proofs.prices import PricedWays
from placer.chains.rack import Rack
from placer.chains.stages.block_stages import TableId

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
Document = dict[str, object]

EMPTY = -1e-11
"""Prices without gains whose bound is below prove that there is no plan; the limits are worth 1."""


@dataclass(frozen=True)
class BoundProof:
    """A proof.

    Parameters
    ----------
    bound
        What it proves of the marginal throughput, Mbps; None where it proves that there is no plan.
    document
        As JSON (docs/formats.md).
    """

    bound: float | None
    document: Document


class SharedLimits:
    """What is shared, in the order of limits: cores of devices, NICs in and out, blocks.

    Parameters
    ----------
    rack
        With one server of each kind, or with all.
    sizes
        How many servers each of them stands for; shape (servers,).
    """

    def __init__(self, rack: Rack, sizes: Ints) -> None:
        self.rack = rack
        cores = [device.cores * sizes[device.server] for device in rack.devices]
        nics = [
            float(server.nic_mbps) * (1 + TOLERANCE) * size
            for server, size in zip(rack.servers, sizes, strict=True)
            for _ in ("in", "out")
        ]
        stages = rack.switch.usable_stages
        self.bounded = stages is not None
        blocks = [] if stages is None else [stages * rack.switch.blocks_per_stage]
        self.limits = np.array([*cores, *nics, *blocks], dtype=np.float64)

    def priced(
        self,
        number: int,
        least: float,
        rate: Floats,
        cores: Ints,
        shares: Floats,
        blocks: Ints,
        tables: Bools,
    ) -> PricedWays:
        """Ways of chains, with all of them in the program from the start.

        Parameters
        ----------
        number, least
            Of chains, and their least rate, Mbps.
        rate, cores, shares, blocks, tables
            Of each way; rows are ways.
        """
        none = np.zeros((len(rate), int(self.bounded)))
        needs: Floats = np.hstack([cores, np.zeros_like(shares), none + blocks[:, None]])
        per_mbps: Floats = np.hstack([np.zeros(cores.shape), shares, none])
        return PricedWays(number, least, np.maximum(rate, least), needs, per_mbps, tables, list(range(len(rate))))

    def written(self, prices: Floats, *, gain: bool) -> Document:
        """Prices as JSON; those of 0 are left out."""
        devices, servers = [one.name for one in self.rack.devices], [one.name for one in self.rack.servers]
        ends = np.cumsum([len(devices), 2 * len(servers), int(self.bounded)])
        cores, nics, blocks, cuts = np.split(prices, ends)
        parts: Document = {
            "gain": int(gain),
            "cores": _named(devices, cores),
            "nic_in": _named(servers, nics[::2]),
            "nic_out": _named(servers, nics[1::2]),
            "blocks": float(blocks.sum()),
            "cuts": _named([str(number) for number in range(len(cuts))], cuts),
        }
        return {key: value for key, value in parts.items() if key == "gain" or value}


def _named(names: Sequence[str], prices: Floats) -> dict[str, float]:
    return {name: float(price) for name, price in zip(names, prices, strict=True) if price}


def proof_document(
    servers: str, cuts: Sequence[frozenset[TableId]], tree: list[Document], chains: Sequence[Chain]
) -> Document:
    written = [[[chains[chain].name, chains[chain].nfs[nf].id] for chain, nf in sorted(cut)] for cut in cuts]
    return {"servers": servers, "cuts": written, "tree": tree}

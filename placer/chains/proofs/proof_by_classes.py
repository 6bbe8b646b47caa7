"""A proof of a bound from one set of prices, where servers that differ only in their names count as one machine."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from placer.chains.chain import Chain
from placer.chains.layouts import merged_servers
from placer.chains.proofs.prices import PriceProgram
from placer.chains.proofs.shared_limits import EMPTY, BoundProof, SharedLimits, proof_document
from placer.chains.rack import Rack
from placer.chains.search.fleet_bound import classes_of
from placer.chains.search.split_options import split_options


def proof_by_classes(chains: Sequence[Chain], rack: Rack, enough: float | None) -> BoundProof:
    """A proof from one set of prices, where equal servers count as one machine.

    Parameters
    ----------
    enough
        Mbps; a bound below is not looked for. None: that there is no plan is to be proven.

    Raises
    ------
    ArithmeticError
        When the solver gives up.
    """
    one_each, sizes = merged_servers(rack)
    machines = SharedLimits(one_each, sizes)
    classes = classes_of(chains)
    most = machines.limits[: len(one_each.devices)].astype(np.int64)
    ways = []
    for numbers in classes:
        uses = split_options(chains[numbers[0]], one_each, most)
        least = float(chains[numbers[0]].slo.t_min_mbps)
        tables = np.zeros((len(uses), 0), dtype=bool)
        ways.append(machines.priced(len(numbers), least, uses.rate, uses.cores, uses.nic_shares, uses.blocks, tables))
    if any(len(one) == 0 for one in ways):
        return BoundProof(None, proof_document("together", [], [{"prices": {"gain": 0}}], chains))
    program = PriceProgram(ways, machines.limits)
    everything = [np.ones(len(one), dtype=bool) for one in ways]
    if enough is None:
        priced = program.best(everything, gain=False, enough=EMPTY)
        if priced.bound < EMPTY:
            leaf = machines.written(priced.prices, gain=False)
            return BoundProof(None, proof_document("together", [], [{"prices": leaf}], chains))
    priced = program.best(everything, gain=True, enough=-np.inf if enough is None else enough)
    leaf = machines.written(priced.prices, gain=True)
    return BoundProof(priced.bound, proof_document("together", [], [{"prices": leaf}], chains))

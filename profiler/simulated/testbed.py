"""A simulated SmartNIC: what packets need of cores, caches, memory and accelerators, and how long they wait for it."""

from __future__ import annotations

from collections.abc import Sequence

from profiler.simulated.account import Account, accounts
from profiler.simulated.benches import BENCHES
from profiler.simulated.card import BLUEFIELD_2, Card
from profiler.simulated.demand import nf_demand
from profiler.simulated.machine import PreparedLoad, SimulatedMachine, bench_text, nf_text
from profiler.simulated.nfs import NFS, NfSpec
from profiles import (
    BenchDescription,
    BenchLoad,
    Load,
    NfDescription,
    NicModel,
    TestbedDescription,
    Workload,
)

ATTRIBUTES = {"flows": (1.0, 500000.0), "packet_size": (64.0, 1500.0), "mtbr": (0.0, 1100.0)}
DEFAULT_TRAFFIC = {"flows": 16000.0, "packet_size": 1500.0, "mtbr": 600.0}


class SimulatedTestbed(SimulatedMachine):
    """Runs NFs and benches on a simulated card.

    Parameters
    ----------
    seed
        Of the noise of runs without a seed of their own. Repeats of such a run differ.
    card
        The simulated card.
    nfs
        The NFs that it can run.
    """

    def __init__(self, *, seed: int = 0, card: Card = BLUEFIELD_2, nfs: Sequence[NfSpec] = NFS) -> None:
        super().__init__(seed, card, _describe(card, nfs))
        self._nfs = {nf.name: nf for nf in nfs}

    def account(self, co_locations: Sequence[Sequence[Load]]) -> list[list[Account]]:
        """Where each load of each co-location spends its time, without noise; loads in the order of the request.

        Raises
        ------
        RunRefused
            As `run_many`.
        """
        accepted = [self._accepted(loads) for loads in co_locations]
        return accounts([[part for load in loads for part in load.parts] for loads in accepted], self._card)

    def _prepare(self, load: Load) -> PreparedLoad:
        if isinstance(load, BenchLoad):
            bench = next(spec for spec in BENCHES if spec.name == load.name)
            return PreparedLoad(bench_text(load), (bench.demand(dict(load.parameters), self._card),), 1)
        assert isinstance(load, Workload)  # chains and parameters are not described, so they are refused
        spec = self._nfs[load.nf]
        return PreparedLoad(nf_text(load), (nf_demand(spec, load.traffic, self._card),), spec.cores)


def _describe(card: Card, nfs: Sequence[NfSpec]) -> TestbedDescription:
    return TestbedDescription(
        name=f"simulated-{card.model}",
        simulated=True,
        nic=NicModel(model=card.model, cores=card.cores, llc_bytes=card.llc_bytes, accelerators=tuple(card.engines)),
        attributes=ATTRIBUTES,
        default_traffic=DEFAULT_TRAFFIC,
        nfs=tuple(
            NfDescription(name=nf.name, cores=nf.cores, accelerators=tuple(name for name, _ in nf.queues)) for nf in nfs
        ),
        benches=tuple(
            BenchDescription(name=bench.name, cores=1, parameters=dict(bench.parameters)) for bench in BENCHES
        ),
    )

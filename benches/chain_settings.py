"""What was measured of chains and of each function alone, as predictions need it."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from benches.chain_family import ChainFamily, ChainRun
from predictor.chains.placed_chain import PlacedChain, StageEffect
from predictor.chains.profiled_nf import ProfiledNf
from profiler.chains.plan import MeasuredChain
from profiles import ChainLoad, TrafficProfile
from profiles.arrays import Floats
from profiles.description import NULL_NF

INPUTS = ("packet_size", "flows")
REGRESSOR = "smooth"  # of profiles of a few settings: too few to compare regressors
GROWTH = {"Tunnel": 4.0, "Detunnel": -4.0, "Encrypt": 70.0, "FastEncrypt": 56.0}
"""Bytes that a function adds to packets, as its file in `nfs/functions` documents: a VLAN tag, ESP in tunnel mode with
the mean padding."""
SIMULATED_GROWTH = {"Tunnel": 4.0, "Detunnel": -4.0, "Encrypt": 24.0, "FastEncrypt": 12.0}
"""The same of `simulated:server`, as `profiler/simulated/server.py` documents."""
RING = f"{NULL_NF} -> {NULL_NF}"  # the profile of the function that does nothing, twice on two cores
SENDS, RECEIVES = f" -> {NULL_NF}", f"{NULL_NF} -> "
"""What the profile of a function in front of a ring, and behind one, has behind its name and before it."""
AS_ALONE = 5.0  # percentage points by which the drop of a stage may differ from that of the function alone


@dataclass(frozen=True)
class MeasuredSetting:
    """A chain of several functions at one traffic."""

    chain: PlacedChain  # with what its functions, each measured alone, do to the traffic behind them
    load: ChainLoad  # what ran
    kpps: Floats  # packets that enter the chain, of each run. Shape (runs,).
    drops_as_alone: bool
    """Whether its functions drop as many packets as alone. They need not: behind another function, packets differ."""

    @property
    def at(self) -> dict[str, float]:
        """The workload."""
        return workload(self.load.traffic)

    @property
    def kind(self) -> str:
        """What the chain is: `pairs`, `triples` or `pipelines`."""
        return "pipelines" if len(self.load.cores) > 1 else "pairs" if len(self.load.stages) == 2 else "triples"

    @property
    def key(self) -> tuple[str, object]:
        """The chain without its traffic."""
        return self.load.label, self.load.cores

    def run(self, number: int) -> ChainRun:
        """One of its runs."""
        return ChainRun(self.chain, self.at, float(self.kpps[number]))


@dataclass(frozen=True)
class MeasuredSingles:
    """Functions alone."""

    profiles: Mapping[str, ProfiledNf]
    """By function, throughput by packet size and flows; the one that does nothing is among them."""
    table: pd.DataFrame
    """A row per function and traffic: runs, throughput (kpps) and its standard deviation (%), share passed on (%)."""

    @classmethod
    def of(cls, measured: Iterable[MeasuredChain]) -> "MeasuredSingles":
        """What was measured as chains of one."""
        rows: list[dict[str, object]] = []
        runs: dict[str, list[tuple[float, float, float]]] = {}
        for one in measured:
            name = _name_of(one.load)
            if name is None:
                continue
            kpps = throughputs(one)
            rows.append({"nf": name, **workload(one.load.traffic), "runs": len(kpps), "kpps": float(kpps.mean())})
            rows[-1] |= {"sd_pct": 100 * spread(kpps), "passes_pct": 100 - float(drops(one)[0])}
            runs.setdefault(name, []).extend((one.load.traffic.packet_size, one.load.traffic.flows, k) for k in kpps)
        profiles = {nf: _profile(nf, np.array(points)) for nf, points in runs.items()}
        return cls(profiles, pd.DataFrame(rows))

    def family(self) -> ChainFamily:
        """Predicts chains from single functions alone."""
        senders = {name.removesuffix(SENDS): name for name in self.profiles if name.endswith(SENDS)}
        receivers = {name.removeprefix(RECEIVES): name for name in self.profiles if name.startswith(RECEIVES)}
        ring = RING if RING in self.profiles else None
        return ChainFamily(self.profiles, source=NULL_NF, ring=ring, receivers=receivers, senders=senders)

    def settings(self, measured: Iterable[MeasuredChain], growth: Mapping[str, float]) -> list[MeasuredSetting]:
        """The chains of several functions, with the effects that the functions have alone."""
        passes = {(row["nf"], row["packet_size"], row["flows"]): row["passes_pct"] for _, row in self.table.iterrows()}
        settings = []
        for one in measured:
            nfs, size = [stage.nf for stage in one.load.stages], one.load.traffic
            if _name_of(one.load) is None:
                kept = [float(passes[nf, size.packet_size, size.flows]) for nf in nfs]
                effects = [
                    StageEffect(share / 100, bytes_added=growth.get(nf, 0.0))
                    for nf, share in zip(nfs, kept, strict=True)
                ]
                chain = PlacedChain.of(nfs, cores=one.load.cores, effects=effects, core_times=one.load.shares)
                alike = bool((np.abs(100 - np.array(kept) - drops(one)) <= AS_ALONE).all())
                settings.append(MeasuredSetting(chain, one.load, throughputs(one), alike))
        return settings


def workload(traffic: TrafficProfile) -> dict[str, float]:
    """The columns of profiles."""
    return {"packet_size": traffic.packet_size, "flows": traffic.flows}


def throughputs(measured: MeasuredChain) -> Floats:
    """Packets that enter the chain, kpps, shape (runs,)."""
    return np.array([one.throughput_kpps for one in measured.runs])


def drops(measured: MeasuredChain) -> Floats:
    """What each stage drops of the packets that reach it, %, mean over runs; shape (stages,)."""
    return np.asarray(np.mean([[stage.dropped_pct for stage in one.stages] for one in measured.runs], axis=0))


def spread(kpps: Floats) -> float:
    """Relative standard deviation of runs; 0 of a single one."""
    return float(kpps.std(ddof=1) / kpps.mean()) if len(kpps) > 1 else 0.0


def kinds(settings: Sequence[MeasuredSetting]) -> NDArray[np.str_]:
    """The kind of each."""
    return np.array([one.kind for one in settings])


def _name_of(load: ChainLoad) -> str | None:
    """The profile that a chain belongs to; None of a chain that is predicted."""
    nfs = [stage.nf for stage in load.stages]
    if len(load.cores) == 2 and len(nfs) == 2 and NULL_NF in nfs:
        return f"{nfs[0]} -> {nfs[1]}"
    return load.label if len(nfs) == 1 else None


def _profile(nf: str, points: Floats) -> ProfiledNf:
    return ProfiledNf.fit(nf, INPUTS, points[:, :2], points[:, 2], regressor=REGRESSOR)

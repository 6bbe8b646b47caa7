"""The least shares of cores with which a chain meets a target: in one shot from profiles, and by greedy steps."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from experiments.vnf_chains.methodology import shares
from experiments.vnf_chains.methodology.chain_rounds import ChainRounds
from predictor.chains.chain_fitting import fit_chain
from predictor.chains.chain_model import ChainModel
from predictor.chains.profiled_nf import ProfiledNf
from predictor.chains.scaling import Allocation, ScalingTarget, greedy_allocation, smallest_allocation
from profiles import TrafficProfile
from profiles.arrays import Floats

Reached = Callable[[Allocation, int], Floats]
"""What a chain reaches with an allocation, a value for each of so many runs."""

ALLOCATED_SHARES = tuple(round(0.05 * step, 2) for step in range(5, 21))  # shares of a core that are allocated
TARGET_SHARES = (0.4, 0.75)  # shares of what the slowest function reaches alone with all of a core
AT_SIZE = 512.0
TEN_RUNS = 10
PROFILES_METHOD, CORRECTED_METHOD, GREEDY_METHOD = "profiles", "profiles, 10 chain runs", "greedy"


def scaling_table(
    found: Mapping[str, shares.Topology], reached: Reached, repeats: int, amounts: Sequence[float] = ()
) -> pd.DataFrame:
    """A row per chain, target and method: the allocation, how many runs found it, and what the chain reaches with it.
    `found`: functions and chains. `reached`: by running or by recorded runs. `repeats`: runs of each allocation.
    `amounts`: the shares that are allocated, by default `ALLOCATED_SHARES`. Raises `TestbedError` when the testbed
    fails."""
    functions = {name: one for name, one in found.items() if len(one.nfs) == 1}
    profiles = {name: profile_of(one) for name, one in functions.items()}
    rows: list[dict[str, object]] = []
    for name, chain in found.items():
        if len(chain.nfs) > 1 and all(nf in functions for nf in chain.nfs):
            of_chain = {nf: profiles[nf] for nf in chain.nfs}
            models = {
                PROFILES_METHOD: fit_chain(of_chain, shares.place_on_cores(chain, functions)),
                CORRECTED_METHOD: correct(of_chain, chain, functions),
            }
            rows += _Scaling(name, models, reached, repeats, amounts or ALLOCATED_SHARES).rows()
    return pd.DataFrame(rows)


def reached_by_running(rounds: ChainRounds, flows: float = shares.FLOW_COUNT) -> Reached:
    """Runs each allocation on the testbed of the rounds."""

    def reached(allocation: Allocation, repeats: int) -> Floats:
        description = rounds.description
        traffic = TrafficProfile(shares.most_flows(description, flows), AT_SIZE, description.traffic.mtbr)
        load = shares.share_load(list(allocation), traffic, list(allocation.values()))
        (measured,) = rounds.measure([load], repeats).values()
        return np.array([run.throughput_kpps for run in measured.runs])

    return reached


def recorded_scaling(found: Mapping[str, shares.Topology]) -> pd.DataFrame | None:
    """The table where allocations are shares of which each combination was recorded several times; None where some were
    not. The first run of each setting of a chain chooses, the others show what is reached."""
    chains = {chain.nfs: chain for chain in found.values() if len(chain.nfs) > 1}
    amounts: set[tuple[float, ...]] = set()
    first = dict(found)
    for chain in chains.values():
        settings, numbers, counts = np.unique(chain.at, axis=0, return_index=True, return_counts=True)
        first[chain.name] = replace(chain, at=settings, kpps=chain.kpps[numbers])
        at_size = settings[:, -1] == AT_SIZE
        amounts.add(shares_run := tuple(np.unique(settings[at_size, :-1])))
        if not at_size.any() or at_size.sum() != len(shares_run) ** 2 or counts[at_size].min() < 2:
            return None
    if len(amounts) != 1:
        return None

    def reached(allocation: Allocation, repeats: int) -> Floats:
        chain = chains[tuple(allocation)]
        recorded = chain.kpps[(chain.at == [*allocation.values(), AT_SIZE]).all(axis=1)]
        return np.asarray(recorded[:1] if repeats == 1 else recorded[1:])

    return scaling_table(first, reached, max(len(chain.kpps) for chain in chains.values()), amounts.pop())


def profile_of(one: shares.Topology, regressor: str | None = None) -> ProfiledNf:
    """The profile of a function."""
    return ProfiledNf.fit(one.name, one.inputs, one.at, one.kpps, regressor=regressor)


def correct(
    profiles: Mapping[str, ProfiledNf], chain: shares.Topology, functions: Mapping[str, shares.Topology], seed: int = 0
) -> ChainModel:
    """The model after ten single runs of the chain, drawn at random among its settings."""
    drawn = np.random.default_rng([seed, TEN_RUNS]).permutation(len(chain.kpps))[:TEN_RUNS]
    at = dict(zip(chain.inputs, chain.at[drawn].T, strict=True))
    return fit_chain(profiles, shares.place_on_cores(chain, functions), measured_at=at, measured=chain.kpps[drawn])


@dataclass(frozen=True)
class _Scaling:
    """Allocations of one chain."""

    name: str
    models: Mapping[str, ChainModel]
    reached: Reached
    repeats: int
    amounts: Sequence[float]

    def rows(self) -> Iterator[dict[str, object]]:
        """A row per target and method."""
        plain = self.models[PROFILES_METHOD]
        whole = {nf: np.array([1.0]) for nf in plain.profiles}
        columns = {shares.SIZE_INPUT: np.array([AT_SIZE])} | {
            f"{nf}.{shares.CPU_INPUT}": share for nf, share in whole.items()
        }
        most = float(plain.predict(columns).predicted[0])
        amounts = dict.fromkeys(plain.profiles, self.amounts)
        for share in TARGET_SHARES:
            target = ScalingTarget(share * most, {shares.SIZE_INPUT: AT_SIZE})
            for method, model in self.models.items():
                runs = TEN_RUNS if method == CORRECTED_METHOD else 0
                yield self._row(target, method, smallest_allocation(model, target, amounts).allocation, runs)
            greedy = greedy_allocation(plain, target, amounts, lambda allocation: self.reached(allocation, 1).mean())
            yield self._row(target, GREEDY_METHOD, greedy.allocation, len(greedy.tried))

    def _row(self, target: ScalingTarget, method: str, allocation: Allocation | None, runs: int) -> dict[str, object]:
        row: dict[str, object] = {"chain": self.name, "target_kpps": round(target.measure, 1), "method": method}
        row["runs"] = runs
        if allocation is None:
            return row
        reached = self.reached(allocation, self.repeats) / target.measure
        first, second = allocation.values()
        return row | {
            "first_cpu": first,
            "second_cpu": second,
            "total_cpu": round(first + second, 2),
            "reached_pct": round(100 * float(reached.mean()), 1),
            "noise_pct": round(100 * float(reached.std(ddof=1)), 1) if len(reached) > 1 else np.nan,
        }

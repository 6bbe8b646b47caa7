"""How the runs of an NF are divided: benches, co-locations at random traffic, co-locations that decide a placement."""

from dataclasses import dataclass
from itertools import count

from profiler.methods import DEFAULT_QUOTA
from profiler.runs.co_runs import RUNS_PER_CO_LOCATION
from profiles import InputError

DECIDING_SHARES = (0.2, 0.5)
"""Of an NF's quota, at least and at most for co-locations at default traffic that decide a placement."""
ENOUGH_RUNS = 240
"""Runs alone and with benches from which further ones teach the models little; what is beyond goes to co-locations."""
MOST_OF_FREE = 0.6
"""Of the runs beyond those that every method needs, at most for these co-locations; it matters for small quotas."""
RANDOM_SHARE = 0.1  # of an NF's quota, for co-locations at random traffic
SOLO_REPEATS = 3
FEWEST_METHOD_RUNS = 20  # fewest runs left for a method to choose
LARGEST_QUOTA = 1_000_000
CORES_QUOTA = 600
"""Runs per NF with further numbers of cores; those of the default number are then `DEFAULT_QUOTA`, as without."""
DEFAULT_CORES_SHARE = (2, 3)  # two in three of those runs are of the default number of cores


@dataclass(frozen=True)
class QuotaShares:
    """The runs of one NF."""

    benches: int | None  # alone and with benches; None for no limit
    random: int  # with other NFs at random traffic
    deciding: int  # what the NF adds to the runs of the co-locations that decide a placement

    @property
    def own(self) -> int | None:
        """Runs of the NF itself; None for no limit."""
        return None if self.benches is None else self.benches + self.random


@dataclass(frozen=True)
class CoreShares:
    """The runs of one NF beyond those of its default number of cores."""

    cores: int  # on further numbers of cores, over all of them
    loads: int  # with other NFs, at rates and on any number of cores


def divide_cores(quota: int | None, *, paced: bool) -> CoreShares:
    """The shares of the quota beyond the default number of cores; without a quota, those of `CORES_QUOTA`. `paced`:
    whether the testbed offers rates."""
    whole = quota or CORES_QUOTA
    loads = int(whole * RANDOM_SHARE) if paced else 0
    return CoreShares(whole - _of_default(whole) - loads, loads)


def _of_default(whole: int) -> int:
    part, of = DEFAULT_CORES_SHARE
    return whole * part // of


def divide(nf: str, quota: int | None, fixed: int, *, further: bool = False) -> QuotaShares:
    """The shares of `quota` on the default number of cores, when `fixed` runs are the same for every method. `further`:
    whether a part of the quota is of further numbers of cores. Raises `InputError` when the quota leaves a method too
    few runs."""
    needed = fixed + SOLO_REPEATS + FEWEST_METHOD_RUNS
    if quota is None:
        return QuotaShares(None, _random(DEFAULT_QUOTA), _deciding(DEFAULT_QUOTA))

    def left_for(whole: int) -> int:
        own = _of_default(whole) if further else whole
        return own - _random(own) - needed

    if left_for(quota) < 0:
        least = next(enough for enough in count(needed) if left_for(enough) >= 0)
        raise InputError.of("--quota", f"{quota} runs are too few for {nf}", hint=f"it needs at least {least}")
    own = _of_default(quota) if further else quota
    deciding = int(min(_deciding(own), MOST_OF_FREE * left_for(quota)))
    return QuotaShares(own - _random(own) - deciding, _random(own), deciding)


def refuse_large(quota: int | None) -> None:
    """InputError when the quota would take years."""
    if quota is not None and quota > LARGEST_QUOTA:
        raise InputError.of("--quota", f"{quota:,} runs are more than {LARGEST_QUOTA:,}")


def _deciding(quota: int) -> int:
    least, most = (int(share * quota) for share in DECIDING_SHARES)
    return min(max(quota - _random(quota) - ENOUGH_RUNS, least), most)


def _random(quota: int) -> int:
    return int(quota * RANDOM_SHARE) // RUNS_PER_CO_LOCATION * RUNS_PER_CO_LOCATION

"""From a profile to one model per NF: what is fitted to which measurements.

`train_nf_models` is the main flow: arrays of all measurements, the plausible models of each NF, the choice between
them by real co-locations, and the correction and error estimate from the same co-locations.
"""

from __future__ import annotations

from collections.abc import Callable

from predictor.contention.nf_model import NfModel
from predictor.training.benches import bench_services
from predictor.training.calibrate import calibrated, choose
from predictor.training.measurements import measurements_of
from predictor.training.memory_pressure import most_accesses
from predictor.training.nf import plausible_models
from profiles.profile import Profile


def train_nf_models(
    profile: Profile, *, seed: int, progress: Callable[[str], None], warn: Callable[[str], None]
) -> dict[str, NfModel]:
    """The model of every NF of `profile`, by name, sorted.

    Parameters
    ----------
    profile
        The measurements.
    seed
        Seeds everything random.
    progress
        Called with the name of the NF before its training.
    warn
        Called with what had to be assumed or left out.

    Raises
    ------
    InputError
        When an NF was measured too little, or measured co-locations contradict the other runs beyond belief.
    """
    measured = measurements_of(profile, warn)
    services = bench_services(measured.benches)
    plausible = {}
    for name, nf in measured.nfs.items():
        progress(name)
        plausible[name] = plausible_models(nf, services, most_accesses=most_accesses(measured, name, seed), seed=seed)
    chosen = choose(plausible, measured.co_locations)
    return calibrated(chosen, measured)

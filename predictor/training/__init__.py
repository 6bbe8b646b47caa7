"""From a profile to one model per NF: what is fitted to which measurements.

`measurements_of` prepares all arrays once. `train_nf_models` is the main flow: the plausible models of each NF, the
choice between them by real co-locations, the correction and error model from the same co-locations, and what changes on
further numbers of cores."""

from collections.abc import Callable, Mapping

from predictor.contention.nf_model import NfModel
from predictor.training.calibrate import calibrate
from predictor.training.co_runs import choose
from predictor.training.core_counts import fit_core_scales, with_doubts
from predictor.training.measurements import Measurements, bench_services, measurements_of, most_accesses
from predictor.training.nf import ExecutionFits, find_slices, plausible_models
from predictor.training.solo_fits import SoloCurve

__all__ = ["measurements_of", "train_nf_models"]


def train_nf_models(
    measured: Measurements, *, seed: int, progress: Callable[[str], None], solo_fits: Mapping[str, SoloCurve]
) -> dict[str, NfModel]:
    """The model of every NF, by name, sorted. `measured`: the measurements of a profile. `seed`: seeds everything
    random. `progress`: called with the name of the NF before its training. `solo_fits`: by NF, a curve of its
    throughput alone, or `OWN_RUNS`. Raises `InputError` when measured co-locations contradict the other runs beyond
    belief."""
    services = bench_services(measured.benches)
    longest = {name: float(time.max()) for name, (_, time) in measured.benches.items()}
    fits: ExecutionFits = {}
    slices = find_slices(measured.nfs, measured.further, services, longest, fits)
    plausible = {}
    for name, nf in measured.nfs.items():
        progress(name)
        plausible[name] = plausible_models(
            nf, services, most_accesses=most_accesses(measured, name, seed), seed=seed, solo_fit=solo_fits.get(name),
            further=measured.further[name], slices=slices, fits=fits,
        )  # fmt: skip
    chosen = choose(plausible, measured.co_locations)
    scaled = {
        name: fit_core_scales(model, measured.further[name], measured.core_counts[name])
        for name, model in calibrate(chosen, measured).items()
    }
    return with_doubts(scaled, measured)

"""`placer train PROFILE --out MODELS`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from placer.commands.options import Quiet, Seed, refuse_unwritable_folder, take_argument, take_option
from profiles import InputError

if TYPE_CHECKING:
    from placer.progress import Progress

ProfileDir = Annotated[Path, take_argument("PROFILE", "A folder written by `placer profile`, or by hand.")]
Out = Annotated[Path, take_option("The MODELS folder to write. Models in it are replaced; other files stay.")]
Names = Annotated[
    list[str] | None,
    take_option("A predictor; repeatable. tomur and slomo come with placer. By default, all.", "--predictor"),
]
SoloFits = Annotated[
    list[str] | None,
    take_option(
        "A model of `placer fit` or `placer sweep`: throughput_kpps of the NF alone over flows, packet_size or "
        "mtbr, at default traffic otherwise. Without a file, it is fitted to the NF's runs. It is used only if it"
        " significantly reduces the NF's solo error. Repeatable.",
        "--solo-fit",
        metavar="NF[=MODEL.json]",
    ),
]


def command(
    profile: ProfileDir,
    out: Out,
    predictor: Names = None,
    solo_fit: SoloFits = None,
    seed: Seed = 0,
    quiet: Quiet = False,
) -> None:
    """Train models of every NF of a profile, for every predictor; of a GPU server, latency models."""
    from placer.inputs.models import refuse_foreign_folder
    from placer.inputs.solo_fits import read_solo_fits, refuse_curves_of_users
    from placer.progress import Progress
    from predictor import PREDICTORS, train
    from predictor.regression.compiled import announce_compiling
    from profiles.best_effort import best_effort_summary, read_best_effort
    from profiles.gpu_tables import is_gpu_profile
    from profiles.profile import read_profile

    progress = Progress(quiet=quiet)
    for name in predictor or ():
        PREDICTORS.find(name)
    refuse_unwritable_folder("--out", out)
    refuse_foreign_folder(out)
    if is_gpu_profile(profile):
        _train_gpu(profile, out, predictor, solo_fit, seed, progress)
        return
    read = read_profile(profile)
    solo_fits = read_solo_fits(solo_fit or (), read)
    refuse_curves_of_users(out, [name for name, nf in read.nfs.items() if len(nf.latency)])
    if len(best_efforts := read_best_effort(profile)):
        progress.say(
            f"{profile}: {best_effort_summary(best_efforts)}; training gives them the same weight as all others"
        )
    announce_compiling(progress.say)
    with progress.stages("training ") as stage:
        models = train(read, predictor, seed=seed, progress=stage, warn=progress.say, solo_fits=solo_fits)
    models.save(out)
    progress.say(f"trained {', '.join(models.predictors)} for {', '.join(models.nfs)}: {out}")
    if models.latencies:
        errors = next(iter(models.latencies.values())).errors
        progress.say(
            f"trained the latency of {', '.join(models.latencies)}: at left-out settings, the error of the mean "
            f"is {errors.error_pct('mean'):.2g} % on average, that of the p99 {errors.error_pct('p99'):.2g} %"
        )


def _train_gpu(
    profile: Path, out: Path, predictors: list[str] | None, solo_fit: list[str] | None, seed: int, progress: Progress
) -> None:
    from predictor.regression.compiled import announce_compiling
    from predictor.training.gpu import train_gpu
    from profiles.gpu_tables import read_gpu_profile

    for option, given in (("--predictor", predictors), ("--solo-fit", solo_fit)):
        if given:
            raise InputError.of(option, "is for profiles of NICs; this is one of a GPU server")
    read = read_gpu_profile(profile)
    announce_compiling(progress.say)
    with progress.stages("training ") as stage:
        models = train_gpu(read, seed=seed, progress=stage)
    models.save(out)
    progress.say(f"trained the latency of {', '.join(models.nfs)}: {out}")
    errors = models.errors
    if len(errors.mean):
        progress.say(
            f"{len(errors.mean)} left-out latencies in co-locations: the error of the mean is "
            f"{errors.error_pct('mean'):.2g} % on average, that of the p99 {errors.error_pct('p99'):.2g} %"
        )

"""Models after further runs of co-locations: the corrections and error models are fitted anew, nothing else.

Further runs are of co-locations and of NFs alone in `co-locations.csv`. What benches and solo runs taught, the boosted
trees above all, does not change, and takes most of the time of training. Nor is the execution pattern of an NF chosen
again, which the co-locations of a whole profile have decided before.
"""

from __future__ import annotations

from dataclasses import replace

from threadpoolctl import threadpool_limits

from predictor import PREDICTORS, Models, train
from predictor.contention.intervals import ErrorModel
from predictor.training.calibrate import calibrated
from predictor.training.measurements import measurements_of
from profiles.profile import Profile


def retrained(models: Models, profile: Profile, predictor: str) -> Models:
    """The models with what `profile` adds to the profile that they were trained from.

    Trained anew where the profile is not of the same NFs.

    Parameters
    ----------
    models
        The models before.
    profile
        The profile with further runs in `co-locations.csv`.
    predictor
        The name of the only predictor that the result has.

    Raises
    ------
    InputError
        When measured co-locations contradict the other runs beyond belief.
    """
    if set(models.nfs) != set(profile.nfs):
        return train(profile, [predictor], seed=models.seed)
    uncorrected = {
        name: replace(model, calibration=None, alone=None, neighbours=None, error_model=ErrorModel.unknown())
        for name, model in models.models.items()
    }
    with threadpool_limits(1):  # as in training: more threads would round differently
        nfs = calibrated(uncorrected, measurements_of(profile, lambda message: None))
        trained = PREDICTORS.find(predictor).train(profile, nfs, seed=models.seed, warn=lambda message: None)
    return replace(models, predictors={predictor: trained}, models=nfs)

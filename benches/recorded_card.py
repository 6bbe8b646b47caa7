"""The simulated card as it was recorded."""

from importlib.resources import as_file, files

from placer.model.nic_kind import NicKind
from predictor import Models
from profiles.profile import Profile, read_profile


def recorded_profile() -> Profile:
    """What was recorded of the simulated card."""
    with as_file(files("traces") / "bluefield-2-simulated") as recorded:
        return read_profile(recorded)


def kind_of(models: Models) -> NicKind:
    """The NIC of the models, in any number."""
    assert models.testbed is not None
    nic = models.testbed.nic
    return NicKind(0, nic.model, nic.cores, {nf: models.cores(nf) for nf in models.nfs})

"""Where models come from: a folder that the user names, or the recorded profile of a simulated card, trained once."""

import contextlib
import fcntl
import hashlib
import shlex
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from importlib.resources import as_file, files
from pathlib import Path

import platformdirs

import predictor
from predictor import Models, load_models, train
from predictor.model_folder import MANIFEST_FILE
from predictor.regression.compiled import announce_compiling
from profiles import InputError, TestbedDescription, TrafficProfile, Workload
from profiles.profile import read_profile

RECORDED_PROFILE = "bluefield-2-simulated"
RECORDED_OF = {
    "simulated": RECORDED_PROFILE,
    "simulated:contended": "bluefield-2-contended-simulated",
    "simulated:server": "server-simulated",
}
"""The recorded profile of each simulated machine, by the SPEC of its testbed."""

Say = Callable[[str], None]


def open_models(directory: Path | None, say: Say, recorded: str = RECORDED_PROFILE) -> Models:
    """The models in `directory`; without one, those of a recorded simulated card. `directory`: a MODELS folder, or
    None. `say`: called with a message before what takes time. `recorded`: the name of the recorded profile. Raises
    `InputError` when the folder holds no models, or models that do not fit this version."""
    announce_compiling(say)
    if directory is not None:
        return load_models(directory)
    with as_file(files("traces") / recorded) as profile:
        home = platformdirs.user_cache_path("nf-placer") / f"models-{_fingerprint(profile)}"
        with contextlib.suppress(InputError):
            return load_models(home)
        with _one_at_a_time(home):
            with contextlib.suppress(InputError):
                return load_models(home)  # another process has trained them meanwhile
            say(f"training the models of the recorded profile {recorded} into {home} (once)")
            train(read_profile(profile)).save(home)
    return load_models(home)


@contextlib.contextmanager
def _one_at_a_time(home: Path) -> Iterator[None]:
    """Wait until no other process is training the same models."""
    home.parent.mkdir(parents=True, exist_ok=True)
    with home.with_name(f"{home.name}.lock").open("w") as lock:
        with contextlib.suppress(OSError):  # a file system without locks: they are trained twice
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@cache
def describe_recorded(recorded: str) -> TestbedDescription:
    """The simulated machine of a recorded profile; the models of the profile describe it alike."""
    text = (files("traces") / recorded / "testbed.json").read_text(encoding="utf-8")
    return TestbedDescription.model_validate_json(text)


@cache
def specs_of_recorded() -> dict[str, str]:
    """By NIC model that has a recorded profile, the SPEC of its simulation."""
    return {describe_recorded(recorded).nic.model: spec for spec, recorded in RECORDED_OF.items()}


def how_to_get_models(testbed: str | None = None) -> str:
    """A hint where a NIC model has no models: those that come with placer, and how to train some. `testbed`: the SPEC
    of the NIC's testbed, if it is known."""
    *first, last = specs_of_recorded()
    return (
        f"models of {', '.join(first)} and {last} come with placer (simulated); of another NIC, run "
        f'{_profiling(testbed)} and `placer train PROFILE --out MODELS`, then write models = "MODELS" into its table'
    )


def _profiling(testbed: str | None) -> str:
    if testbed is None or not testbed.startswith("exec:"):  # another one is of the NICs that placer knows
        return "`placer profile --testbed exec:COMMAND --out PROFILE`, where COMMAND starts an agent on it,"
    return f"`placer profile --testbed {shlex.quote(testbed)} --out PROFILE`"


def why_no_models(folder: Path, testbed: str | None) -> tuple[str, str] | None:
    """What is wrong with a folder that holds no models, and a hint; None where it does. `testbed` is the SPEC of the
    NIC's testbed, if it is known."""
    if (folder / MANIFEST_FILE).is_file():
        return None
    if (folder / "testbed.json").is_file():
        train = f"`placer train {shlex.quote(str(folder))} --out MODELS`"
        return f"{folder} is a profile", f'train models of it: {train}, then models = "MODELS"'
    wrong = f"{folder} holds no models" if folder.exists() else f"there is no folder {folder}"
    return wrong, f"to make it, run {_profiling(testbed)} and `placer train PROFILE --out {shlex.quote(str(folder))}`"


def find_recorded(testbed: str | None) -> str:
    """The recorded profile of the simulated card that `testbed` names; of the BlueField-2 for None. Raises `InputError`
    when it names another testbed."""
    if testbed is None:
        return RECORDED_PROFILE
    if testbed not in RECORDED_OF:
        hint = f"it is one of {', '.join(RECORDED_OF)}; for other NICs give --models"
        raise InputError.of("--testbed", f"there are no recorded models of '{testbed}'", hint=hint)
    return RECORDED_OF[testbed]


def capacities_of(models: Models) -> Callable[[str, Mapping[str, float]], float]:
    """What an NF carries alone on its default cores (kpps), by its name and attributes: `Recipe.capacity_kpps`."""
    predictor = models.predictors.get("tomur") or next(iter(models.predictors.values()))
    default = models.default_traffic.as_dict()

    @cache
    def carried(workload: Workload) -> float:
        return float(predictor.solo([workload])[0])

    return lambda nf, traffic: carried(Workload(nf, TrafficProfile.from_mapping({**default, **traffic})))


def _fingerprint(recorded: Path) -> str:
    """A digest of the recorded profile and of the code that trains on it."""
    digest = hashlib.sha256()
    code = Path(predictor.__file__).parent
    for root, pattern in ((recorded, "*"), (code, "*.py")):
        for path in sorted(path for path in root.rglob(pattern) if path.is_file()):
            digest.update(str(path.relative_to(root)).encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:12]


def refuse_foreign_folder(out: Path) -> None:
    """Refuse to replace a file, or a folder with other contents than models. Raises `InputError`, naming what is
    there."""
    if out.exists() and (not out.is_dir() or (any(out.iterdir()) and not (out / MANIFEST_FILE).exists())):
        raise InputError.of("--out", f"{out} holds other files than models", hint="name a new folder")

"""The paper's synthetic NFs on the simulated card, and their models (Tomur, section 7.3)."""

import tempfile
from pathlib import Path

from experiments.registry import Setting
from predictor import Models, train
from profiler.profiling import profile
from profiler.simulated import SimulatedTestbed
from profiler.simulated.card import CARD_NFS, ExecutionPattern, NfSpec, headers, per_flow
from profiles.profile import read_profile

RUNS_PER_NF = 300
"""Runs per NF at every scale: with half as many, training cannot separate memory from regex contention."""
EXECUTION_PATTERNS: tuple[ExecutionPattern, ...] = ("pipeline", "run-to-completion")


def name_of(nf: str, pattern: ExecutionPattern) -> str:
    """The name of a synthetic NF with that execution pattern."""
    return f"{nf}-{pattern}"


def _versions(nf: str, queues: tuple[tuple[str, int], ...]) -> list[NfSpec]:
    """Both execution patterns of an NF: its flow state fills the cache, its requests take as long as its core work."""
    return [
        NfSpec(name_of(nf, pattern), 3400, (headers(2.0), per_flow(300, 8, writes=0.4)), queues=queues, pattern=pattern)
        for pattern in EXECUTION_PATTERNS
    ]


REGEX_NF = NfSpec("regex-NF", 500, (headers(),), queues=(("regex", 1),))  # scans payloads, and nothing else

NF1_AND_NF2 = (*_versions("NF1", (("regex", 1),)), *_versions("NF2", (("regex", 1), ("compression", 1))))

SYNTHETIC_CARD = SimulatedTestbed(nfs=(*CARD_NFS, REGEX_NF, *NF1_AND_NF2))
"""The simulated BlueField-2 with the synthetic NFs in addition to its own."""


_cached: dict[int, Models] = {}


def train_synthetic(setting: Setting) -> Models:
    """Models of NF1 and NF2 with both execution patterns; training infers patterns and queues. Cached."""
    if setting.seed not in _cached:
        names = [nf.name for nf in NF1_AND_NF2]
        setting.say(f"profiling and training {', '.join(names)} on the simulated BlueField-2")
        _cached[setting.seed] = _profile_and_train(names, setting.seed)
    return _cached[setting.seed]


def _profile_and_train(names: list[str], seed: int) -> Models:
    with tempfile.TemporaryDirectory() as folder:
        return train(
            read_profile(profile(SYNTHETIC_CARD, Path(folder) / "profile", nfs=names, quota=RUNS_PER_NF, seed=seed))
        )

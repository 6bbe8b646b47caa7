"""The paper's synthetic NFs, hosted by a simulated card beside its own, and models of them (section 7.3)."""

from __future__ import annotations

import tempfile
from pathlib import Path

from experiments.registry import Setting
from predictor import Models, train
from profiler.profiling import profile
from profiler.simulated import SimulatedTestbed
from profiler.simulated.nfs import NFS, NfSpec, Pattern, headers, per_flow
from profiles.profile import read_profile

QUOTA = 300
"""Runs per NF, whatever the scale: half of them are too few to tell memory from regex."""
PATTERNS: tuple[Pattern, ...] = ("pipeline", "run-to-completion")


def name_of(nf: str, pattern: Pattern) -> str:
    """The name of a synthetic NF in one of its two versions."""
    return f"{nf}-{pattern}"


def _versions(nf: str, queues: tuple[tuple[str, int], ...]) -> list[NfSpec]:
    """Flow state that fills the cache, and requests that take about as long as the cores."""
    return [
        NfSpec(name_of(nf, pattern), 3400, (headers(2.0), per_flow(300, 8, writes=0.4)), queues=queues, pattern=pattern)
        for pattern in PATTERNS
    ]


REGEX_NF = NfSpec("regex-NF", 500, (headers(),), queues=(("regex", 1),))
"""Scans payloads and does nothing else."""

NF1_AND_NF2 = (*_versions("NF1", (("regex", 1),)), *_versions("NF2", (("regex", 1), ("compression", 1))))

CARD = SimulatedTestbed(nfs=(*NFS, REGEX_NF, *NF1_AND_NF2))
"""The simulated BlueField-2 with the synthetic NFs beside the hosted ones."""


_kept: dict[int, Models] = {}


def trained_synthetic(setting: Setting) -> Models:
    """Models of NF1 and NF2 in both versions: profiled as any NF, told neither pattern nor queues; kept."""
    if setting.seed not in _kept:
        names = [nf.name for nf in NF1_AND_NF2]
        setting.say(f"profiling and training {', '.join(names)} on the simulated card")
        _kept[setting.seed] = _profiled_and_trained(names, setting.seed)
    return _kept[setting.seed]


def _profiled_and_trained(names: list[str], seed: int) -> Models:
    with tempfile.TemporaryDirectory() as folder:
        return train(read_profile(profile(CARD, Path(folder) / "profile", nfs=names, quota=QUOTA, seed=seed)))

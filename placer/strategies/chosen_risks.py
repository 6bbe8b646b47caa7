"""Risks that were chosen, kept in the user's cache.

A risk within a budget is found by placing the trace, or one like it, several times. `placer explain` and `diagnose` ask
for the plan that `placer run` made: with the risk known, it is placed once.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import platformdirs

from placer.model.arrival import Arrival
from placer.model.catalogue import Catalogue
from placer.policy.rules import Rule
from predictor.regression.compiled import digest_of_sources
from profiles.aside import file_aside

KEPT_RISKS = 500
"""Risks that are kept; the oldest go."""
PLACER_FOLDER = Path(__file__).parents[1]
CODE_FOLDERS = (
    *(PLACER_FOLDER / room for room in ("strategies", "policy", "model", "evaluate")),
    PLACER_FOLDER.parent / "predictor",
)
"""Folders of the code that chooses a risk."""


def risk_key(catalogue: Catalogue, predictor: str, rule: Rule, arrivals: Sequence[Arrival]) -> str | None:
    """A name for all that the choice depends on; None where nothing is chosen, or models are of no folder."""
    digests = [models.digest for models in catalogue.models]
    chosen = catalogue.budget_pct is not None and catalogue.supports_risk(predictor)
    if not chosen or catalogue.gpus or catalogue.curves or not digests or not all(digests):
        return None
    asked = (
        catalogue.kinds,
        digests,
        catalogue.budget_pct,
        predictor,
        rule.name,
        digest_of_sources(CODE_FOLDERS),
        list(arrivals),
    )
    return hashlib.sha256(repr(asked).encode()).hexdigest()[:24]


def recall_risk(key: str | None) -> float | None:
    """The risk that was kept under this key."""
    return _read_risks().get(key) if key else None


def keep_risk(key: str | None, risk: float | None) -> None:
    """Keep a risk; where the cache cannot be written, nothing is kept."""
    if key is None or risk is None:
        return
    kept = _read_risks()
    kept.pop(key, None)
    kept[key] = risk
    with suppress(OSError), file_aside(_file()) as aside:
        aside.write_text(json.dumps(dict(list(kept.items())[-KEPT_RISKS:])), encoding="utf-8")


def _read_risks() -> dict[str, float]:
    try:
        return {str(key): float(risk) for key, risk in json.loads(_file().read_text(encoding="utf-8")).items()}
    except (OSError, ValueError, TypeError, AttributeError):
        return {}  # there is no file yet, or not one of ours: it is written anew


def _file() -> Path:
    return platformdirs.user_cache_path("nf-placer") / "risks.json"

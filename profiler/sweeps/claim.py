"""Whose runs the journal of a sweep holds."""

import json
import os
import platform
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from profiler.journal.journal import SWEEP_ORIGIN, Journal
from profiler.sweeps.spec import SweepSpec
from profiler.testbed import Testbed, processor_fields
from profiles import Fault, InputError

MACHINE_ORIGIN = "machine"


def claim(journal: Journal, testbed: Testbed, spec: SweepSpec, machine: Mapping[str, Any]) -> Mapping[str, Any]:
    """Record whose runs these are; the facts of the machine as they were at the first call. What changes no run may
    differ from before: the testbed's options, and metrics after the first. Raises `InputError` when the journal holds
    another sweep; with every key that differs."""
    written = spec.model_dump(mode="json", by_alias=True, exclude={"testbed"})
    written["measure"]["metrics"] = written["measure"]["metrics"][:1]
    known = journal.origin()
    if SWEEP_ORIGIN in known and not len(journal):  # nothing ran: the file was wrong
        journal.forget()
    elif SWEEP_ORIGIN in known and (differing := [*_differing(json.loads(known[SWEEP_ORIGIN]), written)]):
        hint = f"choose another --out, or remove {journal.path} to measure everything again"
        raise InputError([Fault("--out", None, None, f"holds another sweep: {name}", hint) for name in differing])
    journal.claim(testbed, spec.seed, {SWEEP_ORIGIN: json.dumps(written), MACHINE_ORIGIN: json.dumps(dict(machine))})
    facts: dict[str, Any] = json.loads(journal.origin()[MACHINE_ORIGIN])
    return facts


def _differing(before: Any, now: Any, path: str = "") -> Iterator[str]:
    """`key was this, is that` for everything that differs between two files."""
    if isinstance(before, dict) and isinstance(now, dict):
        for key in dict.fromkeys([*before, *now]):
            yield from _differing(before.get(key), now.get(key), f"{path}.{key}" if path else key)
    elif isinstance(before, list) and isinstance(now, list) and len(before) == len(now):
        for number, (one, other) in enumerate(zip(before, now, strict=True), start=1):
            yield from _differing(one, other, f"{path}.{number}")
    elif _format_value(before) != _format_value(now):  # 1 and 1.0 differ
        yield f"{path} was {_format_value(before):.80}, is {_format_value(now):.80}"


def _format_value(value: Any) -> str:
    return "not given" if value is None else json.dumps(value)


# The machine that a sweep ran on, as far as this process can see it: only where it is the testbed itself.


HOST_KIND = "host"  # the kind of testbed that is this machine
DATE_ORIGIN = "began"


def machine_facts(testbed: str) -> dict[str, Any]:
    """Processor, kernel, cores, memory and the time of now; empty for a testbed that is another machine or simulated.
    `testbed`: as `--testbed` names it."""
    if testbed.partition(":")[0] != HOST_KIND:
        return {}
    return {
        "processor": processor_fields().get("model name", platform.processor()),
        "architecture": platform.machine(),
        "cores": os.cpu_count(),
        "memory_mb": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e6),
        "kernel": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        DATE_ORIGIN: datetime.now(UTC).isoformat(timespec="seconds"),
    }

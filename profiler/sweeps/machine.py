"""The machine that a sweep ran on, as far as this process can see it: only where it is the testbed itself."""

from __future__ import annotations

import os
import platform
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

HOST = "host"
"""The kind of testbed that is this machine."""
DATE = "began"


def machine_facts(testbed: str) -> dict[str, Any]:
    """Processor, kernel, cores, memory and the time of now; empty for a testbed that is another machine or simulated.

    Parameters
    ----------
    testbed
        As `--testbed` names it.
    """
    if testbed.partition(":")[0] != HOST:
        return {}
    return {
        "processor": _processor(),
        "architecture": platform.machine(),
        "cores": os.cpu_count(),
        "memory_mb": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e6),
        "kernel": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        DATE: datetime.now(UTC).isoformat(timespec="seconds"),
    }


def _processor() -> str:
    """The model that the kernel names; empty where it names none."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return platform.processor()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "")

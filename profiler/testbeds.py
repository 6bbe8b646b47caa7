"""Testbeds by name: what `--testbed SPEC` opens.

A testbed kind is one module with a function `(argument, timeout) -> Testbed`. Ours are listed here; anybody else's is
an entry point of the group `placer.testbeds`, whose name is the SPEC before the colon.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import EntryPoint, entry_points

from profiler.exec import TIMEOUT_S
from profiler.testbed import Testbed
from profiles import InputError

GROUP = "placer.testbeds"

Opener = Callable[[str, float], Testbed]
"""Opens a testbed from what follows the colon of its SPEC (empty when nothing does) and a timeout in seconds."""

OURS = {
    "simulated": EntryPoint("simulated", "profiler.testbeds:_open_simulated", GROUP),
    "exec": EntryPoint("exec", "profiler.exec:open_exec", GROUP),
    "replay": EntryPoint("replay", "profiler.replay:open_replay", GROUP),
    "host": EntryPoint("host", "profiler.host:open_host", GROUP),
}
SHOWN_AS = {"exec": "exec:COMMAND", "replay": "replay:PROFILE"}


def open_testbed(spec: str, *, timeout: float = TIMEOUT_S) -> Testbed:
    """The testbed that `spec` names: `simulated`, `host`, `exec:COMMAND`, `replay:PROFILE`, or an installed kind.

    Parameters
    ----------
    spec
        The kind of testbed and, after a colon, what it needs to know.
    timeout
        The longest an answer of another program may take, seconds.

    Raises
    ------
    InputError
        When there is no such kind, or what follows the colon is wrong.
    TestbedError
        When the testbed cannot be started.
    """
    name, _, argument = spec.partition(":")
    kinds = {point.name: point for point in entry_points(group=GROUP)} | OURS
    if name == "none":
        raise InputError.of("--testbed", "none: nothing can be run without a testbed", hint=_known(kinds))
    if name not in kinds:
        raise InputError.of("--testbed", f"'{spec}' is not a testbed", hint=_known(kinds))
    opener: Opener = kinds[name].load()
    return opener(argument, timeout)


def _known(kinds: dict[str, EntryPoint]) -> str:
    return "testbeds are " + ", ".join(SHOWN_AS.get(name, name) for name in kinds)


def _open_simulated(argument: str, timeout: float) -> Testbed:
    from profiler.simulated import SimulatedTestbed

    if argument:
        raise InputError.of("--testbed", f"simulated takes nothing after a colon, got '{argument}'")
    return SimulatedTestbed()

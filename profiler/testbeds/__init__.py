"""Testbeds by name: what `--testbed SPEC` opens. A kind of testbed is one file here that registers a function
`(argument, timeout) -> Testbed` under its name, which is what stands before the colon of SPEC. Another package adds a
kind through an entry point of the group `placer.testbeds`."""

from collections.abc import Callable

from profiler.testbed import Testbed
from profiles import InputError
from profiles.registry import Registry

TIMEOUT_S = 60.0
LONGEST_TIMEOUT_S = 1e6

Opener = Callable[[str, float], Testbed]
"""Opens a testbed from what follows the colon of its SPEC (empty when nothing does) and a timeout in seconds."""

TESTBEDS: Registry[Opener] = Registry("testbed", "profiler.testbeds", "placer.testbeds", "--testbed")

SPEC_FORMS = {
    "exec": "exec:COMMAND",
    "netns": "netns, netns:SECONDS",
    "replay": "replay:PROFILE",
    "simulated": "simulated, simulated:contended, simulated:bluefield-3, simulated:pensando, simulated:server, "
    "simulated:gpu, simulated:gpu-b",
}


def open_testbed(spec: str, *, timeout: float = TIMEOUT_S) -> Testbed:
    """The testbed that `spec` names: `simulated`, `host`, `exec:COMMAND`, `replay:PROFILE`, or another registered kind.
    `spec`: the kind of testbed and, after a colon, its argument. `timeout`: the longest time that another program may
    take for one answer, seconds. Raises `InputError` when there is no such kind, or its argument is wrong. Raises
    `TestbedError` when the testbed cannot be started."""
    if not 0 < timeout <= LONGEST_TIMEOUT_S:
        raise InputError.of("--timeout", f"{timeout:g} s is not between 0 and {LONGEST_TIMEOUT_S:,.0f} s")
    kind, _, argument = spec.partition(":")
    if kind in ("", "none"):
        what = "none: nothing can be run without a testbed" if kind else "names no testbed"
        raise InputError.of("--testbed", what, hint=f"one of {list_testbeds()}")
    return TESTBEDS.find(kind)(argument, timeout)


def list_testbeds() -> str:
    """The SPEC of every kind of testbed, without importing any, for help texts and hints."""
    return ", ".join(SPEC_FORMS.get(kind, kind) for kind in TESTBEDS.file_names())

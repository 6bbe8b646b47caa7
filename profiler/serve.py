"""The answering side of the testbed protocol: puts any testbed behind stdin and stdout.

`python -m profiler.serve SPEC` serves the testbed that SPEC names, so that `exec:` can reach it.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from typing import IO, Any

from pydantic import ValidationError

from profiler.protocol import BAD_REQUEST, RUN_REQUEST, error_answer, faults_of, run_answer
from profiler.testbed import RunRefused, Testbed, TestbedError
from profiles import BenchLoad, InputError, Load, TestbedDescription


def serve(testbed: Testbed, stdin: IO[str], stdout: IO[str]) -> None:
    """Answer every line of `stdin` with one line on `stdout`, in order, until `stdin` ends.

    What is wrong with a request is told in its answer (`bad-request`), as is a run that went wrong (`failed`); neither
    ends the service.
    """
    for line in stdin:
        if line.strip():
            stdout.write(answer(testbed, line) + "\n")
            stdout.flush()


def answer(testbed: Testbed, line: str) -> str:
    """The answer to one request."""
    try:
        request = json.loads(line)
    except (ValueError, RecursionError) as error:
        return error_answer(None, BAD_REQUEST, f"not JSON: {error}")
    if not isinstance(request, dict):
        return error_answer(None, BAD_REQUEST, "not a JSON object")
    number = request.get("id")
    try:
        return _operation(testbed, number, request)
    except ValidationError as error:
        return error_answer(number, BAD_REQUEST, "; ".join(faults_of(error)))
    except (ValueError, InputError, RunRefused) as error:
        return error_answer(number, BAD_REQUEST, str(error))
    except TestbedError as error:
        return error_answer(number, "failed", str(error))


def _operation(testbed: Testbed, number: object, request: dict[str, Any]) -> str:
    match request.get("op"):
        case "describe":
            told = testbed.describe().model_dump(mode="json")
            return json.dumps({"id": number, "ok": True, "testbed": told})
        case "run":
            asked = RUN_REQUEST.validate_python(request)
            loads = asked.loads()
            if faults := refusals(testbed.describe(), loads):
                raise ValueError("; ".join(faults))
            return run_answer(number, testbed.run(loads, noise=asked.noise, seed=asked.seed))
        case other:
            raise ValueError(f"op {json.dumps(other)} not understood; describe and run are")


def refusals(description: TestbedDescription, loads: Sequence[Load]) -> list[str]:
    """Why a testbed of this description cannot run `loads`: names, ranges and cores it does not have."""
    faults: list[str] = []
    cores = 0
    for load in loads:
        if isinstance(load, BenchLoad):
            bench = description.bench(load.name)
            if bench is None:
                faults.append(f"bench {load.name} is not known")
                continue
            cores += bench.cores
            ranges, values = bench.parameters, dict(load.parameters)
            faults += [f"{load.name} needs parameter {name}" for name in ranges if name not in values]
        else:
            nf = next((nf for nf in description.nfs if nf.name == load.nf), None)
            if nf is None:
                faults.append(f"NF {load.nf} is not known")
                continue
            cores += nf.cores
            ranges, values = description.attributes, load.traffic.as_dict()
        faults += [
            f"{name} {values[name]:g} is outside [{low:g}, {high:g}]"
            for name, (low, high) in ranges.items()
            if name in values and not low <= values[name] <= high
        ]
    if cores > description.nic.cores:
        faults.append(f"needs {cores} cores, the NIC has {description.nic.cores}")
    return faults


def main(arguments: Sequence[str]) -> int:
    """Serve the testbed that the one argument names."""
    from profiler.testbeds import open_testbed

    if len(arguments) != 1:
        print("usage: python -m profiler.serve SPEC", file=sys.stderr)
        return 2
    try:
        with open_testbed(arguments[0]) as testbed:
            serve(testbed, sys.stdin, sys.stdout)
    except InputError as error:
        print(error.render(), file=sys.stderr)
        return 2
    except TestbedError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

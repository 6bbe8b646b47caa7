"""The server of the testbed protocol: serves any testbed on stdin and stdout. `python -m profiler.serve SPEC` serves
the testbed that SPEC names, so that `exec:` can reach it."""

import io
import json
import sys
from collections.abc import Iterator, Sequence
from typing import IO, Any

from pydantic import ValidationError

from profiler.protocol.program import LONGEST_LINE
from profiler.protocol.protocol import BAD_REQUEST, RUN_MESSAGE, error_answer, faults_of, run_answer
from profiler.protocol.request_checks import refusals
from profiler.testbed import RunRefused, Testbed, TestbedError
from profiler.testbeds import open_testbed
from profiles import InputError


def serve(testbed: Testbed, stdin: IO[str], stdout: IO[str]) -> None:
    """Answer every line of `stdin` with one line on `stdout`, in order, until `stdin` ends. An invalid request is
    answered with its errors (`bad-request`), a failed run with the reason (`failed`). The service continues after
    both."""
    if isinstance(stdin, io.TextIOWrapper):
        stdin.reconfigure(errors="replace")
    for line in _lines(stdin):
        if line.strip():
            stdout.write(answer(testbed, line) + "\n")
            stdout.flush()


def answer(testbed: Testbed, line: str) -> str:
    """The answer to one request."""
    if len(line) > LONGEST_LINE:
        return error_answer(None, BAD_REQUEST, f"a line of more than {LONGEST_LINE:,} characters")
    try:
        request = json.loads(line)
    except ValueError as error:
        return error_answer(None, BAD_REQUEST, f"not JSON: {error}")
    except RecursionError:
        return error_answer(None, BAD_REQUEST, "JSON that is nested too deeply")
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
            description = testbed.describe().model_dump(mode="json")
            return json.dumps({"id": number, "ok": True, "testbed": description})
        case "run":
            message = RUN_MESSAGE.validate_python(request)
            loads = message.loads()
            if faults := refusals(testbed.describe(), loads):
                raise ValueError("; ".join(faults))
            return run_answer(number, testbed.run(loads, noise=message.noise, seed=message.seed))
        case other:
            raise ValueError(f'unknown op {json.dumps(other)}: expected "describe" or "run"')


def _lines(stdin: IO[str]) -> Iterator[str]:
    """The lines of `stdin`. A line that is too long is cut off after `LONGEST_LINE` + 1 characters."""
    while line := stdin.readline(LONGEST_LINE + 1):
        rest = line
        while rest and not rest.endswith("\n"):
            rest = stdin.readline(LONGEST_LINE)
        yield line


def main(arguments: Sequence[str]) -> int:
    """Serve the testbed that the argument names, and return the exit status."""
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

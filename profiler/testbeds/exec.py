"""`exec:COMMAND`: a testbed that is another program, asked over stdin and stdout (docs/formats/testbed-protocol.md)."""

import json
from collections.abc import Callable, Sequence
from typing import Any

from pydantic import ValidationError

from profiler.protocol.program import LONGEST_LINE, Program, shorten
from profiler.protocol.protocol import (
    BAD_REQUEST,
    PROTOCOL_VERSION,
    describe_request,
    faults_of,
    parse_run,
    run_request,
)
from profiler.protocol.request_checks import has_settings, settings_refusals
from profiler.testbed import Run, RunRefused, Testbed, TestbedError
from profiler.testbeds import TESTBEDS, TIMEOUT_S
from profiles import Load, TestbedDescription


class ExecTestbed(Testbed):
    """A testbed that is another program.

    One request at a time. The first answer that is late, missing or wrong ends the program, because any later line
    could belong to another request. `command`: as typed in a shell, but run without one. `timeout`: the longest time
    that an answer may take, seconds. `on_stderr`: called with every line that the program writes to stderr, from a
    thread of its own. `measured_by`: what measures, if the command does not say it. Raises `InputError` when `command`
    is empty, badly quoted or holds a NUL. Raises `TestbedError` when it cannot be started."""

    def __init__(
        self,
        command: str,
        timeout: float = TIMEOUT_S,
        on_stderr: Callable[[str], None] = lambda line: None,
        measured_by: str | None = None,
    ) -> None:
        self._command = command
        self._measured_by = measured_by or f"exec:{command}"
        self._timeout = timeout
        self._number = 0
        self._description: TestbedDescription | None = None
        self._failure: str | None = None
        self._program = Program(command, on_stderr)

    @property
    def measured_by(self) -> str:
        return self._measured_by

    def describe(self) -> TestbedDescription:
        if self._description is None:
            self._description = self._checked(self._query(describe_request(self._number)).get("testbed"))
        return self._description

    def run(self, loads: Sequence[Load], *, noise: bool = True, seed: int | None = None) -> Run:
        if any(map(has_settings, loads)) and (faults := settings_refusals(self.describe(), loads)):
            # a program that knows no rates or cores ignores them and would answer another question
            raise RunRefused(f"testbed `{self._command}`: {'; '.join(faults)}")
        answer = self._query(run_request(self._number, loads, noise, seed))
        try:
            return parse_run(answer, loads)
        except ValueError as error:
            raise self._failed(f"answered a run with invalid values: {error}") from None

    def close(self) -> None:
        if self._failure is None:
            self._failure = "is closed"
            self._program.end(polite=True)

    def _query(self, request: str) -> dict[str, Any]:
        """Send one request and wait for the answer with its id."""
        if self._failure:
            raise TestbedError(f"testbed `{self._command}` {self._failure}")
        number, self._number = self._number, self._number + 1
        self._program.send(request)
        try:
            line = self._program.receive(self._timeout)
        except TimeoutError:
            raise self._failed(f"gave no answer to request {number} within {self._timeout:g} s") from None
        if line is None:
            raise self._failed(f"ended before it answered request {number}")
        if len(line) > LONGEST_LINE:
            raise self._failed(f"answered request {number} with a line of more than {LONGEST_LINE:,} characters")
        try:
            answer = json.loads(line)
        except ValueError:
            raise self._failed(f"answered request {number} with what is not JSON: {shorten(line)}") from None
        except RecursionError:
            raise self._failed(f"answered request {number} with JSON that is nested too deeply") from None
        if not isinstance(answer, dict):
            raise self._failed(f"answered request {number} with what is not a JSON object: {shorten(line)}")
        if type(answer.get("id")) is not int or answer["id"] != number:
            raise self._failed(f"answered request {number} with id {shorten(json.dumps(answer.get('id')))}")
        if not isinstance(answer.get("ok"), bool):
            raise self._failed(f"answered request {number} without `ok` true or false: {shorten(line)}")
        if answer["ok"] is False:
            raise self._refusal(answer.get("error"), number)
        return answer

    def _checked(self, described: object) -> TestbedDescription:
        protocol = described.get("protocol", PROTOCOL_VERSION) if isinstance(described, dict) else PROTOCOL_VERSION
        if type(protocol) is not int or protocol != PROTOCOL_VERSION:
            raise self._failed(f"speaks protocol {shorten(repr(protocol))}; {PROTOCOL_VERSION} is understood")
        try:
            return TestbedDescription.model_validate(described)
        except ValidationError as error:
            raise self._failed("describes itself wrongly:\n  " + "\n  ".join(faults_of(error))) from None

    def _refusal(self, error: object, number: int) -> TestbedError:
        fields = error if isinstance(error, dict) else {}
        code, message = (shorten(str(fields.get(name, f"no {name}")), 1000) for name in ("code", "message"))
        kind = RunRefused if fields.get("code") == BAD_REQUEST else TestbedError
        return kind(f"testbed `{self._command}` refused request {number}: {code}: {message}")

    def _failed(self, what: str) -> TestbedError:
        """End the program; the error holds what it did, how it ended and its last lines on stderr."""
        self._failure = what
        status = self._program.end(polite=False)
        if status is not None:
            what += f" (exit status {status})"
        lines = "".join(f"\n  {line}" for line in self._program.last_lines)
        said = f"its last lines on stderr:{lines}" if lines else "it printed nothing on stderr"
        return TestbedError(f"testbed `{self._command}` {what}; {said}")


@TESTBEDS.register("exec")
def open_exec(argument: str, timeout: float) -> Testbed:
    """The testbed of `exec:COMMAND`."""
    return ExecTestbed(argument, timeout)

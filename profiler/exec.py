"""`exec:COMMAND`: anybody's testbed, spoken to in JSON lines over its stdin and stdout (docs/formats.md)."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import shlex
import signal
import subprocess
from collections import deque
from collections.abc import Callable, Sequence
from threading import Thread
from typing import IO, Any

from pydantic import ValidationError

from profiler.protocol import BAD_REQUEST, PROTOCOL, describe_request, faults_of, parse_run, run_request
from profiler.testbed import Run, RunRefused, Testbed, TestbedError
from profiles import InputError, Load, TestbedDescription

TIMEOUT_S = 60.0
GRACE_S = 2.0
LAST_GASP_S = 0.2
LAST_WORDS = 10
LONGEST_LINE = 1 << 24


class ExecTestbed(Testbed):
    """A testbed that is another program.

    One request at a time. The first answer that is late, lost or wrong ends the program, because whatever it would
    say next could belong to another request.

    Parameters
    ----------
    command
        As typed in a shell, but run without one.
    timeout
        The longest an answer may take, seconds.
    hear
        Told every line that the program says on stderr, from a thread of its own.

    Raises
    ------
    InputError
        When `command` is empty or badly quoted.
    TestbedError
        When it cannot be started.
    """

    def __init__(
        self, command: str, timeout: float = TIMEOUT_S, hear: Callable[[str], None] = lambda line: None
    ) -> None:
        self._command = command
        self._timeout = timeout
        self._number = 0
        self._description: TestbedDescription | None = None
        self._failure: str | None = None
        self._process = _start(command)
        self._answers: queue.Queue[str | None] = queue.Queue(maxsize=16)
        self._last_words: deque[str] = deque(maxlen=LAST_WORDS)
        assert self._process.stdout is not None and self._process.stderr is not None
        self._listener = Thread(target=_listen, args=(self._process.stdout, self._answers), daemon=True)
        self._drain = Thread(target=_remember, args=(self._process.stderr, self._last_words, hear), daemon=True)
        self._listener.start()
        self._drain.start()

    def describe(self) -> TestbedDescription:
        if self._description is None:
            answer = self._query(describe_request(self._number))
            self._description = self._checked(answer.get("testbed"))
        return self._description

    def run(self, loads: Sequence[Load], *, noise: bool = True, seed: int | None = None) -> Run:
        answer = self._query(run_request(self._number, loads, noise, seed))
        try:
            return parse_run(answer, len(loads))
        except ValueError as error:
            raise self._failed(f"answered a run with what cannot be: {error}") from None

    def close(self) -> None:
        if self._failure is None:
            self._failure = "is closed"
        _end(self._process, polite=True)
        self._drain.join(GRACE_S)

    def _query(self, request: str) -> dict[str, Any]:
        """Send one request and wait for the answer that carries its id."""
        if self._failure:
            raise TestbedError(f"testbed `{self._command}` {self._failure}")
        number, self._number = self._number, self._number + 1
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(request + "\n")
            self._process.stdin.flush()
            line = self._answers.get(timeout=self._timeout)
        except (BrokenPipeError, ConnectionResetError):
            line = None
        except queue.Empty:
            raise self._failed(f"gave no answer to request {number} within {self._timeout:g} s") from None
        if line is None:
            raise self._failed(f"ended while request {number} was open")
        answer = self._understood(line, number)
        if answer["ok"] is False:
            error = answer.get("error")
            told = error if isinstance(error, dict) else {}
            kind = RunRefused if told.get("code") == BAD_REQUEST else TestbedError
            raise kind(
                f"testbed `{self._command}` refused request {number}: "
                f"{told.get('code', 'no code')}: {told.get('message', 'no message')}"
            )
        return answer

    def _understood(self, line: str, number: int) -> dict[str, Any]:
        try:
            answer = json.loads(line)
        except ValueError:
            raise self._failed(f"answered request {number} with what is not JSON: {_short(line)}") from None
        if not isinstance(answer, dict):
            raise self._failed(f"answered request {number} with what is not a JSON object: {_short(line)}")
        if answer.get("id") != number or isinstance(answer.get("id"), bool):
            raise self._failed(f"answered request {number} with id {json.dumps(answer.get('id'))}")
        if not isinstance(answer.get("ok"), bool):
            raise self._failed(f"answered request {number} without `ok` true or false: {_short(line)}")
        return answer

    def _checked(self, told: object) -> TestbedDescription:
        protocol = told.get("protocol", PROTOCOL) if isinstance(told, dict) else PROTOCOL
        if protocol != PROTOCOL:
            raise self._failed(f"speaks protocol {protocol!r}; {PROTOCOL} is understood")
        try:
            return TestbedDescription.model_validate(told)
        except ValidationError as error:
            raise self._failed("describes itself wrongly:\n  " + "\n  ".join(faults_of(error))) from None

    def _failed(self, what: str) -> TestbedError:
        """End the program and tell what it did, how it ended and what it said last."""
        self._failure = what
        died = _end(self._process, polite=False)
        self._drain.join(GRACE_S)
        if died is not None:
            what += f" (exit status {died})"
        words = "".join(f"\n  {line}" for line in self._last_words) or " nothing"
        return TestbedError(f"testbed `{self._command}` {what}; its last words on stderr:{words}")


def open_exec(argument: str, timeout: float) -> Testbed:
    """The testbed of `exec:COMMAND`."""
    return ExecTestbed(argument, timeout)


def _start(command: str) -> subprocess.Popen[str]:
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise InputError.of("--testbed", f"exec:{command}: {error}") from None
    if not words:
        raise InputError.of("--testbed", "exec: names no command", hint="exec:COMMAND, such as exec:'ssh bf2 agent'")
    try:
        return subprocess.Popen(
            words,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            encoding="utf-8",
            errors="replace",
            start_new_session=True,
        )
    except OSError as error:
        raise TestbedError(f"testbed `{command}` cannot be started: {error.strerror or error}") from None


def _listen(stdout: IO[str], answers: queue.Queue[str | None]) -> None:
    with contextlib.suppress(ValueError, OSError):
        while line := stdout.readline(LONGEST_LINE):
            answers.put(line)
    answers.put(None)


def _remember(stderr: IO[str], last_words: deque[str], hear: Callable[[str], None]) -> None:
    with contextlib.suppress(ValueError, OSError):
        while line := stderr.readline(LONGEST_LINE):
            last_words.append(line.rstrip())
            hear(last_words[-1])


def _end(process: subprocess.Popen[str], *, polite: bool) -> int | None:
    """End the program with everything it started; returns the exit status with which it left by itself, if it did.

    A polite end closes its stdin and gives it time to leave.
    """
    assert process.stdin is not None
    with contextlib.suppress(OSError):
        process.stdin.close()
    left = _wait(process, GRACE_S if polite else LAST_GASP_S)
    if left is None:
        _signal_group(process, signal.SIGTERM)
        _wait(process, GRACE_S)
    _signal_group(process, signal.SIGKILL)
    process.wait()
    return left


def _wait(process: subprocess.Popen[str], seconds: float) -> int | None:
    try:
        return process.wait(seconds)
    except subprocess.TimeoutExpired:
        return None


def _signal_group(process: subprocess.Popen[str], blow: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, blow)


def _short(line: str) -> str:
    line = line.strip()
    return line if len(line) <= 200 else line[:200] + "..."

"""A program that is spoken to in lines, and ended together with every process that it started."""

import contextlib
import os
import queue
import shlex
import signal
import subprocess
import time
import uuid
import weakref
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Event, Thread, current_thread, main_thread
from types import FrameType
from typing import IO

from profiler.testbed import TestbedError
from profiles import InputError
from profiles.faults import printable

LONGEST_LINE = 1 << 22  # characters of one line of stdout; a longer one is cut there
LONGEST_DIAGNOSTIC = 1 << 12
LAST_LINES = 10
UNREAD_LINES = 16
FULL_S = 0.01  # pause after which it is seen again whether unread lines were taken
GRACE_S = 2.0
LAST_OUTPUT_S = 0.2
WAIT_S = 0.5  # of one wait: a signal that comes between Python's check for signals and the wait is seen only after it
KILL_ROUNDS = 20
PROCESS_MARK = "PLACER_PROGRAM_"


class Program:
    """A running program, with its stdin and stdout as queues of lines.

    The program gets a session of its own, and an environment variable that marks it and every process that it starts.
    By the mark, `end` also finds processes that moved to a session of their own or lost their parent. A process that
    drops its environment, runs as another user or on another machine is not found. A program that was not ended, as
    after a signal at a bad moment, is killed when this process exits. `command`: as typed in a shell, but run without
    one. `on_stderr`: called with every line that the program writes to stderr, from a thread of its own. Raises
    `InputError` when `command` is empty, badly quoted or holds a NUL. Raises `TestbedError` when it cannot be started.
    """

    def __init__(self, command: str, on_stderr: Callable[[str], None] = lambda line: None) -> None:
        self._mark = f"{PROCESS_MARK}{uuid.uuid4().hex}"
        self._abandoned = weakref.finalize(self, _kill_marked, self._mark)
        self._process = _start(command, self._mark)
        # simple queues hold no lock that an interrupt in the middle of `receive` would leave locked
        self._requests: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        self._answers: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        self._last_lines: deque[str] = deque(maxlen=LAST_LINES)
        stdin, stdout, stderr = self._process.stdin, self._process.stdout, self._process.stderr
        assert stdin is not None and stdout is not None and stderr is not None
        writer = Thread(target=_write, args=(stdin, self._requests), daemon=True)
        self._ended = Event()
        self._reader = Thread(target=_read, args=(stdout, self._answers, self._ended), daemon=True)
        self._drain = Thread(target=_keep_last, args=(stderr, self._last_lines, on_stderr), daemon=True)
        with _interrupts_later():
            for thread in (writer, self._reader, self._drain):
                thread.start()

    @property
    def last_lines(self) -> list[str]:
        """The last lines that it wrote to stderr."""
        return list(self._last_lines)

    def send(self, line: str) -> None:
        """Write a line to its stdin, without waiting for the program to read it."""
        self._requests.put(line)

    def receive(self, timeout: float) -> str | None:
        """The next line of its stdout; None when there is no more. A line longer than `LONGEST_LINE` comes cut, with
        one character more than that. Raises `TimeoutError` when no line comes within `timeout` seconds."""
        until = time.monotonic() + timeout
        while True:
            left = max(until - time.monotonic(), 0.0)
            try:
                return self._answers.get(timeout=min(left, WAIT_S))
            except queue.Empty:
                if left <= WAIT_S:
                    raise TimeoutError from None

    def end(self, *, polite: bool) -> int | None:
        """End it with every process that it started; returns its exit status if it ended by itself. A polite end closes
        its stdin and gives it two seconds; then all processes get SIGTERM, and later SIGKILL."""
        self._requests.put(None)
        status = self._wait(GRACE_S if polite else LAST_OUTPUT_S)
        if status is None:
            self._signal_all(signal.SIGTERM)
            self._wait(GRACE_S)
        self._signal_all(signal.SIGKILL)
        _kill_marked(self._mark)
        self._process.wait()
        self._abandoned.detach()
        self._drain.join(GRACE_S)
        self._ended.set()
        self._reader.join(GRACE_S)
        return status

    def _wait(self, seconds: float) -> int | None:
        try:
            return self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            return None

    def _signal_all(self, number: signal.Signals) -> None:
        """Signal the program's process group and all that bear its mark."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, number)
        _signal_marked(self._mark, number)


@contextlib.contextmanager
def _interrupts_later() -> Iterator[None]:
    """Signals whose handlers may raise wait for the end of the block. A start of a thread waits on a lock of Python's
    own, which an exception at the wrong moment releases twice."""
    if current_thread() is not main_thread():
        yield
        return
    came: list[tuple[int, FrameType | None]] = []
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    raising = {number: handler for number, handler in handlers.items() if callable(handler)}
    for number in raising:
        signal.signal(number, lambda raised, frame: came.append((raised, frame)))
    try:
        yield
    finally:
        for number, handler in raising.items():
            signal.signal(number, handler)
        for raised, frame in came[:1]:
            raising[signal.Signals(raised)](raised, frame)


def shorten(text: str, longest: int = 200) -> str:
    """Text of another program as a message shows it: cut, and without control characters."""
    shown = printable(text.strip().expandtabs())
    return shown if len(shown) <= longest else shown[:longest] + "..."


def _start(command: str, mark: str) -> subprocess.Popen[str]:
    if "\0" in command:
        raise InputError.of("--testbed", "exec: the command holds a NUL character")
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise InputError.of("--testbed", f"exec:{command}: {error}") from None
    if not words:
        raise InputError.of("--testbed", "exec: names no command", hint="exec:COMMAND, such as exec:'ssh bf2 agent'")
    try:
        return subprocess.Popen(
            words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8",
            errors="replace", start_new_session=True, env={**os.environ, mark: "1"},
        )  # fmt: skip
    except OSError as error:
        raise TestbedError(f"testbed `{command}` cannot be started: {error.strerror or error}") from None


def _write(stdin: IO[str], lines: queue.SimpleQueue[str | None]) -> None:
    """Write lines until None comes or the program reads no more; then close its stdin."""
    with contextlib.suppress(OSError):
        while (line := lines.get()) is not None:
            stdin.write(line + "\n")
            stdin.flush()
    with contextlib.suppress(OSError):
        stdin.close()


def _read(stdout: IO[str], answers: queue.SimpleQueue[str | None], ended: Event) -> None:
    """Read lines, no more than `UNREAD_LINES` ahead, until there are none; after the end, what is left is dropped."""
    with contextlib.suppress(ValueError, OSError):
        while line := stdout.readline(LONGEST_LINE + 1):
            while answers.qsize() >= UNREAD_LINES and not ended.wait(FULL_S):
                pass
            if ended.is_set():
                break
            answers.put(line)
    answers.put(None)


def _keep_last(stderr: IO[str], last_lines: deque[str], on_stderr: Callable[[str], None]) -> None:
    with contextlib.suppress(ValueError, OSError):
        while line := stderr.readline(LONGEST_DIAGNOSTIC):
            last_lines.append(shorten(line, LONGEST_DIAGNOSTIC))
            on_stderr(last_lines[-1])


def _kill_marked(mark: str) -> None:
    """Kill all processes that bear the mark."""
    for _ in range(KILL_ROUNDS):  # again: a process may start another one meanwhile
        if not _signal_marked(mark, signal.SIGKILL):
            break
        time.sleep(0.01)


def _signal_marked(mark: str, number: signal.Signals) -> int:
    """Signal all processes that bear the mark; returns how many there were."""
    # The processes whose environment holds `mark`; none where there is no /proc.
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if f"{mark}=1".encode() in (folder / "environ").read_bytes().split(b"\0"):
                found.append(int(folder.name))
    marked = found
    for process in marked:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(process, number)
    return len(marked)

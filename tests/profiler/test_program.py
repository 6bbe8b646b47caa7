"""A program that is spoken to in lines."""

import queue
import signal
import sys
import time
from threading import Thread, active_count
from types import FrameType

import pytest

from profiler.protocol.program import Program


class _Interrupted:
    """Raises KeyboardInterrupt in this thread at the `at`-th step beneath the function that is called next."""

    def __init__(self, at: int) -> None:
        self.at = at

    def __call__(self, frame: FrameType, event: str, argument: object) -> "_Interrupted":
        if frame.f_globals.get("__name__") in ("queue", "threading", "profiler.protocol.program"):
            self.at -= 1
            if self.at < 0:
                sys.settrace(None)
                raise KeyboardInterrupt
        return self


def test_a_program_ends_wherever_an_interrupt_comes() -> None:
    """A signal is handled between any two steps of `receive`; a lock that stayed locked then made `end` wait."""
    at, interrupted = 0, True
    while interrupted:
        program, interrupted = Program("cat"), False
        program.send("a")
        sys.settrace(_Interrupted(at))
        try:
            program.receive(10.0)
        except KeyboardInterrupt:
            interrupted = True
        finally:
            sys.settrace(None)
        ending = Thread(target=program.end, kwargs={"polite": False}, daemon=True)
        ending.start()
        ending.join(20.0)
        assert not ending.is_alive(), f"interrupted at step {at}"
        at += 1
    assert at > 1


def test_nothing_reads_on_after_the_end() -> None:
    """A program that wrote more lines than are read ahead leaves no thread behind."""
    before = active_count()
    program = Program(f"{sys.executable} -c \"print('line\\n' * 100, flush=True); import time; time.sleep(60)\"")
    assert program.receive(20.0) == "line\n"
    program.end(polite=False)
    for _ in range(100):
        if active_count() <= before:
            break
        time.sleep(0.05)
    assert active_count() <= before


def test_an_interrupt_waits_until_the_threads_of_a_program_are_started(monkeypatch: pytest.MonkeyPatch) -> None:
    """In the middle of a start, an exception would release a lock of Python's own twice, and hide the interrupt."""
    started = []

    class Interrupted(Thread):
        def start(self) -> None:
            signal.raise_signal(signal.SIGINT)  # in this thread, before it returns
            super().start()
            started.append(self)

    monkeypatch.setattr("profiler.protocol.program.Thread", Interrupted)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # in the background, a shell has it ignored
    with pytest.raises(KeyboardInterrupt):
        Program("sleep 600")
    assert len(started) == 3 and signal.signal(signal.SIGINT, before) is signal.default_int_handler


def test_a_signal_that_comes_just_before_a_wait_is_seen_within_a_second(monkeypatch: pytest.MonkeyPatch) -> None:
    """Python then sees it after the wait only: an answer is waited for in short waits, of as much time in all."""
    program = Program("sleep 600")
    waits: list[float] = []

    class Silent:
        def get(self, timeout: float) -> str:
            waits.append(timeout)
            now[0] += timeout
            raise queue.Empty

    now = [0.0]
    monkeypatch.setattr("profiler.protocol.program.time.monotonic", lambda: now[0])
    monkeypatch.setattr(program, "_answers", Silent())
    with pytest.raises(TimeoutError):
        program.receive(3.2)
    monkeypatch.undo()
    program.end(polite=False)
    assert max(waits) < 1 and sum(waits) == pytest.approx(3.2)

"""How `placer chain update` reaches the `placer chain run` of the same directory: a socket that only its user opens."""

import errno
import fcntl
import hashlib
import json
import socket
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

import platformdirs

from profiles import Fault, InputError

WHOLE_S = 10.0  # for a request to come in


def socket_of(directory: Path) -> Path:
    """The socket of the rack that runs from a directory."""
    folder = platformdirs.user_cache_path("nf-placer") / "running"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return folder / hashlib.sha256(str(directory.resolve()).encode()).hexdigest()[:16]


@contextmanager
def listen_for_updates(directory: Path) -> Iterator[socket.socket]:
    """A socket that takes updates in the block. Raises InputError where the directory already runs."""
    path = socket_of(directory)
    with socket.socket(socket.AF_UNIX) as listener, path.with_suffix(".lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            hint = "`placer chain update` gives it new tables"
            raise InputError.of(str(directory), "already runs", hint=hint) from None
        path.unlink(missing_ok=True)  # of a run that was killed
        try:
            listener.bind(str(path))
        except OSError as error:
            raise InputError.of(str(path), f"cannot take updates: {error.strerror or error}") from None
        listener.listen()
        try:
            yield listener
        finally:
            path.unlink(missing_ok=True)


def answer_update(listener: socket.socket, update: Callable[[Mapping[str, str]], Mapping[str, float]]) -> None:
    """Take a request and answer it: how long its update took, or what is wrong."""
    with suppress(OSError):  # who asked is gone
        connection, _ = listener.accept()
        with connection, connection.makefile("rwb") as stream:
            connection.settimeout(WHOLE_S)
            try:
                texts = json.loads(stream.readline() or "{}")
                found: dict[str, object] = dict(update(texts)) if texts else {}
            except InputError as error:
                found = {"faults": [(fault.file, fault.message, fault.hint) for fault in error.faults]}
            except (OSError, ValueError) as error:
                found = {"faults": [(None, str(error), None)]}
            stream.write(json.dumps(found).encode() + b"\n")
            stream.flush()


def ask_running(directory: Path, texts: Mapping[str, str]) -> Mapping[str, float] | None:
    """Give the rack of the same user that runs from a directory new files; how long that took. None if none runs.

    Raises InputError when it does not take them, or cannot be asked.
    """
    with socket.socket(socket.AF_UNIX) as connection:
        try:
            connection.connect(str(socket_of(directory)))
        except OSError as error:
            if error.errno in (errno.ENOENT, errno.ECONNREFUSED):
                return None
            message = f"whether a rack runs from it cannot be seen: {error.strerror or error}"
            raise InputError.of(str(directory), message) from None
        line = b""
        with suppress(OSError), connection.makefile("rwb") as stream:
            stream.write(json.dumps(dict(texts)).encode() + b"\n")
            stream.flush()
            line = stream.readline()
        answer = json.loads(line or '{"faults": [[null, "it ended before it answered", null]]}')
    if "faults" in answer:
        running = f"the rack that runs from {directory}"
        raise InputError([Fault(file or running, None, None, text, hint) for file, text, hint in answer["faults"]])
    return {name: float(ms) for name, ms in answer.items()}

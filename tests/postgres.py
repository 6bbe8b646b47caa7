"""A PostgreSQL server for tests, on a free port of this machine; it is thrown away afterwards."""

import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

import pytest

VERSIONS = Path("/usr/lib/postgresql")  # where Debian installs the programs of servers
USER = "postgres"  # who runs the server where root must not

SETTINGS = (
    "fsync=on",
    "max_connections=50",
    "shared_buffers=64MB",
    "unix_socket_directories=''",
    "logging_collector=off",
)


def programs() -> Path | None:
    """The folder with `initdb` and `pg_ctl`; None where there is no server."""
    found = shutil.which("pg_ctl")
    folders = [Path(found).parent] if found else sorted(VERSIONS.glob("*/bin"), reverse=True)
    usable = os.geteuid() != 0 or shutil.which("runuser") is not None
    return next((one for one in folders if usable and (one / "initdb").exists()), None)


needs_postgres = pytest.mark.skipif(programs() is None, reason="there is no PostgreSQL server")


class Cluster:
    """A running server."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]

    def create(self) -> None:
        """Make an empty one, and start it."""
        if os.geteuid() == 0:
            shutil.chown(self.folder, USER)
        self._run("initdb", "-D", "data", "-U", USER, "--auth=trust", "--no-sync", "-E", "UTF8", "--locale=C")
        self.start()

    def start(self) -> None:
        """Start it, and wait until it takes connections."""
        given = " ".join(f"-c {one}" for one in SETTINGS)
        self._run("pg_ctl", "-D", "data", "-w", "-l", "log", "-o", f"-h 127.0.0.1 -p {self.port} {given}", "start")

    def stop(self, mode: str = "immediate") -> None:
        """Stop it."""
        self._run("pg_ctl", "-D", "data", "-w", "-m", mode, "stop")

    def restart(self, mode: str = "immediate") -> None:
        """Stop and start it; `immediate` is like a crash."""
        self.stop(mode)
        self.start()

    def cut(self, program: str) -> None:
        """End every connection of a program."""
        import psycopg

        ended = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = %s"
        with psycopg.connect(self.address("postgres"), autocommit=True) as connection:
            connection.execute(ended, (program,))

    def database(self) -> str:
        """The address of a new, empty database."""
        import psycopg

        name = f"t{uuid4().hex[:12]}"
        with psycopg.connect(self.address("postgres"), autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name}")
        return self.address(name)

    def address(self, database: str) -> str:
        """The address of a database."""
        return f"postgresql://{USER}@127.0.0.1:{self.port}/{database}"

    def _run(self, program: str, *arguments: str) -> None:
        folder = programs()
        assert folder is not None
        rights = ["runuser", "-u", USER, "--"] if os.geteuid() == 0 else []
        subprocess.run(
            [*rights, str(folder / program), *arguments], cwd=self.folder, check=True, stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip


@contextmanager
def cluster() -> Iterator[Cluster]:
    """A server as long as it is used."""
    with tempfile.TemporaryDirectory(prefix="placer-postgres-") as folder:
        one = Cluster(Path(folder))
        one.create()
        try:
            yield one
        finally:
            one.stop()

"""Files with operators' own data: found by the names that chains give them, and known by their SHA-256."""

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from hashlib import sha256
from pathlib import Path

from placer.rack.chain import Chain
from profiles import InputError

LARGEST_SOURCE = 100_000_000
CHANGED_HINT = "run `placer chain place` again: rates and limits hold for what it read"


@dataclass(frozen=True)
class SourceFile:
    """A file of own data. `name`: as chains name it. `path`: where it is. `origin`: of a copy, the file itself."""

    name: str
    path: Path
    content: bytes
    origin: Path | None = None

    @cached_property
    def sha256(self) -> str:
        return sha256(self.content).hexdigest()


@dataclass(frozen=True)
class RecordedSource:
    """What a plan says of a file that it was made with."""

    path: Path
    sha256: str
    origin: Path | None = None  # of a copy: the file itself


@dataclass
class SourceFolder:
    """Opens files of own data, each once.

    `folder`: where their names begin, but for those in `paths`. `recorded`: those of a plan, whose files must be as
    they were; None: any file.
    """

    folder: Path
    recorded: Mapping[str, RecordedSource] | None = None
    paths: Mapping[str, Path] = field(default_factory=dict)
    opened: dict[str, SourceFile] = field(default_factory=dict, init=False)

    def open(self, name: str) -> SourceFile:
        """The file of a name. Raises InputError when it cannot be read, or is not as the plan says."""
        if name not in self.opened:
            self.opened[name] = self._read(name)
        return self.opened[name]

    def _read(self, name: str) -> SourceFile:
        if self.recorded is None:
            return read_source(name, self.paths.get(name, self.folder / name))
        known = self.recorded.get(name)
        if known is None:
            raise InputError.of(name, "the plan names no such source", hint="`placer chain place` writes sources")
        source = read_source(name, known.path)
        if source.sha256 != known.sha256:
            raise InputError.of(str(known.path), "has changed since the chains were placed", hint=CHANGED_HINT)
        return replace(source, origin=known.origin)


def read_source(name: str, path: Path) -> SourceFile:
    """A file and its content. Raises InputError when it cannot be read, or is too large."""
    try:
        if path.exists() and not path.is_file() and not path.is_dir():  # a pipe may never end, nor be read twice
            raise InputError.of(str(path), "is no regular file")
        with path.open("rb") as file:
            content = file.read(LARGEST_SOURCE + 1)
    except (OSError, ValueError) as error:  # a name with a zero byte is a ValueError
        raise InputError.of(str(path), getattr(error, "strerror", None) or str(error)) from None
    if len(content) > LARGEST_SOURCE:
        raise InputError.of(str(path), f"is larger than {LARGEST_SOURCE // 10**6} MB")
    return SourceFile(name, path, content)


def permissions(chains: Sequence[Chain]) -> int:
    """The permissions of a file with these chains: nobody else may read keys that stand in the chains themselves."""
    texts = [text for chain in chains for nf in chain.nfs for text in nf.data.values() if isinstance(text, str)]
    return 0o600 if any(re.fullmatch("[0-9A-Fa-f]{16,}", text) for text in texts) else 0o666


def write_sources(sources: Mapping[str, SourceFile], beside: Path) -> dict[str, dict[str, str]]:
    """What a document says of files: their SHA-256, and their paths from the folder that the document is in."""
    folder = beside.resolve().parent
    return {
        name: {"path": os.path.relpath(source.path.resolve(), folder), "sha256": source.sha256}
        for name, source in sorted(sources.items())
    }

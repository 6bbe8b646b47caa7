"""The lines of a text file that people write: plain or gzipped, of a path, standard input or an open file."""

import codecs
import gzip
import io
import sys
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, TextIO, TypeAlias

from profiles import InputError

STDIN = "-"
LONGEST_LINE = 65_536

GZIP_MAGIC = b"\x1f\x8b"
BYTE_ORDER_MARK = "\ufeff"
Readable: TypeAlias = "io.BufferedReader[Any] | gzip.GzipFile"
UTF_16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


@dataclass(frozen=True)
class LineLimit:
    """How many lines a file may have after its header."""

    most: int
    noun: str  # what a line is, for messages: `arrivals`
    hint: str | None = None  # what to do about too many


def open_lines(source: str | TextIO, stack: ExitStack, limit: LineLimit) -> tuple[str, Iterator[str]]:
    """The name of a source for messages, and its lines, without byte order mark. `source`: a path of a plain or gzipped
    file, `-` for standard input, or an open text file. `stack`: closes what is opened. `limit`: of the lines. Raises
    `InputError` here or while lines are read: the file cannot be read, is no text, or exceeds a limit."""
    if not isinstance(source, str):
        return str(getattr(source, "name", "<text>")), iter(source)
    name = "<stdin>" if source == STDIN else source
    try:
        file = io.BufferedReader(sys.stdin.buffer if source == STDIN else io.FileIO(source))  # type: ignore[type-var]
        stack.callback(file.detach if source == STDIN else file.close)
        compressed = file.peek(2)[:2] == GZIP_MAGIC
    except OSError as error:
        raise InputError.of(name, error.strerror or str(error)) from error
    return name, _lines(stack.enter_context(gzip.open(file)) if compressed else file, name, limit, stack)


def _lines(file: Readable, name: str, limit: LineLimit, stack: ExitStack) -> Iterator[str]:
    """The lines of a file as text, each held to the limits as it is read."""
    number, encoding = 0, "UTF-8"
    readline: Callable[[int], bytes] = file.readline
    try:
        if file.peek(2)[:2] in UTF_16:
            encoding, readline = "UTF-16", _in_utf_8(file, stack)
        while raw := readline(LONGEST_LINE + 1):
            number += 1
            if len(raw) > LONGEST_LINE:
                raise InputError.of(name, f"the line is longer than {LONGEST_LINE:,} bytes", line=number)
            if number > limit.most + 1:
                raise InputError.of(name, f"holds more than {limit.most:,} {limit.noun}", hint=limit.hint)
            if b"\0" in raw:
                hint = f"save the file as UTF-8{', or as UTF-16 with a byte order mark' if encoding == 'UTF-8' else ''}"
                raise InputError.of(name, "holds a NUL byte: it is not text", line=number, hint=hint)
            text = raw.decode("utf-8")
            text = text.removeprefix(BYTE_ORDER_MARK) if number == 1 else text
            if BYTE_ORDER_MARK in text:
                hint = "files that were joined keep the mark of each: remove it"
                raise InputError.of(name, "holds a byte order mark inside the file", line=number, hint=hint)
            yield text
    except UnicodeDecodeError as error:
        line = number if encoding == "UTF-8" else None  # UTF-16 is decoded in blocks
        raise InputError.of(name, f"is not {encoding} text", line=line, hint="save the file as UTF-8") from error
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise InputError.of(name, f"is not a whole gzip file: {error}") from error
    except OSError as error:
        raise InputError.of(name, error.strerror or str(error)) from error


def _in_utf_8(file: Readable, stack: ExitStack) -> Callable[[int], bytes]:
    """`readline` of a file in UTF-16, whose lines come in UTF-8 without byte order mark."""
    text = io.TextIOWrapper(file, encoding="utf-16", newline="\n")
    stack.callback(text.detach)
    return lambda most: text.readline(most).encode()


def separator_of(header: Sequence[str]) -> str | None:
    """What separates the columns of a header instead of commas; None where commas do."""
    return next((separator for separator in (";", "\t", "|") if len(header) == 1 and separator in header[0]), None)

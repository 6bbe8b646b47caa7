"""What a chain gives an NF in place of a number: a file, a key or prefix itself, or rules; and how kinds read it."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from placer.rack.chain import OwnData
from placer.rack.files.sources import SourceFile, SourceFolder
from profiles.faults import Fault, InputError
from profiles.files.table_lines import TableForm, TableLine, WordError, read_table

MOST_KEY_LINES = 100
Entry = TypeVar("Entry")
FaultMaker = Callable[[str, str, str | None], Fault]
"""Makes a fault of a parameter, or of a part of one (`rules.1.dst_ip`), from a message and a hint."""


@dataclass(frozen=True)
class GivenData:
    """Own data of one parameter as its author gave it. `folder`: opens files. `fault`: names the parameter's place."""

    name: str
    value: OwnData
    folder: SourceFolder
    fault: FaultMaker

    def error(self, message: str, hint: str | None = None, within: str = "") -> InputError:
        """The error with one fault: of the parameter, or of a part of it."""
        return InputError([self.fault(f"{self.name}.{within}" if within else self.name, message, hint)])

    def file(self, hint: str | None = None) -> SourceFile:
        """The file that it names. Raises InputError when it names none, or one that cannot be read, with a hint."""
        if not isinstance(self.value, str):
            raise self.error("it takes the name of a file, no rules")
        try:
            return self.folder.open(self.value)
        except InputError as error:
            (fault,) = error.faults
            raise self.error(f"{fault.file}: {fault.message}", fault.hint or hint) from None

    def table(self, form: TableForm[Entry]) -> tuple[Entry, ...]:
        """The entries of the file. Raises InputError with the faults of all lines."""
        source = self.file(form.hint)
        return tuple(read_table(source.content, str(source.path), form)[0])

    def hex_digits(self, digits: int) -> bytes:
        """A key of so many hexadecimal digits: the text itself, or what stands in the file that it names."""
        if isinstance(self.value, str) and re.fullmatch(f"[0-9A-Fa-f]{{{digits}}}", self.value):
            return bytes.fromhex(self.value)
        if isinstance(self.value, str) and re.fullmatch("[0-9A-Fa-f]{16,}", self.value):
            raise self.error(f"{len(self.value)} hexadecimal digits, not {digits}")
        hint = f"{digits} digits, or the name of a file with them: `openssl rand -hex {digits // 2}` prints such"
        source = self.file(hint)
        form = TableForm(_digits_of_line, hint, "lines", MOST_KEY_LINES)
        lines, last = read_table(source.content, str(source.path), form)
        text = "".join(lines)
        if len(text) != digits:
            raise InputError.of(
                str(source.path), f"{len(text)} hexadecimal digits, not {digits}", line=last or None, hint=hint
            )
        return bytes.fromhex(text)


def _digits_of_line(line: TableLine) -> str:
    for word in line.words:
        if found := re.search("[^0-9A-Fa-f]", word.text):
            raise WordError(word.at + found.start(), f"'{found[0]}' is no hexadecimal digit")
    return "".join(word.text for word in line.words)


@dataclass(frozen=True)
class DataParameter:
    """A parameter that takes own data. `read`: makes entries of it, or raises InputError with every fault."""

    name: str
    help: str
    read: Callable[[GivenData], Any]

"""Tables as text, an entry a line in words, and `#` begins a comment: what `nfs/tables/table_file.c` reads, too."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from ipaddress import AddressValueError, IPv4Address
from typing import Generic, Literal, TypeVar, overload

from profiles.faults import Fault, InputError

MOST_WORDS = 8  # of a line
ADDRESS_BITS = 32

WORD = re.compile(r"[^ \t\r]+")
Entry = TypeVar("Entry")


class WordError(Exception):
    """What is wrong with a line: `at` is the character at which it shows, from 0."""

    def __init__(self, at: int, message: str) -> None:
        super().__init__(message)
        self.at = at


@dataclass(frozen=True)
class TableWord:
    """A word of a line, and its first character, from 0."""

    text: str
    at: int

    def number(self, low: int, high: int) -> int | None:
        """The whole number from `low` to `high` that it is; None if it is none."""
        value = int(self.text) if re.fullmatch(r"[0-9]{1,30}", self.text) else -1
        return value if low <= value <= high else None

    def prefix(self) -> tuple[int, int]:
        """Address and length of a prefix, an address, or `any`. Raises WordError where it is neither."""
        if self.text == "any":
            return 0, 0
        text, slash, length_text = self.text.partition("/")
        try:
            address = int(IPv4Address(text))
        except AddressValueError:
            raise WordError(self.at, f"{self.text}: not an IPv4 address") from None
        length = TableWord(length_text, 0).number(0, ADDRESS_BITS) if slash else ADDRESS_BITS
        if length is None:
            raise WordError(self.at, f"{self.text}: a prefix length is from 0 to {ADDRESS_BITS}")
        first = address >> ADDRESS_BITS - length << ADDRESS_BITS - length
        if first != address:
            shown = f"{IPv4Address(first)}/{length}"
            raise WordError(self.at, f"{self.text}: bits beyond the prefix are set, other than in {shown}")
        return address, length


@dataclass
class TableLine:
    """The words of a line, read from left to right."""

    words: list[TableWord]
    rest: str  # all words, as they stand
    end: int  # of the last word
    taken: int = field(default=0, init=False)

    @property
    def next(self) -> TableWord | None:
        return self.words[self.taken] if self.taken < len(self.words) else None

    @overload
    def take(self, missing: str) -> TableWord: ...
    @overload
    def take(self, missing: Literal[None] = None) -> TableWord | None: ...
    def take(self, missing: str | None = None) -> TableWord | None:
        """The next word. Raises WordError with `missing` where there is none; None without `missing`."""
        word = self.next
        if word is None and missing is not None:
            raise WordError(self.end, missing)
        self.taken += 1
        return word

    def refuse_rest(self) -> None:
        """Raise WordError where a word is left."""
        if word := self.next:
            raise WordError(word.at, f"{word.text}: not expected")


@dataclass(frozen=True)
class TableForm(Generic[Entry]):
    """What a table is made of: `read` makes an entry of a line, or raises WordError.

    `hint`: how a line is written. `noun`: what entries are, and `most`: how many a table may have. `most_words`: of a
    line. `key`: of an entry that no other may have, and `twice`: what is wrong with a second one.
    """

    read: Callable[[TableLine], Entry]
    hint: str
    noun: str
    most: int
    most_words: int = MOST_WORDS
    key: Callable[[Entry], object] | None = None
    twice: str = ""


def read_table(content: bytes, file: str, form: TableForm[Entry]) -> tuple[list[Entry], int]:
    """The entries of a file, and the number of its last line with any. Raises InputError with every wrong line."""
    entries: list[Entry] = []
    faults: list[Fault] = []
    first: dict[object, int] = {}
    last = 0
    for number, text in text_lines(content, file, faults):
        line = text.partition("#")[0]
        words = [TableWord(found[0], found.start()) for found in WORD.finditer(line)]
        if not words:
            continue
        last = number
        if len(entries) == form.most:
            faults.append(Fault(file, number, None, f"more than {form.most:,} {form.noun}", form.hint))
            break
        try:
            if len(words) > form.most_words:
                raise WordError(words[form.most_words].at, f"more than {form.most_words} words")
            end = words[-1].at + len(words[-1].text)
            entry = form.read(TableLine(words, line[words[0].at : end], end))
            if form.key is not None and first.setdefault(form.key(entry), number) != number:
                raise WordError(words[0].at, f"{form.twice}, in line {first[form.key(entry)]}")
            entries.append(entry)
        except WordError as error:
            column = f"column {error.at + 1}"
            faults.append(Fault(file, number, column, str(error), form.hint))
    if faults:
        raise InputError(faults)
    return entries, last


def text_lines(content: bytes, file: str, faults: list[Fault]) -> Iterator[tuple[int, str]]:
    """The number and text of each line; a line with a zero byte becomes a fault. Bytes that are no UTF-8 are
    replaced: no entry has them, but a comment may."""
    lines = content.removeprefix(b"\xef\xbb\xbf").split(b"\n")
    for number, line in enumerate(lines if lines[-1] else lines[:-1], start=1):
        if b"\0" in line:
            faults.append(Fault(file, number, None, "a zero byte: this is not a text file"))
        else:
            yield number, line.decode("utf-8", "replace")

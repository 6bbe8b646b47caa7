"""Faults in the user's input, collected so that a file is refused once, with all that is wrong in it."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from difflib import get_close_matches

MOST_SHOWN_FAULTS = 20
LONGEST_FAULT = 1000  # characters; a word of a file may have millions


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing that is wrong, and where."""

    file: str  # the file as the user named it, or what stands for it (`--fleet`, `<stdin>`)
    line: int | None  # 1-based; None when the fault is not of one line
    column: str | None  # the column, key or parameter; None when the fault is of the whole line
    message: str  # what is wrong, with the value that was found
    hint: str | None = None  # what to do about it

    def __str__(self) -> str:
        place = self.file if self.line is None else f"{self.file}:{self.line}"
        column = "" if self.column is None else f"{self.column}: "
        message = self.message if len(self.message) <= LONGEST_FAULT else f"{self.message[:LONGEST_FAULT]}..."
        return printable(f"{place}: {column}{message}")


class InputError(Exception):
    """Input that is refused whole; the command line prints its faults and exits with 2."""

    def __init__(self, faults: Sequence[Fault]) -> None:
        self.faults = tuple(faults)
        super().__init__(self.render())

    def __reduce__(self) -> tuple[type["InputError"], tuple[tuple[Fault, ...]]]:
        return type(self), (self.faults,)  # so that a process of `placer size` or `placer compare` hands it on

    @classmethod
    def of(
        cls, file: str, message: str, *, line: int | None = None, column: str | None = None, hint: str | None = None
    ) -> "InputError":
        """An error with one fault."""
        return cls([Fault(file, line, column, message, hint)])

    def render(self) -> str:
        """At most twenty faults, a line each, then how many more, then each distinct hint once."""
        lines = [str(fault) for fault in self.faults[:MOST_SHOWN_FAULTS]]
        if len(self.faults) > MOST_SHOWN_FAULTS:
            lines.append(f"... and {len(self.faults) - MOST_SHOWN_FAULTS} more")
        hints = dict.fromkeys(fault.hint for fault in self.faults[:MOST_SHOWN_FAULTS] if fault.hint)
        return "\n".join(lines + [f"hint: {hint}" for hint in hints])


@contextmanager
def collect_faults(faults: list[Fault]) -> Iterator[None]:
    """Appends the faults of input that the block refuses, so that what comes behind it is read, too."""
    try:
        yield
    except InputError as error:
        faults += error.faults


def printable(text: str) -> str:
    """Text of the user, or of another program, as a message shows it: without control characters and line ends."""
    return "".join(character if character.isprintable() else "\N{REPLACEMENT CHARACTER}" for character in text)


def suggestion(name: str, known: Iterable[str]) -> str:
    """`did you mean X?` for the known name closest to `name`, whatever its case, else `one of X, Y, Z`."""
    by_lower_case = {word.lower(): word for word in known}
    near = get_close_matches(name.lower(), by_lower_case, n=1)
    return f"did you mean {by_lower_case[near[0]]}?" if near else f"one of {', '.join(by_lower_case.values())}"

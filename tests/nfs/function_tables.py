"""Tables of parameters and counters in docs/network-functions/, as `nf-run --list` prints them.

`python -m tests.nfs.function_tables` renews them.
"""

import re
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "docs" / "network-functions"
PAGES = {path: path.read_text(encoding="utf-8") for path in sorted(FOLDER.glob("*.md"))}
PROGRAM = ROOT / "build" / "nfs" / "run" / "nf-run"

TABLES = re.compile(r"<!-- tables of (?P<name>\w+) -->\n.*?<!-- end -->\n", re.DOTALL)
PARAMETER = re.compile(r'  (?P<name>\S+) +(?P<does>.*) \((?:"(?P<text>.*)"|(?P<number>\S+); (?P<range>\S+ to \S+))\)')


@dataclass(frozen=True)
class Function:
    """A network function as its program lists it."""

    name: str
    parameters: tuple[tuple[str, str, str, str], ...]  # name, default, range, and what it does
    counters: tuple[tuple[str, str], ...]

    def tables(self) -> str:
        """Its tables, between the marks of the page."""
        blocks = []
        if self.parameters:
            rows = (
                f"| `{name}` | {default} | {span} | {_cell(does)} |" for name, default, span, does in self.parameters
            )
            blocks.append(_table("| parameter | default | range | |", 4, rows))
        rows = (f"| `{name}` | {_cell(does)} |" for name, does in self.counters)
        blocks.append(_table("| counter | counts |", 2, rows))
        return f"<!-- tables of {self.name} -->\n\n" + "\n".join(blocks) + "\n<!-- end -->\n"


def listed(program: Path = PROGRAM) -> list[Function]:
    """All functions of a build, in the order of their names."""
    names = [line.split()[0] for line in _printed(program).splitlines()]
    return [_function(name, _printed(program, "--nf", name)) for name in names]


def tables_of(page: str) -> list[str]:
    """The functions whose tables are marked in a page, in its order."""
    return [found["name"] for found in TABLES.finditer(page)]


def renewed(page: str, functions: Iterable[Function]) -> str:
    """The page with the tables of these functions."""
    known = {function.name: function for function in functions}
    return TABLES.sub(lambda found: known[found["name"]].tables() if found["name"] in known else found[0], page)


def _table(head: str, columns: int, rows: Iterable[str]) -> str:
    return "\n".join([head, "|" + "---|" * columns, *rows]) + "\n"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _printed(program: Path, *arguments: str) -> str:
    return subprocess.run([program, "--list", *arguments], capture_output=True, text=True, check=True).stdout


def _function(name: str, listing: str) -> Function:
    _, *sections = listing.strip().split("\n\n")
    lines = {section.partition(":\n")[0]: section.splitlines()[1:] for section in sections}
    return Function(
        name,
        tuple(_parameter(line) for line in lines.get("parameters", ())),
        tuple((words[0], words[1]) for words in (line.split(maxsplit=1) for line in lines["counters"])),
    )


def _parameter(line: str) -> tuple[str, str, str, str]:
    found = PARAMETER.fullmatch(line)
    assert found, line
    if found["range"]:
        return found["name"], found["number"], found["range"], found["does"]
    return found["name"], f"`{_cell(found['text'])}`" if found["text"] else "empty", "text", found["does"]


if __name__ == "__main__":
    functions = listed()
    for path, text in PAGES.items():
        path.write_text(renewed(text, functions), encoding="utf-8")

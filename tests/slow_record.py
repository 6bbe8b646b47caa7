"""`make slow` for hours: notes what each test took, and leaves out what has passed with the same files.

`python -m tests.slow_record FILE` prints the last figures as a page of the documentation.
"""

import json
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

PAGE = """# Slow tests

`make slow` runs what takes longer than `make test-all` may: hundreds of kills, thousands of random instances, other
processors, sanitizers. It goes on where it was interrupted. The last figures, on {processor};
what is not listed has not been recorded yet:

| tests | passed | skipped | minutes | commit |
|---|--:|--:|--:|---|
{rows}
"""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--record", type=Path, metavar="FILE", help="note results here, and leave out what passed")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what has passed with these files."""
    tree = files_of_today()
    passed = {one["test"] for one in read(config.option.record) if one["files"] == tree and one["outcome"] == "passed"}
    items[:] = [item for item in items if item.nodeid not in passed]


def pytest_configure(config: pytest.Config) -> None:
    """Only the process that sees all results notes them."""
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(Recorder(config.option.record))


class Recorder:
    """Adds a line for each test that ended."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.of_today = {"files": files_of_today(), "commit": _git("rev-parse", "--short", "HEAD")}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call" or report.outcome != "passed":
            line = {"test": report.nodeid, "outcome": report.outcome, "seconds": round(report.duration, 1)}
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with self.path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(line | self.of_today) + "\n")


def files_of_today() -> str:
    """A name of what git knows of the files as they are."""
    return _git("rev-parse", f"{_git('stash', 'create') or 'HEAD'}^{{tree}}")


def _git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], capture_output=True, text=True, check=True).stdout.strip()


def read(path: Path) -> Iterator[dict[str, object]]:
    """What was noted."""
    if path.exists():
        yield from map(json.loads, path.read_text(encoding="utf-8").splitlines())


def page_of(path: Path) -> str:
    """The page: the last result of each test, a row for each file."""
    last = {str(one["test"]): one for one in read(path)}
    files = defaultdict(list)
    for test, result in sorted(last.items()):
        files[test.partition("::")[0]].append(result)
    rows = []
    for name, results in files.items():
        counted = [sum(one["outcome"] == outcome for one in results) for outcome in ("passed", "skipped")]
        minutes = sum(float(str(one["seconds"])) for one in results) / 60
        commits = ", ".join(sorted({str(one["commit"]) for one in results}))
        rows.append(f"| `{name}` | {counted[0]} | {counted[1]} | {minutes:.1f} | {commits} |")
    return PAGE.format(processor=_processor(), rows="\n".join(rows))


def _processor() -> str:
    lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return f"{len(names)} cores of {names[0]}" if names else "this machine"


if __name__ == "__main__":
    sys.stdout.write(page_of(Path(sys.argv[1])))

"""docs/network-functions/: it has every function of the build, and its examples run."""

import re
import subprocess
from pathlib import Path

import pytest

from tests.nfs.captures import udp_packet, write_capture
from tests.nfs.function_tables import FOLDER, PAGES, PROGRAM, ROOT, Function, listed, renewed, tables_of

OVERVIEW = FOLDER / "index.md"
TEXT = "".join(PAGES.values())
EXAMPLES = [
    example
    for path, text in PAGES.items()
    if path != OVERVIEW
    for example in re.findall(r"```sh\n(.*?)```", text, re.DOTALL)
]


@pytest.fixture(scope="module")
def functions() -> list[Function]:
    """The functions of the normal build."""
    if not PROGRAM.exists():
        pytest.skip("nf-run is not built: `make nfs` builds it")
    return listed()


def test_every_function_has_its_tables(functions: list[Function]) -> None:
    """A function that is added must be described; the one that users add in an example need not."""
    assert sorted(tables_of(TEXT)) == [one.name for one in functions if one.name != "PortCounter"]


def test_parameters_and_counters_are_those_of_the_build(functions: list[Function]) -> None:
    """Names, defaults, ranges and what they do; `python -m tests.nfs.function_tables` renews them."""
    assert renewed(TEXT, functions) == TEXT


def test_every_function_is_in_the_overview(functions: list[Function]) -> None:
    """One row each, which leads to the page with its tables; no page is left out."""
    rows = re.findall(r"^\| \[(\w+)\]\(([\w-]+\.md)\)", PAGES[OVERVIEW], re.MULTILINE)
    assert rows == sorted((name, path.name) for path, text in PAGES.items() for name in tables_of(text))
    linked = set(re.findall(r"\(([\w-]+\.md)\)", PAGES[OVERVIEW]))
    assert linked == {path.name for path in PAGES if path != OVERVIEW}


@pytest.mark.parametrize("example", EXAMPLES, ids=[re.findall(r"--nf (\w+)", example)[0] for example in EXAMPLES])
def test_examples_run(functions: list[Function], tmp_path: Path, example: str) -> None:
    """Each with exit status 0, from a folder that has the build and a capture."""
    (tmp_path / "build").symlink_to(ROOT / "build")
    write_capture(tmp_path / "in.pcap", [udp_packet(ports=(1000 + i, 53), payload=bytes(900)) for i in range(8)])
    done = subprocess.run(
        ["sh", "-ec", example], cwd=tmp_path, capture_output=True, text=True, check=False, timeout=120
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert all('"received": 8' in line or '"received":8' in line for line in done.stdout.splitlines())


def test_requirements_have_their_tests() -> None:
    """Each is a fact of a test in C, or a module of these tests; every function has some, or the page names it."""
    sources = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "nfs" / "tests").glob("test_*.c"))
    facts = set(re.findall(r"TEST\w*\((\w+)", sources)) | {
        path.stem for path in Path(__file__).parent.glob("test_*.py")
    }
    text = PAGES[FOLDER / "requirements.md"]
    rows = re.findall(r"^\|.*\| `(\w+)` \|$", text, re.MULTILINE)
    assert {name for page in PAGES.values() for name in tables_of(page)} <= set(re.findall(r"\w+", text))
    assert len(rows) > 40
    assert set(rows) <= facts

"""The documentation: its commands exist, print what it shows, and the site is built without a warning."""

import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest
from typer.main import get_command

from placer.cli import COMMAND_PANELS, COMMANDS, app
from tests.shown_output import PAGES, REPO, Shown, shown_outputs

README = REPO / "README.md"
CODE = ("placer", "predictor", "profiler", "profiles", "experiments", "benches", "examples", "tests")
MOST_README_BYTES = 10_000
MOST_PAGE_BYTES = 40_000
COPIED = ("placer.strategies.half_full", "placer.model.constraints.nic_model")  # examples, which a reader copies first
LONGEST_LINE = 92  # characters of a code line: longer ones are cut off at the edge of a page
SLOW = "size"  # a command that takes minutes
LONG = "traces/arrivals-500.csv"  # a trace on which every command takes seconds


def commands() -> Iterator[tuple[str, list[str]]]:
    """Page and words of every line in a code block that calls `placer`."""
    for page in PAGES:
        for block in re.findall(r"```(?:sh|console)\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL):
            for line in block.replace("\\\n", " ").splitlines():
                if found := re.match(r"(?:\$ )?placer (.*)", line):
                    yield page.name, shlex.split(re.split(r"\s[|>#]", found[1])[0])


def test_every_command_that_is_shown_exists() -> None:
    """Its name is a command, and its options are options of it."""
    known = get_command(app)
    shown = list(commands())
    assert len(shown) > 15
    for page, (name, *words) in shown:
        command = known.get_command(None, name)  # type: ignore[attr-defined]
        assert command is not None, f"{page}: placer {name}"
        if hasattr(command, "commands"):
            assert words and words[0] in command.commands, f"{page}: placer {name} {' '.join(words[:1])}"
            command = command.commands[words[0]]
        options = {option for each in command.params for option in (*each.opts, *each.secondary_opts)} | {"--help"}
        for word in words:
            if word.startswith("--"):
                assert word.partition("=")[0] in options, f"{page}: placer {name} {word}"


def test_every_command_is_documented() -> None:
    """The page of commands has a row for each, under the heading of the help; README says who needs it."""
    page = (REPO / "docs/reference/commands.md").read_text(encoding="utf-8")
    sections = dict(section.split("\n", 1) for section in page.split("\n## ")[1:])
    assert list(sections) == list(COMMAND_PANELS)
    for heading, names in COMMAND_PANELS.items():
        for name in names:
            assert f"| `placer {name}" in sections[heading], name
    needed = [row for row in README.read_text(encoding="utf-8").splitlines() if row.startswith("| ")]
    assert {name for name in COMMANDS if not any(f"`{name}`" in row for row in needed)} == set()


def test_links_of_the_readme_lead_somewhere() -> None:
    """It is no page of the site, whose build checks all others."""
    links = re.findall(r"\]\((?!http)([^)#]+)", README.read_text(encoding="utf-8"))
    assert len(links) > 10
    assert [link for link in links if not (REPO / link).exists()] == []


def test_pages_are_short() -> None:
    """README is read before a decision, a page in one sitting."""
    assert README.stat().st_size <= MOST_README_BYTES
    assert {page.name for page in PAGES if page.stat().st_size > MOST_PAGE_BYTES} == set()


def test_pages_that_code_names_exist() -> None:
    for path in (path for folder in CODE for path in (REPO / folder).rglob("*.py")):
        for name in re.findall(r"docs/[\w/-]+\.md", path.read_text(encoding="utf-8")):
            assert (REPO / name).exists(), f"{path.relative_to(REPO)}: {name}"


def test_moved_import_paths_exist() -> None:
    """The last column of the page has what is imported today, the first what is gone."""
    page = (REPO / "docs/reference/moved.md").read_text(encoding="utf-8")
    rows = [row.split("|")[1:3] for row in page.splitlines() if row.startswith("| ")][1:]
    assert len(rows) > 15
    for _, today in rows:
        assert all(find_module(name) for name in re.findall(r"`([\w.]+)`", today)), today


def test_modules_and_files_that_pages_name_exist() -> None:
    """Each module of the API pages, and each source file and folder named in text."""
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        for module in re.findall(r"^::: ([\w.]+)$", text, re.MULTILINE):
            assert find_module(module), f"{page.name}: {module}"
        for name in re.findall(
            r"(?<![\w/.-])(?:placer|predictor|profiler|benches|experiments|tests|nfs)/[a-z0-9_/]+\.(?:py|c|h)\b", text
        ):
            assert (REPO / name).exists(), f"{page.name}: {name}"


def test_python_that_is_shown_imports_what_exists() -> None:
    """Each name of the project's packages that an example imports."""
    shown = [
        (page.name, line)
        for page in PAGES
        for block in re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
        for line in block.splitlines()
        if re.match(rf"from (?:{'|'.join(CODE)})\b", line)
    ]
    assert len(shown) > 10
    for page, line in shown:
        found = re.fullmatch(r"from (\S+) import (.+)", line)
        assert found, f"{page}: {line}"
        if found[1] not in COPIED:
            module = import_module(found[1])
            missing = [name for name in found[2].split(", ") if not hasattr(module, name)]
            assert not missing, f"{page}: {line}"


def find_module(name: str) -> bool:
    """Whether a module of the project, or a public name of one, is called so."""
    return any(
        (REPO / path).exists()
        for base in (name, name.rpartition(".")[0])
        for path in (f"{base.replace('.', '/')}.py", f"{base.replace('.', '/')}/__init__.py")
    )


@pytest.mark.long
def test_the_site_is_built_without_a_warning(tmp_path: Path) -> None:
    """Every link leads somewhere and every docstring is understood."""
    pytest.importorskip("mkdocs", reason="mkdocs is not installed: the site is not built")
    pytest.importorskip("mkdocstrings", reason="mkdocstrings is not installed: the site is not built")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path / "site")]
    built = subprocess.run(command, cwd=REPO, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr
    assert (tmp_path / "site" / "reference" / "studies.html").is_file()


def shown_by_command() -> Iterator[object]:
    """Every output that is shown, those of slow and long commands marked."""
    for one in shown_outputs():
        words = one.command.split()
        marks = [pytest.mark.slow] if words[0] == SLOW else [pytest.mark.long] if LONG in words else []
        yield pytest.param(one, id=f"{one.page.name}: {one.program} {one.command}", marks=marks)


@pytest.mark.long
@pytest.mark.parametrize("shown", [*shown_by_command()])
def test_commands_print_what_is_shown(shown: Shown) -> None:
    """`python -m tests.shown_output` renews a page whose output changed."""
    if missing := shown.missing():
        pytest.skip(missing)
    printed = shown.printed()
    assert shown.matches(printed), printed


def test_code_lines_fit_the_page() -> None:
    for page in PAGES:
        for block in re.findall(r"```(?:sh|toml|python|csv)\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL):
            assert [line for line in block.splitlines() if len(line) > LONGEST_LINE] == [], page.name

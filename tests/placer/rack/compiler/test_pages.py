"""What the docs say of NFs is what the library knows."""

import re
from collections.abc import Iterator
from pathlib import Path

from placer.rack.compiler.compile import compile_rack
from placer.rack.compiler.library.nf_kind import NF_KINDS
from placer.report.rack.compiled_rack import CodeShare, code_share, share_text
from tests.placer.rack.compiler.racks import random_plan

REPO = Path(__file__).parents[4]
COMPILE = (REPO / "docs/how-to/compile.md").read_text(encoding="utf-8")
CHAINS = (REPO / "docs/formats/chains.md").read_text(encoding="utf-8")
COLUMNS = ("server", "switch", "smartnic", "openflow")


def rows_under(heading: str, page: str) -> Iterator[list[str]]:
    """The cells of each row of the first table below a heading."""
    lines = page[page.index(f"{heading}\n") :].splitlines()
    table = [line for line in lines if line.startswith("|")]
    for line in lines[lines.index(table[0]) + 2 :]:
        if not line.startswith("|"):
            return
        yield [cell.strip() for cell in line.strip("|").split("|")]


def test_the_table_of_platforms_has_every_network_function() -> None:
    """With the platforms that its kind names."""
    shown = {
        name: {column for column, cell in zip(COLUMNS, cells, strict=True) if cell}
        for names, *cells in rows_under("## What each platform can run", COMPILE)
        for name in names.split(", ")
    }
    assert shown == {name: set(NF_KINDS[name].platforms) for name in NF_KINDS}


def test_the_table_of_parameters_has_each_with_its_default() -> None:
    shown = {
        name: {key: float(value) for key, value in re.findall(r"(\w+)=(\d+)", text)}
        for names, text in rows_under("## Parameters of NFs", CHAINS)
        for name in names.split(", ")
    }
    assert shown == {name: {one.name: one.default for one in NF_KINDS[name].parameters} for name in NF_KINDS}


def test_the_network_function_that_is_shown_is_the_one_in_use() -> None:
    """All of Tunnel for the switch but its imports."""
    (shown,) = re.findall(r"```python\n(@BLOCKS.*?)```", COMPILE, re.DOTALL)
    assert (REPO / "placer/rack/compiler/switch/nfs/tunnel.py").read_text(encoding="utf-8").endswith(shown)


def test_lines_are_counted_by_who_wrote_them() -> None:
    """Steering is a part of what is generated, and all NFs of a rack have an author."""
    share = code_share(compile_rack(random_plan(3), "plan"))
    assert share is not None
    assert 0 < share.steering <= share.generated
    assert share.written > 0


def test_the_published_share_stands_beside() -> None:
    """A quarter of 400 lines; Lemur's are named."""
    text = share_text(CodeShare(100, 60, 300))
    assert text.startswith("100 lines generated, 60 of them steer packets on the switch; NF authors wrote 300: 25 %")
    assert "820 of 1700" in text

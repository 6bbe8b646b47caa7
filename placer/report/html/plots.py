"""The charts of a page as files for papers: SVG and PNG, in light colours."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import vl_convert

from placer.report.html import theme
from placer.report.html.page import Page, spec_of, write_page
from profiles.aside import file_aside

WIDTH = 560
PIXELS_PER_POINT = 2.0


def write_plots(page: Page, folder: Path) -> list[Path]:
    """Write every chart of the page as `NAME.svg` and `NAME.png`; the files written."""
    written = []
    for figure in (figure for section in page.sections for figure in section.charts):
        spec = spec_of(figure.chart, theme.on_paper) | {"width": WIDTH, "background": theme.on_paper("ground")}
        room = spec["usermeta"]
        spec["config"]["legend"]["columns"] = max((WIDTH - room["beside"]) // room["legend"], 1)
        drawn = {
            "svg": vl_convert.vegalite_to_svg(spec).encode(),
            "png": vl_convert.vegalite_to_png(spec, scale=PIXELS_PER_POINT),
        }
        for kind, content in drawn.items():
            path = folder / f"{figure.name}.{kind}"
            with file_aside(path) as aside:
                aside.write_bytes(content)
            written.append(path)
    return written


def deliver(page: Page, report: Path | None, plots: Path | None, *, made_by: str = "") -> None:
    """Write the page, its charts, or both, where a path is told; `made_by` is the command that makes it again."""
    if report is not None:
        write_page(replace(page, made_by=made_by), report)
    if plots is not None:
        write_plots(page, plots)

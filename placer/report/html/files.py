"""A page and its charts as files: HTML for people, SVG and PNG in light colours for papers."""

from dataclasses import replace
from pathlib import Path

import vl_convert

from placer.report.html import theme
from placer.report.html.page import Page, render, spec_of
from profiles.aside import Files, write_files

CHART_WIDTH = 560
PIXELS_PER_POINT = 2.0


def page_files(page: Page, report: Path | None, plots: Path | None, *, made_by: str = "") -> Files:
    """The page, its charts, or both, where a path is given; `made_by` is the command that makes the page again."""
    files: Files = {}
    if report is not None:
        files[report] = render(replace(page, made_by=made_by)).encode()
    return files if plots is None else files | plot_files(page, plots)


def plot_files(page: Page, folder: Path) -> Files:
    """Every chart of the page as `NAME.svg` and `NAME.png`."""
    files: Files = {}
    for figure in (figure for section in page.sections for figure in section.charts):
        spec = spec_of(figure.chart, theme.on_paper) | {"width": CHART_WIDTH, "background": theme.on_paper("ground")}
        widths = spec["usermeta"]
        spec["config"]["legend"]["columns"] = max((CHART_WIDTH - widths["axis"]) // widths["legend"], 1)
        files[folder / f"{figure.name}.svg"] = vl_convert.vegalite_to_svg(spec).encode()
        files[folder / f"{figure.name}.png"] = vl_convert.vegalite_to_png(spec, scale=PIXELS_PER_POINT)
    return files


def write_page(page: Page, path: Path) -> None:
    """Write the page aside, then rename."""
    write_files(page_files(page, path, None, made_by=page.made_by))


def write_plots(page: Page, folder: Path) -> list[Path]:
    """Write every chart of the page as `NAME.svg` and `NAME.png`; the files written."""
    return write_files(plot_files(page, folder))

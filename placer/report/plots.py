"""The charts of a page as files for papers: SVG and PNG, in light colours."""

from __future__ import annotations

from pathlib import Path

import vl_convert

from placer.report import theme
from placer.report.page import Page, spec_of
from profiles.aside import file_aside

WIDTH = 560
PIXELS_PER_POINT = 2.0


def write_plots(page: Page, folder: Path) -> list[Path]:
    """Write every chart of the page as `NAME.svg` and `NAME.png`; the files written."""
    written = []
    for figure in (figure for section in page.sections for figure in section.figures):
        spec = spec_of(figure.chart, theme.on_paper) | {"width": WIDTH, "background": theme.on_paper("ground")}
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

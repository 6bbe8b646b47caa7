"""Reports: one self-contained HTML page of what a run, a study or a sizing found. Read `of_run.py` first."""

from placer.report.of_run import page_of_run
from placer.report.page import Figure, Page, Picture, Section, Tile, write_page
from placer.report.plots import deliver, write_plots

__all__ = ["Figure", "Page", "Picture", "Section", "Tile", "deliver", "page_of_run", "write_page", "write_plots"]

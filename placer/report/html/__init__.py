"""Reports: one self-contained HTML page of what a run, a study or a sizing found. Read `run.py` first."""

from placer.report.html.page import Figure, Page, Picture, Section, Tile, write_page
from placer.report.html.plots import deliver, write_plots
from placer.report.html.run import page_of_run

__all__ = ["Figure", "Page", "Picture", "Section", "Tile", "deliver", "page_of_run", "write_page", "write_plots"]

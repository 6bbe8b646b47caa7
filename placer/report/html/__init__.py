"""Reports: one self-contained HTML page about a run, a study, a sizing or a diagnosis. Read `run.py` first."""

from placer.report.html.files import page_files, write_page, write_plots
from placer.report.html.page import Figure, Page, Picture, Section, Tile
from placer.report.html.run import page_of_run

__all__ = ["Figure", "Page", "Picture", "Section", "Tile", "page_files", "page_of_run", "write_page", "write_plots"]

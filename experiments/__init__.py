"""One file per table or figure of the papers: runs it, prints it beside the published numbers."""

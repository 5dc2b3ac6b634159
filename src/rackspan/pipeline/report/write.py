"""Writing the page: whole or not at all."""

from pathlib import Path

from rackspan.disk import replace_file, writing_output
from rackspan.pipeline.report.data import ReportData
from rackspan.pipeline.report.page import render


def write_report(data: ReportData, path: Path) -> None:
    """Write the page, replacing an older one in a single step. Errors: UsageError, naming the path."""
    page = render(data)
    with writing_output(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        # A rack's name may hold what UTF-8 cannot; a question mark for it is no reason to have no report.
        replace_file(path, page, errors="replace")

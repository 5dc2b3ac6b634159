"""Writes the page atomically."""

from pathlib import Path

from rackspan.disk import replace_file, writing_output
from rackspan.report.data import ReportData
from rackspan.report.page import render


def write_report(data: ReportData, path: Path) -> None:
    """Write the page, replacing an older one in a single step. Errors: UsageError, naming the path."""
    page = render(data)
    with writing_output(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        # A rack's name may contain characters that UTF-8 cannot encode; each becomes a `?`.
        replace_file(path, page, errors="replace")

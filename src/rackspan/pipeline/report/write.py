"""Writing the page: whole or not at all."""

import os
from pathlib import Path

from rackspan.errors import UsageError
from rackspan.pipeline.report.data import ReportData
from rackspan.pipeline.report.page import render


def write_report(data: ReportData, path: Path) -> None:
    """Write the page, replacing an older one in a single step. Errors: UsageError, naming the path."""
    page = render(data)
    staging = path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        # A rack's name may hold what UTF-8 cannot; a question mark for it is no reason to have no report.
        with staging.open("w", encoding="utf-8", errors="replace") as file:
            file.write(page)
            file.flush()
            os.fsync(file.fileno())
        staging.replace(path)
    except OSError as error:
        raise UsageError(f"{path}: cannot be written: {error.strerror}; choose another --out") from None
    finally:
        _forget(staging)


def _forget(staging: Path) -> None:
    # Where even this fails (the folder is a file, say), the first error is the one to tell.
    try:
        staging.unlink(missing_ok=True)
    except OSError:
        return

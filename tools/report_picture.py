"""Draw the README's picture of an audit's page in Chromium: `python -m tools.report_picture`.

The page is that of `rackspan audit -o html` on CLUSTER. docs/pictures/report.png is written; with a folder, the page at each width in light
and dark is written there instead, to be looked at.
"""

import json
import os
import shutil
import sys
import tempfile
from contextlib import redirect_stdout
from io import StringIO
from itertools import product
from pathlib import Path
from typing import Any, Final, Literal

from rackspan.cli import main as rackspan

PICTURE: Final = Path(__file__).parent.parent / "docs" / "pictures" / "report.png"
WIDTH: Final = 1120
HEIGHT: Final = 1560
"""Down to the topics: a reader of the README does not scroll through a picture."""

DESK, PHONE = 1280, 390

PLACED: Final[dict[str, tuple[str, list[list[int]]]]] = {
    "payments": ("1", [[4], [6]]),
    "orders": ("2", [[2, 6], [5, 4], [3, 1]]),
    "clicks": ("2", [[1, 5, 6], [5, 6, 4], [2, 3, 1], [3, 1, 5], [6, 4, 2], [4, 2, 3]]),
}
"""The topics of docs/how-to/first-audit.md: min.insync.replicas and replicas."""

CLUSTER: Final[dict[str, Any]] = {
    "version": 1,
    "cluster_id": "5L6g3nShT-eMCtK--X86sw",
    "taken_at": "2026-11-28T02:00:00Z",
    "controllers": [{"id": 100 + rack, "rack": f"r{rack}"} for rack in (1, 2, 3)],
    "brokers": [{"id": broker, "rack": f"r{(broker - 1) % 3 + 1}"} for broker in range(1, 7)],
    "topics": [
        {
            "name": name,
            "config": {"min.insync.replicas": minimum},
            "partitions": [
                {"partition": number, "leader": replicas[0], "replicas": replicas, "isr": replicas}
                for number, replicas in enumerate(placed)
            ],
        }
        for name, (minimum, placed) in PLACED.items()
    ],
}


def main() -> None:
    # Imported here: it is of the tests' environment.
    from playwright.sync_api import sync_playwright

    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else None
    with tempfile.TemporaryDirectory() as made, sync_playwright() as playwright:
        page_file = Path(made) / "audit.html"
        page_file.write_text(audit_page(Path(made) / "cluster.json"), encoding="utf-8")
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        if folder is None:
            page = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT}, color_scheme="light")
            page.goto(page_file.as_uri())
            page.screenshot(path=PICTURE)
        else:
            schemes: tuple[Literal["light", "dark"], ...] = ("light", "dark")
            for width, scheme in product((DESK, PHONE), schemes):
                page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
                page.goto(page_file.as_uri())
                page.evaluate("() => document.querySelectorAll('details').forEach(one => { one.open = true })")
                page.screenshot(path=folder / f"{width}-{scheme}.png", full_page=True)
        browser.close()


def audit_page(snapshot: Path) -> str:
    """The page of CLUSTER, which is saved in a file."""
    snapshot.write_text(json.dumps(CLUSTER), encoding="utf-8")
    printed = StringIO()
    # By a variable: a flag would stand in every remedy.
    os.environ["RACKSPAN_SNAPSHOT"] = str(snapshot)
    with redirect_stdout(printed):
        rackspan(["audit", "-o", "html"])
    return printed.getvalue()


if __name__ == "__main__":
    main()

"""An S3 server that is unwell, over a folder, in a process of its own: `python -m tests.pipeline.unwell_store PORT FOLDER`.

It has what readers of a warehouse use: objects whole or by range, lists of them, and objects that must not exist yet. It shares no code with
the server of object_store.py, which takes ten seconds to start. FOLDER/rule holds a fault, two numbers and a regular expression. Requests whose
`METHOD PATH` matches it are lines of FOLDER/met, and those from the first number on, as many as the second one, have the fault. Empty: none
has. Objects are files of FOLDER/store.
"""

import re
import sys
from collections.abc import Callable
from contextlib import suppress
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Lock
from typing import Final
from urllib.parse import parse_qs, unquote, urlsplit

STATUS: Final = {"throttled": 503, "forbidden": 403, "missing": 404}
"""The faults that are a response."""

FAULTS: Final = (*STATUS, "reset", "cut", "slow")
"""All of them: `cut` sends half of the body, `slow` sends nothing until the client gives up."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    # Headers and body in one segment: in two, each response would wait 40 ms for an acknowledgement.
    wbufsize = -1
    disable_nagle_algorithm = True
    folder: Path
    at_once = Lock()

    def log_message(self, *_: object) -> None:
        pass

    def _handle(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        fault = self._fault()
        if fault in STATUS:
            self._respond(STATUS[fault], b"<Error><Code>SlowDown</Code><Message>Later.</Message></Error>")
        elif fault in ("reset", "slow"):
            if fault == "slow":
                with suppress(OSError):
                    self.connection.recv(1)
            self.close_connection = True
        else:
            self._serve(body, cut=fault == "cut")

    def _fault(self) -> str:
        with self.at_once:
            rule = (self.folder / "rule").read_text()
            if not rule:
                return ""
            fault, first, count, pattern = rule.split(" ", 3)
            if not re.search(pattern, f"{self.command} {self.path}"):
                return ""
            met = self.folder / "met"
            number = len(met.read_text().splitlines()) if met.exists() else 0
            with met.open("a") as lines:
                lines.write(f"{self.command} {self.path}\n")
            return fault if 0 <= number - int(first) < int(count) else ""

    def _serve(self, body: bytes, *, cut: bool) -> None:
        at = urlsplit(self.path)
        file = self.folder / "store" / unquote(at.path).strip("/")
        if "list-type=2" in at.query:
            self._respond(200, self._listed(file, parse_qs(at.query)), cut=cut)
        elif self.command == "PUT" and file.exists() and self.headers.get("If-None-Match") == "*":
            self._respond(412, b"")
        elif self.command == "PUT":
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(body)
            self._respond(200, b"")
        elif not file.is_file():
            self._respond(404, b"<Error><Code>NoSuchKey</Code><Message>Not there.</Message></Error>")
        else:
            content = file.read_bytes()
            wanted = re.fullmatch(r"bytes=(\d*)-(\d*)", self.headers.get("Range") or "")
            if wanted is None:
                self._respond(200, content, cut=cut)
                return
            first = int(wanted[1]) if wanted[1] else len(content) - int(wanted[2])
            part = content[first : int(wanted[2]) + 1 if wanted[1] and wanted[2] else None]
            place = {"Content-Range": f"bytes {first}-{first + len(part) - 1}/{len(content)}"}
            self._respond(206, part, place, cut=cut)

    def _listed(self, bucket: Path, query: dict[str, list[str]]) -> bytes:
        prefix, after = (query.get(name, [""])[0] for name in ("prefix", "start-after"))
        keys = {file.relative_to(bucket).as_posix(): file for file in bucket.rglob("*") if file.is_file()}
        contents = "".join(
            f"<Contents><Key>{key}</Key><LastModified>2026-11-20T12:00:00.000Z</LastModified><ETag>1</ETag>"
            f"<Size>{keys[key].stat().st_size}</Size></Contents>"
            for key in sorted(keys)
            if key.startswith(prefix) and key > after
        )
        return f"<ListBucketResult><IsTruncated>false</IsTruncated>{contents}</ListBucketResult>".encode()

    def _respond(
        self, status: int, content: bytes, headers: dict[str, str] | None = None, *, cut: bool = False
    ) -> None:
        self.send_response(status)
        # Objects of tables do not change, so that one tag serves all.
        own = {"Content-Length": str(len(content)), "ETag": '"1"', "Last-Modified": formatdate(usegmt=True)}
        for name, value in {**own, **(headers or {})}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content[: len(content) // 2] if cut else content)
        self.wfile.flush()
        if cut:
            self.close_connection = True

    def __getattr__(self, name: str) -> Callable[[], None]:
        """`http.server` looks for do_GET and the like."""
        if name.startswith("do_"):
            return self._handle
        raise AttributeError(name)


def main(port: int, folder: Path) -> None:
    _Handler.folder = folder
    ThreadingHTTPServer(("127.0.0.1", port), _Handler).serve_forever()


if __name__ == "__main__":
    main(int(sys.argv[1]), Path(sys.argv[2]))

"""A proxy before an S3 server that is unwell, in a process of its own: `python -m tests.pipeline.unwell_store PORT TARGET RULE`.

The file RULE holds a fault and a regular expression; each request whose `METHOD PATH` matches it has the fault. Empty: none has.
"""

import re
import sys
from collections.abc import Callable
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Final

STATUS: Final = {"throttled": 503, "forbidden": 403, "missing": 404}
"""The faults that are a response."""

FAULTS: Final = (*STATUS, "reset", "cut")
"""All of them: `cut` sends half of the body."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    target: str
    rule: Path

    def log_message(self, *_: object) -> None:
        pass

    def _handle(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        fault, _, pattern = self.rule.read_text().partition(" ")
        fault = fault if fault and re.search(pattern, f"{self.command} {self.path}") else ""
        if fault in STATUS:
            self._respond(STATUS[fault], {}, b"<Error><Code>SlowDown</Code><Message>Later.</Message></Error>")
        elif fault == "reset":
            self.connection.close()
        else:
            status, headers, content = self._passed_on(body)
            self._respond(status, headers, content, cut=fault == "cut")

    def _passed_on(self, body: bytes) -> tuple[int, dict[str, str], bytes]:
        connection = HTTPConnection(self.target, timeout=60)
        connection.putrequest(self.command, self.path, skip_host=True, skip_accept_encoding=True)
        for name, value in self.headers.items():
            connection.putheader(name, value)
        connection.endheaders(body)
        response = connection.getresponse()
        content = response.read()
        own = ("transfer-encoding", "connection", "date", "server")
        headers = {name: value for name, value in response.getheaders() if name.lower() not in own}
        connection.close()
        return response.status, headers, content

    def _respond(self, status: int, headers: dict[str, str], content: bytes, *, cut: bool = False) -> None:
        self.send_response(status)
        for name, value in {"Content-Length": str(len(content)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content[: len(content) // 2] if cut else content)
        if cut:
            self.wfile.flush()
            self.connection.close()

    def __getattr__(self, name: str) -> Callable[[], None]:
        """`http.server` looks for do_GET and the like."""
        if name.startswith("do_"):
            return self._handle
        raise AttributeError(name)


def main(port: int, target: str, rule: Path) -> None:
    _Handler.target, _Handler.rule = target, rule
    ThreadingHTTPServer(("127.0.0.1", port), _Handler).serve_forever()


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2], Path(sys.argv[3]))

"""A token endpoint on loopback (RFC 6749, 4.4): it checks the client and issues tokens without a signature."""

import base64
import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

CLIENT_ID, CLIENT_SECRET = "rackspan", "s3cr3t:ü"


def unsecured_token(subject: str, lifetime_seconds: int = 3600) -> str:
    """A JWS with `alg: none`, as Kafka's unsecured validator accepts it."""
    now = int(time.time())
    claims = {"sub": subject, "iat": now, "exp": now + lifetime_seconds}
    return f"{_part({'alg': 'none'})}.{_part(claims)}."


def _part(document: dict[str, object]) -> str:
    return base64.urlsafe_b64encode(json.dumps(document).encode()).rstrip(b"=").decode()


class TokenServer:
    """`requests` has the form of every request."""

    def __init__(self, subject: str) -> None:
        self.requests: list[str] = []
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                server.requests.append(self.rfile.read(int(self.headers["Content-Length"])).decode())
                login = base64.b64encode(f"{CLIENT_ID}:{CLIENT_SECRET}".encode()).decode()
                known = self.headers["Authorization"] == f"Basic {login}"
                body = (
                    {"access_token": unsecured_token(subject), "expires_in": 3600}
                    if known
                    else {"error": "invalid_client"}
                )
                self.send_response(200 if known else 401)
                self.end_headers()
                self.wfile.write(json.dumps(body).encode())

            def log_message(self, *_: object) -> None:
                pass

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._http.server_port}/token"

    @contextmanager
    def running(self) -> Iterator["TokenServer"]:
        thread = threading.Thread(target=self._http.serve_forever, daemon=True)
        thread.start()
        try:
            yield self
        finally:
            self._http.shutdown()
            self._http.server_close()
            thread.join()

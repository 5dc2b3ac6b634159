"""Servers on loopback for a block, and one that responds to every connection with the same bytes, as one of another protocol does."""

import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager

NOT_HTTP = b"\x15\x03\x01\x00\x02\x02\x16"
"""A TLS alert: what an HTTPS server sends to a client that speaks plain HTTP."""

CUT_SHORT = b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n# TYPE"
"""A server that ends while it responds."""


@contextmanager
def serving(server: socketserver.TCPServer) -> Iterator[str]:
    """Serve in a thread until the block ends. Yields the URL."""
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@contextmanager
def responding(content: bytes) -> Iterator[str]:
    """The server's URL."""

    class Handler(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            self.request.recv(65_536)
            self.request.sendall(content)

    with serving(socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler)) as url:
        yield url

"""Faults of a practice cluster over HTTP, for any shell and any language: JSON on loopback, with a token.

    GET  /                              the cluster, its brokers and their states
    POST /lose      {"racks": ["r1"]}   and /restore, its inverse
    POST /kill      {"brokers": [1]}    and /restart; /pause and /resume
    POST /undo      {}                  the inverse of every fault

Every response is the document of GET, once the fault is in effect, or {"error": "…"} with status 400 or more. Each request
carries `Authorization: Bearer TOKEN`: any user of the machine can connect to loopback.
"""

import json
import secrets
import threading
from collections.abc import Callable, Mapping
from hmac import compare_digest
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Annotated, Any, Final, TypedDict

import msgspec
from msgspec import Meta

from rackspan.documents import Count
from rackspan.ends import end_within
from rackspan.errors import RackspanError, UsageError
from rackspan.practice.faults import PracticeCluster

_LOOPBACK: Final = "127.0.0.1"
_MOST_BYTES: Final = 65_536
"""Of a request's body: the names of thousands of racks."""
_FAULT_SECONDS: Final = 120.0
"""For a fault to be in effect: a node of real Kafka may start for so long."""
_IDLE_SECONDS: Final = 10.0
"""A client that sends nothing for so long is disconnected."""


class ControlledBroker(TypedDict):
    id: Count
    rack: str | None
    address: str
    states: Annotated[list[str], Meta(description="up; or down, paused, fenced and the like, as many as apply.")]


class ControlledCluster(TypedDict):
    """A practice cluster that is up, and the states of its brokers."""

    kind: Annotated[str, Meta(description="embedded, or kafka and its version.")]
    bootstrap_servers: str
    brokers: list[ControlledBroker]


class _Racks(msgspec.Struct, forbid_unknown_fields=True):
    racks: Annotated[list[str | None], Meta(min_length=1)]


class _Brokers(msgspec.Struct, forbid_unknown_fields=True):
    brokers: Annotated[list[int], Meta(min_length=1)]


class _Nothing(msgspec.Struct, forbid_unknown_fields=True):
    pass


def _on_racks(name: str) -> Callable[[PracticeCluster, _Racks], None]:
    def act(cluster: PracticeCluster, targets: _Racks) -> None:
        known = {cluster.rack(broker) for broker in cluster.brokers}
        for rack in targets.racks:
            # Before the first one is acted on: a request takes effect as a whole.
            if rack not in known:
                raise UsageError(f"rack {rack!r}: this cluster has {', '.join(sorted(map(str, known)))}")
        for rack in targets.racks:
            getattr(cluster, name)(rack)

    return act


def _on_brokers(name: str) -> Callable[[PracticeCluster, _Brokers], None]:
    def act(cluster: PracticeCluster, targets: _Brokers) -> None:
        for broker in targets.brokers:
            if broker not in cluster.brokers:
                raise UsageError(f"broker {broker}: this cluster has {', '.join(map(str, cluster.brokers))}")
        getattr(cluster, name)(*targets.brokers)

    return act


FAULTS: Final[Mapping[str, tuple[Any, Callable[..., None]]]] = {
    "lose": (_Racks, _on_racks("lose_rack")),
    "restore": (_Racks, _on_racks("restore_rack")),
    "kill": (_Brokers, _on_brokers("kill")),
    "restart": (_Brokers, _on_brokers("restart")),
    "pause": (_Brokers, _on_brokers("pause")),
    "resume": (_Brokers, _on_brokers("resume")),
    "undo": (_Nothing, lambda cluster, _: cluster.undo_faults()),
}
"""The body of each request, and what it does."""


class ControlServer:
    """Listens from its construction until `close`, on a free port of loopback."""

    def __init__(self, cluster: PracticeCluster, kind: str) -> None:
        self.token = secrets.token_urlsafe(32)
        self._cluster = cluster
        self._kind = kind
        # One fault at a time, as a test would inject them.
        self._acting = threading.Lock()
        self._server = _Server((_LOOPBACK, 0), _Handler)
        self._server.control = self
        self.address = f"{_LOOPBACK}:{self._server.server_address[1]}"
        threading.Thread(target=self._server.serve_forever, name="rackspan-control", daemon=True).start()

    def close(self) -> None:
        """Ends when a fault that is being injected is in effect."""
        end_within(f"the control at {self.address}", self._close, _FAULT_SECONDS)

    def _close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        with self._acting:
            pass

    def document(self) -> ControlledCluster:
        return {
            "kind": self._kind,
            "bootstrap_servers": self._cluster.bootstrap_servers,
            "brokers": [
                {
                    "id": broker.id,
                    "rack": broker.rack,
                    "address": broker.address,
                    "states": list(broker.states),
                }
                for broker in self._cluster.status().brokers
            ],
        }

    def authorizes(self, header: str | None) -> bool:
        return compare_digest((header or "").encode(), f"Bearer {self.token}".encode())

    def act(self, fault: str, body: bytes) -> None:
        """Errors: UsageError for a body that is not the fault's; those of the cluster's method."""
        targets, act = FAULTS[fault]
        try:
            decoded = msgspec.json.decode(body, type=targets)
        except msgspec.MsgspecError as error:
            raise UsageError(f"/{fault}: {error}; send {_example(targets)}") from None
        with self._acting:
            act(self._cluster, decoded)


def _example(targets: Any) -> str:
    return {_Racks: '{"racks": ["r1"]}', _Brokers: '{"brokers": [1]}'}.get(targets, "{}")


class _Server(ThreadingHTTPServer):
    control: ControlServer
    daemon_threads = True
    # A request that waits for a slow client must not hold up the end of the cluster.
    block_on_close = False


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server
    timeout = _IDLE_SECONDS

    def do_GET(self) -> None:
        if self._authorized() and self._known(self.path == "/"):
            self._respond(200, self.server.control.document())

    def do_POST(self) -> None:
        fault = self.path.removeprefix("/")
        if not (self._authorized() and self._known(fault in FAULTS)):
            return
        body = self._body()
        if body is None:
            return
        try:
            self.server.control.act(fault, body)
            document = self.server.control.document()
        except (RackspanError, TimeoutError) as error:
            self._fail(400 if isinstance(error, UsageError) else 500, str(error))
        else:
            self._respond(200, document)

    def _authorized(self) -> bool:
        authorized = self.server.control.authorizes(self.headers.get("Authorization"))
        if not authorized:
            self._fail(
                401, "no or another token: send the header Authorization: Bearer TOKEN, as `cluster up` printed it"
            )
        return authorized

    def _known(self, known: bool) -> bool:
        if not known:
            self._fail(404, f"{self.command} {self.path}: there are GET / and POST /{', /'.join(FAULTS)}")
        return known

    def _body(self) -> bytes | None:
        length = self.headers.get("Content-Length", "")
        if not length.isdecimal():
            self._fail(411, "the body has no Content-Length; send it with one")
        elif int(length) > _MOST_BYTES:
            self._fail(413, f"the body has {length} bytes, at most {_MOST_BYTES} are read")
        else:
            return self.rfile.read(int(length))
        return None

    def _fail(self, status: int, error: str) -> None:
        # What is left of its body is not read as the next request.
        self.close_connection = True
        self._respond(status, {"error": error})

    def _respond(self, status: int, document: Mapping[str, Any]) -> None:
        body = json.dumps(document).encode() + b"\n"
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Standard error belongs to the command."""

"""For every kind of server behind the address, the error is one line and comes before the deadline."""

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

import pytest

from rackspan.client.cluster import ClusterConnection, ConnectionSettings
from rackspan.errors import ClusterUnreachable, UsageError

TIMEOUT_SECONDS = 1.0
GENEROUS_SECONDS = 20.0
"""For a machine that is busy with other things; a hang is longer than any of this."""

TLS_ALERT = b"\x15\x03\x03\x00\x02\x02\x28"


@contextmanager
def server(response: bytes | None, *, closes: bool = False) -> Iterator[str]:
    """A server that reads once and sends the response; with None it accepts connections and never sends anything."""
    with ExitStack() as held:
        listener = held.enter_context(socket.create_server(("127.0.0.1", 0)))

        def serve() -> None:
            while True:
                try:
                    connection, _ = listener.accept()
                except OSError:
                    return
                held.enter_context(connection)
                if response is not None:
                    connection.recv(65536)
                    connection.sendall(response)
                if closes:
                    connection.close()

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield f"127.0.0.1:{listener.getsockname()[1]}"
        listener.shutdown(socket.SHUT_RDWR)
        thread.join(GENEROUS_SECONDS)


def closed_port() -> str:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return f"127.0.0.1:{listener.getsockname()[1]}"


def refusal(bootstrap_servers: str, properties: dict[str, str] | None = None) -> str:
    """The one line for a cluster that cannot be reached, which has come in time."""
    begun = time.monotonic()
    with pytest.raises(ClusterUnreachable) as failure:
        ClusterConnection(ConnectionSettings(bootstrap_servers, properties or {}, TIMEOUT_SECONDS)).__enter__()
    assert time.monotonic() - begun < GENEROUS_SECONDS
    assert "\n" not in str(failure.value)
    return str(failure.value)


def test_a_closed_port_refuses() -> None:
    address = closed_port()
    assert refusal(address) == (
        f"no broker responded: {address}: connection refused; check --bootstrap-server, and that the cluster is up"
    )


def test_a_host_that_does_not_exist_is_named() -> None:
    assert "no-such-host.invalid:9092: no such host name" in refusal("no-such-host.invalid:9092")


@pytest.mark.parametrize("protocol", ["PLAINTEXT", "SSL"])
def test_a_server_that_never_speaks_is_left_at_the_deadline(protocol: str) -> None:
    with server(None) as address:
        message = refusal(address, {"security.protocol": protocol})
    assert f"{address}: no response within 1 s; is it Kafka's port, and does it require TLS or a login" in message


@pytest.mark.parametrize(
    "response",
    [
        b"HTTP/1.1 400 Bad Request\r\n\r\n",
        b"\x00\x00\x00\x08garbage!",
        b"\x00\x00\x00\x20\x00\x00\x00\x01" + b"\xff" * 28,
    ],
    ids=["http", "another-correlation", "the-right-correlation"],
)
def test_a_server_of_another_protocol_is_named_as_such(response: bytes) -> None:
    with server(response) as address:
        assert f"{address}: it does not speak Kafka's protocol" in refusal(address)


@pytest.mark.parametrize("response", [b"", TLS_ALERT], ids=["silently", "with-a-tls-alert"])
def test_a_server_that_closes_the_connection_may_require_tls(response: bytes) -> None:
    with server(response, closes=True) as address:
        message = refusal(address)
    assert (
        f"{address}: it closed the connection at the first request; is it Kafka's port, and does it require TLS or a login"
        in message
    )


def test_every_server_that_was_tried_is_named_with_its_reason_in_the_order_given() -> None:
    refusing = closed_port()
    with server(b"", closes=True) as hanging_up:
        message = refusal(f"{refusing},{hanging_up}")
    assert f"{refusing}: connection refused; {hanging_up}: it closed the connection" in message


@pytest.mark.parametrize("bootstrap_servers", ["", "localhost:kafka", "localhost:9092,", "http://localhost:9092"])
def test_an_address_that_is_none_is_a_usage_error(bootstrap_servers: str) -> None:
    with pytest.raises(UsageError, match="is not of the form HOST:PORT"):
        ClusterConnection(ConnectionSettings(bootstrap_servers))


def test_a_name_look_up_that_hangs_does_not_hang_us(monkeypatch: pytest.MonkeyPatch) -> None:
    go_on = threading.Event()
    monkeypatch.setattr(socket, "getaddrinfo", _waiting(go_on))
    assert "not even a name look-up" in refusal("kafka.example:9092")
    go_on.set()


def test_nothing_is_left_running(monkeypatch: pytest.MonkeyPatch) -> None:
    before = set(threading.enumerate())
    refusal(closed_port())
    assert set(threading.enumerate()) <= before


def _waiting(go_on: threading.Event) -> Callable[..., list[object]]:
    def getaddrinfo(*_: object, **__: object) -> list[object]:
        go_on.wait(GENEROUS_SECONDS)
        return []

    return getaddrinfo

"""A held port can be listened on by a broker of ours, and by nobody who does not share addresses."""

import socket
import sys
from types import SimpleNamespace

import pytest

from rackspan.kafka_process import ports as ports_module
from rackspan.kafka_process.ports import LOOPBACK, HeldPorts
from tests.waiting import WITHIN_SECONDS

linux_only = pytest.mark.skipif(sys.platform != "linux", reason="only Linux lets a port be held while it is used")


def listener(port: int, *, reuse: bool) -> socket.socket:
    server = socket.socket()
    # Java's server sockets reuse addresses, and so does a Kafka broker's.
    server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, int(reuse))
    server.bind((LOOPBACK, port))
    server.listen()
    return server


def test_ports_are_distinct_and_below_the_ephemeral_range() -> None:
    with HeldPorts() as ports:
        ports_taken = [ports.take() for _ in range(20)]
    assert len(set(ports_taken)) == 20
    assert all(1024 < port < 32768 for port in ports_taken)


def test_a_held_port_refuses_connections() -> None:
    with HeldPorts() as ports, socket.socket() as client:
        assert client.connect_ex((LOOPBACK, ports.take())) != 0


@linux_only
def test_a_broker_listens_on_a_held_port_again_and_again() -> None:
    with HeldPorts() as ports:
        port = ports.take()
        for _ in range(2):
            with listener(port, reuse=True), socket.create_connection((LOOPBACK, port), timeout=WITHIN_SECONDS):
                pass


@linux_only
def test_a_held_port_is_kept_from_everybody_else() -> None:
    with HeldPorts() as ports, pytest.raises(OSError, match="in use"):
        listener(ports.take(), reuse=False)


def test_a_port_that_somebody_listens_on_is_never_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    class Stubborn:
        """RandomGenerator that name a busy port first."""

        def __init__(self, *faces: int) -> None:
            self.faces = list(faces)

        def choice(self, _: object) -> int:
            return self.faces.pop(0)

    with HeldPorts() as free, HeldPorts() as other:
        busy, idle = free.take(), free.take()
        free.close()
        with listener(busy, reuse=True):
            opened = _sockets_opened(monkeypatch)
            assert HeldPorts.take(_with_rng(other, Stubborn(busy, idle))) == idle
            of_busy, of_idle = opened
            assert of_busy.fileno() == -1
            assert of_idle.getsockname()[1] == idle


def _sockets_opened(monkeypatch: pytest.MonkeyPatch) -> list[socket.socket]:
    """The sockets that are opened from now on, in order."""
    opened: list[socket.socket] = []
    plain = socket.socket

    def keep(*of: int) -> socket.socket:
        opened.append(plain(*of))
        return opened[-1]

    monkeypatch.setattr(ports_module, "socket", SimpleNamespace(**{**vars(socket), "socket": keep}))
    return opened


def _with_rng(ports: HeldPorts, rng: object) -> HeldPorts:
    ports._rng = rng  # type: ignore[assignment]
    return ports


def test_closing_gives_the_port_back() -> None:
    with HeldPorts() as ports:
        port = ports.take()
        held = ports._sockets[port]
    assert held.fileno() == -1
    with listener(port, reuse=False):
        pass

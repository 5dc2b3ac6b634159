"""Requests of the command line to a control server, and what its errors become."""

import socket
from collections.abc import Iterator
from contextlib import closing

import pytest

from rackspan.cluster import EmbeddedCluster
from rackspan.errors import SourceError, UsageError
from rackspan.practice.control import ControlServer
from rackspan.practice.control_client import read, send
from rackspan.practice.control_file import ControlFile


@pytest.fixture
def control() -> Iterator[ControlFile]:
    with EmbeddedCluster(racks=2, brokers=2) as cluster, closing(ControlServer(cluster, "embedded")) as server:
        yield ControlFile(server.address, server.token, "embedded", cluster.bootstrap_servers)


def test_a_fault_is_sent_and_the_states_are_read(control: ControlFile, monkeypatch: pytest.MonkeyPatch) -> None:
    # A proxy would be sent the token.
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    lost = send(control, "lose", {"racks": ["r2"]})
    assert [broker["states"] for broker in lost["brokers"]] == [["up"], ["down", "fenced"]]
    assert read(control) == lost


def test_errors_are_those_of_the_server(control: ControlFile) -> None:
    with pytest.raises(UsageError, match="broker 7: this cluster has 1, 2"):
        send(control, "kill", {"brokers": [7]})
    with pytest.raises(SourceError, match="no or another token"):
        read(ControlFile(control.address, "wrong", "embedded", ""))


def test_a_server_that_is_gone_is_one_line() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    with pytest.raises(SourceError, match=rf"practice cluster at 127.0.0.1:{port}: no response: .*; is it ending\?"):
        read(ControlFile(f"127.0.0.1:{port}", "token", "embedded", ""))

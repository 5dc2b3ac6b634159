"""Faults of a practice cluster by HTTP requests, as a program in any language sends them."""

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import closing
from http.client import HTTPConnection
from typing import Any

import pytest

from rackspan.cluster import EmbeddedCluster
from rackspan.practice.control import FAULTS, ControlServer
from tests.waiting import WITHIN_SECONDS


@pytest.fixture(scope="module")
def cluster() -> Iterator[EmbeddedCluster]:
    with EmbeddedCluster(racks=("a", "b", "c"), brokers=3) as started:
        yield started


@pytest.fixture
def server(cluster: EmbeddedCluster) -> Iterator[ControlServer]:
    with closing(ControlServer(cluster, "embedded")) as server:
        yield server
    cluster.undo_faults()


def request(
    server: ControlServer, method: str, path: str, body: str | bytes | None = None, **headers: str
) -> tuple[int, Any]:
    connection = HTTPConnection(server.address, timeout=WITHIN_SECONDS)
    with closing(connection):
        connection.request(method, path, body, {"Authorization": f"Bearer {server.token}", **headers})
        response = connection.getresponse()
        return response.status, json.loads(response.read())


def states(document: Any) -> dict[int, list[str]]:
    return {broker["id"]: broker["states"] for broker in document["brokers"]}


def test_the_cluster_is_described_with_the_states_of_its_brokers(
    server: ControlServer, cluster: EmbeddedCluster
) -> None:
    status, document = request(server, "GET", "/")
    assert status == 200
    assert (document["kind"], document["bootstrap_servers"]) == ("embedded", cluster.bootstrap_servers)
    assert document["brokers"] == [
        {"id": index + 1, "rack": rack, "address": cluster.address(index + 1), "states": ["up"]}
        for index, rack in enumerate("abc")
    ]


LOST = ["down", "fenced"]
EFFECTS: list[tuple[str, Any, list[str], str]] = [
    ("lose", {"racks": ["b"]}, LOST, "restore"),
    ("kill", {"brokers": [2]}, LOST, "restart"),
    ("pause", {"brokers": [2]}, ["paused"], "resume"),
]


@pytest.mark.parametrize(("fault", "targets", "state", "inverse"), EFFECTS)
def test_a_fault_is_in_effect_when_its_response_comes_and_its_inverse_undoes_it(
    fault: str, targets: Any, state: list[str], inverse: str, server: ControlServer, cluster: EmbeddedCluster
) -> None:
    status, document = request(server, "POST", f"/{fault}", json.dumps(targets))
    assert (status, states(document)) == (200, {1: ["up"], 2: state, 3: ["up"]})
    assert [list(broker.states) for broker in cluster.status().brokers] == [["up"], state, ["up"]]
    status, document = request(server, "POST", f"/{inverse}", json.dumps(targets))
    assert (status, states(document)) == (200, {1: ["up"], 2: ["up"], 3: ["up"]})


def test_every_fault_is_undone_by_one_request(server: ControlServer) -> None:
    request(server, "POST", "/lose", '{"racks": ["a"]}')
    request(server, "POST", "/pause", '{"brokers": [2]}')
    _, document = request(server, "POST", "/undo", "{}")
    assert states(document) == {1: ["up"], 2: ["up"], 3: ["up"]}


@pytest.mark.parametrize("path", ["/", *(f"/{fault}" for fault in FAULTS)])
@pytest.mark.parametrize("header", ["", "Bearer", "Bearer wrong", "Basic eA==", "Bearer é"])
def test_a_request_without_the_token_is_refused_and_changes_nothing(
    path: str, header: str, server: ControlServer, cluster: EmbeddedCluster
) -> None:
    method = "GET" if path == "/" else "POST"
    body = None if path == "/" else '{"racks": ["a"]}'
    encoded = header.encode().decode("latin-1")
    status, document = request(server, method, path, body, Authorization=encoded)
    assert (status, list(document)) == (401, ["error"])
    assert "Authorization: Bearer TOKEN" in document["error"]
    assert all(broker.states == ("up",) for broker in cluster.status().brokers)


@pytest.mark.parametrize(
    ("path", "body", "status", "words"),
    [
        ("/lose", '{"racks": ["a", "z"]}', 400, "rack 'z': this cluster has a, b, c"),
        ("/kill", '{"brokers": [1, 9]}', 400, "broker 9: this cluster has 1, 2, 3"),
        ("/lose", '{"racks": []}', 400, 'send {"racks": ["r1"]}'),
        ("/lose", '{"rack": "a"}', 400, 'send {"racks": ["r1"]}'),
        ("/kill", '{"brokers": ["1"]}', 400, 'send {"brokers": [1]}'),
        ("/kill", '{"brokers": [true]}', 400, 'send {"brokers": [1]}'),
        ("/kill", "no JSON", 400, 'send {"brokers": [1]}'),
        ("/undo", '{"racks": ["a"]}', 400, "send {}"),
        ("/explode", "{}", 404, "there are GET / and POST /lose, /restore"),
        ("/kill", b"x" * 65_537, 413, "at most 65536"),
    ],
)
def test_a_wrong_request_gets_one_line_and_changes_nothing(
    path: str, body: str | bytes, status: int, words: str, server: ControlServer, cluster: EmbeddedCluster
) -> None:
    found, document = request(server, "POST", path, body)
    assert found == status
    assert words in document["error"]
    assert "\n" not in document["error"]
    assert all(broker.states == ("up",) for broker in cluster.status().brokers)


def test_a_body_of_unknown_length_is_refused(server: ControlServer) -> None:
    connection = HTTPConnection(server.address, timeout=WITHIN_SECONDS)
    with closing(connection):
        connection.putrequest("POST", "/undo")
        connection.putheader("Authorization", f"Bearer {server.token}")
        connection.endheaders()
        assert connection.getresponse().status == 411


def test_it_listens_on_loopback_only_and_until_it_is_closed(cluster: EmbeddedCluster) -> None:
    server = ControlServer(cluster, "embedded")
    host, port = server.address.split(":")
    assert host == "127.0.0.1"
    socket.create_connection((host, int(port)), WITHIN_SECONDS).close()
    server.close()
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection((host, int(port)), WITHIN_SECONDS)
    assert not [thread for thread in threading.enumerate() if thread.name == "rackspan-control"]


def test_each_server_has_a_token_of_its_own(cluster: EmbeddedCluster) -> None:
    with closing(ControlServer(cluster, "embedded")) as one, closing(ControlServer(cluster, "embedded")) as other:
        assert one.token != other.token
        assert len(one.token) >= 32
        assert request(one, "GET", "/", Authorization=f"Bearer {other.token}")[0] == 401

"""A listener connects its clients to its own broker alone, whatever brokers their requests name."""

import asyncio
import errno
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from random import Random
from socket import create_connection, create_server, socket
from struct import pack
from typing import Any

import pytest

from rackspan.client.brokers import KnownBroker
from rackspan.client.login import Login
from rackspan.cluster import EmbeddedCluster
from rackspan.errors import MalformedRequest
from rackspan.gateway.clients.listeners import Listener, Listeners
from rackspan.gateway.config import PORT_MAX, BrokerListenerTable, GatewayConfig, ListenerConfig
from rackspan.gateway.core.apis import OFFERED
from rackspan.gateway.upstream.cluster import UpstreamCluster
from rackspan.wire.apis import ApiKey
from rackspan.wire.framing import Request
from rackspan.wire.messages.base import WireStruct
from rackspan.wire.messages.configs import DescribeConfigsRequestData, DescribeConfigsResource
from rackspan.wire.messages.fetch import FetchPartition, FetchRequestData, FetchTopic
from rackspan.wire.messages.log_offsets import ListOffsetsRequestData, OffsetForLeaderEpochRequestData
from rackspan.wire.schema import is_flexible, request_shape
from tests.cluster.test_mutated_frames import random_struct
from tests.gateway.frames import encoded, is_known
from tests.gateway.running import running
from tests.waiting import WITHIN_SECONDS, eventually

BROKERS = (1, 2, 3)
CLIENT = b"stranger"
BROKER_RESOURCE = 4
REFUSED: Mapping[str, set[int]] = {
    "off": set(),
    "verified": {ApiKey.CREATE_TOPICS, ApiKey.ALTER_CONFIGS, ApiKey.INCREMENTAL_ALTER_CONFIGS},
}
"""What the gateway itself may refuse with these random fields, by its mode."""

Frames = dict[int, list[bytes]]
"""The requests that arrived at each broker, unframed."""


@contextmanager
def recorded(cluster: EmbeddedCluster) -> Iterator[Frames]:
    """What arrives at the brokers from now on."""
    frames: Frames = {broker: [] for broker in BROKERS}
    for broker in BROKERS:
        server = cluster._host(broker).server
        server.serve = partial(_record, server.serve, frames[broker])  # type: ignore[method-assign]
    yield frames


def _record(serve: Callable[..., Any], arrived: list[bytes], request: Request, client_host: str) -> Any:
    arrived.append(bytes(request))
    return serve(request, client_host)


def of_clients(frames: list[bytes], listener: int) -> set[int]:
    """API keys of the requests that a client of this listener sent."""
    return {int.from_bytes(one[:2], "big") for one in frames if one[10:].startswith(_client(listener))}


def _have_arrived(keys: set[int], frames: list[bytes], listener: int) -> bool:
    return keys <= of_clients(frames, listener)


def _client(listener: int) -> bytes:
    return CLIENT + str(listener).encode()


def naming(other: int, rng: Random) -> Iterator[tuple[int, int, bytes]]:
    """API key, version and body of a request to every API, and of those that can name a broker, naming another."""
    for key, versions in OFFERED.items():
        version = rng.choice(versions)
        if is_known(key, version):
            shape = request_shape(ApiKey(key), version)
            yield key, version, encoded(ApiKey(key), version, random_struct(shape, rng), request=True)
        else:
            yield key, version, pack(">i", other) * 10
    partition = FetchTopic(topic="t", partitions=[FetchPartition(partition=0)])
    broker = DescribeConfigsResource(resource_type=BROKER_RESOURCE, resource_name=str(other), configuration_keys=None)
    named: list[tuple[ApiKey, int, WireStruct]] = [
        # The gateway refuses the first, of a replica.
        (ApiKey.FETCH, 12, FetchRequestData(replica_id=other, topics=[partition])),
        (ApiKey.FETCH, 12, FetchRequestData(topics=[partition])),
        (ApiKey.LIST_OFFSETS, 5, ListOffsetsRequestData(replica_id=other)),
        (ApiKey.OFFSET_FOR_LEADER_EPOCH, 3, OffsetForLeaderEpochRequestData(replica_id=other)),
        (ApiKey.DESCRIBE_CONFIGS, 4, DescribeConfigsRequestData(resources=[broker])),
    ]
    for api_key, version, body in named:
        yield api_key, version, encoded(api_key, version, body, request=True)


def sent(link: socket, listener: int, key: int, version: int, body: bytes) -> None:
    client = _client(listener)
    tags = b"\0" if is_known(key, version) and is_flexible(key, version) else b""
    request = pack(">hhih", key, version, 1, len(client)) + client + tags + body
    with suppress(ConnectionError):
        link.sendall(pack(">i", len(request)) + request)


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["off", "verified"])
def test_a_client_reaches_the_broker_of_its_listener_and_no_other(mode: str) -> None:
    rng = Random(5)
    with (
        EmbeddedCluster(racks=3, brokers=3, seed=6) as cluster,
        running(cluster.bootstrap_servers, acknowledgements={"mode": mode}) as gateway,
        recorded(cluster) as frames,
    ):
        for listener in BROKERS:
            requests = list(naming(1 + listener % 3, rng))
            links = [create_connection(gateway.address(listener), WITHIN_SECONDS) for _ in requests]
            for link, request in zip(links, requests, strict=True):
                sent(link, listener, *request)
            expected = {key for key, _, _ in requests} - REFUSED[mode]
            all_arrived = partial(_have_arrived, expected, frames[listener], listener)
            eventually(all_arrived, "every API has arrived")
            for link in links:
                link.close()
        for broker in BROKERS:
            for listener in {*BROKERS} - {broker}:
                assert of_clients(frames[broker], listener) == set()


def test_a_listener_that_lacks_open_files_says_so_and_listens_on(caplog: pytest.LogCaptureFixture) -> None:
    class Exhausted:
        def accept(self) -> tuple[socket, object]:
            raise OSError(errno.EMFILE, "Too many open files")

    async def scenario() -> int:
        accepted = asyncio.Queue[int]()

        async def accept(broker: int, client: socket) -> None:
            client.close()
            await accepted.put(broker)

        listener = Listener(7, ListenerConfig("127.0.0.1", 0, "127.0.0.1"), accept)
        listening, listener._socket = listener._socket, Exhausted()  # type: ignore[assignment]
        listener._accept()
        listener._socket = listening
        assert not asyncio.get_running_loop().remove_reader(listening.fileno()), (
            "not reported as readable in every turn"
        )
        with create_connection(listener.advertised, WITHIN_SECONDS):
            broker = await asyncio.wait_for(accepted.get(), WITHIN_SECONDS)
        listener.close()
        return broker

    assert asyncio.run(scenario()) == 7
    assert caplog.messages == ["the listener of broker 7: [Errno 24] Too many open files"]


def test_a_port_that_was_in_use_is_tried_again_with_the_next_metadata() -> None:
    async def nobody(_broker: int, _client: socket) -> None:
        """No client comes."""

    async def scenario() -> list[list[int]]:
        missing: list[list[int]] = []
        with create_server(("127.0.0.1", 0)) as holder:
            port = holder.getsockname()[1]
            tables = {"1": BrokerListenerTable(), "2": BrokerListenerTable(port=port)}
            config = GatewayConfig(bootstrap_servers="127.0.0.1:1", first_port=0, brokers=tables)
            cluster = UpstreamCluster("127.0.0.1:1", Login(), Random(1))
            listeners = Listeners(config, cluster, nobody)
            cluster.by_id = {broker: KnownBroker(broker, "127.0.0.1", 1) for broker in (1, 2)}
            cluster._registered_racks = {1: None, 2: None}
            listeners.by_broker[1] = listeners._listener(1)
            listeners.follow_brokers()
            missing.append(listeners.missing)
        listeners.follow_brokers()
        missing.append(listeners.missing)
        listeners.close()
        return missing

    assert asyncio.run(scenario()) == [[2], []]


def test_a_broker_without_a_port_is_reported_and_the_others_have_listeners(caplog: pytest.LogCaptureFixture) -> None:
    """The last port of all is the one of broker 1."""
    config = GatewayConfig(bootstrap_servers="127.0.0.1:1", first_port=PORT_MAX - 1, brokers={
        str(broker): BrokerListenerTable() for broker in (1, 3)
    })  # fmt: skip

    async def nobody(_broker: int, _client: socket) -> None:
        """No client comes."""

    async def scenario() -> None:
        cluster = UpstreamCluster("127.0.0.1:1", Login(), Random(1))
        listeners = Listeners(config, cluster, nobody)
        cluster.by_id = {broker: KnownBroker(broker, "127.0.0.1", 1) for broker in (1, 2, 3)}
        listeners.follow_brokers()
        assert (listeners.by_broker, listeners.missing) == ({}, []), "it is still starting"
        listeners.by_broker[1] = listeners._listener(1)
        cluster._registered_racks = {1: None}
        listeners.follow_brokers()
        assert listeners.missing == []
        # Broker 3 was named by a response only: its listener is closed again.
        assert set(listeners.by_broker) == {1}
        cluster._registered_racks |= {2: None, 3: None}
        listeners.follow_brokers()
        assert set(listeners.by_broker) == {1, 3}
        assert listeners.missing == [2]
        with pytest.raises(MalformedRequest, match=r"^a response names broker 2: listen\.first\.port 65534 leaves no"):
            listeners.advertised(2, "127.0.0.1", 1)
        listeners.close()

    asyncio.run(scenario())
    words = "listen.first.port 65534 leaves no port for broker 2; write [brokers.2] with a port"
    assert caplog.messages.count(words) == 2

"""For every kind of server behind the address, the error is one line and comes before the deadline."""

import asyncio
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from rackspan.client import cluster as client_cluster
from rackspan.client.cluster import ClusterConnection, ConnectionSettings
from rackspan.client.connection import BrokerConnection
from rackspan.client.login import LoginFailedHere
from rackspan.client.requests import broker_logs
from rackspan.daemon_threads import DaemonThreadLoop
from rackspan.errors import ClusterUnauthorized, ClusterUnreachable, UsageError
from rackspan.model import TopicPartition
from rackspan.wire.apis import ApiKey
from rackspan.wire.messages.base import WireStruct
from rackspan.wire.messages.brokers import (
    DescribeClusterRequestData,
    DescribeClusterResponseData,
    DescribeLogDirsRequestData,
    DescribeLogDirsResponseData,
)
from rackspan.wire.messages.metadata import MetadataRequestData, MetadataResponseBroker, MetadataResponseData
from tests.certificates import authority
from tests.client.fake_broker import FakeBroker, Handle
from tests.client.test_connection import SaslBroker
from tests.waiting import WITHIN_SECONDS, eventually

TIMEOUT_SECONDS = 1.0

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
        thread.join(WITHIN_SECONDS)


def closed_port() -> str:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return f"127.0.0.1:{listener.getsockname()[1]}"


def refusal(bootstrap_servers: str, properties: dict[str, str] | None = None) -> str:
    """The one line for a cluster that cannot be reached, which has come in time."""
    with pytest.raises(ClusterUnreachable) as failure:
        ClusterConnection(ConnectionSettings(bootstrap_servers, properties or {}, TIMEOUT_SECONDS)).__enter__()
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


@pytest.mark.parametrize("bootstrap_servers", ["", "localhost:kafka", "localhost:9092,", "localhost:9092/"])
def test_an_address_that_is_none_is_a_usage_error(bootstrap_servers: str) -> None:
    with pytest.raises(UsageError, match="is not of the form HOST:PORT"):
        ClusterConnection(ConnectionSettings(bootstrap_servers))


def test_settings_warn_of_what_is_ignored_and_of_another_protocol() -> None:
    login = {"security.protocol": "SASL_SSL", "acks": "all", "client.id": "a"}
    settings = ConnectionSettings("sasl_ssl://a.example,INTERNAL://b.example:1", login)
    assert settings.property_warnings() == ["--command-config: settings of other clients and tools are ignored: acks"]
    assert settings.protocol_warnings() == []
    assert ConnectionSettings("SSL://a.example:1,PLAINTEXT://b.example:1,c.example:1").protocol_warnings() == [
        "--bootstrap-server SSL://a.example:1,PLAINTEXT://b.example:1,c.example:1: the address says SSL, and connections use "
        "PLAINTEXT; set security.protocol=SSL, or leave SSL:// out"
    ]


def test_a_name_look_up_that_hangs_does_not_hang_us(monkeypatch: pytest.MonkeyPatch) -> None:
    go_on = threading.Event()
    monkeypatch.setattr(socket, "getaddrinfo", _waiting(go_on))
    assert "not even a name look-up" in refusal("kafka.example:9092")
    go_on.set()


def test_nothing_is_left_running(monkeypatch: pytest.MonkeyPatch) -> None:
    before = set(threading.enumerate())
    refusal(closed_port())
    assert set(threading.enumerate()) <= before


def test_ctrl_c_while_the_network_thread_starts_ends_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Until it has started it reports that it is not alive, and its event loop may run all the same."""
    failures: list[object] = []
    monkeypatch.setattr(threading, "excepthook", failures.append)
    connection = ClusterConnection(ConnectionSettings("127.0.0.1:1"))
    closed, starts = threading.Event(), connection._thread._started  # type: ignore[attr-defined]
    has_started = starts.set

    def interrupt() -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(starts, "wait", interrupt)
    monkeypatch.setattr(starts, "set", lambda: (closed.wait(WITHIN_SECONDS), has_started()))
    with pytest.raises(KeyboardInterrupt):
        connection.__enter__()
    closed.set()
    eventually(lambda: starts.is_set() and not connection._thread.is_alive(), "the thread has ended")
    assert connection._loop.is_closed()
    assert failures == []


def _waiting(go_on: threading.Event) -> Callable[..., list[object]]:
    def getaddrinfo(*_: object, **__: object) -> list[object]:
        go_on.wait(WITHIN_SECONDS)
        return []

    return getaddrinfo


def metadata_of(*brokers: FakeBroker, controller_id: int = -1) -> MetadataResponseData:
    """Brokers 1, 2, …"""
    rows = [MetadataResponseBroker(node_id=1 + at, host="127.0.0.1", port=one.port) for at, one in enumerate(brokers)]
    return MetadataResponseData(brokers=rows, controller_id=controller_id)


def responding(response: WireStruct) -> Handle:
    async def handle(_request: object) -> WireStruct:
        return response

    return handle


async def silent(_request: object) -> WireStruct | None:
    return await asyncio.Event().wait()  # type: ignore[return-value]  # Never.


def with_brokers(
    scenario: Callable[[ClusterConnection, FakeBroker, FakeBroker], None], properties: dict[str, str] | None = None
) -> None:
    """Run a scenario on a connection to the first of two brokers, which lists both."""

    async def run() -> None:
        brokers = FakeBroker(), FakeBroker()
        for number, broker in enumerate(brokers):
            await broker.start()
            broker.handles[ApiKey.DESCRIBE_CLUSTER] = responding(
                DescribeClusterResponseData(cluster_id=str(1 + number))
            )
        for broker in brokers:
            broker.handles[ApiKey.METADATA] = responding(metadata_of(*brokers, controller_id=2))
        settings = ConnectionSettings(f"127.0.0.1:{brokers[0].port}", properties or {}, WITHIN_SECONDS)

        def blocking() -> None:
            with ClusterConnection(settings) as connection:
                scenario(connection, *brokers)

        await asyncio.to_thread(blocking)
        for broker in brokers:
            await broker.close()

    asyncio.run(run())


def served_by(connection: ClusterConnection, broker: int | None = None) -> str:
    """The broker that responded: the test gives each a cluster id of its own."""

    async def described() -> str:
        request = DescribeClusterRequestData()
        response: DescribeClusterResponseData = await connection.call(ApiKey.DESCRIBE_CLUSTER, request, broker=broker)
        return response.cluster_id

    return connection.run(described)


def test_requests_go_to_the_first_server_to_a_broker_by_its_id_and_to_the_controller() -> None:
    def scenario(connection: ClusterConnection, first: FakeBroker, _second: FakeBroker) -> None:
        assert [served_by(connection), served_by(connection, 2), served_by(connection, 1)] == ["1", "2", "1"]

        async def by_controller() -> str:
            response = await connection.call_controller(ApiKey.DESCRIBE_CLUSTER, DescribeClusterRequestData())
            return str(response.cluster_id)

        assert connection.run(by_controller) == "2"
        first.handles[ApiKey.METADATA] = responding(metadata_of(first))
        assert connection.run(by_controller) == "1", "any broker forwards a request where metadata names no controller"

    with_brokers(scenario)


def test_a_server_that_ends_or_no_longer_responds_is_replaced_by_a_broker_that_metadata_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(client_cluster, "PROBE_SECONDS", 0.2)

    def ended(connection: ClusterConnection, first: FakeBroker, second: FakeBroker) -> None:
        first.ends()
        connection.run(connection.replace_silent_server)
        assert served_by(connection) == "2"
        assert connection.address == f"127.0.0.1:{second.port}"

    def suspended(connection: ClusterConnection, first: FakeBroker, _second: FakeBroker) -> None:
        first.handles[ApiKey.METADATA] = silent
        connection.run(connection.replace_silent_server)
        assert served_by(connection) == "2"

    with_brokers(ended)
    with_brokers(suspended)


def test_a_request_without_a_response_leaves_the_others_of_its_connection_alone() -> None:
    def scenario(connection: ClusterConnection, first: FakeBroker, _second: FakeBroker) -> None:
        async def late(_request: object) -> WireStruct:
            await asyncio.sleep(0.5)
            return metadata_of(first)

        async def both() -> list[object]:
            first_of_two = connection.call(ApiKey.METADATA, MetadataRequestData(topics=()), 0.1, broker=1)
            other = connection.call(ApiKey.DESCRIBE_CLUSTER, DescribeClusterRequestData(), broker=1)
            return list(await asyncio.gather(first_of_two, other, return_exceptions=True))

        served_by(connection, 1)
        first.handles[ApiKey.METADATA] = late
        timed_out, response = connection.run(both)
        assert isinstance(timed_out, TimeoutError)
        assert isinstance(response, DescribeClusterResponseData)

    with_brokers(scenario)


def test_the_settings_of_a_java_client_about_time_have_an_effect() -> None:
    def within_a_request(connection: ClusterConnection, first: FakeBroker, _second: FakeBroker) -> None:
        first.handles[ApiKey.DESCRIBE_CLUSTER] = silent
        with pytest.raises(TimeoutError):
            served_by(connection)
        assert connection.remaining_seconds > WITHIN_SECONDS / 4

    def kept(connection: ClusterConnection, first: FakeBroker, _second: FakeBroker) -> None:
        served_by(connection, 1)
        served_by(connection, 1)
        assert first.connections == 2, "one as a bootstrap server, one as broker 1"

    def idle(connection: ClusterConnection, first: FakeBroker, _second: FakeBroker) -> None:
        served_by(connection, 1)
        served_by(connection, 1)
        assert first.connections == 3

    with_brokers(within_a_request, {"request.timeout.ms": "300"})
    with_brokers(kept)
    with_brokers(idle, {"connections.max.idle.ms": "0"})


def test_a_broker_without_an_address_is_an_error_at_once() -> None:
    def scenario(connection: ClusterConnection, _first: FakeBroker, _second: FakeBroker) -> None:
        with pytest.raises(ClusterUnreachable, match="broker 7 is not in the cluster's metadata"):
            served_by(connection, 7)

    with_brokers(scenario)


def test_a_silent_bootstrap_server_costs_nothing_where_another_one_responds() -> None:
    async def run() -> None:
        broker = FakeBroker()
        await broker.start()
        broker.handles[ApiKey.METADATA] = responding(metadata_of(broker))

        def blocking() -> None:
            with server(None) as dumb:
                settings = ConnectionSettings(f"{dumb},127.0.0.1:{broker.port}", {}, WITHIN_SECONDS)
                with ClusterConnection(settings) as connection:
                    assert connection.address == f"127.0.0.1:{broker.port}"
                    assert connection.remaining_seconds > WITHIN_SECONDS / 4

        await asyncio.to_thread(blocking)
        await broker.close()

    asyncio.run(run())


def test_of_several_bootstrap_servers_the_later_ones_are_left() -> None:
    async def late(_request: object) -> WireStruct:
        await asyncio.sleep(0.3)
        return metadata_of(*brokers)

    brokers = FakeBroker(), FakeBroker()

    async def run() -> None:
        for broker in brokers:
            await broker.start()
        brokers[0].handles[ApiKey.METADATA] = responding(metadata_of(brokers[0]))
        brokers[1].handles[ApiKey.METADATA] = late
        servers = ",".join(f"127.0.0.1:{broker.port}" for broker in reversed(brokers))

        def blocking() -> None:
            with ClusterConnection(ConnectionSettings(servers, {}, WITHIN_SECONDS)) as connection:
                assert connection.address == f"127.0.0.1:{brokers[0].port}"
                eventually(lambda: brokers[1].ended == brokers[1].connections == 1, "it is left")
                assert brokers[0].ended == 0

        await asyncio.to_thread(blocking)
        for broker in brokers:
            await broker.close()

    asyncio.run(run())


def test_a_broker_that_closes_the_connection_after_apiversions_requires_a_login() -> None:
    async def closing() -> None:
        broker = FakeBroker()
        await broker.start()

        async def close(_request: object) -> None:
            await broker.close()

        broker.handles[ApiKey.METADATA] = close
        with pytest.raises(ClusterUnauthorized, match=r"requires a login; set security\.protocol"):
            await asyncio.to_thread(refused, broker)

    def refused(broker: FakeBroker) -> None:
        settings = ConnectionSettings(f"127.0.0.1:{broker.port}", {}, WITHIN_SECONDS)
        with ClusterConnection(settings) as connection:
            served_by(connection)

    asyncio.run(closing())


def test_the_log_sizes_of_chosen_partitions_are_requested_by_topic() -> None:
    requested: list[object] = []

    async def described(request: DescribeLogDirsRequestData) -> WireStruct:
        requested.append(None if request.topics is None else {one.topic: [*one.partitions] for one in request.topics})
        return DescribeLogDirsResponseData(results=[])

    def scenario(connection: ClusterConnection, _first: FakeBroker, second: FakeBroker) -> None:
        second.handles[ApiKey.DESCRIBE_LOG_DIRS] = described
        chosen = [TopicPartition("orders", 0), TopicPartition("orders", 2), TopicPartition("payments", 1)]
        for partitions in (chosen, None):
            connection.run(lambda partitions=partitions: broker_logs(connection, 2, partitions))

    with_brokers(scenario)
    assert requested == [{"orders": [0, 2], "payments": [1]}, None]


def test_a_broker_that_moved_is_connected_to_at_its_new_address() -> None:
    def scenario(connection: ClusterConnection, first: FakeBroker, second: FakeBroker) -> None:
        assert served_by(connection, 2) == "2"
        assert second.connections == 1
        # Broker 2 is now at the address of broker 1.
        first.handles[ApiKey.METADATA] = responding(metadata_of(first, first))
        connection.run(connection.replace_silent_server)
        assert served_by(connection, 2) == "1"

    with_brokers(scenario)


def test_a_cluster_that_lists_no_broker_is_starting() -> None:
    async def run() -> str:
        broker = FakeBroker()
        await broker.start()
        broker.handles[ApiKey.METADATA] = responding(MetadataResponseData())
        message = await asyncio.to_thread(refusal, f"127.0.0.1:{broker.port}")
        await broker.close()
        return message

    assert ": it lists no broker yet; is the cluster starting?" in asyncio.run(run())


def test_a_coroutine_that_ends_after_the_deadline_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_cluster, "_GRACE_SECONDS", 0.05)

    async def late() -> None:
        await asyncio.sleep(WITHIN_SECONDS)

    async def timed_out() -> None:
        raise TimeoutError("of the coroutine itself")

    def scenario(connection: ClusterConnection, _first: FakeBroker, _second: FakeBroker) -> None:
        with pytest.raises(TimeoutError, match="of the coroutine itself"):
            connection.run(timed_out)
        connection._deadline = time.monotonic()
        with pytest.raises(ClusterUnreachable, match=r"no broker responded: .*: nothing within 180 s"):
            connection.run(late)
        assert connection.remaining_seconds == 0
        connection.renew_deadline()
        assert WITHIN_SECONDS - 5 < connection.remaining_seconds <= WITHIN_SECONDS
        assert served_by(connection) == "1"
        ended = connection.submit(late)
        connection.close()
        with pytest.raises(CancelledError):
            ended()

    with_brokers(scenario)


def refused_over_tls(folder: Path, *, presented: bool) -> str:
    """The error for a server that accepts certificates of an authority of its own."""
    servers, strangers = authority(folder / "servers", "servers"), authority(folder / "strangers", "strangers")
    own = servers.identity("server")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(own.certificate, own.key)
    context.load_verify_locations(servers.certificate)
    context.verify_mode = ssl.CERT_REQUIRED
    properties = {
        "security.protocol": "SSL",
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(servers.certificate),
    }
    if presented:
        stranger = strangers.identity("stranger")
        properties |= {"ssl.keystore.type": "PEM", "ssl.keystore.location": str(stranger.store)}

    async def run() -> str:
        server = await asyncio.start_server(lambda _reader, writer: writer.close(), "127.0.0.1", 0, ssl=context)
        async with server:
            address = f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
            settings = ConnectionSettings(address, properties, WITHIN_SECONDS)
            with pytest.raises(ClusterUnauthorized) as refused:
                await asyncio.to_thread(ClusterConnection(settings).__enter__)
            return str(refused.value).removeprefix(address)

    return asyncio.run(run())


@pytest.mark.slow
@pytest.mark.parametrize(
    ("presented", "words"),
    [(False, " requires a client certificate; set ssl.keystore"), (True, " does not accept the client certificate of")],
)
def test_a_server_that_refuses_the_client_certificate_says_which_is_missing(
    tmp_path: Path, presented: bool, words: str
) -> None:
    assert refused_over_tls(tmp_path, presented=presented).startswith(words)


def test_a_login_that_is_refused_or_cut_off_has_the_same_words() -> None:
    jaas = 'a.PlainLoginModule required username="u" password="p";'
    login = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN", "sasl.jaas.config": jaas}

    async def run() -> str:
        async with await asyncio.start_server(SaslBroker(accepts=False).serve, "127.0.0.1", 0) as server:
            return await asyncio.to_thread(refusal_of, f"127.0.0.1:{server.sockets[0].getsockname()[1]}")

    def refusal_of(address: str) -> str:
        with pytest.raises(ClusterUnauthorized) as refused:
            ClusterConnection(ConnectionSettings(address, login, WITHIN_SECONDS)).__enter__()
        return str(refused.value).removeprefix(address)

    assert asyncio.run(run()) == (
        " refused the login: user, password or mechanism PLAIN is wrong; check sasl.mechanism and sasl.jaas.config in "
        "--command-config"
    )


def test_a_login_that_fails_on_this_side_is_not_one_that_the_server_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    async def failing(*_: object) -> None:
        raise LoginFailedHere("cannot be logged in to as a: GSSAPI fails on this side: no ticket")

    monkeypatch.setattr(BrokerConnection, "open", failing)
    with pytest.raises(ClusterUnauthorized) as refused:
        ClusterConnection(ConnectionSettings("a:1", {}, WITHIN_SECONDS)).__enter__()
    assert str(refused.value) == "a:1 cannot be logged in to as a: GSSAPI fails on this side: no ticket"


def test_the_network_thread_holds_up_no_end_of_the_process() -> None:
    # A connection that another test did not close has such a thread too.
    before = threading.enumerate()

    def scenario(_connection: ClusterConnection, _first: FakeBroker, _second: FakeBroker) -> None:
        begun = [one for one in threading.enumerate() if one not in before]
        assert [one.daemon for one in begun if one.name == "rackspan-client"] == [True]

    with_brokers(scenario)


def test_of_servers_that_respond_at_once_the_others_are_closed_and_failures_passed_over() -> None:
    closed: list[str] = []

    async def responds(name: str) -> object:
        return SimpleNamespace(close=lambda: closed.append(name))

    async def fails() -> object:
        raise ConnectionResetError

    async def run() -> None:
        tasks: list[asyncio.Task[Any]] = [
            asyncio.create_task(one) for one in (responds("a"), fails(), asyncio.sleep(WITHIN_SECONDS))
        ]
        await asyncio.wait(tasks[:2])
        for task in tasks:
            ClusterConnection._give_up(object.__new__(ClusterConnection), task)
        await asyncio.wait(tasks)
        assert tasks[2].cancelled()

    asyncio.run(run())
    assert closed == ["a"]


@pytest.mark.parametrize("closed", [False, True])
def test_a_look_up_that_ends_after_it_was_given_up_is_no_fault(closed: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor one that ends after its loop."""
    go_on, faults = threading.Event(), list[object]()
    monkeypatch.setattr(socket, "getaddrinfo", _waiting(go_on))
    monkeypatch.setattr(threading, "excepthook", faults.append)
    loop = DaemonThreadLoop()
    loop.set_exception_handler(lambda _loop, context: faults.append(context))

    async def given_up() -> None:
        looking = asyncio.ensure_future(loop.getaddrinfo("kafka.example", 9092))
        await asyncio.sleep(0)
        assert loop.unresolved == {"kafka.example"}
        looking.cancel()
        await asyncio.wait([looking])

    loop.run_until_complete(given_up())
    if closed:
        loop.close()
    go_on.set()
    loop._daemons.shutdown()
    if not closed:
        loop.run_until_complete(asyncio.sleep(0))
        assert loop.unresolved == set()
        loop.close()
    assert faults == []

"""Clients through the gateway: they meet the gateway's addresses alone, and everything they do works as without it."""

import asyncio
import logging
import re
import socket
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from uuid import uuid4

import aiokafka
import pytest
from confluent_kafka import Consumer, KafkaError, Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic
from kafka import KafkaConsumer, KafkaProducer
from msgspec.structs import replace

from rackspan.cluster import EmbeddedCluster
from rackspan.errors import MalformedRequest, UsageError
from rackspan.gateway import app
from rackspan.gateway.app import Gateway, open_gateway
from rackspan.gateway.check import check_cluster
from rackspan.gateway.config import GatewayConfig, parse_config
from rackspan.gateway.core.record_bytes import ClientLabels, RecordBytes
from rackspan.gateway.metrics import READY_SECONDS, _readiness, not_ready
from rackspan.wire.apis import ApiKey
from rackspan.wire.messages.metadata import MetadataResponseBroker, MetadataResponseData
from tests.certificates import authority
from tests.client.fake_broker import FakeBroker
from tests.gateway.running import RunningGateway, document, running
from tests.gateway.sleeps import Limits
from tests.kafka_fixtures import records_in
from tests.waiting import WITHIN_SECONDS, eventually

RECORDS = [str(number).encode() * 200 for number in range(2000)]


def new_topic(servers: str, partitions: int = 3) -> str:
    name = f"topic-{uuid4().hex[:8]}"
    admin = AdminClient({"bootstrap.servers": servers})
    admin.create_topics([NewTopic(name, partitions, 3)])[name].result(WITHIN_SECONDS)
    return name


def reporting(errors: list[object]) -> Callable[[object, object], None]:
    """A delivery callback that keeps the errors."""

    def delivered(error: object, _message: object) -> None:
        if error is not None:
            errors.append(error)

    return delivered


def produced(servers: str, topic: str, records: Iterable[bytes], **config: object) -> list[object]:
    """The errors of the deliveries."""
    errors: list[object] = []
    producer = Producer({"bootstrap.servers": servers, "acks": "all", "log_level": 0, **config})
    for record in records:
        producer.produce(topic, record, on_delivery=reporting(errors))
        producer.poll(0)
    assert producer.flush(WITHIN_SECONDS) == 0
    return errors


def consumed(servers: str, topic: str, count: int) -> list[bytes]:
    consumer = Consumer(
        {"bootstrap.servers": servers, "group.id": uuid4().hex, "auto.offset.reset": "earliest", "log_level": 0}
    )
    consumer.subscribe([topic])
    values: list[bytes] = []
    until = time.monotonic() + WITHIN_SECONDS
    while len(values) < count and time.monotonic() < until:
        values += [message.value() or b"" for message in consumer.consume(1000, 0.2) if message.error() is None]
    consumer.close()
    return values


def test_librdkafka_produces_and_consumes(gateway: RunningGateway) -> None:
    topic = new_topic(gateway.bootstrap_servers)
    assert produced(gateway.bootstrap_servers, topic, RECORDS, **{"enable.idempotence": True}) == []
    assert sorted(consumed(gateway.bootstrap_servers, topic, len(RECORDS))) == sorted(RECORDS)


@pytest.mark.slow
def test_kafka_python_produces_and_consumes(gateway: RunningGateway) -> None:
    topic = new_topic(gateway.bootstrap_servers)
    producer = KafkaProducer(bootstrap_servers=gateway.bootstrap_servers, acks="all")
    for record in RECORDS[:200]:
        producer.send(topic, record)
    producer.flush(WITHIN_SECONDS)
    producer.close()
    consumer = KafkaConsumer(topic, bootstrap_servers=gateway.bootstrap_servers, auto_offset_reset="earliest")
    values = [message.value for _, message in zip(range(200), consumer, strict=False)]
    consumer.close()
    assert sorted(values) == sorted(RECORDS[:200])


def test_aiokafka_produces_and_consumes(gateway: RunningGateway) -> None:
    topic = new_topic(gateway.bootstrap_servers)

    async def work() -> list[bytes | None]:
        producer = aiokafka.AIOKafkaProducer(bootstrap_servers=gateway.bootstrap_servers, acks="all")
        consumer = aiokafka.AIOKafkaConsumer(
            topic, bootstrap_servers=gateway.bootstrap_servers, auto_offset_reset="earliest", group_id=uuid4().hex
        )
        await producer.start()
        await consumer.start()
        try:
            for record in RECORDS[:200]:
                await producer.send(topic, record)
            await producer.flush()
            return [(await asyncio.wait_for(consumer.getone(), WITHIN_SECONDS)).value for _ in range(200)]
        finally:
            await producer.stop()
            await consumer.stop()

    assert sorted(value or b"" for value in asyncio.run(work())) == sorted(RECORDS[:200])


def test_transactions_pass(gateway: RunningGateway) -> None:
    topic = new_topic(gateway.bootstrap_servers)
    producer = Producer(
        {"bootstrap.servers": gateway.bootstrap_servers, "transactional.id": uuid4().hex, "log_level": 0}
    )
    producer.init_transactions(20)
    for commit in (True, False):
        producer.begin_transaction()
        for number in range(10):
            producer.produce(topic, b"kept" if commit else b"dropped", partition=number % 3)
        producer.commit_transaction(20) if commit else producer.abort_transaction(20)
    assert consumed(gateway.bootstrap_servers, topic, 10) == [b"kept"] * 10


def test_clients_meet_the_gateways_addresses_alone(gateway: RunningGateway, cluster: EmbeddedCluster) -> None:
    admin = AdminClient({"bootstrap.servers": gateway.bootstrap_servers, "log_level": 0})
    listed = {(one.host, one.port) for one in admin.list_topics(timeout=WITHIN_SECONDS).brokers.values()}
    described = {(one.host, one.port) for one in admin.describe_cluster().result(WITHIN_SECONDS).nodes}
    assert listed == described == {gateway.address(broker) for broker in cluster.brokers}


def test_new_leaders_are_found_through_the_gateway(gateway: RunningGateway, cluster: EmbeddedCluster) -> None:
    topic = new_topic(gateway.bootstrap_servers, partitions=6)
    with_open_client = Producer({"bootstrap.servers": gateway.bootstrap_servers, "acks": "all", "log_level": 0})
    errors: list[object] = []
    for rack in ("r1", "r2"):
        cluster.lose_rack(rack)
        for number in range(60):
            with_open_client.produce(topic, b"x", partition=number % 6, on_delivery=reporting(errors))
        assert with_open_client.flush(WITHIN_SECONDS) == 0
        cluster.restore_rack(rack)
        cluster.wait_for_isr()
    assert errors == []
    assert len(consumed(gateway.bootstrap_servers, topic, 120)) == 120


def test_a_broker_that_is_new_gets_a_listener(cluster: EmbeddedCluster) -> None:
    with running(cluster.bootstrap_servers) as gateway:

        async def forget_and_meet_again() -> tuple[str, int]:
            gateway.gateway.listeners.by_broker.pop(2).close()
            return gateway.gateway.listeners.advertised(2, "127.0.0.1", 1)

        address = gateway.run(forget_and_meet_again())
        assert gateway.address(2) == address
        with socket.create_connection(address, WITHIN_SECONDS):
            pass


def test_draining_loses_no_acknowledgement(cluster: EmbeddedCluster) -> None:
    topic = new_topic(cluster.bootstrap_servers)
    with running(cluster.bootstrap_servers) as gateway:
        producer = Producer(
            {
                "bootstrap.servers": gateway.bootstrap_servers,
                "acks": "all",
                "log_level": 0,
                "retries": 0,
                "linger.ms": 1,
                # short: what is left when the gateway has ended is never delivered
                "message.timeout.ms": 15_000,
            }
        )
        acknowledged: list[bytes] = []

        def delivered(error: object, message: object) -> None:
            if error is None:
                acknowledged.append(message.value())  # type: ignore[attr-defined]

        for number in range(3000):
            producer.produce(topic, str(number).encode(), on_delivery=delivered)
            producer.poll(0)
            if number == 500:
                producer.flush(WITHIN_SECONDS)
            if number == 1500:
                assert gateway.run(gateway.gateway.drain(10)) == 0
        producer.flush(WITHIN_SECONDS)
        kept = records_in(cluster, topic)
    # What the brokers appended was acknowledged, and nothing else was.
    assert set(acknowledged) == set(kept)
    assert acknowledged


def test_a_reload_takes_over_policies_and_refuses_what_needs_a_restart(gateway: RunningGateway) -> None:
    servers = gateway.gateway.config.bootstrap_servers
    changed = parse_config(document(servers, topics={"reloaded": {"min": {"insync": {"racks": 2}}}}))

    async def reload(config: object) -> None:
        gateway.gateway.reload(config)  # type: ignore[arg-type]

    gateway.run(reload(changed))
    assert gateway.gateway.policies.requirement("reloaded", 1) is not None
    with pytest.raises(UsageError, match="restart"):
        gateway.run(reload(parse_config(document(servers, acknowledgements={"mode": "pre"}))))
    gateway.run(reload(parse_config(document(servers))))
    assert gateway.gateway.policies.requirement("reloaded", 1) is None


def test_a_reload_takes_over_how_old_a_sample_may_be_and_the_memory_of_what_is_held(gateway: RunningGateway) -> None:
    before = gateway.gateway.config
    keys = {"hold": {"memory": {"bytes": 123_456}}, "max": {"staleness": {"ms": 321}}}

    async def reload(config: GatewayConfig) -> tuple[float, float]:
        gateway.gateway.reload(config)
        assert gateway.gateway.guarding is not None
        settings = gateway.gateway.guarding.guard.settings
        return settings.hold_memory_bytes, settings.max_staleness_seconds

    assert gateway.run(reload(parse_config(document(before.bootstrap_servers, acknowledgements=keys)))) == (
        123_456,
        0.321,
    )
    gateway.run(reload(before))


def test_a_reload_takes_over_whether_weak_acks_are_denied(gateway: RunningGateway) -> None:
    servers, topic = gateway.gateway.config.bootstrap_servers, new_topic(gateway.bootstrap_servers)
    guarded = {topic: {"min": {"insync": {"racks": 2}}}}

    async def reload(**tables: Any) -> None:
        gateway.gateway.reload(parse_config(document(servers, **tables)))

    gateway.run(reload(topics=guarded))
    assert produced(gateway.bootstrap_servers, topic, [b"x"], acks="1") == []
    gateway.run(reload(topics=guarded, acknowledgements={"deny": {"weak": {"acks": True}}}))
    (error,) = produced(gateway.bootstrap_servers, topic, [b"x"], acks="1")
    assert isinstance(error, KafkaError)
    assert error.code() == KafkaError.POLICY_VIOLATION
    gateway.run(reload())


def test_a_gateway_that_has_read_nothing_for_long_is_not_ready(gateway: RunningGateway) -> None:
    guarding, cluster = gateway.gateway.guarding, gateway.gateway.cluster
    assert guarding is not None
    config_topic = guarding.config_topic
    assert config_topic is not None

    async def reasons() -> list[str | None]:
        """Nothing is read meanwhile: the loop is not left."""
        now = asyncio.get_running_loop().time()
        before = not_ready(gateway.gateway)
        ends, lease = config_topic.ends, config_topic.lease
        began_at, lease.began_at = lease.began_at, float("-inf")
        status, text = _readiness(gateway.gateway)
        assert (status, f"warning: {ends.warning()}" in text.splitlines()) == (200, True)
        assert ends._lapsed_at is not None
        ends._lapsed_at -= READY_SECONDS
        unread = (not_ready(gateway.gateway) or "").partition(" from ")[0]
        lease.began_at = began_at
        # In mode advisory nothing depends on the topic's end.
        guarding.ends, read_at, config_topic.read_at = None, config_topic.read_at, now - READY_SECONDS - 1
        unfollowed = not_ready(gateway.gateway)
        guarding.ends, config_topic.read_at = ends, read_at
        refreshed_at, cluster.refreshed_at = cluster.refreshed_at, now - READY_SECONDS - 1
        unrefreshed = not_ready(gateway.gateway)
        cluster.refreshed_at = refreshed_at
        return [before, unread, unfollowed, unrefreshed]

    assert gateway.run(reasons()) == [
        None,
        f"the end of the config topic {config_topic.topic} could not be read",
        f"the config topic {config_topic.topic} cannot be read",
        "the cluster does not respond",
    ]


RESTART: list[tuple[str, dict[str, Any], str]] = [
    ("bootstrap_servers", {"bootstrap": {"servers": "elsewhere:1"}}, "bootstrap.servers"),
    ("command_config", {"command": {"config": __file__}}, "command.config"),
    ("controllers", {"controllers": {"bootstrap": {"servers": "c:1"}}}, "controllers.bootstrap.servers"),
    (
        "controllers_command_config",
        {"controllers": {"bootstrap": {"servers": "c:1"}, "command": {"config": __file__}}},
        "controllers.command.config",
    ),
    ("broker_identity", {"broker": {"identity": "address"}}, "broker.identity"),
    ("listen_host", {"listen": {"host": "0.0.0.0"}}, "listen.host"),  # noqa: S104 — nothing listens there
    ("first_port", {"listen": {"first": {"port": 9}}}, "listen.first.port"),
    ("http", {"listen": {"http": "127.0.0.1:9"}}, "listen.http"),
    ("request_memory_bytes", {"listen": {"request": {"memory": {"bytes": 2_000_000}}}}, "listen.request.memory.bytes"),
    ("advertised_host", {"listen": {"advertised": {"host": "elsewhere"}}}, "the listener of broker 1"),
    ("brokers", {"brokers": {"2": {"advertised.port": 9}}}, "the listener of broker 2"),
    ("config_topic", {"acknowledgements": {"config": {"topic": "other"}}}, "acknowledgements.config.topic"),
    ("gateway_id", {"gateway.id": "another"}, "gateway.id"),
    (
        "create_config_topic",
        {"acknowledgements": {"config": {"topic": {"create": False}}}},
        "acknowledgements.config.topic.create",
    ),
    ("rack_locator", {"racks": {"rack": {"locator": {"class": "file"}}}}, "racks.rack.locator.class"),
    (
        "rack_locator_properties",
        {"racks": {"rack": {"locator": {"properties": "a=b"}}}},
        "racks.rack.locator.properties",
    ),
    ("log_format", {"log": {"format": "json"}}, "log.format"),
    ("mode", {"acknowledgements": {"mode": "pre"}}, "acknowledgements.mode"),
    ("placer", {"placement": {"replica.placer.class.name": "striped"}}, "placement.replica.placer.class.name"),
]

TAKEN_OVER = {
    *(
        "max_connections",
        "max_connections_per_address",
        "max_new_connections_per_address",
        "max_request_bytes",
        "shutdown_seconds",
        "min_insync_racks",
    ),
    *("override", "fail_open", "max_staleness_ms", "hold_memory_bytes", "deny_weak_acks", "extended_error_codes"),
    *("placer_configs", "counters_topics_max", "counters_clients_max", "metrics_partitions", "topics", "principals"),
    # Not begun, and not ended: the tests of readers and of TLS.
    *("readers_rack", "readers_replace_client_rack", "readers_networks", "readers_clients"),
    *("tls_certificate", "tls_key", "tls_client_authorities"),
}
"""Settings that a reload changes while the gateway runs."""


@pytest.mark.parametrize(("setting", "tables", "refused"), RESTART, ids=[setting for setting, *_ in RESTART])
def test_a_reload_refuses_what_it_would_ignore_and_names_it(
    gateway: RunningGateway, setting: str, tables: dict[str, Any], refused: str
) -> None:
    ignored = {"ignored": {"min": {"insync": {"racks": 2}}}}
    running_config = gateway.gateway.config
    config = parse_config(document(running_config.bootstrap_servers, topics=ignored) | tables)
    changed = replace(running_config, **{setting: getattr(config, setting), "topics": config.topics})

    async def reload() -> None:
        gateway.gateway.reload(changed)

    with pytest.raises(UsageError, match=f"^{re.escape(refused)} cannot change while the gateway runs; restart it"):
        gateway.run(reload())
    assert gateway.gateway.policies.requirement("ignored", 1) is None


def test_every_setting_is_taken_over_by_a_reload_or_refused() -> None:
    refused = [setting for setting, *_ in RESTART]
    assert sorted([*refused, *TAKEN_OVER]) == sorted(GatewayConfig.__struct_fields__)


def test_a_reload_takes_over_readers_and_does_not_begin_them(gateway: RunningGateway, cluster: EmbeddedCluster) -> None:
    def config(rack: str | None) -> GatewayConfig:
        readers = {} if rack is None else {"readers": {"rack": rack}}
        return parse_config(document(cluster.bootstrap_servers, **readers))

    with pytest.raises(UsageError, match=r"\[readers\] cannot begin or end while the gateway runs; restart it"):
        gateway.gateway.reload(config("r1"))
    with running(cluster.bootstrap_servers, readers={"rack": "r1"}) as reading:

        async def reload() -> object:
            reading.gateway.reload(config("r2"))
            return reading.gateway.fetch.rack_of("127.0.0.1", "anybody")

        assert reading.run(reload()) == "r2"
        with pytest.raises(UsageError, match=r"\[readers\] cannot begin or end"):
            reading.gateway.reload(config(None))


def test_a_gateway_does_not_start_before_a_cluster_without_brokers_nor_at_a_port_in_use() -> None:
    async def scenario() -> None:
        reported: list[MetadataResponseBroker] = []

        async def metadata(_: object) -> MetadataResponseData:
            return MetadataResponseData(brokers=reported)

        broker = FakeBroker()
        await broker.start()
        broker.handles[ApiKey.METADATA] = metadata
        servers = f"127.0.0.1:{broker.port}"
        with pytest.raises(UsageError, match=f"{servers}: the cluster reports no broker; is it starting"):
            await open_gateway(parse_config(document(servers)))
        reported.append(MetadataResponseBroker(node_id=0, host="127.0.0.1", port=broker.port))
        tables: dict[str, Any] = {"brokers": {"0": {"port": broker.port}}, "acknowledgements": {"mode": "off"}}
        in_use = f"the listener of broker 0 cannot be at {servers}: Address already in use; choose another"
        with pytest.raises(UsageError, match=in_use):
            await open_gateway(parse_config(document(servers, **tables)))
        # Nothing is left running.
        await asyncio.sleep(0)
        assert [task for task in asyncio.all_tasks() if "rackspan/gateway" in repr(task)] == []
        await broker.close()

    asyncio.run(scenario())


@pytest.mark.slow
def test_a_reload_refuses_tls_where_there_was_none(gateway: RunningGateway, tmp_path: Path) -> None:
    identity = authority(tmp_path, "gateways").identity("gateway")
    files = {"certificate": str(identity.certificate), "key": str(identity.key)}
    config = parse_config(document(gateway.gateway.config.bootstrap_servers, listen={"tls": files}))

    async def reload() -> None:
        gateway.gateway.reload(config)

    with pytest.raises(UsageError, match=r"listen\.tls cannot begin or end while the gateway runs"):
        gateway.run(reload())


def test_a_reload_closes_the_connections_of_a_principal_that_it_has_no_more(gateway: RunningGateway) -> None:
    producer = Producer({"bootstrap.servers": gateway.bootstrap_servers, "log_level": 0})
    producer.produce(new_topic(gateway.bootstrap_servers), b"x")
    assert producer.flush(WITHIN_SECONDS) == 0
    sessions = gateway.gateway.clients.sessions
    first, *others = sessions

    async def reload() -> None:
        gateway.gateway.reload(gateway.gateway.config)

    gateway.run(reload())
    assert first in sessions
    first.principal = "alice"
    gateway.run(reload())
    eventually(lambda: first not in sessions, "the connection is closed")
    assert set(others) <= sessions


def test_a_reload_refuses_another_login_in_the_same_file(cluster: EmbeddedCluster, tmp_path: Path) -> None:
    login = tmp_path / "command.properties"
    login.write_text("client.id = before\n")
    tables = {"command": {"config": str(login)}}
    with running(cluster.bootstrap_servers, **tables) as gateway:
        config = parse_config(document(cluster.bootstrap_servers, **tables))

        async def reload() -> None:
            gateway.gateway.reload(config)

        gateway.run(reload())
        login.write_text("client.id = after\n")
        with pytest.raises(
            UsageError, match=r"command\.properties has changed, and the gateway's own connections keep"
        ):
            gateway.run(reload())


def test_files_of_secrets_that_every_user_may_read_are_warned_of(
    cluster: EmbeddedCluster, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    login, key = tmp_path / "command.properties", authority(tmp_path, "gateways").identity("gateway").store
    login.write_text(f"client.id = gateway\nssl.keystore.type = PEM\nssl.keystore.location = {key}\n")
    tables = {"command": {"config": str(login)}}
    config = parse_config(document(cluster.bootstrap_servers, **tables))
    for mode, warned in ((0o644, True), (0o600, False), (0o640, False)):
        login.chmod(mode)
        key.chmod(mode)
        caplog.clear()
        results = asyncio.run(check_cluster(config))
        reasons = [result.reason for result in results if result.check == "secrets"]
        assert [reason.partition(" ")[0] for reason in reasons] == [str(login), str(key)] * warned
        with running(cluster.bootstrap_servers, **tables) as gateway:
            assert any(f"chmod 600 {login}" in line for line in caplog.messages) is warned
            # Everybody may read this page.
            assert not any(str(login) in warning for warning in gateway.gateway.warnings())


def test_settings_that_are_ignored_or_promise_less_and_an_address_of_another_protocol_are_warned_of(
    cluster: EmbeddedCluster, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    login = tmp_path / "command.properties"
    login.write_text("client.id=gateway\nacks=all\nschema.registry.url=https://registry\n")
    login.chmod(0o600)
    servers = f"SSL://{cluster.bootstrap_servers}"
    tables = {"command": {"config": str(login)}, "broker": {"identity": "address"}}
    warnings = [
        f"{login}: settings of other clients and tools are ignored: acks, schema.registry.url",
        f"bootstrap.servers {servers}: the address says SSL, and connections use PLAINTEXT; set security.protocol=SSL, or "
        "leave SSL:// out",
        "broker.identity is address: the log of any broker that responds at a broker's address counts as that broker's; "
        "grant the gateway DESCRIBE_CONFIGS on the cluster and remove it",
    ]
    results = asyncio.run(check_cluster(parse_config(document(servers, **tables))))
    assert [result.reason for result in results if result.check == "connection"] == warnings
    with running(servers, **tables):
        assert [line for line in caplog.messages if line in warnings] == warnings


def test_what_a_reload_leaves_to_be_corrected_is_logged(
    gateway: RunningGateway, caplog: pytest.LogCaptureFixture
) -> None:
    servers = gateway.gateway.config.bootstrap_servers

    async def reload(**tables: Any) -> None:
        gateway.gateway.reload(parse_config(document(servers, **tables)))

    gateway.run(reload(acknowledgements={"override": {"min": {"insync": {"racks": 1}}}}))
    warned = "acknowledgements.override.min.insync.racks is 1: values above it are not enforced"
    assert [line for line in caplog.messages if line.startswith(warned)] != []
    caplog.clear()
    gateway.run(reload())
    assert [line for line in caplog.messages if line.startswith(warned)] == []


class Ending:
    """Listeners, clients, a cluster and a backend of a gateway that ends, each with nothing open."""

    def __init__(self) -> None:
        self.cluster = self.policies = None
        self.shared = SimpleNamespace(record_bytes=RecordBytes(100, 100))
        self.sessions: set[object] = set()

    async def drain(self, _seconds: float) -> None:
        """No session is open."""

    def close(self) -> None:
        """Nothing is open."""


def test_a_gateway_that_ends_is_not_ready_while_its_clients_are_served(monkeypatch: pytest.MonkeyPatch) -> None:
    parts: Any = Ending()
    made = Gateway(parts, parts, parts, None, None, parts)
    reasons: list[str | None] = []

    async def drain(_seconds: float) -> None:
        reasons.append(not_ready(made))

    monkeypatch.setattr(parts, "drain", drain)
    asyncio.run(made.drain(0))
    assert reasons == ["ending"]


def test_the_log_at_the_end_has_a_line_for_each_of_the_fifty_largest_series_and_one_for_the_rest(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO, app.__name__)
    parts: Any = Ending()
    record_bytes: RecordBytes = parts.shared.record_bytes
    for number in range(1, 53):
        record_bytes.add(ClientLabels("shop"), 1, f"topic-{number}", 0, 1000 + number, produced=True)
    record_bytes.settle(record_bytes.unsettled(), {}, {})
    assert asyncio.run(Gateway(parts, parts, parts, None, None, parts).drain(0)) == 0
    assert len(caplog.messages) == 51
    assert caplog.messages[0].startswith("1052 bytes of records: produce topic-52, client 'shop'")
    assert caplog.messages[50] == "2003 bytes of records in 2 more series"


def test_a_gateway_ends_though_no_broker_responds_to_the_last_request_for_metadata(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    limits = Limits(1)
    monkeypatch.setattr(asyncio, "timeout", limits)
    parts: Any = Ending()
    parts.cluster = SimpleNamespace(any_connection=asyncio.Event().wait)
    parts.shared.record_bytes.add(ClientLabels("shop"), 1, "orders", 0, 10)
    assert asyncio.run(Gateway(parts, parts, parts, None, None, parts).drain(0)) == 0
    assert limits.seconds == [2.0]
    assert parts.shared.record_bytes.flows.total() == 10


def test_brokers_that_only_responses_name_get_few_listeners_and_not_for_long(gateway: RunningGateway) -> None:
    listeners = gateway.gateway.listeners.by_broker
    opened = 0

    async def named(ids: Iterable[int]) -> None:
        nonlocal opened
        try:
            for node_id in ids:
                gateway.gateway.listeners.advertised(node_id, "127.0.0.1", 1)
        finally:
            # Counted before the loop runs a refresh, which closes them.
            opened = len(listeners)

    for ids in ([-1], range(1000, 2000)):
        with pytest.raises(MalformedRequest, match="which the cluster's metadata does not"):
            gateway.run(named(ids))
    assert 3 < opened < 200
    eventually(lambda: set(listeners) == {1, 2, 3}, "the next refresh has closed them")


def test_a_response_does_not_move_a_broker_that_the_cluster_reports_elsewhere(gateway: RunningGateway) -> None:
    before = dict(gateway.gateway.cluster.by_id)

    async def named() -> None:
        gateway.gateway.listeners.advertised(1, "192.0.2.1", 9092)

    gateway.run(named())
    assert gateway.gateway.cluster.by_id[1] == before[1]

"""Which broker of Apache Kafka a connection ends at: what each release proves, with ACLs and without, and who does not start."""

import asyncio
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import pytest
from confluent_kafka.admin._acl import AclBinding, AclBindingFilter, AclOperation, AclPermissionType
from confluent_kafka.admin._resource import ResourcePatternType, ResourceType

from rackspan.client.brokers import KnownBroker, KnownBrokers
from rackspan.client.config import kafka_python_settings, librdkafka_settings
from rackspan.client.connection import BrokerConnection
from rackspan.client.identity import IdentityMode, prove_server
from rackspan.client.login import Login, login_of
from rackspan.errors import OtherBroker, RackspanError, UnprovableBroker
from rackspan.gateway.app import open_gateway
from rackspan.gateway.config import parse_config
from rackspan.kafka_process import TESTED_VERSIONS, KafkaCluster
from rackspan.kafka_source.writing.options import parse_sink
from rackspan.kafka_source.writing.sender import opened_sender
from rackspan.producers import GuardedAIOKafkaProducer, GuardedKafkaProducer, GuardedProducer
from rackspan.wire.apis import ApiKey
from rackspan.wire.messages.metadata import MetadataRequestData
from tests.gateway.running import document
from tests.kafka_fixtures import SECURED, USERS, client_properties, started
from tests.secured_fixtures import admin_client
from tests.waiting import WITHIN_SECONDS, eventually

pytestmark = [pytest.mark.kafka, pytest.mark.rest]

NEWEST, OLDEST = TESTED_VERSIONS[-1], TESTED_VERSIONS[0]
COMPARES_IDS = "4.4"
PROVED = "proved"
RELEASES = [
    version if version in (NEWEST, OLDEST) else pytest.param(version, marks=pytest.mark.soak)
    for version in TESTED_VERSIONS
]


@pytest.fixture(scope="module", params=RELEASES)
def secured(request: pytest.FixtureRequest) -> Iterator[KafkaCluster]:
    """Two brokers with ACLs: `reader` has DESCRIBE_CONFIGS on the cluster, `nobody` has no right to read."""
    cluster = KafkaCluster(("a", "b"), 2, version=request.param, controllers={101: None}, config=SECURED)
    for running in started(cluster):
        # Its producers are idempotent; this shows them nothing.
        grant(running, "nobody", AclOperation.IDEMPOTENT_WRITE)
        grant(running, "reader", AclOperation.DESCRIBE_CONFIGS)
        eventually(partial(may_describe, running), "both brokers have the ACL")
        yield running


def may_describe(cluster: KafkaCluster) -> bool:
    return [proof(cluster, login("reader"), broker, broker) for broker in (1, 2)] == [PROVED] * 2


def acl_of(user: str, operation: AclOperation) -> dict[str, Any]:
    return {
        "restype": ResourceType.BROKER,
        "name": "kafka-cluster",
        "resource_pattern_type": ResourcePatternType.LITERAL,
        "principal": f"User:{user}",
        "host": "*",
        "operation": operation,
        "permission_type": AclPermissionType.ALLOW,
    }


def grant(cluster: KafkaCluster, user: str, operation: AclOperation) -> None:
    acl = AclBinding(**acl_of(user, operation))
    admin = admin_client(cluster)
    admin.create_acls([acl])[acl].result(WITHIN_SECONDS)


def revoke(cluster: KafkaCluster, user: str, operation: AclOperation) -> None:
    acl = AclBindingFilter(**acl_of(user, operation))
    admin = admin_client(cluster)
    assert len(admin.delete_acls([acl])[acl].result(WITHIN_SECONDS)) == 1


def login(user: str) -> Login:
    return login_of(kafka_python_settings(client_properties(user)))


def proof(cluster: KafkaCluster, as_user: Login, broker: int, responds: int, cluster_id: str | None = None) -> str:
    """Whether a connection to the address of one broker, at which another responds, is proved, or the class of its error."""

    async def scenario() -> str:
        known = KnownBrokers("127.0.0.1:1", as_user, Random(1), IdentityMode.PROVED)
        known.cluster_id = cluster_id or cluster.cluster_id
        for number, at in ((1, 1), (2, 2), (broker, responds)):
            host, port = cluster.address(at).split(":")
            known.by_id[number] = KnownBroker(number, host, int(port))
        try:
            await known.connection(broker)
        except RackspanError as error:
            return type(error).__name__
        finally:
            known.close()
        return PROVED

    return asyncio.run(scenario())


def controller_proof(cluster: KafkaCluster, controller: int) -> str:
    async def scenario() -> str:
        host, port = cluster.bootstrap_controllers.split(":")
        connection = await BrokerConnection.open(host, int(port), Login())
        try:
            await prove_server(connection, cluster.cluster_id, "controller", controller, 1)
        except RackspanError as error:
            return type(error).__name__
        finally:
            connection.close()
        return PROVED

    return asyncio.run(scenario())


def compares_ids(cluster: KafkaCluster) -> bool:
    return str(cluster.version).startswith(COMPARES_IDS)


def proofs(cluster: KafkaCluster, as_user: Login) -> dict[str, str]:
    """What a connection to the address of broker 1 shows where this responds."""
    return {
        "itself": proof(cluster, as_user, 1, 1),
        "broker 2": proof(cluster, as_user, 1, 2),
        "another cluster's": proof(cluster, as_user, 1, 1, "AAAAAAAAAAAAAAAAAAAAAA"),
    }


KNOWN = {"itself": PROVED, "broker 2": OtherBroker.__name__, "another cluster's": OtherBroker.__name__}


def test_a_broker_proves_itself_to_users_who_may_describe_it_and_from_4_4_on_to_everybody(
    secured: KafkaCluster,
) -> None:
    for user in ("admin", "reader"):
        assert proofs(secured, login(user)) == KNOWN, user
    of_nobody = {**KNOWN, **dict.fromkeys(("itself", "broker 2"), UnprovableBroker.__name__)}
    assert proofs(secured, login("nobody")) == (KNOWN if compares_ids(secured) else of_nobody)


def test_a_controller_proves_itself_though_it_accepts_every_id_in_api_versions(secured: KafkaCluster) -> None:
    assert controller_proof(secured, 101) == PROVED
    assert controller_proof(secured, 1001) == OtherBroker.__name__


@pytest.mark.parametrize("version", RELEASES)
def test_without_acls_every_broker_proves_itself(version: str) -> None:
    for cluster in started(KafkaCluster(("a", "b"), 2, version=version, controllers={101: None})):
        assert proofs(cluster, Login()) == KNOWN
        assert controller_proof(cluster, 101) == PROVED
        assert controller_proof(cluster, 1001) == OtherBroker.__name__


def test_without_the_right_that_was_taken_away_open_connections_go_on_and_new_ones_have_no_proof(
    secured: KafkaCluster,
) -> None:
    """But from Kafka 4.4 on, whose brokers prove themselves to everybody."""

    async def scenario() -> None:
        known = KnownBrokers(secured.bootstrap_servers, login("reader"), Random(1), IdentityMode.PROVED)
        await known.refresh()
        opened = await known.connection(1)
        revoke(secured, "reader", AclOperation.DESCRIBE_CONFIGS)
        try:
            missing = PROVED if compares_ids(secured) else UnprovableBroker.__name__
            await asyncio.to_thread(
                eventually, lambda: proof(secured, login("reader"), 1, 1) == missing, "broker 1 has no such ACL"
            )
            assert await known.connection(1) is opened
            assert (await opened.call(ApiKey.METADATA, MetadataRequestData(topics=()))).cluster_id == secured.cluster_id
        finally:
            grant(secured, "reader", AclOperation.DESCRIBE_CONFIGS)
            known.close()

    asyncio.run(scenario())
    eventually(partial(may_describe, secured), "both brokers have the ACL again")


LIKELY = (
    "grant DESCRIBE_CONFIGS on the cluster to this user, or set broker.identity (argument broker_identity of a producer in Python) "
    "to address ("
)


def test_who_can_have_no_proof_does_not_start(secured: KafkaCluster, tmp_path: Path) -> None:
    refusals = [start(secured, tmp_path) for start in (gateway_start, confluent, kafka_python, aiokafka, sink)]
    if compares_ids(secured):
        # The gateway needs more than this user has, and says so.
        assert refusals[1:] == [None] * 4
        assert "gives no proof" not in str(refusals[0])
    else:
        for refusal in refusals:
            assert isinstance(refusal, UnprovableBroker), refusal
            assert "\n" not in str(refusal)
            assert f" gives no proof which one it is, so that its log cannot count: {LIKELY}" in str(refusal)


@pytest.mark.parametrize("start", ["confluent", "kafka_python", "aiokafka", "sink"])
def test_by_its_address_a_producer_starts_without_the_right(secured: KafkaCluster, start: str, tmp_path: Path) -> None:
    starts = {"confluent": confluent, "kafka_python": kafka_python, "aiokafka": aiokafka, "sink": sink}
    assert starts[start](secured, tmp_path, IdentityMode.ADDRESS) is None


def gateway_start(cluster: KafkaCluster, folder: Path) -> Exception | None:
    (folder / "nobody").write_text("".join(f"{key}={value}\n" for key, value in client_properties("nobody").items()))
    tables: dict[str, Any] = {"command": {"config": "nobody"}}

    async def scenario() -> Exception | None:
        try:
            (await open_gateway(parse_config(document(cluster.bootstrap_servers, **tables), "g", folder))).close()
        except RackspanError as error:
            return error
        return None

    return asyncio.run(scenario())


def confluent(cluster: KafkaCluster, _: Path, identity: IdentityMode = IdentityMode.PROVED) -> Exception | None:
    settings: Mapping[str, Any] = librdkafka_settings(client_properties("nobody"))
    servers = {"bootstrap.servers": cluster.bootstrap_servers, "log_level": 0}
    try:
        GuardedProducer({**settings, **servers}, {"orders": 2}, broker_identity=identity.value).close()
    except RackspanError as error:
        return error
    return None


def python_settings(cluster: KafkaCluster) -> dict[str, Any]:
    return {
        "bootstrap_servers": cluster.bootstrap_servers,
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": "PLAIN",
        "sasl_plain_username": "nobody",
        "sasl_plain_password": USERS["nobody"],
    }


def kafka_python(cluster: KafkaCluster, _: Path, identity: IdentityMode = IdentityMode.PROVED) -> Exception | None:
    try:
        GuardedKafkaProducer({"orders": 2}, broker_identity=identity.value, **python_settings(cluster)).close()
    except RackspanError as error:
        return error
    return None


def aiokafka(cluster: KafkaCluster, _: Path, identity: IdentityMode = IdentityMode.PROVED) -> Exception | None:
    async def scenario() -> Exception | None:
        producer = GuardedAIOKafkaProducer(
            {"orders": 2}, broker_identity=identity.value, enable_idempotence=False, **python_settings(cluster)
        )
        try:
            await producer.start()
        except RackspanError as error:
            return error
        await producer.stop()
        return None

    return asyncio.run(scenario())


def sink(cluster: KafkaCluster, _: Path, identity: IdentityMode = IdentityMode.PROVED) -> Exception | None:
    options = {
        "kafka.bootstrap.servers": cluster.bootstrap_servers,
        "min.insync.racks": "2",
        "broker.identity": identity.value,
        **{f"kafka.{key}": value for key, value in client_properties("nobody").items()},
    }
    try:
        with opened_sender(parse_sink(options)):
            return None
    except RackspanError as error:
        return error

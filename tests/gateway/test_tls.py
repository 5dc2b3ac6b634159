"""TLS at both ends of the gateway before real Kafka, mutual TLS and SCRAM: a client has its own rights, and nobody else's."""

import socket
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from struct import pack
from typing import Any
from uuid import uuid4

import pytest
from confluent_kafka import KafkaException, Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from rackspan.client.config.tls import tls_context
from rackspan.gateway.config import parse_config
from tests.certificates import Identity
from tests.gateway.running import RunningGateway, document, running
from tests.kafka_fixtures import USERS
from tests.secured_fixtures import Secured, scram_login
from tests.waiting import WITHIN_SECONDS, eventually

pytestmark = pytest.mark.kafka

SCRAM = "SCRAM-SHA-256"


def properties(folder: Path, values: dict[str, str]) -> dict[str, str]:
    """The `command` table of a gateway's config."""
    path = folder / f"{uuid4().hex}.properties"
    path.write_text("".join(f"{key}={value}\n" for key, value in values.items()))
    return {"config": str(path)}


def tls(secured: Secured, **more: Any) -> dict[str, Any]:
    identity = gateway_identity(secured)
    return {"tls": {"certificate": str(identity.certificate), "key": str(identity.key), **more}}


def gateway_identity(secured: Secured) -> Identity:
    return secured.authority.identity("gateway")


@pytest.fixture(scope="module")
def admin_identity(secured: Secured) -> Identity:
    """Known to the brokers as User:admin, who may do everything."""
    return secured.authority.identity("admin")


@pytest.fixture(scope="module")
def scram(secured: Secured) -> Iterator[RunningGateway]:
    """TLS before the gateway, SCRAM through it, no TLS behind it."""
    with running(
        secured.cluster.bootstrap_servers_of("SCRAM"),
        listen=tls(secured),
        command=properties(secured.folder, scram_login("admin", SCRAM)),
    ) as gateway:
        yield gateway


@pytest.fixture(scope="module")
def mutual(secured: Secured, admin_identity: Identity) -> Iterator[RunningGateway]:
    """Client certificates before the gateway and behind it: alice's is shown to brokers for alice, and no other is."""
    with running(
        secured.cluster.bootstrap_servers_of("MUTUAL"),
        listen=tls(secured, client={"authorities": str(secured.authority.certificate)}),
        command=properties(secured.folder, secured.known_by(admin_identity.store)),
        principals={"alice": {"certificate": str(secured.alice.certificate), "key": str(secured.alice.key)}},
    ) as gateway:
        yield gateway


def trusting(secured: Secured, gateway: RunningGateway) -> dict[str, str | int | float | bool]:
    return {
        "bootstrap.servers": gateway.bootstrap_servers,
        "security.protocol": "SSL",
        "ssl.ca.location": str(secured.authority.certificate),
        "log_level": 0,
    }


def logged_in(secured: Secured, gateway: RunningGateway, user: str, password: str | None = None) -> dict[str, Any]:
    login = {"sasl.mechanism": SCRAM, "sasl.username": user, "sasl.password": password or USERS[user]}
    return {**trusting(secured, gateway), "security.protocol": "SASL_SSL", **login}


def shown(secured: Secured, gateway: RunningGateway, identity: Identity) -> dict[str, Any]:
    files = {"ssl.certificate.location": str(identity.certificate), "ssl.key.location": str(identity.key)}
    return {**trusting(secured, gateway), **files}


@contextmanager
def held_open(secured: Secured, gateway: RunningGateway, identity: Identity) -> Iterator[ssl.SSLSocket]:
    """A connection of a client that has sent ApiVersions, as every one does first."""
    context = tls_context(ca_file=str(secured.authority.certificate), key_file=str(identity.store))
    plain = socket.create_connection(gateway.address(1), WITHIN_SECONDS)
    with context.wrap_socket(plain, server_hostname="127.0.0.1") as connection:
        connection.sendall(pack(">ihhih", 10, 18, 0, 7, -1))
        yield connection


def create(config: dict[str, Any]) -> str:
    topic = f"tls-{uuid4().hex[:8]}"
    # Kept by name: librdkafka drops what is requested once its client is gone.
    admin = AdminClient(config)
    admin.create_topics([NewTopic(topic, 1, 2, config={"min.insync.racks": "2"})])[topic].result(WITHIN_SECONDS)
    return topic


def refuses(config: dict[str, Any]) -> bool:
    try:
        AdminClient(config).list_topics(timeout=3)  # short: a refusal ends by this limit
    except KafkaException:
        return True
    return False


def test_scram_passes_through_a_gateway_that_ends_tls(secured: Secured, scram: RunningGateway) -> None:
    config = logged_in(secured, scram, "admin")
    topic = create(config)
    errors: list[object] = []
    producer = Producer({**config, "acks": "all"})
    producer.produce(topic, b"x" * 100_000, on_delivery=lambda error, _: errors.append(error))
    assert (producer.flush(WITHIN_SECONDS), errors) == (0, [None])


def test_a_wrong_scram_password_and_a_client_without_tls_are_refused(secured: Secured, scram: RunningGateway) -> None:
    assert refuses(logged_in(secured, scram, "admin", "wrong"))
    assert refuses({**logged_in(secured, scram, "admin"), "security.protocol": "SASL_PLAINTEXT"})
    assert refuses({**logged_in(secured, scram, "admin"), "ssl.ca.location": str(secured.stranger.certificate)})
    assert not refuses(logged_in(secured, scram, "admin"))


def test_a_mapped_client_has_its_own_rights_and_not_the_gateways(secured: Secured, mutual: RunningGateway) -> None:
    config = shown(secured, mutual, secured.alice)
    assert not refuses(config)
    with pytest.raises(KafkaException, match="AUTHORIZATION_FAILED"):
        create(config)


def test_a_client_that_is_not_mapped_is_turned_away(
    secured: Secured, mutual: RunningGateway, admin_identity: Identity
) -> None:
    before = mutual.gateway.clients.refused["handshake"]
    assert refuses(shown(secured, mutual, admin_identity))
    assert refuses(trusting(secured, mutual))
    assert refuses(shown(secured, mutual, secured.stranger.identity("alice")))
    eventually(lambda: mutual.gateway.clients.refused["handshake"] >= before + 3, "each is counted")


def test_connections_of_a_principal_that_was_removed_are_closed(secured: Secured, admin_identity: Identity) -> None:
    alice = {"certificate": str(secured.alice.certificate), "key": str(secured.alice.key)}
    servers = secured.cluster.bootstrap_servers_of("MUTUAL")
    tables = {
        "listen": tls(secured, client={"authorities": str(secured.authority.certificate)}),
        "command": properties(secured.folder, secured.known_by(admin_identity.store)),
    }

    def reload(gateway: RunningGateway, **principals: Any) -> None:
        config = parse_config(document(servers, **tables, principals=principals))

        async def reloaded() -> None:
            gateway.gateway.reload(config)

        gateway.run(reloaded())

    with running(servers, **tables, principals={"alice": alice, "bob": alice}) as gateway:
        sessions = gateway.gateway.clients.sessions
        # A plain socket: librdkafka closes connections of its own accord.
        with held_open(secured, gateway, secured.alice) as connection:
            eventually(lambda: {one.principal for one in sessions} == {"alice"}, "she is connected")
            held = {*sessions}
            reload(gateway, alice=alice)
            assert held <= sessions
            reload(gateway, bob=alice)
            eventually(lambda: not held & sessions, "alice's connections are closed")
            while connection.recv(1 << 16):  # The response, then the end of the connection.
                pass
        assert refuses(shown(secured, gateway, secured.alice))


def test_the_gateways_own_certificate_is_never_used_for_a_client(secured: Secured, admin_identity: Identity) -> None:
    with running(
        secured.cluster.bootstrap_servers_of("MUTUAL"),
        listen=tls(secured),
        command=properties(secured.folder, secured.known_by(admin_identity.store)),
    ) as gateway:
        # Without a certificate of its own the client's connection is refused by the broker.
        assert refuses(trusting(secured, gateway))

"""The TLS contexts of clients when the config is read again: all of them or none, and no principal that was taken out."""

import asyncio
import socket
import ssl
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from threading import Thread

import pytest
from msgspec import structs

from rackspan.client.config import kafka_python_settings
from rackspan.cluster import EmbeddedCluster
from rackspan.errors import UsageError
from rackspan.gateway.backend import Backend
from rackspan.gateway.clients.tls import ClientTls, server_context
from rackspan.gateway.config import GatewayConfig, PrincipalTable, parse_config
from rackspan.gateway.net.channel import connected, sends
from tests.certificates import Authority, Identity, authority
from tests.gateway.net.test_session import API_VERSIONS, framed, is_closed, received
from tests.gateway.running import document, running
from tests.gateway.upstream.test_config_topic import dead_port
from tests.waiting import WITHIN_SECONDS, eventually

pytestmark = pytest.mark.slow

COMMAND = {"security.protocol": "SSL"}


@pytest.fixture
def identity(tmp_path: Path) -> Identity:
    return authority(tmp_path, "gateways").identity("gateway")


def config_of(identity: Identity, *principals: str) -> GatewayConfig:
    files = identity.certificate, identity.key
    shown = {name: PrincipalTable(*files) for name in principals}
    return GatewayConfig(bootstrap_servers="127.0.0.1:1", tls_certificate=files[0], tls_key=files[1], principals=shown)


def test_a_principal_that_was_taken_out_is_not_known_any_more(identity: Identity) -> None:
    loaded = ClientTls(config_of(identity, "alice", "bob"), COMMAND)
    loaded.load(config_of(identity, "bob").tls, COMMAND)
    assert set(loaded._principals) == {"bob"}
    assert [loaded.is_removed(principal) for principal in ("alice", "bob", None)] == [True, False, False]


def test_a_config_that_is_read_again_brings_its_principals(identity: Identity, tmp_path: Path) -> None:
    command = tmp_path / "command.properties"
    command.write_text("security.protocol=SSL\n")
    backend = Backend(structs.replace(config_of(identity, "alice", "bob"), command_config=command))
    backend.reload(structs.replace(config_of(identity, "bob"), command_config=command))
    assert [backend.tls.is_removed(principal) for principal in ("alice", "bob")] == [True, False]
    assert list(backend.config.principals) == ["bob"]


def test_contexts_are_kept_if_one_certificate_cannot_be_used(identity: Identity, tmp_path: Path) -> None:
    config = config_of(identity, "alice")
    tls = config.tls
    assert tls is not None
    loaded = ClientTls(config, COMMAND)
    before = loaded._listeners, loaded._principals
    missing = tmp_path / "missing.pem"
    with pytest.raises(UsageError, match="bob"):
        loaded.load(replace(tls, principals={**tls.principals, "bob": (missing, missing)}), COMMAND)
    assert (loaded._listeners, loaded._principals) == before


@pytest.mark.parametrize(
    ("name", "reason"),
    [("missing.pem", "No such file"), ("no-certificate.pem", r"\[SSL\]"), ("null\0.pem", "embedded null byte")],
)
def test_a_certificate_that_cannot_be_used_is_named(identity: Identity, tmp_path: Path, name: str, reason: str) -> None:
    (tmp_path / "no-certificate.pem").write_text("text")
    tls = config_of(identity).tls
    assert tls is not None
    with pytest.raises(UsageError, match=rf"listen\.tls: .*{name}.* cannot be used: {reason}"):
        server_context(replace(tls, certificate=tmp_path / name))


@pytest.fixture
def vouching(tmp_path: Path) -> Authority:
    return authority(tmp_path, "everybody")


def trusting(vouching: Authority, shown: Identity | None = None) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=vouching.certificate)
    if shown is not None:
        context.load_cert_chain(shown.certificate, shown.key)
    return context


def of_gateway(vouching: Authority) -> dict[str, str]:
    identity = vouching.identity("gateway")
    return {"certificate": str(identity.certificate), "key": str(identity.key)}


def test_requests_and_responses_pass_over_tls_however_many_there_are(
    cluster: EmbeddedCluster, vouching: Authority
) -> None:
    """TLS decrypts 16 KB at a time: more of them are there than the system reports."""
    with running(cluster.bootstrap_servers, listen={"tls": of_gateway(vouching)}) as gateway:
        plain = socket.create_connection(gateway.address(1), WITHIN_SECONDS)
        with trusting(vouching).wrap_socket(plain, server_hostname="127.0.0.1") as link:
            link.sendall(framed(API_VERSIONS) * 5000)
            assert {received(link)[:4] for _ in range(5000)} == {API_VERSIONS[4:8]}
        clients = gateway.gateway.clients
        eventually(lambda: not clients.sessions, "the session has ended")
        with socket.create_connection(gateway.address(1), WITHIN_SECONDS) as other:
            other.sendall(framed(API_VERSIONS))
            assert is_closed(other)
        eventually(lambda: clients.refused == {"handshake": 1}, "a client without TLS is turned away")


def test_a_certificate_whose_time_is_over_turns_new_connections_away_until_files_are_replaced_and_read_again(
    cluster: EmbeddedCluster, vouching: Authority
) -> None:
    tables = {"listen": {"tls": of_gateway(vouching)}}
    with running(cluster.bootstrap_servers, **tables) as gateway:

        def connected() -> ssl.SSLSocket:
            plain = socket.create_connection(gateway.address(1), WITHIN_SECONDS)
            return trusting(vouching).wrap_socket(plain, server_hostname="127.0.0.1")

        def is_served(link: ssl.SSLSocket) -> bool:
            link.sendall(framed(API_VERSIONS))
            return received(link)[:4] == API_VERSIONS[4:8]

        async def read_again() -> None:
            gateway.gateway.reload(parse_config(document(cluster.bootstrap_servers, **tables)))

        with connected() as opened:
            assert is_served(opened)
            vouching.identity("gateway", days=-1)
            with connected() as link:
                assert is_served(link), "files are read at SIGHUP only"
            gateway.run(read_again())
            with pytest.raises(ssl.SSLCertVerificationError, match="expired"):
                connected()
            assert is_served(opened)
            vouching.identity("gateway")
            with pytest.raises(ssl.SSLCertVerificationError, match="expired"):
                connected()
            gateway.run(read_again())
            with connected() as link:
                assert is_served(link)
            assert is_served(opened)


def secured(
    tls: ClientTls, context: ssl.SSLContext
) -> tuple[socket.socket, ssl.SSLContext | None, str | None] | OSError:
    """What a client with this context is accepted as, or the error."""
    accepted, client = socket.socketpair()

    def handshake() -> None:
        # With TLS 1.3 its handshake ends before it is refused.
        with suppress(OSError), context.wrap_socket(client, server_hostname="127.0.0.1") as link:
            link.recv(1)

    async def scenario() -> tuple[socket.socket, ssl.SSLContext | None, str | None] | OSError:
        accepted.setblocking(False)
        try:
            return await tls.secured(accepted)
        except OSError as error:
            return error

    thread = Thread(target=handshake)
    thread.start()
    outcome = asyncio.run(scenario())
    (accepted if isinstance(outcome, OSError) else outcome[0]).close()
    thread.join(WITHIN_SECONDS)
    assert not thread.is_alive()
    return outcome


def test_a_client_is_shown_to_brokers_by_the_certificate_of_its_own_principal(vouching: Authority) -> None:
    names = {name: vouching.identity(name) for name in ("gateway", "alice", "bob")}
    own = names["gateway"]
    config = GatewayConfig(
        bootstrap_servers="127.0.0.1:1",
        tls_certificate=own.certificate,
        tls_key=own.key,
        tls_client_authorities=vouching.certificate,
        principals={"alice": PrincipalTable(names["alice"].certificate, names["alice"].key)},
    )
    tls = ClientTls(config, COMMAND)
    accepted = secured(tls, trusting(vouching, names["alice"]))
    assert not isinstance(accepted, OSError)
    assert accepted[1:] == (tls._principals["alice"], "alice")
    assert accepted[1] is not tls.upstream
    refused = secured(tls, trusting(vouching, names["bob"]))
    assert "no [principals] entry for the certificate of 'bob'" in str(refused)
    # Without a certificate.
    assert isinstance(secured(tls, trusting(vouching)), ssl.SSLError)


@pytest.mark.parametrize("command", [{}, COMMAND])
def test_without_principals_a_client_is_shown_by_no_certificate(vouching: Authority, command: dict[str, str]) -> None:
    own = vouching.identity("gateway")
    config = GatewayConfig(bootstrap_servers="127.0.0.1:1", tls_certificate=own.certificate, tls_key=own.key)
    tls = ClientTls(config, command)
    accepted = secured(tls, trusting(vouching))
    assert not isinstance(accepted, OSError)
    assert accepted[1:] == (tls.upstream, None)
    assert (tls.upstream is None) is (command == {})


def test_the_gateways_own_certificate_is_not_even_read_for_the_connections_of_clients(tmp_path: Path) -> None:
    """Brokers would take every client for the gateway, with its rights."""
    own = {"ssl.keystore.location": str(tmp_path / "missing.p12"), "ssl.key.password": "secret"}
    assert ClientTls(GatewayConfig(bootstrap_servers="127.0.0.1:1"), COMMAND | own).upstream is not None
    with pytest.raises(UsageError, match=r"missing\.p12"):
        kafka_python_settings(COMMAND | own)


def test_principals_need_tls_to_the_brokers(vouching: Authority) -> None:
    own = vouching.identity("gateway")
    principals = {"alice": PrincipalTable(own.certificate, own.key)}
    config = GatewayConfig(
        bootstrap_servers="127.0.0.1:1", tls_certificate=own.certificate, tls_key=own.key, principals=principals
    )
    with pytest.raises(UsageError, match=r"\[principals\.'alice'\]: brokers get a certificate over TLS only"):
        ClientTls(config, {})


def test_a_broker_is_connected_to_over_tls_if_its_certificate_is_its_own(vouching: Authority) -> None:
    own = vouching.identity("broker")
    listener = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    listener.load_cert_chain(own.certificate, own.key)
    context = trusting(vouching)

    async def scenario() -> None:
        server = await asyncio.start_server(lambda _reader, writer: writer.write(b"x"), "127.0.0.1", 0, ssl=listener)
        address = server.sockets[0].getsockname()[:2]
        link = await connected(address, context, "127.0.0.1")
        assert await sends(asyncio.get_running_loop(), link)
        assert link.recv(1) == b"x"
        link.close()
        with pytest.raises(ssl.SSLCertVerificationError, match="not valid for 'elsewhere'"):
            await connected(address, context, "elsewhere")
        server.close()
        with pytest.raises(ConnectionRefusedError):
            await connected(("127.0.0.1", dead_port()), context, "127.0.0.1")

    asyncio.run(scenario())

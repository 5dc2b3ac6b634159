"""SASL logins against a scripted broker, GSSAPI over a stand-in for the Kerberos library. Real brokers: tests/sources/test_secured_clusters.py."""

import asyncio
import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from rackspan.client.login import (
    SASL_AUTHENTICATE,
    SASL_HANDSHAKE,
    Login,
    LoginFailedHere,
    LoginRefused,
    log_in,
    login_from,
    login_of,
)
from rackspan.errors import UsageError
from rackspan.kafka_bytes import ByteReader, byte_string, int16, string

PLAIN = {"security_protocol": "SASL_PLAINTEXT", "sasl_mechanism": "PLAIN", "sasl_plain_username": "alice", "sasl_plain_password": "secret"}  # fmt: skip


class ScriptedBroker:
    """Accepts the mechanism unless `handshake` is an error, then sends these responses to SaslAuthenticate."""

    def __init__(self, *responses: bytes, handshake: int = 0) -> None:
        self._responses = list(responses)
        self._handshake = handshake
        self.received: list[bytes] = []

    async def exchange(self, api_key: int, _version: int, body: bytes) -> ByteReader:
        self.received.append(body)
        if api_key == SASL_HANDSHAKE:
            return ByteReader(int16(self._handshake))
        assert api_key == SASL_AUTHENTICATE
        return ByteReader(self._responses.pop(0))


def accepted(token: bytes = b"") -> bytes:
    return int16(0) + int16(-1) + byte_string(token)


def logged_in(settings: dict[str, Any], broker: ScriptedBroker) -> list[bytes]:
    asyncio.run(log_in("broker1", login_of(settings), broker.exchange))
    return broker.received


def test_plain_sends_its_user_and_password() -> None:
    received = logged_in(PLAIN, ScriptedBroker(accepted()))
    assert received == [string("PLAIN"), byte_string(b"alice\0alice\0secret")]


def test_a_login_has_the_settings_of_sasl_alone_and_none_without_it() -> None:
    settings = {**PLAIN, "client_id": "c", "request_timeout_ms": 2_500}
    made = login_of(settings)
    assert made.sasl == {key: value for key, value in PLAIN.items() if key != "security_protocol"}
    assert (made.client_id, made.request_seconds) == ("c", 2.5)
    assert login_of({**settings, "security_protocol": "SSL"}).sasl is None


def test_a_mechanism_or_password_that_the_broker_refuses_is_named() -> None:
    with pytest.raises(LoginRefused, match="mechanism PLAIN was refused with error 33"):
        logged_in(PLAIN, ScriptedBroker(handshake=33))
    with pytest.raises(LoginRefused, match="refused: Authentication failed"):
        logged_in(PLAIN, ScriptedBroker(int16(58) + string("Authentication failed") + byte_string(b"")))


def test_a_broker_that_cannot_prove_the_password_is_left() -> None:
    scram = {**PLAIN, "sasl_mechanism": "SCRAM-SHA-256"}
    with pytest.raises(LoginFailedHere, match="SCRAM-SHA-256 fails on this side"):
        logged_in(scram, ScriptedBroker(accepted(b"r=another-nonce,s=c2FsdA==,i=4096")))


class SecurityContext:
    """Complete after the broker's first token, as Kerberos is. Wrapped messages are the messages themselves."""

    def __init__(self, name: str, usage: str) -> None:
        assert usage == "initiate"
        self.name, self.complete = name, False

    def step(self, token: bytes | None) -> bytes | None:
        self.complete = token is not None
        return None if self.complete else b"token for " + self.name.encode()

    def unwrap(self, message: bytes) -> SimpleNamespace:
        return SimpleNamespace(message=message)

    def wrap(self, message: bytes, _encrypt: bool) -> SimpleNamespace:
        return SimpleNamespace(message=message)


class HostbasedName:
    def __init__(self, name: str, name_type: object) -> None:
        self._name = name

    def canonicalize(self, _mechanism: object) -> str:
        return self._name


@pytest.fixture
def kerberos(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    module = ModuleType("gssapi")
    vars(module).update(
        Name=HostbasedName,
        NameType=SimpleNamespace(hostbased_service=1),
        MechType=SimpleNamespace(kerberos=1),
        SecurityContext=SecurityContext,
    )
    monkeypatch.setitem(sys.modules, "gssapi", module)
    return module


GSSAPI = {"security_protocol": "SASL_PLAINTEXT", "sasl_mechanism": "GSSAPI"}


@pytest.mark.usefixtures("kerberos")
@pytest.mark.parametrize(
    ("given", "service"), [({}, b"kafka"), ({"sasl_kerberos_service_name": "brokers"}, b"brokers")]
)
def test_kerberos_gets_a_token_for_the_brokers_service_and_agrees_on_no_layer(
    given: dict[str, str], service: bytes
) -> None:
    broker = ScriptedBroker(accepted(b"token"), accepted(b"\x07\x00\x10\x00"), accepted())
    received = logged_in(GSSAPI | given, broker)
    principal = service + b"@broker1"
    tokens = [b"token for " + principal, b"", b"\x01\x00\x10\x00" + principal]
    assert received == [string("GSSAPI"), *map(byte_string, tokens)]


def test_missing_credentials_are_an_error_of_this_side(kerberos: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_credentials(**_: object) -> None:
        raise OSError("No Kerberos credentials available")

    monkeypatch.setattr(kerberos, "SecurityContext", no_credentials)
    with pytest.raises(
        LoginFailedHere, match="No Kerberos credentials available; check the credentials, of GSSAPI by klist"
    ):
        logged_in(GSSAPI, ScriptedBroker())


def test_settings_without_a_login_make_none() -> None:
    assert login_of({"sasl_mechanism": "PLAIN"}).sasl is None
    with pytest.raises(UsageError, match=r"sasl\.mechanism is missing"):
        login_of({"security_protocol": "SASL_SSL"})
    assert login_from({"client.id": "auditor"}).client_id == "auditor"


def test_a_login_is_shown_without_its_secrets() -> None:
    assert "topsecret" not in repr(Login(sasl={"sasl_plain_password": "topsecret"}))


class Mechanism:
    """A mechanism of one round whose proof of the broker is wrong."""

    def __init__(self, **settings: object) -> None:
        assert settings["host"] == "broker1"
        self._done = False

    def auth_bytes(self) -> bytes:
        return b"hello"

    def receive(self, _token: bytes) -> None:
        self._done = True

    def is_done(self) -> bool:
        return self._done

    def is_authenticated(self) -> bool:
        return False


def test_a_wrong_proof_of_the_broker_ends_the_login(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kafka.net.sasl.get_sasl_mechanism", lambda _: Mechanism)
    with pytest.raises(LoginRefused, match="broker1: the broker's proof of PLAIN is wrong; see command"):
        logged_in(PLAIN, ScriptedBroker(accepted()))


def test_an_error_of_the_token_is_the_error_of_the_login(monkeypatch: pytest.MonkeyPatch) -> None:
    """It says which file or endpoint; a login that fails on this side would hide that."""

    class NoToken(Mechanism):
        def auth_bytes(self) -> bytes:
            raise UsageError("/run/token: it holds no token")

    monkeypatch.setattr("kafka.net.sasl.get_sasl_mechanism", lambda _: NoToken)
    with pytest.raises(UsageError, match=r"^/run/token: it holds no token$"):
        logged_in(PLAIN, ScriptedBroker(accepted()))


def test_a_token_is_fetched_before_the_first_connection() -> None:
    fetched: list[str] = []
    tokens = SimpleNamespace(token=lambda: fetched.append("token"))
    Login(sasl={"sasl_mechanism": "OAUTHBEARER", "sasl_oauth_token_provider": tokens}).fetch_token()
    Login(sasl={"sasl_mechanism": "PLAIN"}).fetch_token()
    Login().fetch_token()
    assert fetched == ["token"]


def test_times_of_a_java_client_are_seconds_here() -> None:
    login = login_of(
        {"socket_connection_setup_timeout_ms": 1500, "request_timeout_ms": 2500, "connections_max_idle_ms": 3500}
    )
    assert (login.connect_seconds, login.request_seconds, login.idle_seconds) == (1.5, 2.5, 3.5)
    assert (Login().connect_seconds, login_of({}).idle_seconds, login_of({}).client_id) == (None, None, "rackspan")
    assert (login_of(PLAIN).mechanism, Login().mechanism) == ("PLAIN", None)

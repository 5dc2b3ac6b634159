"""The words for a change that was refused, and for a login that was refused."""

import socket
from types import SimpleNamespace

import pytest

from rackspan.client.connection import OtherProtocol, UnsupportedVersion
from rackspan.client.errors import (
    CAUSES,
    ErrorResponse,
    NameLookupTimedOut,
    cause,
    certificate_refused,
    change_failed,
    client_certificate_refused,
    listed,
    login_refused,
    no_server_responded,
    raise_for,
    request_failed,
)
from rackspan.client.login import Login
from rackspan.errors import ClusterRequestFailed, ClusterUnauthorized, ClusterUnreachable, MalformedRequest
from rackspan.kafka_bytes.error_codes import ErrorCode
from rackspan.wire.apis import ApiKey

WHAT = "topic orders was not created"
OPEN = f"{WHAT}, as far as is known: {{}}; check the cluster before trying again"


def test_a_refused_login_names_the_server_and_the_settings() -> None:
    refusal = no_server_responded({"kafka:9092": login_refused("PLAIN")}, seconds=30)
    assert str(refusal) == (
        "kafka:9092 refused the login: user, password or mechanism PLAIN is wrong; "
        "check sasl.mechanism and sasl.jaas.config in --command-config"
    )


@pytest.mark.parametrize(
    ("error", "kind", "line"),
    [
        (
            ErrorResponse(ErrorCode.TOPIC_AUTHORIZATION_FAILED, "Authorization failed."),
            ClusterUnauthorized,
            f"{WHAT}: this user needs Create on Topic orders; grant it with kafka-acls.sh",
        ),
        (
            ErrorResponse(ErrorCode.TOPIC_ALREADY_EXISTS, "Topic 'orders' already exists."),
            ClusterRequestFailed,
            f"{WHAT}: Topic 'orders' already exists.",
        ),
        (
            ErrorResponse(ErrorCode.INVALID_REPLICATION_FACTOR),
            ClusterRequestFailed,
            f"{WHAT}: INVALID_REPLICATION_FACTOR",
        ),
        (ErrorResponse(ErrorCode.REQUEST_TIMED_OUT), ClusterUnreachable, OPEN.format("no response in time")),
        (TimeoutError(), ClusterUnreachable, OPEN.format("no response in time")),
        (
            ConnectionResetError("the broker closed the connection"),
            ClusterUnreachable,
            OPEN.format("it closed the connection at the first request"),
        ),
        (
            OSError("Multiple exceptions: [Errno 111] Connect call failed, [Errno 111] Connect call failed"),
            ClusterUnreachable,
            OPEN.format("connection refused"),
        ),
    ],
)
def test_a_refusal_says_what_was_not_done_and_why(error: Exception, kind: type[Exception], line: str) -> None:
    refused = change_failed(WHAT, "Create on Topic orders", error)
    assert (type(refused), str(refused)) == (kind, line)


def test_a_controller_is_named_as_such_by_the_request_that_it_does_not_know() -> None:
    assert cause(UnsupportedVersion(ApiKey.METADATA, "no version")) == "it is a controller, not a broker"
    assert cause(UnsupportedVersion(ApiKey.FETCH, "no version")) == "no version"


@pytest.mark.parametrize("part", list(CAUSES))
def test_a_known_part_of_a_message_has_words_of_its_own(part: str) -> None:
    assert cause(ValueError(f"[SSL: X] {part}: of leaf (_ssl.c:1007)")) == CAUSES[part]


REQUIRED = "requires a client certificate; set ssl.keystore.location"
NOT_ACCEPTED = "does not accept the client certificate of --command-config"


@pytest.mark.parametrize(
    ("message", "lost", "presented", "words"),
    [
        ("tlsv13 alert certificate required", False, False, REQUIRED),
        ("sslv3 alert bad certificate", False, True, NOT_ACCEPTED),
        ("tlsv1 alert unknown ca", False, True, NOT_ACCEPTED),
        # With TLS 1.3 the alert may be lost with the connection.
        ("the broker closed the connection", True, False, REQUIRED),
        ("the broker closed the connection", True, True, NOT_ACCEPTED),
        ("certificate verify failed", False, True, None),
        ("tlsv1 alert internal error", False, True, None),
    ],
)
def test_a_client_certificate_that_is_refused_differs_from_other_errors(
    message: str, lost: bool, presented: bool, words: str | None
) -> None:
    text = client_certificate_refused(message, lost, presented)
    assert text is None if words is None else (text or "").startswith(words)
    error = (ConnectionResetError if lost else OSError)(message)
    refused = certificate_refused(error, Login(presents_certificate=presented))
    assert refused is error if words is None else str(refused).startswith(words)


@pytest.mark.parametrize(
    ("error", "seconds", "words"),
    [
        (NameLookupTimedOut(), 2.5, "nothing within 2.5 s, not even a name look-up; check the name service"),
        (NameLookupTimedOut(), None, "no response in time"),
        (TimeoutError(), 2.5, "no response within 2.5 s"),
        (ErrorResponse(ErrorCode.REQUEST_TIMED_OUT), 3.0, "no response within 3 s"),
        (ConnectionRefusedError(111, "Connect call failed"), None, "connection refused"),
        (OSError(113, "x"), None, "no route to this host"),
        (OSError("[Errno 101] x"), None, "no route to this network"),
        (OSError(110, "x"), 1.0, "no response from this host"),
        (socket.gaierror(-2, "Name or service not known"), None, "no such host name"),
        (UnicodeError("label too long"), None, "no such host name"),
        (OtherProtocol("x"), None, "it does not speak Kafka's protocol"),
        (MalformedRequest("x"), None, "it does not speak Kafka's protocol"),
        (ConnectionResetError("x"), None, "it closed the connection at the first request"),
        (OSError("[SSL: X] certificate has expired (_ssl.c:1)"), None, "its certificate has expired"),
        (OSError("[SSL: X] certificate is not yet valid (_ssl.c:1)"), None, "its certificate is not valid yet"),
        (
            OSError("[SSL: X] certificate verify failed: certificate is not valid for 'a' (_ssl.c:1)"),
            None,
            "its certificate is for another host name",
        ),
        (
            OSError("[SSL: X] certificate verify failed: self-signed certificate (_ssl.c:1)"),
            None,
            "its certificate is signed by no authority that is trusted here",
        ),
        (OSError("[SSL: X] wrong version number (_ssl.c:1)"), None, "it does not speak TLS"),
        (OSError("[SSL: X] EOF occurred in violation of protocol (_ssl.c:1)"), None, "it does not speak TLS"),
        (ValueError("two\n lines"), None, "two lines"),
        (ValueError(), None, "ValueError"),
    ],
)
def test_why_a_server_failed_has_plain_words(error: Exception, seconds: float | None, words: str) -> None:
    assert cause(error, seconds) == words


@pytest.mark.parametrize(
    ("errors", "words"),
    [
        (
            {"a:1": ConnectionRefusedError(111, "x"), "b:1": socket.gaierror(-2, "x")},
            "no broker responded: a:1: connection refused; b:1: no such host name; "
            "check --bootstrap-server, and that the cluster is up",
        ),
        (
            {"a:1": ConnectionRefusedError(111, "x"), "b:1": TimeoutError()},
            "no broker responded: a:1: connection refused; b:1: no response within 5 s; "
            "is it Kafka's port, and does it require TLS or a login (--command-config)?",
        ),
        (
            {"a:1": NameLookupTimedOut()},
            "no broker responded: a:1: nothing within 5 s, not even a name look-up; check the name service",
        ),
        (
            {"a:1": OSError("[SSL: X] certificate has expired (_ssl.c:1)")},
            "no broker can be spoken to: a:1: its certificate has expired; have it renewed on the broker",
        ),
    ],
)
def test_servers_that_failed_come_with_advice(errors: dict[str, Exception], words: str) -> None:
    error = no_server_responded(errors, 5.0)
    assert (type(error), str(error)) == (ClusterUnreachable, words)


def test_a_login_that_one_server_refused_is_the_error_of_all() -> None:
    errors = {"a:1": TimeoutError(), "b:1": login_refused("OAUTHBEARER"), "c:1": login_refused(None)}
    refused = no_server_responded(errors, 5.0)
    assert isinstance(refused, ClusterUnauthorized)
    assert str(refused) == (
        "b:1 refused the login: its token is not accepted, or mechanism OAUTHBEARER is wrong; check sasl.mechanism and the "
        "token endpoint or file in --command-config"
    )
    assert str(login_refused(None)) == (
        "requires a login; set security.protocol, sasl.mechanism and sasl.jaas.config in --command-config"
    )


@pytest.mark.parametrize(
    ("error", "kind", "line"),
    [
        (
            ErrorResponse(ErrorCode.CLUSTER_AUTHORIZATION_FAILED),
            ClusterUnauthorized,
            "the brokers may not be read: this user needs Describe on Cluster; grant it with kafka-acls.sh",
        ),
        (
            TimeoutError(),
            ClusterUnreachable,
            "the brokers was not received: no response in time; raise --timeout, or name another broker",
        ),
        (
            ErrorResponse(ErrorCode.UNKNOWN_SERVER_ERROR, "a fault"),
            ClusterRequestFailed,
            "the brokers could not be read: a fault; try again",
        ),
    ],
)
def test_a_request_that_failed_says_what_was_to_be_read(error: Exception, kind: type[Exception], line: str) -> None:
    failed = request_failed("the brokers", "Describe on Cluster", error)
    assert (type(failed), str(failed)) == (kind, line)


def test_an_error_response_has_its_code_and_the_brokers_words_or_the_codes_name() -> None:
    for message, words in ((None, "UNKNOWN_TOPIC_OR_PARTITION"), ("no such topic", "no such topic")):
        part = SimpleNamespace(error_code=3, error_message=message)
        with pytest.raises(ErrorResponse, match=f"^{words}$") as raised:
            raise_for(part)
        assert raised.value.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    raise_for(SimpleNamespace(error_code=0))


@pytest.mark.parametrize(("count", "shown"), [(0, ""), (3, "0, 1, 2"), (4, "0, 1, 2 and 1 more")])
def test_of_many_names_the_first_are_listed(count: int, shown: str) -> None:
    assert listed(range(count)) == shown

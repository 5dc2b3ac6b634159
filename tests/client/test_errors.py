"""The words for a change that was refused, and for a login that was refused."""

import pytest

from rackspan.client.connection import UnsupportedVersion
from rackspan.client.errors import CAUSES, ErrorResponse, cause, change_failed, login_refused, no_server_responded
from rackspan.errors import ClusterRequestFailed, ClusterUnauthorized, ClusterUnreachable
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

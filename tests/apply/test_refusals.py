from typing import Any

import pytest
from kafka.errors import (
    InvalidReplicationFactorError,
    KafkaConnectionError,
    KafkaTimeoutError,
    RequestTimedOutError,
    TopicAlreadyExistsError,
    TopicAuthorizationFailedError,
)

from rackspan.apply.refusals import change_failed
from rackspan.errors import ClusterRequestFailed, ClusterUnauthorized, ClusterUnreachable

WHAT = "topic orders was not created"


@pytest.mark.parametrize(
    ("error", "kind", "line"),
    [
        (
            TopicAuthorizationFailedError("Authorization failed."),
            ClusterUnauthorized,
            f"{WHAT}: this user needs Create on Topic orders; grant it with kafka-acls.sh",
        ),
        (
            TopicAlreadyExistsError("Topic 'orders' already exists."),
            ClusterRequestFailed,
            f"{WHAT}: Topic 'orders' already exists.",
        ),
        (InvalidReplicationFactorError(None), ClusterRequestFailed, f"{WHAT}: InvalidReplicationFactorError"),
        (
            RequestTimedOutError(None),
            ClusterUnreachable,
            f"{WHAT}, as far as is known: no response in time; check the cluster before trying again",
        ),
        (
            KafkaTimeoutError(),
            ClusterUnreachable,
            f"{WHAT}, as far as is known: no response in time; check the cluster before trying again",
        ),
        (
            KafkaConnectionError("socket disconnected"),
            ClusterUnreachable,
            f"{WHAT}, as far as is known: it closed the connection at the first request; check the cluster before trying again",
        ),
    ],
)
def test_a_refusal_says_what_was_not_done_and_why(error: Any, kind: type[Exception], line: str) -> None:
    refused = change_failed(WHAT, "Create on Topic orders", error)
    assert (type(refused), str(refused)) == (kind, line)

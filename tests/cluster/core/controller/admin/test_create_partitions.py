"""CreatePartitions: the words of refusals, and what a dry run leaves alone."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from rackspan.cluster.core.admin_messages import AdminResponse, CreatePartitions, MorePartitions
from rackspan.kafka_bytes.error_codes import ErrorCode
from rackspan.model.ids import TopicPartition
from tests.cluster.core.brokers import ids
from tests.cluster.core.controller.requests import ORDERS, controller_with, put, responses, state_of
from tests.cluster.core.controller.test_placement_vectors import register

RACKS = {1: "a", 2: "b", 3: "c"}


def more(total: int, *rows: Sequence[int], topic: str = "orders") -> MorePartitions:
    return MorePartitions(topic, total, tuple(ids(*row) for row in rows) or None)


@pytest.mark.parametrize(
    ("requested", "error", "message"),
    [
        (
            more(2, topic="nobody"),
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            "This server does not host this topic-partition.",
        ),
        (more(2), ErrorCode.INVALID_PARTITIONS, "Topic already has 2 partition(s)."),
        (
            more(1),
            ErrorCode.INVALID_PARTITIONS,
            "The topic orders currently has 2 partition(s); 1 would not be an increase.",
        ),
        (
            more(5, [1, 2], [2, 3]),
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            "Attempted to add 3 additional partition(s), but only 2 assignment(s) were specified.",
        ),
        (
            more(3, [1, 2, 3]),
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            "The manual partition assignment has 3 replica(s) where the topic has 2.",
        ),
        (
            more(3, [1, 9]),
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            "The manual partition assignment includes broker 9, but no such broker is registered.",
        ),
        (
            more(3, [4, 5]),
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            "All brokers of the assignment [4, 5] are fenced or in controlled shutdown.",
        ),
        (
            more(10_003),
            ErrorCode.POLICY_VIOLATION,
            "Excessively large number of partitions per request.",
        ),
    ],
)
def test_what_is_refused_says_why_and_changes_nothing(
    requested: MorePartitions, error: ErrorCode, message: str
) -> None:
    controller = controller_with(RACKS, [1, 2], [2, 3])
    for number in (4, 5):
        register(controller, number, "d", fenced=True)
    before = controller.image
    (response,) = responses(controller, CreatePartitions(1, (requested,)))
    assert response == AdminResponse(requested.topic, error, message)
    assert controller.image is before


def test_a_topic_that_is_being_reassigned_gets_no_partitions() -> None:
    controller = controller_with(RACKS, [1, 2], [2, 3])
    put(controller, replace(state_of(controller), replicas=ids(1, 2, 3), adding=ids(3)))
    (response,) = responses(controller, CreatePartitions(1, (more(3),)))
    assert response == AdminResponse(
        "orders", ErrorCode.REASSIGNMENT_IN_PROGRESS, "A partition of orders is being reassigned."
    )


def test_new_partitions_follow_the_present_ones_and_a_dry_run_adds_none() -> None:
    controller = controller_with(RACKS, [1, 2])
    requested = (more(3, [3, 1], [2, 3]), more(2, topic="nobody"))
    before = controller.image
    tried = responses(controller, CreatePartitions(1, requested, validate_only=True))
    assert controller.image is before
    done = responses(controller, CreatePartitions(1, requested))
    assert tried == done
    assert [(one.key, one.error, one.message is None) for one in done] == [
        ("orders", ErrorCode.NONE, True),
        ("nobody", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, False),
    ]
    states = [state_of(controller, TopicPartition("orders", index)) for index in range(3)]
    assert [(one.replicas, one.isr, one.leader) for one in states] == [
        (ids(1, 2), ids(1, 2), 1),
        (ids(3, 1), ids(3, 1), 3),
        (ids(2, 3), ids(2, 3), 2),
    ]
    assert state_of(controller, ORDERS) is states[0]


def test_only_replicas_that_may_lead_begin_in_sync() -> None:
    controller = controller_with(RACKS, [1, 2])
    register(controller, 4, "d", fenced=True)
    responses(controller, CreatePartitions(1, (more(2, [4, 2]),)))
    state = state_of(controller, TopicPartition("orders", 1))
    assert (state.replicas, state.isr, state.leader) == (ids(4, 2), ids(2), 2)

"""AlterPartitionReassignments: what a request makes of a partition's state, and the words of refusals."""

import pytest

from rackspan.cluster.core.admin_messages import AdminResponse, AlterPartitionReassignments, ReassignablePartition
from rackspan.cluster.core.controller.admin.reassignments import _started, original_replicas
from rackspan.cluster.core.controller.partition_change import PartitionChange
from rackspan.cluster.core.metadata import PartitionState
from rackspan.kafka_bytes.error_codes import ErrorCode
from rackspan.model.ids import BrokerId, TopicPartition
from tests.cluster.core.brokers import ids
from tests.cluster.core.controller.requests import ORDERS, controller_with, put, responses, state_of

RACKS = {1: "a", 2: "b", 3: "c", 4: "d"}


def state(
    replicas: tuple[int, ...], isr: tuple[int, ...], adding: tuple[int, ...] = (), removing: tuple[int, ...] = ()
) -> PartitionState:
    return PartitionState(
        ids(*replicas), ids(*isr), BrokerId(isr[0]), 3, 8, adding=ids(*adding), removing=ids(*removing)
    )


@pytest.mark.parametrize(
    ("before", "target", "replicas", "adding", "removing"),
    [
        (state((1, 2, 3), (1, 2, 3)), (3, 5, 4), (3, 5, 4, 1, 2), (4, 5), (1, 2)),
        (state((1, 2, 3), (1, 2, 3)), (1, 2, 3, 4), (1, 2, 3, 4), (4,), None),
        (state((2, 3, 1), (1, 2, 3)), (2,), (2, 1, 3), None, (1, 3)),
        (state((1, 2), (1, 2)), (2, 1), (2, 1), None, None),
        (state((4, 1, 2), (1, 2), (4,)), (5, 1, 2), (5, 1, 2, 4), (5,), (4,)),
    ],
)
def test_the_target_comes_first_in_its_order_and_the_removed_follow_it(
    before: PartitionState,
    target: tuple[int, ...],
    replicas: tuple[int, ...],
    adding: tuple[int, ...] | None,
    removing: tuple[int, ...] | None,
) -> None:
    assert _started(before, ids(*target)) == PartitionChange(
        replicas=ids(*replicas),
        adding=None if adding is None else ids(*adding),
        removing=None if removing is None else ids(*removing),
    )


def test_the_original_replicas_are_those_that_are_not_being_added() -> None:
    assert original_replicas(state((4, 2, 1), (1, 2), (4,), (1,))) == ids(2, 1)


@pytest.mark.parametrize(
    ("partition", "replicas", "error", "message"),
    [
        (
            *(TopicPartition("orders", 7), (1, 2)),
            *(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "The topic or partition does not exist."),
        ),
        (
            *(ORDERS, (1, 1)),
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            "The manual partition assignment includes the broker 1 more than once.",
        ),
        (
            *(ORDERS, (1, 2, 3)),
            *(ErrorCode.INVALID_REPLICATION_FACTOR, "The replication factor is changed from 2 to 3"),
        ),
        (ORDERS, None, ErrorCode.NO_REASSIGNMENT_IN_PROGRESS, "No partition reassignment is in progress."),
    ],
)
def test_a_refused_reassignment_says_why_and_changes_nothing(
    partition: TopicPartition, replicas: tuple[int, ...] | None, error: ErrorCode, message: str
) -> None:
    controller = controller_with(RACKS, [1, 2])
    before = controller.image
    requested = ReassignablePartition(partition, None if replicas is None else ids(*replicas))
    (response,) = responses(
        controller, AlterPartitionReassignments(1, (requested,), allow_replication_factor_change=False)
    )
    assert response == AdminResponse(partition, error, message)
    assert controller.image is before


def test_the_factor_that_must_stay_is_that_of_before_the_reassignment_under_way() -> None:
    controller = controller_with(RACKS, [1, 2])
    requests = [(ReassignablePartition(ORDERS, ids(*row)),) for row in ((3, 4), (4, 1), (2, 1))]
    for request in requests:
        (response,) = responses(controller, AlterPartitionReassignments(1, request, False))
        assert response == AdminResponse(ORDERS, ErrorCode.NONE)


def test_a_target_that_is_already_there_writes_nothing() -> None:
    controller = controller_with(RACKS, [1, 2])
    before = controller.image
    (response,) = responses(controller, AlterPartitionReassignments(1, (ReassignablePartition(ORDERS, ids(1, 2)),)))
    assert response == AdminResponse(ORDERS, ErrorCode.NONE)
    assert controller.image is before


def test_a_cancelled_reassignment_leaves_the_original_replicas_in_sync_and_needs_one() -> None:
    controller = controller_with(RACKS, [1, 2])
    cancel = AlterPartitionReassignments(1, (ReassignablePartition(ORDERS, None),))
    put(controller, state((3, 4, 2, 1), (3,), (3, 4), (1, 2)))
    before = controller.image
    assert responses(controller, cancel) == (
        AdminResponse(
            ORDERS,
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            "The reassignment cannot be cancelled: none of the original replicas is in sync.",
        ),
    )
    assert controller.image is before
    put(controller, state((3, 4, 2, 1), (3, 1), (3, 4), (1, 2)))
    assert responses(controller, cancel) == (AdminResponse(ORDERS, ErrorCode.NONE),)
    after = state_of(controller)
    assert (after.replicas, after.isr, after.leader, after.adding, after.removing) == (ids(2, 1), ids(1), 1, (), ())

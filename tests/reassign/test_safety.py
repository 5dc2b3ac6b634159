"""How safe a placement is, and what is lost in words, in the singular and the plural."""

import numpy as np
import pytest

from rackspan.audit import RackPolicy
from rackspan.model import Broker, BrokerId, ClusterSnapshot, RackId, Topic, TopicName, UnrackedPolicy, columns
from rackspan.reassign.safety import PlacementSafety, less_safe, safety_of_rows, staying_replicas, words


def safety(*rows: tuple[int, int, bool]) -> PlacementSafety:
    """Racks, replicas left without the fullest of them, and whether these still accept acks=all."""
    racks, left, writable = zip(*rows, strict=True)
    return PlacementSafety(np.array(racks), np.array(left), np.array(writable))


SAFE = (3, 2, True)


@pytest.mark.parametrize(
    ("before", "after", "lost"),
    [
        ([SAFE], [(2, 1, True)], "in 2 racks instead of 3"),
        ([SAFE], [(1, 0, False)], "in 1 rack instead of 3; the loss of one rack would then take it offline"),
        ([SAFE], [(2, 1, False)], "in 2 racks instead of 3; the loss of one rack would then stop acks=all on it"),
        ([SAFE], [(3, 1, False)], "so that the loss of one rack would stop acks=all on it"),
        (
            [SAFE, (2, 1, True), SAFE],
            [(1, 0, False), (1, 0, False), (2, 1, True)],
            "in 1 to 2 racks instead of 2 to 3; the loss of one rack would then take 2 offline",
        ),
        (
            [SAFE, SAFE, SAFE],
            [(1, 0, False), (2, 1, False), (3, 1, False)],
            "in 1 to 2 racks instead of 3; the loss of one rack would then take 1 offline and stop acks=all on 2",
        ),
        # One that could be lost before as well is no harm of the plan.
        ([(2, 0, False), SAFE], [(1, 0, False), (2, 1, True)], "in 1 to 2 racks instead of 2 to 3"),
        ([(2, 1, False), SAFE], [(1, 1, False), (3, 2, False)], (
            "in 1 rack instead of 2; the loss of one rack would then stop acks=all on 1"
        )),
    ],
)  # fmt: skip
def test_what_partitions_lose(
    before: list[tuple[int, int, bool]], after: list[tuple[int, int, bool]], lost: str
) -> None:
    assert words(safety(*before), safety(*after)) == lost


def test_fewer_racks_or_refused_writes_are_less_safe_and_fewer_replicas_left_are_not() -> None:
    before = safety(SAFE, SAFE, SAFE, (2, 1, False), (2, 1, False), SAFE)
    after = safety((2, 2, True), (3, 2, False), (3, 1, True), (2, 0, False), (1, 2, True), (4, 3, True))
    assert less_safe(before, after).tolist() == [True, True, False, False, True, False]


RACKS = {1: "a", 2: "a", 3: "b", 4: None, 5: None}
SNAPSHOT = ClusterSnapshot(
    brokers=tuple(Broker(BrokerId(one), None if rack is None else RackId(rack)) for one, rack in RACKS.items()),
    topics=(Topic(TopicName("plain")), Topic(TopicName("strict"), config={"min.insync.replicas": "2"})),
    partitions=columns(
        topic=[0, 1, 1],
        partition=[0, 0, 1],
        leader=[1, 1, 1],
        replicas=[[1, 2, 3], [1, 3], [1, 4, 5]],
        isr=[[1], [1], [1]],
        removing_replicas=[[2], [], []],
    ),
)


def test_a_rows_safety_is_that_of_the_replicas_that_stay_under_the_minimum_of_its_topic() -> None:
    def values(found: PlacementSafety) -> list[tuple[int, int, bool]]:
        return list(zip(found.racks.tolist(), found.left.tolist(), found.writable.tolist(), strict=True))

    rows, policy = np.array([0, 1, 2]), RackPolicy()
    now = safety_of_rows(SNAPSHOT, policy, rows)
    assert values(now) == [(2, 1, True), (2, 1, False), (2, 1, False)]
    targets = np.array([[1, 2, -1], [1, 2, 3], [3, 4, 9]], dtype=np.int32)
    assert values(safety_of_rows(SNAPSHOT, policy, rows, targets)) == [(1, 0, False), (2, 1, False), (2, 1, False)]
    # What counts in no rack may be in any: it is not among those left.
    ignored = safety_of_rows(SNAPSHOT, RackPolicy(unracked=UnrackedPolicy.IGNORE), rows[[2]])
    assert values(ignored) == [(1, 0, False)]
    assert values(now.take(np.array([2, 0]))) == [(2, 1, False), (2, 1, True)]


def test_what_is_being_removed_does_not_stay() -> None:
    replicas, removing = (np.array(rows, dtype=np.int32) for rows in ([[1, 2, 3], [2, 1, -1]], [[3, 1], [1, -1]]))
    assert staying_replicas(replicas, removing).tolist() == [[-1, 2, -1], [2, -1, -1]]
    assert replicas.tolist() == [[1, 2, 3], [2, 1, -1]]

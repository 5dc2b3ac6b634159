from dataclasses import replace

from rackspan.model.ids import TopicPartition
from rackspan.plan.execution.events import RunState
from rackspan.plan.execution.observed import InFlight, ObservedCluster
from rackspan.plan.execution.progress import Progress, awaited, copy_sizes, progress
from rackspan.reassign import Direction, PartitionReassignment, ReassignmentPlan, Step

DONE = PartitionReassignment("orders", 0, (4, 5), (1, 2))
ON_THE_WAY = PartitionReassignment("orders", 1, (4, 5), (1, 2))
PLAN = ReassignmentPlan("c", {}, (Step.of(1, "", (DONE,)), Step.of(2, "", (ON_THE_WAY,))))


def test_copies_count_once_they_are_in_sync() -> None:
    cluster = ObservedCluster(
        "c",
        frozenset(),
        isr={ON_THE_WAY.topic_partition: (1, 2, 5)},
        in_flight={
            ON_THE_WAY.topic_partition: InFlight((4, 5, 1, 2), (4, 5), (1, 2)),
            TopicPartition("other", 0): InFlight((1,)),
        },
    )
    sizes = copy_sizes(PLAN, Direction.TARGETS, {DONE.topic_partition: 1_000, ON_THE_WAY.topic_partition: 30})
    found = progress(RunState(PLAN, done=frozenset({1})), cluster, sizes)
    assert found == Progress(step=2, steps=2, copied=3, copies=4, moving=1, bytes=2_060, bytes_copied=2_030)
    ended = progress(RunState(PLAN, done=frozenset({1, 2})), cluster, sizes)
    assert ended == Progress(step=2, steps=2, copied=4, copies=4, moving=1, bytes=2_060, bytes_copied=2_060)


def test_bytes_of_a_copy_count_as_they_arrive_and_no_log_as_more_than_it_was() -> None:
    place = ON_THE_WAY.topic_partition
    cluster = ObservedCluster("c", frozenset(), isr={place: (1, 2)}, copied_bytes={place: {4: 7, 5: 31, 9: 30}})
    sizes = copy_sizes(PLAN, Direction.TARGETS, {place: 30})
    found = progress(RunState(PLAN, done=frozenset({1})), cluster, sizes)
    assert (found.copied, found.bytes, found.bytes_copied) == (2, 60, 7 + 30)
    in_sync = replace(cluster, isr={place: (1, 2, 4)})
    assert progress(RunState(PLAN, done=frozenset({1})), in_sync, sizes).bytes_copied == 30 + 30
    back = RunState(PLAN, direction=Direction.ORIGINALS)
    assert progress(back, cluster, copy_sizes(PLAN, Direction.ORIGINALS, {place: 30})).bytes_copied == 60


def test_copies_of_a_deferred_step_count_too() -> None:
    cluster = ObservedCluster("c", frozenset(), isr={DONE.topic_partition: (1, 4)})
    found = progress(RunState(PLAN, deferred=frozenset({1})), cluster)
    assert (found.copied, found.bytes) == (1, 0)


def test_where_no_size_is_known_copies_are_counted_and_bytes_are_not() -> None:
    cluster = ObservedCluster("c", frozenset(), isr={ON_THE_WAY.topic_partition: (1, 2, 5)})
    found = progress(RunState(PLAN, done=frozenset({1})), cluster)
    assert found == Progress(step=2, steps=2, copied=3, copies=4, moving=0, bytes=0, bytes_copied=0)


def test_a_move_waits_for_the_brokers_of_its_target_that_are_not_in_sync() -> None:
    cluster = ObservedCluster(
        "c",
        frozenset(),
        isr={DONE.topic_partition: (4, 5), ON_THE_WAY.topic_partition: (1, 2, 5)},
        in_flight={
            DONE.topic_partition: InFlight((4, 5, 1), (), (1,)),
            ON_THE_WAY.topic_partition: InFlight((5, 6, 4, 1, 2), (5, 6, 4), (1, 2)),
            TopicPartition("other", 0): InFlight((1,)),
        },
    )
    assert awaited(RunState(PLAN), cluster) == {ON_THE_WAY.topic_partition: (4, 6)}
    unknown = replace(cluster, isr={})
    assert awaited(RunState(PLAN), unknown)[DONE.topic_partition] == (4, 5)


def test_each_direction_counts_the_copies_of_its_own() -> None:
    grows = PartitionReassignment("orders", 0, (1, 2, 4, 5), (1, 3))
    plan = ReassignmentPlan("c", {}, (Step.of(1, "", (grows,)),))
    cluster = ObservedCluster("c", frozenset())
    assert progress(RunState(plan), cluster).copies == 3
    assert progress(RunState(plan, direction=Direction.ORIGINALS), cluster).copies == 1

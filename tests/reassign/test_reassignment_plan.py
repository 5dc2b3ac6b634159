from rackspan.reassign import Direction, PartitionReassignment, ReassignmentRequest, Step, plan, snapshot_after
from tests.reassign.instances import cluster
from tests.reassign.plans import cost, targets


def test_a_plan_done_leaves_the_snapshot_it_promises() -> None:
    snapshot = cluster([[0, 2, 1], [0, 1, 3]], {0: "a", 1: "b", 2: "a", 3: "c"})
    planned = plan(snapshot)
    after = {row.partition: row for row in snapshot_after(snapshot, planned).partitions}
    for _, partition, replicas in targets(planned):
        assert after[partition].replicas == after[partition].isr == replicas
        assert after[partition].leader == replicas[0]


def test_a_drained_broker_is_gone_afterwards_unless_it_was_drained_of_some_topics_only() -> None:
    placed = [[0, 1] for _ in range(100)]
    snapshot = cluster(placed, {0: "a", 1: "b", 2: "a"})
    drained = snapshot_after(
        snapshot, plan(snapshot, request=ReassignmentRequest(drain=frozenset({0}))), frozenset({0})
    )
    assert [broker.id for broker in drained.brokers] == [1, 2]
    partly = snapshot_after(
        snapshot,
        plan(snapshot, request=ReassignmentRequest(drain=frozenset({0}), topics="topic-000000")),
        frozenset({0}),
    )
    assert [broker.id for broker in partly.brokers] == [0, 1, 2]


def test_copies_of_unknown_size_are_counted_apart() -> None:
    snapshot = cluster([[0, 2], [0, 2]], {0: "a", 1: "b", 2: "a"})
    planned = plan(snapshot)
    assert (planned.moves, cost(planned).unsized_moves, cost(planned).bytes) == (2, 0, 1024)


def test_a_step_copies_what_is_new_at_the_end_of_its_direction() -> None:
    grows = PartitionReassignment("orders", 0, (1, 2, 4, 5), (1, 2, 3))
    reordered = PartitionReassignment("orders", 1, (2, 1), (1, 2))
    step = Step.of(1, "", (grows, reordered))
    assert (step.moves, step.copies(Direction.TARGETS), step.copies(Direction.ORIGINALS)) == (2, 2, 1)

import json
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rackspan.audit import RackPolicy
from rackspan.errors import UsageError
from rackspan.model import Broker, BrokerId, ClusterSnapshot, RackId, Topic, TopicName, columns
from rackspan.plan import Caps, in_steps
from rackspan.plan.json_format import plan_document, read_reassignment
from rackspan.reassign import Request, lint, plan
from tests.reassign.instances import cluster, instance
from tests.strategies import policies, snapshots

limits = st.one_of(st.none(), st.integers(1, 4))
caps = st.builds(
    Caps, moves=limits, bytes=st.sampled_from([None, 1, 2**41]), moves_per_broker=limits, partitions=limits
)


@given(snapshots(), policies(), caps, st.sampled_from([None, 2, 3]))
def test_every_reassignment_is_in_one_step_and_no_step_exceeds_a_cap(
    snapshot: ClusterSnapshot, policy: RackPolicy, caps: Caps, factor: int | None
) -> None:
    planned = plan(snapshot, policy, Request(replication_factor=factor, balance=True))
    steps = in_steps(planned, policy, caps)
    listed = [entry for step in steps for entry in step.entries.tolist()]
    assert sorted(listed) == list(range(len(planned)))
    assert sum(step.moves for step in steps) == planned.moves
    assert sum(step.bytes for step in steps) == planned.bytes
    for step in steps:
        if len(step.entries) > 1:
            assert caps.moves is None or step.moves <= caps.moves
            assert caps.bytes is None or step.bytes <= caps.bytes
            assert caps.partitions is None or len(step.entries) <= caps.partitions
        received = Counter(
            broker
            for entry in step.entries.tolist()
            for broker in set(planned.replicas[entry].tolist()) - {-1}
            if broker not in snapshot.partitions.replicas[planned.rows[entry]]
        )
        assert caps.moves_per_broker is None or max(received.values(), default=0) <= caps.moves_per_broker


def test_partitions_that_refuse_writes_move_before_those_that_only_stand_badly() -> None:
    racks = {1: "a", 2: "a", 3: "b", 4: "b"}
    snapshot = ClusterSnapshot(
        brokers=tuple(Broker(BrokerId(broker), RackId(rack)) for broker, rack in racks.items()),
        topics=(Topic(TopicName("orders"), config={"min.insync.replicas": "2"}),),
        partitions=columns(
            topic=[0, 0, 0],
            partition=[0, 1, 2],
            leader=[1, 1, 1],
            replicas=[[1, 2], [1, 2], [1, 9]],
            isr=[[1, 2], [1], [1]],
            size_bytes=[1, 100, 50],
        ),
    )
    planned = plan(snapshot, request=Request(reorder_leaders=False))
    steps = in_steps(planned)
    assert [step.entries.tolist() for step in steps] == [[2, 1], [0]]
    assert steps[0].reason == "acks=all is refused or unsafe now"
    assert [step.bytes for step in steps] == [150, 1]


def test_what_moving_puts_at_risk_comes_after_all_other_copies() -> None:
    """While a replica moves within three racks, two of four replicas are in one: a minimum of 2 forces no second rack."""
    racks = {1: "a", 2: "b", 3: "c", 4: "a"}
    snapshot = ClusterSnapshot(
        brokers=tuple(Broker(BrokerId(broker), RackId(rack)) for broker, rack in racks.items()),
        topics=tuple(Topic(TopicName(f"min-{least}"), config={"min.insync.replicas": f"{least}"}) for least in (2, 3)),
        partitions=columns(
            topic=[0, 1],
            partition=[0, 0],
            leader=[1, 1],
            replicas=[[1, 2, 3], [1, 2, 3]],
            isr=[[1, 2, 3], [1, 2, 3]],
            size_bytes=[1, 100],
        ),
    )
    policy = RackPolicy(min_insync_racks=2)
    planned = plan(snapshot, policy, Request(drain=frozenset({1}), reorder_leaders=False))
    steps = in_steps(planned, policy)
    assert [(step.entries.tolist(), step.reason) for step in steps] == [
        ([1], "asked for by the request, or for balance"),
        ([0], "safe now and afterwards, but while it moves one rack too few may acknowledge acks=all"),
    ]
    found = [one.constraint for one in lint(snapshot, policy, read_reassignment(json.dumps(plan_document(planned))))]
    assert found.count("plan-intermediate-forces-racks") == 1


def test_what_copies_nothing_comes_last() -> None:
    planned = plan(instance("five percent", 1_000))
    steps = in_steps(planned)
    assert [step.moves for step in steps[-1:]] == [0]
    assert all(step.moves for step in steps[:-1])


def test_small_partitions_move_first_and_steps_are_filled() -> None:
    planned = plan(instance("labelled", 1_000), request=Request(reorder_leaders=False))
    steps = in_steps(planned, caps=Caps(moves=100))
    assert len(steps) <= -(-planned.moves // 99)
    copied = [
        planned.snapshot.partitions.size_bytes[planned.rows[step.entries]] * planned.arrivals[step.entries]
        for step in steps
    ]
    assert all(np.all(np.diff(sizes) >= 0) for sizes in copied)


def test_a_large_plan_with_tight_caps_is_still_quick_to_batch() -> None:
    planned = plan(instance("labelled", 10_000))
    steps = in_steps(planned, caps=Caps(moves=200, moves_per_broker=5))
    assert max(step.moves for step in steps) <= 200


def test_a_partition_above_every_cap_moves_alone() -> None:
    snapshot = cluster([[0, 2]] * 3, {0: "a", 2: "a", 1: "b"})
    steps = in_steps(plan(snapshot, request=Request(reorder_leaders=False)), caps=Caps(bytes=1))
    assert [step.entries.tolist() for step in steps] == [[0], [1], [2]]


@pytest.mark.parametrize("name", ["moves", "bytes", "moves_per_broker", "partitions"])
def test_a_cap_of_nothing_is_refused(name: str) -> None:
    with pytest.raises(UsageError, match="nothing could move; allow 1 or more"):
        Caps(**{name: 0})


def test_an_empty_plan_has_no_steps() -> None:
    assert in_steps(plan(cluster([[0, 1]], {0: "a", 1: "b"}, ())), RackPolicy()) == ()

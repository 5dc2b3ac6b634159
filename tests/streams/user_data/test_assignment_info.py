from random import Random
from struct import pack

import pytest

from rackspan.errors import InvalidGroup
from rackspan.model.ids import TopicPartition
from rackspan.streams.problem import TaskId
from rackspan.streams.user_data import AssignmentInfo, active_partitions, decode_assignment
from tests.streams.user_data.test_subscription_info import mutated, refusal
from tests.streams.user_data_bytes import USER_DATA, assignment_values, recorded_values

BYTES = [bytes.fromhex(recorded["assignment"]["bytes"]) for recorded in USER_DATA]


def test_every_version_of_an_assignment_has_the_fields_kafka_streams_encoded() -> None:
    for recorded, data in zip(USER_DATA, BYTES, strict=True):
        assert assignment_values(decode_assignment(data)) == recorded_values(recorded["assignment"])


def test_a_task_has_the_partitions_at_its_positions_in_order() -> None:
    info = AssignmentInfo(11, [TaskId("0_0"), TaskId("1_0"), TaskId("1_0")])
    assert active_partitions(info, [TopicPartition(topic, 0) for topic in ("b", "c", "a")], "m") == {
        "0_0": {("a", 0)},
        "1_0": {("b", 0), ("c", 0)},
    }


def test_tasks_and_partitions_that_do_not_pair_up_are_refused() -> None:
    with pytest.raises(InvalidGroup, match="m: 1 task entries for 2 partitions"):
        active_partitions(AssignmentInfo(11, [TaskId("0_0")]), [TopicPartition("a", 0), TopicPartition("a", 1)], "m")


def test_a_message_may_be_tasks_to_its_end_and_no_more() -> None:
    version, count, tasks, no_standbys = pack(">i", 1), pack(">i", 20), bytes(20 * 8), bytes(4)
    assert decode_assignment(version + count + tasks + no_standbys).active == (TaskId("0_0"),) * 20
    with pytest.raises(InvalidGroup, match="21 elements are announced where 164 bytes are left"):
        decode_assignment(version + pack(">i", 21) + tasks + no_standbys)


@pytest.mark.slow
def test_a_cut_message_is_refused_wherever_it_is_cut() -> None:
    for data in BYTES:
        for length in range(len(data)):
            with pytest.raises(InvalidGroup):
                decode_assignment(data[:length])


@pytest.mark.slow
def test_10000_corrupted_messages_are_read_or_refused_in_one_line() -> None:
    rng = Random(925)
    lines = [refusal(decode_assignment, mutated(rng.choice(BYTES), rng)) for _ in range(10_000)]
    refused = [line for line in lines if line is not None]
    assert 1_000 < len(refused) < 10_000
    assert not any("\n" in line for line in refused)

import json
from pathlib import Path
from typing import Any

import pytest

from rackspan.plan.execution.throttle import (
    ConfigKey,
    Holder,
    merged_list,
    throttle,
    throttled_brokers,
    with_user_values,
)
from rackspan.reassign import Direction, PartitionReassignment, Step

# Kafka's own names (KIP-73).
LEADER_REPLICAS = "leader.replication.throttled.replicas"
FOLLOWER_REPLICAS = "follower.replication.throttled.replicas"
LEADER_RATE = "leader.replication.throttled.rate"
FOLLOWER_RATE = "follower.replication.throttled.rate"

CASES = json.loads((Path(__file__).parents[2] / "vectors" / "placement.json").read_text())["cases"]


def kafkas(case: dict[str, Any]) -> dict[ConfigKey, str]:
    """The throttle that Kafka's own test expects of its tool."""
    expected: dict[str, Any] = case["expect"]
    lists = ((LEADER_REPLICAS, "leader_throttles"), (FOLLOWER_REPLICAS, "follower_throttles"))
    return {
        ConfigKey(Holder.TOPIC, topic, key): listed for key, name in lists for topic, listed in expected[name].items()
    } | {
        ConfigKey(Holder.BROKER, str(broker), key): "1000"
        for broker in expected["reassigning_brokers"]
        for key in (LEADER_RATE, FOLLOWER_RATE)
    }


def test_a_step_is_throttled_as_kafkas_tool_does_it() -> None:
    (case,) = [case for case in CASES if case["id"] == "r-move-map"]
    moves = []
    for name, (sources, destinations) in case["expect"]["moves"].items():
        topic, _, partition = name.rpartition("-")
        moves.append(PartitionReassignment(topic, int(partition), tuple(destinations), tuple(sources)))
    assert throttle(Step.of(1, "", tuple(moves)), Direction.TARGETS, 1_000) == kafkas(case)


@pytest.mark.parametrize(
    ("own", "both"),
    [
        (None, "0:1,0:2"),
        ("", "0:1,0:2"),
        (" ", "0:1,0:2"),
        ("*", "*"),
        (" * ", "*"),
        ("0:2,7:1", "0:1,0:2,7:1"),
    ],
)
def test_what_a_user_throttles_stays_throttled(own: str | None, both: str) -> None:
    assert merged_list(own, "0:1,0:2") == both


def test_a_step_without_copies_throttles_the_leaders_side_alone() -> None:
    reordered = PartitionReassignment("orders", 3, (2, 1), (1, 2))
    assert throttle(Step.of(1, "", (reordered,)), Direction.TARGETS, 9) == {
        ConfigKey(Holder.TOPIC, "orders", LEADER_REPLICAS): "3:1,3:2",
        **{ConfigKey(Holder.BROKER, broker, key): "9" for broker in "12" for key in (LEADER_RATE, FOLLOWER_RATE)},
    }


def test_in_the_other_direction_the_others_send_and_receive() -> None:
    moves = [PartitionReassignment("orders", number, (4, 2), (1, 2)) for number in (10, 9)]
    back = throttle(Step.of(1, "", moves), Direction.ORIGINALS, 9)
    assert back[ConfigKey(Holder.TOPIC, "orders", LEADER_REPLICAS)] == "10:2,10:4,9:2,9:4"
    assert back[ConfigKey(Holder.TOPIC, "orders", FOLLOWER_REPLICAS)] == "10:1,9:1"
    assert throttled_brokers(moves) == [1, 2, 4]


def test_a_users_rate_is_replaced_and_a_users_list_is_joined() -> None:
    rate, listed = ConfigKey(Holder.BROKER, "1", LEADER_RATE), ConfigKey(Holder.TOPIC, "orders", LEADER_REPLICAS)
    assert with_user_values({rate: "9", listed: "0:1"}, {rate: "77", listed: "0:5"}) == {rate: "9", listed: "0:1,0:5"}
    assert with_user_values({rate: "9", listed: "0:1"}, {}) == {rate: "9", listed: "0:1"}

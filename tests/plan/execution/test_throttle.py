import json
from pathlib import Path
from typing import Any

import pytest

from rackspan.plan.execution.throttle import (
    FOLLOWER_RATE,
    FOLLOWER_REPLICAS,
    LEADER_RATE,
    LEADER_REPLICAS,
    ConfigKey,
    Holder,
    merged_list,
    throttle,
)
from rackspan.reassign import Direction, PartitionReassignment, Step

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
        ("*", "*"),
        ("0:2,7:1", "0:1,0:2,7:1"),
    ],
)
def test_what_a_user_throttles_stays_throttled(own: str | None, both: str) -> None:
    assert merged_list(own, "0:1,0:2") == both

"""The documents of judged stops and of plans, key by key."""

import re
from dataclasses import replace
from datetime import UTC, datetime

from rackspan.audit import RackPolicy
from rackspan.model import BrokerId, Controller
from rackspan.restart import BlockOn, RestartRequest, StopPolicy, SufferingPartition, judge_stop, plan_restart
from rackspan.restart.blocked import BlockedBroker
from rackspan.restart.gain import ForcingPartitions, ReassignmentGain
from rackspan.restart.json_format import restart_plan_document, stop_document
from rackspan.restart.safe import VotersLeft
from tests.snapshots import of_one_topic

TIMESTAMP = datetime(2026, 11, 23, tzinfo=UTC)
SNAPSHOT = of_one_topic(
    {1: "a", 2: "b", 3: "c"},
    [[1, 2, 3], [2, 3]],
    config={"min.insync.replicas": "1"},
    more={"size_bytes": [100, 30]},
    cluster_id="c1",
)


def one(partition: int, reason: str) -> SufferingPartition:
    return SufferingPartition("orders", partition, reason)


def test_a_judged_stop_is_written_key_by_key() -> None:
    judged = replace(
        judge_stop(SNAPSHOT, {2, 1}, RackPolicy(), StopPolicy(margin=3)),
        loses_leader=(one(0, "loses"),),
        refuses_writes=(one(1, "refuses"),),
        one_copy=(one(2, "one copy"),),
        single_replica=(one(3, "single"),),
        below_margin=(one(4, "below"), one(5, "below too")),
        without_margin=(one(6, "without"),),
        accepted=(one(7, "accepted"),),
        already=(one(8, "already"),),
        controllers=VotersLeft(5, 2, (1,)),
        partial=("racks: unknown",),
    )
    assert stop_document(replace(SNAPSHOT, taken_at=TIMESTAMP), judged) == {
        "as_of": "2026-11-23T00:00:00Z",
        "safe": False,
        "brokers": [1, 2],
        "margin": 3,
        "loses_leader": [{"topic": "orders", "partition": 0, "reason": "loses"}],
        "refuses_writes": [{"topic": "orders", "partition": 1, "reason": "refuses"}],
        "below_margin": [
            {"topic": "orders", "partition": 4, "reason": "below"},
            {"topic": "orders", "partition": 5, "reason": "below too"},
        ],
        "one_copy": [{"topic": "orders", "partition": 2, "reason": "one copy"}],
        "single_replica": [{"topic": "orders", "partition": 3, "reason": "single"}],
        "without_margin": [{"topic": "orders", "partition": 6, "reason": "without"}],
        "accepted": [{"topic": "orders", "partition": 7, "reason": "accepted"}],
        "already": [{"topic": "orders", "partition": 8, "reason": "already"}],
        "controllers": {"voters": 5, "left": 2, "majority": 3},
        "partial": ["racks: unknown"],
    }


def test_a_stop_without_controllers_or_time_has_null_for_them() -> None:
    written = stop_document(SNAPSHOT, judge_stop(SNAPSHOT, {1}, RackPolicy()))
    assert (written["controllers"], written["as_of"], written["safe"]) == (None, None, True)


def test_a_plan_is_written_key_by_key() -> None:
    plan = plan_restart(
        replace(SNAPSHOT, taken_at=TIMESTAMP, controllers=(Controller(BrokerId(9), alive=True),)),
        stop=StopPolicy(1, frozenset({BlockOn.RF1, BlockOn.ONE_COPY}), re.compile("ord.*")),
        request=RestartRequest(frozenset({1, 2}), max_batch=1),
    )
    assert restart_plan_document(plan) == {
        "cluster_id": "c1",
        "as_of": "2026-11-23T00:00:00Z",
        "margin": 1,
        "block_on": ["one-copy", "rf1"],
        "accept": "ord.*",
        "without_margin": 1,
        "max_batch": 1,
        "down": [],
        "batches": [
            {
                "brokers": [1],
                "reason": "rack a",
                "leaders_moved": 1,
                "most_leaders": 2.0,
                "most_bytes": 4.33,
                "at_minimum": 0,
                "survivors": [{"broker": 2, "leaders_now": 1, "leaders": 2, "bytes_now": 30, "bytes": 130}],
                "waits_for": [],
            },
            {
                "brokers": [2],
                "reason": "rack b",
                "leaders_moved": 2,
                "most_leaders": 1.0,
                "most_bytes": 1.0,
                "at_minimum": 1,
                "survivors": [{"broker": 3, "leaders_now": 0, "leaders": 1, "bytes_now": 0, "bytes": 30}],
                "waits_for": [],
            },
        ],
        "batches_if_up": None,
        "lower_bound": 2,
        "bound_reason": "2 brokers, 1 in a batch at most",
        "forcing": None,
        "blocked": [],
        "partial": [],
    }


def test_what_forces_further_batches_and_what_is_blocked_is_written_key_by_key() -> None:
    plan = replace(
        plan_restart(SNAPSHOT),
        blocked=(BlockedBroker(3, (one(1, "loses"),), 7, "add a replica"),),
        forcing=ForcingPartitions(("orders-0", "orders-1"), 2, ("orders",), 3, ReassignmentGain("move", 4, 3)),
        partial=("racks: unknown",),
    )
    written = restart_plan_document(plan)
    assert written["blocked"] == [
        {
            "broker": 3,
            "partitions": [{"topic": "orders", "partition": 1, "reason": "loses"}],
            "partition_count": 7,
            "remedy": "add a replica",
        }
    ]
    forcing = {"partitions": ["orders-0", "orders-1"], "partition_count": 2, "topics": ["orders"], "racks": 3}
    assert written["forcing"] == {**forcing, "gain": {"command": "move", "moves": 4, "batches": 3}}
    assert (written["partial"], written["accept"], written["as_of"]) == (["racks: unknown"], None, None)
    without_gain = replace(plan, forcing=ForcingPartitions(("orders-0", "orders-1"), 2, ("orders",), 3))
    assert restart_plan_document(without_gain)["forcing"] == {**forcing, "gain": None}

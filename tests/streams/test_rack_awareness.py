"""When rack awareness is on, and what the reason says when it is off."""

from copy import deepcopy
from typing import Any

import pytest

from rackspan.streams import from_document
from rackspan.streams.rack_awareness import judge_rack_awareness, tag_warnings
from tests.streams.formats.test_problem import GOOD, A, B, Change, drop, put


def changed(*changes: Change) -> dict[str, Any]:
    document = deepcopy(GOOD)
    for change in changes:
        change(document)
    return document


OFF = [
    ([put("config", "strategy", "none")], "rack.aware.assignment.strategy is none"),
    ([put("config", {})], "rack.aware.assignment.strategy is none"),
    ([put("config", "enabled", False)], "rack.aware.assignment.enabled is false"),
    ([put("clients", 1, "rack", None)], f"client {B} has no client.rack; set it on every consumer"),
    ([put("clients", 1, "rack", "")], f"client {B} has no client.rack; set it on every consumer"),
    (
        [put("clients", 0, {"process_id": A, "threads": 1, "consumers": {}})],
        f"client {A} has no consumers; its rack is unknown",
    ),
    (
        [put("clients", 0, {"process_id": A, "threads": 1, "consumers": {"c1": "r1", "c2": "r2"}})],
        f"client {A}: its consumers differ in client.rack; set the same on all of them",
    ),
    ([lambda document: document["partitions"].pop("in:1")], "partition in:1 is not in the cluster's metadata"),
    ([put("partitions", "in:1", [])], "partition in:1 has no replicas, even when described"),
    ([put("partitions", "in:1", ["r2", None])], "partition in:1 has a replica on a broker without broker.rack"),
    ([lambda document: document["partitions"].pop("log:1")], "partition log:1 is not in the cluster's metadata"),
    ([put("partitions", "log:7", [])], "partition log:7 has no replicas, even when described"),
]


@pytest.mark.parametrize(("changes", "reason"), OFF, ids=[reason[:50] for _, reason in OFF])
def test_it_is_off_with_a_reason(changes: list[Change], reason: str) -> None:
    assert judge_rack_awareness(from_document(changed(*changes))).reason == reason


def test_it_is_on_where_every_rack_is_known() -> None:
    assert judge_rack_awareness(from_document(GOOD)).enabled


def test_changelogs_are_required_only_with_standbys() -> None:
    document = changed(put("config", "num_standbys", 0), put("partitions", "log:1", []), drop("initial_standby"))
    assert judge_rack_awareness(from_document(document)).enabled


def test_a_partition_that_no_task_reads_switches_nothing_off() -> None:
    assert judge_rack_awareness(from_document(changed(put("partitions", "other:0", [])))).enabled


def test_client_rack_outside_the_tags_is_warned_of_and_the_tags_are_followed() -> None:
    document = changed(put("config", "rack_aware_assignment_tags", ["zone"]))
    for client in document["clients"]:
        client["tags"] = {"zone": "z"}
    given = from_document(document)
    assert tag_warnings(given) == (
        "client.rack is set, but rack.aware.assignment.tags does not name rack: standbys are spread by the tags alone",
    )
    assert judge_rack_awareness(given).enabled


def test_a_rack_tag_that_differs_from_client_rack_is_warned_of_by_client() -> None:
    document = changed(
        put("config", "rack_aware_assignment_tags", ["rack"]),
        put("clients", 0, "tags", {"rack": "r1"}),
        put("clients", 1, "tags", {"rack": "r3"}),
    )
    assert tag_warnings(from_document(document)) == (
        f"client {B}: client.tag.rack is r3, but client.rack is r2; standbys follow the tag",
    )


@pytest.mark.parametrize("strategy", ["none", "min_traffic"])
def test_a_tag_that_a_client_lacks_is_warned_of_whatever_the_strategy(strategy: str) -> None:
    document = changed(
        put("config", "strategy", strategy),
        put("config", "rack_aware_assignment_tags", ["rack"]),
        put("clients", 0, "tags", {"rack": "r1"}),
    )
    assert tag_warnings(from_document(document)) == (
        f"client {B}: client.tag.rack is not set, but rack.aware.assignment.tags names it; set it",
    )


def test_without_tags_there_is_nothing_to_warn_of() -> None:
    assert tag_warnings(from_document(GOOD)) == ()

from typing import Any

import pytest

from rackspan.model.group import GroupDescription, GroupKind, MemberDescription, StreamsMember, SubtopologyTopics
from rackspan.model.ids import RackId
from rackspan.streams import CapturedGroup, audit_group, capture_group, from_document, streams_group
from tests.streams.groups import PROCESS, cluster, described, member

TOPICS = {
    "orders": [[1], [2], [3]],
    "shop-counts-repartition": [[1], [2], [3]],
    "shop-counts-changelog": [[2, 3], [3], [1]],
}


TAGS_NOT_SENT = "client.tag.zone is set, but a group does not send rack.aware.assignment.tags: standbys are placed as if it named none"


def captured(*, changelogs: dict[str, list[str]] | None = None, **topics: Any) -> CapturedGroup:
    """Three clients in three racks; sub-topology 0 without state, 1 with it and a standby each."""
    members = [
        member(
            f"r{at + 1}-a",
            process=at + 1,
            rack=f"r{at + 1}",
            active={f"0_{at}": [f"orders:{at}"], f"1_{at}": [f"shop-counts-repartition:{at}"]},
            standby={f"1_{(at + 1) % 3}": [f"shop-counts-repartition:{(at + 1) % 3}"]},
            tags={"zone": f"z{at}"},
        )
        for at in range(3)
    ]
    return capture_group(streams_group(described(*members)), cluster({**TOPICS, **topics}), changelogs or {})


def test_a_captured_group_is_a_problem_with_the_running_assignment() -> None:
    found = captured()
    assert found.unknown == (TAGS_NOT_SENT,)
    assert found.document["config"] == {"strategy": "min_traffic", "num_standbys": 1}
    assert found.document["clients"][0] == {
        "process_id": PROCESS.format(1),
        "consumers": {"r1-a-StreamThread-1-consumer": "r1"},
        "threads": 1,
        "tags": {"zone": "z0"},
        "prev_active": ["0_0", "1_0"],
        "prev_standby": ["1_1"],
    }
    assert found.document["tasks"][3] == {
        "id": "1_0",
        "stateful": True,
        "source": ["shop-counts-repartition:0"],
        "changelog": ["shop-counts-changelog:0"],
    }
    assert found.document["partitions"]["shop-counts-changelog:0"] == ["r2", "r3"]
    assert found.document["initial_active"][PROCESS.format(2)] == ["0_1", "1_1"]
    assert (found.document["initial_standby"] or {})[PROCESS.format(3)] == ["1_0"]


def test_every_captured_group_reads_back_without_a_warning() -> None:
    assert from_document(captured().document).warnings == ()


def test_a_broker_without_a_rack_and_one_that_is_gone_are_null() -> None:
    found = captured(orders=[[1, 9], [2], [3]])
    assert found.document["partitions"]["orders:0"] == ["r1", None]


def test_a_topic_that_the_cluster_does_not_show_is_left_out() -> None:
    found = capture_group(
        streams_group(described(member("a", active={"0_0": ["orders:0"]}))), cluster({"other": [[1]]}), {}
    )
    assert found.document["partitions"] == {}


@pytest.mark.parametrize("name", ["orders", "zeta"])
def test_a_partition_that_the_cluster_does_not_show_yet_is_left_out(name: str) -> None:
    """Of a topic before another, and of the last one."""
    running = member("a", active={f"0_{at}": [f"{name}:{at}"] for at in range(3)})
    found = capture_group(streams_group(described(running)), cluster({name: [[1], [2]], "payments": [[3]] * 3}), {})
    assert found.document["partitions"] == {f"{name}:0": ["r1"], f"{name}:1": ["r2"]}


def test_a_task_of_a_classic_group_reads_what_its_assignment_has_also_what_the_cluster_does_not_show_yet() -> None:
    running = member("a", active={f"0_{at}": [f"orders:{at}"] for at in range(3)})
    found = capture_group(streams_group(described(running)), cluster({"orders": [[1], [2]]}), {})
    assert [task["source"] for task in found.document["tasks"]] == [["orders:0"], ["orders:1"], ["orders:2"]]


def test_a_changelog_of_a_kip_1071_group_that_the_cluster_does_not_show_is_left_out() -> None:
    """Its coordinator names the topic, which the reader may not describe or which was created since."""
    running = StreamsMember(PROCESS.format(1), {}, {"0": (0,)}, {}, {})
    group = streams_group(
        GroupDescription(
            "shop",
            "Stable",
            "streams",
            "",
            (MemberDescription("a", "a", rack=RackId("r1"), streams=running),),
            kind=GroupKind.STREAMS,
            topology={"0": SubtopologyTopics(("orders",), ("shop-counts-changelog",))},
        )
    )
    found = capture_group(group, cluster({"orders": [[1]]}), {})
    assert found.document["partitions"] == {"orders:0": ["r1"]}
    assert found.document["tasks"][0]["changelog"] == ["shop-counts-changelog:0"]
    assert audit_group(group, found)["tasks"] == {"stateful": 1, "stateless": 0}


def test_a_task_of_a_kip_1071_group_reads_only_the_topics_that_have_its_partition() -> None:
    running = StreamsMember(PROCESS.format(1), {}, {"0": (0, 1, 2)}, {}, {})
    group = streams_group(
        GroupDescription(
            "shop",
            "Stable",
            "streams",
            "",
            (MemberDescription("a", "a", rack=RackId("r1"), streams=running),),
            kind=GroupKind.STREAMS,
            topology={"0": SubtopologyTopics(("orders", "payments"), ())},
        )
    )
    found = capture_group(group, cluster({"orders": [[1], [2], [3]], "payments": [[1]]}), {})
    assert [task["source"] for task in found.document["tasks"]] == [
        ["orders:0", "payments:0"],
        ["orders:1"],
        ["orders:2"],
    ]


def test_partitions_without_a_task_are_named() -> None:
    found = captured(orders=[[1], [2], [3], [1]])
    assert found.unknown == (
        "sub-topology 0 has 3 tasks for 4 partitions of orders; a rebalance is to come",
        TAGS_NOT_SENT,
    )


def test_standbys_without_a_known_changelog_have_no_known_cost() -> None:
    topics: Any = {"shop-counts-changelog": [[1]] * 5}
    found = captured(**topics)
    assert found.unknown == (
        "changelog shop-counts-changelog: no sub-topology has as many tasks as it has partitions; is it of another application?",
        "standby tasks have no price: not every sub-topology with state has a known changelog",
    )
    assert found.document["config"]["num_standbys"] == 0
    assert found.document["initial_standby"] is None


def test_warm_ups_of_a_few_tasks_are_not_counted_as_standbys() -> None:
    tasks = {f"0_{at}": [f"orders:{at}"] for at in range(3)}
    group = streams_group(
        described(
            member("a", process=1, active=tasks, offset_sums={"0_0": -2}),
            member("b", process=2, standby={"0_0": ["orders:0"]}),
        )
    )
    found = capture_group(group, cluster({"orders": [[1]] * 3, "shop-s-changelog": [[1]] * 3}), {})
    assert found.document["config"]["num_standbys"] == 0

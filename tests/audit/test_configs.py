"""Configs of topics that a warning is about: when it is given, when not, and that clients read what it needs."""

import re
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._config import AlterConfigOpType, ConfigEntry, ConfigResource
from confluent_kafka.admin._resource import ResourceType

from rackspan import api
from rackspan.audit import Finding, RackPolicy, Severity, audit
from rackspan.audit.policy import Survive
from rackspan.client.cluster import ConnectionSettings
from rackspan.cluster import EmbeddedCluster
from rackspan.model import Broker, BrokerId, ClusterSnapshot, RackId, Topic, TopicName, columns
from rackspan.sources.live.cluster import read_cluster
from tests.waiting import WITHIN_SECONDS

LEADER = "leader.replication.throttled.replicas"
FOLLOWER = "follower.replication.throttled.replicas"
UNCLEAN = "unclean.leader.election.enable"


def found(
    config: dict[str, str], policy: RackPolicy = RackPolicy(), *, replicas: int = 3, in_sync: int = 3, adding: int = 0
) -> dict[str, str]:
    """The remedy of each finding about one topic on brokers 1 to 4 in four racks, by constraint."""
    return {one.constraint: one.remedy for one in findings(config, policy, replicas, in_sync, adding)}


def findings(
    config: dict[str, str], policy: RackPolicy = RackPolicy(), replicas: int = 3, in_sync: int = 3, adding: int = 0
) -> list[Finding]:
    held = list(range(1, replicas + 1))
    snapshot = ClusterSnapshot(
        brokers=tuple(Broker(BrokerId(number), RackId(f"r{number}")) for number in range(1, 5)),
        topics=(Topic(TopicName("orders"), config=config),),
        partitions=columns(
            topic=[0], partition=[0], leader=[1], replicas=[held], isr=[held[:in_sync]], adding_replicas=[[4][:adding]]
        ),
    )
    return [finding for finding in audit(snapshot, policy).findings if finding.topic]


def test_a_value_of_one_is_a_warning_only_where_two_would_stop_nothing() -> None:
    one = {"min.insync.replicas": "1"}
    assert found(one)["min-insync-replicas-one"].endswith("--add-config min.insync.replicas=2")
    assert "min-insync-replicas-one" not in found({"min.insync.replicas": "2"})
    # Two replicas: 2 stops acks=all at the loss of either.
    assert "min-insync-replicas-one" not in found(one, replicas=2, in_sync=2)
    # One in sync: 2 would refuse acks=all now.
    assert "min-insync-replicas-one" not in found(one, in_sync=1)
    # Two in sync: until the third is back, 2 would stop acks=all at the loss of either.
    assert "min-insync-replicas-one" not in found(one, in_sync=2)
    assert "min-insync-replicas-one" not in found(one, RackPolicy(survive=Survive.NONE))
    # min-insync-replicas-forces-racks has the remedy there.
    assert "min-insync-replicas-one" not in found(one, RackPolicy(min_insync_racks=2))


def test_an_unclean_election_is_a_warning_unless_the_topic_may_lose_records() -> None:
    config = {"min.insync.replicas": "2", UNCLEAN: "true"}
    assert found(config)["unclean-leader-election"].endswith(f"--entity-name orders --add-config {UNCLEAN}=false")
    assert found(config, RackPolicy(survive=Survive.NONE)) == {}
    assert found({**config, UNCLEAN: "false"}) == {}


@pytest.mark.parametrize("keys", [[LEADER], [FOLLOWER], [LEADER, FOLLOWER]])
def test_the_command_removes_the_throttles_that_are_set_and_no_others(keys: list[str]) -> None:
    config = {"min.insync.replicas": "2", **dict.fromkeys(keys, "*")}
    assert found(config)["throttle-left-behind"].endswith(f"--delete-config {','.join(keys)}")
    (reason,) = (one.reason for one in findings(config) if one.constraint == "throttle-left-behind")
    are = f"{keys[0]} is" if len(keys) == 1 else f"{LEADER} and {FOLLOWER} are"
    assert reason == f"{are} set, and nothing is being reassigned: followers may fall behind"
    assert "throttle-left-behind" not in found(config, replicas=4, in_sync=3, adding=1)


def test_what_a_config_may_do_is_a_warning_and_no_violation() -> None:
    config = {"min.insync.replicas": "1", UNCLEAN: "true", LEADER: "*"}
    assert {(one.constraint, one.severity) for one in findings(config)} == {
        ("min-insync-replicas-one", Severity.WARNING),
        ("unclean-leader-election", Severity.WARNING),
        ("throttle-left-behind", Severity.WARNING),
    }


def test_a_throttle_may_be_of_a_reassignment_that_is_not_judged() -> None:
    """Of another topic than those that are chosen, or one that could not be read."""
    throttled = Topic(TopicName("orders"), config={"min.insync.replicas": "2", LEADER: "0:1"})
    snapshot = ClusterSnapshot(
        brokers=tuple(Broker(BrokerId(number), RackId(f"r{number}")) for number in range(1, 5)),
        topics=(throttled, Topic(TopicName("payments"), config={"min.insync.replicas": "2"})),
        partitions=columns(
            topic=[0, 1], partition=[0, 0], leader=[1, 1], replicas=[[1, 2, 3], [4, 2, 3, 1]], isr=[[1, 2, 3]] * 2
        ),
    )
    moving = replace(
        snapshot.partitions,
        adding_replicas=np.array([[-1], [4]], np.int32),
        removing_replicas=np.array([[-1], [1]], np.int32),
    )
    unknown = "reassignments under way: unknown, no response in time"
    for cluster, expected in (
        (snapshot, True),
        (replace(snapshot, partitions=moving), False),
        (replace(snapshot, partial=(unknown,)), False),
        (replace(snapshot, partial=("sizes of 2 partitions: unknown",)), True),
    ):
        findings = audit(cluster, RackPolicy(), re.compile("orders")).findings
        assert ("throttle-left-behind" in {finding.constraint for finding in findings}) is expected


@pytest.fixture
def cluster() -> Iterator[EmbeddedCluster]:
    with EmbeddedCluster(racks=3, brokers=3, seed=3) as cluster:
        for topic in ("weak", "strong"):
            cluster.create_topic(topic, replicas=[[1, 2, 3]], config={"min.insync.replicas": "2"})
        yield cluster


def test_a_snapshot_of_a_running_cluster_holds_those_that_weaken(cluster: EmbeddedCluster) -> None:
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers, "log_level": 0})
    entries = [
        ConfigEntry(key, value, incremental_operation=AlterConfigOpType.SET)
        for key, value in ((UNCLEAN, "true"), (LEADER, "0:1"), (FOLLOWER, "0:2"))
    ]
    resource = ConfigResource(ResourceType.TOPIC, "weak", incremental_configs=entries)
    admin.incremental_alter_configs([resource])[resource].result(WITHIN_SECONDS)
    read = read_cluster(ConnectionSettings(cluster.bootstrap_servers)).snapshot
    assert {topic.name: set(topic.config) & {UNCLEAN, LEADER, FOLLOWER} for topic in read.topics} == {
        "strong": set(),
        "weak": {UNCLEAN, LEADER, FOLLOWER},
    }
    topics = {(finding.constraint, finding.topic) for finding in api.audit(read).findings if finding.topic}
    assert topics == {("unclean-leader-election", "weak"), ("throttle-left-behind", "weak")}

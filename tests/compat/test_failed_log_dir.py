"""A log directory of a real broker fails while the broker is up, and a broker lacks a listener: what is read, what is advised, and what becomes of it.

Kafka's own folders say which partitions are in the directory, kafka-topics who leads and who is in sync.
"""

import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from rackspan.audit import Finding, RackPolicy, audit, outage
from rackspan.client.cluster import ConnectionSettings
from rackspan.kafka_process import KafkaCluster, node_config
from rackspan.model import ClusterSnapshot
from rackspan.model.ids import UNKNOWN_LEADER, TopicPartition
from rackspan.sources.live.cluster import read_cluster
from tests.kafka_fixtures import create_topic, started
from tests.kafka_tools import described, produce
from tests.kafka_versions import KAFKA
from tests.waiting import WITHIN_SECONDS, eventually

pytestmark = pytest.mark.kafka

FAILING, HIDDEN, LISTENER = 4, 3, "MORE"
"""Broker 4, which is no controller, has a second log directory; broker 3 lacks the second listener."""

KEPT, LAST = "kept", "last"
"""A topic with two more replicas of each partition, and one of single replicas."""

PARTITIONS = 6


@dataclass(frozen=True)
class World:
    """A cluster of which the second directory of broker 4 has failed. `lost`: what Kafka had put into it, by the names of its folders."""

    cluster: KafkaCluster
    directory: Path
    lost: frozenset[TopicPartition]

    def read(self, servers: str | None = None) -> ClusterSnapshot:
        settings = ConnectionSettings(servers or self.cluster.bootstrap_servers, {}, WITHIN_SECONDS)
        return read_cluster(settings).snapshot

    def of_topic(self, topic: str) -> set[TopicPartition]:
        return {partition for partition in self.lost if partition.topic == topic}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("kafka")


@pytest.fixture(scope="module")
def cluster(folder: Path) -> Iterator[KafkaCluster]:
    original = node_config.properties

    def properties(node: Any, nodes: Any, client: Any, controller: Any, log_dir: Path, *more: Any) -> dict[str, str]:
        settings = original(node, nodes, client, controller, log_dir, *more)
        if node.id == FAILING:
            settings["log.dirs"] = f"{log_dir},{log_dir}-b"
        if node.id == HIDDEN:
            kept = [one for one in settings["listeners"].split(",") if not one.startswith(LISTENER)]
            settings["listeners"] = ",".join(kept)
        return settings

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(node_config, "properties", properties)
        yield from started(
            KafkaCluster(("r1", "r2", "r3"), 4, version=KAFKA, data_dir=folder, listeners={LISTENER: "PLAINTEXT"})
        )


@pytest.fixture(scope="module")
def world(cluster: KafkaCluster, folder: Path) -> World:
    create_topic(cluster, KEPT, assignment=[[FAILING, 2, 3]] * PARTITIONS, config={"min.insync.replicas": "2"})
    create_topic(cluster, LAST, assignment=[[FAILING]] * PARTITIONS)
    for topic in (KEPT, LAST):
        produce(cluster, topic, PARTITIONS, 10_000)
    directory = folder / f"node-{FAILING}-b"
    lost = frozenset(
        TopicPartition(path.name.rpartition("-")[0], int(path.name.rpartition("-")[2]))
        for topic in (KEPT, LAST)
        for path in directory.glob(f"{topic}-*")
    )
    shutil.rmtree(directory)
    directory.write_text("no folder")
    found = World(cluster, directory, lost)

    def failed() -> bool:
        produce(cluster, KEPT, PARTITIONS, 10_000)
        return bool(broker(found.read()).failed_log_dirs)

    eventually(failed, "broker 4 notices that its directory is gone")
    eventually(
        lambda: offline(found.read()) == lost and all(found_isr(found, one) for one in found.of_topic(KEPT)),
        "every replica in it is offline, and out of sync",
    )
    return found


def broker(snapshot: ClusterSnapshot, broker_id: int = FAILING) -> Any:
    found = snapshot.broker(broker_id)
    assert found is not None
    return found


def rows(snapshot: ClusterSnapshot) -> Mapping[TopicPartition, Any]:
    return {TopicPartition(str(snapshot.topics[row.topic].name), row.partition): row for row in snapshot.partitions}


def offline(snapshot: ClusterSnapshot) -> set[TopicPartition]:
    return {name for name, row in rows(snapshot).items() if row.offline_replicas}


def found_isr(world: World, partition: TopicPartition) -> bool:
    """Whether Kafka itself has taken broker 4 out of the ISR."""
    return FAILING not in described(world.cluster)[partition.topic, partition.partition].isr


def findings(snapshot: ClusterSnapshot, constraint: str) -> list[Finding]:
    return [one for one in audit(snapshot, RackPolicy()).findings if one.constraint == constraint]


def rackspan(world: World, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "rackspan", *words, "--bootstrap-server", world.cluster.bootstrap_servers]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=WITHIN_SECONDS)


def test_the_directory_is_named_and_nothing_waits_for_what_is_in_it(world: World) -> None:
    assert world.of_topic(KEPT)
    assert world.of_topic(LAST)
    snapshot = world.read()
    assert not broker(snapshot).fenced
    assert broker(snapshot).failed_log_dirs == (str(world.directory),)
    (found,) = findings(snapshot, "failed-log-dir")
    assert found.reason.startswith(f"log directory {world.directory} of broker {FAILING} (rack r1) has failed")
    remedies = [one.remedy for one in audit(snapshot, RackPolicy()).findings]
    assert not [one for one in remedies if f"wait until broker {FAILING}" in one or "--election-type preferred" in one]
    assert (
        f"repair the disk of broker {FAILING} and restart it, or rackspan reassign plan --drain {FAILING} --topic {KEPT}"
        in remedies
    )


def test_only_partitions_whose_one_replica_is_in_it_are_offline_and_unclean_elections_are_not_advised_for_them(
    world: World,
) -> None:
    found = findings(world.read(), "offline")
    assert {TopicPartition(str(one.topic), int(one.partition or 0)) for one in found} == world.of_topic(LAST)
    assert all(one.remedy.startswith(f"repair the disk of broker {FAILING} with what is on it") for one in found)
    assert not [one for one in found if "unclean" in one.remedy]


@pytest.mark.parametrize(
    "words",
    [
        ("outage",),
        ("reassign", "plan"),
        ("restart", "plan"),
        ("restart", "safe", "--broker", "1"),
        ("place", "create", "--topic", "new", "--partitions", "3", "--replication-factor", "2"),
    ],
    ids=" ".join,
)
def test_every_command_that_judges_or_places_says_that_the_directory_failed(
    world: World, words: tuple[str, ...]
) -> None:
    assert f"log directory {world.directory} of broker {FAILING} (rack r1) has failed" in rackspan(world, *words).stderr


def test_the_drain_that_is_advised_brings_every_partition_back_into_sync(world: World, tmp_path: Path) -> None:
    plan = str(tmp_path / "plan.json")
    planned = rackspan(world, "reassign", "plan", "--drain", str(FAILING), "--topic", KEPT, "--out", plan)
    assert planned.returncode == 2, planned.stderr
    applied = rackspan(world, "reassign", "apply", "--reassignment-json-file", plan, "--apply")
    assert applied.returncode == 0, applied.stderr
    after = described(world.cluster)
    for partition in range(PARTITIONS):
        held = after[KEPT, partition]
        assert FAILING not in held.replicas
        assert sorted(held.isr) == sorted(held.replicas)
    assert [one for one in audit(world.read(), RackPolicy()).findings if one.topic == KEPT] == []


def test_a_leader_behind_a_missing_listener_is_not_known_and_never_offline(world: World) -> None:
    create_topic(world.cluster, "hidden", assignment=[[HIDDEN, 1, 2], [1, 2, HIDDEN]])
    create_topic(world.cluster, "single", assignment=[[HIDDEN]])
    addresses = world.cluster.bootstrap_servers_of(LISTENER).split(",")
    snapshot = world.read(",".join(address for at, address in enumerate(addresses, 1) if at != HIDDEN))
    hidden = [row for name, row in rows(snapshot).items() if name.topic in ("hidden", "single")]
    assert [row.leader for row in hidden] == [UNKNOWN_LEADER, 1, UNKNOWN_LEADER]
    # Kafka lists its replicas as offline, since it has no such listener: their directories are well.
    assert [row.offline_replicas for row in hidden] == [(), (), ()]
    # Nor does Kafka list the broker, fenced or not.
    assert snapshot.broker(HIDDEN) is None
    assert [note for note in snapshot.unread if "LISTENER_NOT_FOUND; give the address of a listener" in note]
    found = [one for one in audit(snapshot, RackPolicy()).findings if one.topic in ("hidden", "single")]
    assert {one.remedy for one in found if one.constraint == "unknown-broker"} == {
        "give the address of a listener that every broker has"
    }
    now, _ = outage(snapshot, RackPolicy())
    assert {topic.topic for topic in now.topics if topic.offline} & {"hidden", "single"} == set()
    assert [one for one in found if one.constraint == "offline" or "bring back" in one.remedy] == []
    # By the listener that every broker has the same partitions have their leaders.
    assert [row.leader for name, row in rows(world.read()).items() if name.topic in ("hidden", "single")] == [
        HIDDEN,
        1,
        HIDDEN,
    ]

"""Groups of all four kinds by their own clients on real Kafka, and what `clients` says of each."""

import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer

from rackspan.client.cluster import ConnectionSettings
from rackspan.clients import ReplicaSelectors
from rackspan.errors import ClusterUnreachable
from rackspan.kafka_process import KafkaCluster
from rackspan.model.group import GroupDescription, GroupKind
from rackspan.sources.live.clients import read_clients
from tests.cli.conftest import Ran
from tests.compat.streams_app import StreamsProcess
from tests.kafka_fixtures import create_topic
from tests.kafka_versions import KAFKA
from tests.waiting import eventually

pytestmark = pytest.mark.kafka

SHARE_CONSUMER = "org.apache.kafka.tools.consumer.ConsoleShareConsumer"
SELECTOR = "org.apache.kafka.common.replica.RackAwareReplicaSelector"


@pytest.fixture(scope="module")
def cluster() -> Iterator[KafkaCluster]:
    if KAFKA < "4.2":
        pytest.skip("NOT TESTED: share and streams groups of Kafka before 4.2 are previews that have to be enabled")
    with KafkaCluster(
        racks=("r1", "r2", "r3"), brokers=3, version=KAFKA, config={"replica.selector.class": SELECTOR}
    ) as c:
        create_topic(c, "orders", assignment=[[1, 2, 3], [2, 3, 1], [3, 1, 2]])
        for name in ("clicks", "orders", "customers", "kept"):
            create_topic(c, f"app-{name}", assignment=[[1], [2]])
        yield c


@contextmanager
def librdkafka(cluster: KafkaCluster, group: str, protocol: str, rack: str) -> Iterator[Consumer]:
    config = {"bootstrap.servers": cluster.bootstrap_servers, "group.id": group, "client.id": group, "log_level": 0}
    consumer = Consumer({**config, "group.protocol": protocol, "client.rack": rack})
    consumer.subscribe(["orders"])
    try:
        yield consumer
    finally:
        consumer.close()


@contextmanager
def share_consumer(cluster: KafkaCluster, group: str, rack: str) -> Iterator[None]:
    words = ("--topic", "orders", "--group", group, "--command-property", f"client.rack={rack}")
    command = cluster.runtime.command(SHARE_CONSUMER, "--bootstrap-server", cluster.bootstrap_servers, *words)
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        yield
    finally:
        process.kill()
        process.wait()


def streams_config(cluster: KafkaCluster) -> dict[str, str]:
    return {
        "application.id": "by-streams",
        "bootstrap.servers": cluster.bootstrap_servers,
        "client.id": "s1",
        "client.rack": "r3",
        "group.protocol": "streams",
        "num.stream.threads": "1",
        "replication.factor": "1",
        "sources.prefix": "app-",
    }


def assigned(group: GroupDescription) -> int:
    """Partitions or active tasks of its members."""
    return sum(
        len(member.partitions) + sum(map(len, member.streams.active.values() if member.streams else ()))
        for member in group.members
    )


@pytest.mark.rest
def test_each_kind_of_group_is_read_and_judged(
    cluster: KafkaCluster, tmp_path: Path, cli: Callable[..., Ran], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    settings = ConnectionSettings(cluster.bootstrap_servers)
    with (
        librdkafka(cluster, "by-classic", "classic", "r1") as classic,
        librdkafka(cluster, "by-consumer", "consumer", "R-2") as modern,
        share_consumer(cluster, "by-share", "r3"),
        StreamsProcess(tmp_path, streams_config(cluster), KAFKA),
    ):

        def ready() -> bool:
            classic.poll(0.1), modern.poll(0.1)
            try:
                return sum(assigned(group) for group in read_clients(settings).groups) == 3 + 3 + 3 + 6
            except ClusterUnreachable:  # Six JVMs start beside it.
                return False

        eventually(ready, "every member has what it reads")
        found = read_clients(settings)
        document: dict[str, Any] = cli(
            "clients", "--bootstrap-server", cluster.bootstrap_servers, "-o", "json"
        ).document
        audit = cli(
            "streams", "audit", "--group", "by-streams", "--bootstrap-server", cluster.bootstrap_servers, "-o", "json"
        )
    assert found.unread == ()
    assert found.selectors == dict.fromkeys((1, 2, 3), ReplicaSelectors.RACK_AWARE)
    assert {group.group_id: group.kind for group in found.groups} == {
        "by-classic": GroupKind.CLASSIC,
        "by-consumer": GroupKind.CONSUMER,
        "by-share": GroupKind.SHARE,
        "by-streams": GroupKind.STREAMS,
    }
    assert [[member.rack for member in group.members] for group in found.groups] == [["r1"], ["R-2"], ["r3"], ["r3"]]
    across = {group["group"]: group["cross_rack"] for group in document["groups"]}
    # Six tasks: of eight source partitions four are on broker 1 and four on broker 2, but for the repartition topic.
    assert (across["by-classic"], across["by-consumer"], across["by-share"]) == (0, 3, 2)
    causes = {(finding["group"], finding["cause"]) for finding in document["findings"]}
    assert causes == {
        ("by-consumer", "unknown-client-rack"),
        ("by-share", "share-group"),
        ("by-streams", "no-replica-in-rack"),
    }
    # streams audit prices the KIP-1071 group, and agrees with clients on what it reads.
    assert audit.document["now"]["cross_rack"]["active"] == across["by-streams"]
    assert audit.document["tasks"] == {"stateful": 4, "stateless": 2}
    # Brokers name their assignor from Kafka 4.4 on.
    by = " by the assignor sticky" if KAFKA >= "4.4" else ""
    assert audit.document["unknown"] == [
        f"its brokers assign its tasks{by} (KIP-1071) and look at no racks: strategies are those of the classic protocol"
    ]

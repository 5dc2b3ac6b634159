"""A cluster that is upgraded to Kafka 4.4 under a running gateway in mode strict, broker by broker and then its metadata.version."""

from functools import partial
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient

from rackspan.java import find_java
from rackspan.kafka_process import KafkaCluster, KafkaVersion, console_tool, resolve_jars
from rackspan.kafka_process.release.runtime import KafkaRuntime
from tests.compat.gateway_leak import PARTITIONS, TOPIC, judged, leak_cluster, smallest_isr
from tests.gateway.load import Load
from tests.gateway.process import gateway_process
from tests.kafka_fixtures import create_topic, started
from tests.waiting import eventually

pytestmark = [pytest.mark.kafka, pytest.mark.rest]

FROM, TO = "4.3.1", "4.4.0"
FEATURES_TOOL = "org.apache.kafka.tools.FeatureCommand"
ACKNOWLEDGED_MIN = 100
"""Records that show that the gateway acknowledges on. Some hundreds more are sent while each node restarts."""
PAUSE_SECONDS = 0.02
"""It leaves the processor to the nodes that start."""


def acknowledged_on(load: Load, when: str) -> None:
    before = len(load.acknowledged)
    eventually(lambda: len(load.acknowledged) > before + ACKNOWLEDGED_MIN, f"records are acknowledged {when}")


def isr_is_whole(admin: AdminClient) -> bool:
    return smallest_isr(admin) == 3


def metadata_level(cluster: KafkaCluster) -> str:
    described = console_tool(cluster, FEATURES_TOOL, "describe")
    (line,) = (line for line in described.splitlines() if line.startswith("Feature: metadata.version"))
    return line.partition("FinalizedVersionLevel: ")[2].split()[0]


def test_a_cluster_that_is_upgraded_under_a_strict_gateway_acknowledges_on(tmp_path: Path) -> None:
    for cluster in started(leak_cluster(3, FROM)):
        upgraded = KafkaRuntime(find_java(), resolve_jars(KafkaVersion.parse(TO)))
        admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
        create_topic(
            cluster, TOPIC, assignment=[[1 + n % 3, 1 + (n + 1) % 3, 1 + (n + 2) % 3] for n in range(PARTITIONS)]
        )
        assert metadata_level(cluster) == "4.3-IV0"
        lines = (
            f'controllers.bootstrap.servers = "{cluster.bootstrap_controllers}"\nacknowledgements.mode = "strict"\n'
            f"[topics.{TOPIC}]\nmin.insync.racks = 2\n"
        )
        with gateway_process(tmp_path, cluster.bootstrap_servers, lines) as gateway:
            load = Load(
                gateway.bootstrap_servers, TOPIC, producers=4, partitions=PARTITIONS, pause_seconds=PAUSE_SECONDS
            )
            try:
                acknowledged_on(load, f"on {FROM}")
                for node in cluster.nodes:
                    cluster.stop(node.id)
                    # The same data and addresses, the jars of the next release.
                    cluster._process(node.id)._runtime = upgraded
                    cluster.restart(node.id)
                    eventually(partial(isr_is_whole, admin), "every ISR is whole")
                    acknowledged_on(load, f"with node {node.id} on {TO}")
                cluster._runtime = upgraded
                console_tool(cluster, FEATURES_TOOL, "upgrade", "--release-version", "4.4")
                assert metadata_level(cluster) == "4.4-IV2"
                acknowledged_on(load, "on the metadata.version of Kafka 4.4")
            finally:
                load.stop()
            outcome = judged(cluster.bootstrap_servers, load, [])
            assert (outcome.failed, outcome.lost, outcome.duplicated, outcome.out_of_order) == (0, 0, 0, 0)

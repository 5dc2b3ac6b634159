"""rackspan place and acks harden on real Kafka with uneven racks. The judges are Kafka's own tools and responses."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import KafkaError, Producer

from rackspan.kafka_process import KafkaCluster, console_tool
from tests.cli.conftest import Ran
from tests.kafka_tools import REASSIGN_TOOL, described, effective_min_insync_replicas
from tests.waiting import WITHIN_SECONDS, eventually

pytestmark = pytest.mark.kafka

Cli = Callable[..., Ran]

RACKS = {1: "r1", 2: "r2", 3: "r3", 4: "r1", 5: "r2"}
SMALL = ("--partitions", "4", "--replication-factor", "3")
JUST_CREATED = ("warning: sizes of ", "warning: topics ")
"""Begin warnings about a topic that some brokers do not have yet, or not its logs."""

PLACERS = ("balanced", "rack-alternated", "striped")


def place(cli: Cli, cluster: KafkaCluster, *words: str) -> dict[str, Any]:
    ran = cli("place", *words, "--bootstrap-server", cluster.bootstrap_servers, "-o", "json")
    warnings = [line for line in ran.err.splitlines() if not line.startswith(JUST_CREATED)]
    assert (ran.code, warnings) == (0 if "--apply" in words else 2, [])
    document: dict[str, Any] = ran.document
    return document


def test_topics_are_created_and_extended_as_planned_by_each_placer(
    cli: Cli, uneven_kafka: KafkaCluster, tmp_path: Path
) -> None:
    planned: dict[tuple[str, int], tuple[int, ...]] = {}
    for placer in PLACERS:
        topic = f"placed.by.{placer}"
        words = ("--topic", topic, "--placer", placer, "--seed", "7")
        kept = str(tmp_path / f"{placer}.json")
        shown = place(
            cli,
            uneven_kafka,
            *("create", *words, "--partitions", "10", "--replication-factor", "3", "--out", kept),
            *("--config", "min.insync.replicas=2", "--config", "cleanup.policy=compact,delete"),
        )
        created = place(cli, uneven_kafka, "create", "--plan", kept, "--apply")
        assert created["assignments"] == shown["assignments"]
        eventually(lambda topic=topic: exists(cli, uneven_kafka, topic), f"{topic} is there")  # type: ignore[misc]
        extended = place(cli, uneven_kafka, "extend", *words, "--partitions", "17", "--apply")
        assert list(extended["assignments"]) == [str(partition) for partition in range(10, 17)]
        planned |= {
            (topic, int(partition)): tuple(replicas)
            for document in (created, extended)
            for partition, replicas in document["assignments"].items()
        }

    def is_as_planned() -> bool:
        return {place: one.replicas for place, one in described(uneven_kafka).items() if place in planned} == planned

    assert len(planned) == 3 * 17
    eventually(is_as_planned, "kafka-topics describes what was planned")
    assert all(len({RACKS[broker] for broker in replicas}) == 3 for replicas in planned.values())
    values = effective_min_insync_replicas(uneven_kafka)
    assert {values[f"placed.by.{placer}"] for placer in PLACERS} == {"2"}


def exists(cli: Cli, cluster: KafkaCluster, topic: str) -> bool:
    """As a dry run of a change sees it."""
    words = ("--topic", topic, "--partitions", "100", "--bootstrap-server", cluster.bootstrap_servers)
    return cli("place", "extend", *words).code == 2


def test_kafka_says_no_and_nothing_is_there(cli: Cli, uneven_kafka: KafkaCluster) -> None:
    where = ("--bootstrap-server", uneven_kafka.bootstrap_servers)
    wanted = ("place", "create", "--topic", "refused", "--partitions", "1", "--replication-factor", "3", "--apply")
    ran = cli(*wanted, "--config", "retention.ms=soon", *where)
    assert (ran.code, ran.out) == (1, "")
    assert ran.err == (
        "rackspan: topic refused was not created: Invalid value soon for configuration retention.ms: "
        "Not a number of type LONG\n"
    )
    assert not exists(cli, uneven_kafka, "refused")


def without_directories(assignment: str) -> list[dict[str, object]]:
    """The partitions of an assignment. Kafka 4.3 names the log directory of each replica, Kafka 4.1 prints `any`."""
    partitions: list[dict[str, object]] = json.loads(assignment)["partitions"]
    return [{key: value for key, value in partition.items() if key != "log_dirs"} for partition in partitions]


def test_generate_says_what_kafkas_own_tool_says_of_the_present(
    cli: Cli, uneven_kafka: KafkaCluster, tmp_path: Path
) -> None:
    place(cli, uneven_kafka, "create", "--topic", "moved", *SMALL, "--apply")
    eventually(lambda: exists(cli, uneven_kafka, "moved"), "the topic is there")
    file = tmp_path / "topics.json"
    file.write_text('{"topics": [{"topic": "moved"}], "version": 1}')
    words = ("--topics-to-move-json-file", str(file), "--broker-list", "1,2,3,4,5")
    kafkas = console_tool(uneven_kafka, REASSIGN_TOOL, "--generate", *words).rstrip("\n").split("\n")
    ours = cli("reassign", "generate", *words, "--bootstrap-server", uneven_kafka.bootstrap_servers)
    lines = ours.out.rstrip("\n").split("\n")
    assert (ours.code, lines[0], lines[2:4]) == (2, kafkas[0], kafkas[2:4])
    assert without_directories(lines[1]) == without_directories(kafkas[1])
    proposed = json.loads(lines[4])["partitions"]
    assert [list(one) for one in proposed] == [list(one) for one in json.loads(kafkas[4])["partitions"]]
    assert all(len({RACKS[broker] for broker in one["replicas"]}) == 3 for one in proposed)


@pytest.mark.rest
def test_hardened_topics_refuse_records_exactly_when_one_rack_alone_is_in_sync(
    cli: Cli, uneven_kafka: KafkaCluster
) -> None:
    """RF 5 as 2/2/1, k = 2. `soft` is the same topic left alone: what hardening is for."""
    for topic in ("hard", "soft"):
        create(cli, uneven_kafka, topic)
    eventually(lambda: exists(cli, uneven_kafka, "hard") and exists(cli, uneven_kafka, "soft"), "both topics are there")
    words = ("acks", "harden", "--topic", "hard", "--min-insync-racks", "2", "-o", "json")
    dry = cli(*words, "--bootstrap-server", uneven_kafka.bootstrap_servers)
    assert (dry.code, [one["least"] for one in dry.document["topics"]]) == (2, [3])
    assert effective_min_insync_replicas(uneven_kafka)["hard"] == "2"
    done = cli(*words, "--bootstrap-server", uneven_kafka.bootstrap_servers, "--apply")
    assert (done.code, done.err) == (0, "")
    assert done.document["applied"] == [{"topic": "hard", "min.insync.replicas": 3}]
    assert done.document["summary"]["outcomes"] == {"suffices": 1}
    assert [one for one in done.document["audit"] if one["topic"] == "hard"] == []
    values = effective_min_insync_replicas(uneven_kafka)
    assert (values["hard"], values["soft"]) == ("3", "2")

    in_sync = {1, 2, 3, 4, 5}
    for change, broker in (("", 0), ("stop", 3), ("stop", 2), ("stop", 5), ("start", 3), ("start", 2), ("start", 5)):
        if change == "stop":
            uneven_kafka.stop(broker)
            in_sync -= {broker}
        elif change == "start":
            uneven_kafka.restart(broker)
            in_sync |= {broker}
        wait_for_isr(uneven_kafka, in_sync)
        enough = len({RACKS[one] for one in in_sync}) >= 2
        assert produced(uneven_kafka, "hard") == (None if enough else KafkaError.NOT_ENOUGH_REPLICAS), in_sync
        if in_sync == {1, 4}:
            assert produced(uneven_kafka, "soft") is None


def create(cli: Cli, cluster: KafkaCluster, topic: str) -> None:
    """Led by broker 1, which never stops; by explicit assignment, through the same words as any topic."""
    place(
        cli,
        cluster,
        *("create", "--topic", topic, "--partitions", "1", "--replication-factor", "5"),
        *("--config", "min.insync.replicas=2", "--apply", "--placer", "tests.cli.one_row:OneRow"),
    )


def wait_for_isr(cluster: KafkaCluster, wanted: set[int]) -> None:
    """As librdkafka reads it from brokers."""
    admin = Producer({"bootstrap.servers": cluster.bootstrap_servers})

    def holds() -> bool:
        partitions = [
            admin.list_topics(topic, timeout=WITHIN_SECONDS).topics[topic].partitions[0] for topic in ("hard", "soft")
        ]
        return all(set(one.isrs) == wanted and one.leader == 1 for one in partitions)

    eventually(holds, f"{sorted(wanted)} are in sync")


def produced(cluster: KafkaCluster, topic: str) -> int | None:
    """One record with acks=all, sent once: None for acknowledged, or Kafka's error code."""
    results: list[int | None] = []
    producer = Producer({"bootstrap.servers": cluster.bootstrap_servers, "acks": "all", "retries": 0})
    producer.produce(topic, b"x", on_delivery=lambda error, _: results.append(error.code() if error else None))
    assert producer.flush(WITHIN_SECONDS) == 0
    return results[0]

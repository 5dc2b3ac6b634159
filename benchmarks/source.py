"""The Spark source beside Spark's own Kafka connector: rows a second, and bytes that crossed racks, counted at the brokers.

Two racks of one broker each; topics of eight partitions with a replica in both racks and leaders in turn. The session's one
executor stands in r2, so every byte that the broker of r1 sends crosses. The connector's `client.rack` is one value for all
executors: it is measured without, as most run it, and set to r2, right for this executor and wrong for those of r1.
Rounds go in turns in one run; a ratio is of two runs of one round.
"""

import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from typing import Any, Final

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from benchmarks._broker_bytes import bytes_out
from benchmarks._measure import Figures, machine, seconds
from rackspan.kafka_process import KafkaCluster
from tests.compat.spark_connector import COORDINATES, connector_jars

ROUNDS: Final = 5
STREAM_ROUNDS: Final = 3
PARTITIONS: Final = 8
HERE: Final = "r2"
TOPICS: Final[Mapping[str, tuple[int, int]]] = {"200 B": (2_000_000, 200), "1 KB": (400_000, 1_000)}
"""Records, and bytes of each value; keys are of five bytes."""
TRIGGER_ROWS: Final = 500_000

OURS: Final = "rackspan-kafka"
READERS: Final[Mapping[str, Mapping[str, str]]] = {
    OURS: {"format": OURS},
    "kafka": {"format": "kafka"},
    "kafka, client.rack=r2": {"format": "kafka", "kafka.client.rack": HERE},
}


def main() -> None:
    from pyspark.sql import SparkSession

    os.environ |= {"PYSPARK_PYTHON": sys.executable, "RACKSPAN_RACK": HERE}
    config = {"replica.selector.class": "org.apache.kafka.common.replica.RackAwareReplicaSelector"}
    with KafkaCluster(racks=("r1", HERE), brokers=2, config=config) as cluster:
        for topic, (count, size) in TOPICS.items():
            fill(cluster, name_of(topic), count, size)
        builder = SparkSession.builder.master("local[2]").config("spark.driver.memory", "2g")
        for name, value in {
            "spark.ui.enabled": "false",
            "spark.ui.showConsoleProgress": "false",
            "spark.log.level": "ERROR",
            "spark.jars": ",".join(map(str, connector_jars())),
        }.items():
            builder = builder.config(name, value)
        session = builder.getOrCreate()
        print(f"machine: {machine()}; Spark {session.version}, Kafka {cluster.version}; {', '.join(COORDINATES)}")
        print(f"median of {ROUNDS} rounds (least to most); the brokers share the machine's cores\n")
        try:
            compare_speed(session, cluster)
            compare_streams(session, cluster)
            compare_bytes(session, cluster)
        finally:
            session.stop()


def name_of(topic: str) -> str:
    return "t" + topic.replace(" ", "")


def fill(cluster: KafkaCluster, name: str, count: int, size: int) -> None:
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
    layout = [[1, 2] if number % 2 else [2, 1] for number in range(PARTITIONS)]
    for future in admin.create_topics([NewTopic(name, PARTITIONS, replica_assignment=layout)]).values():
        future.result()
    producer = Producer({"bootstrap.servers": cluster.bootstrap_servers, "linger.ms": 50, "batch.size": 500_000})
    value = (bytes(range(256)) * 4)[:size]
    for number in range(count):
        while True:
            try:
                producer.produce(name, value, b"k%04d" % (number % 1000), number % PARTITIONS)
                break
            except BufferError:
                producer.poll(0.1)
    producer.flush()


def load(reader: Any, cluster: KafkaCluster, topic: str, options: Mapping[str, str]) -> Any:
    more = {key: value for key, value in options.items() if key != "format"}
    loaded = reader.format(options["format"]).option("kafka.bootstrap.servers", cluster.bootstrap_servers)
    return loaded.option("subscribe", name_of(topic)).option("startingOffsets", "earliest").options(**more).load()


def batch(session: Any, cluster: KafkaCluster, topic: str, reader: str) -> None:
    load(session.read, cluster, topic, READERS[reader]).write.format("noop").mode("overwrite").save()


def stream(session: Any, cluster: KafkaCluster, topic: str, reader: str) -> None:
    folder = tempfile.mkdtemp()
    options = {**READERS[reader], "maxOffsetsPerTrigger": str(TRIGGER_ROWS)}
    writer = load(session.readStream, cluster, topic, options).writeStream.format("noop").trigger(availableNow=True)
    query = writer.option("checkpointLocation", folder).start()
    query.awaitTermination()
    read = sum(progress["numInputRows"] for progress in query.recentProgress)
    assert read == TOPICS[topic][0], read
    shutil.rmtree(folder)


def in_turns(rounds: int, runs: Mapping[str, Callable[[], None]]) -> dict[str, Figures]:
    """Seconds of each; a first round, in which Java compiles, is not counted."""
    found: dict[str, list[float]] = {name: [] for name in runs}
    for number in range(rounds + 1):
        for name, run in runs.items():
            measured = seconds(run)
            if number:
                found[name].append(measured)
    return {name: Figures(tuple(values)) for name, values in found.items()}


def report(what: str, rows: int, measured: Mapping[str, Figures]) -> None:
    for name, figures in measured.items():
        speed = Figures(tuple(rows / value / 1000 for value in figures.values))
        ratio = measured["kafka"].over(figures)
        beside = "" if name == "kafka" else f"   {ratio.text('x kafka')}"
        print(f"{what:<22}{name:<24}{speed.text('k rows/s', 0):<32}{beside}", flush=True)


def compare_speed(session: Any, cluster: KafkaCluster) -> None:
    for topic, (rows, _) in TOPICS.items():
        runs = {reader: lambda t=topic, r=reader: batch(session, cluster, t, r) for reader in (OURS, "kafka")}
        report(f"batch, {topic}", rows, in_turns(ROUNDS, runs))


def compare_streams(session: Any, cluster: KafkaCluster) -> None:
    topic = "200 B"
    rows = TOPICS[topic][0]
    runs = {reader: lambda r=reader: stream(session, cluster, topic, r) for reader in (OURS, "kafka")}
    report(f"stream, {rows // TRIGGER_ROWS} x {TRIGGER_ROWS:,}", rows, in_turns(STREAM_ROUNDS, runs))


def compare_bytes(session: Any, cluster: KafkaCluster) -> None:
    print("\nMB sent by the brokers of each rack to the executor in r2, 1 KB records")
    before = bytes_out(cluster)
    for reader in READERS:
        batch(session, cluster, "1 KB", reader)
        time.sleep(1)
        after = bytes_out(cluster)
        sent = {rack: (after[rack] - before[rack]) / 1e6 for rack in after}
        print(f"{reader:<24}" + "   ".join(f"{rack}: {size:8.1f}" for rack, size in sent.items()), flush=True)
        before = after


if __name__ == "__main__":
    main()

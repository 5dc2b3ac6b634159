"""The Spark source beside Spark's own Kafka connector: rows a second, and bytes that crossed racks, counted at the brokers.

Two racks of one broker each; topics of eight partitions with a replica in both racks and leaders in turn. The session's one
executor stands in r2, so every byte that the broker of r1 sends crosses. The connector's `client.rack` is one value for all
executors: it is measured without, as most run it, and set to r2, right for this executor and wrong for those of r1.
In the part about latency the broker of r1 is reached over a link that delays each byte by half of the round trip.
Rounds go in turns in one run; a ratio is of two runs of one round. Processor time is that of Spark and its Python workers.
"""

import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from benchmarks._broker_bytes import bytes_out
from benchmarks._far_link import FarLink, far_link
from benchmarks._measure import Figures, machine, processor_seconds, seconds
from rackspan.kafka_process import KafkaCluster
from rackspan.testing import READS_IN_RACK
from tests.compat.spark_connector import COORDINATES, connector_jars

ROUNDS: Final = 5
STREAM_ROUNDS: Final = 3
LINK_ROUNDS: Final = 3
ROUND_TRIPS_MS: Final = (0.0, 2.0, 10.0)
"""The relay alone; zones of one region; sites some hundred kilometres apart."""
PARTITIONS: Final = 8
HERE: Final = "r2"
FAR_BROKER: Final = 1
FAR: Final = "FAR"
"""The listener by which the broker of r1 is reached over the link."""
TOPICS: Final[Mapping[str, tuple[int, int]]] = {"200 B": (2_000_000, 200), "1 KB": (400_000, 1_000)}
"""Records, and bytes of each value; keys are of five bytes."""
TRIGGER_ROWS: Final = 500_000

OURS: Final = "rackspan-kafka"
THEIRS: Final = "kafka"
READERS: Final[Mapping[str, Mapping[str, str]]] = {
    OURS: {"format": OURS},
    THEIRS: {"format": THEIRS},
    "kafka, client.rack=r2": {"format": THEIRS, "kafka.client.rack": HERE},
}


@dataclass(frozen=True, slots=True)
class Bench:
    session: Any
    cluster: KafkaCluster
    link: FarLink

    @property
    def outside(self) -> set[int]:
        """Processes whose time is not Spark's."""
        return {*self.cluster.pids.values(), self.link.pid}


@dataclass(frozen=True, slots=True)
class Measured:
    elapsed: Figures
    processor: Figures
    """Seconds."""


def main() -> None:
    from pyspark.sql import SparkSession

    os.environ |= {"PYSPARK_PYTHON": sys.executable, "RACKSPAN_RACK": HERE}
    with started_cluster() as (cluster, link):
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
        bench = Bench(builder.getOrCreate(), cluster, link)
        print(f"machine: {machine()}; Spark {bench.session.version}, Kafka {cluster.version}; {', '.join(COORDINATES)}")
        print("median of the rounds (least to most); the brokers share the machine's cores\n")
        try:
            compare_bytes(bench)
            compare_speed(bench)
            compare_streams(bench)
            compare_links(bench)
        finally:
            bench.session.stop()


@contextmanager
def started_cluster() -> Iterator[tuple[KafkaCluster, FarLink]]:
    """Two brokers, and the link, by which clients of the listener FAR reach broker 1."""
    with (
        tempfile.TemporaryDirectory() as folder,
        KafkaCluster(
            ("r1", HERE), 2, config=READS_IN_RACK, listeners={FAR: "PLAINTEXT"}, data_dir=Path(folder)
        ) as cluster,
    ):
        near, far = (
            servers.split(",")[0] for servers in (cluster.bootstrap_servers, cluster.bootstrap_servers_of(FAR))
        )
        with far_link(int(far.rpartition(":")[2])) as link:
            (file,) = Path(folder).rglob(f"node-{FAR_BROKER}.properties")
            with file.open("a") as properties:
                properties.write(f"advertised.listeners=CLIENT://{near},{FAR}://127.0.0.1:{link.port}\n")
            cluster.stop(FAR_BROKER)
            cluster.restart(FAR_BROKER)
            cluster.wait_until_ready()
            yield cluster, link


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


def load(reader: Any, servers: str, topic: str, options: Mapping[str, str]) -> Any:
    more = {key: value for key, value in options.items() if key != "format"}
    loaded = reader.format(options["format"]).option("kafka.bootstrap.servers", servers)
    return loaded.option("subscribe", name_of(topic)).option("startingOffsets", "earliest").options(**more).load()


def batch(bench: Bench, topic: str, reader: str, *, far: bool = False) -> None:
    servers = bench.cluster.bootstrap_servers_of(FAR).split(",")[1] if far else bench.cluster.bootstrap_servers
    load(bench.session.read, servers, topic, READERS[reader]).write.format("noop").mode("overwrite").save()


def stream(bench: Bench, topic: str, reader: str) -> None:
    folder = tempfile.mkdtemp()
    options = {**READERS[reader], "maxOffsetsPerTrigger": str(TRIGGER_ROWS)}
    frame = load(bench.session.readStream, bench.cluster.bootstrap_servers, topic, options)
    writer = frame.writeStream.format("noop").trigger(availableNow=True)
    query = writer.option("checkpointLocation", folder).start()
    query.awaitTermination()
    read = sum(progress["numInputRows"] for progress in query.recentProgress)
    assert read == TOPICS[topic][0], read
    shutil.rmtree(folder)


def in_turns(bench: Bench, rounds: int, run: Callable[[str], None]) -> dict[str, Measured]:
    """Ours and theirs; a first round, in which Java compiles, is not counted."""
    found: dict[str, list[tuple[float, float]]] = {OURS: [], THEIRS: []}
    for number in range(rounds + 1):
        for reader, values in found.items():
            before = processor_seconds(bench.outside)
            elapsed = seconds(partial(run, reader))
            if number:
                values.append((elapsed, processor_seconds(bench.outside) - before))
    return {
        reader: Measured(*(Figures(tuple(column)) for column in zip(*values, strict=True)))
        for reader, values in found.items()
    }


def report(what: str, rows: int, measured: Mapping[str, Measured]) -> None:
    for name, one in measured.items():
        speed = Figures(tuple(rows / value / 1000 for value in one.elapsed.values))
        work = Figures(tuple(value * 1e6 / rows for value in one.processor.values))
        theirs = measured[THEIRS]
        faster, cheaper = theirs.elapsed.over(one.elapsed), theirs.processor.over(one.processor)
        beside = (
            "" if name == THEIRS else f"{faster.text('x the rate')}, {cheaper.text('x the rows a processor second')}"
        )
        print(f"{what:<24}{name:<16}{speed.text('k rows/s', 0):<30}{work.text('µs/row', 1):<28}{beside}", flush=True)


def compare_speed(bench: Bench) -> None:
    for topic, (rows, _) in TOPICS.items():
        report(f"batch, {topic}", rows, in_turns(bench, ROUNDS, partial(batch, bench, topic)))


def compare_streams(bench: Bench) -> None:
    topic = "200 B"
    rows = TOPICS[topic][0]
    measured = in_turns(bench, STREAM_ROUNDS, partial(stream, bench, topic))
    report(f"stream, {rows // TRIGGER_ROWS} x {TRIGGER_ROWS:,}", rows, measured)


def compare_links(bench: Bench) -> None:
    topic = "1 KB"
    for milliseconds in ROUND_TRIPS_MS:
        bench.link.set_round_trip(milliseconds)
        measured = in_turns(bench, LINK_ROUNDS, partial(batch, bench, topic, far=True))
        report(f"1 KB, r1 {milliseconds:.0f} ms away", TOPICS[topic][0], measured)


def compare_bytes(bench: Bench) -> None:
    topic = "1 KB"
    print("MB sent by the brokers of each rack to the executor in r2, 1 KB records")
    before = bytes_out(bench.cluster)
    for reader in READERS:
        batch(bench, topic, reader)
        time.sleep(1)
        after = bytes_out(bench.cluster)
        sent = {rack: (after[rack] - before[rack]) / 1e6 for rack in after}
        print(f"{reader:<24}" + "   ".join(f"{rack}: {size:8.1f}" for rack, size in sent.items()), flush=True)
        before = after
    print()


if __name__ == "__main__":
    main()

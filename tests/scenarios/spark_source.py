"""The words of a page about the Spark source: its driver, before topics of one partition that the page fills.

stream failOnDataLoss=false    a streaming query with an empty checkpoint, from the earliest offset; options of the source
source                         the page is about batch queries
topic orders id=1 end=50       the topic as brokers report it; begin=20 where retention has deleted the records before it
batch                          the next micro-batch: what it reads, and the lines of the driver's log
query endingOffsets={"orders":{"0":5}}   a batch query with these options, in the same way
committed                      the offsets in the group of commitOffsetsToGroup
"""

import io
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import redirect_stderr
from dataclasses import dataclass, field
from typing import Any, Final
from unittest.mock import patch

from pyspark.sql.datasource import InputPartition

from rackspan.errors import RackspanError
from rackspan.kafka_source import data_loss, data_source
from rackspan.kafka_source.cluster import SourceCluster, SourceMetadata, SourcePartition, SourceTopic
from rackspan.kafka_source.data_source import KafkaReader
from rackspan.kafka_source.options import EARLIEST_OFFSET, parse
from rackspan.kafka_source.range_partition import RangePartition
from rackspan.kafka_source.stream_reader import KafkaStreamReader
from rackspan.model.ids import TopicPartition


class TopicsOfThePage(SourceCluster):
    """Without a connection: each partition has a first and a last offset."""

    def __init__(self) -> None:
        self.topics: dict[str, tuple[str, int, int]] = {}
        self.in_group: dict[TopicPartition, int] = {}

    def metadata(self, topics: Iterable[str] | None) -> SourceMetadata:
        names = self.topics if topics is None else topics
        partitions = {0: SourcePartition(1, (1,), (1,))}
        return SourceMetadata({1: "a"}, {name: SourceTopic(self.topics[name][0], partitions) for name in names}, {})

    def offsets(
        self, timestamps: Mapping[TopicPartition, int], *, committed: bool | None = None
    ) -> dict[TopicPartition, int]:
        found: dict[TopicPartition, int] = {}
        for partition, at in timestamps.items():
            _, begin, end = self.topics[partition.topic]
            found[partition] = begin if at == EARLIEST_OFFSET else end
        return found

    def commit(self, group_id: str, offsets: Mapping[TopicPartition, int]) -> str | None:
        self.in_group.update(offsets)
        return None

    def close(self) -> None:
        """Nothing is open."""


class Unhurried(KafkaStreamReader):
    """No page waits."""

    def _sleep(self, seconds: float) -> None:
        pass


@dataclass
class Stream:
    options: dict[str, str]
    cluster: TopicsOfThePage = field(default_factory=TopicsOfThePage)
    checkpoint: dict[str, Any] | None = None

    def given(self) -> dict[str, str]:
        """Options of every query: it reads all topics."""
        return {"kafka.bootstrap.servers": "a:1", "subscribe": ",".join(self.cluster.topics)}

    def reader(self) -> KafkaStreamReader:
        """A driver that has just started."""
        given = {**self.given(), "startingOffsets": "earliest"}
        reader = Unhurried(parse({**given, **self.options}, streaming=True), ("offset",))
        reader._cluster = self.cluster
        return reader


def topic(stream: Stream, name: str, *, id: str, end: str, begin: str = "0") -> Iterator[str]:  # noqa: A002 — the page's word
    stream.cluster.topics[name] = (id, int(begin), int(end))
    yield from ()


def batch(stream: Stream) -> Iterator[str]:
    def planned() -> list[InputPartition]:
        reader = stream.reader()
        start = reader.initialOffset() if stream.checkpoint is None else stream.checkpoint
        end = reader.latestOffset(start)
        tasks = reader.partitions(start, end)
        reader.commit(end)
        stream.checkpoint = end
        return tasks

    yield from _planned(planned)


def query(stream: Stream, **options: str) -> Iterator[str]:
    def planned() -> list[InputPartition]:
        reader = KafkaReader(parse({**stream.given(), **options}, streaming=False), ("offset",))
        with (
            patch.object(data_source, "SourceCluster", lambda _: stream.cluster),
            patch.object(data_loss, "PAUSE_SECONDS", 0),
        ):
            return reader.partitions()

    yield from _planned(planned)


def _planned(plan: Callable[[], list[InputPartition]]) -> Iterator[str]:
    """The ranges of the tasks, or why there are none, and the lines of the driver's log but those about a batch that ended."""
    log = io.StringIO()
    try:
        with redirect_stderr(log):
            ranges = [task.wanted for task in plan() if isinstance(task, RangePartition)]
        yield from (f"reads {part.partition} from {part.start} to {part.end}" for part in ranges)
        if not ranges:
            yield "nothing new"
    except RackspanError as error:
        yield f"the query fails: {error}"
    yield from (line for line in log.getvalue().splitlines() if ": batch " not in line)


def committed(stream: Stream) -> Iterator[str]:
    yield from (f"{partition}: {offset}" for partition, offset in sorted(stream.cluster.in_group.items()))


WORDS: Final[Mapping[str, Callable[..., Iterator[str]]]] = {
    "topic": topic,
    "batch": batch,
    "query": query,
    "committed": committed,
}

"""The batch reader without Spark, on the embedded cluster: what it plans of options, positions and filters."""

from pathlib import Path

import pytest
from pyspark.sql.datasource import EqualTo

from rackspan.cluster import EmbeddedCluster
from rackspan.errors import UsageError
from rackspan.kafka_source.data_source import FilteringReader
from rackspan.kafka_source.options import parse
from rackspan.kafka_source.range_partition import RangePartition
from rackspan.kafka_source.stream_reader import KafkaStreamReader
from tests.kafka_source.filled_topics import created, produced


@pytest.fixture(scope="module")
def filled(cluster: EmbeddedCluster) -> str:
    """Two partitions with the timestamps 1_700_000_000_000 and so on, one record after another."""
    topic = created(cluster)
    produced(cluster.bootstrap_servers, topic, 20)
    return topic


def planned(cluster: EmbeddedCluster, topic: str, *filters: EqualTo, **options: str) -> list[tuple[int, int, int]]:
    given = {"kafka.bootstrap.servers": cluster.bootstrap_servers, "subscribe": topic, **options}
    reader = FilteringReader(parse(given, streaming=False), ("offset",))
    assert list(reader.pushFilters(list(filters))) == []
    tasks = [task for task in reader.partitions() if isinstance(task, RangePartition)]
    return [(task.wanted.partition.partition, task.wanted.start, task.wanted.end) for task in tasks]


ONE = EqualTo(("partition",), 1)


def test_a_filter_leaves_out_a_partition_whatever_the_positions_are(cluster: EmbeddedCluster, filled: str) -> None:
    both = f'{{"{filled}": {{"0": FIRST, "1": SECOND}}}}'

    def at(first: int, second: int) -> str:
        return both.replace("FIRST", str(first)).replace("SECOND", str(second))

    assert planned(cluster, filled) == [(0, 0, 10), (1, 0, 10)]
    assert planned(cluster, filled, ONE) == [(1, 0, 10)]
    assert planned(cluster, filled, ONE, startingOffsets=at(2, 3), endingOffsets=at(4, 5)) == [(1, 3, 5)]
    by_time = {"startingOffsetsByTimestamp": at(0, 1_700_000_000_000), "endingOffsetsByTimestamp": at(0, 1 << 42)}
    assert planned(cluster, filled, ONE, **by_time) == [(1, 0, 10)]


def test_a_position_without_a_partition_names_its_option(cluster: EmbeddedCluster, filled: str) -> None:
    one = f'{{"{filled}": {{"1": 3}}}}'
    for option in ("startingOffsets", "endingOffsets"):
        with pytest.raises(UsageError, match=rf"option {option}: {filled}-0 is read and has no offset there"):
            planned(cluster, filled, **{option: one})
    given = {"kafka.bootstrap.servers": cluster.bootstrap_servers, "subscribe": filled, "startingOffsets": one}
    stream = KafkaStreamReader(parse(given, streaming=True), ("offset",))
    with pytest.raises(UsageError, match=rf"option startingOffsets: {filled}-0 is read and has no offset there"):
        stream.initialOffset()
    stream.stop()


def test_a_file_of_properties_connects_too(cluster: EmbeddedCluster, filled: str, tmp_path: Path) -> None:
    file = tmp_path / "client.properties"
    file.write_text(f"bootstrap.servers={cluster.bootstrap_servers}\n")
    reader = FilteringReader(parse({"commandConfig": str(file), "subscribe": filled}, streaming=False), ("offset",))
    assert len(reader.partitions()) == 2

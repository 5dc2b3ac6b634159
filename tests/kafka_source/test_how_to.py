"""The Python of docs/how-to/spark-source.md, run as it stands but for the address and the folder."""

import re
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from rackspan.cluster import EmbeddedCluster
from tests.kafka_fixtures import create_topic
from tests.kafka_source.filled_topics import consumed, produced

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "spark-source.md"


@pytest.mark.rest
@pytest.mark.spark
def test_the_page_runs(
    spark: SparkSession, cluster: EmbeddedCluster, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for topic in ("orders", "copies"):
        create_topic(cluster, topic, partitions=2, replication_factor=3, config={"retention.ms": "-1"})
    produced(cluster.bootstrap_servers, "orders", 30)
    blocks = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(), re.DOTALL | re.MULTILINE)
    names: dict[str, object] = {"spark": spark}
    for block in blocks:
        written = block.replace("broker-1:9092", cluster.bootstrap_servers).replace("/shared", str(tmp_path))
        exec(compile(written, PAGE.name, "exec"), names)  # noqa: S102 — the page is ours
    assert len(blocks) == 4
    assert len(consumed(cluster.bootstrap_servers, "copies")) == 30
    assert spark.read.parquet(str(tmp_path / "orders")).count() == 30
    assert "executor-without-rack" in capsys.readouterr().out

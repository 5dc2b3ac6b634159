"""Readings of the embedded cluster, collected and made into hours, beside the bytes that its brokers counted."""

from collections import Counter
from pathlib import Path

import pytest

from rackspan import api, pipeline
from rackspan.cluster import EmbeddedCluster
from rackspan.pipeline.collect import Collected
from tests.pipeline.plain_build import refresh
from tests.sources.consumers import consumer, read_all
from tests.sources.test_live_traffic import counted, produce

pytestmark = pytest.mark.slow


def collect(cluster: EmbeddedCluster, root: Path) -> None:
    source = api.live_cluster(cluster.bootstrap_servers, None, 30.0)
    found: list[Collected] = list(api.collect([source], root, 60.0))
    assert [(one.error, one.warnings) for one in found] == [(None, ())]


def test_replication_and_lag_of_an_hour_are_what_brokers_counted(tmp_path: Path) -> None:
    root = tmp_path / "warehouse"
    with EmbeddedCluster(racks=3, brokers=6) as cluster:
        cluster.create_topic("orders", partitions=6)
        cluster.create_topic("payments", partitions=3)
        before = counted(cluster, "replicate")
        with consumer(cluster, "near", "r1") as near:
            collect(cluster, root)
            produce(cluster, 900)
            cluster.wait_for_isr()
            read_all(near, 900)
            collect(cluster, root)
        wanted = counted(cluster, "replicate") - before
    warehouse = pipeline.open_warehouse(root)
    refresh(warehouse)
    sums: Counter[tuple[str | None, ...]] = Counter()
    for row in pipeline.rows(warehouse, "traffic"):
        if row["path"] == "replicate" and row["topic"] in ("orders", "payments"):
            assert row["complete"]
            sums[row["topic"], row["group_id"], row["source_rack"], row["destination_rack"]] += row["bytes"]
    total = sum(size for key, size in wanted.items() if key[0] in ("orders", "payments"))
    assert total > 900 * 500
    assert sum(sums.values()) == pytest.approx(total, rel=0.01)
    lags = [row for row in pipeline.rows(warehouse, "group_lag") if row["group_id"] == "near"]
    assert lags
    assert {row["lag"] for row in lags} == {0}
    assert {row["start_offset"] for row in lags} == {0}
    groups = {row["group_id"]: row for row in pipeline.rows(warehouse, "groups")}
    assert (groups["near"]["member_racks"], groups["near"]["lag"]) == (["r1"], 0)

"""Groups in place of those of a running cluster, for tests of flags."""

import re

import pytest

from rackspan import api
from rackspan.model.group import GroupDescription, MemberDescription
from rackspan.model.ids import RackId, TopicPartition
from rackspan.model.snapshot import ReadSnapshot
from rackspan.sources.live.clients import ReadClients
from rackspan.sources.source import Source
from rackspan.streams import streams_group
from tests.cli.test_streams import swapped
from tests.streams.groups import cluster as streams_cluster
from tests.streams.groups import described


def two_groups(_cluster: object, chosen: re.Pattern[str] | None) -> ReadClients:
    """Two groups of one member each, which read a topic of the world's cluster."""
    reads = (TopicPartition("live", 0), TopicPartition("live", 1))
    members = MemberDescription("m", "m", host="10.0.1.7", rack=RackId("r1"), partitions=reads)
    groups = [GroupDescription(name, "Stable", "consumer", "range", (members,)) for name in ("other", "shop")]
    return ReadClients(tuple(group for group in groups if chosen is None or chosen.fullmatch(group.group_id)), {})


def replace_group(monkeypatch: pytest.MonkeyPatch) -> None:
    """A group of Kafka Streams on a cluster of its own."""
    snapshot = streams_cluster({"orders": [[1], [2]], "shop-s-changelog": [[2], [1]]})
    monkeypatch.setattr(api, "read_streams_group", lambda _cluster, _group: streams_group(described(*swapped())))
    monkeypatch.setattr(api, "live_cluster", lambda *_, **__: Source("here", lambda: ReadSnapshot(snapshot, ())))

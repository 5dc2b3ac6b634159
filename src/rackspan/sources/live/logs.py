"""A snapshot of a running cluster with the ends and sizes of its logs and the offsets of its groups, from which bytes between two readings follow.

Required rights: those of a snapshot, with Describe on Cluster for sizes and on groups for their offsets.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Final

import numpy as np

from rackspan.client.cluster import ClusterConnection, ConnectionSettings
from rackspan.client.errors import FAILURES, message_of
from rackspan.client.requests import batches, listed_offsets
from rackspan.model import NO_BROKER, UNKNOWN_SIZE, ClusterSnapshot, Int64s, TopicPartition
from rackspan.sources.live.cluster import utc_now
from rackspan.sources.live.cluster_reader import responses_of
from rackspan.sources.live.committed import committed_offsets
from rackspan.sources.live.snapshot_assembly import assemble
from rackspan.text import count_noun
from rackspan.traffic import ClusterLogs
from rackspan.traffic.logs import UNKNOWN_OFFSET

OFFSETS_BATCH: Final = 5_000
"""Partitions in one ListOffsets, whose response takes some 30 bytes for each."""

_LATEST: Final = -1
"""The timestamp of ListOffsets for the end of a log."""

_EARLIEST: Final = -2
"""The timestamp of ListOffsets for the first offset that retention has left."""


def read_logs(
    settings: ConnectionSettings, *, starts: bool = False, now: Callable[[], datetime] = utc_now
) -> ClusterLogs:
    """The logs of a cluster's partitions, with `starts` their earliest offsets too. Errors: those of read_cluster. What else is
    refused is in `partial`.
    """
    with ClusterConnection(settings) as connection:
        responses = responses_of(connection, sizes=True)
        read_at = now()
        snapshot = assemble(responses, read_at)
        end, why_not = connection.run(_Offsets(connection, snapshot, _LATEST).read)
        start, no_starts = connection.run(_Offsets(connection, snapshot, _EARLIEST).read) if starts else (None, ())
        committed = connection.run(committed_offsets, connection)
    sizes = responses.log_dirs.sizes
    partial = tuple(dict.fromkeys((*snapshot.partial, *why_not, *no_starts, *committed.unread)))
    return ClusterLogs(snapshot, read_at, end, _replica_bytes(snapshot, sizes), committed.by_group, partial, start)


class _Offsets:
    """One offset of every partition's log, by its timestamp, from the leaders, which are requested side by side."""

    def __init__(self, connection: ClusterConnection, snapshot: ClusterSnapshot, timestamp: int) -> None:
        self._connection, self._timestamp = connection, timestamp
        rows = snapshot.partitions
        names = [str(topic.name) for topic in snapshot.topics]
        self._partitions = [
            TopicPartition(names[topic], number)
            for topic, number in zip(rows.topic.tolist(), rows.partition.tolist(), strict=True)
        ]
        self._leaders = rows.leader.tolist()
        self._failed: dict[str, int] = {}

    async def read(self) -> tuple[Int64s, tuple[str, ...]]:
        """In the order of the snapshot's rows, and a line for each reason why some are not known."""
        led: dict[int, list[TopicPartition]] = {}
        for partition, leader in zip(self._partitions, self._leaders, strict=True):
            if leader < 0:
                self._fail("they have no leader" if leader == NO_BROKER else "their leader is not known", 1)
            else:
                led.setdefault(leader, []).append(partition)
        found: dict[TopicPartition, int] = {}
        for offsets in await asyncio.gather(
            *(self._of_leader(leader, partitions) for leader, partitions in led.items())
        ):
            found.update(offsets)
        ends = np.array([found.get(partition, UNKNOWN_OFFSET) for partition in self._partitions], np.int64)
        lines = (
            f"offsets of {count_noun(count, 'partition', ',')}: unknown, {why}" for why, count in self._failed.items()
        )
        return ends, tuple(lines)

    async def _of_leader(self, leader: int, partitions: Sequence[TopicPartition]) -> dict[TopicPartition, int]:
        found: dict[TopicPartition, int] = {}
        for batch in batches(partitions, OFFSETS_BATCH):
            try:
                listed = await listed_offsets(self._connection, leader, dict.fromkeys(batch, self._timestamp))
            except FAILURES as error:
                self._fail(f"broker {leader}: {message_of(error)}", len(batch))
                continue
            found.update(listed.offsets)
            for code in listed.refused.values():
                self._fail(f"broker {leader}: {code.name}", 1)
        return found

    def _fail(self, why: str, partitions: int) -> None:
        self._failed[why] = self._failed.get(why, 0) + partitions


def _replica_bytes(snapshot: ClusterSnapshot, sizes: Mapping[int, Mapping[TopicPartition, int]]) -> Int64s:
    """Bytes of each replica's log, shaped as the snapshot's `replicas`."""
    rows = snapshot.partitions
    names = [str(topic.name) for topic in snapshot.topics]
    held: list[list[int]] = []
    for topic, number, replicas in zip(
        rows.topic.tolist(), rows.partition.tolist(), rows.replicas.tolist(), strict=True
    ):
        partition = TopicPartition(names[topic], number)
        held.append(
            [sizes[broker].get(partition, UNKNOWN_SIZE) if broker in sizes else UNKNOWN_SIZE for broker in replicas]
        )
    return np.array(held, np.int64).reshape(rows.replicas.shape)

"""Reads log ends of replicas by Fetch, one request in flight a broker: see acks/log_ends.py for what they prove."""

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping
from itertools import groupby
from typing import Final
from uuid import UUID

from rackspan.acks.log_ends import BEYOND_END, LogEnd
from rackspan.client.connection import BrokerConnection
from rackspan.errors import ClusterRequestFailed
from rackspan.gateway.core.acknowledgement.guard import AcknowledgementGuard
from rackspan.gateway.core.acknowledgement.holds import Hold
from rackspan.gateway.core.acknowledgement.rules import NEVER
from rackspan.gateway.core.acknowledgement.samples import LogEnds, LogRead
from rackspan.gateway.upstream.broker_loops import BrokerLoops
from rackspan.gateway.upstream.cluster import UpstreamCluster
from rackspan.kafka_bytes.error_codes import ErrorCode
from rackspan.model import BrokerId
from rackspan.wire.apis import ApiKey
from rackspan.wire.messages.fetch import (
    FetchPartition,
    FetchRequestData,
    FetchResponseData,
    FetchResponsePartitionData,
    FetchTopic,
)

log = logging.getLogger(__name__)

DIVERGING_EPOCH_SINCE: Final = 12
"""The version of Fetch that reads a log end (KIP-595, Kafka 2.7)."""

_IDS_SINCE: Final = 13
_LOGGED_AGAIN_SECONDS: Final = 60.0


async def read_log_ends(
    connection: BrokerConnection, reads: Iterable[LogRead], seconds: float
) -> tuple[dict[LogRead, LogEnd | None], dict[LogRead, int]]:
    """The log ends of one broker, and the error code of each read that it refused.

    Without a topic id, and before Fetch 13, a topic is read by its name: the log of an earlier topic of that name counts.
    Errors: OSError, TimeoutError, RackspanError.
    """
    ordered = sorted(reads, key=lambda read: (read.partition, read.leader_epoch))
    by_id = all(read.topic_id is not None for read in ordered)
    version = connection.version(ApiKey.FETCH) if by_id else min(connection.version(ApiKey.FETCH), _IDS_SINCE - 1)
    if version < DIVERGING_EPOCH_SINCE:
        raise ClusterRequestFailed(
            f"the broker offers Fetch up to version {version}, and logs are read from {DIVERGING_EPOCH_SINCE} on (Kafka 2.7)"
        )
    response: FetchResponseData = await connection.call(ApiKey.FETCH, _request(ordered), version, seconds)
    if response.error_code != 0:
        raise ClusterRequestFailed(f"Fetch: error {response.error_code}")
    ends: dict[LogRead, LogEnd | None] = {}
    errors: dict[LogRead, int] = {}
    of = {(_topic(version, read.partition[0], read.topic_id), read.partition[1]): read for read in ordered}
    for topic in response.responses:
        for data in topic.partitions:
            read = of.get((_topic(version, topic.topic, topic.topic_id), data.partition_index))
            if read is None:
                continue
            if data.error_code == ErrorCode.OFFSET_OUT_OF_RANGE:
                ends[read] = None
            elif data.error_code != 0:
                errors[read] = data.error_code
            elif (end := _log_end(data)) is not None:
                ends[read] = end
    return ends, errors


def _topic(version: int, name: str, topic_id: UUID | None) -> str | UUID | None:
    return name if version < _IDS_SINCE else topic_id


def _log_end(data: FetchResponsePartitionData) -> LogEnd | None:
    diverging = data.diverging_epoch
    if diverging is None or diverging.end_offset < 0:
        return None
    return LogEnd(diverging.epoch, diverging.end_offset, data.log_start_offset)


def _request(reads: Iterable[LogRead]) -> FetchRequestData:
    """No wait, no records, no fetch session; the offset is beyond every log."""
    topics = [
        FetchTopic(
            topic=name,
            topic_id=topic_id,
            partitions=[
                FetchPartition(
                    partition=read.partition[1], fetch_offset=BEYOND_END, last_fetched_epoch=read.leader_epoch
                )
                for read in of_topic
            ],
        )
        for (name, topic_id), of_topic in groupby(reads, key=lambda read: (read.partition[0], read.topic_id))
    ]
    return FetchRequestData(max_wait=0, min_bytes=0, max_bytes=0, topics=topics)


class LogEndReader:
    """Reads what the guard wants of replicas' logs, and nothing while it wants nothing."""

    def __init__(
        self, guard: AcknowledgementGuard, cluster: UpstreamCluster, completed: Callable[[Iterable[Hold]], None]
    ) -> None:
        self._guard = guard
        self._cluster = cluster
        self._completed = completed
        self._loop = asyncio.get_running_loop()
        self._loops = BrokerLoops(self._wanted_at, self._read, self._failed)
        self._logged: dict[tuple[int, str], float] = {}
        self.reads = 0
        self.failures = 0

    def wake(self) -> None:
        """The guard may want something else than before."""
        for replica in self._guard.replicas_to_read():
            self._loops.wake(replica)

    def _wanted_at(self, broker: int) -> float | None:
        return self._guard.reads_wanted_at(BrokerId(broker))

    def _failed(self, _broker: int, _error: Exception) -> None:
        self.failures += 1

    async def _read(self, broker: int) -> None:
        replica = BrokerId(broker)
        connection = await self._cluster.connection(broker)
        # Read after the connection is open: what is acknowledged later is not verified by this response.
        requested_at = self._loop.time()
        reads = self._guard.reads_wanted(replica, requested_at)
        if not reads:
            return
        ends, errors = await read_log_ends(connection, reads, self._guard.settings.sample_timeout)
        self.reads += 1
        self._log_refused(broker, errors)
        self._completed(self._guard.observe_log_ends(LogEnds(replica, requested_at, reads, ends)))

    def _log_refused(self, broker: int, errors: Mapping[LogRead, int]) -> None:
        now = self._loop.time()
        for topic, code in {(read.partition[0], code) for read, code in errors.items()}:
            if now - self._logged.get((broker, topic), NEVER) < _LOGGED_AGAIN_SECONDS:
                continue
            self._logged[broker, topic] = now
            if code == ErrorCode.TOPIC_AUTHORIZATION_FAILED:
                log.error(
                    "broker %d refuses to let the gateway read topic %s, so that nothing is acknowledged on it: "
                    "grant READ on it to the principal of command.config",
                    broker,
                    topic,
                )
            else:
                log.warning("broker %d: the log of topic %s could not be read: error %d", broker, topic, code)

    def close(self) -> None:
        self._loops.close()

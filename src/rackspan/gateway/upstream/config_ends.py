"""Reads the log ends of the config topic's replicas, each at its own broker, for the lease on it.

What the leader does not send is read from the replica that has it: a link of the gateway to the leader may be half-open.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Final

from rackspan.client.connection import BrokerConnection, first
from rackspan.client.errors import message_of
from rackspan.errors import ClusterUnreachable, RackspanError
from rackspan.gateway.core.config_lease import LEASE_SECONDS, ConfigLease, EndReading, replicas_to_read
from rackspan.gateway.upstream.cluster import UpstreamCluster
from rackspan.gateway.upstream.config_leader import LATEST, lead_of, offset_request, topic_request
from rackspan.kafka_bytes.error_codes import ErrorCode
from rackspan.wire.apis import ApiKey

log = logging.getLogger(__name__)

READ_SECONDS: Final = 1.0
"""Between two reads of one replica: a lease outlasts two of them that fail."""

_AGAIN_SECONDS: Final = 0.1
"""The same while there is no lease."""

_FIRST_SECONDS: Final = 0.01
_LEADER_SECONDS: Final = 0.2
"""How long what a replica has is waited for from the leader."""

_RESPONSE_SECONDS: Final = 2.0
_DEBUGGING_REPLICA: Final = -2
"""Kafka's replica id with which ListOffsets responds at a follower too, and with the end of its log, committed or not."""

_CLOCK: Final = getattr(time, "CLOCK_BOOTTIME", None)


def lease_time() -> float:
    """Seconds of a clock that nobody sets. On Linux it runs on while the machine is suspended."""
    return time.monotonic() if _CLOCK is None else time.clock_gettime(_CLOCK)


async def read_end(connection: BrokerConnection, topic: str, replica: int) -> EndReading:
    """The end of one replica's log. Errors: OSError, RackspanError, also if the broker has no replica."""
    sent_at = lease_time()
    offsets = offset_request(topic, LATEST, _DEBUGGING_REPLICA)
    listed = asyncio.ensure_future(connection.call(ApiKey.LIST_OFFSETS, offsets, seconds=_RESPONSE_SECONDS))
    # After it on the same connection: a broker reports a new topic id before it replaces the log.
    metadata = asyncio.ensure_future(connection.call(ApiKey.METADATA, topic_request(topic), seconds=_RESPONSE_SECONDS))
    try:
        response = await listed
        lead = lead_of(topic, await metadata)
    finally:
        listed.cancel()
        metadata.cancel()
    partition = first(first(response.topics, "topic").partitions, "partition")
    if partition.error_code != ErrorCode.NONE:
        raise ClusterUnreachable(f"error {partition.error_code} from broker {replica} for the log end of {topic}")
    return EndReading(
        replica,
        sent_at,
        partition.offset,
        lead.topic_id,
        lead.leader_epoch,
        frozenset(lead.replicas),
        in_sync=replica in lead.isr,
    )


class ConfigEndReader:
    """Keeps the lease of one process current. `lapses` counts how often it ended."""

    def __init__(
        self,
        topic: str,
        cluster: UpstreamCluster,
        lease: ConfigLease,
        read_on: Callable[[int], Awaitable[None]],
    ) -> None:
        """`read_on` replays what one replica has and the leader has not sent."""
        self._topic = topic
        self._cluster = cluster
        self._lease = lease
        self._read_on = read_on
        self.renewed: Callable[[], None] = lambda: None
        """Called while the lease is current, after each read."""
        self._reading: dict[int, asyncio.Task[None]] = {}
        self._lapsed_at: float | None = lease_time()
        """Since when the lease is not current, as noticed; None while it is."""
        self.lapses = 0
        self.failures: dict[int, str] = {}
        """By replica, why its log end was not read the last time."""

    async def follow(self) -> None:
        """Read until cancelled."""
        try:
            while True:
                for replica in self._lease.replicas - self._reading.keys():
                    self._reading[replica] = asyncio.create_task(self._read(replica))
                is_current = self.is_current()
                await asyncio.sleep(READ_SECONDS if is_current else _AGAIN_SECONDS)
        finally:
            for task in self._reading.values():
                task.cancel()

    async def begin(self, seconds: float) -> None:
        """Read until the lease is current, for so long at most."""
        following = asyncio.create_task(self.follow())
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while not self.is_current():
                    await asyncio.sleep(_FIRST_SECONDS)
        following.cancel()

    def is_current(self) -> bool:
        """Whether the lease is; a change of that is logged."""
        now = lease_time()
        is_current = self._lease.is_current(now)
        if is_current is (self._lapsed_at is not None):
            self._lapsed_at = None if is_current else now
            if is_current:
                log.info("the end of the config topic %s is read", self._topic)
            else:
                self.lapses += 1
                log.warning("%s", self.warning())
        return is_current

    def report(self) -> None:
        """A log end or records were read."""
        if self.is_current():
            self.renewed()

    @property
    def lapsed_seconds(self) -> float:
        """For how long the lease is not current."""
        return 0.0 if self.is_current() or self._lapsed_at is None else lease_time() - self._lapsed_at

    @property
    def left_seconds(self) -> float:
        """How long the lease lasts if it is not renewed."""
        return self._lease.left_seconds(lease_time())

    def warning(self) -> str:
        """Why acks=all is not acknowledged while the lease is not current."""
        reasons = ", ".join(f"broker {replica}: {reason}" for replica, reason in sorted(self.failures.items()))
        unread = self._lease.unread_replicas()
        ahead = f"; brokers {', '.join(map(str, unread))} have records that could not be read" if unread else ""
        return (
            f"the end of the config topic {self._topic} could not be read from {replicas_to_read(len(self._lease.replicas))} of its replicas in sync "
            f"for {LEASE_SECONDS:g} s, so that acks=all waits or is refused: a value may have been raised elsewhere"
            f"{f' ({reasons})' if reasons else ''}{ahead}; look at the links to these brokers"
        )

    async def _read(self, replica: int) -> None:
        try:
            reading = await read_end(await self._cluster.connection(replica), self._topic, replica)
            self._lease.observe(reading, lease_time())
            self.failures.pop(replica, None)
            if replica in self._lease.unread_replicas():
                # The leader sends a record as soon as it is committed, if it can.
                await asyncio.sleep(_LEADER_SECONDS)
                if replica in self._lease.unread_replicas():
                    await self._read_on(replica)
            self.report()
        except (OSError, RackspanError) as error:
            self.failures[replica] = message_of(error)
            await asyncio.sleep(READ_SECONDS)
        finally:
            if self._reading.get(replica) is asyncio.current_task():
                del self._reading[replica]

"""Replication on the follower: one fetcher a leader copies batches, and truncates where the two logs part.

Read Follower (one partition) first, then ReplicaFetcher (all partitions of one leader), then ReplicaFetchers.
Truncation is by leader epoch, never to the high watermark (KIP-101): it lags behind what was acknowledged.
A fetch is sent when a position is to be declared, when the last fetch got its response, and again when no response came.
One that is sent while another is parked at the leader replaces it there.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum, auto

from rackspan.cluster.core.broker.broker_state import BrokerState
from rackspan.cluster.core.broker.rules import BrokerRules
from rackspan.cluster.core.ids import TopicId
from rackspan.cluster.core.log import PartitionLog
from rackspan.cluster.core.messages import (
    FetchedPartition,
    FetchPosition,
    ReplicaFetch,
    ReplicaFetchResponse,
    Send,
    WatermarkMoved,
)
from rackspan.cluster.core.metadata import NO_LEADER, PartitionState
from rackspan.kafka_bytes.error_codes import ErrorCode
from rackspan.model.ids import BrokerId, TopicPartition


class FetchOutcome(Enum):
    """What a follower did with one fetched partition."""

    STALE = auto()
    """It was for another position or epoch: nothing was done, the position is to be declared again."""
    COPIED = auto()
    WATERMARK = auto()
    """There was nothing to copy."""
    TRUNCATED = auto()
    REFUSED = auto()
    """The leader cannot serve this now; fetch again after a while."""


class Follower:
    """One follower of one leadership. `leader` is NO_LEADER where there is none to follow."""

    __slots__ = ("_rules", "leader", "leader_epoch", "log", "partition")

    def __init__(
        self, partition: TopicPartition, log: PartitionLog, leader: BrokerId, leader_epoch: int, rules: BrokerRules
    ) -> None:
        self.partition, self.log, self.leader, self.leader_epoch = partition, log, leader, leader_epoch
        self._rules = rules
        kept = rules.kept_when_following(log)
        if kept < log.end_offset:
            log.truncate_to(kept)

    def position(self) -> FetchPosition:
        """The position to declare to the leader."""
        log = self.log
        return FetchPosition(
            self.partition, log.topic_id, self.leader_epoch, log.end_offset, log.last_epoch, log.high_watermark
        )

    def apply(self, fetched: FetchedPartition) -> FetchOutcome:
        """Append what was fetched, or truncate where the logs part."""
        log = self.log
        if fetched.leader_epoch != self.leader_epoch:
            return FetchOutcome.STALE
        if fetched.offset != log.end_offset or fetched.last_fetched_epoch != log.last_epoch:
            return FetchOutcome.STALE
        if fetched.error is not ErrorCode.NONE:
            return self._refused(fetched)
        if fetched.diverging is not None:
            self.truncate(*fetched.diverging)
            return FetchOutcome.TRUNCATED
        return self._copied(fetched)

    def _copied(self, fetched: FetchedPartition) -> FetchOutcome:
        log = self.log
        for batch in fetched.batches:
            log.append(batch)
        # Never back within a leadership: a response that was overtaken may hold an older watermark.
        log.high_watermark = max(log.high_watermark, min(fetched.high_watermark, log.end_offset))
        log.delete_below(min(fetched.log_start, log.end_offset))
        return FetchOutcome.COPIED if fetched.batches else FetchOutcome.WATERMARK

    def _refused(self, fetched: FetchedPartition) -> FetchOutcome:
        if fetched.error is not ErrorCode.OFFSET_OUT_OF_RANGE:
            return FetchOutcome.REFUSED
        self.log.restart_at(fetched.log_start)
        return FetchOutcome.TRUNCATED

    def truncate(self, leader_epoch: int, leader_end: int) -> None:
        """Truncate to where the logs may still agree. The response to the next fetch shows whether they do."""
        self.log.truncate_to(self._rules.kept_when_diverging(self.log, leader_epoch, leader_end))


@dataclass(slots=True)
class ReplicaFetcher:
    """The fetches of one leader, for all partitions followed there. Times in ms; ordered sets are dicts."""

    leader: BrokerId
    followed: dict[TopicPartition, Follower] = field(default_factory=dict)
    undeclared: dict[TopicPartition, None] = field(default_factory=dict)
    forgotten: dict[TopicPartition, None] = field(default_factory=dict)
    retry_at: dict[TopicPartition, int] = field(default_factory=dict)
    """Refused partitions, and when to fetch them again."""
    sequence: int = 0
    """Of the last fetch from this leader. The next is one more, or the leader starts a new session."""
    awaits_response: bool = False
    sent_at: int = 0
    start_over: bool = True

    def follow(self, follower: Follower) -> None:
        """Fetch this partition too."""
        self.followed[follower.partition] = follower
        self.undeclared[follower.partition] = None
        self.forgotten.pop(follower.partition, None)
        self.retry_at.pop(follower.partition, None)

    def unfollow(self, partition: TopicPartition) -> None:
        """Fetch this partition no longer."""
        if self.followed.pop(partition, None) is not None:
            self.forgotten[partition] = None
        self.undeclared.pop(partition, None)
        self.retry_at.pop(partition, None)

    def apply(
        self, now: int, response: ReplicaFetchResponse, backoff_ms: int
    ) -> Iterator[tuple[Follower, FetchOutcome]]:
        """Apply a leader's response. One that a later fetch has overtaken is used as far as it fits."""
        if response.sequence == self.sequence:
            self.awaits_response = False
            self.start_over = response.error is not ErrorCode.NONE
        for fetched in response.partitions:
            follower = self.followed.get(fetched.partition)
            if follower is None:
                continue
            outcome = follower.apply(fetched)
            if outcome is FetchOutcome.REFUSED:
                self.retry_at[fetched.partition] = now + backoff_ms
            elif outcome is not FetchOutcome.WATERMARK:
                self.undeclared[fetched.partition] = None
            yield follower, outcome

    def end_backoff(self, now: int) -> None:
        """Declare the refused partitions whose backoff is over."""
        for partition in [partition for partition, until in self.retry_at.items() if until <= now]:
            del self.retry_at[partition]
            self.undeclared[partition] = None

    def is_due(self, now: int, retry_ms: int) -> bool:
        """Whether a fetch is to be sent now."""
        if not self.followed and not self.forgotten:
            return False
        return bool(self.undeclared) or not self.awaits_response or now - self.sent_at >= retry_ms

    def next_fetch(self, now: int, broker: BrokerId, broker_epoch: int, retry_ms: int) -> ReplicaFetch:
        """The next fetch: a full one after an error, or when no response came."""
        full = self.start_over or (self.awaits_response and now - self.sent_at >= retry_ms)
        declared = self.followed if full else self.undeclared
        positions = tuple(
            self.followed[partition].position() for partition in declared if partition not in self.retry_at
        )
        self.sequence += 1
        fetch = ReplicaFetch(broker, broker_epoch, self.sequence, full, positions, tuple(self.forgotten))
        self.undeclared.clear()
        self.forgotten.clear()
        self.awaits_response, self.sent_at, self.start_over = True, now, False
        return fetch


class ReplicaFetchers:
    """All partitions that a broker follows, one fetcher a leader. `_stirred` are the leaders a fetch may be due for."""

    def __init__(self, shared: BrokerState) -> None:
        self._shared = shared
        self.followers: dict[TopicPartition, Follower] = {}
        self._fetchers: dict[BrokerId, ReplicaFetcher] = {}
        self._stirred: dict[BrokerId, None] = {}

    def follow(self, partition: TopicPartition, topic_id: TopicId, state: PartitionState) -> None:
        """Follow the leader of a newer state; an equal epoch changes nothing."""
        before = self.followers.get(partition)
        if before is not None and before.leader_epoch == state.leader_epoch and before.log.topic_id == topic_id:
            return
        self.unfollow(partition)
        log = self._shared.log(partition, topic_id)
        follower = self.followers[partition] = Follower(
            partition, log, state.leader, state.leader_epoch, self._shared.rules
        )
        if state.leader != NO_LEADER:
            self._fetcher(state.leader).follow(follower)
            self._stirred[state.leader] = None

    def unfollow(self, partition: TopicPartition) -> None:
        """Cease to follow."""
        follower = self.followers.pop(partition, None)
        fetcher = None if follower is None else self._fetchers.get(follower.leader)
        if fetcher is not None:
            fetcher.unfollow(partition)

    def _fetcher(self, leader: BrokerId) -> ReplicaFetcher:
        fetcher = self._fetchers.get(leader)
        if fetcher is None:
            fetcher = self._fetchers[leader] = ReplicaFetcher(leader)
        return fetcher

    def start_over(self) -> None:
        """Start a new session with every leader, under a new broker epoch."""
        for fetcher in self._fetchers.values():
            fetcher.start_over, fetcher.awaits_response = True, False
        self._stirred.update(dict.fromkeys(self._fetchers))

    def apply(self, now: int, leader: BrokerId, response: ReplicaFetchResponse) -> None:
        """Apply a leader's response, unless it is for an earlier broker epoch."""
        fetcher = self._fetchers.get(leader)
        if fetcher is None or response.broker_epoch != self._shared.broker_epoch:
            return
        fetched_by_partition = {fetched.partition: fetched for fetched in response.partitions}
        for follower, outcome in fetcher.apply(now, response, self._shared.settings.fetch_backoff_ms):
            if outcome is FetchOutcome.COPIED:
                copied = sum(batch.size_bytes for batch in fetched_by_partition[follower.partition].batches)
                self._count_traffic(follower, leader, copied)
            if outcome in (FetchOutcome.COPIED, FetchOutcome.WATERMARK):
                self._shared.effects.append(WatermarkMoved(follower.partition))
        self._stirred[leader] = None

    def _count_traffic(self, follower: Follower, leader: BrokerId, size_bytes: int) -> None:
        shared = self._shared
        key = (follower.partition.topic, shared.rack_of(leader), shared.rack_of(shared.id))
        shared.counters.replicated_bytes[key] += size_bytes

    def fetch_stirred(self, now: int) -> None:
        """Send every fetch that is due; called once a message, after all that it changed."""
        if not self._stirred:
            return
        stirred, self._stirred = self._stirred, {}
        for leader in stirred:
            self._fetch(now, self._fetchers[leader])

    def tick(self, now: int) -> None:
        for fetcher in self._fetchers.values():
            fetcher.end_backoff(now)
            self._fetch(now, fetcher)

    def _fetch(self, now: int, fetcher: ReplicaFetcher) -> None:
        shared = self._shared
        retry_ms = shared.settings.fetch_retry_ms
        if fetcher.is_due(now, retry_ms):
            fetch = fetcher.next_fetch(now, shared.id, shared.broker_epoch, retry_ms)
            shared.effects.append(Send(fetcher.leader, fetch))
